// SPDX-License-Identifier: Apache-2.0
#include "rule/breaker_settings.hpp"

#include <algorithm>

#include "rule/limit_settings.hpp"

namespace cutwater::rule {
namespace {

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kSecond = 1'000 * kMs;

Error wrong(const BreakerSettings& settings, const std::string& what) {
  return Error(Errc::InvalidArgument, "breaker '" + settings.name + "': " + what);
}

struct Range {
  std::string_view field;
  std::uint64_t value;
  std::uint64_t low;
  std::uint64_t high;
  bool off = false;   ///< this field is off and its value not looked at
};

Result<void> check_ranges(const BreakerSettings& s, std::span<const Range> ranges) {
  for (const Range& range : ranges) {
    if (range.off || (range.value >= range.low && range.value <= range.high)) continue;
    return wrong(s, std::string(range.field) + " is " + std::to_string(range.value) +
                        "; it must be " + std::to_string(range.low) + ".." +
                        std::to_string(range.high));
  }
  return {};
}

Result<void> check_window(const BreakerSettings& s) {
  const bool count = s.window_type == WindowType::CountBased;
  const Range ranges[] = {
      {"window_type", static_cast<std::uint64_t>(s.window_type), 0, 1},
      {"window_calls", s.window_calls, 1, kMaxCountWindow, !count},
      {"window_span_ns", s.window_span_ns, kMinTimeWindowNs, kMaxTimeWindowNs, count},
      {"window_slots", s.window_slots, 1, kMaxSlots, count},
      {"window_min_span_ns", s.window_min_span_ns, kMinTimeWindowNs, kMaxTimeWindowNs,
       s.window_min_span_ns == 0},
      {"minimum_calls", s.minimum_calls, 1, kMaxMinimumCalls},
      {"failure_rate_ppm", s.failure_rate_ppm, 0, kPpm, s.failure_rate_ppm == kOffPpm},
      {"slow_rate_ppm", s.slow_rate_ppm, 0, kPpm, s.slow_rate_ppm == kOffPpm},
      {"slow_duration_ns", s.slow_duration_ns, 1, kMaxSlowNs},
      {"failure_count", s.failure_count, 0, kMaxFailureCount},
      {"consecutive_failures", s.consecutive_failures, 0, kMaxConsecutive},
      {"evaluate_on", static_cast<std::uint64_t>(s.evaluate_on), 0, 1},
  };
  return check_ranges(s, ranges);
}

Result<void> check_times(const BreakerSettings& s) {
  const Range ranges[] = {
      {"open_wait_ns", s.open_wait_ns, kMinOpenWaitNs, kMaxOpenWaitNs},
      {"backoff_ppm", s.backoff_ppm, kPpm, kMaxBackoffPpm},
      {"max_open_wait_ns", s.max_open_wait_ns, kMinOpenWaitNs, kMaxOpenWaitNs,
       s.max_open_wait_ns == 0},
      {"randomized_ppm", s.randomized_ppm, 0, kPpm},
      {"open_edge", static_cast<std::uint64_t>(s.open_edge), 0, 1},
      {"max_open_for_ns", s.max_open_for_ns, kMinOpenWaitNs, kMaxOpenWaitNs},
      {"probes", s.probes, 1, kMaxProbes},
      {"half_open_rule", static_cast<std::uint64_t>(s.half_open_rule), 0, 3},
      {"half_open_max_wait_ns", s.half_open_max_wait_ns, kMinOpenWaitNs, kMaxOpenWaitNs,
       s.half_open_max_wait_ns == 0},
      {"after_half_open_wait", static_cast<std::uint64_t>(s.after_half_open_wait), 0, 1},
      {"probe_timeout_ns", s.probe_timeout_ns, kMinOpenWaitNs, kMaxProbeTimeoutNs},
      {"on_probe_timeout", static_cast<std::uint64_t>(s.on_probe_timeout), 0, 1},
      {"ignored_results", static_cast<std::uint64_t>(s.ignored_results), 0, 1},
      {"late_results", static_cast<std::uint64_t>(s.late_results), 0, 1},
      {"number of classes in record and ignore", s.record.size() + s.ignore.size(), 0,
       kMaxClasses},
      {"min_processes", s.min_processes, 0, kMaxMinProcesses},
      {"ramp", static_cast<std::uint64_t>(s.ramp), 0, 2},
      {"ramp_ns", s.ramp_ns, kMs, kMaxRampNs, s.ramp == Ramp::Off},
      {"initial_state", static_cast<std::uint64_t>(s.initial_state), 0, kBreakerStates - 1},
      {"max_instances", s.max_instances, 1, kMaxInstances},
      {"idle_ns", s.idle_ns, 0, kMaxIdleNs},
      {"length of note", s.note.size(), 0, kMaxNoteLength},
  };
  return check_ranges(s, ranges);
}

/// Percentages rise to their last one, and only zeroes follow.
bool rising(const std::array<std::uint8_t, kMaxRampSteps>& steps) {
  std::size_t used = 0;
  while (used < steps.size() && steps[used] != 0) ++used;
  if (used == 0 || steps[used - 1] > 100) return false;
  for (std::size_t i = 1; i < used; ++i)
    if (steps[i] < steps[i - 1]) return false;
  return std::all_of(steps.begin() + static_cast<std::ptrdiff_t>(used), steps.end(),
                     [](std::uint8_t step) { return step == 0; });
}

Result<void> check_together(const BreakerSettings& s) {
  const bool rate = s.half_open_rule == HalfOpenRule::Rate ||
                    s.half_open_rule == HalfOpenRule::RateOver;
  if (rate && s.failure_rate_ppm == kOffPpm && s.slow_rate_ppm == kOffPpm) {
    return wrong(s, "half-open-decision 'rate' needs a rate threshold, and both are off; set "
                    "failure-rate-threshold or write all-succeed");
  }
  const bool counted = s.half_open_rule == HalfOpenRule::RateOver ||
                       s.half_open_rule == HalfOpenRule::Successes;
  if (counted && (s.half_open_value == 0 || s.half_open_value > s.probes)) {
    return wrong(s, "half-open-decision asks for " + std::to_string(s.half_open_value) + " of " +
                        std::to_string(s.probes) +
                        " probes; the number must be 1.."
                        "permitted-number-of-calls-in-half-open-state");
  }
  if (!counted && s.half_open_value != 0) {
    return wrong(s, "half_open_value is " + std::to_string(s.half_open_value) +
                        ", but this half-open-decision has no number; it must be 0");
  }
  if (s.count_hanging && s.slow_rate_ppm == kOffPpm) {
    return wrong(s, "count-hanging-calls counts calls beyond slow-call-duration-threshold as slow, "
                    "and slow-call-rate-threshold is off; set one or leave it out");
  }
  if (s.window_min_span_ns != 0 && s.window_type == WindowType::TimeBased) {
    return wrong(s, "sliding-window-min-span widens a COUNT_BASED window, and this one is "
                    "TIME_BASED; leave it out");
  }
  if (s.ramp != Ramp::Off && !rising(s.ramp_percent)) {
    return wrong(s, "the steps of ramp-after-close must be 1..100 percent, each at least the one "
                    "before it, at most 8");
  }
  if (s.failure_rate_ppm == kOffPpm && s.slow_rate_ppm == kOffPpm && s.failure_count == 0 &&
      s.consecutive_failures == 0) {
    return wrong(s, "nothing can open it: every threshold is off; set one, or write initial-state: "
                    "METRICS_ONLY to measure only");
  }
  return {};
}

BreakerSettings resilience4j() {
  BreakerSettings s;
  s.window_type = WindowType::CountBased;
  s.minimum_calls = 100;
  s.slow_rate_ppm = kPpm;
  s.consecutive_failures = 0;
  s.open_wait_ns = 60 * kSecond;
  s.backoff = false;
  s.backoff_ppm = 1'500'000;
  s.max_open_wait_ns = 0;
  s.randomized = false;
  s.randomized_ppm = 500'000;
  s.open_edge = OpenEdge::Exclusive;
  s.probes = 10;
  s.ramp = Ramp::Off;
  return s;
}

/// What the presets of one deciding probe have in common.
BreakerSettings one_probe() {
  BreakerSettings s = resilience4j();
  s.slow_rate_ppm = kOffPpm;
  s.probes = 1;
  s.half_open_rule = HalfOpenRule::AllSucceed;
  return s;
}

BreakerSettings one_probe_over(std::uint64_t span_ns, std::uint32_t slots, std::uint32_t minimum) {
  BreakerSettings s = one_probe();
  s.window_type = WindowType::TimeBased;
  s.window_span_ns = span_ns;
  s.window_slots = slots;
  s.minimum_calls = minimum;
  s.open_wait_ns = 5 * kSecond;
  return s;
}

constexpr std::string_view kSemianKeys[] = {"error-threshold", "error-threshold-timeout",
                                            "error-timeout", "success-threshold"};
constexpr std::string_view kSentinelKeys[] = {"failure-rate-threshold", "time-window"};
constexpr std::string_view kPresetWords[] = {
    "cutwater", "resilience4j", "microprofile", "polly", "gobreaker", "hystrix", "semian",
    "sentinel"};
constexpr std::string_view kStateWords[] = {"CLOSED",      "OPEN",     "HALF_OPEN",
                                            "FORCED_OPEN", "DISABLED", "METRICS_ONLY"};

}  // namespace

BreakerSettings preset(BreakerPreset which) {
  switch (which) {
    case BreakerPreset::Cutwater: return {};
    case BreakerPreset::Resilience4j: return resilience4j();
    case BreakerPreset::Microprofile: {
      BreakerSettings s = one_probe();
      s.window_calls = s.minimum_calls = 20;
      s.open_wait_ns = 5 * kSecond;
      s.open_edge = OpenEdge::Inclusive;
      s.ignored_results = IgnoredResults::Success;
      return s;
    }
    case BreakerPreset::Polly: {
      BreakerSettings s = one_probe_over(30 * kSecond, 10, 100);
      s.failure_rate_ppm = 100'000;
      s.evaluate_on = EvaluateOn::Failure;
      s.open_edge = OpenEdge::Inclusive;
      return s;
    }
    case BreakerPreset::Gobreaker: {
      BreakerSettings s = one_probe();
      s.failure_rate_ppm = kOffPpm;
      s.consecutive_failures = 6;
      return s;
    }
    case BreakerPreset::Hystrix: return one_probe_over(10 * kSecond, 10, 20);
    case BreakerPreset::Semian: {
      BreakerSettings s = one_probe_over(0, 10, 100);
      s.failure_rate_ppm = kOffPpm;
      s.open_wait_ns = 0;
      s.probes = 0;
      s.evaluate_on = EvaluateOn::Failure;
      s.open_edge = OpenEdge::Inclusive;
      return s;
    }
    case BreakerPreset::Sentinel: {
      BreakerSettings s = one_probe_over(kSecond, 1, 5);
      s.failure_rate_ppm = kOffPpm;
      s.open_wait_ns = 0;
      s.open_edge = OpenEdge::Inclusive;
      return s;
    }
  }
  return {};
}

std::span<const std::string_view> required_keys(BreakerPreset which) noexcept {
  if (which == BreakerPreset::Semian) return kSemianKeys;
  if (which == BreakerPreset::Sentinel) return kSentinelKeys;
  return {};
}

bool preset_named(std::string_view word, BreakerPreset& out) noexcept {
  const auto* found = std::find(std::begin(kPresetWords), std::end(kPresetWords), word);
  if (found == std::end(kPresetWords)) return false;
  out = static_cast<BreakerPreset>(found - std::begin(kPresetWords));
  return true;
}

std::string_view name_of(BreakerPreset which) noexcept {
  const auto number = static_cast<std::size_t>(which);
  return number < std::size(kPresetWords) ? kPresetWords[number] : "unknown";
}

std::uint32_t default_slots(BreakerPreset which, std::uint64_t span_ns) noexcept {
  if (which == BreakerPreset::Sentinel) return 1;
  if (which != BreakerPreset::Resilience4j) return 10;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(span_ns / kSecond, 1, kMaxSlots));
}

