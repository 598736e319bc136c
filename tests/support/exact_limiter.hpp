// SPDX-License-Identifier: Apache-2.0
// An exact token bucket in rational arithmetic: the oracle the product's limiter is compared with.
//
// It is written from the rules alone and shares no code with the product. A bucket is one number,
// the moment at which it is full again (`full_at`). Time and tokens are both measured in
// 1/rate_count of a nanosecond, in which one token is exactly period_ns units, so nothing is ever
// rounded inside:
//
//   start = max(full_at, now)     receipt = start + cost     admitted iff receipt - now <= burst
//
// Only answers are rounded, and always against the caller: durations up to whole nanoseconds,
// remaining tokens down.
//
// Ranges: rate_count 1..2^32, period_ns 1..2^60, burst 1..2^32, time 0..2^62 ns. Inside them no
// intermediate value passes 2^95. Costs up to 2^32. Outside them the result is meaningless; a test
// is expected to stay inside. Not thread-safe: one bucket belongs to one thread. No call allocates
// or throws.
#pragma once

#include <cstdint>
#include <optional>

namespace cutwater::test {

// 1/rate_count of a nanosecond, of one bucket. Wide enough for every product of the ranges above.
using ExactTime = __int128;

// `rate_count` tokens per `period_ns` nanoseconds, at most `burst` at once.
struct ExactPolicy {
  std::uint64_t rate_count = 1;
  std::uint64_t period_ns = 1;
  std::uint64_t burst = 1;
  // Tokens that are there at `created_ns`; nothing means a full bucket. At most `burst`.
  std::optional<std::uint64_t> initial = std::nullopt;
  std::uint64_t created_ns = 0;
};

// What a charge hands out: the end of its slice of the token axis. See ExactBucket::undo().
struct ExactReceipt {
  ExactTime end = 0;
  std::uint64_t cost = 0;
};

// One decision. All fields speak of the moment the question was asked.
struct ExactAnswer {
  bool allowed = false;
  std::uint64_t remaining = 0;  // whole tokens left after this decision
  // 0 when allowed; nothing means never (the cost is above the burst); else the smallest number of
  // nanoseconds after which a lone caller is admitted.
  std::optional<std::uint64_t> retry_after_ns = 0;
  // The smallest number of nanoseconds after which the bucket is full.
  std::uint64_t reset_after_ns = 0;
  ExactReceipt receipt;  // meaningful only when something was taken
};

class ExactBucket {
 public:
  explicit ExactBucket(const ExactPolicy& policy) noexcept;
  // The same with a full bucket or `initial` tokens at time 0, for tests that have no use for
  // names.
  ExactBucket(std::uint64_t rate_count, std::uint64_t period_ns, std::uint64_t burst,
              std::optional<std::uint64_t> initial = std::nullopt) noexcept;

  // Takes `cost` tokens when they are there. A refusal changes nothing. Cost 0 is a look.
  ExactAnswer take(std::uint64_t now_ns, std::uint64_t cost) noexcept;
  // What take() would answer, without taking: `remaining` and `reset_after_ns` are those of now.
  ExactAnswer peek(std::uint64_t now_ns, std::uint64_t cost) const noexcept;

  // Gives back a charge, exactly, unless somebody has charged after it: then nothing changes and
  // the answer is false. The caller spends a receipt once; a copy used later may undo another
  // charge.
  bool undo(const ExactReceipt& receipt) noexcept;

  // Whole tokens there now; 0 in debt.
  std::uint64_t remaining(std::uint64_t now_ns) const noexcept;
  // Nanoseconds until `cost` would be admitted: 0 now, nothing for never. Exact: a nanosecond
  // earlier is too early.
  std::optional<std::uint64_t> retry_after_ns(std::uint64_t now_ns,
                                              std::uint64_t cost) const noexcept;
  // Nanoseconds until the bucket is full.
  std::uint64_t reset_after_ns(std::uint64_t now_ns) const noexcept;

 private:
  ExactTime at(std::uint64_t time_ns) const noexcept;          // a moment in units
  ExactTime tokens(std::uint64_t count) const noexcept;        // the length of so many tokens
  ExactTime receipt_end(std::uint64_t now_ns, std::uint64_t cost) const noexcept;
  std::uint64_t ns_until(std::uint64_t now_ns, ExactTime moment) const noexcept;  // rounded up

  ExactTime rate_count_;
  ExactTime period_ns_;
  std::uint64_t burst_;
  ExactTime full_at_ = 0;
};

}  // namespace cutwater::test
