// SPDX-License-Identifier: Apache-2.0
// Outcomes: into the window, or into the probe's cell; and what follows from them (spec memory 9
// Record and Settle; rules S4, S5, S7, S9).
#include <algorithm>

#include "base/sync_point.hpp"
#include "shm/breaker/detail.hpp"
#include "shm/breaker/quick.hpp"
#include "shm/breaker/trips.hpp"
#include "shm/breaker/user.hpp"
#include "shm/event_log.hpp"
#include "shm/supersede.hpp"

namespace cutwater::shm {
namespace {

using rule::BreakerOutcome;
using rule::BreakerReason;
using rule::BreakerState;
using rule::BreakerWindow;

/// The larger of a COUNT window and what came in the last min-span.
void widen_by_span(const BreakerWindow& span, BreakerWindow& window) noexcept {
  if (span.calls <= window.calls) return;
  window.calls = span.calls;
  window.failures = span.failures;
  window.slow = span.slow;
}

/// METRICS_ONLY: one event per visit and reason.
void tell_would_open(const BreakerParts& parts, std::uint32_t epoch,
                     BreakerReason reason) noexcept {
  const std::uint64_t bit = std::uint64_t{1} << static_cast<unsigned>(reason);
  std::uint64_t seen = __atomic_load_n(&parts.head->would_open, __ATOMIC_RELAXED);
  for (;;) {
    const std::uint64_t told = seen >> 32 == epoch ? seen : std::uint64_t{epoch} << 32;
    if ((told & bit) != 0) return;
    // relaxed: the word carries its whole meaning.
    if (__atomic_compare_exchange_n(&parts.head->would_open, &seen, told | bit, false,
                                    __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
      break;
    }
  }
  Event event;
  event.kind = EventKind::BreakerWouldOpen;
  event.object = parts.index;
  event.reason = static_cast<std::uint8_t>(reason);
  breaker_name(*parts.view, parts.current, parts.index, event.text, sizeof event.text);
  append_event(*parts.view, event);
}

/// S9: OPEN at once, attempts as they are.
void open_at_once(const BreakerParts& parts, std::uint32_t epoch, std::int64_t for_ns,
                  std::int64_t now, std::uint32_t row) noexcept {
  for (int round = 0; round < kBreakerRounds; ++round) {
    const Word16 seen = state_of(parts);
    const BreakerWord word = unpack_breaker(seen);
    if (word.epoch != epoch) return;
    NextState next = opened(parts, word, std::max(word.attempts, 1u), BreakerReason::Hint, now);
    next.attempts = word.attempts;
    if (for_ns >= 0) {
      const auto most = static_cast<std::int64_t>(parts.numbers().max_open_for_ns);
      next.deadline_ns = now + std::min(for_ns, most);
    }
    if (move_breaker(parts, seen, next, now, row)) return;
  }
  count_contention(*parts.view);
}

/// What an outcome needs besides itself.
struct Outcome {
  BreakerOutcome kind;
  std::int64_t now = 0;              ///< 0 = the clock was not read
};

Recorded lost(const BreakerParts& parts, Appended how) noexcept {
  if (how == Appended::Damaged) count_damage(*parts.view);
  if (how == Appended::GaveUp) count_contention(*parts.view);
  return how == Appended::Stale ? Recorded::Stale : Recorded::Lost;
}

/// Into the window of `epoch`; `judge` false: for display only.
Recorded append_outcome(const BreakerParts& parts, std::uint32_t epoch, const Outcome& outcome,
                        bool judge, const BreakerCaller& caller) noexcept {
  const View& view = *parts.view;
  if (parts.is_time()) {
    BreakerWindow window;
    std::uint32_t total = 0;
    const Appended how = append_time(parts.ring, parts.shape(), view.clock, outcome.now, epoch,
                                     outcome.kind, window, &total);
    if (how != Appended::Yes) return lost(parts, how);
    CUTWATER_SYNC_POINT("breaker.appended");
    if (judge) {
      const Judged judged{epoch, turn_of_time(parts, outcome.now), outcome.kind, outcome.now};
      const std::uint32_t run = count_for_user(parts, judged, caller);
      judge_window(parts, window, judged, caller);
      judge_own_run(parts, judged, run, caller);
    }
    // relaxed: a hint; too low only costs looking again.
    __atomic_store_n(&parts.ring.head->settled, std::uint64_t{total}, __ATOMIC_RELAXED);
    return Recorded::Counted;
  }
  if (parts.span.cells != nullptr) {
    BreakerWindow ignored;
    append_time(parts.span, parts.span_shape(), view.clock, outcome.now, epoch, outcome.kind,
                ignored);
  }
  CountTail at;
  const Appended how = append_count(parts.ring, epoch, outcome.kind, at);
  if (how != Appended::Yes) return lost(parts, how);
  CUTWATER_SYNC_POINT("breaker.appended");
  if (judge) {
    const Judged judged{epoch, turn_of_count(parts, at.at), outcome.kind, outcome.now};
    const std::uint32_t run = count_for_user(parts, judged, caller);
    settle_count(parts, at.at, outcome.now, caller);
    judge_own_run(parts, judged, run, caller);
  }
  return Recorded::Counted;
}

/// Before the call is judged: the trip that it causes tells how long it took, too. Never taken
/// back: durations are read as differences of sums, which must not fall.
void count_time(const BreakerParts& parts, const BreakerCaller& caller,
                const BreakerReport& report) noexcept {
  if (report.duration_ns < 0) return;
  count_duration(*parts.view, caller.stripe, parts.index, report.duration_ns);
}

/// A call granted by a closed (or measuring) breaker.
Recorded finish_window(const BreakerParts& parts, const BreakerCaller& caller,
                       const BreakerCall& call, const Outcome& outcome,
                       const BreakerReport& report) noexcept {
  const Word16 seen = state_of(parts);
  const BreakerWord word = unpack_breaker(seen);
  const std::uint32_t epoch = guarded(Guard::BreakerTicketEpoch) ? call.epoch : word.epoch;
  if (word.epoch != epoch) {
    const bool shown =
        parts.numbers().late_results == static_cast<std::uint8_t>(rule::LateResults::ShowInOpen) &&
        word.state == BreakerState::Open && word.previous == BreakerState::Closed &&
        word.epoch == epoch + 1;
    if (shown) append_outcome(parts, epoch, outcome, false, caller);
    return Recorded::Stale;
  }
  count_time(parts, caller, report);
  note_failure(*parts.view, parts.index, epoch, caller.row, report.failure_class, outcome.kind);
  const bool at_once = report.open_now && word.state == BreakerState::Closed;
  const Recorded how = append_outcome(parts, epoch, outcome, !at_once, caller);
  if (at_once) open_at_once(parts, epoch, report.open_for_ns, outcome.now, caller.row);
  return how;
}

/// A probe: exactly the cell that was taken.
Recorded finish_probe(const BreakerParts& parts, const BreakerCaller& caller,
                      const BreakerCall& call, const Outcome& outcome, bool counts,
                      const BreakerReport& report) noexcept {
  if (call.cell >= parts.probe_count) return Recorded::Stale;
  ProbeCell cell = unpack_probe(call.ticket);
  cell.state = counts ? ProbeState::Spent : ProbeState::Free;
  cell.failed = counts && outcome.kind.failed;
  cell.slow = counts && outcome.kind.slow;
  cell.deadline_us = 0;
  Word16 held = call.ticket;
  CUTWATER_SYNC_POINT("breaker.before_result");
  if (!cas16(parts.probes + call.cell, held, pack_probe(cell))) return Recorded::Stale;
  CUTWATER_SYNC_POINT("breaker.spent");
  if (!counts) return Recorded::Nothing;
  if (epoch_of(state_of(parts).lo) != call.epoch) return Recorded::Stale;
  count_time(parts, caller, report);
  if (report.open_now) {
    open_at_once(parts, call.epoch, report.open_for_ns, outcome.now, caller.row);
  } else {
    settle_half_open(parts, outcome.now, caller.row);
  }
  return Recorded::Counted;
}

void count_outcome_of(const View& view, const BreakerCaller& caller, std::uint32_t index,
                      const BreakerReport& report, BreakerOutcome outcome, Recorded how) noexcept {
  const auto add = [&](BreakerCounter counter) {
    count_breaker(view, caller.stripe, index, counter);
  };
  if (how == Recorded::Stale) {
    add(BreakerCounter::Stale);
    if (outcome.failed) add(BreakerCounter::StaleFailure);
    return;
  }
  switch (report.kind) {
    case Ended::Success:
      add(BreakerCounter::Success);
      if (outcome.slow) add(BreakerCounter::SlowSuccess);
      break;
    case Ended::Failure:
      add(BreakerCounter::Failure);
      if (outcome.slow) add(BreakerCounter::SlowFailure);
      add(static_cast<BreakerCounter>(static_cast<std::size_t>(BreakerCounter::FirstClass) +
                                      report.failure_class % kBreakerClasses));
      break;
    case Ended::Ignored: add(BreakerCounter::Ignored); break;
    case Ended::Cancelled: add(BreakerCounter::Cancelled); break;
  }
  if (report.open_now) add(BreakerCounter::Hinted);
}

}  // namespace

void judge_window(const BreakerParts& parts, BreakerWindow window, Judged judged,
                  const BreakerCaller& caller) noexcept {
  std::uint32_t hanging = 0;
  if (parts.hanging_count != 0) {
    if (judged.now == 0) judged.now = parts.view->clock.now();
    hanging = hanging_calls(parts, judged.epoch, judged.now, caller.stripe);
    window.calls += hanging;
    window.slow += hanging;
    judged.last.slow = judged.last.slow || hanging != 0;
  }
  const BreakerReason reason = rule::reason_to_open(parts.numbers(), window, judged.last);
  if (reason == BreakerReason::None) return;
  for (int round = 0; round < kBreakerRounds; ++round) {
    const Word16 seen = state_of(parts);
    const BreakerWord word = unpack_breaker(seen);
    if (word.epoch != judged.epoch) return;
    if (word.state == BreakerState::MetricsOnly) {
      return tell_would_open(parts, judged.epoch, reason);
    }
    if (word.state != BreakerState::Closed) return;
    if (judged.now == 0) judged.now = parts.view->clock.now();
    if (opens_for_some_only(parts, reason, judged, caller)) return;
    NextState next = opened(parts, word, word.attempts + 1, reason, judged.now);
    next.calls = window.calls;
    next.window = window;
    next.hanging = hanging;
    const std::uint64_t part = reason == BreakerReason::SlowRate ? window.slow : window.failures;
    if (window.calls != 0) {
      next.permille = static_cast<std::uint32_t>(part * 1000 / window.calls);
    }
    if (move_breaker(parts, seen, next, judged.now, caller.row)) return;
  }
  count_contention(*parts.view);
}

void settle_count(const BreakerParts& parts, std::uint64_t upto, std::int64_t now,
                  const BreakerCaller& caller) noexcept {
  const rule::BreakerNumbers& n = parts.numbers();
  std::uint64_t* const settled = &parts.ring.head->settled;
  const std::uint64_t done = __atomic_load_n(settled, __ATOMIC_RELAXED) & kSeqMask;
  std::uint64_t behind = (upto - done) & kSeqMask;
  if (behind > kSeqMask / 2) {
    if (((done - upto) & kSeqMask) <= parts.ring.mask) return;   // somebody settled beyond us
    behind = 1;                                      // nobody can have: scribbled over
  }
  behind = std::min<std::uint64_t>(behind, parts.ring.mask + 1);
  if (!guarded(Guard::BreakerSettlesEveryCell)) behind = std::min<std::uint64_t>(behind, 1);
  for (std::uint64_t i = behind; i-- > 0;) {
    const std::uint64_t at = (upto - i) & kSeqMask;
    CountCell cell;
    BreakerOutcome last;
    BreakerWindow window;
    if (!count_outcome(parts.ring, at, cell, last)) continue;
    if (epoch_of(state_of(parts).lo) != cell.epoch) continue;
    if (!count_window(parts.ring, at, cell, n.window_calls, n.consecutive, window)) continue;
    if (parts.span.cells != nullptr) {
      if (now == 0) now = parts.view->clock.now();
      widen_by_span(time_window(parts.span, parts.span_shape(), now, cell.epoch), window);
    }
    judge_window(parts, window, {cell.epoch, turn_of_count(parts, at), last, now}, caller);
  }
  CUTWATER_SYNC_POINT("breaker.before_settled");
  // relaxed: a hint; too low only costs looking again.
  __atomic_store_n(settled, upto, __ATOMIC_RELAXED);
}

rule::BreakerWindow window_now(const BreakerParts& parts, std::uint32_t epoch,
                               std::int64_t now) noexcept {
  if (parts.is_time()) return time_window(parts.ring, parts.shape(), now, epoch);
  BreakerWindow window;
  const CountTail tail = find_count_tail(parts.ring);
  if (tail.found && tail.cell.epoch == epoch) {
    count_window(parts.ring, tail.at, tail.cell, parts.numbers().window_calls,
                 parts.numbers().consecutive, window);
  }
  if (parts.span.cells != nullptr) {
    widen_by_span(time_window(parts.span, parts.span_shape(), now, epoch), window);
  }
  return window;
}

Recorded finish_breaker(const View& view, BreakerRef ref, const BreakerCaller& caller,
                        const BreakerCall& call, const BreakerReport& given) noexcept {
  const bool plain = call.kind == CallKind::Window && given.kind == Ended::Success &&
                     !given.open_now && call.ticket == Word16{};
  if (plain && finish_quickly(view, pack_ref(ref.index, ref.incarnation), caller,
                              {call.epoch, call.start_ns, given.duration_ns})) {
    return Recorded::Counted;
  }
  BreakerParts parts;
  BreakerReport report = given;
  if (call.kind == CallKind::None || !read_parts(view, ref, parts)) return Recorded::Nothing;
  keep_breaker(parts, caller.local);
  if ((parts.current & kCurrentSupersededBit) != 0) return Recorded::Moved;
  const rule::BreakerNumbers& n = parts.numbers();
  if (report.kind == Ended::Failure && report.retry_after_ns >= 0 && !report.open_now &&
      (n.flags & rule::kBreakerRetryAfter) != 0) {
    report.open_now = true;
    report.open_for_ns = report.retry_after_ns;
  }
  const bool as_success =
      n.ignored_results == static_cast<std::uint8_t>(rule::IgnoredResults::Success);
  const bool counts = report.kind == Ended::Success || report.kind == Ended::Failure ||
                      (report.kind == Ended::Ignored && as_success);
  Outcome outcome;
  outcome.kind.failed = report.kind == Ended::Failure;
  const bool clock_needed = parts.is_time() || parts.span.cells != nullptr || report.open_now ||
                            call.kind == CallKind::Probe || call.kind == CallKind::OwnProbe ||
                            (report.duration_ns < 0 && call.start_ns != 0);
  if (counts && clock_needed) outcome.now = view.clock.now();
  if (report.duration_ns < 0 && call.start_ns != 0) {
    report.duration_ns = outcome.now - call.start_ns;
  }
  const bool slow_on = n.slow_ppm != rule::kOffPpm;
  outcome.kind.slow =
      slow_on && report.duration_ns >= 0 &&
      static_cast<std::uint64_t>(report.duration_ns) > n.slow_ns;
  const bool tracked = call.kind == CallKind::Window || call.kind == CallKind::Metrics;
  if (tracked && guarded(Guard::HangingCountedOnce)) untrack_call(parts, call);
  Recorded how = Recorded::Nothing;
  if (call.kind == CallKind::Probe) {
    how = finish_probe(parts, caller, call, outcome, counts, report);
  } else if (counts && call.kind != CallKind::Off) {
    how = finish_window(parts, caller, call, outcome, report);
  }
  if (call.kind == CallKind::OwnProbe) {
    finish_own_probe(parts, call, outcome.kind, counts, outcome.now, caller);
  }
  if (tracked && !guarded(Guard::HangingCountedOnce)) untrack_call(parts, call);
  count_outcome_of(view, caller, ref.index, report, outcome.kind, how);
  const bool off = call.kind == CallKind::Off;
  if (off && counts) count_time(parts, caller, report);
  return !(call.ticket == Word16{}) && overtaken(view) ? Recorded::Overtaken : how;
}

Recorded finish_in_successor(const View& view, BreakerRef ref, const BreakerCaller& caller,
                             const BreakerCall& call, const BreakerReport& report,
                             Recorded how) noexcept {
  const bool tracked = call.kind == CallKind::Window || call.kind == CallKind::Metrics;
  if (how != Recorded::Overtaken || !tracked) {
    return finish_breaker(view, ref, caller, call, report);
  }
  // Its outcome went into the window before: only the cell is left to give back.
  BreakerParts parts;
  if (!read_parts(view, ref, parts)) return Recorded::Nothing;
  untrack_call(parts, call);
  return overtaken(view) ? Recorded::Overtaken : Recorded::Nothing;
}

}  // namespace cutwater::shm
