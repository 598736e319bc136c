// SPDX-License-Identifier: Apache-2.0
// Asking a breaker for one call (spec memory 9 Enter, 10).
#include <algorithm>

#include "shm/breaker/detail.hpp"
#include "shm/breaker/quick.hpp"
#include "shm/breaker/user.hpp"

namespace cutwater::shm {
namespace {

using rule::BreakerReason;
using rule::BreakerState;

BreakerEntry granted(CallKind kind, std::uint32_t epoch, std::int64_t now) noexcept {
  BreakerEntry entry;
  entry.granted = true;
  entry.call.kind = kind;
  entry.call.epoch = epoch;
  entry.now_ns = now;
  return entry;
}

BreakerEntry refused(const BreakerWord& word, Reason reason, std::int64_t now,
                     std::int64_t retry_after) noexcept {
  BreakerEntry entry;
  entry.reason = reason;
  entry.call.epoch = word.epoch;                     // of the state that refuses
  entry.state = word.state;
  entry.ramping = word.ramping;
  entry.now_ns = now;
  entry.hint = reason == Reason::Probing;
  entry.retry_after_ns = retry_after;
  return entry;
}

/// The breaker is gone, or its memory makes no sense: nobody can say more.
BreakerEntry degraded(const View& view) noexcept {
  return refused({}, Reason::Degraded, view.clock.now(), 1);
}

/// The j of this process's next call of the ramp of `epoch`; `take` false: only looked at.
std::uint64_t ramp_call(BreakerLocal* local, std::uint32_t epoch, bool take) noexcept {
  if (local == nullptr) return 1;
  std::uint64_t seen = local->ramp.load(std::memory_order_relaxed);
  for (;;) {
    const std::uint64_t before = seen >> 32 == epoch ? seen & 0xffff'ffff : 0;
    const std::uint64_t next = std::uint64_t{epoch} << 32 | ((before + 1) & 0xffff'ffff);
    // relaxed: the count carries its whole meaning.
    if (!take || local->ramp.compare_exchange_weak(seen, next, std::memory_order_relaxed)) {
      return before + 1;
    }
  }
}

/// HALF_OPEN that took too long: OPEN again, or CLOSED.
NextState after_half_open(const BreakerParts& parts, const BreakerWord& word,
                          std::int64_t now) noexcept {
  const bool close = parts.numbers().after_half_open_wait ==
                     static_cast<std::uint8_t>(rule::AfterHalfOpenWait::Closed);
  NextState next = close ? closed_again(parts, now)
                         : opened(parts, word, word.attempts + 1, BreakerReason::None, now);
  next.reason = BreakerReason::HalfOpenWaitOver;
  return next;
}

}  // namespace

bool due_step(const BreakerParts& parts, const BreakerWord& word, std::int64_t now,
              NextState& next) noexcept {
  const bool passed = word.deadline_ns != 0 && now >= word.deadline_ns;
  next = {};
  next.attempts = word.attempts;
  switch (word.state) {
    case BreakerState::Open:
      if (!rule::is_over(parts.edge(), word.deadline_ns, now)) return false;
      next.state = BreakerState::HalfOpen;
      next.reason = BreakerReason::WaitOver;
      if (parts.numbers().half_open_max_wait_ns != 0) {
        next.deadline_ns = now + static_cast<std::int64_t>(parts.numbers().half_open_max_wait_ns);
      }
      return true;
    case BreakerState::ForcedOpen:
      if (!passed) return false;
      next.state = BreakerState::Open;               // over at once: the next look goes half-open
      next.reason = BreakerReason::Expired;
      next.deadline_ns = now - (parts.edge() == rule::OpenEdge::Exclusive ? 1 : 0);
      return true;
    case BreakerState::Disabled:
    case BreakerState::MetricsOnly:
      if (!passed) return false;
      next.state = BreakerState::Closed;
      next.reason = BreakerReason::Expired;
      next.attempts = 0;
      return true;
    default: return false;
  }
}

namespace {

/// A CLOSED breaker whose ramp is on: its share, or its end. True: `out` is the answer.
bool enter_ramp(const BreakerParts& parts, Word16 seen, const BreakerWord& word,
                const BreakerCaller& caller, std::int64_t now, BreakerEntry& out) noexcept {
  if (now >= word.deadline_ns) {
    cas16(&parts.head->state, seen, {seen.lo & ~kStateRamping, seen.hi});
    return false;
  }
  const std::uint32_t share = rule::ramp_share(parts.numbers(), word.deadline_ns, now);
  const bool admit = rule::ramp_admits(ramp_call(caller.local, word.epoch, true), share);
  out = admit ? granted(CallKind::Window, word.epoch, now)
              : refused(word, Reason::Probing, now, word.deadline_ns - now);
  return true;
}

/// True: `out` is the answer; false: look at the word again.
bool enter_half_open(const BreakerParts& parts, Word16 seen, const BreakerWord& word,
                     const BreakerCaller& caller, std::int64_t now, std::int64_t deadline_ns,
                     BreakerEntry& out) noexcept {
  if (word.deadline_ns != 0 && now >= word.deadline_ns) {
    settle_half_open(parts, now, caller.row);
    if (state_of(parts) == seen) {
      move_breaker(parts, seen, after_half_open(parts, word, now), now, caller.row);
    }
    return false;
  }
  const ProbeTake take = take_probe(parts, seen, caller, now, deadline_ns);
  if (take.found == ProbeTake::Found::EnterAgain) return false;
  if (take.found == ProbeTake::Found::Taken) {
    out = granted(CallKind::Probe, word.epoch, now);
    out.call.ticket = take.ticket;
    out.call.cell = take.cell;
    return true;
  }
  // Nobody refuses before it tried to settle: whoever decided last may have been killed.
  if (guarded(Guard::BreakerSettleBeforeRefusing)) settle_half_open(parts, now, caller.row);
  if (epoch_of(state_of(parts).lo) != word.epoch) return false;
  const std::int64_t wait = take.earliest_ns > now ? take.earliest_ns - now : 1;
  out = refused(word, Reason::Probing, now, wait);
  return true;
}

/// A state that does not exist becomes CLOSED in a new epoch, with an empty window.
void repair_state(const BreakerParts& parts, Word16 seen) noexcept {
  if (!begin_windows(parts, seen, BreakerState::Closed)) return;
  BreakerWord word;
  word.reason = BreakerReason::Reset;
  word.epoch = epoch_of(seen.lo) + 1;
  cas16(&parts.head->state, seen, pack_breaker(word));
}

BreakerEntry enter_any(BreakerParts& parts, const BreakerCaller& caller,
                       std::int64_t deadline_ns) noexcept {
  const View& view = *parts.view;
  for (int round = 0; round < kBreakerRounds; ++round) {
    const Word16 seen = state_of(parts);
    const BreakerWord word = unpack_breaker(seen);
    const bool tracked = parts.hanging_count != 0;
    BreakerEntry entry;
    if (word.state == BreakerState::Closed && word.views &&
        enter_by_view(parts, word, caller, deadline_ns, true, entry)) {
      return entry;
    }
    if (word.state == BreakerState::Closed && !word.ramping && !tracked) {
      return granted(CallKind::Window, word.epoch, 0);
    }
    const std::int64_t now = view.clock.now();
    if (tracked) {
      judge_hanging(parts, now, caller);
      if (epoch_of(state_of(parts).lo) != word.epoch) continue;
      if (word.state == BreakerState::Closed && !word.ramping) {
        return granted(CallKind::Window, word.epoch, now);
      }
    }
    NextState next;
    if (due_step(parts, word, now, next)) {
      move_breaker(parts, seen, next, now, caller.row);
      continue;
    }
    switch (word.state) {
      case BreakerState::Closed:
        if (enter_ramp(parts, seen, word, caller, now, entry)) return entry;
        break;
      case BreakerState::MetricsOnly: return granted(CallKind::Metrics, word.epoch, now);
      case BreakerState::Disabled: return granted(CallKind::Off, word.epoch, now);
      case BreakerState::ForcedOpen:
        return refused(word, Reason::Open, now,
                       word.deadline_ns == 0 ? -1 : word.deadline_ns - now);
      case BreakerState::Open:
        return refused(word, Reason::Open, now,
                       rule::until_over(parts.edge(), word.deadline_ns, now));
      case BreakerState::HalfOpen:
        if (enter_half_open(parts, seen, word, caller, now, deadline_ns, entry)) return entry;
        break;
      default:                                       // a state that does not exist: scribbled over
        count_damage(view);
        repair_state(parts, seen);
    }
    if (!refresh_parts(parts)) return degraded(view);
  }
  count_contention(view);
  return degraded(view);
}

}  // namespace

BreakerEntry enter_breaker(const View& view, BreakerRef ref, const BreakerCaller& caller,
                           std::int64_t deadline_ns) noexcept {
  std::uint64_t state_lo = 0;
  bool measures = false;
  if (caller.local != nullptr && enter_quickly(*caller.local, view,
                                               pack_ref(ref.index, ref.incarnation), state_lo,
                                               measures)) {
    return granted(CallKind::Window, epoch_of(state_lo), 0);
  }
  BreakerParts parts;
  if (!read_parts(view, ref, parts)) {
    count_breaker(view, caller.stripe, ref.index, BreakerCounter::RefusedDegraded);
    return degraded(view);
  }
  keep_breaker(parts, caller.local);
  if ((parts.numbers().flags & rule::kBreakerSwitchedOff) != 0) {
    return granted(CallKind::Off, 0, 0);
  }
  BreakerEntry entry = enter_any(parts, caller, deadline_ns);
  if (entry.granted) {
    const bool window = entry.call.kind == CallKind::Window || entry.call.kind == CallKind::Metrics;
    if (window && parts.hanging_count != 0) track_call(parts, caller, entry.now_ns, entry.call);
    if (entry.call.kind == CallKind::Probe) {
      count_breaker(view, caller.stripe, ref.index, BreakerCounter::ProbesGranted);
    }
    return entry;
  }
  if (entry.scope == RefusalScope::Process) {
    count_breaker(view, caller.stripe, ref.index, BreakerCounter::RefusedProcess);
  } else {
    count_breaker_refusal(view, caller.stripe, ref.index, entry.reason);
  }
  return entry;
}

void count_breaker_refusal(const View& view, StripeHandle stripe, std::uint32_t index,
                           Reason reason) noexcept {
  count_breaker(view, stripe, index,
                reason == Reason::Open      ? BreakerCounter::RefusedOpen
                : reason == Reason::Probing ? BreakerCounter::RefusedProbing
                                            : BreakerCounter::RefusedDegraded);
}

BreakerEntry look_after_settling(const View& view, BreakerRef ref,
                                 const BreakerCaller& caller) noexcept {
  const BreakerEntry seen = look_at_breaker(view, ref, caller);
  if (seen.granted || !guarded(Guard::BreakerSettleBeforeRefusing)) return seen;
  BreakerParts parts;
  if (!read_parts(view, ref, parts)) return seen;
  const Word16 before = state_of(parts);
  const BreakerWord word = unpack_breaker(before);
  if (word.state != BreakerState::HalfOpen) return seen;
  const std::int64_t now = view.clock.now();
  for (std::uint32_t i = 0; i < parts.probe_count; ++i) {
    Word16* const place = parts.probes + i;
    lapse_probe(parts, place, load16(place), now, caller.stripe);
  }
  settle_half_open(parts, now, caller.row);
  const bool over = word.deadline_ns != 0 && now >= word.deadline_ns;
  if (over && state_of(parts) == before) {
    move_breaker(parts, before, after_half_open(parts, word, now), now, caller.row);
  }
  return look_at_breaker(view, ref, caller);
}

BreakerEntry look_at_breaker(const View& view, BreakerRef ref,
                             const BreakerCaller& caller) noexcept {
  BreakerParts parts;
  if (!read_parts(view, ref, parts)) return degraded(view);
  if ((parts.numbers().flags & rule::kBreakerSwitchedOff) != 0) return granted(CallKind::Off, 0, 0);
  const BreakerWord word = unpack_breaker(state_of(parts));
  const std::int64_t now = view.clock.now();
  NextState next;
  if (due_step(parts, word, now, next)) {
    // Where the step leads the caller is the first: half-open with every cell free, or closed.
    return granted(next.state == BreakerState::Closed ? CallKind::Window : CallKind::Probe,
                   word.epoch + 1, now);
  }
  switch (word.state) {
    case BreakerState::Closed: {
      BreakerEntry entry;
      if (word.views && enter_by_view(parts, word, caller, 0, false, entry)) return entry;
      if (!word.ramping || now >= word.deadline_ns) {
        return granted(CallKind::Window, word.epoch, now);
      }
      const std::uint32_t share = rule::ramp_share(parts.numbers(), word.deadline_ns, now);
      if (rule::ramp_admits(ramp_call(caller.local, word.epoch, false), share)) {
        return granted(CallKind::Window, word.epoch, now);
      }
      return refused(word, Reason::Probing, now, word.deadline_ns - now);
    }
    case BreakerState::MetricsOnly: return granted(CallKind::Metrics, word.epoch, now);
    case BreakerState::Disabled: return granted(CallKind::Off, word.epoch, now);
    case BreakerState::Open:
      return refused(word, Reason::Open, now,
                     rule::until_over(parts.edge(), word.deadline_ns, now));
    case BreakerState::ForcedOpen:
      return refused(word, Reason::Open, now, word.deadline_ns == 0 ? -1 : word.deadline_ns - now);
    case BreakerState::HalfOpen: return look_at_probes(parts, word, now);
  }
  return degraded(view);
}

}  // namespace cutwater::shm
