// SPDX-License-Identifier: Apache-2.0
// How a CalendarRecord comes about: the periods of a zone turned into stamps of the segment's
// clock, and written anew before they run out or when somebody sets the wall clock. Pure but for
// system_periods(): no clock, no shared memory.
//
// k(t), the number of the period, never falls, whatever the wall clock does (guard
// WindowNumberNeverFalls), and a record written anew gives the same k as the old one for every
// stamp below its moment. A wall clock that is set back leaves k as it is: the period goes on until
// the wall clock comes to its next edge. One that is set forward over edges begins one new period.
// So setting the clock never takes a count away and gives at most one.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <cutwater/result.hpp>

#include "rule/limit_settings.hpp"
#include "shm/layout.hpp"

namespace cutwater::shm {

/// Fewer edges ahead than this: written anew.
inline constexpr std::size_t kEdgesAhead = 12;
/// Edges that differ by less are the same: what reading two clocks one after the other costs.
inline constexpr std::int64_t kEdgeToleranceNs = 1'000'000;

/// The periods of a zone around a moment of wall time.
struct WallPeriods {
  std::int64_t index = 0;                ///< of the period that contains the moment, rising by one
  std::vector<std::int64_t> edges_s;     ///< unix seconds, ascending, the first behind the moment
};
/// Where the periods come from; InvalidArgument names a zone that is not there.
using PeriodSource = std::function<Result<WallPeriods>(
    rule::CalendarUnit unit, const std::string& zone, std::int64_t unix_s, std::size_t count)>;
/// By the zone files of the system (calendar/period.hpp).
Result<WallPeriods> system_periods(rule::CalendarUnit unit, const std::string& zone,
                                   std::int64_t unix_s, std::size_t count);

/// Names a calendar over publications; "" and "UTC" are one zone. Never 0.
std::uint64_t calendar_hash(rule::CalendarUnit unit, const std::string& zone) noexcept;

/// What a wall clock says about a moment `t` of the segment: periods with edges as stamps.
struct StampedPeriods {
  std::int64_t index = 0;
  std::vector<std::int64_t> edges;       ///< ns of segment time, rising, all beyond t
};
/// wall_offset_ns: unix ns = segment ns + offset.
Result<StampedPeriods> stamped_periods(const PeriodSource& source, rule::CalendarUnit unit,
                                       const std::string& zone, std::int64_t t,
                                       std::int64_t wall_offset_ns);

/// A calendar nobody has used, good from `t` on.
CalendarRecord fresh_calendar(rule::CalendarUnit unit, const std::string& zone,
                              const StampedPeriods& periods, std::int64_t t);
/// What `old` becomes from `base_t` on; `old` itself while it agrees with `periods` (of base_t) and
/// enough edges lie ahead.
CalendarRecord renewed_calendar(const CalendarRecord& old, const StampedPeriods& periods,
                                std::int64_t base_t);
/// When it wants to be written anew because its edges run out.
std::int64_t renew_calendar_at(const CalendarRecord& calendar) noexcept;

}  // namespace cutwater::shm
