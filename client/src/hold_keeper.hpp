// SPDX-License-Identifier: Apache-2.0
// HoldKeeper: the daemon's part in bulkheads, for a memory that no daemon looks after: what a
// refusal of a full one tells as the time to come back (shm/bulkhead/median.hpp), and `max-hold`.
// Its callers look: before they ask for a place the long way and before they give one back, when
// they ask how it stands, and each time they wake in line. That costs one reading of the clock
// while nothing is due. Nobody takes a place back while nobody looks, and nobody misses it then.
// Thread safety: everything from any thread; of threads that come at once one looks.
#pragma once
#include <atomic>
#include <cstdint>
#include <exception>

#include "shm/bulkhead/bulkhead.hpp"
#include "shm/bulkhead/median.hpp"
#include "shm/counters.hpp"
#include "src/life_lock.hpp"

namespace cutwater::detail {

class HoldKeeper {
 public:
  /// How late a place may come back after its max-hold, when somebody asks all the time.
  static constexpr std::int64_t kTickNs = 10'000'000;

  void look(const shm::View& view) noexcept {
    const std::int64_t now = view.clock.now();
    // relaxed: when to look; the lock orders what is looked at.
    if (now < due_ns_.load(std::memory_order_relaxed) || !looking_.try_lock()) return;
    take_back(view);
    look_at_medians(view);
    // On a stepped clock the moment after max-hold is exactly that.
    due_ns_.store(view.clock.is_stepped() ? now : now + kTickNs, std::memory_order_relaxed);
    looking_.unlock();
  }

 private:
  static void take_back(const shm::View& view) noexcept {
    for (std::uint32_t i = 0; i < view.bulkhead_count; ++i) {
      shm::BulkheadInfo info;
      if (!shm::read_bulkhead(view, i, info) || info.max_hold_ns == 0 || info.in_use == 0) continue;
      static_cast<void>(shm::tick_bulkhead(view, i, shm::shared_stripe(view)));
    }
  }
  void look_at_medians(const shm::View& view) noexcept {
    try {
      medians_.look(view);
    } catch (const std::exception&) {
      // Without memory for it the median stays unknown.
    }
  }

  client::LifeLock looking_;             // the next one
  shm::HoldMedians medians_;
  std::atomic<std::int64_t> due_ns_{0};
};

}  // namespace cutwater::detail
