// SPDX-License-Identifier: Apache-2.0
#include "src/ask/asked_breaker.hpp"

#include <algorithm>
#include <exception>

#include "base/clock.hpp"
#include "base/fork_page.hpp"
#include "src/ask/asked_talk.hpp"
#include "src/ask/asking.hpp"
#include "src/daemon_link.hpp"
#include "src/enter_parts.hpp"
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

std::uint64_t from_zero(Nanos time) noexcept {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, time.count()));
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
  out.granted_ = a.allowed();
  if (out.granted_) {
    out.refusal_.make().record_ = &record;
    const bool holds = (a.flags & wire::kAnswerHolds) != 0;
    EnterParts::fill(out.call_, link.asked_calls().add(&record, a.ticket, told.session, holds), a);
    return true;
  }
  BreakerRefusal& refusal = out.refusal_.make();
  EnterParts::fill(refusal, record, a);
  out.degraded_ = refusal.reason_ == Reason::Degraded;   // gone since it was asked for
  return true;
}

void EnterParts::fill(Call& call, AskedCall* held, const wire::Admission& told) noexcept {
  if (held != nullptr) held->timed = (told.flags & wire::kAnswerTimed) != 0;
  call.ticket_[0] = word_of(held);
  call.life_ = process_life();
  call.epoch_ = static_cast<std::uint32_t>(told.epoch);
  call.kind_ = static_cast<std::uint8_t>(told.state == wire::BreakerWord::HalfOpen
                                             ? shm::CallKind::Probe
                                             : shm::CallKind::Window);
  call.exceptions_ = std::uncaught_exceptions();
}

void EnterParts::fill(BreakerRefusal& refusal, const BreakerRecord& record,
                      const wire::Admission& told) noexcept {
  refusal.record_ = &record;
  refusal.reason_ = told.is_error() ? Reason::Degraded : static_cast<Reason>(told.reason);
  if (refusal.reason_ == Reason::Degraded) {
    nowhere(refusal, record, Nowhere::Gone, false);
    return;
  }
  refusal.told_ = true;
  refusal.state_ = status_of(told.state);
  refusal.hint_ = (told.flags & wire::kAnswerHint) != 0;
  refusal.process_ = (told.flags & wire::kAnswerProcess) != 0;
  refusal.now_ns_ = told.since_ns == wire::kNever ? -1 : told_ns(told.since_ns);
  refusal.retry_after_ = Nanos{told_ns(told.retry_after_ns)};
  // A name is 63 bytes at most, and both have their 0.
  char* const why = refusal.why_;
  const std::size_t end = told.why.copy(why, sizeof refusal.why_ - 66);
  why[end] = 0;
  why[end + 1 + told.pattern.copy(why + end + 1, 63)] = 0;
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

/// Tells it, with the duration where it was given, or is wanted and known here. `counts`: there is
/// one.
void AskedBreaker::say(Call& call, wire::OutcomeReport report, bool counts) noexcept {
  AskedCall* const asked = asked_of(call.ticket_[0]);
  // What was inherited over a fork is its parent's; what was never granted has nothing to say.
  if (asked == nullptr || call.life_ != process_life()) return;
  if (call.kind_ == 0 && !call.said_) return;
  call.said_ = true;
  DaemonLink& link = *static_cast<BreakerRecord*>(asked->record)->link;
  AskSocket* const socket = link.place().socket;
  const bool measured = report.duration_ns != wire::kNever;
  const bool measures = counts && asked->timed && socket != nullptr && !socket->stepped();
  if (!measured && measures) {
    report.duration_ns = static_cast<std::uint64_t>(
        std::max<std::int64_t>(0, boottime_ns() - asked->start_ns));
  }                                      // else the daemon measures
  link.asked_calls().report(socket, *asked, std::move(report), link.ask_deadline_ns());
}

void AskedBreaker::report(Call& call, std::uint8_t ended, std::string_view outcome_class,
                          std::optional<Nanos> took, bool open_now,
                          std::optional<Nanos> wait) noexcept {
  const auto how = static_cast<shm::Ended>(ended);
  wire::OutcomeReport report;
  report.outcome = word_of(how);
  if (took) report.duration_ns = from_zero(*took);
  if (open_now) {
    report.open_for_ns = wait ? std::max<std::uint64_t>(1, from_zero(*wait)) : wire::kNever;
  } else if (wait && rule::may_retry_after(outcome_class)) {
    report.retry_after_ns = from_zero(*wait);
  }
  try {
    if (how == shm::Ended::Failure) {
      report.outcome_class = wire::fit_text(outcome_class, wire::kMaxClass - 1);
    }
  } catch (const std::exception&) {
    // Without memory for its class it is a failure all the same.
  }
  say(call, std::move(report), how == shm::Ended::Success || how == shm::Ended::Failure);
}

void AskedBreaker::failed_by(Call& call, std::span<const std::string_view> own,
                             std::string_view built_in, std::optional<Nanos> took) noexcept {
  wire::OutcomeReport report;
  report.outcome = wire::OutcomeKind::Failed;
  if (took) report.duration_ns = from_zero(*took);
  try {
    own = own.first(std::min(own.size(), wire::kMaxOtherClasses));
    report.outcome_class =
        wire::fit_text(own.empty() ? built_in : own.front(), wire::kMaxClass - 1);
    for (std::size_t i = 1; i < own.size(); ++i) {
      report.others.push_back(wire::fit_text(own[i], wire::kMaxClass - 1));
    }
    if (!own.empty()) report.others.push_back(wire::fit_text(built_in, wire::kMaxClass - 1));
  } catch (const std::exception&) {
    report.others.clear();               // by the names there is memory for
  }
  say(call, std::move(report), true);
}

void AskedBreaker::let_go(Call& call) noexcept {
  if (call.place_ != nullptr || call.ticket_[0] == 0) return;
  AskedCall* const asked = asked_of(call.ticket_[0]);
  static_cast<BreakerRecord*>(asked->record)->link->asked_calls().remove(asked);
  call.ticket_[0] = 0;
}

}  // namespace cutwater::detail
