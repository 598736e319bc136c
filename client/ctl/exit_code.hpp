// SPDX-License-Identifier: Apache-2.0
// What cutwaterctl tells a script by its exit code. The numbers are part of the interface.
#pragma once
#include <cutwater/error.hpp>

namespace cutwater::ctl {

enum class Exit : int {
  Ok = 0,            ///< done, or allowed
  Refused = 1,       ///< `limit peek`: this ask would be refused; of an act: the daemon refused it
  Usage = 2,         ///< the command line, or a file named on it, cannot be used
  NoConnection = 3,  ///< no daemon answers and there is no memory to read instead
  Invalid = 4,       ///< the configuration was refused, or damage was found
  NotPermitted = 5,
  NoSuchName = 6,  ///< no limit, breaker or bulkhead of that name
  NotWritten = 7,  ///< standard output cannot be written, such as to a full disk
};

/// The exit code of an error.
Exit exit_of(Errc code) noexcept;

}  // namespace cutwater::ctl
