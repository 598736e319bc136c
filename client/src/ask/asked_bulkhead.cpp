// SPDX-License-Identifier: Apache-2.0
// Bulkheads over the socket: a place is the ticket of an ENTER, given back by its OUTCOME.
#include <algorithm>

#include "base/fork_page.hpp"
#include "src/ask/asked_talk.hpp"
#include "src/enter_parts.hpp"

namespace cutwater::detail {
namespace {

/// A wait that the daemon ends by the bulkhead's settings: longer than they can be told to last,
/// but for `forever`, and then the connection's end ends it.
constexpr Nanos kLongestWait = std::chrono::hours{24 * 365};

}  // namespace

Nanos patience_of(const PlaceAsk& ask) noexcept {
  Nanos wait = ask.max_wait ? std::max(*ask.max_wait, Nanos{0}) : kLongestWait;
  if (ask.deadline > Nanos{0}) wait = std::min(wait, ask.deadline);
  return std::min(wait, kLongestWait);
}

bool enter_asked(BulkheadRecord& record, const PlaceAsk& ask, wire::Admission& told,
                 client::AskedCall*& held, Found<BulkheadSpot>& found) noexcept {
  client::DaemonLink& link = *record.link;
  client::AdmissionTold answer;
  const client::AdmissionAsk asked{.bulkhead = record.name_view,
                                   .breaker = {},
                                   .limits = {},
                                   .max_wait = ask.max_wait.value_or(kNever),
                                   .call_ns = ask.deadline};
  const bool answered =
      converse(record, found, patience_of(ask), [&](client::AskSocket& socket, std::int64_t by) {
        return client::ask_admission(socket, asked, answer, by);
      });
  if (!answered) return false;
  told = std::move(answer.admission);
  held = nullptr;
  if (!told.allowed() || told.ticket.empty()) return true;   // refused, or switched off there
  held = link.asked_calls().add(&record, told.ticket, answer.session, true);
  return true;
}

std::optional<BulkheadUse> use_asked(BulkheadRecord& record,
                                     Found<BulkheadSpot>& found) noexcept {
  wire::Resolved told;
  const bool answered =
      converse(record, found, Nanos{0}, [&](client::AskSocket& socket, std::int64_t by) {
        return client::ask_resolve(socket, wire::NameKind::Bulkhead, record.name_view, told, by);
      });
  if (!answered) return std::nullopt;
  if (told.code != 0) return BulkheadUse{};
  const auto number = [&](const char* key) {
    const wire::Value* const value = told.settings.find(key);
    return value == nullptr ? std::uint64_t{0} : value->as_unsigned().value_or(0);
  };
  const auto count = [&](const char* key) { return static_cast<std::uint32_t>(number(key)); };
  return BulkheadUse{count("in_use"), count("max"), count("over"), count("waiting"),
                     Nanos{told_ns(number("oldest_ns"))}};
}

void EnterParts::fill(Place& place, client::AskedCall* held) noexcept {
  if (held == nullptr) return;
  place.spot_ = nullptr;
  place.cell_value_ = word_of(held);
  place.life_ = process_life();
  place.held_ = true;
}

void EnterParts::fill(BulkheadRefusal& refusal, const BulkheadRecord& record,
                      const wire::Admission& told, Nanos asked_wait) noexcept {
  refusal.record_ = &record;
  refusal.reason_ = told.is_error() ? Reason::Degraded : static_cast<Reason>(told.reason);
  refusal.nowhere_ = static_cast<std::uint8_t>(Nowhere::Gone);
  refusal.in_use_ = told.holding;
  refusal.limit_ = told.places;
  refusal.waiting_ = told.waiting;
  refusal.oldest_held_ = Nanos{told_ns(told.oldest_ns)};
  refusal.waited_ = Nanos{told_ns(told.waited_ns)};
  refusal.cut_wait_ = cut_of(refusal.reason_, (told.flags & wire::kAnswerNoLine) != 0,
                             refusal.waited_, asked_wait);
  refusal.share(told.pattern);
  const Nanos wait{told_ns(told.retry_after_ns)};
  refusal.retry_after_ =
      refusal.reason_ == Reason::Degraded ? Nanos{retry_nowhere_ns(record.link)}
                                          : std::max(wait, Nanos{1});
}

void EnterParts::leave_asked(Place& place) noexcept {
  client::AskedCall* const held = asked_of(place.cell_value_);
  place.cell_value_ = 0;
  if (held == nullptr) return;
  client::DaemonLink& link = *static_cast<BulkheadRecord*>(held->record)->link;
  if (place.life_ == process_life()) {   // else it is its parent's
    wire::OutcomeReport report;
    report.outcome = wire::OutcomeKind::Succeeded;
    link.asked_calls().report(link.place().socket, *held, std::move(report),
                              link.ask_deadline_ns());
  }
  link.asked_calls().remove(held);
}

}  // namespace cutwater::detail
