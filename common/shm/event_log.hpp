// SPDX-License-Identifier: Apache-2.0
// EventLog: a ring of 64-byte records that anybody may append
// to and anybody may read; never waited for.
//
// Append: number by fetch_add, number word 0, fields and checksum, number word last (release). A
// writer killed in between leaves a record whose number is 0 or old: readers skip a number that
// stays unstamped while later ones are there, and count it as lost. A late writer may tear a record
// that was reused: the checksum says so. (kind, object, epoch) names an event: readers drop repeats
// within a page; epoch 0 names nothing, so such events are never dropped. Slow readers see a gap by
// number. Spec memory 13.2.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "shm/view.hpp"

namespace cutwater::shm {

struct Event {
  std::uint64_t number = 0;            ///< from 0
  std::int64_t t_ns = 0;
  EventKind kind = EventKind::None;
  std::uint32_t object = 0;
  std::uint32_t epoch = 0;
  std::uint8_t from = 0, to = 0, reason = 0;
  std::uint16_t row = 0;
  char text[29] = {};                  ///< payload as text, cut at 28 bytes; never a caller's key
};

/// A number stays unstamped for this long, by a later record's time, or with this many records
/// stamped after it: its writer was killed, the event counts as lost.
inline constexpr std::int64_t kUnstampedPatienceNs = 10'000'000;
inline constexpr std::uint32_t kUnstampedAhead = 64;

/// Stable word of a kind, e.g. "config_reloaded".
std::string_view name_of(EventKind kind) noexcept;

/// Appends; returns the number. `number` of the argument is ignored, t_ns is taken from the
/// segment's clock.
std::uint64_t append_event(const View& view, const Event& event) noexcept;

struct EventPage {
  std::vector<Event> events;           ///< in number order, repeats dropped
  std::uint64_t next = 0;              ///< ask from here the next time
  std::uint64_t lost = 0;              ///< numbers that were overwritten, torn, or never stamped
};
/// Reads events from number `from` on, at most `max` (bounded by the ring's size). Never writes,
/// never waits: it stops before a record that is still being written. A `from` beyond the newest
/// event starts at the newest.
EventPage read_events(const View& view, std::uint64_t from, std::uint32_t max);

/// The newest events of a memory into the one that takes its place, under their numbers, as many as
/// both rings hold; the next number goes on. Older ones, and those never stamped, are lost there.
/// The owner of both, before `to` is offered.
void copy_events(const View& from, const View& to) noexcept;

/// What is wrong with record `index` of the ring, as a sentence; empty when nothing is. For verify.
std::string check_event(const View& view, std::uint32_t index);

}  // namespace cutwater::shm
