// SPDX-License-Identifier: Apache-2.0
#include "asking.hpp"

#include "config/words.hpp"
#include "memory.hpp"

namespace cutwater::server {

namespace {

/// Among more names none is looked for: a person asks there, and `limit list` shows them.
constexpr std::size_t kMaxCompared = 1024;

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

wire::Value settings_of(const rule::LimitSettings& limit) {
  wire::Value::Array windows;
  for (const rule::WindowSettings& window : limit.windows) {
    windows.push_back(wire::Value::array({window.rate_count, window.rate_period_ns,
                                          window.burst}));
  }
  return wire::Value::map({{"windows", std::move(windows)},
                           {"max_wait_ns", limit.max_wait_ns},
                           {"max_waiting", limit.max_waiting},
                           {"ip_prefix", wire::Value::array({limit.ip_prefix_v4,
                                                             limit.ip_prefix_v6})}});
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
    return from.perform(session.answer(asked.request, wire::expired_answer(asked.message)));
  }
  wire::Receipts receipts;
  const auto& answer = decider_.enter(asked.message, session.remembers() ? &receipts : nullptr);
  from.perform(session.answer(asked.request, answer, std::move(receipts)));
}

/// Requests that decide are answered at once, so what runs still is an operator's act; that is not
/// undone in the middle.
void Asking::serve(Connection& from, const wire::CancelRequested& asked) {
  using State = wire::CancelTarget::State;
  const wire::CancelTarget target = from.session().take_for(asked.message);
  wire::CancelAnswer out;
  if (target.state == State::Unknown) out.returned = of_code(wire::ItemError::NotRemembered);
  if (target.state == State::Running) out.returned = of_code(wire::ItemError::TooLate);
  for (auto receipt = target.receipts.rbegin(); receipt != target.receipts.rend(); ++receipt) {
    const wire::Returned one = decider_.give_back(*receipt, wire::kMaxCost);
    out.returned.tokens += one.tokens;
    if (one.code != 0) out.returned.code = one.code;
  }
  from.perform(from.session().answer(asked.request, out));
}

void Asking::serve(Connection& from, const wire::RefundRequested& asked) {
  wire::RefundAnswer out;
  for (const wire::TakenReceipt& taken : from.session().take_for(asked.request, asked.message)) {
    if (taken.code != 0) out.items.push_back({taken.code, 0});
    else out.items.push_back(decider_.give_back(taken.receipt, taken.n.value_or(wire::kMaxCost)));
  }
  from.perform(from.session().answer(asked.request, out));
}

void Asking::serve(Connection& from, const wire::OutcomeRequested& asked) {
  wire::OutcomeAnswer out;
  out.codes.assign(asked.message.reports.size(),
                   static_cast<std::uint16_t>(wire::ItemError::InvalidArgument));
  from.perform(from.session().answer(asked.request, out));
}

void Asking::serve(Connection& from, const wire::PresentRequested& asked) {
  wire::PresentAnswer out;
  out.tickets.resize(asked.message.tickets.size());
  from.perform(from.session().answer(asked.request, out));
}

void Asking::serve(Connection& from, const wire::ResolveRequested& asked) {
  wire::ResolveAnswer out;
  for (const wire::NameAsk& name : asked.message.names) out.names.push_back(resolve(name));
  from.perform(from.session().answer(asked.request, out));
}

wire::Resolved Asking::resolve(const wire::NameAsk& asked) const {
  wire::Resolved out;
  out.code = static_cast<std::uint16_t>(wire::ItemError::UnknownName);
  if (asked.kind != wire::NameKind::Limit) return out;
  const auto& limits = memory_.publisher().limits();
  for (const rule::LimitSettings& limit : limits) {
    if (limit.name != asked.name) continue;
    out.code = 0;
    out.settings = settings_of(limit);
    return out;
  }
  if (limits.size() > kMaxCompared) return out;
  std::vector<std::string_view> names;
  for (const rule::LimitSettings& limit : limits) names.push_back(limit.name);
  const std::string_view near = config::nearest(asked.name, names);
  if (!near.empty()) out.nearest.emplace_back(near);
  return out;
}

}  // namespace cutwater::server
