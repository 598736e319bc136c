// SPDX-License-Identifier: Apache-2.0
#include "steering.hpp"

#include <fmt/format.h>

#include "rows/segment_rows.hpp"
#include "shm/bucket.hpp"

namespace cutwater::server {

void Steering::carry_out(const wire::Steer& asked, const std::string& who, Answer answer) {
  if (asked.verb == wire::kVerbConfigReload) {
    bool dry = false;
    if (const wire::Value* given = asked.arguments.find("dry")) {
      const auto flag = given->as_bool();
      if (!flag) return answer(say(wire::kSteerInvalid, "dry must be true or false"));
      dry = *flag;
    }
    if (!dry) log_.info("{} asks for a reload", who);
    return reloader_.request(dry, [this, answer = std::move(answer)](const Verdict& verdict) {
      answer(say(verdict.ok ? wire::kSteerDone : wire::kSteerInvalid, verdict.text));
    });
  }
  if (asked.verb == wire::kVerbLimitReset) return answer(reset(asked, who));
  if (asked.verb == wire::kVerbClockStep) return answer(step_clock(asked));
  answer(say(wire::kSteerInvalid, "'" + asked.verb + "' is not known; there are config.reload, "
                                  "limit.reset, clock.step"));
}

wire::SteerAnswer Steering::reset(const wire::Steer& asked, const std::string& who) {
  if (!asked.name) return say(wire::kSteerInvalid, "limit.reset: which limit?");
  if (!asked.key) return say(wire::kSteerInvalid, "limit.reset: which key?");
  const shm::View& view = memory_.view();
  const shm::LimitRef limit = shm::find_limit(view, *asked.name);
  if (limit.index == shm::kNoLimit) {
    auto row = rows::limit_row(view, *asked.name, std::nullopt, 1);
    return say(wire::kSteerNoSuchName, row ? "the limit was removed just now" : row.error().text());
  }
  const shm::KeyHash key =
      shm::hash_key(shm::make_limit_secret(view.secret, *asked.name), *asked.key);
  const bool had_debt = shm::reset(view, limit, key);
  memory_.note(shm::EventKind::LimitReset, limit.index, *asked.name);
  log_.info("{} reset a key of limit {}", who, *asked.name);
  return say(wire::kSteerDone, had_debt ? "reset: the key has its whole burst again"
                                        : "nothing to reset: the key had no debt");
}

wire::SteerAnswer Steering::step_clock(const wire::Steer& asked) {
  const shm::View& view = memory_.view();
  const wire::Value* given = asked.arguments.find("to_ns");
  const auto to_ns = given == nullptr ? std::nullopt : given->as_unsigned();
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

wire::SteerAnswer Steering::say(std::uint16_t code, std::string text) const {
  return {code, std::move(text), memory_.view().current() >> shm::kCurrentGenerationShift};
}

}  // namespace cutwater::server
