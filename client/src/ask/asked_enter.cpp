// SPDX-License-Identifier: Apache-2.0
// Client::enter() over the socket: one ENTER and its one answer, decided there by the functions
// that in_memory() calls here. Call and place get a ticket each, since a program may end them
// apart. A caller that gives up has its request cancelled (AskSocket), so what was granted too late
// goes back there.
#include <algorithm>
#include <optional>

#include "base/clock.hpp"
#include "src/ask/all_elsewhere.hpp"
#include "src/ask/asked_talk.hpp"
#include "src/ask/elsewhere.hpp"
#include "src/core.hpp"
#include "src/enter_parts.hpp"
#include "src/limit_of.hpp"

namespace cutwater::detail {

using client::AskEnd;
using client::DaemonLink;

/// The link over which all parts are asked; nullptr: not all are asked over one, or an argument is
/// none that any limit takes.
DaemonLink* EnterParts::asked_of_all(const EnterAsk& ask) noexcept {
  DaemonLink* link = nullptr;
  const auto joins = [&link](DaemonLink* one) {
    if (link == nullptr) link = one;
    return one != nullptr && one == link;
  };
  if (ask.breaker == nullptr && ask.bulkhead == nullptr) return nullptr;   // acquire_all() does it
  if (ask.breaker != nullptr && !joins(record(*ask.breaker).link)) return nullptr;
  if (ask.bulkhead != nullptr) {
    const BulkheadRecord& of = record(*ask.bulkhead);
    if (of.watcher != nullptr || !joins(of.link)) return nullptr;
  }
  for (const LimitAsk& one : ask.limits.asks()) {
    const LimitState& state = LimitOf::state(one.limit);
    const bool fits = one.key.size() <= kMaxKeyBytes && one.cost <= kMaxCost;
    if (state.watcher != nullptr || !is_away(state) || !fits || !joins(state.link)) return nullptr;
  }
  return link;
}

/// True: `out` is the answer.
bool EnterParts::over_socket(const EnterAsk& ask, Entry& out) noexcept {
  DaemonLink* const link = asked_of_all(ask);
  if (link == nullptr) return false;
  const MergedAsks sent(ask.limits.asks());
  const client::AdmissionAsk asked{
      .bulkhead = ask.bulkhead != nullptr ? record(*ask.bulkhead).name_view : std::string_view{},
      .breaker = ask.breaker != nullptr ? record(*ask.breaker).name_view : std::string_view{},
      .limits = sent.asks(),
      .max_wait = ask.bulkhead != nullptr ? ask.max_wait.value_or(kNever) : Nanos{0},
      .call_ns = ask.deadline,
      .apart = ask.breaker != nullptr && ask.bulkhead != nullptr};
  const Nanos patience = ask.bulkhead != nullptr
                             ? patience_of({.max_wait = ask.max_wait, .deadline = ask.deadline})
                             : Nanos{0};
  // Twice: the first place may turn out to be gone before anything was asked there.
  for (int attempt = 0; attempt < 2; ++attempt) {
    const DaemonLink::Place place = link->place();
    if (place.memory != nullptr) return false;
    if (place.socket == nullptr) break;
    const std::int64_t usual = link->ask_deadline_ns();
    link->asked_calls().present(*place.socket, usual);
    client::AdmissionTold told;
    const AskEnd end =
        client::ask_admission(*place.socket, asked, told, usual + patience.count());
    if (end == AskEnd::Answered) {
      link->on_answered(*place.socket);
      // One of the names is gone; which one each part says when it is asked alone.
      if (told.admission.is_error()) return false;
      fill(out, ask, *link, sent, told);
      return true;
    }
    if (end == AskEnd::Failed) break;
    link->on_unanswered(end, *place.socket);
    if (end != AskEnd::Unsent) break;
  }
  absent(ask, *link, out);
  return true;
}

void EnterParts::fill(Entry& out, const EnterAsk& ask, DaemonLink& link, const MergedAsks& sent,
                      const client::AdmissionTold& told) noexcept {
  const wire::Admission& a = told.admission;
  out.reason_ = static_cast<Reason>(a.reason);
  out.part_ = static_cast<EnterPart>(a.part);
  out.waited_ = Nanos{told_ns(a.waited_ns)};
  out.hint_ = (a.flags & wire::kAnswerHint) != 0;
  out.degraded_ = (a.flags & wire::kAnswerDegraded) != 0 || out.reason_ == Reason::Degraded;
  out.retry_after_ =
      a.allowed() ? Nanos{0} : std::max(Nanos{told_ns(a.retry_after_ns)}, Nanos{1});
  const bool of_limits = a.allowed() || a.part == wire::Part::Limit;
  if (of_limits && sent.count != 0) {
    client::AllTaking taking;
    taking.asks = sent.asks();
    taking.stamp_ns = told.stamp_ns;
    client::take_told(a, {told.request, told.session}, taking);
    AllElsewhere::fill(ask.limits.asks(), sent, taking, out.limits_);
  }
  if (a.part == wire::Part::Breaker && ask.breaker != nullptr) {
    fill(out.breaker_refusal_, record(*ask.breaker), a);
  } else if (a.part == wire::Part::Bulkhead && ask.bulkhead != nullptr) {
    fill(out.bulkhead_refusal_, record(*ask.bulkhead), a, wait_asked(ask.max_wait));
  }
  if (!a.allowed()) return;
  client::AskedCalls& calls = link.asked_calls();
  const bool both = ask.breaker != nullptr && ask.bulkhead != nullptr;
  const std::string& of_place = both ? a.place_ticket : a.ticket;
  if (ask.breaker != nullptr) {
    BreakerRecord& of = record(*ask.breaker);
    const bool holds = (a.flags & wire::kAnswerHolds) != 0;
    fill(out.call_, calls.add(&of, a.ticket, told.session, holds), a);
  }
  if (ask.bulkhead != nullptr && !of_place.empty()) {   // else it is switched off there
    fill(out.place_, calls.add(&record(*ask.bulkhead), of_place, told.session, true));
  }
}

}  // namespace cutwater::detail
