// SPDX-License-Identifier: Apache-2.0
// Breaker, Call: the short way while closed, the long way to shm/breaker/breaker.hpp otherwise.
#include <cutwater/breaker.hpp>

#include <algorithm>
#include <cstring>
#include <span>

#include "base/fork_page.hpp"
#include "shm/breaker/quick.hpp"
#include "shm/breaker/words.hpp"
#include "src/ask/asked_breaker.hpp"
#include "src/breaker_record.hpp"
#include "src/core.hpp"
#include "src/daemon_link.hpp"
#include "src/enter_parts.hpp"
#include "src/give_back.hpp"
#include "src/passing_exceptions.hpp"
#include "src/refusal_moment.hpp"

namespace cutwater {
namespace {

using detail::BreakerPlace;
using detail::BreakerRecord;

}  // namespace

std::string_view name_of(BreakerStatus state) noexcept {
  return rule::name_of(static_cast<rule::BreakerState>(state));
}

// ---- entering -----------------------------------------------------------------------------------

std::string_view Breaker::name() const noexcept { return record_->name_view; }

inline Entered::Entered(BreakerPlace* place, std::uint64_t ref, std::uint64_t life,
                        std::uint32_t epoch, int exceptions, std::int64_t start_ns) noexcept
    : granted_(true) {
  call_.place_ = place;
  call_.ref_ = ref;
  call_.life_ = life;
  call_.start_ns_ = start_ns;
  call_.epoch_ = epoch;
  call_.exceptions_ = exceptions;
  call_.kind_ = static_cast<std::uint8_t>(shm::CallKind::Window);
}

/// Everything in registers: what is rare, or needs the clock, is a function of its own.
Entered Breaker::try_enter(Nanos deadline) noexcept {
  BreakerPlace* const place = record_->at.load(std::memory_order_acquire);
  // What is kept may be of these rules already, and of a ref of before them.
  if (place == nullptr || !place->is_resolved()) [[unlikely]] return enter_slowly(deadline);
  std::uint64_t state_lo = 0;
  bool measures = false;
  // relaxed, both: compared with the one that is kept; a number that carries its whole meaning.
  const std::uint64_t ref = place->ref.load(std::memory_order_relaxed);
  const std::uint64_t life = place->life->load(std::memory_order_relaxed);
  const unsigned* const passing = detail::passing_count;
  if (!shm::enter_quickly(place->local, *place->view, ref, state_lo, measures) || life == 0 ||
      passing == nullptr) [[unlikely]] {
    return enter_slowly(deadline);
  }
  const std::uint32_t epoch = shm::epoch_of(state_lo);
  if (measures) return enter_measured(place, ref, life, epoch, static_cast<int>(*passing));
  return Entered(place, ref, life, epoch, static_cast<int>(*passing), 0);
}

Entered Breaker::enter_measured(BreakerPlace* place, std::uint64_t ref, std::uint64_t life,
                                std::uint32_t epoch, int exceptions) noexcept {
  return Entered(place, ref, life, epoch, exceptions, place->view->clock.now());
}

/// Also the first call of a thread, and of a forked child.
Entered Breaker::enter_slowly(Nanos deadline) noexcept {
  Entered out;
  static_cast<void>(detail::find_passing_count());
  enter_slowly(record_->at.load(std::memory_order_acquire), deadline, out);
  return out;
}

void Breaker::enter_slowly(BreakerPlace* place, Nanos deadline, Entered& out) noexcept {
  BreakerRefusal& refusal = out.refusal_.make();
  if (place == nullptr ||
      place->seen_current.load(std::memory_order_relaxed) != place->view->current()) {
    detail::Found<BreakerPlace> found = detail::find_spot(*record_);
    if (found.socket != nullptr && detail::AskedBreaker::enter(*record_, deadline, out, found)) {
      return;
    }
    place = found.spot;
    out.degraded_ = place == nullptr || found.degraded;
    refusal.nowhere_ = static_cast<std::uint8_t>(found.why);
    const bool counts = record_->link != nullptr && found.why != detail::Nowhere::Off;
    if (out.degraded_ && counts) record_->link->count_degraded();
  }
  refusal.record_ = record_;
  refusal.place_ = place;
  if (place == nullptr) {
    // Nowhere to ask: what the program chose for that.
    const auto why = static_cast<detail::Nowhere>(refusal.nowhere_);
    out.granted_ = detail::grants_nowhere(record_->link, why);
    return detail::EnterParts::nowhere(refusal, *record_, why, out.granted_);
  }
  const shm::View& view = *place->view;
  const std::int64_t until = detail::deadline_in(view, deadline);
  const shm::BreakerCaller caller = place->takes_cells() ? place->prober() : place->caller();
  // relaxed: a number that carries its whole meaning.
  const std::uint64_t ref = place->ref.load(std::memory_order_relaxed);
  const shm::BreakerEntry entry =
      shm::enter_breaker(view, BreakerPlace::unpacked(ref), caller, until);
  out.granted_ = entry.granted;
  if (entry.granted) {
    const bool measures = place->measures.load(std::memory_order_relaxed);
    const std::int64_t start = entry.now_ns != 0 ? entry.now_ns : measures ? view.clock.now() : 0;
    return detail::EnterParts::fill(out.call_, *place, ref, entry.call, measures ? start : 0);
  }
  detail::EnterParts::fill(refusal, *record_, place, entry);
  if (entry.reason == Reason::Degraded) out.degraded_ = true;      // gone since it was found
}

namespace detail {

void EnterParts::fill(Call& call, BreakerPlace& place, std::uint64_t ref,
                      const shm::BreakerCall& granted, std::int64_t start_ns) noexcept {
  call.place_ = &place;
  call.ref_ = ref;
  call.life_ = process_life();
  call.epoch_ = granted.epoch;
  call.kind_ = static_cast<std::uint8_t>(granted.kind);
  call.cell_ = granted.cell;
  call.ticket_[0] = granted.ticket.lo;
  call.ticket_[1] = granted.ticket.hi;
  call.exceptions_ = passing_exceptions();
  call.start_ns_ = start_ns;
}

void EnterParts::fill(BreakerRefusal& refusal, const BreakerRecord& record,
                      const BreakerPlace* place, const shm::BreakerEntry& said) noexcept {
  refusal.record_ = &record;
  refusal.place_ = place;
  refusal.reason_ = said.reason;
  if (said.reason == Reason::Degraded) refusal.nowhere_ = static_cast<std::uint8_t>(Nowhere::Gone);
  refusal.state_ = static_cast<BreakerStatus>(said.state);
  refusal.hint_ = said.hint || said.reason == Reason::Degraded;
  refusal.process_ = said.scope == shm::RefusalScope::Process;
  refusal.now_ns_ = said.now_ns;
  if (place != nullptr && said.reason != Reason::Degraded && !refusal.process_) {
    const RefusalMoment then = moment_of(*place->view, place->breaker().index, said);
    std::memcpy(refusal.why_, &then, sizeof then);
  }
  refusal.retry_after_ = said.retry_after_ns < 0 ? kNever : Nanos{said.retry_after_ns};
}

void EnterParts::nowhere(BreakerRefusal& refusal, const BreakerRecord& record, Nowhere why,
                         bool granted) noexcept {
  refusal.record_ = &record;
  refusal.place_ = nullptr;
  refusal.reason_ = Reason::Degraded;
  refusal.nowhere_ = static_cast<std::uint8_t>(why);
  refusal.state_ = granted ? BreakerStatus::Disabled : BreakerStatus::ForcedOpen;
  refusal.retry_after_ = Nanos{retry_nowhere_ns(record.link)};
}

}  // namespace detail

bool Breaker::would_enter() const noexcept {
  detail::Found<BreakerPlace> found = detail::find_spot(*record_);
  if (found.socket != nullptr) {
    const auto told = detail::AskedBreaker::look(*record_, found);
    if (told) return told->would == 0;
  }
  const BreakerPlace* const place = found.spot;
  if (place == nullptr) return detail::grants_nowhere(record_->link, found.why);
  return shm::look_at_breaker(*place->view, place->breaker(), place->caller()).granted;
}

BreakerStatus Breaker::state() const noexcept {
  detail::Found<BreakerPlace> found = detail::find_spot(*record_);
  if (found.socket != nullptr) {
    const auto told = detail::AskedBreaker::look(*record_, found);
    if (told) return told->state;
  }
  const BreakerPlace* const place = found.spot;
  shm::BreakerInfo info;
  if (place == nullptr || !shm::read_breaker(*place->view, place->breaker().index, info)) {
    const bool grants = detail::grants_nowhere(record_->link, found.why);
    return grants ? BreakerStatus::Disabled : BreakerStatus::ForcedOpen;
  }
  // Switched off in the configuration, whatever was steered: every call is granted.
  if ((info.numbers.flags & rule::kBreakerSwitchedOff) != 0) return BreakerStatus::Disabled;
  const rule::BreakerState now = info.word.state;
  return static_cast<BreakerStatus>(
      info.effective.ready ? rule::state_after(info.numbers, now) : now);
}

std::string Breaker::explain() const {
  detail::Found<BreakerPlace> found = detail::find_spot(*record_);
  if (found.socket != nullptr) {
    auto told = detail::AskedBreaker::look(*record_, found);
    if (told) return std::move(told->explain);
  }
  const BreakerPlace* const place = found.spot;
  shm::BreakerInfo info;
  if (place == nullptr || !shm::read_breaker(*place->view, place->breaker().index, info)) {
    return detail::nowhere_text(*record_, found.why);
  }
  rule::BreakerStory story = shm::story_of(info);
  story.name = record_->name_view;
  return rule::explain_text(info.numbers, story);
}

// ---- calls --------------------------------------------------------------------------------------

Call& Call::operator=(Call&& other) noexcept {
  if (this == &other) return *this;
  end();
  detail::AskedBreaker::let_go(*this);
  place_ = other.place_;
  ref_ = other.ref_;
  ticket_[0] = other.ticket_[0];
  ticket_[1] = other.ticket_[1];
  life_ = other.life_;
  start_ns_ = other.start_ns_;
  epoch_ = other.epoch_;
  exceptions_ = other.exceptions_;
  cell_ = other.cell_;
  kind_ = other.kind_;
  said_ = other.said_;
  other.kind_ = 0;
  other.said_ = false;
  other.place_ = nullptr;
  other.ticket_[0] = 0;
  return *this;
}

void Call::close() noexcept {
  end();
  detail::AskedBreaker::let_go(*this);
}

void Call::end() noexcept {
  if (kind_ == 0) return;
  if (std::uncaught_exceptions() > exceptions_) failed();
  else cancelled();
}

void Call::succeeded(std::optional<Nanos> took) noexcept {
  const bool plain = kind_ == static_cast<std::uint8_t>(shm::CallKind::Window) &&
                     place_ != nullptr && ticket_[0] == 0 && ticket_[1] == 0;
  if (plain) [[likely]] {
    const std::uint64_t now = place_->life->load(std::memory_order_relaxed);
    const shm::QuickOutcome outcome{epoch_, start_ns_,
                                    took ? std::max<std::int64_t>(0, took->count()) : -1};
    if (now == life_ && shm::finish_quickly(*place_->view, ref_, place_->caller(now), outcome))
        [[likely]] {
      kind_ = 0;
      said_ = true;
      return;
    }
  }
  report(static_cast<std::uint8_t>(shm::Ended::Success), {}, took, false, {});
}
void Call::failed(std::string_view outcome_class, std::optional<Nanos> took,
                  std::optional<Nanos> retry_after) noexcept {
  report(static_cast<std::uint8_t>(shm::Ended::Failure), outcome_class, took, false, retry_after);
}
void Call::ignored() noexcept {
  report(static_cast<std::uint8_t>(shm::Ended::Ignored), {}, {}, false, {});
}
void Call::cancelled() noexcept {
  report(static_cast<std::uint8_t>(shm::Ended::Cancelled), {}, {}, false, {});
}
void Call::open_for(std::optional<Nanos> wait, std::string_view outcome_class) noexcept {
  report(static_cast<std::uint8_t>(shm::Ended::Failure), outcome_class, {}, true, wait);
}
void Call::failed_by_exception(std::optional<Nanos> took) noexcept {
  const detail::OutcomeNames names = detail::names_of_current_exception();
  const std::span<const std::string_view> own{names.own, names.count};
  const std::string_view built_in = names.built_in.failure_class();
  if (place_ == nullptr) {                           // the daemon knows the lists
    detail::AskedBreaker::failed_by(*this, own, built_in, took);
    kind_ = 0;
    return;
  }
  const shm::BreakerRef ref = BreakerPlace::unpacked(ref_);
  const auto listed = [&](std::string_view name) {
    return shm::listed_class(*place_->view, ref, name);
  };
  failed(rule::deciding_class(own, built_in, listed), took);
}
void Call::report_value(const Outcome& outcome) noexcept {
  if (outcome.is_success()) succeeded();
  else failed(outcome.failure_class());
}

void Call::report(std::uint8_t ended, std::string_view outcome_class, std::optional<Nanos> took,
                  bool open_now, std::optional<Nanos> open_for) noexcept {
  if (place_ == nullptr) {                           // asked, granted nowhere, or moved from
    detail::AskedBreaker::report(*this, ended, outcome_class, took, open_now, open_for);
    kind_ = 0;
    return;
  }
  const shm::View& view = *place_->view;
  // A call that was inherited over a fork is its parent's.
  if (life_ != process_life()) {
    kind_ = 0;
    return;
  }
  const shm::BreakerCaller caller = place_->reporter(ref_);
  const shm::BreakerRef ref = BreakerPlace::unpacked(ref_);
  if (kind_ == 0) {
    if (said_) shm::count_breaker(view, caller.stripe, ref.index, shm::BreakerCounter::UsedTwice);
    return;
  }
  shm::BreakerReport report;
  report.kind = static_cast<shm::Ended>(ended);
  report.open_now = open_now;
  if (took) report.duration_ns = std::max<std::int64_t>(0, took->count());
  if (open_for) {                                    // of open_for(), or a Retry-After
    const std::int64_t wait = std::max<std::int64_t>(0, open_for->count());
    if (open_now) report.open_for_ns = wait;
    else if (rule::may_retry_after(outcome_class)) report.retry_after_ns = wait;
  }
  if (report.kind == shm::Ended::Failure) {
    report.failure_class = rule::class_counter(outcome_class);
    if (!open_now) {
      switch (shm::judge_class(view, ref, outcome_class)) {
        case rule::ClassVerdict::Failure: break;
        case rule::ClassVerdict::Ignored: report.kind = shm::Ended::Ignored; break;
        case rule::ClassVerdict::Success: report.kind = shm::Ended::Success; break;
        case rule::ClassVerdict::Cancelled: report.kind = shm::Ended::Cancelled; break;
      }
    }
  }
  shm::BreakerCall call;
  call.ticket = {ticket_[0], ticket_[1]};
  call.start_ns = start_ns_;
  call.epoch = epoch_;
  call.cell = cell_;
  call.kind = static_cast<shm::CallKind>(kind_);
  kind_ = 0;
  said_ = true;
  const shm::Recorded how = shm::finish_breaker(view, ref, caller, call, report);
  if (shm::goes_on(how)) detail::end_in_successor(*place_, ref_, call, report, how);
}

}  // namespace cutwater
