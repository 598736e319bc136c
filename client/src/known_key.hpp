// SPDX-License-Identifier: Apache-2.0
// The shortest way of all: a resolved key whose entry was seen before, of a limit that is one plain
// window. Same arithmetic, same order and same swap as shm/limit/bucket_fast.hpp; only less to
// load.
//
// PlainRule is a private copy of the limit's rule, good while `current` of the rules is the one it
// was copied under. A decision copies the numbers of the rule into its answer, reads the clock,
// reads the entry, computes, and looks at `current`: still that one, so the rule was this one when
// the clock was read (clock, generation, compute, swap). Everything else (new rules, a stamp before
// base_t, an entry elsewhere, another limit's business) answers false having written nothing, and
// detail::decide() decides from the beginning.
//
// What stands before the clock reading costs nothing: it is done while the swap of the decision
// before is under way, up to a dozen loads in a row. What stands between the clock and the swap is
// paid in full. So: rule and counters before, the entry behind the clock (it may not be cached),
// and no store in front of a wider load of the same bytes. Whatever a limit may want besides one
// window (a ban, an override, a pattern, more windows, shadow) must make it not plain, under a new
// `current`, and must not be asked for here.
//
// Threads: `current` is stored last and read first; who finds another value in `current` of the
// rules behind its loads drops what it loaded. Written under `writer` by one thread at a time.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <cutwater/decision.hpp>

#include "base/clock.hpp"
#include "base/guard.hpp"
#include "base/sync_point.hpp"
#include "shm/limit/bucket_fast.hpp"
#include "src/limit_state.hpp"
#include "src/thread_counter.hpp"

namespace cutwater::detail {

/// Where a decision counts, found before the clock is read.
struct KnownCounters {
  std::uint64_t* value = nullptr;      ///< of the limit
  bool shared = true;

