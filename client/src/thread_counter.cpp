// SPDX-License-Identifier: Apache-2.0
#include "src/thread_counter.hpp"

#include <pthread.h>

#include <atomic>
#include <mutex>

#include "shm/stripe_life.hpp"
#include "src/core_registry.hpp"
#include "src/thread_lease.hpp"

namespace cutwater::detail {

thread_local constinit ThreadCounter thread_counter;

namespace {

/// One stripe this thread holds, or a shared one.
struct Held {
  std::uint64_t client = 0;          ///< 0 = free entry
  Word16 owner;                      ///< what the stripe's owner line says; {0, 0} = shared
  shm::StripeHandle stripe;
};

struct HeldStripes {
  std::uint64_t life = 0;
  std::uint64_t thread = 0;          ///< number of this thread in this process, 1..; 0 = none yet
  Held held[kThreadClients];
};

thread_local constinit HeldStripes held_stripes;

std::atomic<std::uint64_t> threads_numbered{0};
pthread_key_t exit_key;
std::once_flag exit_key_made;
bool exit_key_good = false;

/// Runs when the thread ends. A pthread key and not a destructor of a thread_local object: it needs
/// no allocation at a thread's first decision, and runs again when one of the program's own
/// destructors decides after us.
void on_thread_exit(void*) noexcept {
  give_back_leases(0);
  thread_counter = {};
  HeldStripes& mine = held_stripes;
  if (mine.life == process_life()) {
    for (Held& held : mine.held) {
      if (held.client == 0 || held.owner.lo == 0) continue;
      with_client(held.client, [](const shm::View& view, void* owner) {
        shm::release_stripe(view, *static_cast<const Word16*>(owner));
      }, &held.owner);
    }
  }
  mine = {};
}

}  // namespace

void prepare_thread_exit() noexcept {
  std::call_once(exit_key_made, [] {
    exit_key_good = pthread_key_create(&exit_key, on_thread_exit) == 0;
  });
}

ThreadCounter& find_thread_counter(const CounterPlace& state) noexcept {
  ThreadCounter& counter = thread_counter;
  HeldStripes& mine = held_stripes;
  const std::uint64_t life = process_life();
  // Those of another life are held by the thread of the parent that forked.
  if (guarded(Guard::ForkDropsRow) && mine.life != life) mine = {};
  mine.life = life;
  counter = {.client = state.client, .life = life, .stripe = shm::shared_stripe(*state.view),
             .sample_below = counter.sample_below};

  Held* place = nullptr;
  for (Held& held : mine.held) {
    if (held.client == state.client) {
      counter.stripe = held.stripe;
      return counter;
    }
    if (held.client == 0 && place == nullptr) place = &held;
  }
  if (place == nullptr) return counter;
  place->client = state.client;
  place->stripe = counter.stripe;
  const ClientRow row = *state.row;
  const bool ours = !guarded(Guard::ForkDropsRow) || row.life == life;
  // Without a way to give it back at the thread's end a stripe would be lost until the process's.
  if (row.index != 0 && ours && exit_key_good && pthread_setspecific(exit_key, &mine) == 0) {
    if (mine.thread == 0) {
      mine.thread = threads_numbered.fetch_add(1, std::memory_order_relaxed) + 1;
    }
    place->owner = {std::uint64_t{row.index} << 32 | row.generation, mine.thread};
    place->stripe = shm::claim_living_stripe(*state.view, place->owner);
    if (place->stripe.shared) place->owner = {};
    counter.stripe = place->stripe;
  }
  return counter;
}

}  // namespace cutwater::detail
