// SPDX-License-Identifier: Apache-2.0
// All or none over several limits of one Client: shm::admit_all() with what belongs to the process.
#include <cutwater/client.hpp>

#include <algorithm>
#include <string>

#include "src/ask/all_elsewhere.hpp"
#include "src/ask/elsewhere.hpp"
#include "src/core.hpp"
#include "src/decide.hpp"
#include "src/enter_parts.hpp"
#include "src/limit_list.hpp"
#include "src/limit_of.hpp"
#include "src/no_memory.hpp"

namespace cutwater {
namespace {

using detail::LimitOf;
using detail::LimitState;
using Prepared = detail::PreparedLimits;

/// Asks until no limit of the list is gone that is there again: each name is looked for once.
bool ask(const shm::View& view, Prepared& list, bool charge, shm::AdmitAnswer& out) noexcept {
  for (std::size_t round = 0; round <= list.count; ++round) {
    const shm::Outcome done = charge ? shm::admit_all(view, list.asks(), out)
                                     : shm::look_all(view, list.asks(), out);
    if (done == shm::Outcome::Answered) return true;
    if (done != shm::Outcome::LimitGone || !detail::prepare_again(list, out.gone)) break;
  }
  return false;
}

void count(const Prepared& list, bool allowed, const shm::AdmitAnswer& answer) noexcept {
  for (std::size_t i = 0; i < list.count; ++i) {
    const DecisionData& one = answer.item[i];
    // One that would have granted is no decision of its limit when another one refused.
    if (list.ask[i].cost == 0 || (!allowed && one.reason == Reason::Allowed)) continue;
    detail::count_admitted(*list.state[i], list.ask[i], one);
  }
}

}  // namespace

Admission Client::ask_all(std::span<const LimitAsk> asks, bool charge) noexcept {
  Admission out;
  if (detail::AllElsewhere::ask(asks, charge, out)) return out;
  out = ask_in_memory(asks, charge);
  detail::AskWatcher* const watcher =
      asks.empty() ? nullptr : LimitOf::state(asks[0].limit).watcher;
  if (watcher != nullptr) watcher->note_all(asks, charge, out);
  return out;
}

Admission Client::ask_in_memory(std::span<const LimitAsk> asks, bool charge) noexcept {
  Admission out;
  const LimitState* of = nullptr;
  Prepared list;
  const Reason bad = detail::prepare_limits(asks, list, &of, out.index_);
  if (bad != Reason::Allowed) {
    DecisionData& data = out.verdict_.data();
    data.computed = true;
    if (of != nullptr && bad != Reason::Degraded) {
      detail::answer_argument(*of, bad == Reason::KeyTooLong, data);
    } else if (of != nullptr) {
      detail::answer_degraded(*of, data);
    } else {
      data.reason = bad;
      data.base_t = kNever.count();
    }
    return out;
  }
  const shm::View& view = *list.state[0]->view;
  shm::AdmitAnswer answer;
  if (!ask(view, list, charge, answer)) {
    out.index_ = answer.gone;
    detail::answer_degraded(*list.state[answer.gone], out.verdict_.data());
    return out;
  }
  detail::EnterParts::fill(out, list, answer);
  if (charge) count(list, out.allowed(), answer);
  return out;
}

namespace detail {

void EnterParts::fill(Admission& admission, const PreparedLimits& list,
                      const shm::AdmitAnswer& answer) noexcept {
  admission.index_ = answer.decisive;
  admission.verdict_.data() = answer.verdict;
  admission.count_ = answer.items;
  for (std::size_t i = 0; i < admission.count_; ++i) {
    DecisionData& data = admission.each_[i].data();
    data = answer.item[i];
    data.owner = list.state[i];
    data.decided_by = list.state[i]->decided_by;
  }
  admission.verdict_.data().owner = list.state[admission.index_];
  admission.verdict_.data().decided_by = list.state[admission.index_]->decided_by;
}

}  // namespace detail

Admission Client::acquire_all(std::span<const LimitAsk> asks) noexcept {
  return ask_all(asks, true);
}
Admission Client::acquire_all(std::initializer_list<LimitAsk> asks) noexcept {
  return ask_all({asks.begin(), asks.size()}, true);
}
Admission Client::peek_all(std::span<const LimitAsk> asks) noexcept { return ask_all(asks, false); }
Admission Client::peek_all(std::initializer_list<LimitAsk> asks) noexcept {
  return ask_all({asks.begin(), asks.size()}, false);
}

Result<std::uint64_t> Client::refund(Admission& admission) noexcept {
  return detail::or_no_memory([&]() -> Result<std::uint64_t> {
    std::uint64_t tokens = 0;
    bool any = false;
    bool late = false;
    // From the last of the list to the first, as they may be stacked on one key.
    for (std::size_t i = admission.count_; i-- > 0;) {
      Decision& one = admission.each_[i];
      if (one.data().receipt == Receipt::None) continue;
      auto* state = const_cast<LimitState*>(static_cast<const LimitState*>(one.data().owner));
      auto given = LimitOf::of(*state).refund(one);
      if (given && *given == 0) continue;  // a shadow of a set over the socket: it charged nothing
      any = true;
      if (given) tokens += *given; else late = true;
    }
    if (!any) {
      return Error{Errc::AlreadyUsed,
                   "this admission has no receipt: it charged nothing, was spent or moved"};
    }
    if (late) {
      return Error{Errc::TooLate,
                   "somebody charged after it in one of the limits; what could not be given back "
                   "there stays spent"};
    }
    return tokens;
  });
}
Result<std::uint64_t> Client::refund(Admission&& admission) noexcept { return refund(admission); }

}  // namespace cutwater
