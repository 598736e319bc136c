// SPDX-License-Identifier: Apache-2.0
// SteppedClock: a moment that its owner moves. Every in-memory client made with it keeps a word of
// its own in its segment (that is what decisions read); moving the clock moves them all.
#include <sys/mman.h>

#include <algorithm>
#include <mutex>
#include <new>
#include <vector>

#include "src/core.hpp"

namespace cutwater {

struct SteppedClock::State::Followers {
  std::mutex mutex;
  std::vector<detail::CalendarRenewal*> segments;
};

namespace {
constexpr std::size_t kMomentBytes = 4096;
/// Stamps beyond the horizon are none.
constexpr std::int64_t kLastMomentNs = shm::kHorizonNs - kSteppedOriginNs;
}  // namespace

SteppedClock::State::State() : followers(std::make_unique<Followers>()) {
  // Shared with forked children, like the segments that follow.
  void* const page = mmap(nullptr, kMomentBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                          -1, 0);
  // Without such a page children see the moment of the fork; their segments still follow.
  now_ns = page == MAP_FAILED ? &own_now_ns : new (page) std::atomic<std::int64_t>(0);
}

SteppedClock::State::~State() {
  if (now_ns != &own_now_ns) munmap(now_ns, kMomentBytes);
}

void SteppedClock::State::move_to(std::int64_t at_ns) noexcept {
  at_ns = std::min(at_ns, kLastMomentNs);
  std::int64_t seen = now_ns->load(std::memory_order_relaxed);
  while (seen < at_ns && !now_ns->compare_exchange_weak(seen, at_ns, std::memory_order_acq_rel)) {}
  if (seen >= at_ns) return;
  const std::lock_guard lock(followers->mutex);
  for (detail::CalendarRenewal* segment : followers->segments) {
    segment->step_to(kSteppedOriginNs + at_ns);
  }
}

std::int64_t SteppedClock::State::now() const noexcept {
  return now_ns->load(std::memory_order_acquire);
}

void SteppedClock::State::add(detail::CalendarRenewal* segment) {
  const std::lock_guard lock(followers->mutex);
  followers->segments.push_back(segment);
  segment->step_to(kSteppedOriginNs + now());
}

void SteppedClock::State::remove(detail::CalendarRenewal* segment) noexcept {
  const std::lock_guard lock(followers->mutex);
  std::erase(followers->segments, segment);
}

SteppedClock::SteppedClock() : state_(std::make_shared<State>()) {}

void SteppedClock::advance(Nanos by) noexcept {
  if (by > Nanos{0}) state_->move_to(state_->now() + std::min(by.count(), kLastMomentNs));
}

void SteppedClock::set(Nanos at) noexcept { state_->move_to(at.count()); }

Nanos SteppedClock::now() const noexcept { return Nanos{state_->now()}; }

}  // namespace cutwater
