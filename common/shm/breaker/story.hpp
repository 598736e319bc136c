// SPDX-License-Identifier: Apache-2.0
// What one breaker did, for the tool and for metrics: calls by outcome and class, refusals, moves
// by from, to and reason, time in each state, and how long calls took, since the start and in the
// last minute. Read by one function; nothing in here is an input of a decision.
//
// "Since the start": of this memory, over reloads and restarts of the daemon; names that came and
// went on one index are added up. "The last minute": the difference to a look that the daemon's
// tick took every 10 s, so it spans 60 to 70 s; without a daemon, or in its first minute, it is
// unknown or shorter and says how long it is.
// Process safety: any. Only the daemon calls look_at_minute(). Nothing allocates.
#pragma once
#include <cstdint>

#include "shm/breaker/breaker.hpp"
#include "shm/breaker/trip_layout.hpp"

namespace cutwater::shm {

/// Durations of calls; each figure is the upper end of its histogram's cell, at most 12.5 % wide.
struct DurationFigures {
  std::uint64_t calls = 0;           ///< 0: nothing is known, the others are 0
  std::int64_t mean_ns = 0;          ///< exact to 1 us
  std::int64_t p50_ns = 0;
  std::int64_t p99_ns = 0;
  std::int64_t max_ns = 0;
  std::int64_t span_ns = 0;          ///< they are of this span until now; 0: since the start
};

struct BreakerFigures {
  BreakerSums sums;                  ///< calls by outcome and class, slow, refused, stale, expired
  std::uint32_t moves[rule::kBreakerStates][rule::kBreakerStates][kBreakerReasons] = {};
  std::int64_t time_ns[rule::kBreakerStates] = {};   ///< in each state, the present visit included
  DurationFigures total;             ///< since the start
  DurationFigures minute;
  std::uint64_t minute_outcomes = 0; ///< successes and failures of ...
  std::int64_t minute_span_ns = 0;   ///< ... this span until now; 0: nobody looked yet
};
/// False: no such breaker. Its counts are read one by one and may be a step apart from each other.
bool read_breaker_figures(const View& view, std::uint32_t index, BreakerFigures& out) noexcept;

/// Only its durations, since the start and in the last minute.
void read_durations(const View& view, std::uint32_t index, DurationFigures& total,
                    DurationFigures& minute) noexcept;

/// Figures of the durations in one histogram.
DurationFigures figures_of(const std::uint32_t (&cells)[kHistogramCells],
                           std::uint64_t duration_us) noexcept;

/// One move, after it was made: `spent_ns` in the state that was left, -1 unknown.
void count_move(const View& view, std::uint32_t index, rule::BreakerState from,
                rule::BreakerState to, rule::BreakerReason reason, std::int64_t spent_ns) noexcept;

/// The daemon's look, when kMinuteStepNs have passed since the last one; true: one was taken.
bool look_at_minute(const View& view, std::uint32_t index) noexcept;

}  // namespace cutwater::shm
