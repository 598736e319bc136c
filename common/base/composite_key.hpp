// SPDX-License-Identifier: Apache-2.0
// One key made of several parts: (tenant, user), (method, path). Each part is written as its length
// in two bytes, high byte first, and its bytes, one behind the other. So different lists of parts
// never give the same key, whatever bytes the parts hold: ("a", "bc") is not ("ab", "c"), and ("a")
// is not the plain key "a".
//   composite_key({"acme", "alice"})   ->   00 04 a c m e 00 05 a l i c e
// This is what key_of() of the library makes and what `[acme, alice]` means in the configuration;
// the order and this form are part of the interface (keys live in journals and configurations).
// Bounds: 1..kMaxKeyParts parts, kMaxKeyBytes in all. Thread safety: pure functions; they allocate.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <cutwater/units.hpp>

namespace cutwater {

inline constexpr std::size_t kMaxKeyParts = 16;
/// Bytes in front of each part.
inline constexpr std::size_t kPartHeadBytes = 2;

/// The key of these parts, or nothing when there are none or too many, or it would be longer than
/// kMaxKeyBytes.
std::optional<std::string> composite_key(std::span<const std::string_view> parts);

/// The parts of a key that composite_key() made (views into `key`), or empty for any other key.
std::vector<std::string_view> parts_of(std::string_view key);

}  // namespace cutwater
