// SPDX-License-Identifier: Apache-2.0
// What the operator wrote about one limit, after checking: the bridge between the configuration
// (common/config) and the rule images in shared memory (shm/publisher.hpp). Plain values; every
// range below was checked by whoever made the object, and check() repeats it for callers that fill
// one by hand (tests, in-memory clients).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include <cutwater/result.hpp>

namespace cutwater::rule {

/// Bounds of a limit. Beyond them: refused naming the maximum, never "no limit".
inline constexpr std::uint64_t kMaxRatePerSecond = 10'000'000;
inline constexpr std::uint64_t kMaxRateCount = 1'000'000'000;
inline constexpr std::uint64_t kMaxBurst = 1'000'000'000;
inline constexpr std::uint64_t kNanosPerSecond = 1'000'000'000;
inline constexpr std::uint64_t kNanosPerDay = 86'400 * kNanosPerSecond;
inline constexpr std::uint64_t kMaxPeriodNs = 3660 * kNanosPerDay;      ///< of the slowest rate
inline constexpr std::uint64_t kMinPeriodNs = 1'000;                     ///< periods from 1 us
inline constexpr std::uint64_t kMaxWaitNs = 3600 * kNanosPerSecond;      ///< of any caller
inline constexpr std::uint32_t kMaxWaiting = 65536;
inline constexpr std::uint32_t kMaxThreadLease = 65536;
inline constexpr std::size_t kMaxNameLength = 63;
inline constexpr std::size_t kMaxNoteLength = 256;

/// `on-full`: what a new key gets when its two groups hold only keys in debt.
enum class OnFull : std::uint8_t { Share = 0, Deny = 1, Allow = 2 };
/// `initial`: full = a key starts with its burst; empty = the limit fills since it was first
/// configured.
enum class Initial : std::uint8_t { Full = 0, Empty = 1 };
/// `on-change`: what a reload keeps. keep-used is the only one.
enum class OnChange : std::uint8_t { KeepUsed = 0 };

struct LimitSettings {
  std::string name;                        ///< [A-Za-z0-9][A-Za-z0-9._:-]{0,62}
  std::uint64_t rate_count = 0;            ///< tokens per period, 1..1e9
  std::uint64_t rate_period_ns = 0;        ///< ns, kMinPeriodNs..kMaxPeriodNs; at most 10M/s
  std::uint64_t burst = 0;                 ///< tokens, 1..1e9
  Initial initial = Initial::Full;
  OnFull on_full = OnFull::Share;
  OnChange on_change = OnChange::KeepUsed;
  std::uint64_t max_wait_ns = kMaxWaitNs;  ///< ns, 0..1h
  std::uint32_t max_waiting = 1024;        ///< callers asleep at once, per process, 0..65536
  std::uint32_t thread_lease = 0;          ///< tokens, 0 = off; at most burst/16
  std::string note;                        ///< at most 256 bytes

  friend bool operator==(const LimitSettings&, const LimitSettings&) = default;
};

/// `[A-Za-z0-9][A-Za-z0-9._:-]{0,62}`: what limits and instances may be called.
bool is_name(std::string_view text) noexcept;

/// More than kMaxRatePerSecond? Exact for every count and period of their ranges.
bool above_max_rate(std::uint64_t count, std::uint64_t period_ns) noexcept;

/// Ok, or InvalidArgument naming the field, its value and the documented range.
Result<void> check(const LimitSettings& settings);

}  // namespace cutwater::rule
