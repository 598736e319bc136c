// SPDX-License-Identifier: Apache-2.0
// One append to a COUNT ring in its pieces (shm/breaker_ring.hpp says what they are), for the files
// of shm/breaker*.cpp: the short way looks at more between the tail and the swap. Not for anybody
// else.
#pragma once
#include <algorithm>
#include <cstdint>

#include "shm/breaker_ring.hpp"

namespace cutwater::shm {

constexpr std::uint64_t next_seq(std::uint64_t at) noexcept { return (at + 1) & kSeqMask; }

/// a newer than b, modulo 2^36.
constexpr bool newer_seq(std::uint64_t a, std::uint64_t b) noexcept {
  return a != b && ((a - b) & kSeqMask) < (std::uint64_t{1} << 35);
}

inline Word16* count_cell_at(const RingView& ring, std::uint64_t at) noexcept {
  return ring.cells + (at & ring.mask);
}

/// The tail where the hint names it, as it mostly does; else find_count_tail().
[[gnu::always_inline]] inline bool tail_at_hint(const RingView& ring, CountTail& out) noexcept {
  // acquire: pairs with the release in advance_hint(); a hint is never ahead of its cell.
  const std::uint64_t at = __atomic_load_n(&ring.head->hint, __ATOMIC_ACQUIRE) & kSeqMask;
  const CountCell cell = unpack_count(load16(count_cell_at(ring, at)));
  const Word16 follower = load16(count_cell_at(ring, at + 1));
  if (cell.seq != at || unpack_count(follower).seq == next_seq(at)) return false;
  out = {true, at, cell, follower};
  return true;
}

/// What comes behind this tail.
[[gnu::always_inline]] inline CountCell cell_behind(const CountTail& tail, std::uint32_t epoch,
                                                    rule::BreakerOutcome outcome) noexcept {
  CountCell next;
  next.seq = next_seq(tail.at);
  next.epoch = epoch;
  next.n = tail.cell.epoch == epoch ? std::min(tail.cell.n + 1, kCountMask) : 1;
  next.failures = (tail.cell.failures + (outcome.failed ? 1 : 0)) & kCountMask;
  next.slow = (tail.cell.slow + (outcome.slow ? 1 : 0)) & kCountMask;
  return next;
}

[[gnu::always_inline]] inline void advance_hint(const RingView& ring, std::uint64_t seq) noexcept {
  // release: whoever starts from the hint sees its cell. A later hint is left alone: only work.
  if (newer_seq(seq, __atomic_load_n(&ring.head->hint, __ATOMIC_RELAXED))) {
    __atomic_store_n(&ring.head->hint, seq, __ATOMIC_RELEASE);
  }
}

}  // namespace cutwater::shm
