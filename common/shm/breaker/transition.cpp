// SPDX-License-Identifier: Apache-2.0
#include "shm/breaker/transition.hpp"

#include "rule/breaker_settings.hpp"
#include "rule/breaker_text.hpp"

namespace cutwater::shm {
namespace {

using rule::BreakerState;

Error invalid(std::string text) { return {Errc::InvalidArgument, std::move(text)}; }

Steer steer_to(BreakerState to) noexcept {
  switch (to) {
    case BreakerState::Open: return Steer::ToOpen;
    case BreakerState::HalfOpen: return Steer::ToHalfOpen;
    default: return Steer::ToClosed;
  }
}

/// Why a step that is none was none.
Error not_made(Steered how, std::string_view name, const BreakerInfo& before) {
  const std::string breaker = "breaker '" + std::string(name) + "' ";
  if (how == Steered::Gone) {
    return {Errc::UnknownName, breaker + "is not in the configuration (any more)"};
  }
  if (how == Steered::NotAllowed) {
    return invalid(breaker + "is " + std::string(rule::name_of(before.word.state)) +
                   ": HALF_OPEN comes only behind OPEN or FORCED_OPEN; open it first, or leave "
                   "it as it is");
  }
  return {Errc::Busy, breaker + "is moved by others at this moment: ask again"};
}

/// "fraudCheck is OPEN, retry after 5 s (2 openings in a row)".
std::string done_text(std::string_view name, BreakerState to, const BreakerInfo& now) {
  std::string text = std::string(name) + " is " + std::string(rule::name_of(to));
  if (to == BreakerState::HalfOpen) return text + ": the next calls are probes";
  if (to == BreakerState::Closed) return text + ", its window empty, no opening counted";
  const std::int64_t wait_ns = now.word.deadline_ns - now.now_ns;
  if (now.word.state == BreakerState::Open && wait_ns > 0) {
    text += ", retry after " + rule::wait_text(wait_ns) + " (" +
            std::to_string(now.word.attempts) +
            (now.word.attempts == 1 ? " opening in a row)" : " openings in a row)");
  }
  return text;
}

}  // namespace

Result<void> check_transition(const TransitionAsk& ask) {
  const bool known = ask.to == BreakerState::Open || ask.to == BreakerState::HalfOpen ||
                     ask.to == BreakerState::Closed;
  if (!known) {
    return invalid("a breaker goes by hand to OPEN, HALF_OPEN or CLOSED, not to " +
                   std::string(rule::name_of(ask.to)) +
                   "; that is an act of the operator: `cutwaterctl breaker force-open`, "
                   "`disable`, `metrics-only`");
  }
  if (!ask.wait_ns) return {};
  if (ask.to != BreakerState::Open) {
    return invalid(std::string(rule::name_of(ask.to)) +
                   " takes no wait: it holds at once; leave the wait out");
  }
  if (*ask.wait_ns < 1 || *ask.wait_ns > kMostHandWaitNs) {
    return invalid("the wait of OPEN must be 1 ns .. 3660 d, not " +
                   std::to_string(*ask.wait_ns) + " ns; left out it is the configured one");
  }
  return {};
}

Result<std::string> transition_breaker(const View& view, std::string_view name,
                                       const TransitionAsk& ask, std::uint32_t row) {
  if (auto checked = check_transition(ask); !checked) return checked.error();
  const ResolvedBreaker found = resolve_breaker(view, name, {});
  if (found.shared) return Error{Errc::Busy, shared_breaker_text(view, name, found.ref)};
  BreakerInfo before;
  if (found.ref.index == kNoLine || !read_breaker(view, found.ref.index, before)) {
    return not_made(Steered::Gone, name, before);
  }
  const Steered how =
      steer_breaker(view, found.ref, steer_to(ask.to), ask.wait_ns.value_or(0), row);
  const bool already = how == Steered::NoChange && ask.to == BreakerState::HalfOpen &&
                       before.word.state == BreakerState::HalfOpen;
  if (how != Steered::Done && !already) return not_made(how, name, before);
  BreakerInfo now;
  static_cast<void>(read_breaker(view, found.ref.index, now));
  std::string text = already ? std::string(name) + " is HALF_OPEN already"
                             : done_text(name, ask.to, now);
  if ((now.numbers.flags & rule::kBreakerSwitchedOff) != 0) {
    text += "; NO EFFECT now: the breaker is switched off (its own `enabled`, or "
            "instance.enabled), every call is granted; set it to true and reload";
  }
  return text;
}

std::string shared_breaker_text(const View& view, std::string_view name, BreakerRef shared) {
  BreakerInfo info;
  static_cast<void>(read_breaker(view, shared.index, info));
  const std::string own = info.name;
  return "'" + std::string(name) + "' has no breaker of its own: all max-instances of '" + own +
         "' are in use, and the rest share one; raise max-instances, or steer '" + own +
         "' for all names that share it";
}

}  // namespace cutwater::shm
