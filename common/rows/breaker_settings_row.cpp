// SPDX-License-Identifier: Apache-2.0
#include "rows/breaker_settings_row.hpp"

#include <string>

#include "config/duration.hpp"
#include "rule/breaker_text.hpp"

namespace cutwater::rows {
namespace {

using rule::BreakerNumbers;
using wire::Value;

/// An enumerator stored as a byte.
template <class Word>
bool is(std::uint8_t stored, Word word) {
  return stored == static_cast<std::uint8_t>(word);
}

Value span(std::uint64_t ns) { return config::format_duration(ns); }
Value off_or(std::uint64_t number) { return number == 0 ? Value("off") : Value(number); }
Value off_or_span(std::uint64_t ns) { return ns == 0 ? Value("off") : span(ns); }
Value ratio(std::uint32_t ppm) {
  if (ppm == rule::kOffPpm) return "off";
  std::string text = rule::percent_text(ppm);
  text.erase(text.find(' '), 1);
  return text;
}
/// 2, 1.5: a multiplier or a factor.
Value factor(std::uint32_t ppm) {
  std::string text = rule::percent_text(ppm / 100);
  text.resize(text.size() - 2);
  return text;
}

void window(const BreakerNumbers& n, Value& row) {
  const bool time = is(n.window_type, rule::WindowType::TimeBased);
  row.set("sliding-window-type", time ? "TIME_BASED" : "COUNT_BASED");
  row.set("sliding-window-size", time ? span(n.slot_ns * n.slots) : Value(n.window_calls));
  if (time) row.set("sliding-window-slots", n.slots);
  if (!time) {
    row.set("sliding-window-min-span", off_or_span(n.span_slot_ns * rule::kMinSpanSlots));
  }
  row.set("minimum-number-of-calls", n.minimum);
}

void thresholds(const BreakerNumbers& n, Value& row) {
  row.set("failure-rate-threshold", ratio(n.failure_ppm));
  row.set("slow-call-rate-threshold", ratio(n.slow_ppm));
  row.set("slow-call-duration-threshold", span(n.slow_ns));
  row.set("failure-count-threshold", off_or(n.failure_count));
  row.set("consecutive-failures", off_or(n.consecutive));
  row.set("evaluate-on", is(n.evaluate_on, rule::EvaluateOn::Failure) ? "failure" : "any-result");
}

void waits(const BreakerNumbers& n, Value& row) {
  row.set("wait-duration-in-open-state", span(n.open_wait_ns));
  const bool grows = n.backoff_ppm != rule::kPpm;
  row.set("enable-exponential-backoff", grows);
  if (grows) {
    row.set("exponential-backoff-multiplier", factor(n.backoff_ppm));
    row.set("exponential-max-wait-duration-in-open-state", span(n.max_open_wait_ns));
  }
  row.set("enable-randomized-wait", n.randomized_ppm != 0);
  if (n.randomized_ppm != 0) row.set("randomized-wait-factor", factor(n.randomized_ppm));
  row.set("open-edge", is(n.open_edge, rule::OpenEdge::Exclusive) ? "exclusive" : "inclusive");
  row.set("open-on-retry-after", (n.flags & rule::kBreakerRetryAfter) != 0);
  row.set("max-open-for", span(n.max_open_for_ns));
}

Value decision(const BreakerNumbers& n) {
  const std::string value = std::to_string(n.half_open_value);
  switch (static_cast<rule::HalfOpenRule>(n.half_open_rule)) {
    case rule::HalfOpenRule::RateOver:
      return "{rate-over: " + value + "}";
    case rule::HalfOpenRule::AllSucceed:
      return "all-succeed";
    case rule::HalfOpenRule::Successes:
      return "{successes: " + value + "}";
    default:
      return "rate";
  }
}

void half_open(const BreakerNumbers& n, Value& row) {
  row.set("permitted-number-of-calls-in-half-open-state", n.probes);
  row.set("half-open-decision", decision(n));
  row.set("max-wait-duration-in-half-open-state", span(n.half_open_max_wait_ns));
  const bool closes = is(n.after_half_open_wait, rule::AfterHalfOpenWait::Closed);
  row.set("transition-to-state-after-wait-duration", closes ? "CLOSED" : "OPEN");
  row.set("automatic-transition-from-open-to-half-open-enabled",
          (n.flags & rule::kBreakerAutomatic) != 0);
  row.set("probe-timeout", span(n.probe_timeout_ns));
  row.set("on-probe-timeout",
          is(n.on_probe_timeout, rule::OnProbeTimeout::Release) ? "release" : "failure");
}

Value ramp(const BreakerNumbers& n) {
  if (is(n.ramp, rule::Ramp::Off)) return "off";
  if (is(n.ramp, rule::Ramp::Auto)) return "auto";
  std::string steps;
  for (const std::uint8_t percent : n.ramp_percent) {
    if (percent == 0) break;
    steps += (steps.empty() ? "" : ", ") + std::to_string(percent);
  }
  return "{steps: [" + steps + "], over: " + config::format_duration(n.ramp_ns) + "}";
}

}  // namespace

Value settings_row(const BreakerNumbers& n) {
  Value row(Value::Map{});
  window(n, row);
  thresholds(n, row);
  waits(n, row);
  half_open(n, row);
  row.set("ignored-results",
          is(n.ignored_results, rule::IgnoredResults::Success) ? "success" : "return-permit");
  row.set("late-results",
          is(n.late_results, rule::LateResults::ShowInOpen) ? "show-in-open" : "drop");
  row.set("count-hanging-calls", (n.flags & rule::kBreakerHanging) != 0);
  row.set("min-processes", n.min_processes == rule::kMinProcessesAuto  ? Value("auto")
                           : n.min_processes == rule::kMinProcessesOff ? Value("off")
                                                                       : Value(n.min_processes));
  row.set("ramp-after-close", ramp(n));
  rule::BreakerState initial = static_cast<rule::BreakerState>(n.initial_state);
  row.set("initial-state", rule::name_of(initial));
  row.set("enabled", (n.flags & rule::kBreakerSwitchedOff) == 0);
  return row;
}

}  // namespace cutwater::rows
