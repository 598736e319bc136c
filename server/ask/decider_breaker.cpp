// SPDX-License-Identifier: Apache-2.0
// ENTER of a breaker alone, and what ends tickets: OUTCOME, CANCEL, PRESENT.
#include <algorithm>
#include <array>
#include <span>

#include "ask/answer_fields.hpp"
#include "ask/breaker_words.hpp"
#include "ask/decider.hpp"
#include "memory.hpp"
#include "rule/breaker_text.hpp"
#include "shm/breaker/words.hpp"

namespace cutwater::server {

namespace {

constexpr std::string_view kTimeout = "timeout", kException = "exception";

std::uint16_t code_of(wire::ItemError code) { return static_cast<std::uint16_t>(code); }

shm::Ended ended(rule::ClassVerdict verdict) {
  switch (verdict) {
    case rule::ClassVerdict::Ignored: return shm::Ended::Ignored;
    case rule::ClassVerdict::Success: return shm::Ended::Success;
    case rule::ClassVerdict::Cancelled: return shm::Ended::Cancelled;
    case rule::ClassVerdict::Failure: break;
  }
  return shm::Ended::Failure;
}

std::int64_t ns_or(std::uint64_t ns, std::int64_t otherwise) {
  if (ns == wire::kNever) return otherwise;
  return static_cast<std::int64_t>(std::min<std::uint64_t>(ns, std::uint64_t{1} << 62));
}

/// The class that decides, of all that were told.
std::string_view class_of(const shm::View& view, shm::BreakerRef ref,
                          const wire::OutcomeReport& report) {
  if (report.outcome_class.empty()) {
    return report.outcome == wire::OutcomeKind::TimedOut ? kTimeout : kException;
  }
  if (report.others.empty()) return report.outcome_class;
  std::array<std::string_view, wire::kMaxOtherClasses> own;
  std::size_t count = 0;
  own[count++] = report.outcome_class;
  for (std::size_t i = 0; i + 1 < report.others.size(); ++i) own[count++] = report.others[i];
  return rule::deciding_class(std::span(own).first(count), report.others.back(),
                              [&](std::string_view name) {
                                return shm::listed_class(view, ref, name);
                              });
}

/// The call of a ticket; without its start where nobody measures, as for a program that reads the
/// memory itself.
shm::BreakerCall call_of(const shm::View& view, const Ticket& ticket) {
  shm::BreakerCall out = ticket.call;
  if (!shm::measures_calls(view, ticket.breaker)) out.start_ns = 0;
  return out;
}

/// What was told, as the breaker counts it.
shm::BreakerReport report_of(const shm::View& view, shm::BreakerRef ref,
                             const wire::OutcomeReport& told) {
  shm::BreakerReport out;
  out.duration_ns = ns_or(told.duration_ns, -1);
  switch (told.outcome) {
    case wire::OutcomeKind::Succeeded: out.kind = shm::Ended::Success; return out;
    case wire::OutcomeKind::Ignored: out.kind = shm::Ended::Ignored; return out;
    case wire::OutcomeKind::Cancelled: out.kind = shm::Ended::Cancelled; return out;
    case wire::OutcomeKind::Failed:
    case wire::OutcomeKind::TimedOut: break;
  }
  const std::string_view name = class_of(view, ref, told);
  out.kind = shm::Ended::Failure;
  out.failure_class = rule::class_counter(name);
  if (rule::may_retry_after(name)) out.retry_after_ns = ns_or(told.retry_after_ns, -1);
  out.open_now = told.open_for_ns != 0;
  if (out.open_now) out.open_for_ns = ns_or(told.open_for_ns, -1);
  else out.kind = ended(shm::judge_class(view, ref, name));
  return out;
}

}  // namespace

shm::BreakerCaller Decider::caller_of(Holder& holder, shm::BreakerRef ref) {
  return {holder.row.index, holder.row.generation, stripe_, &holder.locals[ref.index], {}};
}

void Decider::note_late(const wire::Enter& asked) {
  if (!asked.breaker) return;
  const shm::BreakerRef ref = shm::find_breaker(memory_.view(), *asked.breaker);
  if (ref.index == shm::kNoLine) return;
  shm::count_breaker(memory_.view(), stripe_, ref.index, shm::BreakerCounter::ExpiredInQueue);
}

void Decider::enter_breaker(const wire::Enter& asked, shm::BreakerRef ref, Holder& holder,
                            wire::Admission& out) {
  const shm::View& view = memory_.view();
  const std::int64_t deadline =
      asked.call_ns == 0 ? 0 : view.clock.now() + ns_or(asked.call_ns, rule::kMaxProbeTimeoutNs);
  const shm::BreakerEntry entry = shm::enter_breaker(view, ref, caller_of(holder, ref), deadline);
  if (!entry.granted) return refuse_breaker(ref, entry, out);
  const std::int64_t now = entry.now_ns != 0 ? entry.now_ns : view.clock.now();
  Ticket ticket;
  tell_call(ref, entry.call, now, ticket, out);
  out.ticket = give_ticket(ticket, now, holder);
  if (ticket.holds()) out.flags |= wire::kAnswerHolds;
}

void Decider::tell_call(shm::BreakerRef ref, const shm::BreakerCall& call, std::int64_t now,
                        Ticket& ticket, wire::Admission& out) {
  ticket.has_breaker = true;
  ticket.breaker = ref;
  ticket.call = call;
  out.state = word_of(call.kind);
  out.epoch = call.epoch;
  if (shm::measures_calls(memory_.view(), ref)) out.flags |= wire::kAnswerTimed;
  if (call.kind != shm::CallKind::Probe) return;
  const auto until = static_cast<std::int64_t>(shm::unpack_probe(call.ticket).deadline_us);
  out.deadline_ns = wire_ns(until * 1'000 - now);
}

std::string Decider::give_ticket(Ticket& ticket, std::int64_t now, Holder& holder) {
  ticket.row = holder.row;
  ticket.serial = holder.tickets.issue();
  ticket.start_ns = now;
  if (ticket.holds()) ++holder.holding;
  return to_ticket(ticket, mark_);
}

void Decider::refuse_breaker(shm::BreakerRef ref, const shm::BreakerEntry& entry,
                             wire::Admission& out) {
  out.reason = static_cast<std::uint16_t>(entry.reason);
  out.part = wire::Part::Breaker;
  out.state = word_of(entry.state);
  out.retry_after_ns =
      entry.retry_after_ns < 0 ? wire::kNever : wire_ns(entry.retry_after_ns);
  if (entry.hint || entry.reason == Reason::Degraded) out.flags |= wire::kAnswerHint;
  if (entry.reason == Reason::Degraded) out.flags |= wire::kAnswerDegraded;
  if (entry.scope == shm::RefusalScope::Process) out.flags |= wire::kAnswerProcess;
  out.since_ns = wire::kNever;
  shm::BreakerInfo info;
  if (entry.reason == Reason::Degraded || !shm::read_breaker(memory_.view(), ref.index, info)) {
    return;
  }
  out.epoch = info.word.epoch;
  if (info.since_ns != 0 && info.since_ns <= entry.now_ns) {
    out.since_ns = wire_ns(entry.now_ns - info.since_ns);
  }
  out.why = rule::cause_text(info.numbers, shm::story_of(info));
  const bool shared = info.kind == shm::kPatternEntry;
  if (shared && entry.scope != shm::RefusalScope::Process) out.pattern = info.name;
}

/// For CANCEL: behind the receipts of the items, where REFUND does not reach.
void Decider::keep_tickets(const wire::Enter& asked, wire::Receipts* receipts) {
  const wire::Admission& out = entered_.admission;
  if (receipts == nullptr || out.ticket.empty()) return;
  while (receipts->size() < std::max<std::size_t>(asked.items.size(), 1)) receipts->add({});
  // Undone from the last on: the call, the place, then the tokens.
  if (!out.place_ticket.empty()) receipts->add(out.place_ticket);
  receipts->add(out.ticket);
}

std::optional<Ticket> Decider::read_ticket(std::string_view bytes) const {
  auto ticket = ticket_of(bytes, mark_, memory_.view().clock.now());
  const shm::View& view = memory_.view();
  const bool known = ticket &&
                     (!ticket->has_breaker || ticket->breaker.index < view.breaker_count) &&
                     (!ticket->has_place || ticket->bulkhead.index < view.bulkhead_count);
  return known ? ticket : std::nullopt;
}

std::uint16_t Decider::outcome(const wire::OutcomeReport& report, Holder& holder) {
  const auto ticket = read_ticket(report.ticket);
  if (!ticket || !is_of(*ticket, holder.row)) return code_of(wire::ItemError::InvalidArgument);
  const shm::View& view = memory_.view();
  const TicketBook::Spent spent = holder.tickets.spend(ticket->serial);
  if (spent == TicketBook::Spent::Again ||
      (spent == TicketBook::Spent::Forgotten && !ticket->holds())) {
    if (ticket->has_breaker) {
      shm::count_breaker(view, stripe_, ticket->breaker.index, shm::BreakerCounter::UsedTwice);
    }
    if (ticket->has_place) {
      shm::count_bulkhead(view, stripe_, ticket->bulkhead.index, shm::BulkheadCounter::Stale);
    }
    return code_of(wire::ItemError::Stale);
  }
  const bool stale = spent == TicketBook::Spent::First ? end_ticket(*ticket, report, holder)
                                                       : end_cells(*ticket, report, holder);
  const bool ended = spent == TicketBook::Spent::First || !stale;
  if (ended && ticket->holds() && holder.holding != 0) --holder.holding;
  return stale ? code_of(wire::ItemError::Stale) : std::uint16_t{0};
}

/// True: it came too late.
bool Decider::end_ticket(const Ticket& ticket, const wire::OutcomeReport& report, Holder& holder) {
  const shm::View& view = memory_.view();
  bool stale = false;
  if (ticket.has_place) {
    stale = shm::leave_bulkhead(view, ticket.bulkhead, place_caller(holder), ticket.place()) ==
            shm::Left::Stale;
  }
  if (ticket.has_breaker) {
    stale = shm::finish_breaker(view, ticket.breaker, caller_of(holder, ticket.breaker),
                                call_of(view, ticket), report_of(view, ticket.breaker, report)) ==
            shm::Recorded::Stale;
  }
  return stale;
}

/// The same of a ticket that is so old that nobody knows whether it was used: its cells know, each
/// is given back by its exact value. What has none, a call of a closed breaker, is evidence of
/// nothing by now.
bool Decider::end_cells(const Ticket& ticket, const wire::OutcomeReport& report, Holder& holder) {
  const shm::View& view = memory_.view();
  if (ticket.has_place) {
    const shm::Left left =
        shm::leave_bulkhead(view, ticket.bulkhead, place_caller(holder), ticket.place());
    if (left == shm::Left::Stale) return true;
  }
  if (!ticket.has_cell()) return false;
  const shm::BreakerReport told = ticket.is_probe()
                                      ? report_of(view, ticket.breaker, report)
                                      : shm::BreakerReport{.kind = shm::Ended::Cancelled};
  return shm::finish_breaker(view, ticket.breaker, caller_of(holder, ticket.breaker),
                             call_of(view, ticket), told) == shm::Recorded::Stale;
}

std::uint16_t Decider::cancel(std::string_view ticket, Holder& holder) {
  wire::OutcomeReport report;
  report.ticket = ticket;
  report.outcome = wire::OutcomeKind::Cancelled;
  return outcome(report, holder);
}

/// What others wait for passes cell by cell; a call of a closed breaker goes on as it is, no longer
/// tracked.
std::string Decider::present(const Ticket& former, Holder& holder) {
  Ticket ticket = former;
  const shm::View& view = memory_.view();
  bool kept = !ticket.is_probe() && !ticket.has_place;
  if (ticket.is_probe()) {
    kept |= shm::pass_probe(view, ticket.breaker, caller_of(holder, ticket.breaker), ticket.call);
  } else {
    ticket.call.ticket = {};
  }
  if (ticket.has_place) {
    const shm::PlaceTicket mine =
        shm::take_over_place(view, ticket.bulkhead, place_caller(holder), ticket.place());
    ticket.has_place = mine.cell_value != 0;
    if (ticket.has_place) ticket.set_place(ticket.bulkhead, mine);
    kept |= ticket.has_place;
  }
  if (!kept) return {};
  ticket.row = holder.row;
  ticket.serial = holder.tickets.issue();
  if (ticket.holds()) ++holder.holding;
  return to_ticket(ticket, mark_);
}

}  // namespace cutwater::server
