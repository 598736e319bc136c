// SPDX-License-Identifier: Apache-2.0
// Every byte of a circuit breaker in shared memory: layout.hpp's chapter on breakers.
//
// rules   BreakerConfig by breaker index, inside an image: numbers, and where the rest lies
// state   BreakerHead by breaker index; and one region of 64-byte lines, the breaker memory, out of
//         which the publisher gives each breaker its ring, its probe cells and its user records
// stats   BreakerCounters by breaker index, behind the limits' in each stripe; what is kept for
//         people is in shm/breaker/trip_layout.hpp
//
// Who writes: heads, rings, cells and users by anybody, by one swap of 16 or 8 bytes each; configs
// by the publisher. Invariants, cited by tests:
//   B1 every change of state is one swap of the state word with epoch + 1, from an announced word
//      only, so each epoch ends by exactly one swap and no event is lost
//   B2 deadlines are data; every candidate computes the same one from the same stamp
//   B3 free + held + spent = P cells of the epoch: a cell of the present epoch is never taken from
//      a living owner before its deadline, and a result is never overwritten
//   B4 SPENT of the present epoch does not change while it is the present one
//   B5 the last look before a call starts showed the epoch its cell is of
//   B6 one fresh caller, all others stopped for ever and no daemon, brings a healthy dependency
//      back
// A change of any offset raises kAbiMajor.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "rule/breaker_rule.hpp"
#include "rule/breaker_users.hpp"
#include "shm/layout.hpp"
#include "shm/pattern_layout.hpp"

