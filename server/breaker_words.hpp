// SPDX-License-Identifier: Apache-2.0
// A breaker's state as the protocol says it, and what texts are made of. Pure. Thread safety:
// values.
#pragma once
#include "rule/breaker_text.hpp"
#include "shm/breaker.hpp"
#include "wire/enter_message.hpp"

namespace cutwater::server {

inline wire::BreakerWord word_of(rule::BreakerState state) noexcept {
  switch (state) {
    case rule::BreakerState::Closed: return wire::BreakerWord::Closed;
    case rule::BreakerState::Open: return wire::BreakerWord::Open;
    case rule::BreakerState::HalfOpen: return wire::BreakerWord::HalfOpen;
    case rule::BreakerState::ForcedOpen: return wire::BreakerWord::ForcedOpen;
    case rule::BreakerState::Disabled: return wire::BreakerWord::Disabled;
    case rule::BreakerState::MetricsOnly: return wire::BreakerWord::MetricsOnly;
  }
  return wire::BreakerWord::None;
}

/// The state that gave such a call.
inline wire::BreakerWord word_of(shm::CallKind kind) noexcept {
  switch (kind) {
    case shm::CallKind::None: return wire::BreakerWord::None;
    case shm::CallKind::Probe: return wire::BreakerWord::HalfOpen;
    case shm::CallKind::Metrics: return wire::BreakerWord::MetricsOnly;
    case shm::CallKind::Off: return wire::BreakerWord::Disabled;
    case shm::CallKind::Window:
    case shm::CallKind::OwnProbe: break;
  }
  return wire::BreakerWord::Closed;
}

inline rule::BreakerStory story_of(const shm::BreakerInfo& info) {
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

}  // namespace cutwater::server
