// SPDX-License-Identifier: Apache-2.0
// Thread lease: for limits with `thread-lease: k` a thread charges k tokens at once and then spends
// them privately, without touching shared memory: two processes on one hot key no longer fight for
// its line (spec memory 8.4; opt-in).
//
// A lease holds the slice (a, y] of the token axis. Spending c needs max(a, N(t)) + c <= y, then a
// moves there (guard LeaseDecays): what was not spent in time is gone, as in the bucket itself, so
// burst + rate * t holds whoever is stopped or killed; a kill costs at most k tokens, which refill.
// Per thread kThreadLeases leases at once; the oldest gives way and gives back its rest. A lease
// ends at a reload, at fork (the child has none), with its thread (the rest is given back) and when
// it cannot pay; then k are charged again, or, where the bucket does not have k, just the cost
// asked.
//
// Time: CLOCK_MONOTONIC_COARSE (3.5 ns instead of 23) rounded up by its tick, brought to the
// segment's clock when the lease was made; a later reading only decays more. What it refuses is
// decided again by the segment's clock. The stamp of such an answer is the reading used, at most a
// tick ahead of the segment's clock, and behind it where the coarse clock is late by more than a
// tick: by a suspend of the machine, by the time a hypervisor kept the processor that keeps the
// time (milliseconds on a crowded machine). By the stamps burst + rate * t holds all the same; by a
// better clock a lease may then have spent rate * lateness more, never more than k.
// The order is the one of every decision: clock, generation, compute.
// remaining() of such an answer counts the rest of the lease as there: this thread can spend it.
// Refund is exact: the last charge of the lease that is not given back yet goes back into it; once
// the lease has ended, TooLate.
//
// Hot: a thread that asks one key again and again finds its lease through one thread-local pointer
// and spends from it in place (spend_cheaply), half of which is the clock. What it takes is the
// number of its instructions and above all of its stores: no registers to save, each word of the
// answer stored once. Includes nothing heavier than <atomic>, <ctime> and our own.
// Thread safety: a thread sees its own leases only.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>

#include "base/guard.hpp"
#include "rule/token_clock.hpp"
#include "shm/counters.hpp"
#include "shm/limit/admit.hpp"
#include "shm/limit/bucket.hpp"
#include "src/limit_state.hpp"

namespace cutwater::detail {

inline constexpr int kThreadLeases = 8;

/// Leases are numbered from behind this on, never twice in a process, so that a resolved key can
/// keep the serial of its lease where it would keep the slot of its entry.
inline constexpr std::uint64_t kNoLease = std::uint64_t{1} << 63;

/// clock_gettime(), by the shortest way there is.
using ClockReader = int (*)(clockid_t, timespec*);

/// Tokens this thread holds: the slice (a, y] of one key, and the line of the clock it decays by.
struct alignas(64) Lease {
  std::uint64_t serial = kNoLease;       ///< of this lease
  const std::uint64_t* current_at = nullptr;          ///< `current` of the rules now,
  std::uint64_t current = 0;                          ///< and when it was made
  const std::atomic<std::uint64_t>* life_at = nullptr;   ///< fork_page().life now, and then
  std::uint64_t life = 0;
  std::uint64_t tokens = 0;              ///< as charged: no cost above it can be paid
  ClockReader read = nullptr;            ///< the coarse clock; of a stepped one, its word
  std::int64_t y = 0;

  std::int64_t a = 0;
  std::int64_t cheap = 0;                ///< the reading that `answer` is for
  std::uint64_t* counters = nullptr;     ///< LimitCounters of this thread, nullptr: shared stripe

  /// As charged: slot, tag, line; t and n: the segment's time, never behind, at `cheap`.
  DecisionNumbers answer{};

