// SPDX-License-Identifier: Apache-2.0
#include "rule/breaker_text.hpp"

#include <algorithm>

namespace cutwater::rule {
namespace {

std::string number(std::uint64_t value) { return std::to_string(value); }

/// `whole` and a fraction of `digits` places, without zeroes at its end.
std::string decimal(std::uint64_t whole, std::uint64_t fraction, unsigned digits) {
  std::string text = number(fraction);
  text.insert(0, digits - text.size(), '0');
  while (!text.empty() && text.back() == '0') text.pop_back();
  return text.empty() ? number(whole) : number(whole) + "." + text;
}

std::string calls(std::uint64_t count) { return number(count) + (count == 1 ? " call" : " calls"); }

void add(std::string& text, const std::string& part) {
  text += text.ends_with(": ") ? part : "; " + part;
}

std::string explain_closed(const BreakerNumbers& n, const BreakerStory& s) {
  std::string text(name_of(s.state));
  text += ": ";
  const std::string opens = s.state == BreakerState::MetricsOnly ? "would open at " : "opens at ";
  const BreakerWindow& w = s.window;
  add(text, number(w.failures) + " of " + calls(w.calls) + " failed");
  if (n.slow_ppm != kOffPpm) add(text, number(w.slow) + " slow");
  const bool rates = n.failure_ppm != kOffPpm || n.slow_ppm != kOffPpm;
  if (rates && w.calls < n.minimum) add(text, "rate counts from " + calls(n.minimum));
  if (n.failure_ppm != kOffPpm && w.calls >= n.minimum) {
    add(text, opens + "a failure rate of " + percent_text(n.failure_ppm));
  }
  if (n.slow_ppm != kOffPpm && w.calls >= n.minimum) {
    add(text, opens + percent_text(n.slow_ppm) + " slower than " +
                  duration_text(static_cast<std::int64_t>(n.slow_ns)));
  }
  if (n.failure_count != 0) {
    const std::uint64_t left = w.failures < n.failure_count ? n.failure_count - w.failures : 0;
    add(text, opens + number(n.failure_count) + " failures, " + number(left) + " to go");
  }
  if (n.consecutive != 0) {
    const std::uint32_t left = w.run < n.consecutive ? n.consecutive - w.run : 0;
    add(text, opens + number(n.consecutive) + (n.consecutive == 1 ? " failure" : " failures") +
                  " in a row, " + number(left) + " to go");
  }
  if (s.ramping) {
    add(text, "lets " + number(ramp_share(n, s.deadline_ns, s.now_ns)) + " % through for " +
                  duration_text(s.deadline_ns - s.now_ns));
  }
  return text;
}

std::string decision_words(const BreakerNumbers& n) {
  const std::string all = number(n.probes);
  switch (static_cast<HalfOpenRule>(n.half_open_rule)) {
    case HalfOpenRule::Rate: return "the rate of " + all + (n.probes == 1 ? " probe" : " probes") +
                                    " decides";
    case HalfOpenRule::RateOver:
      return "the rate decides once " + number(n.half_open_value) + " of " + all +
             " probes are back";
    case HalfOpenRule::AllSucceed:
      return n.probes == 1 ? "one probe decides" : "all " + all + " probes must succeed";
    case HalfOpenRule::Successes:
      return number(n.half_open_value) + " of " + all + " probes must succeed";
  }
  return {};
}

struct Unit {
  std::uint64_t ns;
  const char* word;
};
constexpr Unit kUnits[] = {{1'000'000'000, " s"}, {1'000'000, " ms"}, {1'000, " us"}};
constexpr Unit kDay{86'400'000'000'000, " d"};
/// From ten days on nobody counts seconds.
constexpr std::int64_t kManyDaysNs = 864'000'000'000'000;

}  // namespace

std::string duration_text(std::int64_t ns) {
  if (ns < 0) ns = 0;
  const auto value = static_cast<std::uint64_t>(ns);
  if (ns >= kManyDaysNs) {
    return decimal(value / kDay.ns, value % kDay.ns * 100 / kDay.ns, 2) + kDay.word;
  }
  for (const Unit& unit : kUnits) {
    if (value < unit.ns) continue;
    return decimal(value / unit.ns, value % unit.ns * 100 / unit.ns, 2) + unit.word;
  }
  return number(value) + " ns";
}

std::string wait_text(std::int64_t ns) {
  if (ns >= kManyDaysNs) {
    const auto hundredth = static_cast<std::int64_t>(kDay.ns / 100);
    const std::int64_t up = (hundredth - ns % hundredth) % hundredth;
    return duration_text(ns > INT64_MAX - up ? ns : ns + up);
  }
  for (const Unit& unit : kUnits) {
    const auto hundredth = static_cast<std::int64_t>(unit.ns / 100);
    if (ns < static_cast<std::int64_t>(unit.ns)) continue;
    const std::int64_t rest = ns % hundredth;
    const std::int64_t up = rest < 1'000 && hundredth > 1'000 ? 0 : hundredth - rest;
    return duration_text(ns > INT64_MAX - up ? ns : ns + up);
  }
  return duration_text(ns);
}

std::string percent_text(std::uint32_t ppm) {
  return decimal(ppm / 10'000, ppm % 10'000, 4) + " %";
}

std::string cause_text(const BreakerNumbers& n, const BreakerStory& s) {
  if (s.state == BreakerState::HalfOpen && !s.process_only) {
    return number(s.held) + " of " + number(n.probes) + (n.probes == 1 ? " probe" : " probes") +
           " out, " + number(s.probes.spent) + " back";
  }
  if (s.state == BreakerState::Closed && s.ramping && !s.process_only) {
    if (s.deadline_ns <= s.now_ns) return "ramping up after half-open";
    return "ramping up after half-open: " + number(ramp_share(n, s.deadline_ns, s.now_ns)) +
           " % of the calls pass";
  }
  const bool known = s.trip_permille <= 1000;
  const std::string rate = decimal(s.trip_permille / 10, s.trip_permille % 10, 1) + " %";
  switch (s.reason) {
    case BreakerReason::FailureRate:
      return known ? "failure rate " + rate + " of " + calls(s.trip_calls) : "failure rate";
    case BreakerReason::SlowRate:
      return known ? "slow calls " + rate + " of " + calls(s.trip_calls) : "slow calls";
    case BreakerReason::FailureCount: return number(n.failure_count) + " failures";
    case BreakerReason::Consecutive:
      return number(n.consecutive) + (n.consecutive == 1 ? " failure" : " failures") + " in a row";
    case BreakerReason::Hint: return "asked for by the dependency";
    case BreakerReason::ProbeFailed: return "a probe failed";
    case BreakerReason::HalfOpenWaitOver: return "the probes took too long";
    case BreakerReason::ByHand: return "by hand";
    case BreakerReason::Expired: return "a state set by hand has ended";
    case BreakerReason::Reloaded: return "its settings changed while half-open";
    case BreakerReason::LocalFault: return "calls of this process fail, those of others do not";
    default: return {};
  }
}

std::string refusal_text(const BreakerNumbers& numbers, const BreakerStory& story,
                         std::int64_t retry_after_ns, bool hint) {
  const std::string why = cause_text(numbers, story);
  return refusal_text(
      {.name = story.name,
       .state = story.state,
       .age_ns = story.since_ns != 0 ? std::max<std::int64_t>(story.now_ns - story.since_ns, 0)
                                     : -1,
       .why = why,
       .process_only = story.process_only,
       .some = story.state == BreakerState::HalfOpen || story.ramping},
      retry_after_ns, hint);
}

std::string refusal_text(const ToldRefusal& told, std::int64_t retry_after_ns, bool hint) {
  std::string text = "breaker '" + std::string(told.name) + "' is " +
                     std::string(name_of(told.state));
  if (told.process_only) text += " for this process";
  if (told.age_ns >= 0) text += " since " + duration_text(told.age_ns);
  if (!told.why.empty()) text += " (" + std::string(told.why) + ")";
  const bool ramps = told.some && told.state == BreakerState::Closed;
  text += ramps       ? ", does not permit this call"
          : told.some ? ", does not permit more calls now"
                      : ", does not permit calls";
  if (retry_after_ns < 0) return text + ", until it is changed by hand";
  text += ramps ? ", permits all after " : ", retry after ";
  return text + (hint ? "about " : "") + wait_text(retry_after_ns);
}

namespace {

std::string explain_state(const BreakerNumbers& n, const BreakerStory& s) {
  switch (s.state) {
    case BreakerState::Closed: return explain_closed(n, s);
    case BreakerState::MetricsOnly: return explain_closed(n, s) + "; grants every call";
    case BreakerState::Disabled: return "DISABLED: grants every call and records nothing";
    case BreakerState::ForcedOpen:
      if (s.deadline_ns != 0 && s.deadline_ns <= s.now_ns) {
        return "FORCED_OPEN: its time is over: the next call is a probe";
      }
      return s.deadline_ns == 0
                 ? "FORCED_OPEN: refuses every call until it is changed by hand"
                 : "FORCED_OPEN: refuses every call for " +
                       duration_text(s.deadline_ns - s.now_ns) + ", then half-open";
    case BreakerState::Open: {
      std::string text = "OPEN: ";
      if (const std::string why = cause_text(n, s); !why.empty()) text += why + "; ";
      const auto edge = static_cast<OpenEdge>(n.open_edge);
      const std::int64_t left = until_over(edge, s.deadline_ns, s.now_ns);
      text += left == 0 ? "ready for HALF_OPEN: the next call is a probe"
                        : "half-open in " + duration_text(left);
      return text + "; then " + decision_words(n);
    }
    case BreakerState::HalfOpen:
      return "HALF_OPEN: " + number(s.probes.spent) + " of " + number(n.probes) +
             " probes are back, " + number(s.probes.failed) + " failed, " + number(s.held) +
             " out; " + decision_words(n);
  }
  return {};
}

}  // namespace

std::string explain_text(const BreakerNumbers& n, const BreakerStory& s) {
  // Before its state: what was steered means nothing while it is off.
  if ((n.flags & kBreakerSwitchedOff) != 0) {
    return "switched off (enabled: false): grants every call and records nothing";
  }
  std::string text = explain_state(n, s);
  if (!s.flapping) return text;
  return text + "; flapping: it opened four times or more within ten minutes, look at "
                "wait-duration-in-open-state, " +
         (n.backoff_ppm > kPpm ? "" : "enable-exponential-backoff, ") +
         "permitted-number-of-calls-in-half-open-state and minimum-number-of-calls";
}

}  // namespace cutwater::rule
