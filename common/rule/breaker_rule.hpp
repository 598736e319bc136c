// SPDX-License-Identifier: Apache-2.0
// The rules of a circuit breaker as pure functions: what opens it, for how long, what half-open
// decides, what a ramp lets through, what a reader is shown. No clock, no memory, no socket:
// numbers in, a verdict out. shm/breaker/*.cpp loads, asks here, and swaps.
//
// BreakerNumbers is what the settings come down to. It lies in the rule image as it stands here, so
// that there is one list of fields and no copying back and forth: fixed widths, no padding left to
// the compiler, sizes asserted.
// Thread safety: values and pure functions.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "rule/breaker_settings.hpp"

namespace cutwater::rule {

/// Why a state was left. 6 bits of the state word; numbers are stable.
enum class BreakerReason : std::uint8_t {
  None = 0,
  FailureRate = 1,        ///< failures of the window at or above the threshold
  SlowRate = 2,           ///< slow calls of the window at or above theirs
  FailureCount = 3,       ///< as many failures in the window as allowed
  Consecutive = 4,        ///< as many failures in a row as allowed
  Hint = 5,               ///< a call asked for it: open_for, or a Retry-After
  ProbeFailed = 6,        ///< half-open: a probe too many failed
  ProbesSucceeded = 7,    ///< half-open: the probes say it is well
  WaitOver = 8,           ///< OPEN was over
  HalfOpenWaitOver = 9,   ///< half-open took longer than max-wait-duration-in-half-open-state
  ByHand = 10,            ///< an operator, or transition_to()
  Expired = 11,           ///< a state set by hand came to its end
  Reset = 12,
  Reloaded = 13,          ///< the rules of half-open changed while it was on
  LocalFault = 14,        ///< one sick process opened for itself
};
/// Stable word, e.g. "failure_rate".
std::string_view name_of(BreakerReason reason) noexcept;

/// Bits of BreakerNumbers::flags.
inline constexpr std::uint8_t kBreakerHanging = 1;          ///< count-hanging-calls
inline constexpr std::uint8_t kBreakerRetryAfter = 2;       ///< open-on-retry-after
inline constexpr std::uint8_t kBreakerAutomatic = 4;        ///< automatic-transition-...
inline constexpr std::uint8_t kBreakerSwitchedOff = 8;      ///< enabled: false

struct BreakerNumbers {
  // What recording an outcome and judging the window need: one line.
  std::uint32_t window_calls;        ///< COUNT: N
  std::uint32_t minimum;             ///< effective_minimum()
  std::uint32_t failure_ppm;         ///< kOffPpm = off
  std::uint32_t slow_ppm;            ///< kOffPpm = off
  std::uint64_t slow_ns;
  std::uint64_t slot_ns;             ///< TIME: width of a slot
  std::uint64_t span_slot_ns;        ///< COUNT with a min-span: width of a tenth of it; else 0
  std::uint32_t failure_count;       ///< 0 = off
  std::uint32_t slots;               ///< TIME: effective_slots()
  std::uint8_t window_type;          ///< WindowType
  std::uint8_t evaluate_on;          ///< EvaluateOn
  std::uint8_t consecutive;          ///< 0 = off
  std::uint8_t late_results;         ///< LateResults
  std::uint8_t ignored_results;      ///< IgnoredResults
  std::uint8_t open_edge;            ///< OpenEdge
  std::uint8_t min_processes;
  std::uint8_t flags;                ///< kBreaker...
  std::uint64_t name_hash;           ///< seeds the jitter
  // Waits and half-open: the second line.
  std::uint64_t open_wait_ns;
  std::uint64_t max_open_wait_ns;    ///< never 0
  std::uint64_t max_open_for_ns;
  std::uint64_t half_open_max_wait_ns;   ///< 0 = none
  std::uint64_t probe_timeout_ns;
  std::uint64_t ramp_ns;
  std::uint32_t backoff_ppm;         ///< kPpm when there is no back-off
  std::uint32_t randomized_ppm;      ///< 0 when waits are not drawn
  std::uint8_t probes;               ///< P
  std::uint8_t half_open_rule;       ///< HalfOpenRule
  std::uint8_t half_open_value;
  std::uint8_t after_half_open_wait; ///< AfterHalfOpenWait
  std::uint8_t on_probe_timeout;     ///< OnProbeTimeout
  std::uint8_t ramp;                 ///< Ramp
  std::uint8_t initial_state;        ///< BreakerState
  std::uint8_t pad;
  std::uint8_t ramp_percent[kMaxRampSteps];
};
static_assert(sizeof(BreakerNumbers) == 136 && std::is_standard_layout_v<BreakerNumbers> &&
              std::is_trivially_copyable_v<BreakerNumbers>);
static_assert(offsetof(BreakerNumbers, open_wait_ns) == 64);

/// What these settings come down to. `name`: of the instance (a pattern's instances differ by it).
BreakerNumbers numbers_of(const BreakerSettings& settings, std::string_view name) noexcept;
/// The same for every process and every build: FNV-1a.
std::uint64_t name_hash(std::string_view name) noexcept;

/// What a window shows: outcomes of this epoch, this one included.
struct BreakerWindow {
  std::uint64_t calls = 0;
  std::uint64_t failures = 0;
  std::uint64_t slow = 0;
  std::uint32_t run = 0;             ///< failures in a row at its end, of this epoch; may saturate
};

/// How one call ended, as the window counts it.
struct BreakerOutcome {
  bool failed = false;
  bool slow = false;
};

/// ratio of `part` in `all` at or above `ppm`; never when it is off. Exact.
constexpr bool reaches(std::uint64_t part, std::uint64_t all, std::uint32_t ppm) noexcept {
  return ppm != kOffPpm && part * kPpm >= std::uint64_t{ppm} * all;
}

/// What of the numbers opens a closed breaker.
struct OpenAt {
  std::uint32_t minimum = 0;
  std::uint32_t failure_ppm = kOffPpm;
  std::uint32_t slow_ppm = kOffPpm;
  std::uint32_t failure_count = 0;
  std::uint8_t consecutive = 0;
  std::uint8_t evaluate_on = 0;      ///< EvaluateOn
};
constexpr OpenAt open_at(const BreakerNumbers& n) noexcept {
  return {n.minimum, n.failure_ppm, n.slow_ppm, n.failure_count, n.consecutive, n.evaluate_on};
}

/// S7: the reason for which this window opens a closed breaker; None when it does not. `last`: the
/// outcome that was just appended (evaluate-on).
constexpr BreakerReason reason_to_open(const OpenAt& at, const BreakerWindow& window,
                                       BreakerOutcome last) noexcept {
  const bool bad = last.failed || last.slow;
  if (at.evaluate_on == static_cast<std::uint8_t>(EvaluateOn::Failure) && !bad) {
    return BreakerReason::None;
  }
  const bool enough = window.calls >= at.minimum;
  if (enough && reaches(window.failures, window.calls, at.failure_ppm)) {
    return BreakerReason::FailureRate;
  }
  if (enough && reaches(window.slow, window.calls, at.slow_ppm)) return BreakerReason::SlowRate;
  if (at.failure_count != 0 && window.failures >= at.failure_count) {
    return BreakerReason::FailureCount;
  }
  if (at.consecutive != 0 && window.run >= at.consecutive) return BreakerReason::Consecutive;
  return BreakerReason::None;
}
constexpr BreakerReason reason_to_open(const BreakerNumbers& numbers, const BreakerWindow& window,
                                       BreakerOutcome last) noexcept {
  return reason_to_open(open_at(numbers), window, last);
}

/// S8: ns that OPEN lasts at the `attempts`-th opening in a row (1..), when its epoch is `epoch`:
/// base * multiplier^(attempts-1), saturating at the maximum; with randomness drawn from
/// [w(1-j), min(w(1+j), max)] by a hash of name and epoch, so that a replay agrees. Never 0.
std::uint64_t open_wait(const BreakerNumbers& numbers, std::uint32_t attempts,
                        std::uint32_t epoch) noexcept;

/// True when a deadline has passed by the edge: inclusive at it, exclusive 1 ns later.
constexpr bool is_over(OpenEdge edge, std::int64_t deadline, std::int64_t now) noexcept {
  return edge == OpenEdge::Inclusive ? now >= deadline : now > deadline;
}
/// Exact wait until it is over for a caller at `now`; 0 when it is.
constexpr std::int64_t until_over(OpenEdge edge, std::int64_t deadline, std::int64_t now) noexcept {
  if (is_over(edge, deadline, now)) return 0;
  return deadline - now + (edge == OpenEdge::Exclusive ? 1 : 0);
}

/// Results of the probes of one half-open epoch.
struct ProbeResults {
  std::uint32_t spent = 0;
  std::uint32_t failed = 0;
  std::uint32_t slow = 0;
};
enum class HalfOpenVerdict : std::uint8_t { NotYet = 0, Close = 1, Open = 2 };
struct HalfOpenDecision {
  HalfOpenVerdict verdict = HalfOpenVerdict::NotYet;
  BreakerReason reason = BreakerReason::None;
};
/// S10. The order of the results does not matter to any rule.
HalfOpenDecision decide_half_open(const BreakerNumbers& numbers, ProbeResults results) noexcept;
/// True when the rule decides on some of the results present: then two readings must agree.
constexpr bool decides_on_some(const BreakerNumbers& numbers) noexcept {
  return numbers.half_open_rule == static_cast<std::uint8_t>(HalfOpenRule::RateOver) ||
         numbers.half_open_rule == static_cast<std::uint8_t>(HalfOpenRule::Successes);
}

/// S19: per cent of calls admitted `now`, of a ramp that ends at `deadline`.
std::uint32_t ramp_share(const BreakerNumbers& numbers, std::int64_t deadline,
                         std::int64_t now) noexcept;
/// S19: whether a process admits its `j`-th call of a ramp (1..) at this share.
constexpr bool ramp_admits(std::uint64_t j, std::uint32_t share) noexcept {
  return (j * share + 99) / 100 > ((j - 1) * share + 99) / 100;
}

/// L2: how many users a verdict must not rest on alone: m - 1 are left out.
std::uint32_t needed_users(const BreakerNumbers& numbers, std::uint32_t users) noexcept;

/// What a reader is shown: the state as the next caller will find it (C078).
struct EffectiveState {
  BreakerState state = BreakerState::Closed;
  bool ready = false;                ///< it is over: the next caller makes the step
};
EffectiveState effective_state(const BreakerNumbers& numbers, BreakerState state,
                               std::int64_t deadline, std::int64_t now) noexcept;

}  // namespace cutwater::rule
