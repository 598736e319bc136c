// SPDX-License-Identifier: Apache-2.0
// transition_to(OPEN | HALF_OPEN | CLOSED) by hand (S13), checked, made and put into words: one
// place, so that a program in memory and one that lets the daemon do it get the same answer.
//
//   to          from                           what becomes of it
//   OPEN        every state                    the wait starts anew, attempts + 1; with a wait
//                                              given that wait, attempts unchanged
//   HALF_OPEN   OPEN, FORCED_OPEN              every probe cell free
//               HALF_OPEN                      nothing
//               CLOSED, DISABLED, METRICS_ONLY an error
//   CLOSED      every state                    empty window, attempts 0
//
// Errors: InvalidArgument (another state, a wait with another state than OPEN or outside
// 1 ns .. kMostHandWaitNs, a step that does not exist), UnknownName (no breaker of that name now),
// Busy (a name that shares its pattern's own breaker; a breaker that others move at this moment).
// Process safety: steer_breaker()'s, which makes the one swap there is; a kill leaves the old state
// or the new one. These functions allocate: they are for a hand, not for a call.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <cutwater/result.hpp>

#include "rule/limit_settings.hpp"
#include "shm/breaker/breaker.hpp"

namespace cutwater::shm {

/// Longest wait of an OPEN by hand: 3660 d, as of every act that is given a time.
inline constexpr std::int64_t kMostHandWaitNs = static_cast<std::int64_t>(rule::kMaxPeriodNs);

struct TransitionAsk {
  rule::BreakerState to = rule::BreakerState::Open;
  std::optional<std::int64_t> wait_ns{};       ///< of OPEN; none: as configured
};

/// Ok, or what no breaker takes. Pure.
Result<void> check_transition(const TransitionAsk& ask);

/// Makes it, for the breaker of that name; one that a pattern stands for is made first. The answer
/// says what it is now, and whether that has no effect (`enabled: false`). `row`: who, for events.
Result<std::string> transition_breaker(const View& view, std::string_view name,
                                       const TransitionAsk& ask, std::uint32_t row);

/// Why a name that shares its pattern's own breaker `shared` is not steered.
std::string shared_breaker_text(const View& view, std::string_view name, BreakerRef shared);

}  // namespace cutwater::shm
