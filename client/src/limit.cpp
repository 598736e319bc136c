// SPDX-License-Identifier: Apache-2.0
// HOT. The decision path of the library: nothing here allocates, locks or calls the kernel.
#include <cutwater/limit.hpp>

#include <algorithm>
#include <array>
#include <type_traits>

#include "src/decide.hpp"
#include "src/known_key.hpp"

namespace cutwater {

using detail::LimitState;

namespace {

/// A cost of 0, which is a look, or one that no limit takes, is handled apart from the hot path.
[[gnu::always_inline]] inline bool ordinary(std::uint64_t cost) noexcept {
  return cost - 1 < kMaxCost;
}

/// The answers that are no charge: bad arguments and looks.
[[gnu::cold, gnu::noinline]] void answer_aside(LimitState& state, const shm::AskedKey* key,
                                               std::uint64_t cost, std::uint64_t& hint,
                                               DecisionData& out) noexcept {
  if (key == nullptr || cost > kMaxCost) return detail::answer_argument(state, key == nullptr, out);
  detail::look(state, *key, cost, hint, out);
}

[[gnu::cold, gnu::noinline]] Decision ask_aside(LimitState& state, std::string_view key,
                                                std::uint64_t cost) noexcept {
  Decision answer;
  std::uint64_t hint = shm::kNoSlot;
  if (key.size() <= kMaxKeyBytes && cost <= kMaxCost && detail::is_away(state)) {
    detail::ask_elsewhere(state, key, {.cost = cost}, detail::AskKind::Look, answer);
  } else if (key.size() > kMaxKeyBytes) {
    answer_aside(state, nullptr, cost, hint, answer.data());
  } else {
    const shm::AskedKey asked{shm::hash_key(state.secret, key), detail::given(key)};
    answer_aside(state, &asked, cost, hint, answer.data());
  }
  return answer;
}

}  // namespace

namespace {

/// A key as it was given, for decide_hashing().
struct NamedKey {
  LimitState& state;
  std::string_view text;
  shm::KeyHash operator()() const noexcept { return shm::hash_key(state.secret, text); }
  std::string_view bytes() const noexcept { return detail::given(text); }
  void elsewhere(std::uint64_t cost, Decision& answer) const noexcept {
    detail::ask_elsewhere(state, text, {.cost = cost}, detail::AskKind::Now, answer);
  }
};

/// A key whose hash is there.
struct HashedKey {
  LimitState& state;
  shm::KeyHash hash;
  const detail::KeyText* text;
  shm::KeyHash operator()() const noexcept { return hash; }
  std::string_view bytes() const noexcept { return detail::bytes_of(text); }
  void elsewhere(std::uint64_t cost, Decision& answer) const noexcept {
    detail::key_elsewhere(state, hash, text, cost, detail::AskKind::Now, answer);
  }
};

// One named answer and one return each: so it is built where the caller wants it, and never copied.
[[gnu::always_inline]] inline Decision ask_by_name(LimitState& state, std::string_view key,
                                                   std::uint64_t cost) noexcept {
  Decision answer{Unfilled{}};
  std::uint64_t hint = shm::kNoSlot;
  detail::decide_hashing(state, NamedKey{state, key}, cost, hint, answer);
  return answer;
}

}  // namespace

Decision Limit::try_acquire(std::string_view key, std::uint64_t cost) noexcept {
  if (key.size() > kMaxKeyBytes || !ordinary(cost)) [[unlikely]] {
    return ask_aside(*state_, key, cost);
  }
  return ask_by_name(*state_, key, cost);
}

Decision Key::try_acquire(std::uint64_t cost) noexcept {
  Decision answer{Unfilled{}};
  // relaxed: a serial is proved by the lease that has it.
  detail::Lease& lease = *detail::last_lease;
  if (hint_.load(std::memory_order_relaxed) != lease.serial ||
      !detail::spend_cheaply(lease, cost, answer.data())) {
    ask_memory(cost, answer);
  }
  return answer;
}

/// Without a lease. A function by itself: what is done in the clock's shadow may as well be called,
/// and the way of the lease, a third as long, saves fewer registers.
[[gnu::noinline]] void Key::ask_memory(std::uint64_t cost, Decision& answer) noexcept {
  // relaxed: a hint is proved by the swap. Only a key that was good before has one.
  const std::uint64_t hint = hint_.load(std::memory_order_relaxed);
  std::uint64_t number;
  if (!detail::decide_known(*state_, hi_, hint, cost, answer.data(), number)) [[unlikely]] {
    return ask_anew(cost, answer);
  }
  if (detail::is_sampled(number, detail::thread_counter.sample_below)) [[unlikely]] {
    const auto ref = detail::unpack_ref(state_->ref.load(std::memory_order_relaxed));
    const shm::AskedKey asked{{lo_, hi_}, detail::bytes_of(text_)};
    detail::note_answer(*state_, ref.index, asked, answer.data());
  }
}

[[gnu::noinline]] void Key::ask_anew(std::uint64_t cost, Decision& answer) noexcept {
  // relaxed, both: as above; a stale one only costs a scan.
  const std::uint64_t before = hint_.load(std::memory_order_relaxed);
  std::uint64_t hint = before;
  const shm::KeyHash key{lo_, hi_};
  if (!valid_ || !ordinary(cost)) [[unlikely]] {
    if (valid_ && cost == 0 && detail::is_away(*state_)) {
      return detail::key_elsewhere(*state_, key, text_, 0, detail::AskKind::Look, answer);
    }
    const shm::AskedKey asked{key, detail::bytes_of(text_)};
    return answer_aside(*state_, valid_ ? &asked : nullptr, cost, hint, answer.data());
  }
  detail::decide_hashing(*state_, HashedKey{*state_, key, text_}, cost, hint, answer);
  if (hint != before) [[unlikely]] hint_.store(hint, std::memory_order_relaxed);
}

Decision Limit::peek(std::string_view key, std::uint64_t cost) const noexcept {
  return ask_aside(*state_, key, cost);
}

Decision Key::peek(std::uint64_t cost) const noexcept {
  Decision answer;
  if (valid_ && cost <= kMaxCost && detail::is_away(*state_)) [[unlikely]] {
    detail::key_elsewhere(*state_, {lo_, hi_}, text_, cost, detail::AskKind::Look, answer);
    return answer;
  }
  // relaxed, both: as in try_acquire().
  std::uint64_t hint = hint_.load(std::memory_order_relaxed);
  const shm::AskedKey asked{{lo_, hi_}, detail::bytes_of(text_)};
  answer_aside(*state_, valid_ ? &asked : nullptr, cost, hint, answer.data());
  hint_.store(hint, std::memory_order_relaxed);
  return answer;
}

Key Limit::key(std::string_view key) const noexcept {
  if (key.size() > kMaxKeyBytes) return {state_, 0, 0, false};
  const shm::KeyHash hash = shm::hash_key(state_->secret, key);
  Key made{state_, hash.lo, hash.hi, true};
  made.text_ = detail::KeyText::make(key);
  return made;
}

Key::Key(const Key& other) noexcept
    : state_(other.state_), lo_(other.lo_), hi_(other.hi_), text_(detail::share(other.text_)),
      valid_(other.valid_), hint_(other.hint_.load(std::memory_order_relaxed)) {}

Key& Key::operator=(const Key& other) noexcept {
  detail::KeyText* const mine = text_;
  text_ = detail::share(other.text_);
  detail::drop(mine);
  state_ = other.state_;
  lo_ = other.lo_;
  hi_ = other.hi_;
  valid_ = other.valid_;
  hint_.store(other.hint_.load(std::memory_order_relaxed), std::memory_order_relaxed);
  return *this;
}

void Key::drop_text() noexcept { detail::drop(text_); }

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
                                               std::string_view text, std::int64_t t,
                                               DecisionData& out, Sums& sums) noexcept {
  std::uint64_t hint = shm::kNoSlot;
  bool answered = shm::charge_at(*state.view, ask, t, hint, out) == shm::Outcome::Answered;
  if (!answered) [[unlikely]] {
    answered = detail::decide_again(state, ask, text, hint, out);
    // Counted here and not with the chunk: the index may be another now.
    if (answered &&
        detail::count(detail::counter_for(state), ask.limit.index, ask.cost, out)) {
      detail::note_answer(state, ask.limit.index, {ask.key, text}, out);
    }
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

/// One chunk is sampled as one decision is, and one of its items then stands for all.
[[gnu::cold, gnu::noinline]] void note_chunk(const LimitState& state, std::uint32_t index,
                                             std::span<const std::string_view> keys,
                                             std::span<const shm::KeyHash> hash,
                                             std::span<const Decision> out,
                                             std::uint64_t number) noexcept {
  const std::size_t i = number * 0x9E37'79B9'7F4A'7C15 % keys.size();
  if (keys[i].size() > kMaxKeyBytes) return;
  const DecisionData& one = out[i].data();
  detail::note_sample(state, {.limit = index,
                              .key = hash[i],
                              .text = keys[i],
                              .t = one.t,
                              .asks = keys.size(),
                              .refused = one.reason != Reason::Allowed});
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
  const auto decide = [&](auto named) {
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (keys[i].size() > kMaxKeyBytes) [[unlikely]] {
        detail::answer_argument(state, true, out[i].data());
        continue;
      }
      ask.key = hash[i];
      if constexpr (named.value) ask.text = detail::given(keys[i]);
      decide_item(state, ask, keys[i], t, out[i].data(), sums);
    }
  };
  // The text is wanted only where names of keys are kept; elsewhere no item pays for it.
  if (state.view->key_names == nullptr) decide(std::false_type{});
  else decide(std::true_type{});
  const detail::ThreadCounter& counter = detail::counter_for(state);
  const std::uint32_t index = ask.limit.index;     // where the name is now
  std::uint64_t number = 0;
  if (sums.allowed != 0) {
    number = counter.stripe.add(index, shm::LimitCounter::Allowed, sums.allowed);
    counter.stripe.add(index, shm::LimitCounter::Tokens, sums.allowed * cost);
  }
  if (sums.refused != 0) {
    number += counter.stripe.add(index, shm::LimitCounter::Refused, sums.refused);
  }
  if (detail::is_sampled(number, counter.sample_below)) [[unlikely]] {
    note_chunk(state, index, keys, {hash.data(), keys.size()}, out, number);
  }
}

}  // namespace

void Limit::acquire_batch(std::span<const std::string_view> keys, std::span<Decision> out,
                          std::uint64_t cost) noexcept {
  const std::size_t items = std::min(keys.size(), out.size());
  if (!ordinary(cost)) [[unlikely]] {
    for (std::size_t i = 0; i < items; ++i) out[i] = ask_aside(*state_, keys[i], cost);
    return;
  }
  if (detail::is_away(*state_)) [[unlikely]] {
    return detail::batch_elsewhere(*state_, keys.first(items), out.first(items), cost);
  }
  if (!detail::is_plain(*state_) && detail::is_special(*state_)) [[unlikely]] {
    for (std::size_t i = 0; i < items; ++i) out[i] = try_acquire(keys[i], cost);
    return;
  }
  for (std::size_t begin = 0; begin < items; begin += kChunk) {
    const std::size_t length = std::min(kChunk, items - begin);
    decide_chunk(*state_, keys.subspan(begin, length), out.subspan(begin, length), cost);
  }
}

}  // namespace cutwater
