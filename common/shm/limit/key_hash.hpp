// SPDX-License-Identifier: Apache-2.0
// KeyHash: XXH3-128 of a key under a secret of the limit. The
// secret is made from the segment's random master secret and the limit's *name*, so every rule id,
// override and successor of a limit finds a key in one place, and nobody outside can aim at a
// bucket. Any two of 50M live keys share a bucket with probability ~3e-6 (spec memory 6.2). XXH3
// `withSecret`, not `withSecretandSeed`: the latter ignores the secret for inputs up to 240 bytes.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace cutwater::shm {

struct KeyHash {
  std::uint64_t lo = 0;
  std::uint64_t hi = 0;
};

inline constexpr std::size_t kSecretBytes = 192;
using LimitSecret = std::array<std::uint8_t, kSecretBytes>;

/// Block i of the secret = XXH3-128 under the master secret of (name, 0, i); 12 blocks.
LimitSecret make_limit_secret(const std::uint8_t* master, std::string_view limit_name) noexcept;

KeyHash hash_key(const LimitSecret& secret, std::string_view key) noexcept;

/// What OverrideRecord::key_hash holds of a key; never 0.
constexpr std::uint64_t override_hash(KeyHash key) noexcept {
  return key.hi != 0 ? key.hi : 1;
}

/// Fills with bytes of the kernel's random source; false when it gave none.
bool random_bytes(void* place, std::size_t length) noexcept;

}  // namespace cutwater::shm
