// SPDX-License-Identifier: Apache-2.0
// Breakers and moves that the numbered scenarios have in common. Times are ms since the start.
#pragma once
#include <string>

#include "stress/breaker_world.hpp"

namespace cutwater::test {

using rule::BreakerReason;
using rule::BreakerSettings;
using rule::BreakerState;
using shm::BreakerCounter;
using shm::BreakerEntry;
using shm::Ended;
using shm::EventKind;
using shm::Recorded;
using shm::Steer;
using shm::Steered;

inline constexpr std::int64_t kMs = kMillisecond;

inline BreakerSettings microprofile(std::uint32_t volume, std::uint32_t ppm) {
  BreakerSettings s = rule::preset(rule::BreakerPreset::Microprofile);
  s.name = std::string("b");
  s.window_calls = s.minimum_calls = volume;
  s.failure_rate_ppm = ppm;
  return s;
}

inline BreakerSettings slow_breaker(std::uint32_t window, std::uint32_t ppm) {
  BreakerSettings s = count_breaker({window, 4, 2});
  s.slow_rate_ppm = ppm;
  s.slow_duration_ns = 100'000'000;
  return s;
}

inline BreakerSettings time_breaker(std::uint64_t seconds, std::uint32_t minimum) {
  BreakerSettings s = count_breaker({1, minimum, 2});
  s.window_type = rule::WindowType::TimeBased;
  s.window_span_ns = seconds * 1'000'000'000;
  s.window_slots = rule::default_slots(rule::BreakerPreset::Resilience4j, s.window_span_ns);
  return s;
}

/// One call that ends at `ms` after the start.
inline void ends_at(BreakerWorld& w, std::int64_t ms, Ended how) {
  const BreakerEntry entry = w.enter();
  w.at(ms * kMs);
  w.finish(entry, how);
}

/// OPEN since the last failure, which ended at `ms`.
inline void trip(BreakerWorld& w, std::int64_t ms) {
  while (w.state() == BreakerState::Closed) ends_at(w, ms, Ended::Failure);
}

}  // namespace cutwater::test
