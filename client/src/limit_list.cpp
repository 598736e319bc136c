// SPDX-License-Identifier: Apache-2.0
#include "src/limit_list.hpp"

#include "shm/limit/key_hash.hpp"
#include "src/ask/elsewhere.hpp"
#include "src/calendar_renewal.hpp"
#include "src/limit_of.hpp"

namespace cutwater::detail {

Reason prepare_limits(std::span<const LimitAsk> asks, PreparedLimits& out, const LimitState** of,
                      std::size_t& at) noexcept {
  at = 0;
  *of = nullptr;
  if (asks.empty() || asks.size() > kMaxLimitsAtOnce) return Reason::InvalidArgument;
  for (; at < asks.size(); ++at) {
    LimitState& named = LimitOf::state(asks[at].limit);
    *of = &named;
    if (asks[at].key.size() > kMaxKeyBytes) return Reason::KeyTooLong;
    if (asks[at].cost > kMaxCost) return Reason::InvalidArgument;
    LimitState* const state = record_now(named);
    if (state == nullptr) return Reason::Degraded;
    // Limits of another memory cannot be charged together with these.
    if (at != 0 && state->view != out.state[0]->view) return Reason::InvalidArgument;
    if (state->renewal != nullptr) state->renewal->renew_if_due();
    out.state[at] = state;
    out.ask[at] = {unpack_ref(state->ref.load(std::memory_order_relaxed)),
                   {shm::hash_key(state->secret, asks[at].key), asks[at].key},
                   asks[at].cost,
                   0};
  }
  out.count = asks.size();
  at = 0;
  return Reason::Allowed;
}

bool prepare_again(PreparedLimits& list, std::size_t item) noexcept {
  if (item >= list.count || !resolve_again(*list.state[item])) return false;
  list.ask[item].limit = unpack_ref(list.state[item]->ref.load(std::memory_order_relaxed));
  return true;
}

}  // namespace cutwater::detail
