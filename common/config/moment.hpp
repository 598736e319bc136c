// SPDX-License-Identifier: Apache-2.0
// Moments as operators write them, by RFC 3339 and always with a zone: 2030-01-01T00:00:00Z,
// 2030-01-01T02:00:00+02:00. Units: unix seconds; a fraction of a second is rounded up, so that
// what lasts "until" then lasts at least so long. Bounds: after 1970-01-01T00:00:00Z, until
// kMaxMoment. Errors: InvalidConfig, `what is wrong; remedy`. Thread safety: pure functions.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include <cutwater/result.hpp>

namespace cutwater::config {

inline constexpr std::uint64_t kMaxMoment = 0xffff'ffff;   ///< 2106-02-07T06:28:15Z

Result<std::uint64_t> parse_moment(std::string_view text);

/// 2030-01-01T00:00:00Z; parse_moment() reads it back.
std::string format_moment(std::uint64_t unix_s);

}  // namespace cutwater::config
