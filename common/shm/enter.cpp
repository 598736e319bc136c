// SPDX-License-Identifier: Apache-2.0
// Look at every part; take place, tokens, probe; give back by receipt what a refusal left over.
#include "shm/enter.hpp"

#include <algorithm>

#include "base/guard.hpp"
#include "base/sync_point.hpp"

namespace cutwater::shm {
namespace {

struct Round {
  const View& view;
  const EnterCaller& caller;
  Entering& entering;
  EnterAnswer& out;
  bool joins = false;                  // it saw that it has to stand in line

  const EnterAsk& ask() const noexcept { return entering.ask; }
  bool has_breaker() const noexcept { return ask().breaker.index != kNoLine; }
  bool has_bulkhead() const noexcept { return ask().bulkhead.index != kNoLine; }
};

// ---- refusals -----------------------------------------------------------------------------------

/// The answer of the part that refuses; never without a wait to come back after.
bool refuse(Round& r, EnterPart part, Reason reason, std::int64_t retry_after_ns,
            bool hint) noexcept {
  r.out.part = part;
  r.out.reason = reason;
  r.out.hint = hint;
  r.out.retry_after_ns = retry_after_ns == 0 ? 1 : retry_after_ns;
  return false;
}

bool refuse_by_breaker(Round& r) noexcept {
  const BreakerEntry& said = r.out.breaker;
  r.out.now_ns = std::max(r.out.now_ns, said.now_ns);
  return refuse(r, EnterPart::Breaker, said.reason, said.retry_after_ns,
                said.hint || said.reason == Reason::Degraded);
}

/// One too many that was taken, and given back while the memory was superseded.
void note_owed(Round& r, const BulkheadEntry& said) noexcept {
  if (said.granted || said.place.cell_value == 0) return;
  r.out.owed.place = r.entering.owed = said.place;
}

/// A call that was not made in time says nothing of the dependency.
void count_unstarted(const Round& r) noexcept {
  if (!r.has_breaker()) return;
  count_breaker(r.view, r.caller.breaker.stripe, r.ask().breaker.index,
                BreakerCounter::ExpiredInQueue);
}

bool refuse_by_bulkhead(Round& r) noexcept {
  const BulkheadEntry& said = r.out.bulkhead;
  r.out.now_ns = std::max(r.out.now_ns, said.now_ns);
  note_owed(r, said);
  if (said.reason == Reason::Expired) count_unstarted(r);
  return refuse(r, EnterPart::Bulkhead, said.reason, said.retry_after_ns, true);
}

bool refuse_by_limits(Round& r) noexcept {
  if (r.out.limits_outcome != Outcome::Answered) {
    return refuse(r, EnterPart::Limit, Reason::Degraded, 1, true);
  }
  const Decision verdict(r.out.limits.verdict);
  const Nanos wait = verdict.retry_after();
  r.out.now_ns = r.out.limits.verdict.t;
  return refuse(r, EnterPart::Limit, verdict.reason(), wait == kNever ? -1 : wait.count(),
                verdict.is_hint() || verdict.degraded());
}

/// Its deadline passed: nobody's fault. `part`: where it stood in line, if it did.
bool expire(Round& r, std::int64_t now) noexcept {
  r.out.now_ns = now;
  const bool waited = r.entering.line.ticket != 0;
  count_unstarted(r);
  if (waited) {
    count_bulkhead(r.view, r.caller.breaker.stripe, r.ask().bulkhead.index,
                   BulkheadCounter::RefusedExpired);
  }
  return refuse(r, waited ? EnterPart::Bulkhead : EnterPart::None, Reason::Expired, 1, true);
}

void count_limits(Round& r) noexcept {
  if (r.caller.breaker.stripe.counters == nullptr) return;
  const bool granted = r.out.granted();
  for (std::size_t i = 0; i < r.ask().limits.size(); ++i) {
    const DecisionData& one = r.out.limits.item[i];
    const AdmitAsk& ask = r.ask().limits[i];
    // One that would have granted is no decision of its limit when another one refused.
    if (ask.cost == 0 || (!granted && one.reason == Reason::Allowed)) continue;
    count_answer(r.caller.breaker.stripe, ask.limit.index, ask.cost, one);
  }
}

// ---- looking ------------------------------------------------------------------------------------

bool look_at_the_breaker(Round& r) noexcept {
  if (!r.has_breaker()) return true;
  r.out.breaker = look_after_settling(r.view, r.ask().breaker, r.caller.breaker);
  if (r.out.breaker.granted) return true;
  count_breaker_refusal(r.view, r.caller.breaker.stripe, r.ask().breaker.index,
                        r.out.breaker.reason);
  return refuse_by_breaker(r);
}

bool look_at_the_deadline(Round& r) noexcept {
  if (r.ask().deadline_ns == 0) return true;
  const std::int64_t now = r.view.clock.now();
  return now < r.ask().deadline_ns || expire(r, now);
}

/// Full, and the call may and wants to stand in line; where there are no places nobody waits.
bool joins(const Round& r) noexcept {
  return r.ask().max_wait_ns != 0 && r.out.bulkhead.may_wait && r.out.bulkhead.limit != 0;
}

bool look_at_the_bulkhead(Round& r) noexcept {
  if (!r.has_bulkhead()) return true;
  r.out.bulkhead = look_at_bulkhead(r.view, r.ask().bulkhead, r.caller.bulkhead());
  if (r.out.bulkhead.granted) return true;
  r.joins = joins(r);
  if (r.joins) return true;
  count_bulkhead(r.view, r.caller.breaker.stripe, r.ask().bulkhead.index,
                 r.out.bulkhead.reason == Reason::Full ? BulkheadCounter::RefusedFull
                                                       : BulkheadCounter::RefusedDegraded);
  return refuse_by_bulkhead(r);
}

bool look_at_the_limits(Round& r) noexcept {
  if (r.ask().limits.empty()) return true;
  r.out.limits_outcome = look_all(r.view, r.ask().limits, r.out.limits);
  const bool answered = r.out.limits_outcome == Outcome::Answered;
  if (answered && r.out.limits.verdict.reason == Reason::Allowed) return true;
  refuse_by_limits(r);
  if (answered) count_limits(r);
  return false;
}

// ---- giving back --------------------------------------------------------------------------------

void give_back_place(const View& view, const EnterCaller& caller, const EnterAsk& ask,
                     EnterAnswer& answer) noexcept {
  if (answer.place.cell_value == 0) return;
  const Left left = leave_bulkhead(view, ask.bulkhead, caller.bulkhead(), answer.place);
  if (left == Left::Moved) answer.owed.place = answer.place;
  answer.place = {};
}

void give_back_tokens(const View& view, EnterAnswer& answer) noexcept {
  // From the last of the list to the first, as they may be stacked on one key.
  for (std::size_t i = answer.limits.items; i-- > 0;) {
    if (answer.limits.item[i].receipt != Receipt::None) give_back(view, answer.limits.item[i]);
  }
}

EnterStep undo_refused(Round& r, bool charged) noexcept {
  if (!guarded(Guard::EnterUndoesAll)) return EnterStep::Done;
  if (charged) give_back_tokens(r.view, r.out);
  CUTWATER_SYNC_POINT("enter.before_place_back");
  give_back_place(r.view, r.caller, r.ask(), r.out);
  return EnterStep::Done;
}

// ---- taking -------------------------------------------------------------------------------------

bool take_tokens(Round& r) noexcept {
  if (r.ask().limits.empty()) return true;
  r.out.limits_outcome = admit_all(r.view, r.ask().limits, r.out.limits);
  const bool answered = r.out.limits_outcome == Outcome::Answered;
  if (answered && r.out.limits.verdict.reason == Reason::Allowed) return true;
  refuse_by_limits(r);
  if (answered) count_limits(r);
  return false;
}

bool take_probe(Round& r) noexcept {
  if (!r.has_breaker()) return true;
  r.out.breaker =
      enter_breaker(r.view, r.ask().breaker, r.caller.breaker, r.ask().deadline_ns);
  if (!r.out.breaker.granted) return refuse_by_breaker(r);
  r.out.call = r.out.breaker.call;
  r.out.now_ns = std::max(r.out.now_ns, r.out.breaker.now_ns);
  return true;
}

/// The place is there, or none is wanted: everything else.
EnterStep take_the_rest(Round& r) noexcept {
  if (r.has_bulkhead() && guarded(Guard::EnterLooksAgain)) {
    CUTWATER_SYNC_POINT("enter.before_second_look");
    if (!look_at_the_breaker(r) || !look_at_the_deadline(r)) return undo_refused(r, false);
  }
  CUTWATER_SYNC_POINT("enter.before_tokens");
  if (!take_tokens(r)) return undo_refused(r, false);
  CUTWATER_SYNC_POINT("enter.before_probe");
  if (!take_probe(r)) return undo_refused(r, true);
  r.out.reason = Reason::Allowed;
  r.out.part = EnterPart::None;
  r.out.hint = false;
  r.out.retry_after_ns = 0;
  if (!r.ask().limits.empty()) count_limits(r);
  return EnterStep::Done;
}

EnterStep got_the_place(Round& r) noexcept {
  r.out.place = r.out.bulkhead.place;
  r.out.now_ns = r.out.bulkhead.now_ns;
  return take_the_rest(r);
}

// ---- in line ------------------------------------------------------------------------------------

EnterStep out_of_line(Round& r) noexcept {
  Entering& e = r.entering;
  e.waits = false;
  r.out.waited_ns = std::max<std::int64_t>(1, r.view.clock.now() - e.line.start_ns);
  return EnterStep::Done;
}

/// One look of one in line.
EnterStep look_in_line(Round& r) noexcept {
  Entering& e = r.entering;
  const BulkheadCaller caller = r.caller.bulkhead();
  e.seen = poll_line(r.view, r.ask().bulkhead, caller, e.line);
  note_owed(r, e.seen.entry);
  if (e.seen.state != LineLook::State::Waiting) {
    r.out.bulkhead = e.seen.entry;
    out_of_line(r);
    if (e.seen.state == LineLook::State::Granted) return got_the_place(r);
    refuse_by_bulkhead(r);
    return EnterStep::Done;
  }
  // After the futex word was read: who opens the breaker later bumps it.
  if (r.has_breaker()) {
    const BreakerEntry seen = look_after_settling(r.view, r.ask().breaker, r.caller.breaker);
    // Probes that are out now may be back when the place is there; an OPEN breaker stays so.
    if (!seen.granted && seen.reason != Reason::Probing) {
      leave_line(r.view, r.ask().bulkhead, caller, e.line);
      r.out.breaker = seen;
      count_breaker_refusal(r.view, caller.stripe, r.ask().breaker.index, seen.reason);
      refuse_by_breaker(r);
      return out_of_line(r);
    }
  }
  return EnterStep::Wait;
}

EnterStep join(Round& r) noexcept {
  LineAsk ask;
  if (r.ask().max_wait_ns > 0) ask.max_wait_ns = static_cast<std::uint64_t>(r.ask().max_wait_ns);
  ask.deadline_ns = r.ask().deadline_ns;
  const JoinedLine joined = join_line(r.view, r.ask().bulkhead, r.caller.bulkhead(), ask);
  if (!joined.joined) {
    r.out.bulkhead = joined.refusal;
    refuse_by_bulkhead(r);
    return EnterStep::Done;
  }
  r.entering.line = joined.wait;
  r.entering.waits = true;
  return look_in_line(r);
}

EnterStep take_a_place(Round& r) noexcept {
  CUTWATER_SYNC_POINT("enter.before_place");
  if (r.joins) return join(r);
  r.out.bulkhead = enter_bulkhead(r.view, r.ask().bulkhead, r.caller.bulkhead());
  if (r.out.bulkhead.granted) return got_the_place(r);
  note_owed(r, r.out.bulkhead);
  // Somebody was faster since the look; that this was counted as a refusal is as good as true.
  if (joins(r)) return join(r);
  refuse_by_bulkhead(r);
  return EnterStep::Done;
}

}  // namespace

EnterStep begin_enter(const View& view, const EnterCaller& caller, Entering& entering,
                      EnterAnswer& out) noexcept {
  Round r{view, caller, entering, out};
  out = {};
  entering.line = {};
  entering.waits = false;
  entering.owed = {};
  if (entering.ask.limits.size() > kMaxAdmitItems) {
    out.now_ns = view.clock.now();
    refuse(r, EnterPart::None, Reason::InvalidArgument, -1, false);
    return EnterStep::Done;
  }
  const bool fine = look_at_the_breaker(r) && look_at_the_deadline(r) && look_at_the_bulkhead(r) &&
                    look_at_the_limits(r);
  if (!fine) return EnterStep::Done;
  return r.has_bulkhead() ? take_a_place(r) : take_the_rest(r);
}

EnterStep resume_enter(const View& view, const EnterCaller& caller, Entering& entering,
                       EnterAnswer& out) noexcept {
  if (!entering.waits) return EnterStep::Done;
  Round r{view, caller, entering, out};
  out = {};                            // it may have been another's meanwhile
  out.owed.place = entering.owed;
  return look_in_line(r);
}

void abandon_enter(const View& view, const EnterCaller& caller, Entering& entering) noexcept {
  if (!entering.waits) return;
  entering.waits = false;
  leave_line(view, entering.ask.bulkhead, caller.bulkhead(), entering.line);
}

void wait_in_line(const View& view, const EnterCaller& caller, const Entering& entering) noexcept {
  if (!entering.waits) return;
  sleep_in_line(view, entering.ask.bulkhead, caller.bulkhead(), entering.line, entering.seen);
}

void undo_enter(const View& view, const EnterCaller& caller, const EnterAsk& ask,
                EnterAnswer& answer) noexcept {
  if (!answer.granted()) return;
  if (answer.call.kind != CallKind::None) {
    const Recorded how = finish_breaker(view, ask.breaker, caller.breaker, answer.call,
                                        {.kind = Ended::Cancelled});
    if (goes_on(how)) {
      answer.owed.call = answer.call;
      answer.owed.how = how;
    }
    answer.call = {};
  }
  give_back_tokens(view, answer);
  give_back_place(view, caller, ask, answer);
}

}  // namespace cutwater::shm
