// SPDX-License-Identifier: Apache-2.0
#include "rule/breaker_rule.hpp"

#include <algorithm>

namespace cutwater::rule {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr std::string_view kReasonWords[] = {
    "none",         "failure_rate",     "slow_rate",   "failure_count",      "consecutive",
    "hint",         "probe_failed",     "probes_succeeded", "wait_over",     "half_open_wait_over",
    "by_hand",      "expired",          "reset",       "reloaded",           "local_fault"};

/// Every bit of the result depends on every bit of `x` (the finaliser of splitmix64).
constexpr std::uint64_t mixed(std::uint64_t x) noexcept {
  x += 0x9e37'79b9'7f4a'7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58'476d'1ce4'e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d0'49bb'1331'11ebULL;
  return x ^ (x >> 31);
}

std::uint64_t part_of(std::uint64_t value, std::uint32_t ppm) noexcept {
  return static_cast<std::uint64_t>(Wide{value} * ppm / kPpm);
}

template <class Enum>
constexpr std::uint8_t byte(Enum value) noexcept {
  return static_cast<std::uint8_t>(value);
}

}  // namespace

std::string_view name_of(BreakerReason reason) noexcept {
  const auto number = static_cast<std::size_t>(reason);
  return number < std::size(kReasonWords) ? kReasonWords[number] : "unknown";
}

std::uint64_t name_hash(std::string_view name) noexcept {
  std::uint64_t hash = 0xcbf2'9ce4'8422'2325ULL;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100'0000'01b3ULL;
  return hash;
}

BreakerNumbers numbers_of(const BreakerSettings& s, std::string_view name) noexcept {
  BreakerNumbers n{};
  const bool time = s.window_type == WindowType::TimeBased;
  n.window_calls = time ? 0 : s.window_calls;
  n.minimum = effective_minimum(s);
  n.failure_ppm = s.failure_rate_ppm;
  n.slow_ppm = s.slow_rate_ppm;
  n.slow_ns = s.slow_duration_ns;
  n.slots = time ? effective_slots(s) : 0;
  n.slot_ns = time ? s.window_span_ns / n.slots : 0;
  n.span_slot_ns = time ? 0 : s.window_min_span_ns / kMinSpanSlots;
  n.failure_count = s.failure_count;
  n.window_type = byte(s.window_type);
  n.evaluate_on = byte(s.evaluate_on);
  n.consecutive = static_cast<std::uint8_t>(s.consecutive_failures);
  n.late_results = byte(s.late_results);
  n.ignored_results = byte(s.ignored_results);
  n.open_edge = byte(s.open_edge);
  n.min_processes = static_cast<std::uint8_t>(s.min_processes);
  n.flags = static_cast<std::uint8_t>(
      (s.count_hanging ? kBreakerHanging : 0) | (s.open_on_retry_after ? kBreakerRetryAfter : 0) |
      (s.automatic_half_open ? kBreakerAutomatic : 0) | (s.enabled ? 0 : kBreakerSwitchedOff));
  n.name_hash = name_hash(name);
  n.open_wait_ns = s.open_wait_ns;
  const bool capped = s.backoff && s.max_open_wait_ns != 0;
  n.max_open_wait_ns = capped ? s.max_open_wait_ns : kMaxOpenWaitNs;
  n.max_open_for_ns = s.max_open_for_ns;
  n.half_open_max_wait_ns = s.half_open_max_wait_ns;
  n.probe_timeout_ns = s.probe_timeout_ns;
  n.ramp_ns = s.ramp_ns;
  n.backoff_ppm = s.backoff ? s.backoff_ppm : kPpm;
  n.randomized_ppm = s.randomized ? s.randomized_ppm : 0;
  n.probes = static_cast<std::uint8_t>(s.probes);
  n.half_open_rule = byte(s.half_open_rule);
  n.half_open_value = static_cast<std::uint8_t>(s.half_open_value);
  n.after_half_open_wait = byte(s.after_half_open_wait);
  n.on_probe_timeout = byte(s.on_probe_timeout);
  n.ramp = byte(s.ramp);
  n.initial_state = byte(s.initial_state);
  std::copy(s.ramp_percent.begin(), s.ramp_percent.end(), n.ramp_percent);
  return n;
}

