// SPDX-License-Identifier: Apache-2.0
// How many lines of the breaker memory each part of a breaker takes. Part of BreakerPublisher
// (shm/breaker/publisher.hpp); not for anybody else.
#pragma once
#include <algorithm>
#include <cstdint>

#include "shm/breaker/detail.hpp"

namespace cutwater::shm {

constexpr std::uint32_t lines_of(std::uint64_t bytes) noexcept {
  return static_cast<std::uint32_t>((bytes + kCacheLine - 1) / kCacheLine);
}

inline bool is_time(const rule::BreakerNumbers& n) noexcept {
  return n.window_type == static_cast<std::uint8_t>(rule::WindowType::TimeBased);
}

/// Cells the window of these numbers needs.
inline std::uint64_t cells_for(const rule::BreakerNumbers& n) noexcept {
  if (is_time(n)) return ring_cells(n.slots);
  return ring_cells(std::max<std::uint32_t>(n.window_calls, n.consecutive));
}
inline std::uint32_t ring_lines(const rule::BreakerNumbers& n) noexcept {
  return lines_of(ring_bytes(cells_for(n)));
}
/// Of the ring it has, which may be larger than its window needs.
inline std::uint32_t ring_lines(const BreakerConfig& c) noexcept {
  return lines_of(ring_bytes(std::uint64_t{c.ring_mask} + 1));
}
inline constexpr std::uint32_t kSpanLines = lines_of(ring_bytes(kMinSpanCells));
inline constexpr std::uint32_t kUserLines = lines_of(kBreakerUsers * sizeof(BreakerUser));
inline constexpr std::uint32_t kHangingLines = lines_of(kHangingCells * sizeof(Word16));
inline constexpr std::uint32_t kInstanceLines = lines_of(sizeof(PatternPlace));
inline bool counts_hanging(const rule::BreakerNumbers& n) noexcept {
  return (n.flags & rule::kBreakerHanging) != 0;
}
inline std::uint32_t probe_lines(const rule::BreakerNumbers& n) noexcept {
  return lines_of(n.probes * sizeof(Word16));
}

}  // namespace cutwater::shm
