// SPDX-License-Identifier: Apache-2.0
// CalendarRenewal: the daemon's renewal of calendar edges, for in-memory clients, which have none.
// A calendar is known for shm::kCalendarEdges periods ahead and written anew when fewer than
// shm::kEdgesAhead are left.
//
//   on a SteppedClock  when the clock is moved, exactly at the edge that makes it due, so no answer
//                      is extrapolated, however far it is moved (kMostAtOnce renewals; then at the
//                      end alone, beyond 192 periods)
//   on a running one   before a limit with a calendar decides, on its caller's thread. It is in
//                      force shm::kPublishAheadNs later: a client that was silent for more than 24
//                      periods extrapolates so long
//
// It also guards the client's publisher, which reload() uses too. A forked child renews nothing.
// Thread safety: everything from any thread.
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>

#include "shm/publisher.hpp"

namespace cutwater::detail {

class CalendarRenewal {
 public:
  static constexpr int kMostAtOnce = 16;

  /// Both outlive it.
  CalendarRenewal(const shm::View& view, shm::Publisher& publisher) noexcept;

  /// A running clock. Costs a clock reading while nothing is due.
  void renew_if_due() noexcept {
    // relaxed: one that is missed is found by the next.
    if (view_.clock.now() >= due_ns_.load(std::memory_order_relaxed)) renew();
  }

  /// Moves the segment's stepped clock to `at_ns`, renewing on the way.
  void step_to(std::int64_t at_ns) noexcept;

  /// Uses the publisher as nobody else does meanwhile.
  template <class Use>
  auto with_publisher(Use use) {
    const std::lock_guard lock(mutex_);
    auto result = use(publisher_);
    note_due();
    return result;
  }

 private:
  void renew() noexcept;
  bool publish() noexcept;
  void note_due() noexcept { due_ns_.store(publisher_.renew_at(), std::memory_order_relaxed); }

  const shm::View& view_;
  shm::Publisher& publisher_;
  const std::uint64_t life_;             // process_life() of whose it is
  std::mutex mutex_;                     // the publisher, and changes of due_ns_
  std::atomic<std::int64_t> due_ns_;
};

}  // namespace cutwater::detail