  /// Returns the count with it.
  [[gnu::always_inline]] std::uint64_t add(shm::LimitCounter which,
                                           std::uint64_t n) const noexcept {
    std::uint64_t* const place = value + static_cast<int>(which);
    // relaxed: a count, nothing is read because of it.
    if (shared) [[unlikely]] return __atomic_add_fetch(place, n, __ATOMIC_RELAXED);
    return shm::add_alone(place, n);
  }
};

/// Sets what never changes of `state.plain`. Before the record is published.
void prepare_plain_rule(LimitState& state) noexcept;

/// Copies the limit's rule of generation `current` where it can be decided here. Rare.
void keep_plain_rule(LimitState& state, std::uint64_t current) noexcept;

// PlainRule::head is stored over the first eight bytes of an answer at once.
static_assert(offsetof(DecisionNumbers, reason) == 0 && offsetof(DecisionNumbers, receipt) == 7);

/// The answer's numbers that do not depend on the clock; the counters to count on in `counters`.
/// False: not for here.
[[gnu::always_inline]] inline bool prepare_known(const LimitState& state, std::uint64_t hint,
                                                 std::uint64_t cost_tokens, std::uint64_t c,
                                                 KnownCounters& counters,
                                                 DecisionData& out) noexcept {
  const PlainRule& rule = state.plain;
  const ThreadCounter& counter = thread_counter;
  // relaxed: see counter_for().
  if (c == kNoCurrent || hint >= rule.slot_count ||
      cost_tokens - 1 >= shm::detail::kFastCostMax || counter.client != state.client ||
      (guarded(Guard::ForkDropsRow) &&
       counter.life != state.life->load(std::memory_order_relaxed))) [[unlikely]] {
    return false;
  }
  const std::uint64_t names = shm::read_once(rule.names), head = shm::read_once(rule.head);
  const rule::Units burst = shm::read_once(rule.burst);
  const auto cost = static_cast<rule::Units>(cost_tokens << PlainRule::f_of(head));
  if (cost > burst) [[unlikely]] return false;
  std::memcpy(static_cast<void*>(&out), &head, sizeof head);
  out.mult = shm::read_once(rule.mult);
  out.base_t = shm::read_once(rule.base_t);
  out.base_n = shm::read_once(rule.base_n);
  out.burst = burst;
  out.cost = cost;
  out.owner = &state;
  auto* const stripe = reinterpret_cast<shm::LimitCounters*>(counter.stripe.counters);
  counters = {stripe[PlainRule::index_of(names)].value, counter.stripe.shared};
  return true;
}

/// Decides and counts. `hi`: second half of the key's hash; `number`: the count with this decision,
/// for is_sampled(). False: nothing was done, and neither `out` nor `number` is an answer.
[[gnu::always_inline]] inline bool decide_known(const LimitState& state, const std::uint64_t& hi,
                                                std::uint64_t hint, std::uint64_t cost_tokens,
                                                DecisionData& out,
                                                std::uint64_t& number) noexcept {
  const PlainRule& rule = state.plain;
  const std::uint64_t c = shm::read_once(rule.current);
  KnownCounters counters;
  if (!prepare_known(state, hint, cost_tokens, c, counters, out)) [[unlikely]] return false;
  Word16* const slot = rule.slots + hint;
  __builtin_prefetch(slot, 1);
  out.slot = slot;
  const std::int64_t start = shm::read_once(rule.start);
  const rule::Units floor = shm::read_once(rule.floor), reach = shm::read_once(rule.reach);

  timespec now;
  if (rule.stepped == nullptr) [[likely]] {
    clock_gettime(CLOCK_BOOTTIME, &now);
  } else {
    now.tv_sec = 0;
    now.tv_nsec = shm::read_once(*rule.stepped);
  }
  // From here on every cycle counts.
  const auto elapsed = static_cast<std::uint64_t>(std::int64_t{now.tv_sec} * 1'000'000'000 +
                                                  (std::int64_t{now.tv_nsec} - start));
  const std::uint64_t names = shm::read_once(rule.names);
  const rule::Units emitted = static_cast<rule::Units>(
      shm::mulhi(elapsed << PlainRule::up_of(names), out.mult) >> PlainRule::down_of(names));
  const rule::Units n = out.base_n + emitted;
  out.n = n;
  out.t = out.base_t + static_cast<std::int64_t>(elapsed);
  const std::uint64_t lo = shm::read_once(slot->lo);
  const auto tat = static_cast<rule::Units>(shm::read_once(slot->hi));
  const rule::Units low = guarded(Guard::FloorCounts) && floor > tat ? floor : tat;
  const rule::Units eff = low > n ? low : n;
  const rule::Units y = eff + out.cost;
  const std::uint64_t tag =
      shm::fingerprint({0, hi}, shm::detail::kWindow0) << shm::kFingerprintShift |
      PlainRule::rule_of(names);
  out.tag = lo;
  if ((lo & ~shm::kTagAlt) != tag || elapsed >= PlainRule::kMaxElapsed || tat > n + reach)
      [[unlikely]] return false;
  if (guarded(Guard::GenerationBeforeSwap) &&
      shm::read_once(*rule.current_at) != c) [[unlikely]] return false;
  if (y - n <= out.burst) [[likely]] {
    CUTWATER_SYNC_POINT("bucket.before_swap");
    out.level = y;
    Word16 word{lo, static_cast<std::uint64_t>(tat)};
    if (!cas16(slot, word, {lo, static_cast<std::uint64_t>(y)})) [[unlikely]] return false;
    number = counters.add(shm::LimitCounter::Allowed, 1);
    counters.add(shm::LimitCounter::Tokens, cost_tokens);
    return true;
  }
  if (shm::read_once(slot->lo) != lo) [[unlikely]] return false;
  if (!guarded(Guard::RefusalWritesNothing))
    __atomic_store_n(&slot->hi, static_cast<std::uint64_t>(eff), __ATOMIC_RELAXED);
  out.reason = Reason::Limit;
  out.receipt = Receipt::None;
  out.level = eff;
  number = counters.add(shm::LimitCounter::Refused, 1);
  return true;
}

}  // namespace cutwater::detail
