// SPDX-License-Identifier: Apache-2.0
// How the numbers of a RuleRecord come about: a fresh rule, and the four meanings of `on-change`.
// Pure: wishes and the old record in, new records out; no shared memory, no clock.
//
//   word          same id                                    new id
//   keep-used     base_n = N_old(base_t): debts stay         factor 1
//   as-is         base_n = N_old(base_t) - (B_new - B_old);  factor 1, then + (B_new - B_old)
//                 a burst that grew: F = N_old(base_t)
//   proportional  -                                          factor B_new / B_old
//   reset         -                                          factor 0
//
// A new id is also what another kind, another calendar and a rate that does not fit the scale get;
// the change of scale is part of the factor. F never falls, and D is the larger of old and new:
// else a change would forgive debts. A change that leaves rate, burst and calendar as they are
// (another max-wait) is keep-used whatever the word.
// Clocks of kind Calendar go in steps the caller has read: `n` below is N_old(base_t).
#pragma once
#include <optional>

#include "rule/limit_settings.hpp"
#include "rule/token_clock.hpp"
#include "shm/layout.hpp"

namespace cutwater::shm {

/// What one window of a limit, or of an override, is to decide by.
struct RuleWish {
  rule::WindowSettings window;
  std::uint64_t reserve = 0;     ///< tokens that max-wait may put ahead of the burst
  std::uint64_t debt = 0;        ///< tokens of max-debt
  std::uint64_t owed = 0;        ///< tokens: the largest debt an entry of another rule may bring
  std::uint32_t calendar = 0;    ///< index of its CalendarRecord
};
/// The wish of a window of this limit, with the max-wait and max-debt of the limit.
RuleWish wish_of(const rule::LimitSettings& settings, const rule::WindowSettings& window);

/// Tokens a key may owe under the record, rounded up.
std::uint64_t reach_tokens(const RuleRecord& record) noexcept;
/// ... and under a rule of this wish.
std::uint64_t reach_tokens(const RuleWish& wish) noexcept;

/// Same rate, burst and kind. `same_calendar`: its record is of the wish's unit and zone.
bool same_window(const RuleRecord& record, const RuleWish& wish, bool same_calendar) noexcept;
/// Decides exactly as wished already.
bool same_numbers(const RuleRecord& record, const RuleWish& wish, bool same_calendar) noexcept;

/// Where a rule record lies.
struct RulePlace {
  std::uint32_t limit = 0;
  std::uint8_t window = 0;
  std::uint8_t flags = 0;        ///< kRule...
};

/// What a key without an entry lacks of its burst: `units` of 2^-f token.
struct Filling {
  rule::Units units = 0;
  unsigned f = 0;
};

/// A rule nobody has used: its clock starts at `base_t`, and keys without an entry are filling
/// (L11). Calendar: `k` periods have begun by then. Nothing when no scale holds what may be owed.
std::optional<RuleRecord> fresh_rule(const RuleWish& wish, RulePlace place, std::int64_t base_t,
                                     std::uint64_t k, Filling filling);
/// A rule of a limit without a bucket.
RuleRecord bucketless_rule(RulePlace place, std::int64_t base_t) noexcept;

/// True when the wish can go on under the old id: same kind and calendar, a word that needs no
/// factor, and a scale that holds it and is at most 16 times coarser than a fresh one.
bool keeps_id(const RuleRecord& old, const RuleWish& wish, rule::OnChange word,
              bool same_calendar) noexcept;

/// keep-used and as-is under the same id, from base_t on.
RuleRecord changed_rule(const RuleRecord& old, const RuleWish& wish, rule::OnChange word,
                        rule::Units n, std::int64_t base_t);
/// The same rule with room for debts of `tokens`; nothing when its scale has none.
std::optional<RuleRecord> with_reach(const RuleRecord& old, std::uint64_t tokens) noexcept;

/// Under a new id: the successor of `old_id`, ...
std::optional<RuleRecord> successor(const RuleRecord& old, std::uint16_t old_id,
                                    const RuleWish& wish, rule::OnChange word, rule::Units n,
                                    std::int64_t base_t, std::uint64_t k);
/// ... and what the predecessor becomes: its clock stands still from base_t, so debts not yet
/// converted stay whole.
RuleRecord predecessor(const RuleRecord& old, std::uint16_t successor_id, rule::Units n,
                       std::int64_t base_t);

}  // namespace cutwater::shm
