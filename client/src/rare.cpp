// SPDX-License-Identifier: Apache-2.0
// The rare branches of a decision: arguments no limit takes, rules that changed, a limit that went.
#include "src/decide.hpp"
#include "src/daemon_link.hpp"
#include "src/known_key.hpp"

#include <string_view>

namespace cutwater::detail {
namespace {

constexpr std::int64_t kRetryHintNs = 100'000'000;
constexpr std::int64_t kNeverNs = kNever.count();

/// An answer that was not computed by a rule: nothing left, and this long until it may be.
void answer_fixed(const LimitState& state, Reason reason, std::uint8_t flags,
                  std::int64_t retry_after_ns, DecisionData& out) noexcept {
  out = DecisionData{};
  out.reason = reason;
  out.flags = flags;
  out.decided_by = state.decided_by;
  out.computed = true;
  out.base_t = retry_after_ns;
  // One that has no memory knows the segment's time through its link.
  out.t = state.link != nullptr && is_away(state) ? state.link->now_ns() : state.view->clock.now();
  out.owner = &state;
}

}  // namespace

void answer_argument(const LimitState& state, bool key_too_long, DecisionData& out) noexcept {
  const Reason reason = key_too_long ? Reason::KeyTooLong : Reason::InvalidArgument;
  answer_fixed(state, reason, 0, kNeverNs, out);
}

void answer_degraded(const LimitState& state, DecisionData& out) noexcept {
  answer_fixed(state, Reason::Degraded, Decision::kDegraded | Decision::kHint, kRetryHintNs, out);
}

void note_answer(const LimitState& state, std::uint32_t limit, const shm::AskedKey& key,
                 const DecisionData& out) noexcept {
  note_sample(state, {.limit = limit,
                      .key = key.hash,
                      .text = key.text,
                      .t = out.t,
                      .refused = out.reason != Reason::Allowed});
}

void count_admitted(const LimitState& state, const shm::AdmitAsk& ask,
                    const DecisionData& out) noexcept {
  const ThreadCounter& counter = counter_for(state);
  shm::count_answer(counter.stripe, ask.limit.index, ask.cost, out);
  const shm::LimitCounter which = out.reason == Reason::Allowed ? shm::LimitCounter::Allowed
                                                                : shm::LimitCounter::Refused;
  if (is_sampled(counter.stripe.add(ask.limit.index, which, 0), counter.sample_below)) {
    note_answer(state, ask.limit.index, ask.key, out);
  }
}

bool decide_plainly(LimitState& state, const shm::AskedKey& key, std::uint64_t cost,
                    std::uint64_t& hint, DecisionData& out) noexcept {
  shm::BucketAsk ask{.limit = unpack_ref(state.ref.load(std::memory_order_relaxed)),
                     .key = key.hash,
                     .cost = cost,
                     .max_wait_ns = 0};
  ask.text = key.text;
  bool answered = shm::charge(*state.view, ask, hint, out) == shm::Outcome::Answered;
  if (!answered && resolve_again(state)) {
    if (is_special(state)) return false;
    ask.limit = unpack_ref(state.ref.load(std::memory_order_relaxed));
    hint = shm::kNoSlot;
    answered = shm::charge(*state.view, ask, hint, out) == shm::Outcome::Answered;
  }
  if (!answered) answer_degraded(state, out);
  out.owner = &state;
  out.decided_by = state.decided_by;
  if (answered && count(counter_for(state), ask.limit.index, cost, out)) {
    note_answer(state, ask.limit.index, key, out);
  }
  return true;
}

bool decide_again(LimitState& state, shm::BucketAsk& ask, std::string_view text,
                  std::uint64_t& hint, DecisionData& out) noexcept {
  ask.text = text;
  if (resolve_again(state)) {
    ask.limit = unpack_ref(state.ref.load(std::memory_order_relaxed));
    hint = shm::kNoSlot;
    if (is_special(state)) {
      const shm::AdmitAsk wanted{ask.limit, {ask.key, text}, ask.cost, ask.max_wait_ns};
      if (shm::admit(*state.view, wanted, out) == shm::Outcome::Answered) return true;
      answer_degraded(state, out);
      return false;
    }
    if (shm::charge(*state.view, ask, hint, out) == shm::Outcome::Answered) return true;
  }
  answer_degraded(state, out);
  return false;
}

Decided decide_slowly(LimitState& state, const SlowAsk& asked, std::uint64_t& hint,
                      DecisionData& out) noexcept {
  shm::BucketAsk ask{.limit = asked.limit, .key = asked.key, .cost = asked.cost};
  ask.text = asked.text;
  bool answered =
      shm::charge_slow(*state.view, ask, asked.t, hint, out) == shm::Outcome::Answered;
  if (!answered) answered = decide_again(state, ask, asked.text, hint, out);
  return {answered, ask.limit.index};
}

void look(LimitState& state, shm::AskedKey asked, std::uint64_t cost, std::uint64_t& hint,
          DecisionData& out) noexcept {
  if (is_special(state)) {
    return ask_specially(state, {{}, asked, cost, 0}, SpecialAsk::Look, out);
  }
  const shm::KeyHash key = asked.hash;
  shm::BucketAsk ask{.limit = unpack_ref(state.ref.load(std::memory_order_relaxed)),
                     .key = key,
                     .cost = cost,
                     .max_wait_ns = 0};
  shm::Outcome outcome = shm::look(*state.view, ask, hint, out);
  if (outcome == shm::Outcome::LimitGone && resolve_again(state)) {
    ask.limit = unpack_ref(state.ref.load(std::memory_order_relaxed));
    if (is_special(state)) {
      return ask_specially(state, {{}, asked, cost, 0}, SpecialAsk::Look, out);
    }
    outcome = shm::look(*state.view, ask, hint, out);
  }
  if (outcome != shm::Outcome::Answered) answer_degraded(state, out);
  out.owner = &state;
  out.decided_by = state.decided_by;
}

bool resolve_again(LimitState& state) noexcept {
  const std::uint64_t current = state.view->current();
  if ((current & shm::kCurrentSupersededBit) != 0) return false;
  // relaxed, all: each word carries its whole meaning. Looking once per change of the rules keeps a
  // program that goes on asking for a removed limit from searching at every call.
  if (state.gone_current.load(std::memory_order_relaxed) == current) return false;
  const shm::LimitRef found = shm::find_limit(*state.view, state.owner.name);
  if (found.index == shm::kNoLimit) {
    state.gone_current.store(current, std::memory_order_relaxed);
    return false;
  }
  state.ref.store(pack_ref(found), std::memory_order_relaxed);
  state.seen_current.store(kNoCurrent, std::memory_order_relaxed);
  state.plain_current.store(kNoCurrent, std::memory_order_relaxed);
  return true;
}

void refresh(LimitState& state, std::uint64_t current) noexcept {
  const shm::View& view = *state.view;
  const shm::LimitRef ref = unpack_ref(state.ref.load(std::memory_order_relaxed));
  std::uint32_t lease = 0;
  std::uint32_t most_waiting = 0;
  bool special = false;
  if (ref.index < view.limit_count) {
    const shm::LimitConfig& config = view.limit_config(current, ref.index);
    const bool ours = __atomic_load_n(&config.windows, __ATOMIC_ACQUIRE) != 0 &&
                      __atomic_load_n(&config.incarnation, __ATOMIC_ACQUIRE) == ref.incarnation;
    // Bans lie beside the rules: their first and their end come with a new `current`.
    const std::uint64_t banned =
        __atomic_load_n(&view.limits[ref.index].bans_until, __ATOMIC_ACQUIRE);
    special = ours && (banned != 0 || __atomic_load_n(&config.flags, __ATOMIC_ACQUIRE) != 0);
    lease = ours && !special ? __atomic_load_n(&config.thread_lease, __ATOMIC_ACQUIRE) : 0;
    most_waiting = ours ? __atomic_load_n(&config.max_waiting, __ATOMIC_ACQUIRE) : 0;
  }
  // The image was whole only if `current` still names it (I1); else the next decision reads again.
  if (view.current() != current) return;
  // A memory that was superseded is left: nothing in it is decided plainly again.
  if ((current & shm::kCurrentSupersededBit) != 0) return;
  // relaxed: two settings of one limit, read one by one; a decision that mixes old and new is one
  // that came a moment earlier or later.
  const bool plain = lease == 0 && !special;
  state.lease_tokens.store(lease, std::memory_order_relaxed);
  state.special.store(special, std::memory_order_relaxed);
  state.max_waiting.store(most_waiting, std::memory_order_relaxed);
  state.seen_current.store(current, std::memory_order_relaxed);
  state.plain_current.store(plain ? current : kNoCurrent, std::memory_order_relaxed);
  if (plain) keep_plain_rule(state, current);
  if (state.link != nullptr) state.link->rules_changed(view);
}

bool count_shared(const ThreadCounter& counter, std::uint32_t limit, std::uint64_t cost,
                  const DecisionData& out) noexcept {
  std::uint64_t number;
  if (out.reason == Reason::Allowed) {
    number = counter.stripe.add(limit, shm::LimitCounter::Allowed, 1);
    counter.stripe.add(limit, shm::LimitCounter::Tokens, cost);
  } else {
    number = counter.stripe.add(limit, shm::LimitCounter::Refused, 1);
  }
  if (out.flags != 0) count_flags(counter, limit, out);
  return is_sampled(number, counter.sample_below);
}

void count_flags(const ThreadCounter& counter, std::uint32_t limit,
                 const DecisionData& out) noexcept {
  if ((out.flags & Decision::kOverflow) != 0) {
    counter.stripe.add(limit, shm::LimitCounter::NoPlace, 1);
  }
  if ((out.flags & Decision::kDegraded) != 0) {
    counter.stripe.add(limit, shm::LimitCounter::Degraded, 1);
  }
}

}  // namespace cutwater::detail
