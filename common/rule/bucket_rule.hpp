// SPDX-License-Identifier: Apache-2.0
// The bucket rule: what a charge does to the one number of a
// bucket, and what an answer reports. Pure: state and time in, state and answer out. The same
// functions decide for the mapped path, the daemon, replay and every test.
//
//   eff = min(max(tat, F, N), N + D) a charge of c owns the slice (eff, eff + c] of the token axis
//   y = eff + c granted iff y - N <= B (+ reserve when the caller may wait)
//
// All slices of a key are disjoint, start at or above N and end at or below N + B: that alone is
// promise P1 (I3). A refusal changes nothing (L2). cost > burst is never granted (L6). cost 0 is a
// look.
#pragma once
#include <algorithm>
#include <cstdint>

#include "base/guard.hpp"
#include "rule/token_clock.hpp"

namespace cutwater::rule {

/// Result of one step on a piece: pure numbers, in units.
struct Step {
  Units n = 0;          ///< N(t)
  Units eff = 0;        ///< the bucket as it stands: x, start of the slice
  Units y = 0;          ///< end of the slice; the next tat when granted
  bool granted = false;
};

/// The bucket as it stands at N = n: absent keys have tat = 0... or anything at or below max(F, N).
[[gnu::always_inline]] inline Units effective(const Piece& piece, Units n, Units tat) noexcept {
  const Units low = guarded(Guard::FloorCounts) ? std::max(piece.floor, n) : n;
  return std::min(std::max(tat, low), n + piece.reach);
}

/// One charge of `cost` units; `reserve` units more than the burst may be owed when the caller may
/// wait.
[[gnu::always_inline]] inline Step charge(const Piece& piece, Units n, Units tat, Units cost,
                                          Units reserve) noexcept {
  const Units eff = effective(piece, n, tat);
  const Units y = eff + cost;
  return {n, eff, y, y - n <= piece.burst + reserve};
}

/// A debt of one rule in the units of another: debt * num / den, rounded up, against the caller. At
/// most 2^62; num and den below 2^63.
inline Units convert_debt(Units debt, std::uint64_t num, std::uint64_t den) noexcept {
  using Wide = unsigned __int128;
  constexpr Wide kMost = Wide{1} << 62;
  if (debt <= 0) return 0;
  if (den == 0) den = 1;
  const Wide up = guarded(Guard::ConversionFactorRoundedUp) ? den - 1 : 0;
  const Wide scaled = (static_cast<Wide>(debt) * num + up) / den;
  return static_cast<Units>(scaled < kMost ? scaled : kMost);
}

/// An entry whose tat is at or below this carries no information (L12): missing and present give
/// the same answer.
[[gnu::always_inline]] inline Units full_at(const Piece& piece, Units n) noexcept {
  return guarded(Guard::FloorCounts) ? std::max(piece.floor, n) : n;
}

/// What an answer reports (spec limiter 4), computed from the numbers of one reading, whenever
/// asked.
struct Report {
  std::uint64_t remaining = 0;       ///< whole tokens left; 0 in debt
  std::int64_t retry_after_ns = 0;   ///< 0 when granted; kNeverNs for cost > burst
  std::int64_t reset_after_ns = 0;   ///< until full
  std::int64_t starts_in_ns = 0;     ///< granted by waiting: until the slice begins
};

/// `level` = y when granted, eff when refused. `cost` in units, `t` the decision's stamp.
Report report(const TokenRule& rule, std::int64_t t, Units n, Units level, Units cost,
              bool granted) noexcept;

}  // namespace cutwater::rule
