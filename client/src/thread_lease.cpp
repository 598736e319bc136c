// SPDX-License-Identifier: Apache-2.0
#include "src/thread_lease.hpp"

#include <algorithm>

#include "base/coarse_clock.hpp"
#include "rule/token_clock.hpp"
#include "src/core_registry.hpp"
#include "src/decide.hpp"
#include "src/thread_counter.hpp"

namespace cutwater::detail {
namespace {

using rule::Units;

/// Tick of CLOCK_MONOTONIC_COARSE.
std::atomic<std::int64_t> coarse_tick_ns{10'000'000};

/// The vdso's own function where it can be had: 3.5 ns instead of 5.
std::atomic<ClockReader> clock_reader{clock_gettime};

struct Leases {
  Lease lease[kThreadLeases];
  std::uint64_t life = 0;                ///< process_life() they were made in
  std::uint32_t next = 0;                ///< the one that gives way
};

thread_local Leases leases;

/// relaxed: all it has to be is another one.
std::atomic<std::uint64_t> serials{kNoLease};

/// What a thread without a lease used last: nobody's. Never written.
constinit Lease no_lease;

/// A ClockReader for leases on a stepped clock: of the last lease, as every cheap reading is.
int read_stepped(clockid_t, timespec* reading) noexcept {
  // acquire: as SegmentClock::now().
  *reading = {0, __atomic_load_n(last_lease->stepped, __ATOMIC_ACQUIRE)};
  return 0;
}

/// What to add to a cheap reading so that it is never behind the segment's clock.
std::int64_t ahead_of_cheap(const Lease& lease, const shm::View& view) noexcept {
  if (view.clock.is_stepped()) return 0;
  timespec before;                                       // so the error is on the safe side
  lease.read(CLOCK_MONOTONIC, &before);
  const std::int64_t monotonic = std::int64_t{before.tv_sec} * 1'000'000'000 + before.tv_nsec;
  // relaxed: see prepare_leases().
  return view.clock.now() - monotonic + coarse_tick_ns.load(std::memory_order_relaxed);
}

/// Where what is left of the lease begins at N(t).
Units left_from(const Lease& lease, Units n) noexcept {
  return guarded(Guard::LeaseDecays) ? std::max(lease.a, n) : lease.a;
}

void forget(Lease& lease) noexcept {
  lease.serial = kNoLease;
  lease.number = 0;
}

/// Ends a lease and puts back what is left, as far as nobody charged after it.
void end_lease(Lease& lease, const shm::View& view) noexcept {
  const Units rest = lease.y - left_from(lease, rule::units_at(lease.piece, view.clock.now()));
  if (rest > 0) {
    DecisionData receipt;
    static_cast<DecisionNumbers&>(receipt) = lease.answer;
    receipt.level = lease.y;
    receipt.cost = rest;                 // undo(y, y - max(a, N)): exact, only from the top
    shm::undo(view, receipt);
  }
  forget(lease);
}

/// Ends a lease whose client may be gone.
void end_if_open(Lease& lease) noexcept {
  with_client(lease.client, [](const shm::View& view, void* ending) {
    end_lease(*static_cast<Lease*>(ending), view);
  }, &lease);
  forget(lease);
}

/// This thread's leases; those of a former life are forgotten, they are the parent's.
Leases& my_leases() noexcept {
  Leases& mine = leases;
  const std::uint64_t life = process_life();
  if (mine.life != life) [[unlikely]] {
    for (Lease& lease : mine.lease) forget(lease);
    mine.life = life;
  }
  return mine;
}

Lease* find(Leases& mine, const LimitState& state, shm::KeyHash key) noexcept {
  for (Lease& lease : mine.lease) {
    if (lease.number == state.number && lease.key.lo == key.lo && lease.key.hi == key.hi) {
      return last_lease = &lease;
    }
  }
  return nullptr;
}

/// Spends by the segment's clock. False: the lease has not got that, or is of former rules.
bool spend_exactly(Lease& lease, const shm::View& view, std::uint64_t cost,
                   DecisionData& out) noexcept {
  const std::int64_t t = view.clock.now();
  if (view.current() != lease.current) return false;
  const Units n = rule::units_at(lease.piece, t);
  const Units units = static_cast<Units>(cost) << lease.answer.f;
  const Units end = left_from(lease, n) + units;
  if (end > lease.y) return false;
  lease.a = end;
  answer_from(lease, end, units, out);
  out.t = t;
  out.n = n;
  count_from(lease, cost);
  return true;
}

/// Makes `lease` what `charge` got under the rules `current`.
void fill_lease(Lease& lease, LimitState& state, shm::KeyHash key, std::uint64_t tokens,
                std::uint64_t current, const DecisionData& charge) noexcept {
  const shm::View& view = *state.view;
  lease.serial = serials.fetch_add(1, std::memory_order_relaxed) + 1;
  lease.number = state.number;
  lease.client = state.client;
  lease.key = key;
  lease.tokens = tokens;
  lease.current = current;
  lease.current_at = &view.rules_control->current;
  lease.life_at = state.life;
  lease.life = process_life();
  lease.stepped = view.clock.stepped_word();
  lease.a = charge.level - charge.cost;
  lease.y = charge.level;
  lease.piece = {charge.mult, charge.base_t, charge.base_n, charge.burst, 0, 0, charge.shift};
  lease.answer = charge;
  lease.answer.decided_by = DecidedBy::ThreadLease;
  lease.answer.owner = &state;
  lease.index = unpack_ref(state.ref.load(std::memory_order_relaxed)).index;
  // A thread that holds something gives it back when it ends: finding its counter sees to that.
  lease.stripe = counter_for(state).stripe;
  lease.counters = lease.stripe.shared ? nullptr : lease.stripe.of(lease.index).value;
  lease.read = lease.stepped != nullptr ? read_stepped
                                        : clock_reader.load(std::memory_order_relaxed);
  lease.ahead_ns = ahead_of_cheap(lease, view);
  last_lease = &lease;
  move_lease_on(lease, cheap_reading(lease));
}

/// Charges a new lease into a free place. nullptr: the bucket does not have that much now.
Lease* make_lease(Leases& mine, LimitState& state, const shm::AskedKey& asked,
                  std::uint64_t tokens) noexcept {
  const shm::View& view = *state.view;
  const shm::KeyHash key = asked.hash;
  shm::BucketAsk ask{.limit = unpack_ref(state.ref.load(std::memory_order_relaxed)),
                     .key = key,
                     .cost = tokens,
                     .max_wait_ns = 0};
  ask.text = asked.text;
  const std::uint64_t current = view.current();
  // Rules that came since the settings were read may want more than one plain window.
  if (state.seen_current.load(std::memory_order_relaxed) != current) return nullptr;
  DecisionData charge;
  std::uint64_t hint = shm::kNoSlot;
  if (shm::charge(view, ask, hint, charge) != shm::Outcome::Answered) return nullptr;
  if (charge.reason != Reason::Allowed) return nullptr;
  // No lease where the answer is not one plain line: an overflow word, a rule about to change.
  if (charge.flags != 0 || charge.computed || charge.slot == nullptr || view.current() != current) {
    if (charge.receipt != Receipt::None) shm::undo(view, charge);
    return nullptr;
  }
  Lease& lease = mine.lease[mine.next];
  mine.next = (mine.next + 1) % kThreadLeases;
  if (lease.number != 0) end_if_open(lease);
  fill_lease(lease, state, key, tokens, current, charge);
  return &lease;
}

/// Notes a fresh lease among the top keys, for all decisions of this cost that it may pay.
void note_lease(const LimitState& state, const Lease& lease, const shm::AskedKey& key,
                std::uint64_t cost) noexcept {
  if (!is_sampled(lease.serial, thread_counter.sample_below)) return;
  note_sample(state, {.limit = lease.index,
                      .key = key.hash,
                      .text = key.text,
                      .t = lease.answer.t,
                      .asks = lease.tokens / cost});
}

/// Another lease than the last one, a new one, or none (false): where the bucket cannot pay one.
bool spend_another(LimitState& state, Leases& mine, const shm::AskedKey& key, std::uint64_t cost,
                   DecisionData& out) noexcept {
  const shm::View& view = *state.view;
  if (Lease* lease = find(mine, state, key.hash); lease != nullptr) {
    if (spend_exactly(*lease, view, cost, out)) return true;
    end_lease(*lease, view);
  }
  const std::uint64_t tokens = state.lease_tokens.load(std::memory_order_relaxed);
  Lease* const fresh = make_lease(mine, state, key, tokens);
  if (fresh == nullptr) return false;
  note_lease(state, *fresh, key, cost);
  if (spend_exactly(*fresh, view, cost, out)) return true;
  end_lease(*fresh, view);               // stopped so long that it is gone already
  return false;
}

}  // namespace

thread_local constinit Lease* last_lease = &no_lease;

void prepare_leases() noexcept {
  // relaxed, both: a value that is the same whoever reads it.
  timespec tick;
  if (clock_getres(CLOCK_MONOTONIC_COARSE, &tick) == 0) {
    coarse_tick_ns.store(std::int64_t{tick.tv_sec} * 1'000'000'000 + tick.tv_nsec,
                         std::memory_order_relaxed);
  }
  clock_reader.store(find_clock_reader(), std::memory_order_relaxed);
  prepare_coarse_clock();
}

bool decide_closely(LimitState& state, const shm::AskedKey& key, std::uint64_t cost,
                    std::uint64_t& hint, DecisionData& out) noexcept {
  if (is_special(state)) return false;
  // relaxed: the number carries its whole meaning.
  const std::uint64_t tokens = state.lease_tokens.load(std::memory_order_relaxed);
  if (tokens != 0 && cost <= tokens && spend_another(state, my_leases(), key, cost, out)) {
    hint = last_lease->serial;
    return true;
  }
  return decide_plainly(state, key, cost, hint, out);
}

void move_lease_on(Lease& lease, std::int64_t cheap) noexcept {
  lease.cheap = cheap;
  lease.answer.t = cheap + lease.ahead_ns;
  lease.answer.n = rule::units_at(lease.piece, lease.answer.t);
}

void count_lease_shared(const Lease& lease, std::uint64_t cost) noexcept {
  lease.stripe.add(lease.index, shm::LimitCounter::Allowed, 1);
  lease.stripe.add(lease.index, shm::LimitCounter::Tokens, cost);
}

bool refund_to_lease(const LimitState& state, const DecisionData& receipt) noexcept {
  for (Lease& lease : my_leases().lease) {
    if (lease.number != state.number) continue;
    if (lease.answer.slot != receipt.slot || lease.answer.tag != receipt.tag) continue;
    if (lease.a != receipt.level) continue;
    lease.a -= receipt.cost;
    return true;
  }
  return false;
}

void give_back_leases(std::uint64_t number) noexcept {
  for (Lease& lease : my_leases().lease) {
    if (lease.number == 0 || (number != 0 && lease.client != number)) continue;
    end_if_open(lease);
  }
}

}  // namespace cutwater::detail
