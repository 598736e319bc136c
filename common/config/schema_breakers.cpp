// SPDX-License-Identifier: Apache-2.0
// The rows of a breaker. None has a default of its own: what is not written comes from the preset,
// which rule/breaker_settings.hpp knows. So each row also reads its value back, for `show`.
#include "config/decimal.hpp"
#include "config/duration.hpp"
#include "config/schema_table.hpp"
#include "config/words.hpp"

namespace cutwater::config {
namespace {

using B = rule::BreakerSettings;
using T = const Target&;
using V = const Parsed&;

/// The field of a row that is one number.
template <auto Field>
void put(T t, V v) {
  auto& field = t.breaker->*Field;
  field = static_cast<std::remove_reference_t<decltype(field)>>(v.number);
}

template <auto Field>
std::uint64_t get(T t) {
  return static_cast<std::uint64_t>(t.breaker->*Field);
}

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kOneMs = rule::kMinOpenWaitNs;
constexpr std::uint64_t kLongest = rule::kMaxOpenWaitNs;

void store_window_size(T t, V v) {
  if (v.period_ns != 0) t.breaker->window_span_ns = v.period_ns;
  if (v.number != 0) t.breaker->window_calls = narrow<std::uint32_t>(v);
}

std::string print_window_size(T t) {
  const bool count = t.breaker->window_type == rule::WindowType::CountBased;
  return count ? std::to_string(t.breaker->window_calls)
               : format_duration(t.breaker->window_span_ns);
}

void store_decision(T t, V v) {
  t.breaker->half_open_rule = static_cast<rule::HalfOpenRule>(v.number);
  t.breaker->half_open_value = static_cast<std::uint32_t>(v.period_ns);
}

std::string print_decision(T t) {
  const std::string value = std::to_string(t.breaker->half_open_value);
  switch (t.breaker->half_open_rule) {
    case rule::HalfOpenRule::Rate: return "rate";
    case rule::HalfOpenRule::RateOver: return "{ rate-over: " + value + " }";
    case rule::HalfOpenRule::AllSucceed: return "all-succeed";
    case rule::HalfOpenRule::Successes: return "{ successes: " + value + " }";
  }
  return {};
}

void store_ramp(T t, V v) {
  t.breaker->ramp = static_cast<rule::Ramp>(v.number);
  if (t.breaker->ramp != rule::Ramp::On) return;
  t.breaker->ramp_percent.fill(0);
  for (std::size_t i = 0; i < v.ids.size() && i < rule::kMaxRampSteps; ++i) {
    t.breaker->ramp_percent[i] = static_cast<std::uint8_t>(v.ids[i]);
  }
  t.breaker->ramp_ns = v.period_ns;
}

std::string print_ramp(T t) {
  if (t.breaker->ramp == rule::Ramp::Off) return "off";
  if (t.breaker->ramp == rule::Ramp::Auto) return "auto";
  std::string steps;
  for (const std::uint8_t step : t.breaker->ramp_percent) {
    if (step != 0) steps += (steps.empty() ? "" : ", ") + std::to_string(step);
  }
  return "{ steps: [" + steps + "], over: " + format_duration(t.breaker->ramp_ns) + " }";
}

std::string print_classes(const std::vector<std::string>& classes) {
  std::string out;
  for (const std::string& one : classes) out += (out.empty() ? "" : ", ") + one;
  return "[" + out + "]";
}

void store_record(T t, V v) {
  t.breaker->record = v.words;
  t.breaker->record_given = true;
}

void store_ignore(T t, V v) { t.breaker->ignore = v.words; }

/// MicroProfile's one number is window and minimum.
void store_volume(T t, V v) {
  t.breaker->window_type = rule::WindowType::CountBased;
  t.breaker->window_calls = t.breaker->minimum_calls = narrow<std::uint32_t>(v);
}

void store_nothing(T, V) {}   // preset, base-config, abstract: the reader's own business

constexpr std::string_view kPresets = "cutwater resilience4j microprofile polly gobreaker hystrix "
                                      "semian sentinel";
constexpr std::string_view kStates = "CLOSED OPEN HALF_OPEN FORCED_OPEN DISABLED METRICS_ONLY";

// clang-format off
const Key kRows[] = {
  {.block = kBreakerBlock, .name = "preset", .kind = Kind::Choice, .words = kPresets,
   .help = "Where everything comes from that is not written. Default: cutwater for a block that "
           "says nothing of its window, resilience4j for one that does.", .store = store_nothing},
  {.block = kBreakerBlock, .name = "base-config", .kind = Kind::Text, .max = rule::kMaxNameLength,
   .help = "A block of this section whose settings come first; at most 8 behind each other.",
   .store = store_nothing},
  {.block = kBreakerBlock, .name = "abstract", .kind = Kind::Bool,
   .help = "true: only a base for others, no breaker.", .store = store_nothing},
  {.block = kBreakerBlock, .name = "sliding-window-type", .kind = Kind::Choice,
   .words = "COUNT_BASED TIME_BASED",
   .help = "The last calls, or those of the last time. Calls of all processes of the host.",
   .store = put<&B::window_type>, .load = get<&B::window_type>},
  {.block = kBreakerBlock, .name = "sliding-window-size", .kind = Kind::WindowSize,
   .min = rule::kMinTimeWindowNs, .max = rule::kMaxTimeWindowNs,
   .help = "Calls of a COUNT_BASED window, time of a TIME_BASED one (a bare number: seconds).",
   .store = store_window_size, .print = print_window_size},
  {.block = kBreakerBlock, .name = "sliding-window-slots", .kind = Kind::Count, .min = 1,
   .max = rule::kMaxSlots,
   .help = "Parts of a TIME_BASED window; fewer when one would be under 100 ms.",
   .store = put<&B::window_slots>, .load = get<&B::window_slots>},
  {.block = kBreakerBlock, .name = "sliding-window-min-span", .kind = Kind::OffDuration,
   .min = rule::kMinTimeWindowNs, .max = rule::kMaxTimeWindowNs, .words = "off",
   .help = "A COUNT_BASED window then also holds every call of this last time.",
   .store = put<&B::window_min_span_ns>, .load = get<&B::window_min_span_ns>},
  {.block = kBreakerBlock, .name = "minimum-number-of-calls", .kind = Kind::Count, .min = 1,
   .max = rule::kMaxMinimumCalls,
   .help = "Below it no rate decides; at most the size of a COUNT_BASED window.",
   .store = put<&B::minimum_calls>, .load = get<&B::minimum_calls>},
  {.block = kBreakerBlock, .name = "failure-rate-threshold", .kind = Kind::Percent, .words = "off",
   .help = "Share of failed calls at which it opens.",
   .store = put<&B::failure_rate_ppm>, .load = get<&B::failure_rate_ppm>},
  {.block = kBreakerBlock, .name = "slow-call-rate-threshold", .kind = Kind::Percent,
   .words = "off", .help = "Share of slow calls at which it opens. Only with it is the time of "
                          "every call taken; `off`: of those that callers give.",
   .store = put<&B::slow_rate_ppm>, .load = get<&B::slow_rate_ppm>},
  {.block = kBreakerBlock, .name = "slow-call-duration-threshold", .kind = Kind::Duration,
   .min = 1, .max = rule::kMaxSlowNs, .help = "A call that takes longer is slow.",
   .store = put<&B::slow_duration_ns>, .load = get<&B::slow_duration_ns>},
  {.block = kBreakerBlock, .name = "failure-count-threshold", .kind = Kind::Lease, .min = 1,
   .max = rule::kMaxFailureCount, .words = "off",
   .help = "Failures in the window at which it opens, without a minimum.",
   .store = put<&B::failure_count>, .load = get<&B::failure_count>},
  {.block = kBreakerBlock, .name = "consecutive-failures", .kind = Kind::Lease, .min = 1,
   .max = rule::kMaxConsecutive, .words = "off",
   .help = "Failures in a row at which it opens, without a minimum.",
   .store = put<&B::consecutive_failures>, .load = get<&B::consecutive_failures>},
  {.block = kBreakerBlock, .name = "evaluate-on", .kind = Kind::Choice,
   .words = "any-result failure", .help = "failure: only a failed or a slow call may open it.",
   .store = put<&B::evaluate_on>, .load = get<&B::evaluate_on>},
  {.block = kBreakerBlock, .name = "wait-duration-in-open-state", .kind = Kind::Duration,
   .min = kOneMs, .max = kLongest, .help = "How long it stays open at first.",
   .store = put<&B::open_wait_ns>, .load = get<&B::open_wait_ns>},
  {.block = kBreakerBlock, .name = "enable-exponential-backoff", .kind = Kind::Bool,
   .help = "Longer from opening to opening, until it has closed.",
   .store = put<&B::backoff>, .load = get<&B::backoff>},
  {.block = kBreakerBlock, .name = "exponential-backoff-multiplier", .kind = Kind::Decimal,
   .min = rule::kPpm, .max = rule::kMaxBackoffPpm, .help = "Longer by this factor.",
   .store = put<&B::backoff_ppm>, .load = get<&B::backoff_ppm>},
  {.block = kBreakerBlock, .name = "exponential-max-wait-duration-in-open-state",
   .kind = Kind::OffDuration, .min = kOneMs, .max = kLongest, .words = "none off",
   .help = "But never longer than this.",
   .store = put<&B::max_open_wait_ns>, .load = get<&B::max_open_wait_ns>},
  {.block = kBreakerBlock, .name = "enable-randomized-wait", .kind = Kind::Bool,
   .help = "Draw the wait around its length, so that not all hosts come back at once.",
   .store = put<&B::randomized>, .load = get<&B::randomized>},
  {.block = kBreakerBlock, .name = "randomized-wait-factor", .kind = Kind::Decimal,
   .max = rule::kPpm, .help = "From wait * (1 - factor) to wait * (1 + factor).",
   .store = put<&B::randomized_ppm>, .load = get<&B::randomized_ppm>},
  {.block = kBreakerBlock, .name = "open-edge", .kind = Kind::Choice,
   .words = "inclusive exclusive", .help = "It ends at its time, or just after it.",
   .store = put<&B::open_edge>, .load = get<&B::open_edge>},
  {.block = kBreakerBlock, .name = "permitted-number-of-calls-in-half-open-state",
   .kind = Kind::Count, .min = 1, .max = rule::kMaxProbes,
   .help = "Calls that try the dependency after the wait, over all processes.",
   .store = put<&B::probes>, .load = get<&B::probes>},
  {.block = kBreakerBlock, .name = "half-open-decision", .kind = Kind::Decision,
   .help = "What their outcomes decide: the rates over all of them, over the first M, all must "
           "succeed, or k must.", .store = store_decision, .print = print_decision},
  {.block = kBreakerBlock, .name = "max-wait-duration-in-half-open-state",
   .kind = Kind::OffDuration, .min = kOneMs, .max = kLongest, .words = "0 off none",
   .help = "Longest time half-open; 0: until they have decided.",
   .store = put<&B::half_open_max_wait_ns>, .load = get<&B::half_open_max_wait_ns>},
  {.block = kBreakerBlock, .name = "transition-to-state-after-wait-duration",
   .kind = Kind::Choice, .words = "OPEN CLOSED", .help = "And what it becomes then.",
   .store = put<&B::after_half_open_wait>, .load = get<&B::after_half_open_wait>},
  {.block = kBreakerBlock, .name = "automatic-transition-from-open-to-half-open-enabled",
   .kind = Kind::Bool, .help = "Also without a call that asks.",
   .store = put<&B::automatic_half_open>, .load = get<&B::automatic_half_open>},
  {.block = kBreakerBlock, .name = "probe-timeout", .kind = Kind::Duration, .min = kOneMs,
   .max = rule::kMaxProbeTimeoutNs, .help = "Time for such a call, unless it has a deadline.",
   .store = put<&B::probe_timeout_ns>, .load = get<&B::probe_timeout_ns>},
  {.block = kBreakerBlock, .name = "on-probe-timeout", .kind = Kind::Choice,
   .words = "failure release", .help = "What it counts as then.",
   .store = put<&B::on_probe_timeout>, .load = get<&B::on_probe_timeout>},
  {.block = kBreakerBlock, .name = "ignored-results", .kind = Kind::Choice,
   .words = "return-permit success", .help = "What an ignored outcome is.",
   .store = put<&B::ignored_results>, .load = get<&B::ignored_results>},
  {.block = kBreakerBlock, .name = "late-results", .kind = Kind::Choice,
   .words = "drop show-in-open", .help = "What an outcome is that comes after a change of state.",
   .store = put<&B::late_results>, .load = get<&B::late_results>},
  {.block = kBreakerBlock, .name = "count-hanging-calls", .kind = Kind::Bool,
   .help = "Calls that are out for longer than slow calls may be count before they return.",
   .store = put<&B::count_hanging>, .load = get<&B::count_hanging>},
  {.block = kBreakerBlock, .name = "record", .kind = Kind::Classes, .max = rule::kMaxClasses,
   .help = "Classes of outcomes that are failures: timeout, connect, reset, dns, tls, http-503, "
           "http-5xx, grpc:CODE, errno:NAME, own ones. Then all others are successes.",
   .store = store_record, .print = [](T t) { return print_classes(t.breaker->record); }},
  {.block = kBreakerBlock, .name = "ignore", .kind = Kind::Classes, .max = rule::kMaxClasses,
   .help = "Classes that say nothing of the dependency; of two equally exact names this one wins.",
   .store = store_ignore, .print = [](T t) { return print_classes(t.breaker->ignore); }},
  {.block = kBreakerBlock, .name = "record-exceptions", .kind = Kind::Classes,
   .max = rule::kMaxClasses, .help = "Resilience4j's word for record.", .store = store_record,
   .same_as = "record"},
  {.block = kBreakerBlock, .name = "ignore-exceptions", .kind = Kind::Classes,
   .max = rule::kMaxClasses, .help = "Resilience4j's word for ignore.", .store = store_ignore,
   .same_as = "ignore"},
  {.block = kBreakerBlock, .name = "min-processes", .kind = Kind::Lease, .min = 2,
   .max = rule::kMaxMinProcesses, .words = "auto off",
   .help = "So many processes must fail before the host opens; one alone opens for itself. Holds "
           "while three or more use it. auto: 2.",
   .store = put<&B::min_processes>, .load = get<&B::min_processes>},
  {.block = kBreakerBlock, .name = "ramp-after-close", .kind = Kind::Ramp,
   .help = "After half-open, let more and more calls through. auto: when three or more processes "
           "use it.", .store = store_ramp, .print = print_ramp},
  {.block = kBreakerBlock, .name = "open-on-retry-after", .kind = Kind::Bool,
   .help = "A failure that carries a Retry-After opens it for so long.",
   .store = put<&B::open_on_retry_after>, .load = get<&B::open_on_retry_after>},
  {.block = kBreakerBlock, .name = "max-open-for", .kind = Kind::Duration, .min = kOneMs,
   .max = kLongest, .help = "But never longer than this.",
   .store = put<&B::max_open_for_ns>, .load = get<&B::max_open_for_ns>},
  {.block = kBreakerBlock, .name = "initial-state", .kind = Kind::State, .words = kStates,
   .help = "In a new memory.", .store = put<&B::initial_state>, .load = get<&B::initial_state>},
  {.block = kBreakerBlock, .name = "enabled", .kind = Kind::Bool,
   .help = "false: lets everything through and records nothing.",
   .store = put<&B::enabled>, .load = get<&B::enabled>},
  {.block = kBreakerBlock, .name = "max-instances", .kind = Kind::Count, .min = 1,
   .max = rule::kMaxInstances,
   .help = "Of a pattern: how many breakers it may make; beyond, one shared by the rest.",
   .store = put<&B::max_instances>, .load = get<&B::max_instances>},
  {.block = kBreakerBlock, .name = "idle", .kind = Kind::Duration, .min = kMs,
   .max = rule::kMaxIdleNs,
   .help = "Of a pattern: age at which an unused one may make room: CLOSED, or OPEN and its wait "
           "over.",
   .store = put<&B::idle_ns>, .load = get<&B::idle_ns>},
  {.block = kBreakerBlock, .name = "note", .kind = Kind::Text, .max = rule::kMaxNoteLength,
   .help = "One line for people.", .store = [](T t, V v) { t.breaker->note = v.text; }},

  {.block = kBreakerBlock, .name = "request-volume-threshold", .kind = Kind::Count, .min = 1,
   .max = rule::kMaxCountWindow, .help = "Calls of the window, which must be full to decide.",
   .store = store_volume, .same_as = "sliding-window-size", .presets = "microprofile"},
  {.block = kBreakerBlock, .name = "failure-ratio", .kind = Kind::Decimal, .max = rule::kPpm,
   .help = "Share of failed calls at which it opens, 0..1.", .store = put<&B::failure_rate_ppm>,
   .same_as = "failure-rate-threshold", .presets = "microprofile"},
  {.block = kBreakerBlock, .name = "delay", .kind = Kind::Duration, .min = kOneMs,
   .max = kLongest, .help = "How long it stays open.", .store = put<&B::open_wait_ns>,
   .same_as = "wait-duration-in-open-state", .presets = "microprofile"},
  {.block = kBreakerBlock, .name = "success-threshold", .kind = Kind::Count, .min = 1,
   .max = rule::kMaxProbes, .help = "Calls in a row that close it again.",
   .store = put<&B::probes>, .same_as = "permitted-number-of-calls-in-half-open-state",
   .presets = "microprofile semian"},
  {.block = kBreakerBlock, .name = "error-threshold", .kind = Kind::Count, .min = 1,
   .max = rule::kMaxFailureCount, .help = "Failures in the window at which it opens.",
   .store = put<&B::failure_count>, .same_as = "failure-count-threshold", .presets = "semian"},
  {.block = kBreakerBlock, .name = "error-threshold-timeout", .kind = Kind::Duration,
   .min = rule::kMinTimeWindowNs, .max = rule::kMaxTimeWindowNs, .help = "Length of the window.",
   .store = put<&B::window_span_ns>, .same_as = "sliding-window-size", .presets = "semian"},
  {.block = kBreakerBlock, .name = "error-timeout", .kind = Kind::Duration, .min = kOneMs,
   .max = kLongest, .help = "How long it stays open.", .store = put<&B::open_wait_ns>,
   .same_as = "wait-duration-in-open-state", .presets = "semian"},
  {.block = kBreakerBlock, .name = "time-window", .kind = Kind::Duration, .min = kOneMs,
   .max = kLongest, .help = "How long it stays open.", .store = put<&B::open_wait_ns>,
   .same_as = "wait-duration-in-open-state", .presets = "sentinel"},
};
// clang-format on

}  // namespace

std::span<const Key> breaker_rows() { return kRows; }

}  // namespace cutwater::config
