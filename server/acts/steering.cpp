// SPDX-License-Identifier: Apache-2.0
#include "acts/steering.hpp"

#include <fmt/format.h>

#include "config/rate.hpp"
#include "config/words.hpp"
#include "rows/segment_rows.hpp"
#include "wire/breaker_verbs.hpp"

namespace cutwater::server {

namespace {

constexpr std::string_view kVerbs =
    "config.reload, limit.reset, limit.drain, limit.credit, limit.ban, limit.unban, "
    "limit.override, limit.shadow, breaker.force-open, breaker.disable, breaker.metrics-only, "
    "breaker.auto, breaker.reset, breaker.transition, journal.undo, log.level, clock.step";

/// Longest time an act may be given: further off nobody means it.
constexpr std::uint64_t kMaxForNs = rule::kMaxPeriodNs;

std::optional<shm::Steer> steer_of(std::string_view verb) {
  if (verb == wire::kVerbBreakerForceOpen) return shm::Steer::ForceOpen;
  if (verb == wire::kVerbBreakerDisable) return shm::Steer::Disable;
  if (verb == wire::kVerbBreakerMetricsOnly) return shm::Steer::MetricsOnly;
  if (verb == wire::kVerbBreakerAuto) return shm::Steer::Auto;
  if (verb == wire::kVerbBreakerReset) return shm::Steer::Reset;
  return std::nullopt;
}

bool is_about_a_key(std::string_view verb) {
  return verb == wire::kVerbLimitReset || verb == wire::kVerbLimitDrain ||
         verb == wire::kVerbLimitCredit;
}

bool lasts(std::string_view verb) {
  return verb == wire::kVerbLimitBan || verb == wire::kVerbLimitUnban ||
         verb == wire::kVerbLimitOverride || verb == wire::kVerbLimitShadow ||
         verb == wire::kVerbJournalUndo;
}

std::optional<std::uint64_t> number_of(const wire::Steer& asked, std::string_view name) {
  const wire::Value* given = asked.arguments.find(name);
  return given == nullptr ? std::nullopt : given->as_unsigned();
}

const std::string* text_of(const wire::Steer& asked, std::string_view name) {
  const wire::Value* given = asked.arguments.find(name);
  return given == nullptr ? nullptr : given->as_string();
}

/// The rate as text (`10/s`) or in two numbers; what is wrong, or "".
std::string read_rate(const wire::Steer& asked, Act& act) {
  if (const std::string* text = text_of(asked, "rate")) {
    const auto rate = config::parse_rate(*text);
    if (!rate) return "rate: " + rate.error().text();
    act.rate_count = rate->count;
    act.rate_period_ns = rate->period_ns;
    return {};
  }
  const auto count = number_of(asked, "rate_count"), period = number_of(asked, "rate_period_ns");
  if (!count || !period) {
    return "write rate (\"10/s\"), or rate_count and rate_period_ns, and burst; or unlimited: "
           "true; or nothing to end the override";
  }
  const bool fits = *count >= 1 && *count <= rule::kMaxRateCount &&
                    *period >= rule::kMinPeriodNs && *period <= rule::kMaxPeriodNs &&
                    !rule::above_max_rate(*count, *period);
  if (!fits) {
    return fmt::format("the rate must be 1 per 3660 d .. {} per second, its count 1 .. {}",
                       rule::kMaxRatePerSecond, rule::kMaxRateCount);
  }
  act.rate_count = *count;
  act.rate_period_ns = *period;
  return {};
}

/// `{rate, burst}` or `{unlimited: true}` into the act; what is wrong, or "".
std::string read_override(const wire::Steer& asked, Act& act) {
  if (const wire::Value* given = asked.arguments.find("unlimited")) {
    return given->as_bool() == true ? "" : "unlimited must be true, or be left out";
  }
  if (std::string wrong = read_rate(asked, act); !wrong.empty()) return wrong;
  act.burst = act.rate_count;
  if (asked.arguments.find("burst") == nullptr) return {};
  const auto burst = number_of(asked, "burst");
  if (!burst || *burst == 0 || *burst > rule::kMaxBurst) {
    return fmt::format("burst must be 1 .. {}", rule::kMaxBurst);
  }
  act.burst = *burst;
  return {};
}

}  // namespace

void Steering::carry_out(const wire::Steer& asked, const std::string& who, Answer answer) {
  if (asked.verb == wire::kVerbConfigReload) return reload(asked, who, std::move(answer));
  if (is_about_a_key(asked.verb)) return answer(change_key(asked, who));
  if (lasts(asked.verb)) return act(asked, who, std::move(answer));
  if (const auto what = steer_of(asked.verb)) {
    return act_on_breaker(*what, asked, who, std::move(answer));
  }
  if (asked.verb == wire::kVerbBreakerTransition) {
    return move_breaker(asked, who, std::move(answer));
  }
  if (asked.verb == wire::kVerbLogLevel) return answer(set_level(asked, who));
  if (asked.verb == wire::kVerbClockStep) return answer(step_clock(asked));
  answer(say(wire::kSteerInvalid,
             fmt::format("'{}' is not known; there are {}", asked.verb, kVerbs)));
}

void Steering::reload(const wire::Steer& asked, const std::string& who, Answer answer) {
  bool dry = false;
  if (const wire::Value* given = asked.arguments.find("dry")) {
    const auto flag = given->as_bool();
    if (!flag) return answer(say(wire::kSteerInvalid, "dry must be true or false"));
    dry = *flag;
  }
  if (!dry) log_.info("{} asks for a reload", who);
  const auto origin = dry ? Reloader::Origin::Dry : Reloader::Origin::Asked;
  reloader_.request(origin, [this, answer = std::move(answer)](const Verdict& verdict) {
    answer(say(verdict.ok ? wire::kSteerDone : wire::kSteerInvalid, verdict.text));
  });
}

Steering::Subject Steering::subject_of(const wire::Steer& asked) const {
  Subject out;
  if (!asked.name) {
    out.fault = say(wire::kSteerInvalid, asked.verb + ": which limit?");
  } else if (!asked.key) {
    out.fault = say(wire::kSteerInvalid, asked.verb + ": which key?");
  } else {
    const shm::View& view = memory_.view();
    const shm::LimitHandle limit = shm::resolve(view, *asked.name);
    out.found = limit.ref.index != shm::kNoLimit;
    if (out.found) {
      out.ask = {.limit = limit.ref, .key = shm::key_of(limit, *asked.key)};
    } else {
      auto row = rows::limit_row(view, *asked.name, std::nullopt, 1);
      out.fault = say(wire::kSteerNoSuchName,
                      row ? "the limit was removed just now" : row.error().text());
    }
  }
  return out;
}

wire::SteerAnswer Steering::change_key(const wire::Steer& asked, const std::string& who) {
  const Subject subject = subject_of(asked);
  if (!subject.found) return subject.fault;
  const shm::View& view = memory_.view();
  DecisionData after;
  std::string text;
  if (asked.verb == wire::kVerbLimitReset) {
    bool had_debt = false;
    static_cast<void>(shm::refill(view, subject.ask, had_debt));
    text = had_debt ? "reset: the key has its whole burst again"
                    : "nothing to reset: the key had no debt";
  } else if (asked.verb == wire::kVerbLimitDrain) {
    std::uint64_t drained = 0;
    static_cast<void>(shm::drain(view, subject.ask, drained, after));
    text = fmt::format("drained: what was there is spent in every window; the one with the fewest "
                       "had {} tokens", drained);
  } else {
    const auto tokens = number_of(asked, "n");
    if (!tokens || *tokens == 0 || *tokens > kMaxCost) {
      return say(wire::kSteerInvalid, fmt::format("limit.credit: n must be 1 .. {}", kMaxCost));
    }
    static_cast<void>(shm::credit(view, subject.ask, *tokens, after));
    text = fmt::format("credited: {} tokens are there now", Decision(after).remaining());
  }
  const std::string verb = asked.verb.substr(asked.verb.find('.') + 1);
  if (asked.verb == wire::kVerbLimitReset) {
    memory_.note(shm::EventKind::LimitReset, subject.ask.limit.index, *asked.name);
  } else {
    memory_.note(shm::EventKind::ManualAct, subject.ask.limit.index, verb + " " + *asked.name);
  }
  log_.info("{}: {} of a key of limit {}", who, verb, *asked.name);
  return say(wire::kSteerDone, std::move(text));
}

void Steering::act(const wire::Steer& asked, const std::string& who, Answer answer) {
  const auto done = [this, answer, who, verb = asked.verb](const ActVerdict& verdict) {
    log_.info("{}: {}: {}", who, verb, verdict.code == wire::kSteerDone ? "done" : "refused");
    answer(say(verdict));
  };
  const auto invalid = [&](std::string text) {
    answer(say(wire::kSteerInvalid, asked.verb + ": " + std::move(text)));
  };
  if (asked.verb == wire::kVerbJournalUndo) {
    const auto id = number_of(asked, "id");
    if (!id) return invalid("which act? give its id, as `journal list` shows it");
    return acts_.undo(*id, who, done);
  }
  if (!asked.name) return invalid("which limit?");
  const bool shadow = asked.verb == wire::kVerbLimitShadow;
  if (!shadow && !asked.key) return invalid("which key?");
  if (!shadow && asked.key->empty()) return invalid("an empty key cannot be singled out");
  if (asked.verb == wire::kVerbLimitUnban) {
    return acts_.unban(*asked.name, *asked.key, who, done);
  }
  const wire::Value::Map* arguments = asked.arguments.as_map();
  const bool ends = asked.verb == wire::kVerbLimitOverride &&
                    (arguments == nullptr || arguments->empty());
  if (ends) return acts_.end_override(*asked.name, *asked.key, who, done);
  Act wanted;
  wanted.limit = *asked.name;
  wanted.who = who;
  wanted.note = asked.note;
  if (!shadow) wanted.key = *asked.key;
  if (asked.verb == wire::kVerbLimitOverride) {
    wanted.kind = ActKind::Override;
    if (std::string wrong = read_override(asked, wanted); !wrong.empty()) return invalid(wrong);
  } else if (shadow) {
    wanted.kind = ActKind::Shadow;
    const wire::Value* on = asked.arguments.find("on");
    const auto flag = on == nullptr ? std::optional<bool>(true) : on->as_bool();
    if (!flag) return invalid("on must be true or false");
    wanted.shadow = *flag;
  }
  acts_.carry_out(std::move(wanted), asked.for_ns, done);
}

void Steering::act_on_breaker(shm::Steer what, const wire::Steer& asked, const std::string& who,
                              Answer answer) {
  const bool holds = what != shm::Steer::Auto && what != shm::Steer::Reset;
  if (!asked.name) return answer(say(wire::kSteerInvalid, asked.verb + ": which breaker?"));
  if (asked.for_ns > kMaxForNs) {
    return answer(say(wire::kSteerInvalid, asked.verb + ": at most 3660 d"));
  }
  if (!holds && asked.for_ns != 0) {
    return answer(say(wire::kSteerInvalid, asked.verb + " takes no time: it holds at once"));
  }
  const Acts::BreakerAct act{what, *asked.name, who, asked.note, asked.for_ns};
  acts_.steer_breaker(act, [this, answer, who, verb = asked.verb,
                            name = *asked.name](const ActVerdict& verdict) {
    log_.info("{}: {} {}: {}", who, verb, name,
              verdict.code == wire::kSteerDone ? "done" : "refused");
    answer(say(verdict));
  });
}

void Steering::move_breaker(const wire::Steer& asked, const std::string& who, Answer answer) {
  const auto invalid = [&](std::string text) {
    answer(say(wire::kSteerInvalid, asked.verb + ": " + std::move(text)));
  };
  if (!asked.name) return invalid("which breaker?");
  if (!asked.note.empty()) return invalid("takes no note: it is no act that lasts");
  const std::string* const word = text_of(asked, "to");
  shm::TransitionAsk to;
  if (word == nullptr || !rule::state_named(*word, to.to)) {
    return invalid("to must be OPEN, HALF_OPEN or CLOSED");
  }
  if (asked.for_ns != 0) {
    // More than any wait may be stays so.
    to.wait_ns = asked.for_ns > static_cast<std::uint64_t>(shm::kMostHandWaitNs)
                     ? shm::kMostHandWaitNs + 1
                     : static_cast<std::int64_t>(asked.for_ns);
  }
  acts_.transition_breaker(*asked.name, to, who, [this, answer](const ActVerdict& verdict) {
    answer(say(verdict));
  });
}

wire::SteerAnswer Steering::set_level(const wire::Steer& asked, const std::string& who) {
  using config::LogLevel;
  const std::string* word = text_of(asked, "level");
  for (const LogLevel level : {LogLevel::Trace, LogLevel::Debug, LogLevel::Info, LogLevel::Warn,
                               LogLevel::Error}) {
    if (word == nullptr || *word != config::name_of(level)) continue;
    config::Log changed = running_.config.log;
    changed.level = level;
    log_.info("{} sets the log to {}", who, *word);
    if (auto done = log_.change(changed); !done) {
      return say(wire::kSteerInvalid, "log.level: " + done.error().text());
    }
    return say(wire::kSteerDone, "log level " + *word);
  }
  return say(wire::kSteerInvalid, "log.level: level must be trace, debug, info, warn or error");
}

wire::SteerAnswer Steering::step_clock(const wire::Steer& asked) {
  const shm::View& view = memory_.view();
  const auto to_ns = number_of(asked, "to_ns");
  if (!to_ns || *to_ns > static_cast<std::uint64_t>(shm::kHorizonNs)) {
    return say(wire::kSteerInvalid,
               fmt::format("clock.step: to_ns must be 0 .. {}", shm::kHorizonNs));
  }
  if (!view.clock.is_stepped()) {
    return say(wire::kSteerNotPermitted,
               "clock.step: this memory's clock is boottime; only --clock=stepped can be moved");
  }
  const auto target = static_cast<std::int64_t>(*to_ns);
  const std::int64_t now = view.clock.now();
  if (target < now) {
    return say(wire::kSteerNotPermitted,
               fmt::format("clock.step: never backwards; it stands at {} ns", now));
  }
  return say(wire::kSteerDone, std::to_string(shm::step_clock(view, target)));
}

wire::SteerAnswer Steering::say(const ActVerdict& verdict) const {
  wire::SteerAnswer out = say(verdict.code, verdict.text);
  out.act = verdict.act;
  out.saved = verdict.saved;
  return out;
}

wire::SteerAnswer Steering::say(std::uint16_t code, std::string text) const {
  return {code, std::move(text), memory_.view().current() >> shm::kCurrentGenerationShift};
}

}  // namespace cutwater::server
