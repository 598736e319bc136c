// SPDX-License-Identifier: Apache-2.0
// A manual act: one that lasts (a ban, an override, a limit set to shadow, a breaker put into a
// state by hand), or one that is over at once (a breaker set free or reset), kept for who asks
// later. And the line it is written as in the journal.
//
//   CRC32C-of-the-rest SPACE JSON \n          one act, or one end of an act, a line
//   {"id":7,"do":"ban","limit":"login","key":"6d616c","at":1767225600,"until":0,"who":"uid 0",
//    "note":"scraping"}
//   {"id":8,"do":"breaker","breaker":"fraud","state":"FORCED_OPEN","at":1767225600,"until":0,
//    "who":"uid 0","note":"their maintenance"}
//   {"id":9,"do":"reset","breaker":"fraud","at":1767225600,"until":0,"who":"uid 0","note":"mended"}
//   {"end":7,"how":"undone","at":1767229200,"who":"uid 0"}
// Keys are written in hexadecimal: they are any bytes. Times are seconds of the calendar
// (1970-01-01 UTC), since the segment's clock does not outlive a boot. `until` 0: until undone.
// Unknown fields are ignored, an unknown word makes the line unreadable (nothing is guessed).
// Pure. Thread safety: values.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include <cutwater/result.hpp>

#include "rule/breaker_settings.hpp"

namespace cutwater::server {

enum class ActKind : std::uint8_t { Ban, Override, Shadow, Breaker, Auto, Reset };

/// Bytes of one line, its end included; a longer one is damage.
inline constexpr std::size_t kMaxJournalLine = 16384;

struct Act {
  std::uint64_t id = 0;              ///< grows by one; 0 = not written yet
  ActKind kind = ActKind::Ban;
  std::string limit;                 ///< its name; empty where it is about a breaker
  std::string breaker = {};          ///< Breaker, Auto, Reset: its name
  rule::BreakerState state = rule::BreakerState::ForcedOpen;   ///< Breaker: FORCED_OPEN, DISABLED
                                                               ///< or METRICS_ONLY
  std::string key = {};              ///< Ban, Override
  std::uint64_t rate_count = 0;      ///< Override: tokens per period; 0 = unlimited
  std::uint64_t rate_period_ns = 0;
  std::uint64_t burst = 0;
  bool shadow = false;               ///< Shadow: on or off
  std::uint64_t at_s = 0;            ///< when
  std::uint64_t until_s = 0;         ///< 0 = until undone
  std::string who;                   ///< "uid 0 (pid 17)"
  std::string note;

  friend bool operator==(const Act&, const Act&) = default;
};

/// Done: it was over at once, and no line says so.
enum class EndKind : std::uint8_t { Undone, Replaced, Expired, Done };

struct ActEnd {
  std::uint64_t id = 0;
  EndKind how = EndKind::Undone;
  std::uint64_t at_s = 0;
  std::string who;                   ///< empty: the daemon itself (expired, or left by others)

  friend bool operator==(const ActEnd&, const ActEnd&) = default;
};

using JournalEntry = std::variant<Act, ActEnd>;

/// Over at once: such an act never stands, and nothing undoes it.
inline bool is_momentary(ActKind kind) noexcept {
  return kind == ActKind::Auto || kind == ActKind::Reset;
}
inline bool is_about_breaker(ActKind kind) noexcept {
  return kind == ActKind::Breaker || is_momentary(kind);
}
/// The name of the limit or breaker it is about.
inline const std::string& subject_of(const Act& act) noexcept {
  return is_about_breaker(act.kind) ? act.breaker : act.limit;
}
/// True for the states that only a hand brings about, and that last.
inline bool is_by_hand(rule::BreakerState state) noexcept {
  return state == rule::BreakerState::ForcedOpen || state == rule::BreakerState::Disabled ||
         state == rule::BreakerState::MetricsOnly;
}

/// "ban", "override", "shadow", "breaker", "auto", "reset"; "undone", "replaced", "expired",
/// "done".
std::string_view name_of(ActKind kind) noexcept;
std::string_view name_of(EndKind how) noexcept;

/// The line, its newline included.
std::string to_line(const JournalEntry& entry);
/// Damaged, saying how: the checksum, the JSON, or a field. `line` without its newline.
Result<JournalEntry> from_line(std::string_view line);

}  // namespace cutwater::server
