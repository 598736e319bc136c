// SPDX-License-Identifier: Apache-2.0
// What an append to a COUNT ring is made of (shm/breaker/ring.hpp says what they are), for the long
// way and the short one (shm/breaker/quick.hpp). Not for anybody else.
#pragma once
#include <cstdint>

#include "shm/breaker/ring.hpp"

namespace cutwater::shm {

constexpr std::uint64_t next_seq(std::uint64_t at) noexcept { return (at + 1) & kSeqMask; }

/// a newer than b, modulo 2^36.
constexpr bool newer_seq(std::uint64_t a, std::uint64_t b) noexcept {
  return a != b && ((a - b) & kSeqMask) < (std::uint64_t{1} << 35);
}

[[gnu::always_inline]] inline void advance_hint(const RingView& ring, std::uint64_t seq) noexcept {
  // release: whoever starts from the hint sees its cell. A later hint is left alone: only work.
  if (newer_seq(seq, __atomic_load_n(&ring.head->hint, __ATOMIC_RELAXED))) {
    __atomic_store_n(&ring.head->hint, seq, __ATOMIC_RELEASE);
  }
}

}  // namespace cutwater::shm
