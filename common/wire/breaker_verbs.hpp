// SPDX-License-Identifier: Apache-2.0
// Verbs of STEER about one breaker, by its name. The first three last: `for_ns` (0 = until somebody
// changes it) and `note` are kept in the journal, and they come back after a restart.
#pragma once
#include <string_view>

namespace cutwater::wire {

inline constexpr std::string_view kVerbBreakerForceOpen = "breaker.force-open";  ///< refuses all
inline constexpr std::string_view kVerbBreakerDisable = "breaker.disable";       ///< grants all
inline constexpr std::string_view kVerbBreakerMetricsOnly = "breaker.metrics-only";
inline constexpr std::string_view kVerbBreakerAuto = "breaker.auto";    ///< ends one of these
inline constexpr std::string_view kVerbBreakerReset = "breaker.reset";  ///< CLOSED and empty
/// {to: text}: OPEN, HALF_OPEN or CLOSED; for_ns: the wait of OPEN, 0 = as configured. What a
/// program asks for (Breaker::transition_to): no note, and not in the journal, as these states do
/// not last.
inline constexpr std::string_view kVerbBreakerTransition = "breaker.transition";

}  // namespace cutwater::wire
