// SPDX-License-Identifier: Apache-2.0
// The fast path of a charge: a member in its first group, under
// the limit's rule of today and without waiting is decided here without a call. Everything else (a
// miss, a change under way, damage, a lost race) returns false having written nothing, and
// bucket.cpp decides from the beginning. Same arithmetic, same swap: only the loads are arranged
// around the clock reading, which costs more than all the rest; what does not depend on it runs in
// its shadow.
//
// The order is the one of every decision: clock, generation, compute, generation again, swap. The
// entry is read as two plain halves: a grant's swap proves them, a refusal reads the tag again, and
// equal words are equal states.
#pragma once
#include "base/sync_point.hpp"
#include "shm/limit/bucket_detail.hpp"

namespace cutwater::shm {

namespace detail {

inline constexpr std::uint64_t kFastCostMax = std::uint64_t{1}
                                              << 22;  // cost << f cannot overflow below it
inline constexpr std::uint64_t kMaxElapsed = std::uint64_t{1} << 62;  // above: t lies before base_t

inline void fill_fast(DecisionData& out, Word16* slot, std::uint64_t tag, bool granted) noexcept {
  out.reason = granted ? Reason::Allowed : Reason::Limit;
  out.flags = 0;
  out.window = kWindow0;
  out.decided_by = DecidedBy::Memory;
  out.computed = false;
  out.receipt = granted ? Receipt::One : Receipt::None;
  out.slot = slot;
  out.tag = tag;
}

/// True: decided, `out` filled. False: nothing written; decide by charge().
[[gnu::always_inline]] inline bool charge_fast(const View& view, LimitRef limit, KeyHash key,
                                               std::uint64_t cost_tokens, std::int64_t t,
                                               std::uint64_t& hint, DecisionData& out) noexcept {
  const std::uint64_t c = view.current();
  if (limit.index >= view.limit_count) [[unlikely]] return false;
  const LimitConfig& config = view.limit_config(c, limit.index);
  const std::uint16_t id = read_once(config.rule[kWindow0]);
  if (id >= view.rule_count) [[unlikely]] return false;
  const RuleRecord& record = view.rule(c, id);
  // N(t) first: it is the way from the clock to the swap. Everything that does not depend on t
  // stands behind it and is done meanwhile. Unsigned and before any comparison with base_t: the
  // product stays one plain multiplication.
  const std::uint64_t mult = read_once(record.mult);
  const std::int64_t base_t = read_once(record.base_t);
  const Units base_n = read_once(record.base_n);
  // Kept at once: the numbers of the answer are those of this reading, each read once, before
  // `current` is looked at again. Behind the swap the image may be another.
  const std::uint8_t shift = read_once(record.shift), f = read_once(record.f);
  out.shift = shift;
  out.f = f;
  out.mult = mult;
  out.base_t = base_t;
  out.base_n = base_n;
  const std::uint64_t elapsed = static_cast<std::uint64_t>(t) - static_cast<std::uint64_t>(base_t);
  const Units n = base_n + rule::emitted(elapsed, mult, shift & 127);

  const std::uint64_t fp = fingerprint(key, kWindow0);
  const std::uint64_t tag = fp << kFingerprintShift | id;
  Word16* slot;
  if (hint < view.slot_count) {
    slot = view.slots + hint;
  } else {
    Word16* const group = view.slots + first_group(view, mulhi(key.lo, view.g0), fp) * kGroupSlots;
    // A key takes the first slot of its first line when that is free: mostly it lies right there.
    slot = group + (fp & 3) * kLineSlots;
    if (read_once(slot->lo) != tag) {
      slot = scan_group(group, static_cast<std::uint32_t>(fp & 3), tag, ~std::uint64_t{0});
      if (slot == nullptr) [[unlikely]] return false;
    }
    hint = static_cast<std::uint64_t>(slot - view.slots);
  }
  const std::uint64_t lo = read_once(slot->lo);
  const auto tat = static_cast<Units>(read_once(slot->hi));
  const Units burst = read_once(record.burst), floor = read_once(record.floor);
  const auto cost = static_cast<Units>(cost_tokens << (f & 63));
  if ((lo & ~kTagAlt) != tag || (c & kCurrentSupersededBit) != 0 ||
      read_once(config.incarnation) != limit.incarnation) [[unlikely]] return false;
  if (cost_tokens - 1 >= kFastCostMax || cost > burst || elapsed > kMaxElapsed ||
      tat > n + read_once(record.reach)) [[unlikely]] return false;
  // Values, not std::max: it takes references, and these numbers must stay in registers.
  const Units low = guarded(Guard::FloorCounts) && floor > n ? floor : n;
  const Units eff = tat > low ? tat : low;
  const Units y = eff + cost;
  const bool granted = y - n <= burst;
  if (guarded(Guard::GenerationBeforeSwap) && view.current() != c) [[unlikely]] return false;
  if (granted) [[likely]] {
    CUTWATER_SYNC_POINT("bucket.before_swap");
    Word16 word{lo, static_cast<std::uint64_t>(tat)};
    if (!cas16(slot, word, {lo, static_cast<std::uint64_t>(y)})) [[unlikely]] return false;
    out.level = y;
  } else {
    if (read_once(slot->lo) != lo) [[unlikely]] return false;
    if (!guarded(Guard::RefusalWritesNothing))
      __atomic_store_n(&slot->hi, static_cast<std::uint64_t>(eff), __ATOMIC_RELAXED);
    out.level = eff;
  }
  fill_fast(out, slot, lo, granted);
  out.t = t;
  out.burst = burst;
  out.n = n;
  out.cost = cost;
  return true;
}

}  // namespace detail

/// Tables up to this size (16 MiB; the default is 8) are taken for cached. The clock is read by an
/// instruction that waits for everything before it. So there a key is better hashed behind the
/// clock, in its shadow (49 ns against 58), and in a larger table before it and prefetched, so that
/// the line is on its way while the clock is read.
inline constexpr std::uint64_t kCachedTableSlots = std::uint64_t{1} << 20;
inline bool likely_cached(const View& view) noexcept {
  return view.slot_count <= kCachedTableSlots;
}

}  // namespace cutwater::shm
