// SPDX-License-Identifier: Apache-2.0
// BreakerRefusal: why a call was not let through, in words.
#include <cutwater/breaker.hpp>

#include <algorithm>
#include <cstring>

#include "shm/breaker/layout.hpp"
#include "shm/breaker/words.hpp"
#include "src/breaker_record.hpp"
#include "src/refusal_moment.hpp"

namespace cutwater {

namespace {

/// `own`: the name of what answered; a pattern's for names beyond its max-instances.
std::string shared_text(std::string_view name, std::string_view own) {
  if (own == name || own.find('*') == std::string_view::npos) return {};
  return "; this state is shared by names beyond max-instances of '" + std::string(own) + "'";
}

void add_moment(const detail::RefusalMoment& then, rule::BreakerNumbers& numbers,
                rule::BreakerStory& story) {
  story.reason = static_cast<rule::BreakerReason>(then.reason);
  if (then.since_hi != 0 && static_cast<std::int64_t>(then.since_hi) <= story.now_ns) {
    story.since_ns = static_cast<std::int64_t>(then.since_hi);
    story.trip_permille = static_cast<std::uint32_t>(then.since_lo >> 22) & 1023;
    story.trip_calls = static_cast<std::uint32_t>(then.since_lo) & ((1U << 22) - 1);
  }
  if (then.probes == 0) return;
  numbers.probes = static_cast<std::uint8_t>(then.probes);
  story.held = then.held;
  story.probes.spent = then.spent;
}

}  // namespace

detail::RefusalMoment detail::moment_of(const shm::View& view, std::uint32_t index,
                                        const shm::BreakerEntry& said) noexcept {
  RefusalMoment out;
  if (index >= view.breaker_count || said.call.epoch == 0) return out;
  const shm::BreakerHead& head = view.breakers[index];
  // relaxed: each word names its epoch; a stamp of another writer's is at most one visit off, and
  // it is for people.
  const std::uint64_t state = __atomic_load_n(&head.state.lo, __ATOMIC_RELAXED);
  if (shm::epoch_of(state) != said.call.epoch) return out;
  out.epoch = said.call.epoch;
  out.reason = static_cast<std::uint32_t>(shm::unpack_breaker({state, 0}).reason);
  out.since_lo = __atomic_load_n(&head.since.lo, __ATOMIC_RELAXED);
  if (shm::epoch_of(out.since_lo) == out.epoch) {
    out.since_hi = __atomic_load_n(&head.since.hi, __ATOMIC_RELAXED);
  }
  if (said.state != rule::BreakerState::HalfOpen) return out;
  shm::BreakerInfo info;
  if (!shm::read_breaker(view, index, info) || info.word.epoch != out.epoch) return out;
  out.probes = info.numbers.probes;
  out.held = info.probes_held;
  out.spent = info.probes.spent;
  return out;
}

std::string_view BreakerRefusal::breaker_name() const noexcept {
  return record_ == nullptr ? std::string_view{} : record_->name_view;
}

std::string BreakerRefusal::text() const {
  if (told_) {
    const std::int64_t wait = retry_after_ == kNever ? -1 : retry_after_.count();
    const std::string_view why = why_, own = why_ + why.size() + 1;
    return rule::refusal_text({.name = breaker_name(),
                               .state = static_cast<rule::BreakerState>(state_),
                               .age_ns = now_ns_,
                               .why = why,
                               .process_only = process_,
                               .some = state_ == BreakerStatus::HalfOpen ||
                                       reason_ == Reason::Probing},
                              wait, hint_) +
           shared_text(breaker_name(), own);
  }
  if (place_ == nullptr || reason_ == Reason::Degraded) {
    const auto why = static_cast<detail::Nowhere>(nowhere_);
    return "breaker '" + std::string(breaker_name()) + "' cannot be asked; " +
           (record_ == nullptr ? "it has no name" : detail::nowhere_text(*record_, why));
  }
  detail::RefusalMoment then;
  std::memcpy(&then, why_, sizeof then);
  // Settings and names as they are now; all numbers are of the moment it refused in.
  shm::BreakerInfo info;
  const bool there = shm::read_breaker(*place_->view, place_->breaker().index, info);
  rule::BreakerStory story;
  story.name = breaker_name();
  story.state = static_cast<rule::BreakerState>(state_);
  story.now_ns = now_ns_;
  story.process_only = process_;
  story.ramping = state_ == BreakerStatus::Closed && !process_;  // nothing else refuses there
  if (process_) {                                        // the host's own state says nothing of it
    story.reason = rule::BreakerReason::LocalFault;
  } else {
    add_moment(then, info.numbers, story);
    if (story.ramping && retry_after_ != kNever) {       // it lasts to the ramp's end
      story.deadline_ns = now_ns_ + retry_after_.count();
    }
  }
  const std::int64_t wait = retry_after_ == kNever ? -1 : retry_after_.count();
  const bool known = there && (state_ != BreakerStatus::HalfOpen || process_ || then.probes != 0);
  const std::string why = known ? rule::cause_text(info.numbers, story) : std::string();
  std::string text = rule::refusal_text(
      {.name = story.name,
       .state = story.state,
       .age_ns = story.since_ns != 0 ? std::max<std::int64_t>(now_ns_ - story.since_ns, 0) : -1,
       .why = why,
       .process_only = process_,
       .some = state_ == BreakerStatus::HalfOpen || story.ramping},
      wait, hint_);
  if (!process_) text += shared_text(breaker_name(), info.name);
  return text;
}

}  // namespace cutwater
