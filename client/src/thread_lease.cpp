// SPDX-License-Identifier: Apache-2.0
#include "src/thread_lease.hpp"

#include <algorithm>
#include <atomic>
#include <ctime>

#include "rule/token_clock.hpp"
#include "src/core_registry.hpp"
#include "src/decide.hpp"
#include "src/thread_counter.hpp"

namespace cutwater::detail {
namespace {

using rule::Units;

/// Tick of CLOCK_MONOTONIC_COARSE.
std::atomic<std::int64_t> coarse_tick_ns{10'000'000};

std::int64_t read(clockid_t clock) noexcept {
  timespec reading;
  clock_gettime(clock, &reading);
  return std::int64_t{reading.tv_sec} * 1'000'000'000 + reading.tv_nsec;
}

}  // namespace

/// Tokens this thread holds: the slice (a, y] of one key, and the line of the clock it decays by.
struct alignas(64) Lease {
  std::uint64_t number = 0;              ///< of the LimitState; 0 = free
  shm::KeyHash key;
  std::uint64_t current = 0;             ///< of the rules it was made under
  Units a = 0;
  Units y = 0;
  std::int64_t cheap_seen = 0;           ///< the last cheap reading of the clock, and N there
  Units cheap_n = 0;

  std::int64_t ahead_ns = 0;             ///< segment time = cheap reading + this, never behind
  std::uint64_t tokens = 0;              ///< as charged: no cost above it can be paid
  DecisionData answer;                   ///< as charged: slot, tag, line
  rule::Piece piece;                     ///< mult, shift, base_t, base_n
  std::uint64_t client = 0;
};

struct Leases {
  Lease lease[kThreadLeases];
  Lease* last = &lease[0];               ///< the one used last
  std::uint64_t life = 0;                ///< process_life() they were made in
  std::uint32_t next = 0;                ///< the one that gives way
};

namespace {

thread_local Leases leases;

/// A reading of the clock that costs little: the word of a stepped clock, else the coarse one.
[[gnu::always_inline]] inline std::int64_t cheap_now(const shm::View& view) noexcept {
  return view.clock.is_stepped() ? view.clock.now() : read(CLOCK_MONOTONIC_COARSE);
}

/// What to add to a cheap reading so that it is never behind the segment's clock.
std::int64_t ahead_of_cheap(const shm::View& view) noexcept {
  if (view.clock.is_stepped()) return 0;
  const std::int64_t monotonic = read(CLOCK_MONOTONIC);     // before: the error is on the safe side
  const std::int64_t suspended = read(CLOCK_BOOTTIME) - monotonic;
  const std::int64_t tick = coarse_tick_ns.load(std::memory_order_relaxed);
  return suspended + tick - view.clock.to_boottime(0);
}

/// Where what is left of the lease begins at N(t).
Units left_from(const Lease& lease, Units n) noexcept {
  return guarded(Guard::LeaseDecays) ? std::max(lease.a, n) : lease.a;
}

/// Ends a lease and puts back what is left, as far as nobody charged after it.
void end_lease(Lease& lease, const shm::View& view) noexcept {
  const Units rest = lease.y - left_from(lease, rule::units_at(lease.piece, view.clock.now()));
  if (rest > 0) {
    DecisionData receipt = lease.answer;
    receipt.cost = rest;                 // undo(y, y - max(a, N)): exact, only from the top
    shm::undo(view, receipt);
  }
  lease.number = 0;
}

/// This thread's leases; those of a former life are forgotten, they are the parent's.
Leases& my_leases() noexcept {
  Leases& mine = leases;
  const std::uint64_t life = process_life();
  if (mine.life != life) [[unlikely]] {
    for (Lease& lease : mine.lease) lease.number = 0;
    mine.life = life;
  }
  return mine;
}

[[gnu::always_inline]] inline bool is_of(const Lease& lease, const LimitState& state,
                                         shm::KeyHash key) noexcept {
  return lease.number == state.number && lease.key.lo == key.lo && lease.key.hi == key.hi;
}

Lease* find(Leases& mine, const LimitState& state, shm::KeyHash key) noexcept {
  for (Lease& lease : mine.lease) {
    if (is_of(lease, state, key)) return mine.last = &lease;
  }
  return nullptr;
}

/// Spends `units` at time t, where N(t) = n. False: the lease has not got them.
[[gnu::always_inline]] inline bool spend_at(Lease& lease, std::int64_t t, Units n, Units units,
                                            DecisionData& out) noexcept {
  const Units end = left_from(lease, n) + units;
  if (end > lease.y) [[unlikely]] return false;
  lease.a = end;
  out = lease.answer;
  out.t = t;
  out.n = n;
  out.level = end;
  out.cost = units;
  return true;
}

/// Spends by a cheap reading of the clock.
[[gnu::always_inline]] inline bool spend_cheaply(Lease& lease, const shm::View& view, Units units,
                                                 DecisionData& out) noexcept {
  const std::int64_t cheap = cheap_now(view);
  if (view.current() != lease.current) [[unlikely]] return false;    // clock, then generation
  if (cheap != lease.cheap_seen) [[unlikely]] {
    lease.cheap_seen = cheap;
    lease.cheap_n = rule::units_at(lease.piece, cheap + lease.ahead_ns);
  }
  return spend_at(lease, cheap + lease.ahead_ns, lease.cheap_n, units, out);
}

/// Spends by the segment's clock.
bool spend_exactly(Lease& lease, const shm::View& view, Units units, DecisionData& out) noexcept {
  const std::int64_t t = view.clock.now();
  if (view.current() != lease.current) return false;
  return spend_at(lease, t, rule::units_at(lease.piece, t), units, out);
}

/// Ends a lease whose client may be gone.
void end_if_open(Lease& lease) noexcept {
  with_client(lease.client, [](const shm::View& view, void* ending) {
    end_lease(*static_cast<Lease*>(ending), view);
  }, &lease);
  lease.number = 0;
}

/// Charges a new lease into a free place. nullptr: the bucket does not have that much now.
Lease* make_lease(Leases& mine, LimitState& state, shm::KeyHash key,
                  std::uint64_t tokens) noexcept {
  const shm::View& view = *state.view;
  const shm::BucketAsk ask{.limit = unpack_ref(state.ref.load(std::memory_order_relaxed)),
                           .key = key,
                           .cost = tokens,
                           .max_wait_ns = 0};
  const std::uint64_t current = view.current();
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
  mine.last = &lease;
  mine.next = (mine.next + 1) % kThreadLeases;
  if (lease.number != 0) end_if_open(lease);
  lease.number = state.number;
  lease.client = state.client;
  lease.tokens = tokens;
  lease.key = key;
  lease.current = current;
  lease.a = charge.level - charge.cost;
  lease.y = charge.level;
  lease.piece = {charge.mult, charge.base_t, charge.base_n, charge.burst, 0, 0, charge.shift};
  lease.ahead_ns = ahead_of_cheap(view);
  lease.cheap_seen = cheap_now(view);
  lease.cheap_n = rule::units_at(lease.piece, lease.cheap_seen + lease.ahead_ns);
  lease.answer = charge;
  lease.answer.decided_by = DecidedBy::ThreadLease;
  lease.answer.owner = &state;
  return &lease;
}

/// Another lease than the last one, a new one, or none (false): where the bucket cannot pay one.
bool spend_another(LimitState& state, Leases& mine, shm::KeyHash key,
                                     std::uint64_t cost, DecisionData& out) noexcept {
  const shm::View& view = *state.view;
  if (Lease* lease = find(mine, state, key); lease != nullptr) {
    const Units units = static_cast<Units>(cost) << lease->answer.f;
    if (spend_exactly(*lease, view, units, out)) return true;
    end_lease(*lease, view);
  }
  const std::uint64_t tokens = state.lease_tokens.load(std::memory_order_relaxed);
  Lease* const fresh = make_lease(mine, state, key, tokens);
  if (fresh == nullptr) return false;
  const Units units = static_cast<Units>(cost) << fresh->answer.f;
  if (spend_exactly(*fresh, view, units, out)) return true;
  end_lease(*fresh, view);               // stopped so long that it is gone already
  return false;
}

/// The rest of decide_closely(): new rules, another lease, none.
[[gnu::noinline]] bool decide_anew(LimitState& state, shm::KeyHash key, std::uint64_t cost,
                                   std::uint64_t& hint, DecisionData& out) noexcept {
  if (is_special(state)) return false;
  // relaxed: the number carries its whole meaning.
  const std::uint64_t tokens = state.lease_tokens.load(std::memory_order_relaxed);
  if (tokens != 0 && cost <= tokens) {
    ThreadCounter& counter = counter_for(state);
    counter.leases = &my_leases();
    if (spend_another(state, *counter.leases, key, cost, out)) {
      const shm::LimitRef ref = unpack_ref(state.ref.load(std::memory_order_relaxed));
      count(counter, ref.index, cost, out);
      return true;
    }
  }
  return decide_plainly(state, key, cost, hint, out);
}

}  // namespace

void prepare_leases() noexcept {
  timespec tick;
  if (clock_getres(CLOCK_MONOTONIC_COARSE, &tick) != 0) return;
  // relaxed: a number that is the same whoever reads it.
  coarse_tick_ns.store(std::int64_t{tick.tv_sec} * 1'000'000'000 + tick.tv_nsec,
                       std::memory_order_relaxed);
}

bool decide_closely(LimitState& state, shm::KeyHash key, std::uint64_t cost, std::uint64_t& hint,
                    DecisionData& out) noexcept {
  const shm::View& view = *state.view;
  ThreadCounter& counter = counter_for(state);
  // The last lease again, of these rules: all there is to it.
  if (counter.leases != nullptr) [[likely]] {
    Lease& last = *counter.leases->last;
    if (is_of(last, state, key) && cost <= last.tokens &&
        spend_cheaply(last, view, static_cast<Units>(cost) << last.answer.f, out)) [[likely]] {
      const shm::LimitRef ref = unpack_ref(state.ref.load(std::memory_order_relaxed));
      count(counter, ref.index, cost, out);
      return true;
    }
  }
  return decide_anew(state, key, cost, hint, out);
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
