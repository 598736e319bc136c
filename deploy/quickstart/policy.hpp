// SPDX-License-Identifier: Apache-2.0
// Policy: what the exact limiter and the Redis script have to know of a limit, asked of the daemon.
#pragma once
#include <cstdint>
#include <string>

#include <cutwater/result.hpp>

#include "src/connection.hpp"

namespace cutwater::quickstart {

struct Policy {
  std::uint64_t rate_count = 0, rate_period_ns = 0, burst = 0;
};

/// How long the daemon may take for one answer.
inline constexpr Nanos kPatience = std::chrono::seconds{5};

/// A connection on which the daemon has answered HELLO.
struct Link {
  client::Connection connection;
  wire::Welcome welcome;
};
Result<Link> open_link(const std::string& address);

/// UnknownName lists the nearest names.
Result<Policy> read_policy(Link& link, const std::string& limit);

}  // namespace cutwater::quickstart
