// SPDX-License-Identifier: Apache-2.0
// HoldKeeper: for a memory that no daemon looks after, what a refusal of a full bulkhead tells as
// the time to come back (shm/bulkhead/median.hpp). Its callers look: before they ask for a place
// and before they give one back, which costs one reading of the clock while nothing is due.
// Thread safety: everything from any thread; of threads that come at once one looks.
#pragma once
#include <atomic>
#include <cstdint>
#include <exception>

#include "shm/bulkhead/median.hpp"
#include "src/life_lock.hpp"

namespace cutwater::detail {

class HoldKeeper {
 public:
  void look(const shm::View& view) noexcept {
    const std::int64_t now = view.clock.now();
    // relaxed: when to look; the lock orders what is looked at.
    if (now < due_ns_.load(std::memory_order_relaxed) || !looking_.try_lock()) return;
    try {
      medians_.look(view);
      due_ns_.store(now + shm::HoldMedians::kStepNs, std::memory_order_relaxed);
    } catch (const std::exception&) {
      // Without memory for it the median stays unknown.
    }
    looking_.unlock();
  }

 private:
  client::LifeLock looking_;             // the next one
  shm::HoldMedians medians_;
  std::atomic<std::int64_t> due_ns_{0};
};

}  // namespace cutwater::detail
