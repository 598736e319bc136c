// SPDX-License-Identifier: Apache-2.0
// Waiting for tokens (L4, L5, C092). A place in line is an ordinary charge that may lie ahead of
// the burst: shm::charge() refuses at once what would begin too late, so nobody sleeps for nothing.
// The sleeper sleeps to an absolute moment of the segment's clock; nothing needs to wake it, and
// its death leaves nothing behind but tokens that refill.
#include <cutwater/limit.hpp>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>

#include "src/calendar_renewal.hpp"
#include "src/decide.hpp"
#include "src/waiting.hpp"

namespace cutwater {
namespace detail {
namespace {
constexpr std::uint64_t kWaiterMask = 0xffff'ffff;
}

/// The count carries the life of the process: a forked child has none of its parent's sleepers.
bool begin_waiting(LimitState& state) noexcept {
  const std::uint64_t life = process_life() << 32;
  // relaxed, all: a bound on a number, nothing is read because of it.
  const std::uint64_t most = state.max_waiting.load(std::memory_order_relaxed);
  std::uint64_t seen = state.waiting.load(std::memory_order_relaxed);
  for (;;) {
    const std::uint64_t asleep = (seen & ~kWaiterMask) == life ? seen & kWaiterMask : 0;
    if (asleep >= most) return false;
    if (state.waiting.compare_exchange_weak(seen, life | (asleep + 1), std::memory_order_relaxed)) {
      return true;
    }
  }
}

void end_waiting(LimitState& state) noexcept {
  state.waiting.fetch_sub(1, std::memory_order_relaxed);
}

void answer_line_full(const Decision& refused, DecisionData& out) noexcept {
  const std::uint64_t remaining = refused.remaining();
  const std::int64_t retry_after = refused.retry_after().count();
  const std::int64_t reset_after = refused.reset_after().count();
  out.reason = Reason::Full;
  out.flags |= Decision::kHint;
  out.computed = true;
  out.mult = remaining;
  out.base_t = retry_after;
  out.base_n = reset_after;
  out.burst = 0;
}

}  // namespace detail

namespace {

using detail::LimitState;
using detail::begin_waiting;
using detail::end_waiting;
using detail::answer_line_full;

/// Longest real time a sleeper on a stepped clock goes without looking at it.
constexpr long kStepLookNs = 50'000'000;

/// Sleeps until segment time `start`.
void sleep_until(const shm::View& view, std::int64_t start) noexcept {
  while (view.clock.now() < start) {
    if (view.clock.is_stepped()) {
      const std::uint32_t* word = &view.state_control->stepped_futex;
      // acquire: pairs with the release of the step. A step after this load changes the word, so
      // the kernel does not let us sleep on the old one.
      const std::uint32_t seen = __atomic_load_n(word, __ATOMIC_ACQUIRE);
      if (view.clock.now() >= start) return;
      const timespec cap{0, kStepLookNs};
      syscall(SYS_futex, word, FUTEX_WAIT, seen, &cap, nullptr, 0);
    } else {
      const std::int64_t at = view.clock.to_boottime(start);
      const timespec until{at / 1'000'000'000, at % 1'000'000'000};
      clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &until, nullptr);   // EINTR: the loop
    }
  }
}

/// Where the slice of this charge begins after its stamp; 0 when it was there at once.
bool has_to_wait(const DecisionData& data) noexcept {
  return data.computed ? data.burst > 0 : data.level - data.n > data.burst;
}

/// One charge that may be answered by a place in line. False: gone, `out` is the answer.
bool charge_in_line(LimitState& state, shm::BucketAsk& ask, std::string_view text,
                    DecisionData& out) noexcept {
  std::uint64_t hint = shm::kNoSlot;
  shm::Outcome outcome;
  ask.text = text;
  if (detail::is_special(state)) {
    if (state.renewal != nullptr) state.renewal->renew_if_due();
    const shm::AdmitAsk wanted{ask.limit, {ask.key, text}, ask.cost, ask.max_wait_ns};
    outcome = shm::admit(*state.view, wanted, out);
  } else {
    outcome = shm::charge(*state.view, ask, hint, out);
  }
  bool answered = outcome == shm::Outcome::Answered;
  if (!answered) answered = detail::decide_again(state, ask, text, hint, out);
  out.owner = &state;
  out.decided_by = state.decided_by;
  return answered;
}

void count_waiting(LimitState& state, const shm::BucketAsk& ask, std::string_view text,
                   const DecisionData& out) noexcept {
  const shm::AskedKey key{ask.key, text};
  if (state.special.load(std::memory_order_relaxed)) {
    detail::count_admitted(state, {ask.limit, key, ask.cost, 0}, out);
  } else if (detail::count(detail::counter_for(state), ask.limit.index, ask.cost, out)) {
    detail::note_answer(state, ask.limit.index, key, out);
  }
  if (out.reason == Reason::Allowed && has_to_wait(out)) {
    detail::counter_for(state).stripe.add(ask.limit.index, shm::LimitCounter::Waited, 1);
  }
}

}  // namespace

