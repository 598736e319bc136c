// SPDX-License-Identifier: Apache-2.0
// Every byte of a bulkhead in shared memory: layout.hpp's chapter on bulkheads.
//
// rules   BulkheadConfig by bulkhead index, inside an image: numbers, and where the rest lies
// state   BulkheadHead by bulkhead index; three regions for all of them together, out of which the
//         publisher gives each its own: cells (one for a place), stamps (one beside each cell) and
//         waiter records
// stats   BulkheadCounters by bulkhead index, behind the breakers' in each stripe
//
// Who writes: heads, cells and records by anybody, by one swap each; a stamp by the holder of its
// cell; configs by the publisher. Invariants, cited by tests:
//   K1 a cell says who holds the place and no other count exists; whoever takes one counts all
//      cells afterwards, with the limit read anew, and gives it back when there are too many
//   K2 a cell handed to somebody who is gone is void: free for all, cleaned up by nobody first
//   K3 a record is freed by its owner, or after the owner's death by the reaper
//   K4 nobody keeps a number of waiters: `arrivals` only grows, and `quiet` is made equal to it by
//      who saw nobody waiting after reading it, by a swap of the whole word
// A change of any offset raises kAbiMajor.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "shm/breaker/layout.hpp"
#include "shm/layout.hpp"
#include "shm/pattern_layout.hpp"

