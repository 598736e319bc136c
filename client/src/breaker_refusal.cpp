// SPDX-License-Identifier: Apache-2.0
// BreakerRefusal: why a call was not let through, in words.
#include <cutwater/breaker.hpp>

#include "shm/breaker/words.hpp"
#include "src/breaker_record.hpp"

namespace cutwater {

namespace {

/// `own`: the name of what answered; a pattern's for names beyond its max-instances.
std::string shared_text(std::string_view name, std::string_view own) {
  if (own == name || own.find('*') == std::string_view::npos) return {};
  return "; this state is shared by names beyond max-instances of '" + std::string(own) + "'";
}

}  // namespace

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
  shm::BreakerInfo info;
  const bool known = place_ != nullptr &&
                     shm::read_breaker(*place_->view, place_->breaker().index, info);
  if (!known || reason_ == Reason::Degraded) {
    const auto why = static_cast<detail::Nowhere>(nowhere_);
    return "breaker '" + std::string(breaker_name()) + "' cannot be asked; " +
           (record_ == nullptr ? "it has no name" : detail::nowhere_text(*record_, why));
  }
  rule::BreakerStory story = shm::story_of(info);
  story.name = breaker_name();
  story.state = static_cast<rule::BreakerState>(state_);
  story.now_ns = now_ns_;
  if (story.since_ns > now_ns_) story.since_ns = 0;      // it moved on since it refused
  story.process_only = process_;
  story.ramping = state_ == BreakerStatus::Closed && !process_;  // nothing else refuses there
  if (process_) {                                        // the host's own state says nothing of it
    story.reason = rule::BreakerReason::LocalFault;
    story.since_ns = 0;
  }
  const std::int64_t wait = retry_after_ == kNever ? -1 : retry_after_.count();
  std::string text = rule::refusal_text(info.numbers, story, wait, hint_);
  if (!process_) text += shared_text(breaker_name(), info.name);
  return text;
}

}  // namespace cutwater
