// SPDX-License-Identifier: Apache-2.0
#include "rows/words_of_event.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "shm/breaker/breaker.hpp"
#include "shm/bulkhead/bulkhead.hpp"

namespace cutwater::rows {
namespace {

std::string state_word(std::uint8_t state) {
  if (state >= rule::kBreakerStates) return "?";
  return std::string(rule::name_of(static_cast<rule::BreakerState>(state)));
}

std::string with(std::string text, std::uint8_t reason) {
  const std::string why = words_of(static_cast<rule::BreakerReason>(reason));
  return why.empty() ? text : text + ": " + why;
}

/// From "4711 12/12 1/80 worker": pid, failures of its calls, of the others', command.
std::string local_fault(const std::string& breaker, const char* text) {
  unsigned long long pid = 0, failed = 0, calls = 0, rest_failed = 0, rest = 0;
  char command[29] = "";
  const int read = std::sscanf(text, "%llu %llu/%llu %llu/%llu %28[^\n]", &pid, &failed, &calls,
                               &rest_failed, &rest, command);
  std::string out = breaker + ": ";
  if (read < 5) return out + "one process refuses for itself (" + text + ")";
  out += "pid " + std::to_string(pid);
  if (read > 5) out += std::string(" (") + command + ")";
  return out + " refuses for itself, " + std::to_string(failed) + " of its " +
         std::to_string(calls) + " calls failed, of the others' " + std::to_string(rest_failed) +
         " of " + std::to_string(rest);
}

}  // namespace

std::string words_of(rule::BreakerReason reason) {
  using rule::BreakerReason;
  switch (reason) {
    case BreakerReason::FailureRate:
      return "failure rate";
    case BreakerReason::SlowRate:
      return "rate of slow calls";
    case BreakerReason::FailureCount:
      return "number of failures";
    case BreakerReason::Consecutive:
      return "failures in a row";
    case BreakerReason::Hint:
      return "a call asked for it (Retry-After)";
    case BreakerReason::ProbeFailed:
      return "probes failed";
    case BreakerReason::ProbesSucceeded:
      return "probes succeeded";
    case BreakerReason::WaitOver:
      return "the wait was over";
    case BreakerReason::HalfOpenWaitOver:
      return "half-open took too long";
    case BreakerReason::ByHand:
      return "by hand";
    case BreakerReason::Expired:
      return "the time of a state by hand was over";
    case BreakerReason::Reset:
      return "reset";
    case BreakerReason::Reloaded:
      return "its rules of half-open were changed";
    case BreakerReason::LocalFault:
      return "calls of one process fail, those of others do not";
    case BreakerReason::None:
      break;
  }
  return {};
}

std::string subject_of(const shm::View& view, const shm::Event& event) {
  const std::string_view text = event.text;
  switch (event.kind) {
    case shm::EventKind::PlaceReclaimed:
    case shm::EventKind::PlaceRevoked: {
      shm::BulkheadInfo info;
      const bool there = shm::read_bulkhead(view, event.object, info);
      return there && std::string_view(info.name).starts_with(text) ? info.name : std::string(text);
    }
    case shm::EventKind::BreakerMoved:
    case shm::EventKind::BreakerWouldOpen:
    case shm::EventKind::BreakerProbeExpired:
    case shm::EventKind::BreakerReclaimed:
    case shm::EventKind::BreakerLocalFault:
    case shm::EventKind::BreakerFlapping:
      break;
    default:
      return {};
  }
  shm::BreakerInfo info;
  const bool there = shm::read_breaker(view, event.object, info);
  // The index may be another breaker's by now; the text of a local fault is no name.
  if (event.kind == shm::EventKind::BreakerLocalFault) return there ? info.name : "a breaker";
  return there && std::string_view(info.name).starts_with(text) ? info.name : std::string(text);
}

std::string words_of(const shm::View& view, const shm::Event& event) {
  const std::string name = subject_of(view, event);
  switch (event.kind) {
    case shm::EventKind::BreakerMoved:
      return with(name + " " + state_word(event.from) + " -> " + state_word(event.to),
                  event.reason);
    case shm::EventKind::BreakerWouldOpen:
      return with(name + " would open, and METRICS_ONLY only says so", event.reason);
    case shm::EventKind::BreakerProbeExpired:
      return name + ": a probe's deadline passed, its process lives (row " +
             std::to_string(event.row) + ")";
    case shm::EventKind::BreakerReclaimed:
      return name + ": a probe came back from a process that ended (row " +
             std::to_string(event.row) + ")";
    case shm::EventKind::BreakerLocalFault:
      return with(local_fault(name, event.text), event.reason);
    case shm::EventKind::PlaceReclaimed:
      return name + ": a place came back from a process that ended (row " +
             std::to_string(event.row) + ")";
    case shm::EventKind::PlaceRevoked:
      return name + ": a place was taken back, held for longer than max-hold (row " +
             std::to_string(event.row) + ")";
    case shm::EventKind::BreakerFlapping:
      return name + " opens again and again: four times or more within ten minutes";
    default:
      return {};
  }
}

std::int64_t unix_offset_ns(const shm::View& view) {
  if (view.clock.is_stepped()) return 0;
  const auto wall = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(wall).count() - view.clock.now();
}

std::uint64_t unix_ms(std::int64_t stamp_ns, std::int64_t offset_ns) {
  std::int64_t at = 0;
  if (__builtin_add_overflow(stamp_ns, offset_ns, &at)) return 0;
  return static_cast<std::uint64_t>(std::max<std::int64_t>(at, 0)) / 1'000'000;
}

}  // namespace cutwater::rows