std::uint32_t sentinel_rate_ppm(std::uint32_t ppm) noexcept {
  return ppm == kOffPpm ? kOffPpm : std::min(ppm + 1, kPpm);
}

std::uint32_t effective_slots(const BreakerSettings& s) noexcept {
  const std::uint64_t most = std::max<std::uint64_t>(s.window_span_ns / kMinSlotNs, 1);
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(s.window_slots, 1, std::min<std::uint64_t>(most, kMaxSlots)));
}

std::uint32_t effective_minimum(const BreakerSettings& s) noexcept {
  return s.window_type == WindowType::CountBased ? std::min(s.minimum_calls, s.window_calls)
                                                 : s.minimum_calls;
}

bool is_pattern_name(std::string_view text) noexcept {
  const std::size_t star = text.find('*');
  if (star == std::string_view::npos || text.size() < 2 || text.size() > kMaxNameLength) {
    return false;
  }
  std::string plain(text);
  plain[star] = 'x';
  return is_name(plain);
}

bool is_pattern(const BreakerSettings& s) noexcept {
  return s.name.find('*') != std::string::npos;
}

std::string_view name_of(BreakerState state) noexcept {
  const auto number = static_cast<std::size_t>(state);
  return number < std::size(kStateWords) ? kStateWords[number] : "UNKNOWN";
}

