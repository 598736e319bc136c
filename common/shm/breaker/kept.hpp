// SPDX-License-Identifier: Apache-2.0
// What the short ways of a breaker need of its settings, as a process keeps it (shm/kept.hpp):
// entering a CLOSED breaker, and a good outcome of a call granted by one.
//
// Kept by whoever reads the settings for a caller with a BreakerLocal. `ref`, places and numbers
// were checked as read_parts() checks them; a breaker that was superseded is not kept.
#pragma once
#include <cstddef>
#include <cstdint>

#include "rule/breaker_rule.hpp"
#include "shm/breaker/layout.hpp"
#include "shm/kept.hpp"

namespace cutwater::shm {

/// Names of the words.
enum class BreakerWord8 : std::uint8_t {
  Ref,          ///< pack_ref()
  Bits,         ///< kKept... | users:8 << 32 | consecutive:8 << 40 | evaluate-on:8 << 48
  Head,         ///< BreakerHead*
  Ring,         ///< BreakerRing*, COUNT; its cells follow it
  Mask,         ///< cells of the ring - 1
  Users,        ///< BreakerUser*
  Calls,        ///< minimum:32 | window:32
  Rates,        ///< slow ppm:32 | failure ppm:32
  Slow,         ///< a call that took longer is slow, ns; the largest number when none is
  Counters,     ///< bytes from a stripe's first counter to those of this breaker
  FailureCount,
};
inline constexpr std::size_t kBreakerWords = 11;

/// CLOSED grants by the state word alone: not switched off, and no call takes a cell.
inline constexpr std::uint64_t kKeptEnters = 1;
/// An outcome is appended to a COUNT ring and to nothing else.
inline constexpr std::uint64_t kKeptFinishes = 2;
/// Durations are measured: a call may be slow.
inline constexpr std::uint64_t kKeptMeasures = 4;
/// Outcomes are counted by user as well (min-processes).
inline constexpr std::uint64_t kKeptUsers = 8;

/// A good outcome opens nothing where its window has no bad ones.
inline constexpr std::uint64_t kKeptGoodIsGood = 16;

using BreakerKept = Kept<kBreakerWords>;

/// What opens it, of the words that begun() names; false: they are gone.
[[gnu::always_inline]] inline bool read_open_at(const BreakerKept& kept, const View& view,
                                                std::uint64_t begun, rule::OpenAt& out) noexcept {
  using enum BreakerWord8;
  if (kept.begin() != begun) return false;
  const std::uint64_t bits = kept.word<Bits>(), rates = kept.word<Rates>();
  out = {static_cast<std::uint32_t>(kept.word<Calls>() >> 32), static_cast<std::uint32_t>(rates),
         static_cast<std::uint32_t>(rates >> 32),
         static_cast<std::uint32_t>(kept.word<FailureCount>()),
         static_cast<std::uint8_t>(bits >> 40), static_cast<std::uint8_t>(bits >> 48)};
  return BreakerKept::holds(view, begun);
}

}  // namespace cutwater::shm
