// SPDX-License-Identifier: Apache-2.0
// What memory keeps about breakers for people: why they opened, and what they did since the start.
// Everything here lies in `stats` and is never an input of a decision.
//
// TripRecord     a ring of capacity.trips records, of all breakers together: one for each move from
//                CLOSED to OPEN that a window, a run of failures or a hint decided. Number last, as
//                with events; a checksum over all of it tells a torn one.
// BreakerStory   one per breaker: its last failures (class and row, so that a trip can say who
//                contributed), moves by from, to and reason, time in each state, and what its
//                durations and counters were at the last few moments of a minute.
//
// Who writes: a story's counts anybody, by atomic adds; its last failures anybody, one 8-byte store
// each; its minutes the daemon's tick only; a trip whoever moved the state. A kill loses the one
// record or step under way.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "rule/breaker_rule.hpp"
#include "shm/breaker/layout.hpp"

namespace cutwater::shm {

inline constexpr std::size_t kTripRows = 8;          ///< contributors a trip names, most first
inline constexpr std::size_t kRecentFailures = 64;   ///< of each breaker, a power of two
inline constexpr std::size_t kBreakerReasons = 16;   ///< rule::BreakerReason has fewer
inline constexpr std::size_t kMinuteLooks = 7;       ///< snapshots kept of each breaker
inline constexpr std::int64_t kMinuteStepNs = 10'000'000'000;   ///< apart from each other

/// One contributor to a trip.
struct TripRow {
  std::uint32_t row;                 ///< 0: callers without a row
  std::uint32_t pid;                 ///< as the row table had it then; 0 unknown
  std::uint32_t failures;            ///< among the failures looked at
  std::uint32_t slow;
};
static_assert(sizeof(TripRow) == 16);

struct TripRecord {
  std::uint64_t number;              ///< trip number + 1, stored last (release); 0 = being written
  std::int64_t t_ns;                 ///< segment time of the move
  std::uint32_t object;              ///< breaker index
  std::uint32_t incarnation;
  std::uint32_t epoch;               ///< of the OPEN it began: names the move's event
  std::uint8_t from;                 ///< rule::BreakerState
  std::uint8_t reason;               ///< rule::BreakerReason
  std::uint8_t attempts;
  std::uint8_t row_count;            ///< of `rows` in use
  std::int64_t until_ns;             ///< when OPEN is over
  std::uint64_t calls;               ///< of the window that decided; with hanging ones
  std::uint64_t failures;
  std::uint64_t slow;
  std::uint32_t run;                 ///< failures in a row; COUNT: 0 unless they may open
  std::uint32_t hanging;             ///< calls still out and counted as slow
  std::uint32_t looked_at;           ///< last failures and slow calls that by_class and rows count
  std::uint32_t durations;           ///< calls that p50, p99 and max are of; 0: none are known
  std::int64_t p50_ns;
  std::int64_t p99_ns;
  std::int64_t max_ns;
  std::int64_t durations_since_ns;   ///< they are of this time until t_ns; 0: since the start
  std::uint16_t by_class[kBreakerClasses];   ///< failures by rule::class_counter()
  TripRow rows[kTripRows];
  rule::BreakerNumbers numbers;      ///< settings in force
  char name[64];
  std::uint8_t pad[4];
  std::uint32_t check;               ///< CRC32C of the number and all between it and here
};
static_assert(sizeof(TripRecord) == 512 && std::is_standard_layout_v<TripRecord>);
static_assert(offsetof(TripRecord, numbers) == 304 && offsetof(TripRecord, check) == 508);

/// The last failures and slow calls of one breaker: a sketch that only trips read.
/// entry: row:16 | epoch low:24 | class:8 | 0:14 | slow:1 | failed:1; 0 = none.
struct RecentFailures {
  std::uint64_t next;                ///< fetch_add; entry[next % kRecentFailures] is written next
  std::uint8_t pad[56];
  std::uint64_t entry[kRecentFailures];
};
static_assert(sizeof(RecentFailures) == 576);

/// What had been counted at one moment, sums over all stripes; t_ns = 0: no moment yet.
struct MinuteLook {
  std::int64_t t_ns;                 ///< stored last; 0 while being written
  std::uint64_t duration_us;         ///< BreakerCounter::DurationUs
  std::uint64_t failures;
  std::uint64_t success;
  std::uint32_t durations[kHistogramCells];
};
static_assert(sizeof(MinuteLook) == 896);

/// One breaker's own chapter; by breaker index.
struct BreakerStory {
  RecentFailures recent;
  std::uint32_t moves[rule::kBreakerStates][rule::kBreakerStates][kBreakerReasons];
  std::uint64_t time_us[8];          ///< spent in each state until it was left
  MinuteLook minute[kMinuteLooks];
};
static_assert(sizeof(BreakerStory) == 9216 && sizeof(BreakerStory) % kCacheLine == 0);

}  // namespace cutwater::shm
