// SPDX-License-Identifier: Apache-2.0
// Bucket operations: look, charge, undo, reset of one key of
// one limit in the shared table. The heart.
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

#include "shm/key_hash.hpp"
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

struct BucketAsk {
  LimitRef limit;
  KeyHash key;
  std::uint64_t cost = 1;              ///< tokens, 0..kMaxCost
  std::int64_t max_wait_ns = 0;  ///< > 0: may take a place in line, bounded by the limit's max-wait
};

/// What became of an ask besides the Decision's numbers.
enum class Outcome : std::uint8_t {
  Answered,        ///< `out` is the answer
  LimitGone,       ///< index free or given to another name: resolve the name again
  Superseded,      ///< this memory was replaced: attach again
};

/// Charges, or refuses without a write. `hint`: slot where the key was last seen, kNoSlot for none;
/// updated. Fills everything of `out` but `owner` and `decided_by`. cost 0 is a look.
Outcome charge(const View& view, const BucketAsk& ask, std::uint64_t& hint,
               DecisionData& out) noexcept;

/// As charge, with a reading of the clock taken just before (batches: one reading for all).
Outcome charge_at(const View& view, const BucketAsk& ask, std::int64_t t, std::uint64_t& hint,
                  DecisionData& out) noexcept;

/// charge_at without the fast path of shm/bucket_fast.hpp; what that one falls back to.
Outcome charge_slow(const View& view, const BucketAsk& ask, std::int64_t t, std::uint64_t& hint,
                    DecisionData& out) noexcept;

/// What charge would answer; writes nothing at all.
Outcome look(const View& view, const BucketAsk& ask, std::uint64_t& hint,
             DecisionData& out) noexcept;

/// The one undo: {tag, y} -> {tag, y - c}. False when somebody charged after it. The receipt is
/// spent by the caller.
bool undo(const View& view, const DecisionData& receipt) noexcept;

/// Operator's act: the key's bucket is full again (down to the floor of `initial: empty`). True
/// when there was a debt.
bool reset(const View& view, LimitRef limit, KeyHash key) noexcept;

/// Starts loading the first line where the key lies.
void prefetch(const View& view, KeyHash key) noexcept;

/// Finds a limit by name in the current image; index kNoLimit when it is not there.
inline constexpr std::uint32_t kNoLimit = ~std::uint32_t{0};
LimitRef find_limit(const View& view, std::string_view name) noexcept;

}  // namespace cutwater::shm
