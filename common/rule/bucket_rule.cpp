// SPDX-License-Identifier: Apache-2.0
#include "rule/bucket_rule.hpp"

namespace cutwater::rule {
namespace {

std::int64_t after_now(std::int64_t t, std::int64_t due) noexcept {
  return due == kNeverNs ? kNeverNs : std::max<std::int64_t>(0, due - t);
}

std::int64_t wait_until(const TokenRule& rule, std::int64_t t, Units units) noexcept {
  return after_now(t, due_time(rule, t, units));
}

// Until a slice that ends at `end` fits: its end lies at or below N + burst. The burst may change
// with the piece.
std::int64_t wait_for_end(const TokenRule& rule, std::int64_t t, Units end) noexcept {
  if (t >= rule.after.base_t) return after_now(t, time_when(rule.after, end - rule.after.burst));
  const std::int64_t on_old = time_when(rule.before, end - rule.before.burst);
  if (on_old < rule.after.base_t) return after_now(t, std::max(t, on_old));
  const std::int64_t on_new = time_when(rule.after, end - rule.after.burst);
  return after_now(t, std::max(rule.after.base_t, on_new));
}

}  // namespace

Report report(const TokenRule& rule, std::int64_t t, Units n, Units level, Units cost,
              bool granted) noexcept {
  const Piece& piece = rule.piece_at(t);
  Report out;
  const Units owed = level - n;
  out.remaining =
      owed >= piece.burst ? 0 : static_cast<std::uint64_t>(piece.burst - owed) >> rule.f;
  out.reset_after_ns = owed > 0 ? wait_until(rule, t, level) : 0;
  if (granted) {
    // Above the burst only what waits: its slice begins when the clock reaches level - burst.
    out.starts_in_ns = owed > piece.burst ? wait_until(rule, t, level - piece.burst) : 0;
  } else if (cost > piece.burst && cost > rule.after.burst) {
    out.retry_after_ns = kNeverNs;
  } else {
    // A refusal that never names 0: the asked cost is not there at t itself (L3).
    out.retry_after_ns = std::max<std::int64_t>(1, wait_for_end(rule, t, level + cost));
  }
  return out;
}

}  // namespace cutwater::rule
