// SPDX-License-Identifier: Apache-2.0
#include "stress/breaker_script.hpp"

namespace cutwater::test {

rule::BreakerSettings count_breaker(CountBreaker shape) {
  rule::BreakerSettings settings = rule::preset(rule::BreakerPreset::Resilience4j);
  settings.name.push_back('b');
  settings.window_calls = shape.window;
  settings.minimum_calls = shape.minimum;
  settings.probes = shape.probes;
  settings.slow_rate_ppm = rule::kOffPpm;
  settings.open_wait_ns = 1'000'000'000;
  settings.min_processes = rule::kMinProcessesOff;
  return settings;
}

shm::Ended end_of(char call) noexcept {
  switch (call) {
    case 'S': return shm::Ended::Success;
    case 'F': return shm::Ended::Failure;
    case 'I': return shm::Ended::Ignored;
    default: return shm::Ended::Cancelled;
  }
}

std::vector<shm::Event> events_of(const shm::View& view, shm::EventKind kind) {
  std::vector<shm::Event> found;
  for (const shm::Event& event : shm::read_events(view, 0, view.event_count).events) {
    if (event.kind == kind) found.push_back(event);
  }
  return found;
}

}  // namespace cutwater::test
