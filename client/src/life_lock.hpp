// SPDX-License-Identifier: Apache-2.0
// LifeLock: one holder at a time within one process; a forked child finds it free whatever its
// parent did. For rare work: who does not get it spins or does without.
// Thread safety: everything from any thread.
#pragma once
#include <atomic>
#include <cstdint>

namespace cutwater::client {

class LifeLock {
 public:
  bool try_lock() noexcept;
  void unlock() noexcept { holder_.store(0, std::memory_order_release); }

 private:
  std::atomic<std::uint64_t> holder_{0};      // its process_life()
};

}  // namespace cutwater::client
