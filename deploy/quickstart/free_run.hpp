// SPDX-License-Identifier: Apache-2.0
// The free run: how many decisions a second 1, 2 and 4 processes make, each with its own Client, on
// the clients of a log in its order; beside it, where redis-server is installed, the same processes
// asking a GCRA script of a Redis over a Unix socket. Figures for a first impression;
// cutwater-bench measures.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "shared_log.hpp"

namespace cutwater::quickstart {

struct FreeRunAsk {
  std::string address;
  std::string limit;
  std::vector<std::uint32_t> processes{1, 2, 4};
  double seconds = 1;
  bool colour = false;
};

/// Exit code: 0 when it ran, 1 when something failed. A missing redis-server is no failure.
int run_free(const FreeRunAsk& ask, SharedLog& log);

}  // namespace cutwater::quickstart
