// SPDX-License-Identifier: Apache-2.0
#include "src/calendar_renewal.hpp"

#include <algorithm>
#include <ctime>
#include <exception>

#include "base/fork_page.hpp"
#include "shm/segment.hpp"

namespace cutwater::detail {
namespace {

/// After one that was not possible (a zone file is gone, a change is not in force yet).
constexpr std::int64_t kTryAgainNs = 1'000'000'000;

std::int64_t wall_offset_at(std::int64_t now_ns) noexcept {
  timespec wall{};
  clock_gettime(CLOCK_REALTIME, &wall);
  return std::int64_t{wall.tv_sec} * 1'000'000'000 + wall.tv_nsec - now_ns;
}

}  // namespace

CalendarRenewal::CalendarRenewal(const shm::View& view, shm::Publisher& publisher) noexcept
    : view_(view), publisher_(publisher), life_(process_life()), due_ns_(publisher.renew_at()) {}

bool CalendarRenewal::publish() noexcept {
  try {
    return publisher_.renew().ok();
  } catch (const std::exception&) {
    return false;                          // no memory for it
  }
}

void CalendarRenewal::renew() noexcept {
  if (life_ != process_life()) return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return;           // somebody is at it
  const std::int64_t now = view_.clock.now();
  if (now < due_ns_.load(std::memory_order_relaxed)) return;
  publisher_.set_wall_offset(wall_offset_at(now));
  if (publish()) note_due();
  if (due_ns_.load(std::memory_order_relaxed) > now) return;
  due_ns_.store(now + kTryAgainNs, std::memory_order_relaxed);
}

void CalendarRenewal::step_to(std::int64_t at_ns) noexcept {
  if (life_ != process_life()) {
    shm::step_clock(view_, at_ns);
    return;
  }
  const std::lock_guard lock(mutex_);
  for (int i = 1; i <= kMostAtOnce; ++i) {
    const std::int64_t now = view_.clock.now();
    const std::int64_t due = due_ns_.load(std::memory_order_relaxed);
    if (due > at_ns || now >= at_ns) break;
    const std::int64_t moment = i == kMostAtOnce ? at_ns : std::max(due, now + 1);
    // A publication is in force 1 ns after the moment it is made, and moves the clock there.
    shm::step_clock(view_, moment - 1);
    if (!publish()) break;
    note_due();
    if (due_ns_.load(std::memory_order_relaxed) <= due) break;
  }
  shm::step_clock(view_, at_ns);
}

}  // namespace cutwater::detail
