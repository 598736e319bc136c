// SPDX-License-Identifier: Apache-2.0
// Rates as operators write them: a whole count of permits per period.
//   10/s  100/m  1000/15m  10r/s  100 per minute  10 per 13 s  1/PT1H
// and, as a YAML map, { count: 100, per: 1m }, { requests: 100, per: minute } and
// { unit: minute, requests_per_unit: 100 }; the map's parts come here as two texts. m is a minute.
// Bounds (refused naming them): count 1..1e9, period 1us..3660d, rate 1 per 3660d .. 10 000 000/s.
// Zero is refused on purpose: it means "unlimited" to some and "nobody" to others.
// Errors: InvalidConfig, `what is wrong; remedy`. Thread safety: pure functions.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include <cutwater/result.hpp>

namespace cutwater::config {

struct Rate {
  std::uint64_t count = 0;      ///< permits per period, as written: 60/m stays 60 per minute
  std::uint64_t period_ns = 0;

  friend bool operator==(const Rate&, const Rate&) = default;
};

/// A rate in one scalar.
Result<Rate> parse_rate(std::string_view text);

/// A rate in two: `count` as in parse_count(), `period` as in parse_period().
Result<Rate> parse_rate(std::string_view count, std::string_view period);

/// A period: a duration, a unit (`s`, `minute`, `hours`), or a number and a unit (`13 s`, `15
/// minutes`). Months and years are refused: they have no fixed length.
Result<std::uint64_t> parse_period(std::string_view text);

/// `10/s`, `1000/15m`. parse_rate() reads it back.
std::string format_rate(Rate rate);

}  // namespace cutwater::config
