// SPDX-License-Identifier: Apache-2.0
// Bucket operations: look, charge, undo, reset of one key in
// one window of one limit in the shared table. The heart. What a limit is besides (several windows,
// overrides, bans, shadow) is admit.hpp's, which asks these.
//
// A bucket is one Word16 {tag, tat}; every change is one cas16 that proves tag and state together
// (I5), so insert, charge, conversion and replacement are safe with no lock, no sweeper and no
// epoch scheme, whoever is killed or stopped between any two instructions. Order of every decision:
// clock, generation, compute, generation again, swap. A refusal and a look write nothing (P3); the
// one exception is the repair of an entry damaged beyond its reach.
//
//   bucket_fast.hpp found, plain and unchanged: the few dozen instructions that most decisions are
//   bucket.cpp            found: look, charge, conversion, undo, reset
//   bucket_insert.cpp     first sight of a key: claim, rescan, second clock, promotion (I8)
//   bucket_overflow.cpp   no place: on-full share, deny, allow (I9)
//
// Bounds: kMaxAttempts tries, then answered as "no place" with `contention` counted; a failed try
// means that another one made progress. Nothing here allocates, sleeps, locks or calls the kernel
// (the clock is the vdso). Thread and process safety: everything, from anybody who maps the segment
// read-write.
#pragma once
#include <atomic>
#include <cstdint>

#include <cutwater/decision.hpp>

#include "shm/limit/key_hash.hpp"
#include "shm/view.hpp"

namespace cutwater::shm {

inline constexpr int kMaxAttempts = 4096;
inline constexpr std::uint64_t kNoSlot = ~std::uint64_t{0};

/// Which limit of which life: a reload may give the index to another name, then `incarnation`
/// differs.
struct LimitRef {
  std::uint32_t index = 0;
  std::uint32_t incarnation = 0;
};

/// How much an ask takes.
enum class Take : std::uint8_t {
  Cost,   ///< its cost, or nothing
  Most,   ///< its cost, into debt down to the rule's max-debt; what goes beyond is not charged
  Rest,   ///< what is there now, fractions too; cost is not looked at
};

struct BucketAsk {
  LimitRef limit;
  KeyHash key;
  std::uint64_t cost = 1;              ///< tokens, 0..kMaxCost
  std::int64_t max_wait_ns = 0;  ///< > 0: may take a place in line, bounded by the limit's max-wait
  std::uint8_t window = 0;             ///< of the limit, below kMaxWindows
  Take take = Take::Cost;
  std::uint16_t rule = 0;              ///< rule id of that window; 0 = the limit's own
  std::uint64_t expect = 0;            ///< `current` that `rule` was found under; 0 = any
  std::string_view text{};             ///< the key's bytes, for key_name.hpp; none: not kept
};

/// What became of an ask besides the Decision's numbers.
enum class Outcome : std::uint8_t {
  Answered,        ///< `out` is the answer
  LimitGone,       ///< index free or given to another name: resolve the name again
  Superseded,      ///< this memory was replaced: attach again
  Changed,         ///< `current` is not BucketAsk::expect any more: find the rule again
};

/// Charges, or refuses without a write. `hint`: slot where the key was last seen, kNoSlot for none;
/// updated. Fills everything of `out` but `owner` and `decided_by`. cost 0 is a look.
Outcome charge(const View& view, const BucketAsk& ask, std::uint64_t& hint,
               DecisionData& out) noexcept;

/// As charge, with a reading of the clock taken just before (batches: one reading for all).
Outcome charge_at(const View& view, const BucketAsk& ask, std::int64_t t, std::uint64_t& hint,
                  DecisionData& out) noexcept;

/// charge_at without the fast path of shm/limit/bucket_fast.hpp; what that one falls back to.
Outcome charge_slow(const View& view, const BucketAsk& ask, std::int64_t t, std::uint64_t& hint,
                    DecisionData& out) noexcept;

/// What charge would answer at the reading `t`; writes nothing at all.
Outcome look_at(const View& view, const BucketAsk& ask, std::int64_t t, std::uint64_t& hint,
                DecisionData& out) noexcept;
/// What charge would answer; writes nothing at all.
Outcome look(const View& view, const BucketAsk& ask, std::uint64_t& hint,
             DecisionData& out) noexcept;

/// The one undo: {tag, y} -> {tag, y - c}. False when somebody charged after it. The receipt is
/// spent by the caller.
bool undo(const View& view, const DecisionData& receipt) noexcept;

/// Operator's act: the key's bucket in the limit's own first window is full again (down to the
/// floor of `initial: empty`). True when there was a debt.
bool reset(const View& view, LimitRef limit, KeyHash key) noexcept;
/// Operator's act, outside P1: tat := max(N, tat - tokens) in one window (guard
/// CreditNotBelowFull). A key without an entry is full: nothing is written. `had_debt`: it was not
/// full before.
Outcome credit_window(const View& view, const BucketAsk& ask, std::uint64_t tokens,
                      bool& had_debt) noexcept;

/// Starts loading the first line where the key lies.
void prefetch(const View& view, KeyHash key) noexcept;

/// Finds a limit by name in the current image; index kNoLimit when it is not there.
inline constexpr std::uint32_t kNoLimit = ~std::uint32_t{0};
LimitRef find_limit(const View& view, std::string_view name) noexcept;

}  // namespace cutwater::shm
