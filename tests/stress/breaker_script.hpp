// SPDX-License-Identifier: Apache-2.0
// What every BreakerWorld shares, whichever way its processes ask: the usual breaker, scripts of
// calls, and the events of one kind.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "rule/breaker_settings.hpp"
#include "shm/breaker/breaker.hpp"
#include "shm/event_log.hpp"

namespace cutwater::test {

/// COUNT window of N with this minimum, failure rate 50 %, slow off, wait 1000 ms, exclusive edge,
/// half-open decided by the rate of P.
struct CountBreaker {
  std::uint32_t window = 10;
  std::uint32_t minimum = 5;
  std::uint32_t probes = 2;
};
rule::BreakerSettings count_breaker(CountBreaker shape = {});

/// S success, F failure, I ignored, any other cancelled.
shm::Ended end_of(char call) noexcept;

/// "SSFI": calls of this world one after the other; a refused one is an X in what comes back, the
/// others are written as they were asked.
template <class World>
std::string run_script(World& world, std::string_view script) {
  std::string out;
  for (const char c : script) out += world.call(end_of(c)) ? c : 'X';
  return out;
}

/// Events of this kind, repeats dropped.
std::vector<shm::Event> events_of(const shm::View& view, shm::EventKind kind);

}  // namespace cutwater::test
