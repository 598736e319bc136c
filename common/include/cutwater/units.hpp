// SPDX-License-Identifier: Apache-2.0
// Units of the public interface. Time is std::chrono, tokens
// are plain counts that say so in their names.
#pragma once
#include <chrono>
#include <cstdint>

namespace cutwater {

/// Durations and stamps of the segment's clock: whole nanoseconds.
using Nanos = std::chrono::nanoseconds;

/// "Never": retry_after of a cost above the burst.
inline constexpr Nanos kNever = Nanos::max();

/// Longest key in bytes; a longer one is `key_too_long`, never cut (C035, C037).
inline constexpr std::size_t kMaxKeyBytes = 4096;
/// Largest cost of one decision in tokens.
inline constexpr std::uint64_t kMaxCost = 1'000'000'000;

}  // namespace cutwater
