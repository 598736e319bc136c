// SPDX-License-Identifier: Apache-2.0
// Geometry of the bucket table: where a key may lie, and how a
// line is looked through. Pure address arithmetic and loads.
//
// Places are aligned groups of 16 slots (4 lines). A key has two: group q1, and q2 elsewhere; the
// tag's `alt` bit says in which an entry lies. The table has G = k * G0 groups, G0 fixed at first
// creation:
//   q0 = mulhi(h.lo, G0) q1 = q0*k + mulhi(mix(fp), k) q2 = (q1 + 1 + mulhi(mix2(fp), G-1)) mod G
// Place and tag together give back (q0, fp), so entries can move to a table with another k although
// no key is stored. Keys without a place at load 0.5 and 0.6: 0 ppm; 0.8: 376 ppm (spec memory 1,
// 6.2). Scan starts at line fp & 3 of the group and wraps inside it. Two hot keys may share a line:
// independence is not promised.
#pragma once
#include <cstdint>

#include "shm/limit/key_hash.hpp"
#include "shm/view.hpp"

namespace cutwater::shm {

[[gnu::always_inline]] inline std::uint64_t mulhi(std::uint64_t a, std::uint64_t b) noexcept {
  return static_cast<std::uint64_t>((static_cast<unsigned __int128>(a) * b) >> 64);
}

inline constexpr std::uint64_t kFingerprintMask = (std::uint64_t{1} << kFingerprintBits) - 1;

/// Spread of a fingerprint over 64 bits; two independent ones (odd multipliers of splitmix and
/// murmur).
constexpr std::uint64_t mix(std::uint64_t fp) noexcept {
  std::uint64_t x = fp * 0x9E3779B97F4A7C15ULL;
  x ^= x >> 29;
  return x * 0xBF58476D1CE4E5B9ULL;
}
constexpr std::uint64_t mix2(std::uint64_t fp) noexcept {
  std::uint64_t x = (fp ^ 0x5851F42D4C957F2DULL) * 0xFF51AFD7ED558CCDULL;
  x ^= x >> 31;
  return x * 0xC4CEB9FE1A85EC53ULL;
}

/// Fingerprint of a key in one window: one hash serves all windows of a limit. Bans use window 255.
constexpr std::uint64_t fingerprint(KeyHash key, std::uint8_t window) noexcept {
  return ((key.hi >> kFingerprintShift) ^ (window * 0x2545F4914F6CDD1DULL)) & kFingerprintMask;
}

/// The two groups of a key, as first slots, and the tag without alt, tentative and rule id.
struct Place {
  Word16* first = nullptr;
  Word16* other = nullptr;
  std::uint64_t fp_bits = 0;       ///< fingerprint << kFingerprintShift
  std::uint32_t line = 0;          ///< first line of a scan, 0..3
};

inline std::uint64_t first_group(const View& view, std::uint64_t q0, std::uint64_t fp) noexcept {
  return view.k == 1 ? q0 : q0 * view.k + mulhi(mix(fp), view.k);
}
inline std::uint64_t other_group(const View& view, std::uint64_t q1, std::uint64_t fp) noexcept {
  const std::uint64_t q2 = q1 + 1 + mulhi(mix2(fp), view.groups - 1);
  return q2 >= view.groups ? q2 - view.groups : q2;
}

[[gnu::always_inline]] inline Place place_of(const View& view, KeyHash key,
                                             std::uint8_t window) noexcept {
  const std::uint64_t fp = fingerprint(key, window);
  const std::uint64_t q1 = first_group(view, mulhi(key.lo, view.g0), fp);
  return {view.slots + q1 * kGroupSlots, view.slots + other_group(view, q1, fp) * kGroupSlots,
          fp << kFingerprintShift, static_cast<std::uint32_t>(fp & 3)};
}

/// The home of an entry, from the group it lies in and its tag: q0 and fp. For moving entries and
/// for verify.
struct Home {
  std::uint64_t q0 = 0;
  std::uint64_t fp = 0;
};
inline Home home_of(const View& view, std::uint64_t group, std::uint64_t tag) noexcept {
  const std::uint64_t fp = tag >> kFingerprintShift;
  std::uint64_t q1 = group;
  if ((tag & kTagAlt) != 0) {
    const std::uint64_t step = 1 + mulhi(mix2(fp), view.groups - 1);
    q1 = group >= step ? group - step : group + view.groups - step;
  }
  return {q1 / view.k, fp};
}

/// The tag's fields.
constexpr std::uint16_t rule_of(std::uint64_t tag) noexcept {
  return static_cast<std::uint16_t>(tag & kTagRuleMask);
}
constexpr bool is_claim(std::uint64_t tag) noexcept { return (tag & kTagTentative) != 0; }

/// First slot of `group` whose tag equals `want` under `mask`, from line `line` on; nullptr when
/// there is none. Four compares per line without a branch between them.
[[gnu::always_inline]] inline Word16* scan_group(Word16* group, std::uint32_t line,
                                                 std::uint64_t want, std::uint64_t mask) noexcept {
  for (std::uint32_t i = 0; i < kGroupSlots / kLineSlots; ++i) {
    Word16* at = group + ((line + i) & 3) * kLineSlots;
    // relaxed: a match is only a hint; whoever acts on it proves tag and state together by cas16 or
    // load16.
    const unsigned hit =
        unsigned((__atomic_load_n(&at[0].lo, __ATOMIC_RELAXED) & mask) == want) |
        unsigned((__atomic_load_n(&at[1].lo, __ATOMIC_RELAXED) & mask) == want) << 1 |
        unsigned((__atomic_load_n(&at[2].lo, __ATOMIC_RELAXED) & mask) == want) << 2 |
        unsigned((__atomic_load_n(&at[3].lo, __ATOMIC_RELAXED) & mask) == want) << 3;
    if (hit != 0) return at + __builtin_ctz(hit);
  }
  return nullptr;
}

}  // namespace cutwater::shm
