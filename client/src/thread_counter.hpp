// SPDX-License-Identifier: Apache-2.0
// ThreadCounter: where this thread counts its decisions, found with one access to thread-local
// storage. A thread claims a stripe of a Client's counters at its first decision there and gives it
// back when it ends; threads of a forked child, and threads that find no free stripe, use the
// shared stripe with atomic adds (guard ForkDropsRow: a child never writes to a stripe of its
// parent).
//
// The stripe of the Client asked last is kept at hand; up to kThreadClients others are remembered,
// beyond that the shared stripe is used. Nothing here allocates or calls the kernel.
// Hot: includes nothing heavier than <atomic> and our own.
#pragma once
#include <cstdint>

#include "base/fork_page.hpp"
#include "base/guard.hpp"
#include "shm/counters.hpp"

#include "src/limit_state.hpp"
#include "src/top_sample.hpp"

namespace cutwater::detail {

/// Clients one thread keeps a stripe in at once.
inline constexpr int kThreadClients = 8;

struct ThreadCounter {
  std::uint64_t client = 0;        ///< number of the Client `stripe` belongs to; 0 = none yet
  std::uint64_t life = 0;          ///< process_life() it was claimed in
  shm::StripeHandle stripe;
  SampleBelow sample_below = kSampleAll;   ///< of this thread's decisions at all its clients
};

// initial-exec: one instruction instead of a call; 40 bytes, so the library can be loaded late too.
[[gnu::tls_model("initial-exec")]] extern thread_local constinit ThreadCounter thread_counter;

/// What of a record says where its decisions are counted.
struct CounterPlace {
  const shm::View* view;
  const ClientRow* row;
  std::uint64_t client;
};

/// Rare: the stripe of this thread at this Client, claimed when needed; becomes the one at hand.
ThreadCounter& find_thread_counter(const CounterPlace& state) noexcept;

/// The counter to use for a decision of `state`, a LimitState or a BreakerPlace.
template <class Record>
[[gnu::always_inline]] inline ThreadCounter& counter_for(const Record& state) noexcept {
  ThreadCounter& counter = thread_counter;
  // relaxed: the number carries its whole meaning. A forked child reads 0, or a number of its own.
  const bool same_life = !guarded(Guard::ForkDropsRow) ||
                         counter.life == state.life->load(std::memory_order_relaxed);
  if (counter.client == state.client && same_life) [[likely]] return counter;
  return find_thread_counter({state.view, state.row, state.client});
}

/// Makes threads give back what they hold when they end. Called when a Client is made, before any
/// thread can count there.
void prepare_thread_exit() noexcept;

}  // namespace cutwater::detail