bool state_named(std::string_view word, BreakerState& out) noexcept {
  const auto same = [](char a, char b) {
    if (b == '-') b = '_';
    if (b >= 'a' && b <= 'z') b = static_cast<char>(b - 'a' + 'A');
    return a == b;
  };
  for (std::size_t i = 0; i < std::size(kStateWords); ++i) {
    if (!std::equal(kStateWords[i].begin(), kStateWords[i].end(), word.begin(), word.end(), same))
      continue;
    out = static_cast<BreakerState>(i);
    return true;
  }
  return false;
}

Result<void> check(const BreakerSettings& s) {
  if (!is_name(s.name) && !is_pattern_name(s.name)) {
    return Error(Errc::InvalidArgument,
                 "a breaker is named '" + s.name.substr(0, kMaxNameLength) +
                     "'; begin with a letter or digit, go on with letters, digits and . _ : -, "
                     "63 characters at most; one * makes it a pattern");
  }
  if (auto fine = check_window(s); !fine) return fine;
  if (auto fine = check_times(s); !fine) return fine;
  return check_together(s);
}

std::string remark(const BreakerSettings& s) {
  if (s.failure_rate_ppm == 0) {
    return "failure-rate-threshold 0 opens it as soon as minimum-number-of-calls is reached, also "
           "when nothing failed";
  }
  if (s.slow_rate_ppm == 0) {
    return "slow-call-rate-threshold 0 opens it as soon as minimum-number-of-calls is reached, "
           "also when nothing was slow";
  }
  return {};
}

}  // namespace cutwater::rule
