// SPDX-License-Identifier: Apache-2.0
#include "rule/token_clock.hpp"

#include <algorithm>

#include "base/guard.hpp"

namespace cutwater::rule {
namespace {

using Wide = unsigned __int128;

constexpr Wide kSaturation = Wide{1} << 62;

// ceil(log2(value)) for value >= 1.
int ceil_log2(Wide value) noexcept {
  int bits = 0;
  while ((Wide{1} << bits) < value) ++bits;
  return bits;
}

}  // namespace

std::int64_t time_when(const Piece& piece, Units units) noexcept {
  if (units <= piece.base_n) return piece.base_t;
  if (piece.mult == 0) return kNeverNs;
  // ceil((units << shift) / mult), with units << shift as high:low. high >= mult means a quotient
  // of 2^64 or more.
  const auto want = static_cast<std::uint64_t>(units) - static_cast<std::uint64_t>(piece.base_n);
  const unsigned shift = piece.shift & 127;
  std::uint64_t high = 0, low = 0;
  if (shift >= 64) {
    if (shift > 64 && (want >> (128 - shift)) != 0) return kNeverNs;
    high = want << (shift - 64);
  } else {
    high = shift == 0 ? 0 : want >> (64 - shift);
    low = want << shift;
  }
  if (high >= piece.mult) return kNeverNs;
  const Wide numerator = (Wide{high} << 64) | low;
  if (!guarded(Guard::ExactDueTime)) {
    const long double estimate = static_cast<long double>(want) *
                                 static_cast<long double>(Wide{1} << shift) /
                                 static_cast<long double>(piece.mult);
    return piece.base_t + static_cast<std::int64_t>(static_cast<double>(estimate));
  }
  const Wide elapsed = numerator / piece.mult + (numerator % piece.mult != 0 ? 1 : 0);
  if (elapsed >= kSaturation) return kNeverNs;
  const auto due = static_cast<std::int64_t>(elapsed);
  return piece.base_t > kNeverNs - due ? kNeverNs : piece.base_t + due;
}

std::int64_t due_time(const TokenRule& rule, std::int64_t now, Units units) noexcept {
  if (now >= rule.after.base_t) return time_when(rule.after, units);
  // The old piece holds until base_t; what it does not reach by then is due on the new one, not
  // before base_t.
  const std::int64_t on_old = time_when(rule.before, units);
  if (on_old < rule.after.base_t) return on_old;
  return std::max(rule.after.base_t, time_when(rule.after, units));
}

int fraction_bits(Rate rate, std::uint64_t burst, std::uint64_t extra) noexcept {
  if (rate.count == 0 || rate.period_ns == 0) return -1;
  const Wide over_horizon =
      (Wide{rate.count} * static_cast<std::uint64_t>(kClockHorizonNs) + rate.period_ns - 1) /
      rate.period_ns;
  const Wide top = over_horizon + 2 * Wide{burst} + extra + 4;
  return std::min(static_cast<int>(kMaxFractionBits), 62 - ceil_log2(top));
}

bool set_slope(Piece& piece, Rate rate, unsigned f) noexcept {
  if (rate.count == 0 || rate.period_ns == 0) return false;
  // count * 2^f / period, multiplied by 2 until the quotient fills 64 bits. count < 2^30, f <= 40:
  // no overflow, since the numerator stays below period * 2^64 < 2^123.
  Wide numerator = Wide{rate.count} << f;
  unsigned shift = 0;
  while (numerator / rate.period_ns < (Wide{1} << 63)) {
    if (shift == 127 || (numerator >> 126) != 0) return false;
    numerator <<= 1;
    ++shift;
  }
  const bool up = guarded(Guard::MultRoundedUp) && numerator % rate.period_ns != 0;
  Wide mult = numerator / rate.period_ns + (up ? 1 : 0);
  while ((mult >> 64) != 0) {  // rounded up to 2^64, or a slope of more than 2^63 per ns
    if (shift == 0) return false;
    mult = (mult + 1) >> 1;
    --shift;
  }
  piece.mult = static_cast<std::uint64_t>(mult);
  piece.shift = static_cast<std::uint8_t>(shift);
  return true;
}

std::uint64_t tokens_in(Rate rate, std::uint64_t ns) noexcept {
  if (rate.period_ns == 0) return 0;
  const Wide tokens = (Wide{rate.count} * ns + rate.period_ns - 1) / rate.period_ns;
  return static_cast<std::uint64_t>(std::min(tokens, kSaturation));
}

}  // namespace cutwater::rule
