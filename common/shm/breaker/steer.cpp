// SPDX-License-Identifier: Apache-2.0
// By hand (S13), and the daemon's tick (spec memory 10 tick).
#include <algorithm>

#include "rule/breaker_flapping.hpp"
#include "shm/breaker/detail.hpp"
#include "shm/breaker/user.hpp"

namespace cutwater::shm {
namespace {

using rule::BreakerReason;
using rule::BreakerState;

/// Where `what` leads from `word`; anything but Done: it leads nowhere.
Steered step_by_hand(const BreakerParts& parts, const BreakerWord& word, Steer what,
                     std::int64_t for_ns, std::int64_t now, NextState& next) noexcept {
  next = {};
  next.reason = BreakerReason::ByHand;
  next.attempts = word.attempts;
  const std::int64_t until = for_ns > 0 ? now + for_ns : 0;
  const bool by_hand = word.state == BreakerState::ForcedOpen ||
                       word.state == BreakerState::Disabled ||
                       word.state == BreakerState::MetricsOnly;
  switch (what) {
    case Steer::ForceOpen: next.state = BreakerState::ForcedOpen; break;
    case Steer::Disable: next.state = BreakerState::Disabled; break;
    case Steer::MetricsOnly: next.state = BreakerState::MetricsOnly; break;
    case Steer::Auto:
      if (!by_hand) return Steered::NoChange;
      if (word.state == BreakerState::ForcedOpen) {
        next.state = BreakerState::Open;             // over at once: the next caller is a probe
        next.deadline_ns = now - (parts.edge() == rule::OpenEdge::Exclusive ? 1 : 0);
      } else {
        next.attempts = 0;
      }
      return Steered::Done;
    case Steer::Reset:
      next.reason = BreakerReason::Reset;
      next.attempts = 0;
      return Steered::Done;
    case Steer::ToClosed:
      next.attempts = 0;
      return Steered::Done;
    case Steer::ToOpen:
      next = opened(parts, word, word.attempts + 1, BreakerReason::ByHand, now);
      if (for_ns > 0) {
        next.attempts = word.attempts;
        next.deadline_ns = until;
      }
      return Steered::Done;
    case Steer::ToHalfOpen:
      if (word.state == BreakerState::HalfOpen) return Steered::NoChange;
      if (word.state != BreakerState::Open && word.state != BreakerState::ForcedOpen) {
        return Steered::NotAllowed;
      }
      next.state = BreakerState::HalfOpen;
      if (parts.numbers().half_open_max_wait_ns != 0) {
        next.deadline_ns = now + static_cast<std::int64_t>(parts.numbers().half_open_max_wait_ns);
      }
      return Steered::Done;
  }
  next.deadline_ns = until;
  return Steered::Done;
}

/// Outcomes whose recorder was killed before it judged them.
void settle_owed(const BreakerParts& parts, std::int64_t now,
                 const BreakerCaller& caller) noexcept {
  if (parts.is_time()) {
    const std::uint32_t epoch = epoch_of(state_of(parts).lo);
    std::uint32_t total = 0;
    const rule::BreakerWindow window =
        last_time_window(parts.ring, parts.shape(), epoch, total);
    std::uint64_t* const settled = &parts.ring.head->settled;
    if (__atomic_load_n(settled, __ATOMIC_RELAXED) == total) return;
    judge_window(parts, window,
                 {epoch, turn_of_time(parts, now), {window.run > 0, false}, now}, caller);
    __atomic_store_n(settled, std::uint64_t{total}, __ATOMIC_RELAXED);
    return;
  }
  const CountTail tail = find_count_tail(parts.ring);
  if (tail.found) settle_count(parts, tail.at, now, caller);
}

}  // namespace

Steered steer_breaker(const View& view, BreakerRef ref, Steer what, std::int64_t for_ns,
                      std::uint32_t row) noexcept {
  BreakerParts parts;
  if (!read_parts(view, ref, parts)) return Steered::Gone;
  for (int round = 0; round < kBreakerRounds; ++round) {
    const Word16 seen = state_of(parts);
    const std::int64_t now = view.clock.now();
    NextState next;
    const Steered step = step_by_hand(parts, unpack_breaker(seen), what, for_ns, now, next);
    if (step != Steered::Done) return step;
    if (move_breaker(parts, seen, next, now, row)) return Steered::Done;
  }
  count_contention(view);
  return Steered::NoChange;
}

TickReport tick_breaker(const View& view, std::uint32_t index, StripeHandle stripe) noexcept {
  TickReport report;
  BreakerParts parts;
  if (!read_parts(view, index, parts)) return report;
  BreakerCaller daemon;
  daemon.row = kDaemonRow;
  daemon.stripe = stripe;
  const std::int64_t now = view.clock.now();
  tick_users(parts, now);
  for (std::uint32_t i = 0; i < parts.probe_count; ++i) {
    Word16* const place = parts.probes + i;
    const Lapsed lapsed = lapse_probe(parts, place, load16(place), now, stripe);
    report.reclaimed += lapsed == Lapsed::Reclaimed;
    report.expired += lapsed == Lapsed::Expired;
  }
  if (parts.hanging_count != 0) forget_look(parts);
  Word16 seen = state_of(parts);
  BreakerWord word = unpack_breaker(seen);
  if (word.state == BreakerState::Closed || word.state == BreakerState::MetricsOnly) {
    settle_owed(parts, now, daemon);
    if (parts.hanging_count != 0) judge_hanging(parts, now, daemon);
  } else if (parts.hanging_count != 0) {
    static_cast<void>(hanging_calls(parts, word.epoch, now, stripe));   // frees those of the dead
  }
  settle_half_open(parts, now, kDaemonRow);
  seen = state_of(parts);
  word = unpack_breaker(seen);
  NextState next;
  const bool automatic = (parts.numbers().flags & rule::kBreakerAutomatic) != 0;
  if (automatic && word.state == BreakerState::Open && due_step(parts, word, now, next)) {
    move_breaker(parts, seen, next, now, kDaemonRow);
  }
  announce_breaker(parts, state_of(parts), kDaemonRow);
  return report;
}

bool breaker_needs_tick(const View& view, std::uint32_t index) noexcept {
  BreakerParts parts;
  if (!read_parts(view, index, parts)) return false;
  const BreakerWord word = unpack_breaker(state_of(parts));
  if (!word.announced || word.state == BreakerState::HalfOpen) return true;
  if (__atomic_load_n(&parts.head->users, __ATOMIC_RELAXED) >= kBreakerUsers) return true;
  if (word.state == BreakerState::Open && parts.hanging_count == 0) {
    return (parts.numbers().flags & rule::kBreakerAutomatic) != 0;
  }
  if (parts.hanging_count != 0) return true;
  if (word.state != BreakerState::Closed && word.state != BreakerState::MetricsOnly) return false;
  const std::uint64_t settled = __atomic_load_n(&parts.ring.head->settled, __ATOMIC_RELAXED);
  if (parts.is_time()) return settled != time_total(parts.ring).total;
  const CountTail tail = find_count_tail(parts.ring);
  return tail.found && tail.at != (settled & kSeqMask);
}

bool breaker_is_plain(const View& view, std::uint32_t index) noexcept {
  BreakerParts parts;
  if (!read_parts(view, index, parts)) return true;
  const BreakerWord word = unpack_breaker(state_of(parts));
  return word.state == BreakerState::Closed && !word.ramping && !word.views &&
         (parts.numbers().flags & rule::kBreakerSwitchedOff) == 0;
}

bool breaker_may_hold(const View& view, std::uint32_t index) noexcept {
  BreakerParts parts;
  if (!read_parts(view, index, parts)) return false;
  // relaxed: whoever is added meanwhile lives.
  return __atomic_load_n(&parts.head->users, __ATOMIC_RELAXED) != 0 ||
         breaker_needs_tick(view, index);
}

bool read_breaker(const View& view, std::uint32_t index, BreakerInfo& out) noexcept {
  BreakerParts parts;
  out = {};
  if (!read_parts(view, index, parts)) return false;
  out.used = true;
  out.kind = parts.config.kind;
  out.incarnation = parts.config.incarnation;
  out.numbers = parts.numbers();
  out.now_ns = view.clock.now();
  out.word = unpack_breaker(state_of(parts));
  out.effective = rule::effective_state(out.numbers, out.word.state, out.word.deadline_ns,
                                        out.now_ns);
  const Word16 since = load16(&parts.head->since);
  if (epoch_of(since.lo) == out.word.epoch && since.hi != 0) {
    out.since_ns = static_cast<std::int64_t>(since.hi);
    out.trip_permille = static_cast<std::uint32_t>(since.lo >> 22) & 1023;
    out.trip_calls = static_cast<std::uint32_t>(since.lo) & ((1u << 22) - 1);
  }
  // OPEN shows the window it tripped on, so that late results can be shown in it.
  const bool tripped = out.word.state == BreakerState::Open &&
                       out.word.previous == BreakerState::Closed;
  const std::uint32_t epoch = out.word.epoch - (tripped ? 1 : 0);
  const bool recording = out.word.state == BreakerState::Closed || tripped ||
                         out.word.state == BreakerState::MetricsOnly;
  if (recording) out.window = window_now(parts, epoch, out.now_ns);
  if (parts.is_time()) {
    out.window_span_ns = static_cast<std::int64_t>(out.numbers.slot_ns * out.numbers.slots);
  }
  if (out.word.state == BreakerState::HalfOpen) {
    out.probes = collect_probes(parts, out.word.epoch, out.probes_held);
  }
  out.hanging = count_hanging(parts, out.word.epoch, out.now_ns);
  out.users = __atomic_load_n(&parts.head->users, __ATOMIC_RELAXED);
  out.flapping = rule::is_flapping(
      __atomic_load_n(&parts.head->openings, __ATOMIC_RELAXED), out.now_ns);
  if (out.word.views) out.users_open = count_open_views(parts, out.word.epoch);
  breaker_name(view, parts.current, index, out.name, sizeof out.name);
  return true;
}

}  // namespace cutwater::shm
