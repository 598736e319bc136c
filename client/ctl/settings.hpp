// SPDX-License-Identifier: Apache-2.0
// What every command of cutwaterctl is told, and where it prints.
#pragma once
#include <chrono>
#include <cstddef>
#include <string>

#include <cutwater/units.hpp>

namespace cutwater::ctl {

/// How long the daemon may take before the memory is read instead.
inline constexpr Nanos kDefaultTimeout = std::chrono::seconds{1};

struct Settings {
  std::string address;              ///< --address; empty: $CUTWATER_ADDRESS, else the usual places
  std::string memory;               ///< --memory; empty: beside the socket, else the usual places
  bool json = false;                ///< -o json
  bool colour = false;              ///< standard output is a terminal, and NO_COLOR is not set
  std::size_t columns = 0;          ///< of the terminal that standard output is; 0: none, unknown
  Nanos timeout = kDefaultTimeout;  ///< --timeout, of each question
};

}  // namespace cutwater::ctl
