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

/// Everything at or below this carries no information at `t` by this rule (L12, I7).
inline rule::Units full_level(const RuleRecord& r, std::int64_t t) noexcept {
  const rule::Piece piece = read_piece_at(r, t);
  return rule::full_at(piece, rule::units_at(piece, t));
}

}  // namespace cutwater::shm
