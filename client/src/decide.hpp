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

#include "shm/limit/admit.hpp"
#include "shm/limit/bucket_fast.hpp"
#include "src/ask/elsewhere.hpp"
#include "src/limit_state.hpp"
#include "src/thread_counter.hpp"
#include "src/thread_lease.hpp"

namespace cutwater::detail {

/// Rare: fills the answer for a key or a cost that no limit takes. Nothing is charged or counted.
void answer_argument(const LimitState& state, bool key_too_long, DecisionData& out) noexcept;

/// Rare: `outcome` was not an answer. Resolves the name once more and charges there, else answers
/// Reason::Degraded, with a hint of 100 ms: a reload may bring the name back.
/// True: an answer under ask.limit, which is the new place, to be counted.
/// `text`: the key's bytes.
bool decide_again(LimitState& state, shm::BucketAsk& ask, std::string_view text,
                  std::uint64_t& hint, DecisionData& out) noexcept;

/// What an ask is that the fast path did not decide: first sight of a key, new rules, a lost race.
struct SlowAsk {
  shm::LimitRef limit;
  shm::KeyHash key;
  std::uint64_t cost = 1;
  std::int64_t t = 0;                  ///< the reading of the clock
  std::string_view text;               ///< the key's bytes
};
struct Decided {
  bool answered = false;
  std::uint32_t index = 0;             ///< of the limit, where it was decided
};
/// Rare: decides it, if need be by decide_again(). One call apart from the fast path, so that what
/// only this wants costs the fast path neither a register nor an instruction.
[[gnu::cold, gnu::noinline]] Decided decide_slowly(LimitState& state, const SlowAsk& asked,
                                                   std::uint64_t& hint,
                                                   DecisionData& out) noexcept;

/// Rare: the answer while this limit cannot be decided by its rule.
void answer_degraded(const LimitState& state, DecisionData& out) noexcept;

/// Rare: counts what a flagged answer is.
void count_flags(const ThreadCounter& counter, std::uint32_t limit,
                 const DecisionData& out) noexcept;

/// Rare: count() for a thread without a stripe of its own.
[[nodiscard]] bool count_shared(const ThreadCounter& counter, std::uint32_t limit,
                                std::uint64_t cost, const DecisionData& out) noexcept;

/// Counts an answer of limit number `limit`. True: note_sample() is to have it.
[[nodiscard, gnu::always_inline]] inline bool count(const ThreadCounter& counter,
                                                    std::uint32_t limit, std::uint64_t cost,
                                                    const DecisionData& out) noexcept {
  const shm::StripeHandle stripe = counter.stripe;
  if (stripe.shared) [[unlikely]] return count_shared(counter, limit, cost, out);
  std::uint64_t number;
  if (out.reason == Reason::Allowed) {
    number = stripe.add(limit, shm::LimitCounter::Allowed, 1);
    stripe.add(limit, shm::LimitCounter::Tokens, cost);
  } else {
    number = stripe.add(limit, shm::LimitCounter::Refused, 1);
  }
  if (out.flags != 0) [[unlikely]] count_flags(counter, limit, out);
  return is_sampled(number, counter.sample_below);
}

/// Rare: note_sample() of an answer.
[[gnu::cold, gnu::noinline]] void note_answer(const LimitState& state, std::uint32_t limit,
                                              const shm::AskedKey& key,
                                              const DecisionData& out) noexcept;

/// Rare: counts an answer of shm/limit/admit.hpp, and notes it when it is sampled. ask.cost is over
/// 0.
void count_admitted(const LimitState& state, const shm::AdmitAsk& ask,
                    const DecisionData& out) noexcept;

/// Rules changed since this limit was last looked at? Then what is cached of it is read again.
inline void notice_reload(LimitState& state) noexcept {
  const std::uint64_t current = state.view->current();
  // relaxed: the number is compared, nothing is read because of it.
  if (state.seen_current.load(std::memory_order_relaxed) != current) refresh(state, current);
}

/// True: not one plain window; asked by the functions below. Reads the settings of new rules first.
inline bool is_special(LimitState& state) noexcept {
  notice_reload(state);
  // relaxed: the value carries its whole meaning.
  return state.special.load(std::memory_order_relaxed);
}

/// A key's bytes as given: the empty key has an address too, unlike bytes that are not there.
inline std::string_view given(std::string_view key) noexcept {
  return key.data() == nullptr ? std::string_view{""} : key;
}
enum class SpecialAsk : std::uint8_t { Charge, Look, After };
/// Rare: one ask of a limit that is not plain (shm/limit/admit.hpp). ask.limit is filled in here.
/// Counts all but a look, and fills all of `out`. A key whose handle has no bytes is answered
/// Degraded where patterns would want them.
void ask_specially(LimitState& state, shm::AdmitAsk ask, SpecialAsk how,
                   DecisionData& out) noexcept;
/// Rare: a charge of `cost` (over 0, checked).
void decide_specially(LimitState& state, shm::AskedKey key, std::uint64_t cost,
                      DecisionData& out) noexcept;

/// The charge alone, and its counting.
/// False: the limit turned out to be special, and nothing was done: decide_specially().
bool decide_plainly(LimitState& state, const shm::AskedKey& key, std::uint64_t cost,
                    std::uint64_t& hint, DecisionData& out) noexcept;

/// True: a decision of this limit is just a charge. False: decide_closely().
[[gnu::always_inline]] inline bool is_plain(const LimitState& state) noexcept {
  // relaxed: the number is compared, nothing is read because of it.
  return state.plain_current.load(std::memory_order_relaxed) == state.view->current();
}

/// One charge with everything around it. `cost` (over 0) and the key were checked; `hash_key()`
/// makes the key's hash, as late as is good for the machine, `hash_key.bytes()` gives its bytes,
/// `hash_key.elsewhere(cost, answer)` asks where a record that is away wants it. Fills all of
/// `answer`.
template <class HashKey>
[[gnu::always_inline]] inline void decide_hashing(LimitState& state, HashKey&& hash_key,
                                                  std::uint64_t cost, std::uint64_t& hint,
                                                  Decision& answer) noexcept {
  DecisionData& out = answer.data();
  const shm::View& view = *state.view;
  shm::KeyHash key;
  const bool hash_first = !shm::likely_cached(view);
  if (hint < view.slot_count) {
    __builtin_prefetch(view.slots + hint, 1);
  } else if (hash_first) [[unlikely]] {
    key = hash_key();
    shm::prefetch(view, key);
  }
  // First of all that can wait for it: reading the clock takes longer than the rest, which runs in
  // its shadow. An older stamp is never wrong, only a little stricter.
  if (!is_plain(state)) [[unlikely]] {
    if (is_away(state)) return hash_key.elsewhere(cost, answer);
    key = hash_key();
    if (spend_last_lease(state, key, cost, out)) return;
    const shm::AskedKey asked{key, hash_key.bytes()};
    if (decide_closely(state, asked, cost, hint, out)) return;
    return decide_specially(state, asked, cost, out);
  }
  const ThreadCounter& counter = counter_for(state);
  const std::int64_t t = view.clock.now();
  const shm::LimitRef ref = unpack_ref(state.ref.load(std::memory_order_relaxed));
  if (hint < view.slot_count || !hash_first) [[likely]] key = hash_key();
  std::uint32_t index = ref.index;
  bool answered = shm::detail::charge_fast(view, ref, key, cost, t, hint, out);
  if (!answered) [[unlikely]] {
    const Decided slowly = decide_slowly(state, {ref, key, cost, t, hash_key.bytes()}, hint, out);
    answered = slowly.answered;
    index = slowly.index;
  }
  out.owner = &state;
  out.decided_by = state.decided_by;
  if (answered && count(counter, index, cost, out)) [[unlikely]] {
    note_answer(state, index, {key, hash_key.bytes()}, out);
  }
}

/// A look, the answer to a cost of 0 too: writes nothing, counts nothing. Fills all of `out`.
void look(LimitState& state, shm::AskedKey key, std::uint64_t cost, std::uint64_t& hint,
          DecisionData& out) noexcept;

}  // namespace cutwater::detail
