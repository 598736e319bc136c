// SPDX-License-Identifier: Apache-2.0
// Limits that are not one plain window: overrides, bans, several windows, calendars, shadow. Asked
// through shm/limit/admit.hpp, as the daemon asks; and charges after the fact of any limit.
#include <cutwater/limit.hpp>

#include "src/calendar_renewal.hpp"
#include "src/decide.hpp"

namespace cutwater::detail {
namespace {

bool wants_bytes(const LimitState& state, shm::LimitRef limit) noexcept {
  const shm::View& view = *state.view;
  if (limit.index >= view.limit_count) return false;
  const shm::LimitConfig& config = view.limit_config(view.current(), limit.index);
  return (__atomic_load_n(&config.flags, __ATOMIC_ACQUIRE) & shm::kLimitHasPatterns) != 0;
}

shm::Outcome ask_once(const shm::View& view, const shm::AdmitAsk& ask, SpecialAsk how,
                      std::uint64_t& charged, DecisionData& out) noexcept {
  switch (how) {
    case SpecialAsk::Look: return shm::look(view, ask, out);
    case SpecialAsk::After: return shm::charge_after(view, ask, charged, out);
    case SpecialAsk::Charge: break;
  }
  return shm::admit(view, ask, out);
}

void count_special(LimitState& state, const shm::AdmitAsk& ask, SpecialAsk how,
                   std::uint64_t charged, const DecisionData& out) noexcept {
  if (how == SpecialAsk::Look || ask.cost == 0) return;
  if (how == SpecialAsk::Charge) return count_admitted(state, ask, out);
  shm::count_after(counter_for(state).stripe, ask.limit.index, ask.cost, charged);
}

}  // namespace

void ask_specially(LimitState& state, shm::AdmitAsk ask, SpecialAsk how,
                   DecisionData& out) noexcept {
  if (state.renewal != nullptr) state.renewal->renew_if_due();
  std::uint64_t charged = 0;
  bool answered = false;
  for (int attempt = 0; attempt < 2 && !answered; ++attempt) {
    ask.limit = unpack_ref(state.ref.load(std::memory_order_relaxed));
    // A handle made when memory was short has no bytes of its key.
    if (ask.key.text.data() == nullptr && wants_bytes(state, ask.limit)) break;
    answered = ask_once(*state.view, ask, how, charged, out) == shm::Outcome::Answered;
    if (!answered && !resolve_again(state)) break;
  }
  if (!answered) answer_degraded(state, out);
  out.owner = &state;
  out.decided_by = state.decided_by;
  if (answered) count_special(state, ask, how, charged, out);
}

void decide_specially(LimitState& state, shm::AskedKey key, std::uint64_t cost,
                      DecisionData& out) noexcept {
  ask_specially(state, {{}, key, cost, 0}, SpecialAsk::Charge, out);
}

}  // namespace cutwater::detail

namespace cutwater {

Decision Limit::charge(std::string_view key, std::uint64_t cost) noexcept {
  Decision answer;
  if (key.size() > kMaxKeyBytes || cost > kMaxCost) {
    detail::answer_argument(*state_, key.size() > kMaxKeyBytes, answer.data());
  } else if (detail::is_away(*state_)) {
    detail::ask_elsewhere(*state_, key, {.cost = cost}, detail::AskKind::After, answer);
  } else {
    const shm::AskedKey asked{shm::hash_key(state_->secret, key), detail::given(key)};
    detail::ask_specially(*state_, {{}, asked, cost, 0}, detail::SpecialAsk::After, answer.data());
  }
  return answer;
}

}  // namespace cutwater
