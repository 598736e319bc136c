// SPDX-License-Identifier: Apache-2.0
// Calendar periods of a zone: where the minute, hour, day, week, month or year that contains a
// moment ends, and when the next ones do. Who publishes a limit with a calendar window asks
//
//   auto periods = calendar::next_edges(zone, unit, unix_s_now, 24);
//   periods->index;      // k of the period that contains now: N(now) = k * J
//   periods->edges_s[0]; // from this unix second on it is k + 1, from edges_s[1] on k + 2, ...
//
// and asks again before the last edge has passed. An edge is the first second of its new period.
// The index is a count of periods: asked later, or for fewer edges, the same period has the same
// index, and the next one has the next, also over changes of the clock.
//
// What happens when the clock of the zone is moved:
// - Day, week, month, year begin with the first moment whose date is theirs. A day of daylight
//   saving has 23 or 25 hours. A date that comes twice (the clock goes back over midnight) is one
//   period, a date that never comes (a zone that moved over the date line) is none: the index goes
//   on by one there too. A week begins on Monday.
// - Minute and hour begin where the clock shows their first second, or jumps forward into them. An
//   hour shown twice is two periods; one that is skipped is none; where half an hour is put back,
//   one period is longer by it, and no period begins in the middle of another.
//
// Units: unix seconds from 0 (1970-01-01T00:00:00Z, index 0 at the least) to kMaxUnixSecond.
// Errors: InvalidArgument for a moment or a number of edges out of range. Pure: no clock, no
// globals. Cost: a walk over the changes of the zone since 1970, some microseconds; not for the
// decision path. Thread safety: any thread.
#pragma once
#include <cstdint>
#include <vector>

#include <cutwater/result.hpp>

#include "calendar/zone.hpp"
#include "rule/limit_settings.hpp"

namespace cutwater::calendar {

inline constexpr std::size_t kMaxEdges = 1024;

struct Periods {
  std::uint64_t index = 0;             ///< of the period that contains the moment
  std::int64_t begin_s = 0;            ///< its first second; 0 for one that began before 1970
  std::vector<std::int64_t> edges_s;   ///< ascending, the first one behind the moment
};

/// The period that contains `unix_s` and the first seconds of the next `count` ones (at most
/// kMaxEdges).
Result<Periods> next_edges(const Zone& zone, rule::CalendarUnit unit, std::int64_t unix_s,
                           std::size_t count);

}  // namespace cutwater::calendar