std::uint64_t open_wait(const BreakerNumbers& n, std::uint32_t attempts,
                        std::uint32_t epoch) noexcept {
  const std::uint64_t most = n.max_open_wait_ns;
  std::uint64_t wait = std::min(n.open_wait_ns, most);
  // At most 255 attempts are counted; a multiplier of 1 changes nothing however often.
  for (std::uint32_t i = 1; i < attempts && wait < most && n.backoff_ppm > kPpm; ++i) {
    const Wide next = Wide{wait} * n.backoff_ppm / kPpm;
    wait = next > most ? most : static_cast<std::uint64_t>(next);
  }
  if (n.randomized_ppm != 0) {
    const std::uint64_t spread = part_of(wait, n.randomized_ppm);
    const std::uint64_t low = wait - spread;
    const std::uint64_t high = std::min(wait + spread, most);
    const std::uint64_t drawn = mixed(n.name_hash ^ mixed(epoch));
    wait = low + static_cast<std::uint64_t>((Wide{drawn} * (high - low + 1)) >> 64);
  }
  return std::max<std::uint64_t>(wait, 1);
}

HalfOpenDecision decide_half_open(const BreakerNumbers& n, ProbeResults r) noexcept {
  const auto by_rate = [&]() -> HalfOpenDecision {
    if (reaches(r.failed, r.spent, n.failure_ppm)) {
      return {HalfOpenVerdict::Open, BreakerReason::FailureRate};
    }
    if (reaches(r.slow, r.spent, n.slow_ppm)) {
      return {HalfOpenVerdict::Open, BreakerReason::SlowRate};
    }
    return {HalfOpenVerdict::Close, BreakerReason::ProbesSucceeded};
  };
  switch (static_cast<HalfOpenRule>(n.half_open_rule)) {
    case HalfOpenRule::Rate:
      return r.spent >= n.probes ? by_rate() : HalfOpenDecision{};
    case HalfOpenRule::RateOver:
      return r.spent >= n.half_open_value ? by_rate() : HalfOpenDecision{};
    case HalfOpenRule::AllSucceed:
      if (r.failed > 0) return {HalfOpenVerdict::Open, BreakerReason::ProbeFailed};
      if (r.spent >= n.probes) return {HalfOpenVerdict::Close, BreakerReason::ProbesSucceeded};
      return {};
    case HalfOpenRule::Successes:
      if (r.failed + n.half_open_value > n.probes) {
        return {HalfOpenVerdict::Open, BreakerReason::ProbeFailed};
      }
      if (r.spent - r.failed >= n.half_open_value) {
        return {HalfOpenVerdict::Close, BreakerReason::ProbesSucceeded};
      }
      return {};
  }
  return {};
}

std::uint32_t ramp_share(const BreakerNumbers& n, std::int64_t deadline,
                         std::int64_t now) noexcept {
  std::uint32_t steps = 0;
  while (steps < kMaxRampSteps && n.ramp_percent[steps] != 0) ++steps;
  if (steps == 0 || now >= deadline) return 100;
  const auto left = static_cast<std::uint64_t>(deadline - now);
  const std::uint64_t gone = left >= n.ramp_ns ? 0 : n.ramp_ns - left;
  const auto part = static_cast<std::uint32_t>(Wide{gone} * steps / n.ramp_ns);
  return n.ramp_percent[std::min(part, steps - 1)];
}

std::uint32_t needed_users(const BreakerNumbers& n, std::uint32_t users) noexcept {
  if (n.min_processes == kMinProcessesOff) return 1;
  if (n.min_processes == kMinProcessesAuto) return users >= 3 ? 2 : 1;
  return std::max<std::uint32_t>(1, std::min<std::uint32_t>(n.min_processes, users));
}

EffectiveState effective_state(const BreakerNumbers& n, BreakerState state, std::int64_t deadline,
                               std::int64_t now) noexcept {
  switch (state) {
    case BreakerState::Open:
      return {state, is_over(static_cast<OpenEdge>(n.open_edge), deadline, now)};
    case BreakerState::Closed: return {state, false};
    default: return {state, deadline != 0 && now >= deadline};
  }
}

}  // namespace cutwater::rule
