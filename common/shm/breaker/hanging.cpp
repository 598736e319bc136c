// SPDX-License-Identifier: Apache-2.0
// Calls of a closed breaker that are out for too long (count-hanging-calls, rule S18): each holds a
// cell while it runs, and counts as a slow call once it was held longer than the slow threshold, so
// that a dependency that swallows calls opens before its first time-out returns.
//
// The cell is that of a probe, with the moment of the grant where a probe has its deadline: FREE,
// or HELD {row, generation, epoch, since, take}. A cell of an older epoch is free for the taking:
// what began in another life of the breaker decides nothing in this one. Taken and given back by
// one swap of exactly that value. Killed while held: the owner is dead, whoever looks frees it.
// A look at all cells is believed for the millisecond it was made in, by everybody, unless a call
// that hung has ended since: then it would be in the window too, and count twice.
#include "base/sync_point.hpp"
#include "shm/breaker/user.hpp"

namespace cutwater::shm {
namespace {

constexpr std::int64_t kNsPerUs = 1'000, kNsPerMs = 1'000'000;
/// Swaps lost at one cell before the next one is tried.
constexpr int kTakeRounds = 2;
/// "No look is to be believed."
constexpr std::uint32_t kUnlooked = 0x3ff;
static_assert(kHangingCells < kUnlooked);

/// BreakerHead::hanging, taken apart: ms:28 | epoch:16 | changes:10 | calls:10.
struct Look {
  std::uint32_t ms = 0;
  std::uint32_t epoch = 0;
  std::uint32_t changes = 0;
  std::uint32_t calls = kUnlooked;
};
constexpr Look unpack_look(std::uint64_t word) noexcept {
  return {static_cast<std::uint32_t>(word >> 36), static_cast<std::uint32_t>(word >> 20) & 0xffff,
          static_cast<std::uint32_t>(word >> 10) & 0x3ff, static_cast<std::uint32_t>(word) & 0x3ff};
}
constexpr std::uint64_t pack_look(const Look& look) noexcept {
  return std::uint64_t{look.ms & 0xfff'ffff} << 36 | std::uint64_t{look.epoch & 0xffff} << 20 |
         std::uint64_t{look.changes & 0x3ff} << 10 | (look.calls & 0x3ff);
}

std::int64_t held_for(const ProbeCell& cell, std::int64_t now) noexcept {
  return now - static_cast<std::int64_t>(cell.deadline_us) * kNsPerUs;
}
bool is_hanging(const BreakerParts& parts, const ProbeCell& cell, std::int64_t now) noexcept {
  const std::int64_t held = held_for(cell, now);
  return held > 0 && static_cast<std::uint64_t>(held) > parts.numbers().slow_ns;
}

Word16 freed(ProbeCell cell) noexcept {
  cell.state = ProbeState::Free;
  cell.deadline_us = 0;
  return pack_probe(cell);
}

/// Counts the calls of `epoch` that hang; cells of the dead are freed on the way.
std::uint32_t look_through(const BreakerParts& parts, std::uint32_t epoch, std::int64_t now,
                           StripeHandle stripe) noexcept {
  std::uint32_t calls = 0;
  for (std::uint32_t i = 0; i < parts.hanging_count; ++i) {
    Word16 seen = load16(parts.hanging + i);
    const ProbeCell cell = unpack_probe(seen);
    if (cell.state != ProbeState::Held) continue;
    if (owner_is_dead(*parts.view, cell)) {
      CUTWATER_SYNC_POINT("hanging.before_reclaim");
      if (!cas16(parts.hanging + i, seen, freed(cell))) continue;
      count_breaker(*parts.view, stripe, parts.index, BreakerCounter::HangingReclaimed);
      continue;
    }
    if (cell.epoch == epoch && is_hanging(parts, cell, now)) ++calls;
  }
  return calls;
}

}  // namespace

void forget_look(const BreakerParts& parts) noexcept {
  std::uint64_t seen = __atomic_load_n(&parts.head->hanging, __ATOMIC_RELAXED);
  for (;;) {
    Look next = unpack_look(seen);
    ++next.changes;
    next.calls = kUnlooked;
    // acq_rel: who reads the new word sees the cell free (look_through).
    if (__atomic_compare_exchange_n(&parts.head->hanging, &seen, pack_look(next), false,
                                    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
      return;
    }
  }
}

std::uint32_t hanging_calls(const BreakerParts& parts, std::uint32_t epoch, std::int64_t now,
                            StripeHandle stripe) noexcept {
  const auto ms = static_cast<std::uint32_t>(now / kNsPerMs) & 0xfff'ffff;
  // acquire: pairs with forget_look(), so cells are read after the call it was about was freed.
  std::uint64_t seen = __atomic_load_n(&parts.head->hanging, __ATOMIC_ACQUIRE);
  const Look last = unpack_look(seen);
  const bool good = last.calls != kUnlooked && last.ms == ms && last.epoch == (epoch & 0xffff);
  if (good) return last.calls;
  const std::uint32_t calls = look_through(parts, epoch, now, stripe);
  CUTWATER_SYNC_POINT("hanging.before_look_is_kept");
  // Lost: a call ended, or another looked; ours is good for ourselves only.
  __atomic_compare_exchange_n(&parts.head->hanging, &seen,
                              pack_look({ms, epoch, last.changes, calls}), false, __ATOMIC_ACQ_REL,
                              __ATOMIC_RELAXED);
  return calls;
}

std::uint32_t count_hanging(const BreakerParts& parts, std::uint32_t epoch,
                            std::int64_t now) noexcept {
  std::uint32_t calls = 0;
  for (std::uint32_t i = 0; i < parts.hanging_count; ++i) {
    const ProbeCell cell = unpack_probe(load16(parts.hanging + i));
    if (cell.state != ProbeState::Held || cell.epoch != epoch) continue;
    if (!owner_is_dead(*parts.view, cell) && is_hanging(parts, cell, now)) ++calls;
  }
  return calls;
}

void add_hanging(const BreakerParts& parts, std::uint32_t epoch, std::int64_t now,
                 std::span<rule::UserCounts> users) noexcept {
  for (std::uint32_t i = 0; i < parts.hanging_count && !users.empty(); ++i) {
    const ProbeCell cell = unpack_probe(load16(parts.hanging + i));
    if (cell.state != ProbeState::Held || cell.epoch != epoch) continue;
    if (owner_is_dead(*parts.view, cell) || !is_hanging(parts, cell, now)) continue;
    // Whoever has no record of its own shares the last one.
    rule::UserCounts* of = &users.back();
    for (rule::UserCounts& user : users) {
      if (!user.present || owner_row(user.order) != cell.row) continue;
      of = &user;
      break;
    }
    ++of->calls;
    ++of->slow;
  }
}

void judge_hanging(const BreakerParts& parts, std::int64_t now,
                   const BreakerCaller& caller) noexcept {
  const BreakerWord word = unpack_breaker(state_of(parts));
  const bool judged = word.state == rule::BreakerState::Closed ||
                      word.state == rule::BreakerState::MetricsOnly;
  if (!judged || hanging_calls(parts, word.epoch, now, caller.stripe) == 0) return;
  // The window first, then the cells (in judge_window): a call that ends in between is in neither,
  // never in both.
  judge_window(parts, window_now(parts, word.epoch, now),
               {word.epoch, present_turn(parts, now), {}, now}, caller);
}

void track_call(const BreakerParts& parts, const BreakerCaller& caller, std::int64_t now,
                BreakerCall& call) noexcept {
  // Without a row nobody could tell that its owner died; it would count for ever.
  const bool may = caller.row != 0 && parts.hanging_count != 0;
  // Threads begin at different cells; where does not matter.
  const auto thread = reinterpret_cast<std::uintptr_t>(caller.stripe.counters) / kCacheLine;
  const auto first = static_cast<std::uint32_t>(thread * 7 + caller.row * 31);
  for (std::uint32_t i = 0; may && i < parts.hanging_count; ++i) {
    const std::uint32_t at = (first + i) % parts.hanging_count;
    Word16* const place = parts.hanging + at;
    Word16 seen = load16(place);
    for (int round = 0; round < kTakeRounds; ++round) {
      const ProbeCell cell = unpack_probe(seen);
      const bool taken = cell.state == ProbeState::Held && !older_epoch(cell.epoch, call.epoch) &&
                         !owner_is_dead(*parts.view, cell);
      if (taken) break;
      const auto since = static_cast<std::uint64_t>((now + kNsPerUs - 1) / kNsPerUs);
      const Word16 mine =
          pack_probe({caller.row, caller.generation & kProbeGenerationMask, call.epoch,
                      ProbeState::Held, false, false, since, cell.take + 1});
      CUTWATER_SYNC_POINT("hanging.before_take");
      if (!cas16(place, seen, mine)) continue;       // `seen` is what lies there now
      call.ticket = mine;
      call.cell = static_cast<std::uint16_t>(at);
      return;
    }
  }
  count_breaker(*parts.view, caller.stripe, parts.index, BreakerCounter::Untracked);
}

void untrack_call(const BreakerParts& parts, const BreakerCall& call) noexcept {
  if (call.ticket == Word16{} || call.cell >= parts.hanging_count) return;
  Word16 held = call.ticket;
  const ProbeCell cell = unpack_probe(held);
  if (!cas16(parts.hanging + call.cell, held, freed(cell))) return;   // taken over, or reclaimed
  CUTWATER_SYNC_POINT("hanging.given_back");
  // By a reading after the swap: if it does not hang by now, no look can have counted it.
  if (is_hanging(parts, cell, parts.view->clock.now())) forget_look(parts);
}

}  // namespace cutwater::shm