namespace cutwater::shm {

/// A run of cells or records. A bulkhead that grows gets another one, so that what is held stays
/// where it is; its cells are numbered through all of them.
struct Extent {
  std::uint32_t first;
  std::uint32_t count;               ///< 0 = none, and none behind it
};
inline constexpr std::size_t kExtents = 4;

/// One bulkhead as configured; in the image, by bulkhead index.
struct BulkheadConfig {
  /// 0 = this entry is free; runs of it that are there all the same belong to a bulkhead that was
  /// taken out, and wait for it to come back or for their last holder to leave.
  std::uint8_t used;
  std::uint8_t enabled;              ///< 0 = everybody passes and nothing is held
  std::uint8_t kind;                 ///< kNamedEntry, kPatternEntry, kInstanceEntry
  std::uint8_t pad_a;
  std::uint32_t incarnation;         ///< changes when the index is given to another name
  std::uint32_t limit;               ///< places; grants only in cells below it
  std::uint32_t max_waiting;         ///< in line at once; records at or above it are only emptied
  std::uint64_t max_wait_ns;         ///< 0 none, rule::kWaitForever
  std::uint64_t max_hold_ns;         ///< 0 off
  Extent cells[kExtents];            ///< together the highest limit not yet drained
  Extent records[kExtents];
  std::uint32_t pattern;             ///< of an instance: index of its pattern's own bulkhead
  std::uint8_t pad_b[28];
};
static_assert(sizeof(BulkheadConfig) == 128 && std::is_standard_layout_v<BulkheadConfig>);
static_assert(offsetof(BulkheadConfig, max_wait_ns) == 16);
static_assert(offsetof(BulkheadConfig, cells) == 32 && offsetof(BulkheadConfig, records) == 64);

/// One bulkhead's state; in `state`, by bulkhead index. It never moves.
struct BulkheadHead {
  /// arrivals:32 | quiet:32; somebody may wait iff the halves differ. Too much difference costs a
  /// look; too little cannot be. Wraps after 2^32 waits during which the line was never quiet.
  std::uint64_t line;
  std::uint64_t next;                ///< tickets given out; 2^48 of them last 8.9 years at 10^6/s
  /// lo = median of the holding times of the last minute in ns, hi = segment ns when it was
  /// computed; {0, 0} unknown. A hint for refusals; written by the owner of the memory.
  Word16 holding;
  std::uint8_t pad[32];
  PatternPlace place;                ///< of a pattern or an instance
};
static_assert(sizeof(BulkheadHead) == 256 && offsetof(BulkheadHead, holding) == 16);
static_assert(offsetof(BulkheadHead, place) == 64);

constexpr std::uint32_t arrivals_of(std::uint64_t line) noexcept {
  return static_cast<std::uint32_t>(line >> 32);
}
constexpr bool line_is_quiet(std::uint64_t line) noexcept {
  return arrivals_of(line) == static_cast<std::uint32_t>(line);
}

/// A cell, 8 bytes: 0 free | HELD row:16 generation:14 take:32 01 | HANDED ticket:48 record:14 10.
enum class PlaceState : std::uint8_t { Free = 0, Held = 1, Handed = 2, Scribbled = 3 };
struct PlaceCell {
  PlaceState state = PlaceState::Free;
  std::uint32_t row = 0;             ///< Held
  std::uint32_t generation = 0;      ///< Held: low 14 bits
  std::uint32_t take = 0;            ///< Held: of the process; two takes of a cell are two words
  std::uint64_t ticket = 0;          ///< Handed
  std::uint32_t record = 0;          ///< Handed
};
inline constexpr std::uint32_t kPlaceGenerationMask = 0x3fff;
inline constexpr std::uint32_t kPlaceRecordMask = 0x3fff;
inline constexpr std::uint64_t kTicketMask = (std::uint64_t{1} << 48) - 1;
constexpr PlaceState state_of_cell(std::uint64_t cell) noexcept {
  return static_cast<PlaceState>(cell & 3);
}
constexpr PlaceCell unpack_place(std::uint64_t w) noexcept {
  PlaceCell c;
  c.state = state_of_cell(w);
  if (c.state == PlaceState::Held) {
    c.row = static_cast<std::uint32_t>(w >> 48);
    c.generation = static_cast<std::uint32_t>(w >> 34) & kPlaceGenerationMask;
    c.take = static_cast<std::uint32_t>(w >> 2);
  } else if (c.state == PlaceState::Handed) {
    c.ticket = w >> 16;
    c.record = static_cast<std::uint32_t>(w >> 2) & kPlaceRecordMask;
  }
  return c;
}
struct PlaceOwner { std::uint32_t row, generation; };
constexpr std::uint64_t pack_held(PlaceOwner owner, std::uint32_t take) noexcept {
  return std::uint64_t{owner.row & 0xffff} << 48 |
         std::uint64_t{owner.generation & kPlaceGenerationMask} << 34 |
         std::uint64_t{take} << 2 | static_cast<std::uint64_t>(PlaceState::Held);
}
constexpr std::uint64_t pack_handed(std::uint64_t ticket, std::uint32_t record) noexcept {
  return (ticket & kTicketMask) << 16 | std::uint64_t{record & kPlaceRecordMask} << 2 |
         static_cast<std::uint64_t>(PlaceState::Handed);
}

/// A stamp: since:40 (ms of segment time) | take:24. Believed when its take is the cell's; else the
/// age of the place is unknown, which counts as 0.
inline constexpr std::uint32_t kStampTakeMask = 0xff'ffff;
constexpr std::uint64_t pack_stamp(std::int64_t now_ns, std::uint32_t take) noexcept {
  return static_cast<std::uint64_t>(now_ns / 1'000'000) << 24 | (take & kStampTakeMask);
}
/// Segment time of a stamp in ns; 0 when it is not of that take.
constexpr std::int64_t since_of(std::uint64_t stamp, std::uint32_t take) noexcept {
  return (stamp & kStampTakeMask) == (take & kStampTakeMask)
             ? static_cast<std::int64_t>(stamp >> 24) * 1'000'000
             : 0;
}

enum class WaiterState : std::uint8_t { Idle = 0, Claimed = 1, Waiting = 2 };
/// One place in line.
struct WaiterRecord {
  /// lo = ticket:48 | generation:14 | state:2, hi = deadline:48 (in 4096 ns, rounded up) | row:16.
  Word16 word;
  std::uint32_t futex;               ///< bumped by who hands a place to it; the waiter sleeps on it
  std::uint8_t pad[44];
};
static_assert(sizeof(WaiterRecord) == 64 && offsetof(WaiterRecord, futex) == 16);
struct Waiter {
  WaiterState state = WaiterState::Idle;
  std::uint32_t row = 0;
  std::uint32_t generation = 0;      ///< low 14 bits
  std::uint64_t ticket = 0;
  std::uint64_t deadline = 0;        ///< units of kDeadlineNs of segment time
};
inline constexpr std::int64_t kDeadlineNs = 4096;
inline constexpr std::uint64_t kDeadlineMax = kTicketMask;   ///< 36 years: beyond the horizon
constexpr Waiter unpack_waiter(Word16 w) noexcept {
  return {static_cast<WaiterState>(w.lo & 3), static_cast<std::uint32_t>(w.hi & 0xffff),
          static_cast<std::uint32_t>(w.lo >> 2) & kPlaceGenerationMask, w.lo >> 16, w.hi >> 16};
}
constexpr Word16 pack_waiter(const Waiter& w) noexcept {
  return {(w.ticket & kTicketMask) << 16 |
              std::uint64_t{w.generation & kPlaceGenerationMask} << 2 |
              static_cast<std::uint64_t>(w.state),
          (w.deadline & kTicketMask) << 16 | (w.row & 0xffff)};
}

/// Counters of one bulkhead in one stripe, and how long places were held and waited for.
enum class BulkheadCounter : std::uint8_t {
  Granted = 0,         ///< places taken
  RefusedFull = 1,     ///< no place, or too many in line, or max-wait-duration over
  RefusedExpired = 2,  ///< the call's own deadline passed in line
  RefusedDegraded = 3, ///< the bulkhead is gone, or its memory was damaged
  Stale = 4,           ///< given back twice, by a stranger, or after it was taken back: no effect
  Reclaimed = 5,       ///< places of dead owners given back
  Revoked = 6,         ///< places held longer than max-hold
  Waited = 7,          ///< of Granted, those that had waited in line
  HandedOver = 8,      ///< places that went from one holder to the next in line
  Overshot = 9,        ///< taken, counted, and given back because there were too many
  Returned = 10,       ///< places given back by their holders
  GaveUp = 11,         ///< left the line for a reason of their own
  HeldUs = 12,         ///< sum of holding times of Returned
  WaitedUs = 13,       ///< sum of waiting times of Waited
  PassedOff = 14,      ///< let through by a bulkhead that is switched off
  BeyondInstances = 15,  ///< of a pattern: names that found no place and share its own
};
inline constexpr std::size_t kBulkheadCounters = 16;
struct BulkheadCounters {
  std::uint64_t value[kBulkheadCounters];
  std::uint32_t held[kHistogramCells];     ///< by histogram_cell()
  std::uint32_t waited[kHistogramCells];
};
static_assert(sizeof(BulkheadCounters) == 1856 && sizeof(BulkheadCounters) % kCacheLine == 0);

}  // namespace cutwater::shm
