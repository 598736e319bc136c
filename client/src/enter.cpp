// SPDX-License-Identifier: Apache-2.0
// Client::enter(): one admission over a breaker, a bulkhead and limits. In one memory it is
// shm::begin_enter(), over the socket one ENTER (asked_enter.cpp); where parts lie in several
// places they are asked one after the other in the same order, and what a refusal leaves over is
// given back.
#include <cutwater/enter.hpp>

#include <algorithm>
#include <array>
#include <utility>

#include "base/fork_page.hpp"
#include "rule/breaker_text.hpp"
#include "src/ask/all_elsewhere.hpp"
#include "src/core.hpp"
#include "src/enter_parts.hpp"
#include "src/give_back.hpp"
#include "src/limit_of.hpp"

namespace cutwater {

std::string_view name_of(EnterPart part) noexcept {
  switch (part) {
    case EnterPart::Limit: return "limit";
    case EnterPart::Bulkhead: return "bulkhead";
    case EnterPart::Breaker: return "breaker";
    case EnterPart::None: break;
  }
  return "";
}

// ---- Entry --------------------------------------------------------------------------------------

std::string_view Entry::refused_name() const noexcept {
  switch (part_) {
    case EnterPart::Limit: return limits_.limit_name();
    case EnterPart::Bulkhead: return bulkhead_refusal_.bulkhead_name();
    case EnterPart::Breaker: return breaker_refusal_.breaker_name();
    case EnterPart::None: break;
  }
  return "";
}

std::string Entry::text() const {
  if (granted()) return {};
  if (part_ == EnterPart::Breaker) return breaker_refusal_.text();
  if (part_ == EnterPart::Bulkhead) return bulkhead_refusal_.text();
  if (part_ == EnterPart::None) {
    return reason_ == Reason::Expired ? "the call's deadline had passed before it could begin"
                                      : "at most 8 limits can be asked at once";
  }
  const std::string limit = "limit '" + std::string(limits_.limit_name()) + "' ";
  const std::string wait = retry_after_ == kNever
                               ? std::string{}
                               : std::string("; retry after ") + (hint_ ? "about " : "") +
                                     rule::duration_text(retry_after_.count());
  switch (reason_) {
    case Reason::Limit: return limit + "has not enough tokens left" + wait;
    case Reason::Never: return limit + "never grants so many at once: the cost is over its burst";
    case Reason::Banned: return limit + "has banned this key" + wait;
    case Reason::KeyTooLong: return limit + "takes no key as long as this one";
    case Reason::InvalidArgument:
      return limit + "was asked with a cost that no limit takes, or belongs to another client";
    default: return limit + "could not be decided" + wait;
  }
}

void Entry::give_up() noexcept {
  if (!call_.used()) call_.cancelled();
  for (std::size_t i = limits_.each().size(); i-- > 0;) {
    Decision& one = limits_.each()[i];
    if (one.data().receipt == Receipt::None) continue;
    auto* state = const_cast<detail::LimitState*>(
        static_cast<const detail::LimitState*>(one.data().owner));
    (void)detail::LimitOf::of(*state).refund(one);
  }
  if (place_.holds()) place_.leave();
}

Entry Client::enter(const EnterAsk& ask) noexcept {
  Entry out;
  detail::EnterParts::enter(ask, out);
  return out;
}

namespace detail {

// ---- refusing -----------------------------------------------------------------------------------

void EnterParts::refuse(Entry& out, EnterPart part, Reason reason, Nanos wait, bool hint) noexcept {
  out.reason_ = reason;
  out.part_ = part;
  out.retry_after_ = wait <= Nanos{0} ? Nanos{1} : wait;
  out.hint_ = hint;
}

void EnterParts::refuse_by_limits(Entry& out) noexcept {
  const Decision& verdict = out.limits_.verdict();
  out.degraded_ = out.degraded_ || verdict.degraded();
  refuse(out, EnterPart::Limit, verdict.reason(), verdict.retry_after(),
         verdict.is_hint() || verdict.degraded());
}

// ---- one after the other ------------------------------------------------------------------------

void EnterParts::part_by_part(const EnterAsk& ask, Entry& out) noexcept {
  const auto by_breaker = [&](const Entered& entered) {
    out.breaker_refusal_ = entered.refusal();
    out.degraded_ = out.degraded_ || entered.degraded();
    refuse(out, EnterPart::Breaker, entered.refusal().reason(), entered.refusal().retry_after(),
           entered.refusal().is_hint());
  };
  if (ask.breaker != nullptr && !ask.breaker->would_enter()) {
    const Entered refused = ask.breaker->try_enter(ask.deadline);
    if (!refused) return by_breaker(refused);
  }
  Placed placed;
  if (ask.bulkhead != nullptr) {
    placed = ask.bulkhead->enter({.max_wait = ask.max_wait, .deadline = ask.deadline});
    out.degraded_ = out.degraded_ || placed.degraded();
    out.waited_ = placed.refusal().waited();
    if (!placed) {
      out.bulkhead_refusal_ = placed.refusal();
      return refuse(out, EnterPart::Bulkhead, placed.refusal().reason(),
                    placed.refusal().retry_after(), true);
    }
  }
  if (!ask.limits.asks().empty()) {
    out.limits_ = Client::ask_all(ask.limits.asks(), true);
    if (!out.limits_) return refuse_by_limits(out);
    out.degraded_ = out.degraded_ || out.limits_.degraded();
  }
  if (ask.breaker != nullptr) {
    Entered entered = ask.breaker->try_enter(ask.deadline);
    if (!entered) {
      out.give_up();
      return by_breaker(entered);
    }
    out.degraded_ = out.degraded_ || entered.degraded();
    out.call_ = entered.take();
  }
  out.place_ = placed.take();
  out.reason_ = Reason::Allowed;
  out.retry_after_ = Nanos{0};
  out.hint_ = false;
}

// ---- in one memory ------------------------------------------------------------------------------

struct EnterParts::Found {
  const shm::View* view = nullptr;
  BreakerPlace* breaker = nullptr;
  BulkheadSpot* bulkhead = nullptr;
  PreparedLimits limits;
};

/// True: all parts lie in one memory that is shared as it should be.
bool EnterParts::find(const EnterAsk& ask, Found& found) noexcept {
  const auto same = [&](const shm::View* view) {
    if (found.view == nullptr) found.view = view;
    return found.view == view;
  };
  if (ask.breaker != nullptr) {
    const auto at = find_spot(record(*ask.breaker));
    found.breaker = at.spot;
    if (at.spot == nullptr || at.degraded || !same(at.spot->view)) return false;
  }
  if (ask.bulkhead != nullptr) {
    if (record(*ask.bulkhead).watcher != nullptr) return false;
    const auto at = find_spot(record(*ask.bulkhead));
    found.bulkhead = at.spot;
    if (at.spot == nullptr || at.degraded || !same(at.spot->view)) return false;
  }
  if (ask.limits.asks().empty()) return found.view != nullptr;
  for (const LimitAsk& one : ask.limits.asks()) {
    // Watched: its records are decided elsewhere, and every ask of them is to be seen.
    if (LimitOf::state(one.limit).watcher != nullptr) return false;
  }
  const LimitState* of = nullptr;
  std::size_t at = 0;
  const Reason bad = prepare_limits(ask.limits.asks(), found.limits, &of, at);
  return bad == Reason::Allowed && same(found.limits.state[0]->view);
}

void EnterParts::in_memory(const EnterAsk& ask, Found& found, Entry& out) noexcept {
  const shm::View& view = *found.view;
  shm::EnterCaller caller;
  shm::Entering entering;
  // A forked child that is about to hold a place; a probe alone asks for a row by itself.
  if (found.bulkhead != nullptr) static_cast<void>(found.bulkhead->holder());
  if (found.breaker != nullptr) {
    if (found.breaker->takes_cells()) static_cast<void>(found.breaker->prober());
    caller.breaker = found.breaker->caller();
    entering.ask.breaker = found.breaker->breaker();
  } else if (found.bulkhead != nullptr) {
    caller.breaker = found.bulkhead->row_caller();
  } else {
    caller.breaker.stripe = counter_for(*found.limits.state[0]).stripe;
  }
  if (found.bulkhead != nullptr) {
    entering.ask.bulkhead = found.bulkhead->bulkhead();
    caller.places = &found.bulkhead->local;
  }
  entering.ask.max_wait_ns = ask.max_wait ? std::max<std::int64_t>(0, ask.max_wait->count())
                                          : shm::kWaitAsConfigured;
  entering.ask.deadline_ns = deadline_in(view, ask.deadline);
  shm::EnterAnswer answer;
  // Again while a limit is gone that is there again: each name is looked for once.
  for (std::size_t round = 0; round <= found.limits.count; ++round) {
    entering.ask.limits = found.limits.asks();
    finish_entering(view, found.bulkhead == nullptr ? nullptr : found.bulkhead->keeper, caller,
                    entering, answer);
    if (answer.limits_outcome != shm::Outcome::LimitGone ||
        !prepare_again(found.limits, answer.limits.gone)) {
      break;
    }
  }
  give_back_owed(found.bulkhead, found.breaker, entering.ask, answer.owed);
  out.reason_ = answer.reason;
  out.part_ = static_cast<EnterPart>(answer.part);
  out.waited_ = Nanos{answer.waited_ns};
  out.hint_ = answer.hint;
  out.retry_after_ = answer.retry_after_ns < 0 ? kNever : Nanos{answer.retry_after_ns};
  out.degraded_ = answer.reason == Reason::Degraded;
  if (answer.limits_outcome == shm::Outcome::Answered && found.limits.count != 0) {
    fill(out.limits_, found.limits, answer.limits);
    out.degraded_ = out.degraded_ || out.limits_.degraded();
  }
  if (answer.part == shm::EnterPart::Breaker) {
    fill(out.breaker_refusal_, record(*ask.breaker), found.breaker, answer.breaker);
  } else if (answer.part == shm::EnterPart::Bulkhead) {
    answer.bulkhead.reason = answer.reason;
    fill(out.bulkhead_refusal_, record(*ask.bulkhead), found.bulkhead, answer.bulkhead,
         answer.waited_ns, wait_asked(ask.max_wait));
  }
  if (!answer.granted()) return;
  if (found.breaker != nullptr) {
    const bool measures = found.breaker->measures.load(std::memory_order_relaxed);
    const shm::BreakerRef asked = entering.ask.breaker;
    fill(out.call_, *found.breaker, shm::pack_ref(asked.index, asked.incarnation), answer.call,
         measures ? view.clock.now() : 0);
  }
  if (found.bulkhead != nullptr) {
    const shm::BulkheadRef asked = entering.ask.bulkhead;
    fill(out.place_, *found.bulkhead, shm::pack_ref(asked.index, asked.incarnation),
         answer.place);
  }
}

// ---- without a daemon ---------------------------------------------------------------------------

/// No daemon answers: as each part alone would, by if_absent.
void EnterParts::absent(const EnterAsk& ask, client::DaemonLink& link, Entry& out) noexcept {
  link.count_degraded();
  out.degraded_ = true;
  if (link.in_process() != nullptr && in_process(ask, *link.in_process(), out)) return;
  const bool grants = grants_nowhere(&link, Nowhere::Absent);
  if (ask.breaker != nullptr) {
    nowhere(out.breaker_refusal_, record(*ask.breaker), Nowhere::Absent, grants);
  }
  if (ask.bulkhead != nullptr) {
    nowhere(out.bulkhead_refusal_, record(*ask.bulkhead), Nowhere::Absent);
  }
  if (!grants) {
    return refuse(out, ask.breaker != nullptr ? EnterPart::Breaker : EnterPart::Bulkhead,
                  Reason::Degraded, Nanos{retry_nowhere_ns(&link)}, true);
  }
  if (!ask.limits.asks().empty()) {
    AllElsewhere::absent(ask.limits.asks(), true, link, out.limits_);
    if (!out.limits_) return refuse_by_limits(out);
  }
  out.reason_ = Reason::Allowed;
  out.retry_after_ = Nanos{0};
  out.hint_ = false;
}

/// In the configuration of this process alone. False: it does not name all of them.
bool EnterParts::in_process(const EnterAsk& ask, Client::Core& own, Entry& out) noexcept {
  Found found;
  found.view = &own.view();
  if (ask.breaker != nullptr) found.breaker = absent_spot(record(*ask.breaker)).spot;
  if (ask.bulkhead != nullptr) found.bulkhead = absent_spot(record(*ask.bulkhead)).spot;
  const bool spots = (ask.breaker == nullptr || found.breaker != nullptr) &&
                     (ask.bulkhead == nullptr || found.bulkhead != nullptr);
  if (!spots) return false;
  const std::span<const LimitAsk> asks = ask.limits.asks();
  if (!asks.empty()) {
    // Filled in place below; a Limit has no other maker.
    std::array<LimitAsk, kMaxLimitsAtOnce> there{asks[0], asks[0], asks[0], asks[0],
                                                 asks[0], asks[0], asks[0], asks[0]};
    std::size_t count = 0, at = 0;
    for (const LimitAsk& one : asks) {
      LimitState* const state = own.find(one.limit.name());
      if (state == nullptr) return false;
      there[count++] = {LimitOf::of(*state), one.key, one.cost};
    }
    const LimitState* of = nullptr;
    if (prepare_limits({there.data(), count}, found.limits, &of, at) != Reason::Allowed) {
      return false;
    }
  }
  in_memory(ask, found, out);
  out.degraded_ = true;
  out.limits_.verdict_.data().flags |= Decision::kDegraded;
  for (Decision& one : out.limits_.each()) one.data().flags |= Decision::kDegraded;
  return true;
}

void EnterParts::enter(const EnterAsk& ask, Entry& out) noexcept {
  if (ask.limits.asks().size() > kMaxLimitsAtOnce) {
    return refuse(out, EnterPart::None, Reason::InvalidArgument, kNever, false);
  }
  for (int moves = 0; moves <= kMostMoves; ++moves) {
    Found found;
    if (!find(ask, found)) {
      if (!over_socket(ask, out)) part_by_part(ask, out);
      return;
    }
    in_memory(ask, found, out);
    if (out.reason_ != Reason::Degraded || !is_left(*found.view)) return;
  }
}

}  // namespace detail
}  // namespace cutwater
