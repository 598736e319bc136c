// SPDX-License-Identifier: Apache-2.0
// Flapping: a breaker that opens again and again. Four or more openings out of CLOSED within ten
// minutes are told once, until it was calm for that long. For people; it decides nothing.
//
// One word holds the last three openings: 3 * 21 bits in half seconds since the segment's start,
// newest lowest, 0 = none, and in its top bit whether the event was written. A stamp wraps after 12
// days: an opening exactly that much later may be told as flapping.
// Thread safety: values and pure functions.
#pragma once
#include <cstdint>

namespace cutwater::rule {

inline constexpr std::int64_t kFlappingNs = 600LL * 1'000'000'000;
inline constexpr std::uint64_t kFlappingTold = std::uint64_t{1} << 63;

/// What an opening makes of the word.
struct Openings {
  std::uint64_t word = 0;
  bool tell = false;                 ///< the event is due
};

namespace detail {
inline constexpr std::uint64_t kStampMask = (std::uint64_t{1} << 21) - 1;
constexpr std::uint64_t opening_stamp(std::int64_t now) noexcept {
  const std::uint64_t stamp = static_cast<std::uint64_t>(now / 500'000'000) & kStampMask;
  return stamp == 0 ? 1 : stamp;
}
constexpr bool recent(std::uint64_t stamp, std::int64_t now) noexcept {
  constexpr auto kMost = static_cast<std::uint64_t>(kFlappingNs / 500'000'000);
  return stamp != 0 && ((opening_stamp(now) - stamp) & kStampMask) <= kMost;
}
}  // namespace detail

/// True while the last opening is recent and was one of four so close together.
constexpr bool is_flapping(std::uint64_t word, std::int64_t now) noexcept {
  return (word & kFlappingTold) != 0 && detail::recent(word & detail::kStampMask, now);
}

constexpr Openings after_opening(std::uint64_t before, std::int64_t now) noexcept {
  const bool flaps = detail::recent(before >> 42 & detail::kStampMask, now);
  const bool told = is_flapping(before, now);
  const std::uint64_t older =
      (before << 21) & (detail::kStampMask << 42 | detail::kStampMask << 21);
  // Told stays while one opening follows the other, also where they are a little further apart.
  return {older | detail::opening_stamp(now) | (flaps || told ? kFlappingTold : 0),
          flaps && !told};
}

}  // namespace cutwater::rule
