// SPDX-License-Identifier: Apache-2.0
// The rule behind the last change of a zone file, as POSIX writes it: CET-1CEST,M3.5.0,M10.5.0/3.
// Offsets are written west of UTC there, so CET-1 is one hour ahead. Of a year it gives the two
// moments at which daylight saving begins and ends. Thread safety: values and pure functions.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace cutwater::calendar {

struct Stretch;

/// A day of each year and a wall-clock time on it.
struct RuleDay {
  enum class Kind : std::uint8_t {
    Julian,    ///< Jn: day 1..365, the 29th of February never counts
    Plain,     ///< n: day 0..365, the 29th of February counts
    Weekday,   ///< Mm.w.d: weekday d (0 = Sunday) of week w of month m; week 5 = the last
  };
  Kind kind = Kind::Plain;
  std::int32_t day = 0;      ///< Julian, Plain: the day; Weekday: 0..6
  std::int32_t week = 0;     ///< 1..5
  std::int32_t month = 0;    ///< 1..12
  std::int32_t second = 0;   ///< of that day by the clock before the change; -167 h .. 167 h
};

struct ZoneRule {
  std::int32_t standard_offset_s = 0;   ///< ahead of UTC
  std::int32_t saving_offset_s = 0;     ///< the same when there is no daylight saving
  bool saves = false;
  RuleDay begin;                        ///< of daylight saving, by standard time
  RuleDay end;                          ///< by daylight saving time

  /// The stretch of that rule that contains a moment.
  Stretch stretch_at(std::int64_t unix_s) const;
};

/// The rule in a footer without its line ends, or nothing when it is none.
std::optional<ZoneRule> parse_rule(std::string_view text);

}  // namespace cutwater::calendar