  std::int64_t ahead_ns = 0;             ///< segment time = cheap reading + this
  const std::int64_t* stepped = nullptr; ///< the word of a stepped clock
  rule::Piece piece;                     ///< mult, shift, base_t, base_n
  std::uint64_t number = 0;              ///< of the LimitState; 0 = free
  std::uint64_t client = 0;
  shm::KeyHash key;
  shm::StripeHandle stripe;              ///< where this thread counts
  std::uint32_t index = 0;               ///< of the limit
};

// The lease this thread used last; one that is nobody's when it has none. initial-exec: see
// thread_counter.hpp.
[[gnu::tls_model("initial-exec")]] extern thread_local constinit Lease* last_lease;

/// Rare: `lease` at another cheap reading of the clock.
void move_lease_on(Lease& lease, std::int64_t cheap) noexcept;

/// Rare: counts a grant of a lease on the shared stripe.
void count_lease_shared(const Lease& lease, std::uint64_t cost) noexcept;

/// The answer to a grant of `units` that left the lease at `lease.a`.
[[gnu::always_inline]] inline void answer_from(const Lease& lease, std::int64_t end,
                                               std::int64_t units, DecisionData& out) noexcept {
  // By pairs, each word stored once: the stores are what a lease takes its time for.
  using Pair = std::int64_t __attribute__((vector_size(16)));
  const DecisionNumbers& from = lease.answer;
  std::memcpy(static_cast<void*>(&out), &from, offsetof(DecisionNumbers, n));
  const Pair where{from.n, end};
  std::memcpy(&out.n, &where, sizeof where);
  const Pair what{units, reinterpret_cast<std::int64_t>(from.slot)};
  std::memcpy(&out.cost, &what, sizeof what);
  const Pair who{static_cast<std::int64_t>(from.tag), reinterpret_cast<std::int64_t>(from.owner)};
  std::memcpy(&out.tag, &who, sizeof who);
}

[[gnu::always_inline]] inline void count_from(const Lease& lease, std::uint64_t cost) noexcept {
  std::uint64_t* const counters = lease.counters;
  if (counters == nullptr) [[unlikely]] return count_lease_shared(lease, cost);
  shm::add_alone(counters + static_cast<int>(shm::LimitCounter::Allowed), 1);
  shm::add_alone(counters + static_cast<int>(shm::LimitCounter::Tokens), cost);
}

/// A reading of the clock that costs little. `lease` is the last one.
[[gnu::always_inline]] inline std::int64_t cheap_reading(const Lease& lease) noexcept {
  timespec reading;
  lease.read(CLOCK_MONOTONIC_COARSE, &reading);
  return std::int64_t{reading.tv_sec} * 1'000'000'000 + reading.tv_nsec;
}

/// Answers from `lease`, counted. False: nothing was done; decide_closely().
[[gnu::always_inline]] inline bool spend_cheaply(Lease& lease, std::uint64_t cost,
                                                 DecisionData& out) noexcept {
  if (cost - 1 >= lease.tokens) [[unlikely]] return false;
  const std::int64_t cheap = cheap_reading(lease);
  // acquire: as View::current(). relaxed: see counter_for().
  if (__atomic_load_n(lease.current_at, __ATOMIC_ACQUIRE) != lease.current ||
      (guarded(Guard::ForkDropsRow) &&
       lease.life_at->load(std::memory_order_relaxed) != lease.life)) [[unlikely]] {
    return false;
  }
  if (cheap != lease.cheap) [[unlikely]] move_lease_on(lease, cheap);
  const auto units = static_cast<std::int64_t>(cost << lease.answer.f);
  const std::int64_t n = lease.answer.n, a = lease.a;
  const std::int64_t end = (guarded(Guard::LeaseDecays) && n > a ? n : a) + units;
  if (end > lease.y) [[unlikely]] return false;
  lease.a = end;
  answer_from(lease, end, units, out);
  count_from(lease, cost);
  return true;
}

/// The same where the last lease is the one of this key.
[[gnu::always_inline]] inline bool spend_last_lease(const LimitState& state, shm::KeyHash key,
                                                    std::uint64_t cost,
                                                    DecisionData& out) noexcept {
  Lease& lease = *last_lease;
  return lease.number == state.number && lease.key.lo == key.lo && lease.key.hi == key.hi &&
         spend_cheaply(lease, cost, out);
}

/// Reads what never changes about the clocks. Called when a Client is made.
void prepare_leases() noexcept;

/// A decision of a limit that is_plain() says no of and spend_last_lease() did not answer: by
/// another lease of this thread or a new one where the limit has leases, else by a charge, after
/// the settings of a new generation were read. `cost` (over 0) and the key were checked.
/// False: the limit is special (decide.hpp), and nothing was done.
bool decide_closely(LimitState& state, const shm::AskedKey& key, std::uint64_t cost,
                    std::uint64_t& hint, DecisionData& out) noexcept;

/// Undo of an answer by a lease by the thread that got it; false: too late.
bool refund_to_lease(const LimitState& state, const DecisionData& receipt) noexcept;

/// Gives back what this thread holds at client `number`; 0: at every client. At thread end and when
/// a client closes.
void give_back_leases(std::uint64_t number) noexcept;

}  // namespace cutwater::detail
