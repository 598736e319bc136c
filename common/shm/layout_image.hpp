// SPDX-License-Identifier: Apache-2.0
// The bytes of a rule image: part of shm/layout.hpp, which includes this and says what holds for
// all of them. LAYOUT.md tells the same in prose.
#pragma once
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace cutwater::shm {

/// First line of an image.
struct ImageHead {
  std::uint64_t generation;
  std::uint32_t length;
  std::uint32_t crc32c;              ///< of everything behind this head
  std::uint32_t limits;              ///< used entries lie in 0..limits-1, with holes (windows == 0)
  std::uint32_t rules;               ///< used ids lie in 1..rules-1, with holes (kind 0)
  std::uint64_t config_hash;         ///< of the effective configuration, for `status`
  std::uint8_t pad[32];
};
static_assert(sizeof(ImageHead) == 64);

inline constexpr std::size_t kMaxWindows = 6;

/// Bits of LimitConfig::flags. 0 with one window is the plain limit that the fast path decides.
inline constexpr std::uint8_t kLimitHasOverrides = 1;   ///< look the key up among the overrides
inline constexpr std::uint8_t kLimitShadow = 2;         ///< mode: shadow
inline constexpr std::uint8_t kLimitHasPatterns = 4;    ///< ... and then among the patterns
inline constexpr std::uint8_t kLimitUnlimited = 8;      ///< no bucket: counted
inline constexpr std::uint8_t kLimitBlocked = 16;       ///< no bucket: refused as banned
inline constexpr std::uint8_t kLimitManyWindows = 32;   ///< windows > 1
inline constexpr std::uint8_t kLimitCalendar = 64;      ///< a window is not of RuleKind::Token

struct LimitConfig {
  /// Rule id of each window. A limit without a bucket keeps those it had, so that debts outlive a
  /// time as unlimited or blocked; one that never had any has a rule of RuleKind::Unlimited.
  std::uint16_t rule[kMaxWindows];
  std::uint8_t windows;              ///< 0 = this entry is free
  std::uint8_t flags;                ///< kLimit...
  std::uint8_t on_full;              ///< rule::OnFull
  std::uint8_t show_keys;            ///< rule::ShowKeys
  std::uint32_t incarnation;         ///< changes when the index is given to another name
  std::uint32_t max_waiting;
  std::uint64_t max_wait_ns;
  std::uint32_t thread_lease;        ///< tokens, 0 = off
  std::uint16_t first_pattern;       ///< the limit's patterns lie one behind the other
  std::uint8_t patterns;             ///< how many
  std::uint8_t ip_prefix_v4;         ///< bits
  std::uint8_t ip_prefix_v6;         ///< bits
  std::uint8_t pad_a[7];
  std::uint64_t max_debt;            ///< tokens a charge after the fact may owe; 0 = each burst
  std::uint8_t pad_b[8];
};
static_assert(sizeof(LimitConfig) == 64 && offsetof(LimitConfig, max_wait_ns) == 24);
static_assert(offsetof(LimitConfig, max_debt) == 48);

enum class RuleKind : std::uint8_t {
  Unused = 0, Token = 1, Calendar = 2, Time = 3, Lease = 4, Unlimited = 5, Banned = 6,
};
inline constexpr std::uint16_t kBanRuleId = 1;     ///< bans: N(t) = t, f = 0, tat = its end
inline constexpr std::uint8_t kBanWindow = 255;    ///< w of a ban's fingerprint
inline constexpr std::uint16_t kFirstRuleId = 2;

/// Bits of RuleRecord::flags.
inline constexpr std::uint8_t kRuleOfOverride = 1;  ///< of a set, not of the limit itself
inline constexpr std::uint8_t kRuleDropped = 2;     ///< nobody decides by it; kept until swept

/// One rule by rule id. Line 0 holds from base_t on, line 1 holds for valid_from <= t < base_t with
/// the same f.
/// RuleKind::Calendar: N(t) = base_n + k(t) * mult, where k counts the periods of `calendar` and
/// mult is a power of two above burst + debt, so that no debt outlives its period; 0 = stands
/// still. f = 0.
struct RuleRecord {
  std::uint64_t mult;  ///< units per ns = mult / 2^shift, rounded up; 0 = this clock stands still
  std::int64_t base_t;               ///< ns of segment time
  std::int64_t base_n;               ///< units: N(base_t)
  std::int64_t burst;                ///< units
  std::int64_t floor;                ///< units: F
  std::int64_t reach;                ///< units: D, the farthest an honest tat lies ahead of N
  std::uint8_t shift;
  std::uint8_t f;                    ///< a unit is 2^-f token
  std::uint8_t kind;                 ///< RuleKind
  std::uint8_t flags;
  std::uint16_t limit;               ///< index of the limit it belongs to
  std::uint8_t window;
  std::uint8_t pad_a;
  std::uint32_t calendar;            ///< index of its CalendarRecord (RuleKind::Calendar)
  std::uint16_t pred;                ///< rule id this one converts from, 0 = none
  std::uint16_t succ;                ///< of a predecessor: the rule id that converts from it

  std::uint64_t mult0;               ///< line 1
  std::int64_t valid_from;           ///< t < valid_from: read the clock again
  std::int64_t base_n0;              ///< N(valid_from)
  std::int64_t burst0;
  std::int64_t floor0;
  std::int64_t reach0;
  std::uint8_t shift0;
  std::uint8_t pad_c[15];

  std::uint64_t pred_num;            ///< line 2: conversion factor of a debt, rounded up
  std::uint64_t pred_den;
  std::uint64_t max_debt;            ///< tokens
  std::uint64_t max_reserve;         ///< tokens: rate * max-wait, rounded up
  std::uint64_t rate_count;          ///< as configured
  std::uint64_t rate_period_ns;
  std::uint64_t burst_tokens;
  std::int64_t pred_shift;           ///< units added to a converted debt (as-is); never below none
};
static_assert(sizeof(RuleRecord) == 192 && offsetof(RuleRecord, mult0) == 64);
static_assert(offsetof(RuleRecord, pred_num) == 128);

/// What keys with an override are judged by. Keys with equal numbers share one set. Its rules are
/// of the limit and window of the limit's own, so a key finds its entry whichever it is under.
struct SetRecord {
  std::uint16_t rule[kMaxWindows];
  std::uint8_t windows;
  std::uint8_t kind;                 ///< rule::LimitKind; Unlimited and Blocked have no entry
  std::uint16_t limit;               ///< index; of kUnlimitedSet and kBannedSet 0
};
static_assert(sizeof(SetRecord) == 16);
inline constexpr std::uint32_t kUnlimitedSet = 1;
inline constexpr std::uint32_t kBannedSet = 2;
inline constexpr std::uint32_t kFirstSet = 3;

/// Open addressing: first place mulhi(key_hash, count), then the following ones around the end, at
/// most kOverrideProbes; at most half of the records are used.
struct OverrideRecord {
  std::uint64_t key_hash;            ///< override_hash() under the limit's secret; 0 = free
  std::uint32_t until_s;             ///< seconds of segment time from which it is void; 0 = never
  std::uint32_t set;
};
static_assert(sizeof(OverrideRecord) == 16);
inline constexpr std::uint32_t kOverrideProbes = 32;

struct PatternRecord {
  std::uint32_t set;
  std::uint32_t until_s;             ///< as of an override
  std::uint8_t length;               ///< of text; 0 = free
  std::uint8_t star;                 ///< index of the one '*' in text
  std::uint16_t limit;
  char text[116];
};
static_assert(sizeof(PatternRecord) == 128 && offsetof(PatternRecord, text) == 12);

/// The periods of a calendar window: k(t) = base_k + how many of the edges are <= t. From the last
/// edge on the last period repeats: + (t - last edge) / period_ns; said by Decision's flag.
/// k never falls, whatever is done to the wall clock or the zone.
inline constexpr std::size_t kCalendarEdges = 24;
struct CalendarRecord {
  std::uint64_t base_k;
  std::int64_t valid_from;           ///< t below: read the clock again
  std::int64_t period_ns;            ///< length of the last period
  std::uint64_t zone_hash;           ///< of unit and zone; names the calendar over publications
  std::uint8_t unit;                 ///< rule::CalendarUnit
  std::uint8_t edges;                ///< 1..24; 0 = this record is free
  char zone[22];                     ///< for people: cut, ends with 0
  std::int64_t edge[kCalendarEdges]; ///< ns of segment time, rising
  std::int64_t last_index;           ///< of the calendar's period that begins with the last edge
};
static_assert(sizeof(CalendarRecord) == 256 && offsetof(CalendarRecord, edge) == 56);

struct NameRecord {
  std::uint8_t length;
  char text[63];
};
static_assert(sizeof(NameRecord) == 64);

}  // namespace cutwater::shm
