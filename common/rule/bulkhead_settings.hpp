// SPDX-License-Identifier: Apache-2.0
// What the operator wrote about one bulkhead, after checking: the bridge between the configuration
// (common/config) and the bulkheads in shared memory. Plain values; check() repeats every range for
// callers that fill one by hand. Places are counted over all processes of the host.
#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include <cutwater/result.hpp>

namespace cutwater::rule {

inline constexpr std::uint32_t kMaxConcurrentCalls = 4096;
inline constexpr std::uint32_t kMaxBulkheadWaiting = 16'383;
inline constexpr std::uint64_t kMaxBulkheadWaitNs = 3600ULL * 1'000'000'000;        ///< 1 h
inline constexpr std::uint64_t kWaitForever = std::numeric_limits<std::uint64_t>::max();
inline constexpr std::uint64_t kMinHoldNs = 1'000'000;                              ///< 1 ms
inline constexpr std::uint64_t kMaxHoldNs = 30ULL * 86'400 * 1'000'000'000;         ///< 30 d

enum class BulkheadPreset : std::uint8_t { Resilience4j = 0, Microprofile = 1, Spring = 2 };

struct BulkheadSettings {
  std::string name;   ///< a name; with exactly one '*': a pattern that makes instances at first use
  std::uint32_t max_concurrent = 25;   ///< places, 0..4096; 0 refuses everything
  std::uint64_t max_wait_ns = 0;       ///< 0..1 h, or kWaitForever; a call's deadline always wins
  std::uint32_t max_waiting = 64;      ///< in line at once, 0..16383
  std::uint64_t max_hold_ns = 0;       ///< 0 = off, else 1 ms .. 30 d: then the place is taken back
  bool enabled = true;                 ///< false: lets everything through
  std::uint32_t max_instances = 64;    ///< of a pattern, 1..16384
  std::uint64_t idle_ns = 3'600'000'000'000;   ///< of a pattern: age at which an unused one may go
  std::string note;                    ///< at most 256 bytes

  friend bool operator==(const BulkheadSettings&, const BulkheadSettings&) = default;
};

/// What a block starts from: 25 places and no wait; microprofile 10; spring waits for ever and must
/// be told its number (max_concurrent is 0 here).
BulkheadSettings preset(BulkheadPreset preset);
/// Stable word of a preset.
std::string_view name_of(BulkheadPreset preset) noexcept;
/// True when the name has its one '*'.
bool is_pattern(const BulkheadSettings& settings) noexcept;

/// Ok, or InvalidArgument naming the bulkhead, the field, its value and the range.
Result<void> check(const BulkheadSettings& settings);

}  // namespace cutwater::rule
