// SPDX-License-Identifier: Apache-2.0
#include "src/asked_breaker.hpp"

#include <algorithm>
#include <exception>

#include "base/clock.hpp"
#include "base/fork_page.hpp"
#include "src/asked_talk.hpp"
#include "src/asking.hpp"
#include "src/daemon_link.hpp"
#include "wire/text.hpp"

namespace cutwater::detail {
namespace {

using client::AskedCall;
using client::AskEnd;
using client::AskSocket;
using client::DaemonLink;

BreakerStatus status_of(wire::BreakerWord word) noexcept {
  switch (word) {
    case wire::BreakerWord::Open: return BreakerStatus::Open;
    case wire::BreakerWord::HalfOpen: return BreakerStatus::HalfOpen;
    case wire::BreakerWord::Disabled: return BreakerStatus::Disabled;
    case wire::BreakerWord::ForcedOpen: return BreakerStatus::ForcedOpen;
    case wire::BreakerWord::MetricsOnly: return BreakerStatus::MetricsOnly;
    default: return BreakerStatus::Closed;
  }
}

wire::OutcomeKind word_of(shm::Ended ended) noexcept {
  switch (ended) {
    case shm::Ended::Success: return wire::OutcomeKind::Succeeded;
    case shm::Ended::Failure: return wire::OutcomeKind::Failed;
    case shm::Ended::Ignored: return wire::OutcomeKind::Ignored;
    case shm::Ended::Cancelled: break;
  }
  return wire::OutcomeKind::Cancelled;
}

}  // namespace

bool AskedBreaker::enter(BreakerRecord& record, Nanos deadline, Entered& out,
                         Found<BreakerPlace>& found) noexcept {
  DaemonLink& link = *record.link;
  client::AdmissionTold told;
  const client::AdmissionAsk ask{.bulkhead = {},
                                 .breaker = record.name_view,
                                 .limits = {},
                                 .max_wait = Nanos{0},
                                 .call_ns = deadline};
  const bool answered =
      converse(record, found, Nanos{0}, [&](AskSocket& socket, std::int64_t by_ns) {
        return client::ask_admission(socket, ask, told, by_ns);
      });
  if (!answered) return false;
  const wire::Admission& a = told.admission;
  BreakerRefusal& refusal = out.refusal_;
  refusal.record_ = &record;
  if (a.allowed()) {
    Call& call = out.call_;
    const bool holds = (a.flags & wire::kAnswerHolds) != 0;
    AskedCall* const asked = link.asked_calls().add(&record, a.ticket, told.session, holds);
    if (asked == nullptr) link.asked_calls().count_lost();
    out.granted_ = true;
    call.ticket_[0] = word_of(asked);
    call.life_ = process_life();
    call.epoch_ = static_cast<std::uint32_t>(a.epoch);
    call.kind_ = static_cast<std::uint8_t>(
        a.state == wire::BreakerWord::HalfOpen ? shm::CallKind::Probe : shm::CallKind::Window);
    call.exceptions_ = std::uncaught_exceptions();
    return true;
  }
  refusal.reason_ = a.is_error() ? Reason::Degraded : static_cast<Reason>(a.reason);
  if (refusal.reason_ == Reason::Degraded) {             // gone since it was asked for
    out.degraded_ = true;
    refusal.nowhere_ = static_cast<std::uint8_t>(Nowhere::Gone);
    refusal.state_ = BreakerStatus::ForcedOpen;
    refusal.retry_after_ = Nanos{retry_nowhere_ns(&link)};
    return true;
  }
  refusal.told_ = true;
  refusal.state_ = status_of(a.state);
  refusal.hint_ = (a.flags & wire::kAnswerHint) != 0;
  refusal.process_ = (a.flags & wire::kAnswerProcess) != 0;
  refusal.now_ns_ = a.since_ns == wire::kNever ? -1 : told_ns(a.since_ns);
  refusal.retry_after_ = Nanos{told_ns(a.retry_after_ns)};
  refusal.why_[a.why.copy(refusal.why_, sizeof refusal.why_ - 1)] = 0;
  return true;
}

std::optional<AskedBreaker::Looked> AskedBreaker::look(BreakerRecord& record,
                                                       Found<BreakerPlace>& found) noexcept {
  wire::Resolved told;
  const bool answered =
      converse(record, found, Nanos{0}, [&](AskSocket& socket, std::int64_t by_ns) {
        return client::ask_resolve(socket, wire::NameKind::Breaker, record.name_view, told, by_ns);
      });
  if (!answered) return std::nullopt;
  try {
    const auto number = [&](const char* key) {
      const wire::Value* const value = told.settings.find(key);
      return value == nullptr ? 0 : value->as_unsigned().value_or(0);
    };
    Looked out;
    if (told.code != 0) {
      out.state = BreakerStatus::ForcedOpen;
      out.would = wire::kReasonDegraded;
      out.explain = nowhere_text(record, Nowhere::Gone);
      return out;
    }
    out.state = status_of(static_cast<wire::BreakerWord>(number("state")));
    out.would = static_cast<std::uint16_t>(number("would"));
    const wire::Value* const text = told.settings.find("explain");
    if (text != nullptr && text->as_string() != nullptr) out.explain = *text->as_string();
    return out;
  } catch (const std::exception&) {
    return std::nullopt;                 // no memory for the words
  }
}

void AskedBreaker::report(Call& call, std::uint8_t ended, std::string_view outcome_class,
                          std::optional<Nanos> took, bool open_now,
                          std::optional<Nanos> open_for) noexcept {
  AskedCall* const asked = asked_of(call.ticket_[0]);
  // What was inherited over a fork is its parent's; what was never granted has nothing to say.
  if (asked == nullptr || call.life_ != process_life()) return;
  if (call.kind_ == 0 && !call.said_) return;
  call.said_ = true;
  DaemonLink& link = *static_cast<BreakerRecord*>(asked->record)->link;
  AskSocket* const socket = link.place().socket;
  const auto how = static_cast<shm::Ended>(ended);
  wire::OutcomeReport report;
  report.outcome = word_of(how);
  const bool counts = how == shm::Ended::Success || how == shm::Ended::Failure;
  if (took) {
    report.duration_ns = static_cast<std::uint64_t>(std::max<std::int64_t>(0, took->count()));
  } else if (counts && socket != nullptr && !socket->stepped()) {
    report.duration_ns = static_cast<std::uint64_t>(
        std::max<std::int64_t>(0, boottime_ns() - asked->start_ns));
  }                                      // else the daemon measures
  if (open_now) {
    report.open_for_ns = open_for ? static_cast<std::uint64_t>(
                                        std::max<std::int64_t>(1, open_for->count()))
                                  : wire::kNever;
  }
  try {
    if (how == shm::Ended::Failure) {
      report.outcome_class = wire::fit_text(outcome_class, wire::kMaxClass - 1);
    }
  } catch (const std::exception&) {
    // Without memory for its class it is a failure all the same.
  }
  link.asked_calls().report(socket, *asked, std::move(report), link.ask_deadline_ns());
  asked->used = true;                    // nobody presents it any more
}

void AskedBreaker::let_go(Call& call) noexcept {
  if (call.place_ != nullptr || call.ticket_[0] == 0) return;
  AskedCall* const asked = asked_of(call.ticket_[0]);
  static_cast<BreakerRecord*>(asked->record)->link->asked_calls().remove(asked);
  call.ticket_[0] = 0;
}

}  // namespace cutwater::detail
