// SPDX-License-Identifier: Apache-2.0
// The short ways of a breaker, for callers that keep its settings (BreakerLocal::kept): entering
// while it is CLOSED, and the good outcome of a call so granted, with a COUNT window. The same
// algorithm as enter_breaker() and finish_breaker(), which try these first; whatever is out of the
// ordinary answers false having written nothing, and goes the long way from the beginning.
//
// Order of finish_quickly(): the settings as kept; the state's epoch; the tail and what its window
// begins with; the clock, where the call is measured; one swap, which appends; then the user's
// count, and the verdict. What the window would open for, and outcomes that somebody else left
// unjudged, are judged the long way. Killed behind the swap: the outcome is recorded, and the next
// recorder or the tick judges it, as always.
//
// All that can be read is read before the swap: behind it every load waits until it is through. The
// clock waits for all loads before it, and what stands behind it waits for the clock.
// Process and thread safety, bounds: as shm/breaker/breaker.hpp. Nothing here calls the kernel.
#pragma once
#include <algorithm>
#include <cstdint>

#include "base/sync_point.hpp"
#include "shm/breaker/breaker.hpp"
#include "shm/breaker/count.hpp"
#include "shm/breaker/count_cells.hpp"

namespace cutwater::shm {

/// Grants by one look at the state word: CLOSED for everybody, by the rules in force. `state_lo`:
/// that look. `ref`: as pack_ref(). Writes nothing. False: ask enter_breaker().
[[gnu::always_inline]] inline bool enter_quickly(const BreakerLocal& local, const View& view,
                                                 std::uint64_t ref, std::uint64_t& state_lo,
                                                 bool& measures) noexcept {
  using enum BreakerWord8;
  const std::uint64_t begun = local.kept.begin();
  const std::uint64_t bits = local.kept.word<Bits>(), kept_ref = local.kept.word<Ref>();
  const auto* const head = reinterpret_cast<const BreakerHead*>(local.kept.word<Head>());
  if (!BreakerKept::holds(view, begun) || (bits & kKeptEnters) == 0 || kept_ref != ref)
      [[unlikely]] return false;
  state_lo = __atomic_load_n(&head->state.lo, __ATOMIC_ACQUIRE);
  measures = (bits & kKeptMeasures) != 0;
  return (state_lo & kStateNotPlain) == 0;
}

/// A call that ended well.
struct QuickOutcome {
  std::uint32_t epoch = 0;             ///< of its grant
  std::int64_t start_ns = 0;           ///< BreakerCall::start_ns
  std::int64_t duration_ns = -1;       ///< BreakerReport::duration_ns
};

namespace detail {

/// What the short way reads of the settings, in registers.
struct QuickParts {
  std::uint64_t begun = 0;
  std::uint64_t bits = 0;
  BreakerHead* head = nullptr;
  BreakerRing* ring = nullptr;
  std::uint64_t mask = 0;
  std::uint32_t window_calls = 0;

