// SPDX-License-Identifier: Apache-2.0
// Durations as operators write them: `100ms`, `15s`, `1m30s`, `1.5s`, `2h`, `1d`, `0`, or ISO 8601
// (`PT15S`, `P1DT12H`). Units ns us ms s m h d, each at most once and the larger first; m is a
// minute. Decimals are read exactly, never as a binary fraction; what is finer than 1 ns is
// refused. A bare number has no unit and is refused, as is anything negative or above 3660 days.
// Errors: InvalidConfig, `what is wrong; remedy`. Thread safety: pure functions.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include <cutwater/result.hpp>

namespace cutwater::config {

/// Nanoseconds, 0..rule::kMaxPeriodNs.
Result<std::uint64_t> parse_duration(std::string_view text);

/// Nanoseconds of a unit such as "ms", or 0 when there is no such unit.
std::uint64_t unit_ns(std::string_view unit) noexcept;

/// The one spelling that `show` and messages use: `1h`, `1m30s`, `0`. parse_duration() reads it
/// back.
std::string format_duration(std::uint64_t ns);

}  // namespace cutwater::config
