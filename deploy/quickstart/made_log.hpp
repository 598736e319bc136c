// SPDX-License-Identifier: Apache-2.0
// A realistic access log out of a seed: a few clients ask most (Zipf), some come in bursts, and
// some lines are stamped earlier than the lines before them, as servers that log at the end of a
// request do. Combined format, so that it goes through the same reader as anybody's log.
#pragma once
#include <cstdint>
#include <string>

namespace cutwater::quickstart {

struct MadeLogAsk {
  std::uint64_t seed = 1;
  std::uint32_t requests = 10'000;
  std::uint32_t clients = 1'500;
};

/// The text of the log; the same ask gives the same text.
std::string make_log(const MadeLogAsk& ask);

}  // namespace cutwater::quickstart
