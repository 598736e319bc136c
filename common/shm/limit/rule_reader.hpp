// SPDX-License-Identifier: Apache-2.0
// Reading a rule from the image in shared memory into private
// pieces. An image is whole while `current` reads the same before and after (I1), so every reader
// checks `current` again before it acts; until then the numbers may be anything and are only
// computed with. Fields are loaded with acquire (plain moves on x86), each once.
#pragma once
#include "rule/bucket_rule.hpp"
#include "shm/view.hpp"

namespace cutwater::shm {

/// One field of shared memory, read once.
template <class T>
[[gnu::always_inline]] inline T read_once(const T& field) noexcept {
  return __atomic_load_n(&field, __ATOMIC_ACQUIRE);
}

/// Line 0: holds for t >= base_t.
[[gnu::always_inline]] inline rule::Piece read_after(const RuleRecord& r) noexcept {
  return {read_once(r.mult),  read_once(r.base_t), read_once(r.base_n), read_once(r.burst),
          read_once(r.floor), read_once(r.reach),  read_once(r.shift)};
}

/// Line 1: holds for valid_from <= t < base_t.
inline rule::Piece read_before(const RuleRecord& r) noexcept {
  return {read_once(r.mult0),  read_once(r.valid_from), read_once(r.base_n0), read_once(r.burst0),
          read_once(r.floor0), read_once(r.reach0),     read_once(r.shift0)};
}

/// The line that holds at `t`.
inline rule::Piece read_piece_at(const RuleRecord& r, std::int64_t t) noexcept {
  if (guarded(Guard::OldPieceBeforeBase) && t < read_once(r.base_t)) return read_before(r);
  return read_after(r);
}

inline bool is_kind(const RuleRecord& r, RuleKind kind) noexcept {
  return read_once(r.kind) == static_cast<std::uint8_t>(kind);
}

/// True when entries of this kind are buckets of a key in one window.
inline bool is_bucket_kind(const RuleRecord& r) noexcept {
  return is_kind(r, RuleKind::Token) || is_kind(r, RuleKind::Calendar);
}

// ---- calendars: a clock that goes in steps -----------------------------------------------------

/// k(t): the number of the period that holds t. Beyond the last edge the last period repeats.
std::uint64_t period_at(const CalendarRecord& calendar, std::int64_t t) noexcept;
/// When period `k` begins; the record's valid_from for one that had begun by then; kNeverNs beyond
/// the horizon.
std::int64_t period_start(const CalendarRecord& calendar, std::uint64_t k) noexcept;
/// True when t lies beyond the last known edge.
bool is_extrapolated(const CalendarRecord& calendar, std::int64_t t) noexcept;

/// N(t) of a RuleKind::Calendar on `piece` of it: base_n + k(t) * mult.
rule::Units steps_at(const CalendarRecord& calendar, const rule::Piece& piece,
                     std::int64_t t) noexcept;
/// Smallest t with N(t) >= units on `piece`; kNeverNs when its clock stands still or beyond the
/// horizon.
std::int64_t step_when(const CalendarRecord& calendar, const rule::Piece& piece,
                       rule::Units units) noexcept;

/// The calendar of a rule; nullptr when the index is none of this segment's.
inline const CalendarRecord* calendar_of(const View& view, std::uint64_t c,
                                         const RuleRecord& r) noexcept {
  const std::uint32_t index = read_once(r.calendar);
  return index < view.calendar_count ? &view.calendar(c, index) : nullptr;
}

/// N(t) of a rule of any kind on `piece` of it.
inline rule::Units clock_at(const View& view, std::uint64_t c, const RuleRecord& r,
                            const rule::Piece& piece, std::int64_t t) noexcept {
  if (is_kind(r, RuleKind::Calendar)) [[unlikely]] {
    const CalendarRecord* calendar = calendar_of(view, c, r);
    return calendar == nullptr ? piece.base_n : steps_at(*calendar, piece, t);
  }
  if (is_kind(r, RuleKind::Time)) [[unlikely]] return t;
  return rule::units_at(piece, t);
}

/// Everything at or below this carries no information at `t` by this rule of image `c` (L12, I7).
inline rule::Units full_level(const View& view, std::uint64_t c, const RuleRecord& r,
                              std::int64_t t) noexcept {
  if (is_kind(r, RuleKind::Time)) [[unlikely]] return t;
  const rule::Piece piece = read_piece_at(r, t);
  return rule::full_at(piece, clock_at(view, c, r, piece, t));
}

}  // namespace cutwater::shm
