// SPDX-License-Identifier: Apache-2.0
// A breaker's state as the protocol says it. Pure. Thread safety: values.
#pragma once
#include "rule/breaker_text.hpp"
#include "shm/breaker/breaker.hpp"
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

}  // namespace cutwater::server
