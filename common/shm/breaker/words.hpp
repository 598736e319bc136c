// SPDX-License-Identifier: Apache-2.0
// From what a reader sees of a breaker (shm/breaker/breaker.hpp) to what is told of it in words
// (rule/breaker_text.hpp, rule/breaker_explain.hpp). `story.name` lies in `info`. Pure, but for
// measures_calls(), which reads.
#pragma once
#include "rule/breaker_explain.hpp"
#include "shm/breaker/breaker.hpp"

namespace cutwater::shm {

inline rule::BreakerStory story_of(const BreakerInfo& info) noexcept {
  rule::BreakerStory story;
  story.name = info.name;
  story.state = info.word.state;
  story.reason = info.word.reason;
  story.now_ns = info.now_ns;
  story.since_ns = info.since_ns;
  story.deadline_ns = info.word.deadline_ns;
  story.attempts = info.word.attempts;
  story.trip_calls = info.trip_calls;
  story.trip_permille = info.trip_permille;
  story.window = info.window;
  story.probes = info.probes;
  story.held = info.probes_held;
  story.ramping = info.word.ramping;
  story.flapping = info.flapping;
  return story;
}

inline rule::BreakerAround around(const BreakerInfo& info) noexcept {
  return {info.users, info.users_open, info.hanging};
}

/// Whether a call takes the time it lasts: only where slow-call-rate-threshold needs it, so that
/// others need no clock. A duration that is given along counts everywhere.
bool measures_calls(const View& view, BreakerRef ref) noexcept;

}  // namespace cutwater::shm