Decision Limit::acquire(std::string_view key, Ask ask) noexcept {
  if (ask.max_wait <= Nanos{0} || ask.cost == 0) return try_acquire(key, ask.cost);
  Decision answer;
  if (key.size() > kMaxKeyBytes || ask.cost > kMaxCost) {
    detail::answer_argument(*state_, key.size() > kMaxKeyBytes, answer.data());
    return answer;
  }
  if (detail::is_away(*state_)) {
    detail::ask_elsewhere(*state_, key, ask, detail::AskKind::Wait, answer);
    return answer;
  }
  detail::notice_reload(*state_);
  shm::BucketAsk wanted{.limit = detail::unpack_ref(state_->ref.load(std::memory_order_relaxed)),
                        .key = shm::hash_key(state_->secret, key),
                        .cost = ask.cost,
                        .max_wait_ns = 0};
  // At once, if it can be: nobody stands in line then, and no place for a sleeper is needed.
  if (!charge_in_line(*state_, wanted, key, answer.data())) return answer;
  if (answer.reason() != Reason::Limit) {
    count_waiting(*state_, wanted, key, answer.data());
    return answer;
  }
  if (!begin_waiting(*state_)) {
    answer_line_full(answer, answer.data());
    count_waiting(*state_, wanted, key, answer.data());
    return answer;
  }
  wanted.max_wait_ns = ask.max_wait.count();
  if (charge_in_line(*state_, wanted, key, answer.data())) {
    count_waiting(*state_, wanted, key, answer.data());
    if (answer.allowed() && has_to_wait(answer.data())) {
      sleep_until(*state_->view, (answer.stamp() + answer.starts_in()).count());
    }
  }
  end_waiting(*state_);
  return answer;
}

Decision Limit::reserve(std::string_view key, Ask ask) noexcept {
  if (ask.cost == 0) return try_acquire(key, 0);
  Decision answer;
  if (key.size() > kMaxKeyBytes || ask.cost > kMaxCost) {
    detail::answer_argument(*state_, key.size() > kMaxKeyBytes, answer.data());
    return answer;
  }
  if (detail::is_away(*state_)) {
    detail::ask_elsewhere(*state_, key, ask, detail::AskKind::Reserve, answer);
    return answer;
  }
  shm::BucketAsk wanted{.limit = detail::unpack_ref(state_->ref.load(std::memory_order_relaxed)),
                        .key = shm::hash_key(state_->secret, key),
                        .cost = ask.cost,
                        .max_wait_ns = std::max<std::int64_t>(ask.max_wait.count(), 0)};
  if (charge_in_line(*state_, wanted, key, answer.data())) {
    count_waiting(*state_, wanted, key, answer.data());
  }
  return answer;
}

}  // namespace cutwater