namespace cutwater::shm {

inline constexpr std::uint32_t kNoLine = 0xffff'ffff;   ///< "this breaker has none of these"
inline constexpr std::uint32_t kBreakerUsers = rule::kMaxBreakerUsers;   ///< of one
inline constexpr std::uint32_t kHangingCells = 256;     ///< calls in flight of one breaker
inline constexpr std::uint32_t kRingSpare = 8;          ///< cells of a ring beyond its window

/// One breaker as configured; in the image, by breaker index.
struct BreakerConfig {
  std::uint8_t used;                 ///< 0 = this entry is free
  std::uint8_t kind;                 ///< kNamedEntry, kPatternEntry, kInstanceEntry
  std::uint16_t users;               ///< user records, kBreakerUsers or 0
  std::uint32_t incarnation;         ///< changes when the index is given to another name
  std::uint32_t ring;                ///< line of the ring: head and cells
  std::uint32_t ring_mask;           ///< cells - 1, cells a power of two
  std::uint32_t span_ring;           ///< line of the min-span's time ring, or kNoLine
  std::uint32_t probe_cells;         ///< line of the probe cells; there are numbers.probes
  std::uint32_t user_records;        ///< line of the user records
  std::uint32_t hanging_cells;       ///< line of the cells of calls in flight, or kNoLine
  std::uint32_t hanging_count;
  std::uint32_t window_kept;         ///< COUNT: N that the ring's outcomes were collected under
  std::uint32_t pattern;             ///< of an instance: index of its pattern's own breaker
  std::uint32_t instance;            ///< line of the PatternPlace of a pattern or an instance
  std::uint8_t pad_b[8];
  rule::BreakerNumbers numbers;      ///< at 56
};
static_assert(sizeof(BreakerConfig) == 192 && std::is_standard_layout_v<BreakerConfig>);
static_assert(offsetof(BreakerConfig, numbers) == 56);

/// The class names that a breaker records or ignores; in the image, by breaker index.
struct BreakerClasses {
  std::uint16_t count;               ///< of entries in use
  std::uint8_t record_given;         ///< a `record` list was written
  std::uint8_t pad[5];
  std::uint64_t entry[rule::kMaxClasses];   ///< rule::class_hash() | kClassIgnored
};
static_assert(sizeof(BreakerClasses) == 512);
inline constexpr std::uint64_t kClassIgnored = std::uint64_t{1} << 63;

/// One breaker's state; in `state`, by breaker index. It never moves.
struct BreakerHead {
  /// lo = epoch:32 | 0:9 | views:1 | attempts:8 | reason:6 | prev:3 | announced:1 | ramping:1 |
  /// state:3, hi = deadline ns, 0 = none.
  Word16 state;
  /// lo = epoch:32 | rate per mille:10 (1023 unknown) | calls:22, hi = stamp ns. Of the epoch it
  /// names: set by who moved, else by who announced. For people; it decides nothing.
  Word16 since;
  std::uint64_t would_open;          ///< METRICS_ONLY: epoch:32 | a bit for each reason told
  std::uint32_t users;               ///< living users when last counted; a hint
  std::uint8_t pad_a[4];
  /// Calls in flight for too long, when last looked through: ms of that look:28 | epoch:16 |
  /// changes:10 | calls:10 (all ones: unknown). Whoever ends such a call makes it unknown.
  std::uint64_t hanging;
  /// The last three times it opened out of CLOSED, in half seconds, newest lowest: 3 * 21 bits, 0 =
  /// none; top bit: they are so close together that the event was written. Decides nothing.
  std::uint64_t openings;
};
static_assert(sizeof(BreakerHead) == 64 && offsetof(BreakerHead, would_open) == 32);
static_assert(offsetof(BreakerHead, hanging) == 48);

inline constexpr unsigned kStateBits = 3;
inline constexpr std::uint64_t kStateMask = 7;
inline constexpr std::uint64_t kStateRamping = 8;
inline constexpr std::uint64_t kStateAnnounced = 16;
/// CLOSED, and in this epoch some user opened for itself: whoever enters looks into its record.
/// Set before the first such view, gone with the epoch.
inline constexpr std::uint64_t kStateViews = std::uint64_t{1} << 22;
/// None of these: CLOSED for everybody, a call is granted by this one look.
inline constexpr std::uint64_t kStateNotPlain = kStateMask | kStateRamping | kStateViews;

/// The state word, taken apart.
struct BreakerWord {
  rule::BreakerState state = rule::BreakerState::Closed;
  rule::BreakerState previous = rule::BreakerState::Closed;
  rule::BreakerReason reason = rule::BreakerReason::None;
  bool ramping = false;
  bool announced = false;
  bool views = false;
  std::uint32_t attempts = 0;        ///< 0..255, saturating
  std::uint32_t epoch = 0;
  std::int64_t deadline_ns = 0;
};
constexpr std::uint32_t epoch_of(std::uint64_t state_lo) noexcept {
  return static_cast<std::uint32_t>(state_lo >> 32);
}
constexpr BreakerWord unpack_breaker(Word16 w) noexcept {
  return {static_cast<rule::BreakerState>(w.lo & kStateMask),
          static_cast<rule::BreakerState>(w.lo >> 5 & 7),
          static_cast<rule::BreakerReason>(w.lo >> 8 & 63),
          (w.lo & kStateRamping) != 0,
          (w.lo & kStateAnnounced) != 0,
          (w.lo & kStateViews) != 0,
          static_cast<std::uint32_t>(w.lo >> 14 & 255),
          epoch_of(w.lo),
          static_cast<std::int64_t>(w.hi)};
}
constexpr Word16 pack_breaker(const BreakerWord& w) noexcept {
  return {static_cast<std::uint64_t>(w.state) | (w.ramping ? kStateRamping : 0) |
              (w.announced ? kStateAnnounced : 0) | (w.views ? kStateViews : 0) |
              static_cast<std::uint64_t>(w.previous) << 5 |
              static_cast<std::uint64_t>(w.reason) << 8 |
              static_cast<std::uint64_t>(w.attempts < 255 ? w.attempts : 255) << 14 |
              static_cast<std::uint64_t>(w.epoch) << 32,
          static_cast<std::uint64_t>(w.deadline_ns)};
}
/// What a fresh breaker starts from: epoch 1, announced.
inline constexpr std::uint32_t kFirstBreakerEpoch = 1;
/// Older by signed difference: 2^31 transitions apart nobody can tell.
constexpr bool older_epoch(std::uint32_t a, std::uint32_t b) noexcept {
  return static_cast<std::int32_t>(a - b) < 0;
}

/// First two lines of a ring; the cells follow.
struct BreakerRing {
  std::uint64_t hint;                ///< COUNT: position of the tail; TIME: newest slot
  std::uint64_t settled;             ///< all up to here were judged (TIME: this total); a hint
  std::uint8_t pad[48];
  Word16 base[4];                    ///< TIME: by epoch & 3, what had been counted when it began
};
static_assert(sizeof(BreakerRing) == 128 && offsetof(BreakerRing, base) == 64);

/// Cell of a COUNT ring: lo = seq:36 | epoch high:28, hi = epoch low:4 | n:20 | fail:20 | slow:20.
/// n = outcomes of this epoch, saturating; fail and slow run on for ever, modulo 2^20.
struct CountCell {
  std::uint64_t seq = 0;
  std::uint32_t epoch = 0;
  std::uint32_t n = 0;
  std::uint32_t failures = 0;
  std::uint32_t slow = 0;
};
inline constexpr std::uint64_t kSeqMask = (std::uint64_t{1} << 36) - 1;
inline constexpr std::uint32_t kCountMask = (1u << 20) - 1;
constexpr CountCell unpack_count(Word16 w) noexcept {
  return {w.lo >> 28, static_cast<std::uint32_t>((w.lo & 0xfff'ffff) << 4 | w.hi >> 60),
          static_cast<std::uint32_t>(w.hi >> 40) & kCountMask,
          static_cast<std::uint32_t>(w.hi >> 20) & kCountMask,
          static_cast<std::uint32_t>(w.hi) & kCountMask};
}
constexpr Word16 pack_count(const CountCell& c) noexcept {
  return {(c.seq & kSeqMask) << 28 | c.epoch >> 4,
          static_cast<std::uint64_t>(c.epoch & 15) << 60 | std::uint64_t{c.n & kCountMask} << 40 |
              std::uint64_t{c.failures & kCountMask} << 20 | std::uint64_t{c.slow & kCountMask}};
}

/// Cell of a TIME ring: lo = slot:31 | sealed:1 | run:7 | fail:25, hi = total:32 | slow:32; all of
/// them run on for ever, modulo their width; run = failures in a row, saturating.
struct TimeCell {
  std::uint32_t slot = 0;
  bool sealed = false;
  std::uint32_t run = 0;
  std::uint32_t failures = 0;
  std::uint32_t total = 0;
  std::uint32_t slow = 0;
};
inline constexpr std::uint32_t kSlotMask = 0x7fff'ffff;
inline constexpr std::uint32_t kTimeFailMask = (1u << 25) - 1;
inline constexpr std::uint32_t kRunMax = 127;
constexpr TimeCell unpack_time(Word16 w) noexcept {
  return {static_cast<std::uint32_t>(w.lo >> 33), (w.lo >> 32 & 1) != 0,
          static_cast<std::uint32_t>(w.lo >> 25) & kRunMax,
          static_cast<std::uint32_t>(w.lo) & kTimeFailMask,
          static_cast<std::uint32_t>(w.hi >> 32), static_cast<std::uint32_t>(w.hi)};
}
constexpr Word16 pack_time(const TimeCell& c) noexcept {
  return {std::uint64_t{c.slot & kSlotMask} << 33 | std::uint64_t{c.sealed} << 32 |
              std::uint64_t{c.run} << 25 | (c.failures & kTimeFailMask),
          std::uint64_t{c.total} << 32 | c.slow};
}
/// base[]: lo = epoch:32 | total:32, hi = fail:25 | slow:32 | 0:7.
struct TimeBase {
  std::uint32_t epoch = 0;
  std::uint32_t total = 0;
  std::uint32_t failures = 0;
  std::uint32_t slow = 0;
};
constexpr TimeBase unpack_base(Word16 w) noexcept {
  return {static_cast<std::uint32_t>(w.lo >> 32), static_cast<std::uint32_t>(w.lo),
          static_cast<std::uint32_t>(w.hi >> 39), static_cast<std::uint32_t>(w.hi >> 7)};
}
constexpr Word16 pack_base(const TimeBase& b) noexcept {
  return {std::uint64_t{b.epoch} << 32 | b.total,
          std::uint64_t{b.failures & kTimeFailMask} << 39 | std::uint64_t{b.slow} << 7};
}

/// Cell of a half-open probe: lo = row:16 | row generation:12 | epoch:32 | state:2 | fail:1 |
/// slow:1, hi = deadline in us, rounded up:50 | take:14.
enum class ProbeState : std::uint8_t { Free = 0, Held = 1, Spent = 2 };
struct ProbeCell {
  std::uint32_t row = 0;             ///< 0: a caller without a row; only its deadline frees it
  std::uint32_t generation = 0;      ///< low 12 bits
  std::uint32_t epoch = 0;
  ProbeState state = ProbeState::Free;
  bool failed = false;
  bool slow = false;
  std::uint64_t deadline_us = 0;
  std::uint32_t take = 0;            ///< 14 bits: two takes of one cell are two words
};
inline constexpr std::uint32_t kProbeGenerationMask = 0xfff;
inline constexpr std::uint32_t kProbeTakeMask = 0x3fff;
constexpr ProbeCell unpack_probe(Word16 w) noexcept {
  return {static_cast<std::uint32_t>(w.lo >> 48),
          static_cast<std::uint32_t>(w.lo >> 36) & kProbeGenerationMask,
          static_cast<std::uint32_t>(w.lo >> 4),
          static_cast<ProbeState>(w.lo >> 2 & 3),
          (w.lo & 2) != 0,
          (w.lo & 1) != 0,
          w.hi >> 14,
          static_cast<std::uint32_t>(w.hi) & kProbeTakeMask};
}
constexpr Word16 pack_probe(const ProbeCell& c) noexcept {
  return {std::uint64_t{c.row & 0xffff} << 48 |
              std::uint64_t{c.generation & kProbeGenerationMask} << 36 |
              std::uint64_t{c.epoch} << 4 | static_cast<std::uint64_t>(c.state) << 2 |
              (c.failed ? 2u : 0u) | (c.slow ? 1u : 0u),
          c.deadline_us << 14 | (c.take & kProbeTakeMask)};
}

/// What one process has of a breaker: a claim from the moment it resolved the name, counts once
/// three processes have one (rule/breaker_users.hpp). A *turn* is N outcomes of a COUNT window, one
/// span of a TIME window.
struct BreakerUser {
  std::uint64_t owner;               ///< row:16 | row generation:14 | fork:34; 0 = free
  std::uint64_t before;              ///< counts of the turn before: calls:24 | fail:20 | slow:20
  Word16 now;                        ///< lo = epoch:32 | turn:32, hi = counts of that turn
  /// lo = epoch:32 | attempts:8 | run:16 | open:1 | probing:1 | 0:6, hi = deadline ns.
  Word16 view;
  std::uint8_t pad[16];
};
static_assert(sizeof(BreakerUser) == 64 && offsetof(BreakerUser, now) == 16 &&
              offsetof(BreakerUser, view) == 32);

inline constexpr std::uint32_t kOwnerGenerationMask = 0x3fff;
inline constexpr std::uint64_t kForkMask = (std::uint64_t{1} << 34) - 1;
constexpr std::uint64_t pack_owner(std::uint32_t row, std::uint32_t generation,
                                   std::uint64_t fork) noexcept {
  return std::uint64_t{row & 0xffff} << 48 |
         std::uint64_t{generation & kOwnerGenerationMask} << 34 | (fork & kForkMask);
}
constexpr std::uint32_t owner_row(std::uint64_t owner) noexcept {
  return static_cast<std::uint32_t>(owner >> 48);
}
constexpr std::uint32_t owner_generation(std::uint64_t owner) noexcept {
  return static_cast<std::uint32_t>(owner >> 34) & kOwnerGenerationMask;
}

struct TurnCounts {
  std::uint32_t calls = 0;           ///< 24 bits, saturating
  std::uint32_t failures = 0;        ///< 20 bits, saturating
  std::uint32_t slow = 0;            ///< 20 bits, saturating
};
inline constexpr std::uint32_t kTurnCallsMask = (1u << 24) - 1;
constexpr TurnCounts unpack_turn(std::uint64_t w) noexcept {
  return {static_cast<std::uint32_t>(w >> 40), static_cast<std::uint32_t>(w >> 20) & kCountMask,
          static_cast<std::uint32_t>(w) & kCountMask};
}
constexpr std::uint64_t pack_turn(const TurnCounts& c) noexcept {
  const auto cut = [](std::uint32_t value, std::uint32_t most) {
    return std::uint64_t{value < most ? value : most};
  };
  return cut(c.calls, kTurnCallsMask) << 40 | cut(c.failures, kCountMask) << 20 |
         cut(c.slow, kCountMask);
}

/// What a user has for itself.
struct UserView {
  std::uint32_t epoch = 0;           ///< of the host's state it belongs to; void in any other
  std::uint32_t attempts = 0;        ///< openings in a row, 0..255, saturating
  std::uint32_t run = 0;             ///< its present run of failures, saturating; 0 while open
  bool open = false;
  bool probing = false;              ///< its own probe is out; `deadline_ns` is the probe's
  std::int64_t deadline_ns = 0;
};
constexpr UserView unpack_view(Word16 w) noexcept {
  return {epoch_of(w.lo),
          static_cast<std::uint32_t>(w.lo >> 24) & 255,
          static_cast<std::uint32_t>(w.lo >> 8) & rule::kMaxOwnRun,
          (w.lo & 128) != 0,
          (w.lo & 64) != 0,
          static_cast<std::int64_t>(w.hi)};
}
constexpr Word16 pack_view(const UserView& v) noexcept {
  return {std::uint64_t{v.epoch} << 32 |
              std::uint64_t{v.attempts < 255 ? v.attempts : 255} << 24 |
              std::uint64_t{v.run < rule::kMaxOwnRun ? v.run : rule::kMaxOwnRun} << 8 |
              (v.open ? 128u : 0u) | (v.probing ? 64u : 0u),
          static_cast<std::uint64_t>(v.deadline_ns)};
}

/// Counters of one breaker in one stripe, and how long its calls took.
enum class BreakerCounter : std::uint8_t {
  Success = 0, Failure = 1, Ignored = 2, Cancelled = 3, Stale = 4, SlowSuccess = 5,
  SlowFailure = 6, UsedTwice = 7, StaleFailure = 8, RefusedOpen = 9, RefusedProbing = 10,
  RefusedProcess = 11, RefusedDegraded = 12, ProbesExpired = 13, ProbesReclaimed = 14,
  LocalFaults = 15, ProbesGranted = 16, Hinted = 17, Untracked = 18, GrantedOff = 19,
  DurationUs = 20, HangingReclaimed = 21,
  BeyondInstances = 22,              ///< of a pattern: names that found no place of their own
  ExpiredInQueue = 23,               ///< calls that never started: their deadline passed before
  FirstClass = 32,                   ///< 32..63: failures by class
};
inline constexpr std::size_t kBreakerCounters = 64;
inline constexpr std::size_t kBreakerClasses = 32;
/// 27 octaves from 1 us, 8 linear steps each: at most 6.25 % wrong.
inline constexpr std::size_t kHistogramCells = 216;
struct BreakerCounters {
  std::uint64_t value[kBreakerCounters];
  std::uint32_t durations[kHistogramCells];
  std::uint8_t pad[32];
};
static_assert(sizeof(BreakerCounters) == 1408 && sizeof(BreakerCounters) % kCacheLine == 0);

}  // namespace cutwater::shm
