// SPDX-License-Identifier: Apache-2.0
// ENTER of several parts in one step (shm/enter.hpp): looked at, waited for, taken or undone there;
// told here.
#include <algorithm>

#include "ask/answer_fields.hpp"
#include "ask/breaker_words.hpp"
#include "ask/decider.hpp"
#include "ask/nearest_name.hpp"
#include "ask/receipt_bytes.hpp"
#include "memory.hpp"

namespace cutwater::server {

namespace {

constexpr std::int64_t kLongestNs = std::int64_t{1} << 62;

std::int64_t cut(std::uint64_t ns) noexcept {
  return static_cast<std::int64_t>(std::min<std::uint64_t>(ns, kLongestNs));
}

template <class Settings>
wire::Admission no_such(std::string_view what, std::string_view name,
                        const std::vector<Settings>& known) {
  std::string text = fmt::format("no {} '{}'", what, name);
  const std::string near = nearest_name(name, known);
  if (!near.empty()) text += fmt::format("; did you mean '{}'?", near);
  return wire::Admission::error(wire::ItemError::UnknownName, std::move(text));
}

}  // namespace

/// False: `out` is the error.
bool Decider::find_parts(const wire::Enter& asked, shm::EnterAsk& ask, wire::Admission& out) {
  const shm::View& view = memory_.view();
  if (asked.breaker) {
    ask.breaker = shm::resolve_breaker(view, *asked.breaker, stripe_).ref;
    if (ask.breaker.index == shm::kNoLine) {
      out = no_such("breaker", *asked.breaker, memory_.publisher().breakers());
      return false;
    }
  }
  if (asked.bulkhead) {
    ask.bulkhead = shm::resolve_bulkhead(view, *asked.bulkhead, stripe_).ref;
    if (ask.bulkhead.index == shm::kNoLine) {
      out = no_such("bulkhead", *asked.bulkhead, memory_.publisher().bulkheads());
      return false;
    }
  }
  return true;
}

shm::EnterCaller Decider::enter_caller(Holder& holder, shm::BreakerRef ref) {
  if (ref.index != shm::kNoLine) return {caller_of(holder, ref)};
  return {{holder.row.index, holder.row.generation, stripe_, nullptr, {}}};
}

const wire::EnterAnswer* Decider::begin(WaitingEnter& entering, Holder& holder,
                                        wire::Receipts* receipts) {
  const wire::Enter& asked = entering.asked;
  const shm::View& view = memory_.view();
  entered_.admission = {};
  entering.entering = {};
  shm::EnterAsk& ask = entering.entering.ask;
  if (!find_parts(asked, ask, entered_.admission)) return &entered_;
  if (!find_limits(asked, entering.limits, entered_.admission)) return &entered_;
  ask.limits = {entering.limits.data(), std::min(asked.items.size(), entering.limits.size())};
  ask.max_wait_ns =
      asked.max_wait_ns == wire::kNever ? shm::kWaitAsConfigured : cut(asked.max_wait_ns);
  if (asked.call_ns != 0) ask.deadline_ns = view.clock.now() + cut(asked.call_ns);
  const shm::EnterStep step =
      shm::begin_enter(view, enter_caller(holder, ask.breaker), entering.entering, met_);
  return tell(step, entering, holder, receipts);
}

const wire::EnterAnswer* Decider::resume(WaitingEnter& waits, Holder& holder,
                                         wire::Receipts* receipts) {
  const shm::EnterStep step =
      shm::resume_enter(memory_.view(), enter_caller(holder, waits.entering.ask.breaker),
                        waits.entering, met_);
  return tell(step, waits, holder, receipts);
}

/// A word that moved, a time that is over, or a breaker that is no longer closed.
bool Decider::is_due(const WaitingEnter& waits) const {
  const shm::View& view = memory_.view();
  const shm::EnterAsk& ask = waits.entering.ask;
  const std::uint32_t* const word = shm::line_futex(view, ask.bulkhead, waits.entering.line);
  // relaxed: resume_enter() looks with the orders it needs.
  if (word == nullptr || __atomic_load_n(word, __ATOMIC_RELAXED) != waits.entering.seen.seen) {
    return true;
  }
  if (view.clock.now() >= waits.entering.line.until_ns) return true;
  if (ask.breaker.index >= view.breaker_count) return false;
  const std::uint64_t state = __atomic_load_n(&view.breakers[ask.breaker.index].state.lo,
                                              __ATOMIC_RELAXED);
  return (state & shm::kStateMask) != 0;
}

const wire::EnterAnswer& Decider::refuse_to_wait(WaitingEnter& waits, Holder& holder) {
  abandon(waits, holder);
  entered_.admission = {};
  wire::Admission& out = entered_.admission;
  out.reason = static_cast<std::uint16_t>(Reason::Full);
  out.part = wire::Part::Bulkhead;
  out.flags = wire::kAnswerHint;
  const shm::BulkheadEntry seen = shm::look_at_bulkhead(
      memory_.view(), waits.entering.ask.bulkhead, place_caller(holder));
  out.retry_after_ns = wire_ns(std::max<std::int64_t>(seen.retry_after_ns, 1));
  out.holding = seen.in_use;
  out.places = seen.limit;
  out.waiting = seen.waiting;
  out.oldest_ns = wire_ns(seen.oldest_ns);
  return entered_;
}

const wire::EnterAnswer& Decider::cancel_wait(WaitingEnter& waits, Holder& holder) {
  abandon(waits, holder);
  entered_.admission = wire::Admission::error(wire::ItemError::Cancelled, "cancelled");
  return entered_;
}

void Decider::abandon(WaitingEnter& waits, Holder& holder) {
  shm::abandon_enter(memory_.view(), enter_caller(holder, waits.entering.ask.breaker),
                     waits.entering);
}

const wire::EnterAnswer* Decider::begin_again(WaitingEnter& waits, Holder& holder,
                                              wire::Receipts* receipts) {
  told_ = 0;
  return begin(waits, holder, receipts);
}

// ---- answers ------------------------------------------------------------------------------------

const wire::EnterAnswer* Decider::tell(shm::EnterStep step, const WaitingEnter& entering,
                                       Holder& holder, wire::Receipts* receipts) {
  if (step == shm::EnterStep::Wait) return nullptr;
  entered_.admission = {};
  if (met_.granted()) tell_grant(entering, holder, receipts);
  else tell_refusal(entering);
  wire::Admission& out = entered_.admission;
  out.waited_ns = wire_ns(met_.waited_ns);
  const shm::EnterAsk& ask = entering.entering.ask;
  // What was undone or only looked at is no decision of its limit.
  const bool decided = met_.granted() || met_.part == shm::EnterPart::Limit;
  for (std::size_t i = 0; decided && witness_ != nullptr && i < ask.limits.size(); ++i) {
    const bool allowed = met_.limits.item[i].reason == Reason::Allowed;
    if (ask.limits[i].cost != 0 && (met_.granted() || !allowed)) {
      witness_->decided(ask.limits[i], allowed);
    }
  }
  return &entered_;
}

void Decider::tell_limits(const WaitingEnter& entering) {
  wire::Admission& out = entered_.admission;
  fill_answer(met_.limits.verdict, out);
  out.index = met_.limits.decisive;
  const bool stepped = memory_.view().clock.is_stepped();
  if (stepped) out.clock_ns = wire_ns(met_.limits.verdict.t);
  out.each.resize(entering.entering.ask.limits.size());
  for (std::size_t i = 0; i < out.each.size(); ++i) {
    fill_decision(met_.limits.item[i], entering.asked.items[i].cost, stepped, out.each[i]);
  }
}

void Decider::tell_grant(const WaitingEnter& entering, Holder& holder, wire::Receipts* receipts) {
  const shm::EnterAsk& ask = entering.entering.ask;
  wire::Admission& out = entered_.admission;
  if (!ask.limits.empty()) {
    tell_limits(entering);
    for (std::size_t i = 0; receipts != nullptr && i < ask.limits.size(); ++i) {
      receipts->add(to_bytes(life_, ask.limits[i].limit, met_.limits.item[i]));
    }
  }
  const std::int64_t now = memory_.view().clock.now();
  Ticket ticket, apart;
  if (met_.call.kind != shm::CallKind::None) tell_call(ask.breaker, met_.call, now, ticket, out);
  if (met_.place.cell_value != 0) {
    const bool alone = entering.asked.apart && ticket.has_breaker;
    (alone ? apart : ticket).set_place(ask.bulkhead, met_.place);
  }
  if (!ticket.has_breaker && !ticket.has_place) return;   // a bulkhead that is switched off
  if (apart.has_place) out.place_ticket = give_ticket(apart, now, holder);
  out.ticket = give_ticket(ticket, now, holder);
  if (ticket.holds()) out.flags |= wire::kAnswerHolds;
  keep_tickets(entering.asked, receipts);
}

/// Whose places they are, for a name beyond a pattern's max-instances.
void Decider::tell_shared(shm::BulkheadRef ref, wire::Admission& out) const {
  shm::BulkheadInfo info;
  if (met_.reason == Reason::Degraded) return;
  if (!shm::read_bulkhead(memory_.view(), ref.index, info)) return;
  if (info.kind == shm::kPatternEntry) out.pattern = info.name;
}

void Decider::tell_refusal(const WaitingEnter& entering) {
  wire::Admission& out = entered_.admission;
  switch (met_.part) {
    case shm::EnterPart::Limit:
      if (met_.limits_outcome == shm::Outcome::Answered) {
        tell_limits(entering);
      } else {
        fill_answer(gone(memory_.view()), out);
        out.index = met_.limits.gone;
      }
      break;
    case shm::EnterPart::Breaker:
      refuse_breaker(entering.entering.ask.breaker, met_.breaker, out);
      break;
    case shm::EnterPart::Bulkhead:
      out.holding = met_.bulkhead.in_use;
      out.places = met_.bulkhead.limit;
      out.waiting = met_.bulkhead.waiting;
      out.oldest_ns = wire_ns(met_.bulkhead.oldest_ns);
      if (met_.reason == Reason::Full && met_.bulkhead.max_wait_ns == 0) {
        out.flags |= wire::kAnswerNoLine;
      }
      tell_shared(entering.entering.ask.bulkhead, out);
      [[fallthrough]];
    case shm::EnterPart::None:
      if (met_.hint) out.flags |= wire::kAnswerHint;
      if (met_.reason == Reason::Degraded) out.flags |= wire::kAnswerDegraded;
      out.retry_after_ns =
          met_.retry_after_ns < 0 ? wire::kNever : wire_ns(met_.retry_after_ns);
      break;
  }
  out.reason = static_cast<std::uint16_t>(met_.reason);
  out.part = static_cast<wire::Part>(met_.part);
}

}  // namespace cutwater::server
