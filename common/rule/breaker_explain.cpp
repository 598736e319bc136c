// SPDX-License-Identifier: Apache-2.0
#include "rule/breaker_explain.hpp"

namespace cutwater::rule {
namespace {

std::string number(std::uint64_t value) { return std::to_string(value); }
std::string time(std::uint64_t ns) { return duration_text(static_cast<std::int64_t>(ns)); }

/// 1st, 2nd, 3rd, 4th, 11th, 21st.
std::string ordinal(std::uint32_t n) {
  const std::uint32_t ten = n % 100, one = n % 10;
  const bool teen = ten >= 11 && ten <= 13;
  return number(n) + (teen ? "th" : one == 1 ? "st" : one == 2 ? "nd" : one == 3 ? "rd" : "th");
}

/// How long it stays open, and how that grows.
std::string wait_words(const BreakerNumbers& n) {
  std::string text = "once it opens it refuses for " + time(n.open_wait_ns);
  if (n.backoff_ppm != kPpm) {
    std::string factor = percent_text(n.backoff_ppm / 100);  // parts per million as a number
    factor.resize(factor.size() - 2);
    text += ", each further opening in a row " + factor + " times as long, at most " +
            time(n.max_open_wait_ns);
  }
  if (n.randomized_ppm != 0) text += ", drawn within " + percent_text(n.randomized_ppm) + " of it";
  return text;
}

std::string probes_words(const BreakerNumbers& n) {
  std::string text =
      "half-open it lets " + number(n.probes) + (n.probes == 1 ? " call" : " calls") + " through";
  if (n.half_open_max_wait_ns != 0) {
    const bool opens = n.after_half_open_wait == static_cast<std::uint8_t>(AfterHalfOpenWait::Open);
    text += "; undecided after " + time(n.half_open_max_wait_ns) + " it goes to " +
            std::string(name_of(opens ? BreakerState::Open : BreakerState::Closed));
  }
  const bool fails = n.on_probe_timeout == static_cast<std::uint8_t>(OnProbeTimeout::Failure);
  return text + "; a probe without a deadline of its own " +
         (fails ? "has failed" : "is given to another") + " after " + time(n.probe_timeout_ns);
}

void about_processes(const BreakerNumbers& n, const BreakerAround& a,
                     std::vector<std::string>& out) {
  const std::uint32_t needed = needed_users(n, a.users);
  if (needed > 1) {
    out.push_back("with " + number(a.users) + " processes in use, failures of " +
                  number(needed - 1) + " alone open it for " +
                  (needed == 2 ? "that one" : "those") + " and not for the host");
  }
  if (a.users_open != 0) {
    out.push_back(number(a.users_open) + " of " + number(a.users) +
                  " processes refuse for themselves: their calls fail, those of the others do not");
  }
}

/// What decides while outcomes are recorded.
void about_recording(const BreakerNumbers& n, const BreakerAround& a,
                     std::vector<std::string>& out) {
  out.push_back("counted are the " + window_words(n));
  if (n.evaluate_on == static_cast<std::uint8_t>(EvaluateOn::Failure)) {
    out.push_back("only a failure or a slow call may open it");
  }
  if (n.ignored_results == static_cast<std::uint8_t>(IgnoredResults::Success)) {
    out.push_back("ignored outcomes count as successes");
  }
  if ((n.flags & kBreakerHanging) != 0) {
    out.push_back(number(a.hanging) + " calls hang for longer than " + time(n.slow_ns) +
                  " and count as slow");
  }
  const bool nothing = n.failure_ppm == kOffPpm && n.slow_ppm == kOffPpm && n.failure_count == 0 &&
                       n.consecutive == 0;
  if (nothing) out.push_back("nothing opens it by itself: every threshold is off");
  about_processes(n, a, out);
  if ((n.flags & kBreakerRetryAfter) != 0) {
    out.push_back("a Retry-After of the dependency opens it at once, for at most " +
                  time(n.max_open_for_ns));
  }
}

/// What it would do if it decided.
void about_metrics(const BreakerNumbers& n, const BreakerStory& s, const BreakerAround& a,
                   std::vector<std::string>& out) {
  const BreakerReason now = would_open_now(n, s.window);
  if (now != BreakerReason::None) {
    out.push_back("would be open now: " + std::string(opening_word(now)));
  }
  if (a.would_open != BreakerReason::None) {
    out.push_back("would have opened first " + duration_text(a.would_open_ns) +
                  " ago: " + std::string(opening_word(a.would_open)));
  } else if (now == BreakerReason::None) {
    out.push_back("would be closed now");
  }
}

void about_open(const BreakerNumbers& n, const BreakerStory& s, std::vector<std::string>& out) {
  if (s.attempts > 1) out.push_back("the " + ordinal(s.attempts) + " opening in a row");
  if ((n.flags & kBreakerAutomatic) != 0) {
    out.push_back("the daemon makes the step to half-open by itself");
  } else {
    out.push_back("the step to half-open is made by the first call after that");
  }
  out.push_back(probes_words(n));
}

}  // namespace

std::string_view opening_word(BreakerReason reason) noexcept {
  switch (reason) {
    case BreakerReason::FailureRate:
      return "failure rate";
    case BreakerReason::SlowRate:
      return "slow calls";
    case BreakerReason::FailureCount:
      return "too many failures";
    case BreakerReason::Consecutive:
      return "failures in a row";
    default:
      return "another reason";
  }
}

BreakerReason would_open_now(const BreakerNumbers& n, const BreakerWindow& window) noexcept {
  return reason_to_open(n, window, {.failed = true, .slow = true});
}

BreakerState state_after(const BreakerNumbers& n, BreakerState state) noexcept {
  switch (state) {
    case BreakerState::Open:
    case BreakerState::ForcedOpen:
      return BreakerState::HalfOpen;
    case BreakerState::HalfOpen:
      return n.after_half_open_wait == static_cast<std::uint8_t>(AfterHalfOpenWait::Closed)
                 ? BreakerState::Closed
                 : BreakerState::Open;
    default:
      return BreakerState::Closed;
  }
}

std::string window_words(const BreakerNumbers& n) {
  if (n.window_type == static_cast<std::uint8_t>(WindowType::TimeBased)) {
    return "calls of the last " + time(n.slot_ns * n.slots) + " in " + number(n.slots) +
           (n.slots == 1 ? " slot" : " slots");
  }
  std::string text =
      n.window_calls == 1 ? "last call" : "last " + number(n.window_calls) + " calls";
  if (n.span_slot_ns != 0) {
    text += ", or all of the last " + time(n.span_slot_ns * kMinSpanSlots) + " when those are more";
  }
  return text;
}

std::vector<std::string> explain_lines(const BreakerNumbers& n, const BreakerStory& s,
                                       const BreakerAround& a) {
  std::vector<std::string> out{explain_text(n, s)};
  if ((n.flags & kBreakerSwitchedOff) != 0) return out;
  switch (s.state) {
    case BreakerState::Closed:
      about_recording(n, a, out);
      out.push_back(wait_words(n));
      out.push_back(probes_words(n));
      break;
    case BreakerState::MetricsOnly:
      about_metrics(n, s, a, out);
      about_recording(n, a, out);
      break;
    case BreakerState::Open:
      about_open(n, s, out);
      about_processes(n, a, out);
      break;
    case BreakerState::HalfOpen:
      out.push_back(probes_words(n));
      out.push_back(wait_words(n));
      break;
    case BreakerState::ForcedOpen:
    case BreakerState::Disabled:
      break;
  }
  const bool by_hand = s.state == BreakerState::MetricsOnly || s.state == BreakerState::Disabled;
  if (by_hand && s.deadline_ns == 0) out.push_back("until it is changed by hand");
  if (by_hand && s.deadline_ns != 0) {
    out.push_back(s.deadline_ns <= s.now_ns
                      ? "its time is over: the next call finds it CLOSED with an empty window"
                      : "for " + duration_text(s.deadline_ns - s.now_ns) +
                            " more, then CLOSED with an empty window");
  }
  return out;
}

}  // namespace cutwater::rule
