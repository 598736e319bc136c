// SPDX-License-Identifier: Apache-2.0
// The two rings in which a breaker's outcomes lie, so that a window is exact, costs one swap to
// append to and two reads to judge, and is never half written.
//
// COUNT ring: one cell per outcome, each with a number of its own (seq) and what had been counted
// up to it. The window of the last N is the difference of two cells. The tail is the cell whose
// follower does not continue it; `hint` only says where to look.
// TIME ring: one cell per slot of time, counting on from the one before. Only the newest is open;
// whoever comes later seals it, fills what was skipped and opens its own. Anybody finishes any step
// of anybody. A late writer counts in the open cell, never in a sealed one.
// Killed at any instruction: the outcome is in one cell or in none. Every loop is bounded by the
// ring's own size or kRingRounds; what is read from shared memory is masked, never trusted.
// Process safety: any number of processes. Spec memory 9.
#pragma once
#include <cstdint>

#include "base/clock.hpp"
#include "rule/breaker_rule.hpp"
#include "shm/breaker/layout.hpp"

namespace cutwater::shm {

/// Attempts of one append before it gives up (counted as contention).
inline constexpr int kRingRounds = 4096;

struct RingView {
  BreakerRing* head = nullptr;
  Word16* cells = nullptr;
  std::uint64_t mask = 0;            ///< cells - 1
};

enum class Appended : std::uint8_t {
  Yes,
  Stale,       ///< the ring has outcomes of a newer epoch: this one's is over
  Damaged,     ///< no valid tail in the whole ring
  GaveUp,      ///< kRingRounds rounds without luck
};

/// Cells a window of `calls` outcomes or slots needs: a power of two with room beyond.
std::uint64_t ring_cells(std::uint64_t window) noexcept;
/// Bytes of a ring of that many cells.
constexpr std::uint64_t ring_bytes(std::uint64_t cells) noexcept {
  return sizeof(BreakerRing) + cells * sizeof(Word16);
}

// ---- COUNT -------------------------------------------------------------------------------------

/// Makes a ring nobody uses yet an empty one whose tail is position `at`.
void init_count_ring(const RingView& ring, std::uint32_t epoch, std::uint64_t at = 0) noexcept;

struct CountTail {
  bool found = false;
  std::uint64_t at = 0;              ///< position (seq) of the tail
  CountCell cell;
  Word16 follower;                   ///< what lies in the next cell: the append swaps exactly that
};
CountTail find_count_tail(const RingView& ring) noexcept;

/// Appends one outcome of `epoch`; `at` and `cell` are where it came to lie.
Appended append_count(const RingView& ring, std::uint32_t epoch, rule::BreakerOutcome outcome,
                      CountTail& out) noexcept;

/// The window of the last `calls` outcomes up to the cell at `at`, of its epoch; `consecutive` is
/// as far as a run is counted. False: overwritten meanwhile.
bool count_window(const RingView& ring, std::uint64_t at, const CountCell& cell,
                  std::uint32_t calls, std::uint32_t consecutive,
                  rule::BreakerWindow& out) noexcept;
/// The outcome that lies at `at`; false: overwritten.
bool count_outcome(const RingView& ring, std::uint64_t at, CountCell& cell,
                   rule::BreakerOutcome& out) noexcept;

/// Fills `to`, which nobody uses yet, with the newest min(keep, n) outcomes of `from`'s tail, so
/// that a wider window never brings back what the narrower had dropped. Returns the position up to
/// which it copied.
std::uint64_t copy_count_ring(const RingView& from, const RingView& to,
                              std::uint32_t keep) noexcept;
/// Appends to `to` what came to `from` behind `copied`: outcomes recorded while the rules changed.
void forward_count_ring(const RingView& from, const RingView& to, std::uint64_t copied) noexcept;

// ---- TIME --------------------------------------------------------------------------------------

constexpr std::uint32_t slot_of(std::int64_t now, std::uint64_t slot_ns) noexcept {
  const std::uint64_t slot = static_cast<std::uint64_t>(now) / (slot_ns == 0 ? 1 : slot_ns);
  return static_cast<std::uint32_t>(slot) & kSlotMask;
}

/// Makes a ring nobody uses yet an empty one whose open slot is `slot`; its base is `epoch`'s.
void init_time_ring(const RingView& ring, std::uint32_t slot, std::uint32_t epoch) noexcept;

/// What a TIME window is made of.
struct TimeShape {
  std::uint32_t slots = 1;           ///< N
  std::uint64_t slot_ns = 1;
};
/// Appends one outcome at `now` (read from `clock` again where that matters) and shows the window
/// it makes; `total` is what had then been counted in all, modulo 2^32.
Appended append_time(const RingView& ring, const TimeShape& shape, const SegmentClock& clock,
                     std::int64_t now, std::uint32_t epoch, rule::BreakerOutcome outcome,
                     rule::BreakerWindow& out, std::uint32_t* total = nullptr) noexcept;
/// The window that the last append made, whenever that was; `total` as above. For whoever judges
/// what a killed recorder left.
rule::BreakerWindow last_time_window(const RingView& ring, const TimeShape& shape,
                                     std::uint32_t epoch, std::uint32_t& total) noexcept;
/// The window at `now`, without writing.
rule::BreakerWindow time_window(const RingView& ring, const TimeShape& shape, std::int64_t now,
                                std::uint32_t epoch) noexcept;
/// What has been counted in all: the base of an epoch about to begin.
TimeBase time_total(const RingView& ring) noexcept;

}  // namespace cutwater::shm