  Word16* cell(std::uint64_t at) const noexcept {
    return reinterpret_cast<Word16*>(ring + 1) + (at & mask);
  }
};

/// An outcome about to be appended, and what its window begins with. Cells as they lie in memory.
struct Append {
  std::uint64_t at = 0;                ///< position of the tail
  Word16 follower;                     ///< what lies there and is to be replaced ...
  Word16 next;                         ///< ... by this
  Word16 base;                         ///< what the window begins behind
  std::uint64_t calls = 0;             ///< of the window
  std::uint64_t settled = 0;
};
/// Steps from the hint to the tail that the short way makes.
inline constexpr int kQuickSteps = 4;
/// What is one more outcome in a cell, and one further position.
inline constexpr std::uint64_t kOneSeq = std::uint64_t{1} << 28, kOneCall = std::uint64_t{1} << 40;
/// Failures and slow ones of a cell.
inline constexpr std::uint64_t kBadMask = kOneCall - 1;

/// The window is not empty of bad outcomes, or others left some unjudged. True: judged, and this
/// one opens nothing.
[[gnu::noinline]] bool opens_nothing_at_all(const View& view, const BreakerKept& kept,
                                            std::uint64_t begun, std::uint64_t calls,
                                            std::uint64_t next, std::uint64_t base) noexcept;
/// Judges all outcomes up to `at`, the long way.
[[gnu::noinline]] void settle_slowly(const View& view, std::uint64_t ref, BreakerRing* ring,
                                     std::uint64_t at, BreakerCaller caller) noexcept;
[[gnu::noinline]] void count_user_slowly(BreakerUser* user, std::uint32_t epoch, std::uint64_t at,
                                         std::uint32_t window_calls) noexcept;
/// How a record says that this caller is its owner; 0: a caller that is no user.
inline std::uint64_t owner_word(const BreakerCaller& caller) noexcept {
  const BreakerUserId id = caller.user_id();
  return id.row == 0 ? 0 : pack_owner(id.row, id.generation, id.fork);
}

/// Where this caller counts for itself. False: its place is not known, the long way looks for it.
/// `out` nullptr: nobody counts for himself yet.
[[gnu::always_inline]] inline bool find_user(const QuickParts& parts, BreakerUser* users,
                                             const BreakerCaller& caller,
                                             BreakerUser*& out) noexcept {
  if ((parts.bits & kKeptUsers) == 0) return true;
  // relaxed, all: a hint, and the owner is compared; words that carry their whole meaning.
  const std::uint32_t at = caller.local->user.load(std::memory_order_relaxed);
  if (at >= static_cast<std::uint8_t>(parts.bits >> 32)) return false;
  BreakerUser* const user = users + at;
  const std::uint64_t owner = __atomic_load_n(&user->owner, __ATOMIC_RELAXED);
  if (owner == 0 || owner != owner_word(caller)) return false;
  const bool counts =
      __atomic_load_n(&parts.head->users, __ATOMIC_RELAXED) >= rule::kUsersThatCount ||
      caller.user.fork != 0;
  if (counts) [[unlikely]] out = user;
  return true;
}

/// False: the tail is not near the hint, or not of this epoch.
[[gnu::always_inline]] inline bool look(const QuickParts& parts, std::uint32_t epoch,
                                        Append& out) noexcept {
  // acquire: pairs with the release in advance_hint(); a hint is never ahead of its cell.
  std::uint64_t at = __atomic_load_n(&parts.ring->hint, __ATOMIC_ACQUIRE) & kSeqMask;
  Word16 tail = load16(parts.cell(at));
  Word16 follower = load16(parts.cell(at + 1));
  for (int step = 0; follower.lo >> 28 == next_seq(at); ++step) {
    if (step == kQuickSteps) return false;
    at = next_seq(at);
    tail = follower;
    follower = load16(parts.cell(at + 1));
  }
  const auto of = static_cast<std::uint32_t>(tail.lo << 4 | tail.hi >> 60);
  const std::uint64_t n = tail.hi >> 40 & kCountMask;
  if (tail.lo >> 28 != at || of != epoch || n == kCountMask) [[unlikely]] return false;
  out.at = at;
  out.follower = follower;
  out.next = {tail.lo + kOneSeq, tail.hi + kOneCall};
  out.calls = std::min<std::uint64_t>(n + 1, parts.window_calls);
  out.base = load16(parts.cell(at + 1 - out.calls));
  // relaxed: a hint; too low only costs looking again.
  out.settled = __atomic_load_n(&parts.ring->settled, __ATOMIC_RELAXED) & kSeqMask;
  return true;
}

/// True: every outcome before this one was judged, and this one opens nothing.
[[gnu::always_inline]] inline bool opens_nothing(const View& view, const BreakerKept& kept,
                                                 const QuickParts& parts,
                                                 const Append& done) noexcept {
  if (done.settled != done.at) [[unlikely]] return false;
  if (done.base.lo >> 28 != ((done.at + 1 - done.calls) & kSeqMask)) [[unlikely]] return true;
  const bool none_bad = ((done.next.hi ^ done.base.hi) & kBadMask) == 0;
  if (none_bad && (parts.bits & kKeptGoodIsGood) != 0) [[likely]] return true;
  return opens_nothing_at_all(view, kept, parts.begun, done.calls, done.next.hi, done.base.hi);
}

[[gnu::always_inline]] inline void count_success(const BreakerCaller& caller, std::uint64_t offset,
                                                 std::int64_t duration) noexcept {
  if (caller.stripe.counters == nullptr) [[unlikely]] return;
  auto& counters = *reinterpret_cast<BreakerCounters*>(caller.stripe.counters + offset);
  add_to(caller.stripe.shared, &counters.value[static_cast<std::size_t>(BreakerCounter::Success)],
         std::uint64_t{1});
  if (duration >= 0) add_duration(caller.stripe, counters, duration);
}

}  // namespace detail

/// Records and counts it. `ref`: as pack_ref(). False: nothing was done; ask finish_breaker().
[[gnu::always_inline]] inline bool finish_quickly(const View& view, std::uint64_t ref,
                                                  const BreakerCaller& caller,
                                                  const QuickOutcome& outcome) noexcept {
  using enum BreakerWord8;
  if (caller.local == nullptr) return false;
  const BreakerKept& kept = caller.local->kept;
  const detail::QuickParts parts{kept.begin(),
                                 kept.word<Bits>(),
                                 reinterpret_cast<BreakerHead*>(kept.word<Head>()),
                                 reinterpret_cast<BreakerRing*>(kept.word<Ring>()),
                                 kept.word<Mask>(),
                                 static_cast<std::uint32_t>(kept.word<Calls>())};
  auto* const users = reinterpret_cast<BreakerUser*>(kept.word<Users>());
  const auto slow_ns = static_cast<std::int64_t>(kept.word<Slow>());
  const std::uint64_t kept_ref = kept.word<Ref>(), counters = kept.word<Counters>();
  BreakerUser* user = nullptr;
  if (!BreakerKept::holds(view, parts.begun) || (parts.bits & kKeptFinishes) == 0 ||
      kept_ref != ref || !detail::find_user(parts, users, caller, user)) [[unlikely]] {
    return false;
  }
  const std::uint64_t state_lo = __atomic_load_n(&parts.head->state.lo, __ATOMIC_ACQUIRE);
  detail::Append append;
  if (epoch_of(state_lo) != outcome.epoch || !detail::look(parts, outcome.epoch, append))
      [[unlikely]] return false;
  std::int64_t duration = outcome.duration_ns;
  if (duration < 0 && outcome.start_ns != 0) duration = view.clock.now() - outcome.start_ns;
  if (duration > slow_ns) [[unlikely]] return false;
  for (int round = 0;;) {
    CUTWATER_SYNC_POINT("breaker.before_append");
    if (cas16(parts.cell(append.at + 1), append.follower, append.next)) [[likely]] break;
    if (++round == kRingRounds || !detail::look(parts, outcome.epoch, append)) return false;
  }
  const std::uint64_t seq = append.next.lo >> 28;
  advance_hint({parts.ring, nullptr, 0}, seq);
  CUTWATER_SYNC_POINT("breaker.appended");
  if (user != nullptr) [[unlikely]] {
    detail::count_user_slowly(user, outcome.epoch, seq, parts.window_calls);
  }
  if (detail::opens_nothing(view, kept, parts, append)) [[likely]] {
    CUTWATER_SYNC_POINT("breaker.before_settled");
    // relaxed: a hint; too low only costs looking again.
    __atomic_store_n(&parts.ring->settled, seq, __ATOMIC_RELAXED);
  } else {
    detail::settle_slowly(view, ref, parts.ring, seq, caller);
  }
  detail::count_success(caller, counters, duration);
  return true;
}

}  // namespace cutwater::shm
