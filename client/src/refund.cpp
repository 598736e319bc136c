// SPDX-License-Identifier: Apache-2.0
// Undo of a charge by its receipt (L7): one swap of exactly what was left by the charge.
#include <cutwater/limit.hpp>

#include <string>

#include "src/decide.hpp"
#include "src/no_memory.hpp"
#include "src/thread_lease.hpp"

namespace cutwater {
namespace {

void count_undone(detail::LimitState& state, std::uint64_t tokens) noexcept {
  const shm::LimitRef ref = detail::unpack_ref(state.ref.load(std::memory_order_relaxed));
  detail::counter_for(state).stripe.add(ref.index, shm::LimitCounter::Undone, tokens);
}

/// A charge of several windows: all of them, each by its own receipt.
Result<std::uint64_t> refund_windows(detail::LimitState& state, DecisionData& data) {
  const std::uint64_t tokens = shm::give_back(*state.view, data);
  if (tokens == 0) {
    return Error{Errc::TooLate,
                 "somebody charged this key after it in one of the limit's windows; what could not "
                 "be given back there stays spent"};
  }
  count_undone(state, tokens);
  return tokens;
}

}  // namespace

Result<std::uint64_t> Limit::refund(Decision& decision) noexcept {
  return detail::or_no_memory([&]() -> Result<std::uint64_t> {
    DecisionData& data = decision.data();
    if (detail::made_elsewhere(*state_, data)) return detail::refund_elsewhere(*state_, decision);
    if (data.owner != state_) {
      const std::string limit = state_->name;
      return Error{Errc::InvalidArgument,
                   "this decision was not made by limit \"" + limit + "\"; refund it where it was"};
    }
    if (data.receipt == Receipt::Several) return refund_windows(*state_, data);
    if (data.reason != Reason::Allowed || data.cost == 0 || data.slot == nullptr) {
      return Error{Errc::InvalidArgument,
                   "this decision charged nothing: there is nothing to undo"};
    }
    if (data.receipt == Receipt::None) {
      return Error{Errc::AlreadyUsed, "this receipt was spent or moved: a charge is undone once"};
    }
    const bool undone = data.decided_by == DecidedBy::ThreadLease
                            ? detail::refund_to_lease(*state_, data)
                            : shm::undo(*state_->view, data);
    if (!undone) {
      return Error{Errc::TooLate, "somebody charged this key after it; the tokens stay spent"};
    }
    data.receipt = Receipt::None;
    const std::uint64_t tokens = static_cast<std::uint64_t>(data.cost) >> data.f;
    count_undone(*state_, tokens);
    return tokens;
  });
}

Result<std::uint64_t> Limit::refund(Decision&& decision) noexcept { return refund(decision); }

}  // namespace cutwater
