// SPDX-License-Identifier: Apache-2.0
#include "src/thread_lease.hpp"

#include <algorithm>

#include "rule/token_clock.hpp"
#include "src/core_registry.hpp"
#include "src/thread_counter.hpp"

namespace cutwater::detail {
namespace {

using rule::Units;

/// Tokens this thread holds: the slice (a, y] of one key, and the line of the clock it decays by.
struct Lease {
  const LimitState* limit = nullptr;     ///< nullptr = free
  std::uint64_t client = 0;
  shm::KeyHash key;
  std::uint64_t current = 0;             ///< of the rules it was made under
  Units a = 0;
  Units y = 0;
  rule::Piece piece;                     ///< mult, shift, base_t, base_n
  DecisionData charge;                   ///< as it was made
};

struct Leases {
  std::uint64_t life = 0;                ///< process_life() they were made in
  std::uint32_t next = 0;                ///< the one that gives way
  Lease lease[kThreadLeases];
};

thread_local Leases leases;

/// The segment's time, not behind; see the header.
std::int64_t lease_now(const shm::View& view) noexcept {
  static const bool tsc = tsc_usable();
  if (view.clock.is_stepped() || !tsc) return view.clock.now();
  return tsc_boottime_ns() - view.clock.to_boottime(0) + kLeaseClockSlackNs;
}

/// Where what is left of the lease begins at N(t).
Units left_from(const Lease& lease, Units n) noexcept {
  return guarded(Guard::LeaseDecays) ? std::max(lease.a, n) : lease.a;
}

/// Ends a lease and puts back what is left, as far as nobody charged after it.
void end_lease(Lease& lease, const shm::View& view) noexcept {
  const Units rest = lease.y - left_from(lease, rule::units_at(lease.piece, view.clock.now()));
  if (rest > 0) {
    DecisionData receipt = lease.charge;
    receipt.cost = rest;                 // undo(y, y - max(a, N)): exact, only from the top
    shm::undo(view, receipt);
  }
  lease.limit = nullptr;
}

/// This thread's leases; those of a former life are forgotten, they are the parent's.
Leases& my_leases() noexcept {
  Leases& mine = leases;
  const std::uint64_t life = process_life();
  if (mine.life != life) [[unlikely]] {
    for (Lease& lease : mine.lease) lease.limit = nullptr;
    mine.life = life;
  }
  return mine;
}

Lease* find(Leases& mine, const LimitState& state, shm::KeyHash key) noexcept {
  for (Lease& lease : mine.lease) {
    if (lease.limit == &state && lease.client == state.client && lease.key.lo == key.lo &&
        lease.key.hi == key.hi) {
      return &lease;
    }
  }
  return nullptr;
}

/// Spends `cost` tokens from the lease at time t. False: it has not got them.
bool spend(Lease& lease, std::uint64_t cost, std::int64_t t, DecisionData& out) noexcept {
  const Units n = rule::units_at(lease.piece, t);
  const Units units = static_cast<Units>(cost) << lease.charge.f;
  const Units end = left_from(lease, n) + units;
  if (end > lease.y) return false;
  lease.a = end;
  out = lease.charge;                    // slot, tag, line and burst as charged
  out.t = t;
  out.n = n;
  out.level = end;
  out.cost = units;
  out.decided_by = DecidedBy::ThreadLease;
  out.owner = lease.limit;
  return true;
}

/// Ends a lease whose client may be gone.
void end_if_open(Lease& lease) noexcept {
  with_client(lease.client, [](const shm::View& view, void* ending) {
    end_lease(*static_cast<Lease*>(ending), view);
  }, &lease);
  lease.limit = nullptr;
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
    if (charge.receipt) shm::undo(view, charge);
    return nullptr;
  }
  Lease& lease = mine.lease[mine.next];
  mine.next = (mine.next + 1) % kThreadLeases;
  if (lease.limit != nullptr) end_if_open(lease);
  // A thread that holds something gives it back when it ends: finding its counter sees to that.
  counter_for(state);
  lease.limit = &state;
  lease.client = state.client;
  lease.key = key;
  lease.current = current;
  lease.a = charge.level - charge.cost;
  lease.y = charge.level;
  lease.piece = {charge.mult, charge.base_t, charge.base_n, charge.burst, 0, 0, charge.shift};
  lease.charge = charge;
  return &lease;
}

}  // namespace

bool spend_lease(LimitState& state, shm::KeyHash key, std::uint64_t cost,
                 DecisionData& out) noexcept {
  if (cost == 0) return false;
  const shm::View& view = *state.view;
  Leases& mine = my_leases();
  Lease* lease = find(mine, state, key);
  const bool current = lease != nullptr && lease->current == view.current();
  bool spent = current && spend(*lease, cost, lease_now(view), out);
  if (!spent) [[unlikely]] {
    if (lease != nullptr) end_lease(*lease, view);
    const std::uint64_t tokens = state.lease_tokens.load(std::memory_order_relaxed);
    if (cost > tokens) return false;
    lease = make_lease(mine, state, key, tokens);
    if (lease == nullptr) return false;
    spent = spend(*lease, cost, std::max(lease->charge.t, lease_now(view)), out);
    if (!spent) {                        // stopped so long that it is gone already
      end_lease(*lease, view);
      return false;
    }
  }
  const std::uint32_t limit = unpack_ref(state.ref.load(std::memory_order_relaxed)).index;
  const ThreadCounter& counter = counter_for(state);
  counter.stripe.add(limit, shm::LimitCounter::Allowed, 1);
  counter.stripe.add(limit, shm::LimitCounter::Tokens, cost);
  return true;
}

bool refund_to_lease(const LimitState& state, const DecisionData& receipt) noexcept {
  for (Lease& lease : my_leases().lease) {
    if (lease.limit != &state || lease.client != state.client) continue;
    if (lease.charge.slot != receipt.slot || lease.charge.tag != receipt.tag) continue;
    if (lease.a != receipt.level) continue;
    lease.a -= receipt.cost;
    return true;
  }
  return false;
}

void give_back_leases(std::uint64_t number) noexcept {
  for (Lease& lease : my_leases().lease) {
    if (lease.limit == nullptr || (number != 0 && lease.client != number)) continue;
    end_if_open(lease);
  }
}

}  // namespace cutwater::detail
