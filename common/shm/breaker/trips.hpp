// SPDX-License-Identifier: Apache-2.0
// Trips: a record of each opening of a breaker, for `breaker why`.
//
// Whoever moves a breaker from CLOSED to OPEN writes one: when, why, the window that decided, the
// last failures by class and by process, how long calls took, and the settings in force. The last
// capacity.trips of all breakers are kept, in `stats`; a reader takes those of one. A kill between
// the move and the record leaves a trip without one. A torn record is told by its checksum and
// skipped. Nothing here is an input of a decision.
// Failures by class and by process are counted over the breaker's last 64 failures and slow calls
// of the epoch, which is what the window holds or its newest part. A process is named by its row,
// and by the pid the row had then: it may be gone, and the row another's.
// Thread and process safety: everything. Only read_trips() allocates.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "shm/breaker/breaker.hpp"
#include "shm/breaker/trip_layout.hpp"

namespace cutwater::shm {

/// One trip, as read.
struct BreakerTrip {
  std::uint64_t number = 0;          ///< from 0, of all breakers
  std::string name;
  std::uint32_t index = 0;
  std::uint32_t incarnation = 0;
  std::int64_t t_ns = 0;             ///< segment time
  std::int64_t until_ns = 0;         ///< when that OPEN was to end
  std::uint32_t epoch = 0;
  std::uint32_t attempts = 0;        ///< openings in a row, this one included
  rule::BreakerState from = rule::BreakerState::Closed;
  rule::BreakerReason reason = rule::BreakerReason::None;
  rule::BreakerWindow window;        ///< k, f, s and run that decided; hanging ones included
  std::uint32_t hanging = 0;         ///< calls still out, counted as slow
  std::uint32_t looked_at = 0;       ///< failures and slow calls that the next two count
  struct Class {
    std::string_view name;           ///< rule::counter_name()
    std::uint32_t failures = 0;
  };
  std::vector<Class> classes;        ///< most first
  std::vector<TripRow> contributors; ///< most failures first, at most kTripRows
  std::uint32_t durations = 0;       ///< calls that the next three are of; 0: not known
  std::int64_t p50_ns = 0;
  std::int64_t p99_ns = 0;
  std::int64_t max_ns = 0;
  std::int64_t durations_since_ns = 0;   ///< they are of this time until t_ns; 0: since the start
  rule::BreakerNumbers numbers{};    ///< settings in force
};

/// The last trips of the breaker named `name` (empty: of all), newest first, at most `most`.
/// Reads only; torn and overwritten records are left out.
std::vector<BreakerTrip> read_trips(const View& view, std::string_view name, std::size_t most);

/// What the mover knows of a trip.
struct TripFacts {
  std::uint32_t epoch = 0;           ///< of the OPEN
  rule::BreakerState from = rule::BreakerState::Closed;
  rule::BreakerReason reason = rule::BreakerReason::None;
  std::uint32_t attempts = 0;
  std::int64_t now_ns = 0;
  std::int64_t until_ns = 0;
  rule::BreakerWindow window;
  std::uint32_t hanging = 0;
};
/// Writes the record of one trip of breaker `index`.
void record_trip(const View& view, std::uint32_t index, const TripFacts& facts) noexcept;

/// Notes a failure or slow call among the breaker's last ones.
void note_failure(const View& view, std::uint32_t index, std::uint32_t epoch, std::uint32_t row,
                  std::uint8_t failure_class, rule::BreakerOutcome outcome) noexcept;

/// Puts the newest whole records of one memory into another that nobody uses yet.
void copy_trips(const View& from, const View& to) noexcept;

/// What is wrong with record `index` of the ring, as a sentence; empty when nothing is. For verify.
std::string check_trip(const View& view, std::uint32_t index);

}  // namespace cutwater::shm
