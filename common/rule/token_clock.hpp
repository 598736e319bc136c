// SPDX-License-Identifier: Apache-2.0
// The token clock: how many tokens a rule has emitted since its
// base, counted in binary fractions of a token.
//
//   N(t) = base_n + floor((t - base_t) * mult / 2^shift)      in units of 2^-f token
//
// A bucket is one number `tat` on this axis, so rounding happens in N alone, a pure non-decreasing
// function of time, and never accumulates: 0 ppm over 4M events, from 1 per 10 years to 10M per
// second and bursts to 1e9 (spec memory 1, 6.1; C001, C002, C005, C021). mult is normalised to
// [2^63, 2^64) and rounded UP: the error stays under half a unit over the horizon, while rounded
// down every exact due time comes out 1 ns late.
//
// A rule is two straight pieces, before and after the moment base_t of its last change, so that
// deciders with older and newer rule images agree for every stamp in use (I2). Pure functions: no
// clock, no memory, no allocation. Units: t, base_t in ns of segment time, below 2^59; all token
// quantities i64 in units of 2^-f token.
#pragma once
#include <cstdint>
#include <limits>

namespace cutwater::rule {

using Units = std::int64_t;

/// A due time beyond the horizon: never within the life of a segment.
inline constexpr std::int64_t kNeverNs = std::numeric_limits<std::int64_t>::max();
inline constexpr std::int64_t kClockHorizonNs = std::int64_t{1} << 59;
inline constexpr unsigned kMaxFractionBits = 40;

/// One straight line of the token clock with the numbers that hold while it does.
struct Piece {
  std::uint64_t mult = 0;        ///< 0 = this clock stands still
  std::int64_t base_t = 0;       ///< ns
  Units base_n = 0;              ///< N(base_t)
  Units burst = 0;               ///< B
  Units floor = 0;               ///< F: absent and full keys count as filled up to here
  Units reach = 0;               ///< D: the farthest an honest tat lies ahead of N
  std::uint8_t shift = 0;        ///< 0..127
};

/// floor(elapsed * mult / 2^shift). Two plain shifts: the double-word shift instruction is slow on
/// some processors, and this stands on the way from the clock to the swap.
[[gnu::always_inline]] inline Units emitted(std::uint64_t elapsed, std::uint64_t mult,
                                            unsigned shift) noexcept {
  const unsigned __int128 product = static_cast<unsigned __int128>(elapsed) * mult;
  const auto low = static_cast<std::uint64_t>(product);
  const auto high = static_cast<std::uint64_t>(product >> 64);
  if (shift < 64) [[likely]]
    return static_cast<Units>((low >> shift) | ((high << 1) << (63 - shift)));
  return static_cast<Units>(high >> (shift & 63));
}

/// N(t) on this piece. t < base_t gives base_n: negative elapsed time is zero (C023, L10).
[[gnu::always_inline]] inline Units units_at(const Piece& piece, std::int64_t t) noexcept {
  if (t <= piece.base_t) [[unlikely]] return piece.base_n;
  const std::uint64_t elapsed =
      static_cast<std::uint64_t>(t) - static_cast<std::uint64_t>(piece.base_t);
  return piece.base_n + emitted(elapsed, piece.mult, piece.shift & 127);
}

/// Smallest t >= base_t with N(t) >= units on this piece; kNeverNs when that lies beyond 2^62 ns.
std::int64_t time_when(const Piece& piece, Units units) noexcept;

/// The whole rule: `before` holds for t < after.base_t.
struct TokenRule {
  Piece after;
  Piece before;
  std::int64_t valid_from =
      0;  ///< stamps below it were read before this rule existed: read the clock again
  std::uint8_t f = 0;

  const Piece& piece_at(std::int64_t t) const noexcept {
    return t >= after.base_t ? after : before;
  }
};

/// Smallest t with N(t) >= units, seen from `now`: over both pieces when now lies before base_t.
std::int64_t due_time(const TokenRule& rule, std::int64_t now, Units units) noexcept;

/// A rate as configured: `count` tokens per `period_ns`.
struct Rate {
  std::uint64_t count = 0;
  std::uint64_t period_ns = 0;
};

/// Fraction bits for a rule: min(40, 62 - ceil(log2(rate*horizon + 2*burst + extra + 4)));
/// negative: does not fit. `extra` = max_debt + max_reserve in tokens.
int fraction_bits(Rate rate, std::uint64_t burst, std::uint64_t extra) noexcept;

/// mult and shift of `rate` at `f` fraction bits. False when the rate cannot be written (count or
/// period 0).
bool set_slope(Piece& piece, Rate rate, unsigned f) noexcept;

/// ceil(rate * ns), saturated at 2^62: the tokens a wait of `ns` may reserve.
std::uint64_t tokens_in(Rate rate, std::uint64_t ns) noexcept;

}  // namespace cutwater::rule
