// SPDX-License-Identifier: Apache-2.0
// HOT. The decision path of the library: nothing here allocates, locks or calls the kernel.
#include <cutwater/limit.hpp>

#include <algorithm>
#include <array>

#include "src/decide.hpp"

namespace cutwater {

using detail::LimitState;

Decision Limit::try_acquire(std::string_view key, std::uint64_t cost) noexcept {
  Decision answer;
  if (key.size() > kMaxKeyBytes || cost > kMaxCost) [[unlikely]] {
    detail::answer_argument(*state_, key.size() > kMaxKeyBytes, answer.data());
    return answer;
  }
  std::uint64_t hint = shm::kNoSlot;
  detail::decide(*state_, shm::hash_key(state_->secret, key), cost, hint, answer.data());
  return answer;
}

Decision Key::try_acquire(std::uint64_t cost) noexcept {
  Decision answer;
  if (!valid_ || cost > kMaxCost) [[unlikely]] {
    detail::answer_argument(*state_, !valid_, answer.data());
    return answer;
  }
  // relaxed, both: a hint is proved by the swap; a stale one only costs a scan.
  const std::uint64_t before = hint_.load(std::memory_order_relaxed);
  std::uint64_t hint = before;
  detail::decide(*state_, {lo_, hi_}, cost, hint, answer.data());
  if (hint != before) [[unlikely]] hint_.store(hint, std::memory_order_relaxed);
  return answer;
}

namespace {

/// What a look answers; writes nothing, counts nothing.
void look(LimitState& state, shm::KeyHash key, std::uint64_t cost, std::uint64_t& hint,
          DecisionData& out) noexcept {
  shm::BucketAsk ask{.limit = detail::unpack_ref(state.ref.load(std::memory_order_relaxed)),
                     .key = key,
                     .cost = cost,
                     .max_wait_ns = 0};
  shm::Outcome outcome = shm::look(*state.view, ask, hint, out);
  if (outcome == shm::Outcome::LimitGone && detail::resolve_again(state)) {
    ask.limit = detail::unpack_ref(state.ref.load(std::memory_order_relaxed));
    outcome = shm::look(*state.view, ask, hint, out);
  }
  if (outcome != shm::Outcome::Answered) detail::answer_degraded(state, out);
  out.owner = &state;
  out.decided_by = state.decided_by;
}

}  // namespace

Decision Limit::peek(std::string_view key, std::uint64_t cost) const noexcept {
  Decision answer;
  if (key.size() > kMaxKeyBytes || cost > kMaxCost) [[unlikely]] {
    detail::answer_argument(*state_, key.size() > kMaxKeyBytes, answer.data());
    return answer;
  }
  std::uint64_t hint = shm::kNoSlot;
  look(*state_, shm::hash_key(state_->secret, key), cost, hint, answer.data());
  return answer;
}

Decision Key::peek(std::uint64_t cost) const noexcept {
  Decision answer;
  if (!valid_ || cost > kMaxCost) [[unlikely]] {
    detail::answer_argument(*state_, !valid_, answer.data());
    return answer;
  }
  std::uint64_t hint = hint_.load(std::memory_order_relaxed);
  look(*state_, {lo_, hi_}, cost, hint, answer.data());
  hint_.store(hint, std::memory_order_relaxed);
  return answer;
}

Key Limit::key(std::string_view key) const noexcept {
  if (key.size() > kMaxKeyBytes) return {state_, 0, 0, false};
  const shm::KeyHash hash = shm::hash_key(state_->secret, key);
  return {state_, hash.lo, hash.hi, true};
}

Key::Key(const Key& other) noexcept
    : state_(other.state_), lo_(other.lo_), hi_(other.hi_), valid_(other.valid_),
      hint_(other.hint_.load(std::memory_order_relaxed)) {}

Key& Key::operator=(const Key& other) noexcept {
  state_ = other.state_;
  lo_ = other.lo_;
  hi_ = other.hi_;
  valid_ = other.valid_;
  hint_.store(other.hint_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  return *this;
}

std::string_view Limit::name() const noexcept { return state_->owner.name; }

// ---- batches ------------------------------------------------------------------------------------

namespace {

/// Keys whose lines are on their way at once: a core keeps 10 to 16 misses in flight, and what is
/// fetched too early is pushed out of the first cache again.
constexpr std::size_t kChunk = 32;

struct Sums {
  std::uint64_t allowed = 0;
  std::uint64_t refused = 0;
};

/// One item of a batch, with the chunk's reading of the clock.
[[gnu::always_inline]] inline void decide_item(LimitState& state, shm::BucketAsk& ask,
                                               std::int64_t t, DecisionData& out,
                                               Sums& sums) noexcept {
  std::uint64_t hint = shm::kNoSlot;
  bool answered = shm::charge_at(*state.view, ask, t, hint, out) == shm::Outcome::Answered;
  if (!answered) [[unlikely]] {
    answered = detail::decide_again(state, ask, hint, out);
    // Counted here and not with the chunk: the index may be another now.
    if (answered) detail::count(state, ask.limit.index, ask.cost, out);
  } else {
    const bool allowed = out.reason == Reason::Allowed;
    sums.allowed += allowed ? 1 : 0;
    sums.refused += allowed ? 0 : 1;
    if (out.flags != 0) [[unlikely]] {
      detail::count_flags(detail::counter_for(state), ask.limit.index, out);
    }
  }
  out.owner = &state;
  out.decided_by = state.decided_by;
}

void decide_chunk(LimitState& state, std::span<const std::string_view> keys,
                  std::span<Decision> out, std::uint64_t cost) noexcept {
  std::array<shm::KeyHash, kChunk> hash;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (keys[i].size() > kMaxKeyBytes) [[unlikely]] continue;
    hash[i] = shm::hash_key(state.secret, keys[i]);
    shm::prefetch(*state.view, hash[i]);
  }
  shm::BucketAsk ask{.limit = detail::unpack_ref(state.ref.load(std::memory_order_relaxed)),
                     .key = {},
                     .cost = cost,
                     .max_wait_ns = 0};
  Sums sums;
  const std::int64_t t = state.view->clock.now();
  for (std::size_t i = 0; i < keys.size(); ++i) {
    out[i] = Decision{};
    if (keys[i].size() > kMaxKeyBytes) [[unlikely]] {
      detail::answer_argument(state, true, out[i].data());
      continue;
    }
    ask.key = hash[i];
    decide_item(state, ask, t, out[i].data(), sums);
  }
  if (cost == 0) return;
  const detail::ThreadCounter& counter = detail::counter_for(state);
  const std::uint32_t index = ask.limit.index;     // where the name is now
  if (sums.allowed != 0) {
    counter.stripe.add(index, shm::LimitCounter::Allowed, sums.allowed);
    counter.stripe.add(index, shm::LimitCounter::Tokens, sums.allowed * cost);
  }
  if (sums.refused != 0) counter.stripe.add(index, shm::LimitCounter::Refused, sums.refused);
}

}  // namespace

void Limit::acquire_batch(std::span<const std::string_view> keys, std::span<Decision> out,
                          std::uint64_t cost) noexcept {
  const std::size_t items = std::min(keys.size(), out.size());
  for (std::size_t begin = 0; begin < items; begin += kChunk) {
    const std::size_t length = std::min(kChunk, items - begin);
    if (cost > kMaxCost) [[unlikely]] {
      for (std::size_t i = begin; i < begin + length; ++i) {
        out[i] = Decision{};
        detail::answer_argument(*state_, keys[i].size() > kMaxKeyBytes, out[i].data());
      }
      continue;
    }
    decide_chunk(*state_, keys.subspan(begin, length), out.subspan(begin, length), cost);
  }
}

}  // namespace cutwater
