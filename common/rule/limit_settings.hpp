// SPDX-License-Identifier: Apache-2.0
// What the operator wrote about one limit, after checking: the bridge between the configuration
// (common/config) and the rule images in shared memory (shm/publisher.hpp). Plain values; every
// range below was checked by whoever made the object, and check() repeats it for callers that fill
// one by hand (tests, in-memory clients).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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
inline constexpr std::size_t kMaxWindows = 6;          ///< of a limit or an override
inline constexpr std::size_t kMaxPatterns = 16;        ///< of a limit; looked through in order
inline constexpr std::size_t kMaxPatternLength = 116;  ///< bytes of a key pattern with its '*'
inline constexpr std::size_t kMaxOverrideKey = 4096;   ///< bytes of an overridden key
inline constexpr std::size_t kMaxZoneLength = 63;      ///< bytes of a time zone's name
inline constexpr std::uint64_t kMaxDebt = 1'000'000'000;

/// `on-full`: what a new key gets when its two groups hold only keys in debt.
enum class OnFull : std::uint8_t { Share = 0, Deny = 1, Allow = 2 };
/// `initial`: full = a key starts with its burst; empty = the limit fills since it was first
/// configured.
enum class Initial : std::uint8_t { Full = 0, Empty = 1 };
/// `on-change`: what a reload keeps of each key. keep-used: the tokens used. as-is: the tokens
/// available, cut to the new burst. proportional: the tokens used, times new/old burst. reset:
/// nothing, every key is full.
enum class OnChange : std::uint8_t { KeepUsed = 0, AsIs = 1, Proportional = 2, Reset = 3 };

/// What a window counts by. A spacing of d is Rate with 1 per d and burst 1.
enum class WindowKind : std::uint8_t { Rate = 0, Calendar = 1 };
/// Edges of a calendar window, by the wall clock of its zone; a week begins on Monday.
enum class CalendarUnit : std::uint8_t {
  Minute = 0, Hour = 1, Day = 2, Week = 3, Month = 4, Year = 5,
};
inline constexpr std::size_t kCalendarUnits = 6;

/// One of the windows a limit consists of. Calendar: rate_count = burst = the count of a period,
/// rate_period_ns unused.
struct WindowSettings {
  WindowKind kind = WindowKind::Rate;
  std::uint64_t rate_count = 0;        ///< tokens per period, 1..1e9
  std::uint64_t rate_period_ns = 0;    ///< ns, kMinPeriodNs..kMaxPeriodNs; at most 10M/s
  std::uint64_t burst = 0;             ///< tokens, 1..1e9
  CalendarUnit unit = CalendarUnit::Minute;  ///< calendar only
  std::string zone = {};                     ///< calendar only: name of its zone; "" is UTC

  friend bool operator==(const WindowSettings&, const WindowSettings&) = default;
};
/// `count` tokens per `period_ns` with `burst`.
WindowSettings rate_window(std::uint64_t count, std::uint64_t period_ns, std::uint64_t burst);
/// `count` tokens per calendar `unit` of `zone`.
WindowSettings calendar_window(std::uint64_t count, CalendarUnit unit, std::string zone);

/// Bucket: by its windows. Unlimited: everything passes and is counted. Blocked: everything is
/// refused as banned; of an override, a ban.
enum class LimitKind : std::uint8_t { Bucket = 0, Unlimited = 1, Blocked = 2 };
/// Shadow: decides and counts as if enforced, and refuses nobody.
enum class Mode : std::uint8_t { Enforce = 0, Shadow = 1 };
/// How keys of callers are shown to people (CLI, events, tops).
enum class ShowKeys : std::uint8_t { Hashed = 0, Shown = 1, Hidden = 2 };

/// What one key, or the keys of a pattern, get instead of the limit's own windows. An exact key
/// beats a pattern; patterns are looked through in order.
struct OverrideSettings {
  std::string key;                     ///< 1..kMaxOverrideKey bytes; a pattern has exactly one '*'
  bool pattern = false;                ///< ... and is at most kMaxPatternLength long
  LimitKind kind = LimitKind::Bucket;
  std::vector<WindowSettings> windows = {};  ///< 1..6 of a Bucket, none else
  std::uint64_t until_unix_s = 0;            ///< seconds of wall time; 0 = for ever
  std::string note = {};                     ///< at most 256 bytes

  friend bool operator==(const OverrideSettings&, const OverrideSettings&) = default;
};

struct LimitSettings {
  std::string name;                        ///< [A-Za-z0-9][A-Za-z0-9._:-]{0,62}
  LimitKind kind = LimitKind::Bucket;
  std::vector<WindowSettings> windows = {};  ///< 1..6 of a Bucket, none else; known by their place
  Initial initial = Initial::Full;
  OnFull on_full = OnFull::Share;
  OnChange on_change = OnChange::KeepUsed;
  Mode mode = Mode::Enforce;
  std::uint64_t max_wait_ns = kMaxWaitNs;  ///< ns, 0..1h
  std::uint32_t max_waiting = 1024;        ///< callers asleep at once, per process, 0..65536
  std::uint64_t max_debt = 0;              ///< tokens a charge after the fact may owe; 0 = burst
  std::uint32_t thread_lease = 0;          ///< tokens, 0 = off; at most a sixteenth of each burst
  std::uint8_t ip_prefix_v4 = 32;          ///< bits of an IPv4 address that make a key, 0..32
  std::uint8_t ip_prefix_v6 = 64;          ///< bits of an IPv6 address, 0..128
  ShowKeys show_keys = ShowKeys::Hashed;
  std::vector<OverrideSettings> overrides = {};
  std::string note = {};                   ///< at most 256 bytes

  friend bool operator==(const LimitSettings&, const LimitSettings&) = default;
};

/// `[A-Za-z0-9][A-Za-z0-9._:-]{0,62}`: what limits and instances may be called.
bool is_name(std::string_view text) noexcept;

/// More than kMaxRatePerSecond? Exact for every count and period of their ranges.
bool above_max_rate(std::uint64_t count, std::uint64_t period_ns) noexcept;

/// Ok, or InvalidArgument naming the field, its value and the documented range.
Result<void> check(const LimitSettings& settings);

}  // namespace cutwater::rule
