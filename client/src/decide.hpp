// SPDX-License-Identifier: Apache-2.0
// decide(): one decision of one limit, shared by every way of asking. Clock, look-up and swap are
// shm::charge()'s; this adds what belongs to the process: the thread's lease, its counters, and
// what to answer when the limit is gone.
//
// Hot, inlined into its callers: per decision one access to thread-local storage, two plain stores
// to count, no call but hash, charge and the clock. Includes nothing heavier than <atomic>,
// <chrono> and our own. Counting: Allowed and Refused count decisions, Tokens what was granted,
// Undone tokens given back, NoPlace and Degraded decisions so flagged, Waited those granted with a
// later start. A look counts nothing.
#pragma once
#include <cutwater/decision.hpp>

#include "shm/bucket.hpp"
#include "src/limit_state.hpp"
#include "src/thread_counter.hpp"
#include "src/thread_lease.hpp"

namespace cutwater::detail {

/// Rare: fills the answer for a key or a cost that no limit takes. Nothing is charged or counted.
void answer_argument(const LimitState& state, bool key_too_long, DecisionData& out) noexcept;

/// Rare: `outcome` was not an answer. Resolves the name once more and charges there, else answers
/// Reason::Degraded, with a hint of 100 ms: a reload may bring the name back.
/// True: an answer under ask.limit, which is the new place, to be counted.
bool decide_again(LimitState& state, shm::BucketAsk& ask, std::uint64_t& hint,
                  DecisionData& out) noexcept;

/// Rare: the answer while this limit cannot be decided by its rule.
void answer_degraded(const LimitState& state, DecisionData& out) noexcept;

/// Rare: counts what a flagged answer is.
void count_flags(const ThreadCounter& counter, std::uint32_t limit,
                 const DecisionData& out) noexcept;

/// Counts an answer of limit number `limit`.
[[gnu::always_inline]] inline void count(const ThreadCounter& counter, std::uint32_t limit,
                                         std::uint64_t cost, const DecisionData& out) noexcept {
  if (out.reason == Reason::Allowed) {
    counter.stripe.add(limit, shm::LimitCounter::Allowed, 1);
    counter.stripe.add(limit, shm::LimitCounter::Tokens, cost);
  } else {
    counter.stripe.add(limit, shm::LimitCounter::Refused, 1);
  }
  if (out.flags != 0) [[unlikely]] count_flags(counter, limit, out);
}

/// Rules changed since this limit was last looked at? Then what is cached of it is read again.
[[gnu::always_inline]] inline void notice_reload(LimitState& state) noexcept {
  const std::uint64_t current = state.view->current();
  // relaxed: the number is compared, nothing is read because of it.
  if (state.seen_current.load(std::memory_order_relaxed) != current) [[unlikely]] {
    refresh(state, current);
  }
}

/// One charge with everything around it. `cost` (over 0) and the key were checked. Fills all of
/// `out`.
[[gnu::always_inline]] inline void decide(LimitState& state, shm::KeyHash key, std::uint64_t cost,
                                          std::uint64_t& hint, DecisionData& out) noexcept {
  notice_reload(state);
  if (state.lease_tokens.load(std::memory_order_relaxed) != 0) [[unlikely]] {
    if (spend_lease(state, key, cost, out)) return;
  }
  // Before the charge: its swap is a barrier, and behind it these loads would have to queue.
  const ThreadCounter& counter = counter_for(state);
  shm::BucketAsk ask{.limit = unpack_ref(state.ref.load(std::memory_order_relaxed)),
                     .key = key,
                     .cost = cost,
                     .max_wait_ns = 0};
  bool answered = shm::charge(*state.view, ask, hint, out) == shm::Outcome::Answered;
  if (!answered) [[unlikely]] answered = decide_again(state, ask, hint, out);
  out.owner = &state;
  out.decided_by = state.decided_by;
  if (answered) [[likely]] count(counter, ask.limit.index, cost, out);
}

/// A look, the answer to a cost of 0 too: writes nothing, counts nothing. Fills all of `out`.
void look(LimitState& state, shm::KeyHash key, std::uint64_t cost, std::uint64_t& hint,
          DecisionData& out) noexcept;

}  // namespace cutwater::detail
