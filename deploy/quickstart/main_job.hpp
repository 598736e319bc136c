// SPDX-License-Identifier: Apache-2.0
// The main job: several processes send the requests of a log through one limit, each by itself in
// the shared memory, and the answer is compared per client with an exact limiter that shares no
// code with the product (tests/support/exact_limiter.hpp).
//
// Needs a daemon with a stepped clock. The parent conducts: it moves the daemon's clock to the
// stamp of the next requests only when all requests of the present one are decided (STEER
// clock.step).
#pragma once
#include <string>

#include "shared_log.hpp"

namespace cutwater::quickstart {

struct JobAsk {
  std::string address;  ///< unix:PATH, or empty for the usual places
  std::string limit;
  std::uint32_t workers = 4;
  bool colour = false;
};

/// Exit code: 0 the answers are equal, 1 they differ or something failed.
int run_main_job(const JobAsk& ask, SharedLog& log);

}  // namespace cutwater::quickstart
