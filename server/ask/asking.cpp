// SPDX-License-Identifier: Apache-2.0
#include "ask/asking.hpp"

#include "ask/answer_fields.hpp"
#include "ask/breaker_words.hpp"
#include "ask/nearest_name.hpp"
#include "memory.hpp"
#include "shm/breaker/words.hpp"

namespace cutwater::server {

namespace {

std::uint64_t steady_now() {
  return static_cast<std::uint64_t>(
      std::chrono::steady_clock::now().time_since_epoch().count());
}

/// Its time to live ran out before it was begun.
template <class Message>
bool is_late(const wire::Requested<Message>& asked) {
  return asked.begin_by_ns != wire::kNever && steady_now() > asked.begin_by_ns;
}

wire::Returned of_code(wire::ItemError code) { return {static_cast<std::uint16_t>(code), 0}; }

/// One rate for all keys: what a decision of it says is the limit's policy.
bool is_plain(const rule::LimitSettings& limit) {
  return limit.kind == rule::LimitKind::Bucket && limit.windows.size() == 1 &&
         limit.windows[0].kind == rule::WindowKind::Rate && limit.overrides.empty();
}

wire::Value settings_of(const rule::LimitSettings& limit) {
  wire::Value::Array windows;
  for (const rule::WindowSettings& window : limit.windows) {
    windows.push_back(wire::Value::array({window.rate_count, window.rate_period_ns,
                                          window.burst}));
  }
  return wire::Value::map({{"windows", std::move(windows)},
                           {"plain", is_plain(limit)},
                           {"max_wait_ns", limit.max_wait_ns},
                           {"max_waiting", limit.max_waiting},
                           {"ip_prefix", wire::Value::array({limit.ip_prefix_v4,
                                                             limit.ip_prefix_v6})}});
}

wire::Value settings_of(const rule::BreakerNumbers& n) {
  return wire::Value::map({{"window_type", n.window_type},
                           {"window_calls", n.window_calls},
                           {"slots", n.slots},
                           {"slot_ns", n.slot_ns},
                           {"minimum", n.minimum},
                           {"failure_ppm", n.failure_ppm},
                           {"slow_ppm", n.slow_ppm},
                           {"slow_ns", n.slow_ns},
                           {"failure_count", n.failure_count},
                           {"consecutive", n.consecutive},
                           {"open_wait_ns", n.open_wait_ns},
                           {"max_open_wait_ns", n.max_open_wait_ns},
                           {"probes", n.probes},
                           {"probe_timeout_ns", n.probe_timeout_ns},
                           {"half_open_rule", n.half_open_rule},
                           {"half_open_value", n.half_open_value}});
}

wire::Resolved unknown_name(std::string nearest) {
  wire::Resolved out;
  out.code = static_cast<std::uint16_t>(wire::ItemError::UnknownName);
  if (!nearest.empty()) out.nearest.push_back(std::move(nearest));
  return out;
}

}  // namespace

void Asking::serve(Connection& from, const wire::AcquireRequested& asked) {
  wire::ServerSession& session = from.session();
  if (is_late(asked)) {
    return from.perform(session.answer(asked.request, wire::expired_answer(asked.message)));
  }
  wire::Receipts receipts;
  const auto& answer = decider_.acquire(wire::view_of(asked.message, items()),
                                        session.remembers() ? &receipts : nullptr);
  from.perform(session.answer(asked.request, answer, std::move(receipts)));
}

void Asking::serve(Connection& from, const wire::PeekRequested& asked) {
  from.perform(from.session().answer(asked.request, decider_.peek(asked.message)));
}

void Asking::serve(Connection& from, const wire::EnterRequested& asked) {
  wire::ServerSession& session = from.session();
  if (is_late(asked)) {
    decider_.note_late(asked.message);
    return from.perform(session.answer(asked.request, wire::expired_answer(asked.message)));
  }
  wire::Receipts receipts;
  std::unique_ptr<WaitingEnter> waits;
  Holder& holder = holder_of(from);
  const wire::EnterAnswer* answer =
      decider_.enter(asked.message, holder, session.remembers() ? &receipts : nullptr, waits);
  if (answer == nullptr && !session.park(asked.request)) {
    answer = &decider_.refuse_to_wait(*waits, holder);
  }
  if (answer != nullptr) {
    note_holding(from);
    return from.perform(session.answer(asked.request, *answer, std::move(receipts)));
  }
  line_.add({from.weak_from_this(), from.notes.session, asked.request, from.notes.row,
             session.remembers()},
            std::move(waits), steady_now());
}

/// False: it does not stand in line.
bool Asking::end_wait(Connection& from, std::uint32_t request) {
  return line_.cancel(from.notes.session, request);
}

/// What runs is in line for a place, or it is an operator's act; that is not undone in the middle.
void Asking::serve(Connection& from, const wire::CancelRequested& asked) {
  using State = wire::CancelTarget::State;
  const wire::CancelTarget target = from.session().take_for(asked.message);
  wire::CancelAnswer out;
  if (target.state == State::Unknown) out.returned = of_code(wire::ItemError::NotRemembered);
  if (target.state == State::Running && !end_wait(from, asked.message.request)) {
    out.returned = of_code(wire::ItemError::TooLate);
  }
  for (auto receipt = target.receipts.rbegin(); receipt != target.receipts.rend(); ++receipt) {
    const wire::Returned one = decider_.give_back(*receipt, wire::kMaxCost, holder_of(from));
    out.returned.tokens += one.tokens;
    if (one.code != 0) out.returned.code = one.code;
  }
  note_holding(from);
  from.perform(from.session().answer(asked.request, out));
  line_.soon();
}

void Asking::serve(Connection& from, const wire::RefundRequested& asked) {
  wire::RefundAnswer out;
  for (const wire::TakenReceipt& taken : from.session().take_for(asked.request, asked.message)) {
    if (taken.code != 0) out.items.push_back({taken.code, 0});
    else out.items.push_back(decider_.give_back(taken.receipt, taken.n.value_or(wire::kMaxCost),
                                                holder_of(from)));
  }
  from.perform(from.session().answer(asked.request, out));
}

void Asking::serve(Connection& from, const wire::OutcomeRequested& asked) {
  wire::OutcomeAnswer out;
  for (const wire::OutcomeReport& report : asked.message.reports) {
    out.codes.push_back(decider_.outcome(report, holder_of(from)));
  }
  note_holding(from);
  from.perform(from.session().answer(asked.request, out));
  line_.soon();                        // a place may have gone to somebody in line here
}

void Asking::serve(Connection& from, const wire::PresentRequested& asked) {
  wire::PresentAnswer out;
  for (const std::string& ticket : asked.message.tickets) {
    out.tickets.push_back(present(from, ticket));
  }
  note_holding(from);
  from.perform(from.session().answer(asked.request, out));
}

std::string Asking::present(Connection& from, const std::string& bytes) {
  const auto ticket = decider_.read_ticket(bytes);
  const shm::RowGrant mine = from.notes.row;
  if (!ticket || mine.index == 0) return {};
  if (is_of(*ticket, mine)) return bytes;
  const RowHolder* const known = rows_.find(ticket->row.index);
  shm::RowInfo row;
  const bool former = known != nullptr && known->asks && is_of(*ticket, known->row) &&
                      rows_.is_orphan(ticket->row.index) &&
                      shm::read_row(memory_.view(), ticket->row.index, row) &&
                      row.uid == from.peer().identity.uid;
  if (!former) return {};
  if (came_back_) came_back_(known->row);
  return decider_.present(*ticket, holder_of(from));
}

void Asking::serve(Connection& from, const wire::ResolveRequested& asked) {
  wire::ResolveAnswer out;
  for (const wire::NameAsk& name : asked.message.names) out.names.push_back(resolve(name));
  from.perform(from.session().answer(asked.request, out));
}

wire::Resolved Asking::resolve(const wire::NameAsk& asked) const {
  switch (asked.kind) {
    case wire::NameKind::Limit: return resolve_limit(asked.name);
    case wire::NameKind::Breaker: return resolve_breaker(asked.name);
    case wire::NameKind::Bulkhead: return resolve_bulkhead(asked.name);
    default: return unknown_name("");
  }
}

wire::Resolved Asking::resolve_limit(const std::string& name) const {
  const auto& limits = memory_.publisher().limits();
  for (const rule::LimitSettings& limit : limits) {
    if (limit.name != name) continue;
    wire::Resolved out;
    out.settings = settings_of(limit);
    return out;
  }
  return unknown_name(nearest_name(name, limits));
}

/// Settings, and what the next caller would find: who may not look still may ask for its own.
wire::Resolved Asking::resolve_breaker(const std::string& name) const {
  const shm::View& view = memory_.view();
  const shm::BreakerRef ref =
      shm::resolve_breaker(view, name, shm::shared_stripe(view)).ref;
  shm::BreakerInfo info;
  if (ref.index == shm::kNoLine || !shm::read_breaker(view, ref.index, info)) {
    return unknown_name(nearest_name(name, memory_.publisher().breakers()));
  }
  const shm::BreakerEntry next = shm::look_at_breaker(view, ref, {});
  wire::Resolved out;
  out.settings = settings_of(info.numbers);
  const bool off = (info.numbers.flags & rule::kBreakerSwitchedOff) != 0;
  // As Breaker::state() of a program that reads the memory itself.
  const rule::BreakerState state =
      off ? rule::BreakerState::Disabled
          : info.effective.ready ? rule::state_after(info.numbers, info.word.state)
                                 : info.word.state;
  out.settings.set("state", static_cast<std::uint8_t>(word_of(state)));
  out.settings.set("would", next.granted ? 0U : static_cast<unsigned>(next.reason));
  out.settings.set("explain", rule::explain_text(info.numbers, shm::story_of(info)));
  return out;
}

wire::Resolved Asking::resolve_bulkhead(const std::string& name) const {
  const shm::View& view = memory_.view();
  const shm::BulkheadRef ref =
      shm::resolve_bulkhead(view, name, shm::shared_stripe(view)).ref;
  shm::BulkheadInfo info;
  if (ref.index == shm::kNoLine || !shm::read_bulkhead(view, ref.index, info)) {
    return unknown_name(nearest_name(name, memory_.publisher().bulkheads()));
  }
  wire::Resolved out;
  out.settings = wire::Value::map({{"max", info.limit},
                                   {"max_wait_ns", info.max_wait_ns},
                                   {"max_waiting", info.max_waiting},
                                   {"in_use", info.in_use},
                                   {"over", info.over},
                                   {"waiting", info.waiting},
                                   {"oldest_ns", wire_ns(info.oldest_ns)},
                                   {"median_ns", wire_ns(info.median_ns)}});
  return out;
}

}  // namespace cutwater::server
