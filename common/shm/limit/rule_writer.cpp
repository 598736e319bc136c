// SPDX-License-Identifier: Apache-2.0
#include "shm/limit/rule_writer.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/guard.hpp"
#include "shm/limit/rule_reader.hpp"

namespace cutwater::shm {
namespace {

using rule::OnChange;
using rule::Units;
using Wide = unsigned __int128;

constexpr int kCoarserBits = 4;
/// A step of a calendar: with 2^24 periods in the life of a segment the axis stays below 2^62.
constexpr std::uint64_t kMaxStep = std::uint64_t{1} << 38;
/// Debts beyond this do not fit any scale.
constexpr std::uint64_t kMaxOwed = std::uint64_t{1} << 61;

bool is_calendar(const RuleWish& wish) noexcept {
  return wish.window.kind == rule::WindowKind::Calendar;
}

std::uint8_t kind_of(const RuleWish& wish) noexcept {
  return static_cast<std::uint8_t>(is_calendar(wish) ? RuleKind::Calendar : RuleKind::Token);
}

rule::Rate rate_of(const RuleWish& wish) noexcept {
  return {wish.window.rate_count, wish.window.rate_period_ns};
}

/// What must fit between N and the farthest tat, in tokens.
std::uint64_t room_of(const RuleWish& wish) noexcept {
  return std::max(wish.window.burst + wish.reserve + wish.debt, wish.owed);
}

/// Fraction bits of a fresh rule; negative when there is no scale.
int ideal_bits(const RuleWish& wish) noexcept {
  const std::uint64_t room = room_of(wish);
  if (room > kMaxOwed) return -1;
  return rule::fraction_bits(rate_of(wish), wish.window.burst, room - wish.window.burst);
}

/// Smallest power of two above all that may be owed: no debt outlives its period.
std::uint64_t step_of(const RuleWish& wish) noexcept {
  return room_of(wish) >= kMaxStep ? 2 * kMaxStep : std::bit_ceil(room_of(wish) + 1);
}

void set_after(RuleRecord& r, const rule::Piece& p) noexcept {
  r.mult = p.mult;
  r.base_t = p.base_t;
  r.base_n = p.base_n;
  r.burst = p.burst;
  r.floor = p.floor;
  r.reach = p.reach;
  r.shift = p.shift;
}

void set_before(RuleRecord& r, const rule::Piece& p) noexcept {
  r.mult0 = p.mult;
  r.valid_from = p.base_t;
  r.base_n0 = p.base_n;
  r.burst0 = p.burst;
  r.floor0 = p.floor;
  r.reach0 = p.reach;
  r.shift0 = p.shift;
}

void set_configured(RuleRecord& r, const RuleWish& wish) noexcept {
  r.max_reserve = wish.reserve;
  r.max_debt = wish.debt;
  r.rate_count = wish.window.rate_count;
  r.rate_period_ns = wish.window.rate_period_ns;
  r.burst_tokens = wish.window.burst;
  r.calendar = is_calendar(wish) ? wish.calendar : 0;
}

/// The line of the wish at f fraction bits, without its base. False: it cannot be written.
bool set_line(rule::Piece& piece, const RuleWish& wish, unsigned f, std::uint64_t step) noexcept {
  if (is_calendar(wish)) {
    piece.mult = step;
  } else if (!rule::set_slope(piece, rate_of(wish), f)) {
    return false;
  }
  piece.burst = static_cast<Units>(wish.window.burst << f);
  piece.reach = static_cast<Units>(room_of(wish) << f);
  return true;
}

/// The factor from the old record's units to the new one's.
struct Factor {
  std::uint64_t num = 1, den = 1;
  Units shift = 0;
};

Factor factor_of(const RuleRecord& old, const RuleRecord& r, OnChange word, bool same) noexcept {
  Factor factor;
  if (word == OnChange::Reset && !same) return {0, 1, 0};
  if (word == OnChange::Proportional && !same) {
    // Both are bursts in units, below 2^62.
    factor.num = static_cast<std::uint64_t>(r.burst);
    factor.den = std::max<std::uint64_t>(1, old.burst_tokens << old.f);
  } else {
    factor.num = r.f > old.f ? std::uint64_t{1} << (r.f - old.f) : 1;
    factor.den = r.f < old.f ? std::uint64_t{1} << (old.f - r.f) : 1;
  }
  const std::uint64_t common = std::gcd(factor.num, factor.den);
  factor.num /= common;
  factor.den /= common;
  if (word == OnChange::AsIs && !same) {
    factor.shift = (static_cast<Units>(r.burst_tokens) - static_cast<Units>(old.burst_tokens)) *
                   (Units{1} << r.f);
  }
  return factor;
}

Units apply(const Factor& factor, Units debt) noexcept {
  return std::max<Units>(0, rule::convert_debt(debt, factor.num, factor.den) + factor.shift);
}

/// Tokens the debts of the old rule may come to under the new one.
std::uint64_t converted_tokens(const RuleRecord& old, const RuleWish& wish, OnChange word) {
  const std::uint64_t tokens = reach_tokens(old);
  switch (word) {
    case OnChange::Reset: return 0;
    case OnChange::AsIs:
      return wish.window.burst > old.burst_tokens
                 ? tokens + (wish.window.burst - old.burst_tokens) : tokens;
    case OnChange::Proportional: {
      const Wide scaled = (Wide{tokens} * wish.window.burst + old.burst_tokens) /
                              std::max<std::uint64_t>(1, old.burst_tokens) + 1;
      return static_cast<std::uint64_t>(std::min<Wide>(scaled, 2 * Wide{kMaxOwed}));
    }
    case OnChange::KeepUsed: break;
  }
  return tokens;
}

}  // namespace

RuleWish wish_of(const rule::LimitSettings& settings, const rule::WindowSettings& window) {
  RuleWish wish;
  wish.window = window;
  wish.debt = settings.max_debt != 0 ? settings.max_debt : window.burst;
  if (settings.max_wait_ns != 0 && window.kind == rule::WindowKind::Rate) {
    wish.reserve = rule::tokens_in(rate_of(wish), settings.max_wait_ns) + 1;
  }
  return wish;
}

std::uint64_t reach_tokens(const RuleRecord& record) noexcept {
  const auto reach = static_cast<std::uint64_t>(std::max<Units>(record.reach, 0));
  return (reach + ((std::uint64_t{1} << (record.f & 63)) - 1)) >> (record.f & 63);
}

std::uint64_t reach_tokens(const RuleWish& wish) noexcept {
  return wish.window.burst + wish.reserve + wish.debt;
}

bool same_window(const RuleRecord& record, const RuleWish& wish, bool same_calendar) noexcept {
  return record.kind == kind_of(wish) && record.rate_count == wish.window.rate_count &&
         record.burst_tokens == wish.window.burst &&
         (is_calendar(wish) ? same_calendar
                            : record.rate_period_ns == wish.window.rate_period_ns);
}

bool same_numbers(const RuleRecord& record, const RuleWish& wish, bool same_calendar) noexcept {
  return same_window(record, wish, same_calendar) && record.max_reserve == wish.reserve &&
         record.max_debt == wish.debt;
}

std::optional<RuleRecord> fresh_rule(const RuleWish& wish, RulePlace place, std::int64_t base_t,
                                     std::uint64_t k, Filling filling) {
  const int f = is_calendar(wish) ? 0 : ideal_bits(wish);
  const std::uint64_t step = step_of(wish);
  rule::Piece piece;
  if (f < 0 || (is_calendar(wish) && step > kMaxStep) ||
      !set_line(piece, wish, static_cast<unsigned>(f), step)) {
    return std::nullopt;
  }
  RuleRecord r{};
  piece.base_t = base_t;
  const Units n = is_calendar(wish) ? static_cast<Units>(k * step) : 0;
  const auto bits = static_cast<unsigned>(f);
  const Units lacking = rule::convert_debt(
      filling.units, bits > filling.f ? std::uint64_t{1} << (bits - filling.f) : 1,
      bits < filling.f ? std::uint64_t{1} << (filling.f - bits) : 1);
  piece.floor = lacking == 0 ? 0 : n + lacking;
  set_after(r, piece);
  // Nobody used this rule before base_t: a clock that stands still, from the same moment on.
  piece.mult = 0;
  piece.base_n = n;
  set_before(r, piece);
  r.f = static_cast<std::uint8_t>(f);
  r.kind = kind_of(wish);
  r.limit = static_cast<std::uint16_t>(place.limit);
  r.window = place.window;
  r.flags = place.flags;
  set_configured(r, wish);
  return r;
}

RuleRecord bucketless_rule(RulePlace place, std::int64_t base_t) noexcept {
  RuleRecord r{};
  r.base_t = base_t;
  r.valid_from = base_t;
  r.kind = static_cast<std::uint8_t>(RuleKind::Unlimited);
  r.limit = static_cast<std::uint16_t>(place.limit);
  r.window = place.window;
  return r;
}

bool keeps_id(const RuleRecord& old, const RuleWish& wish, OnChange word,
              bool same_calendar) noexcept {
  const bool needs_factor = word == OnChange::Proportional || word == OnChange::Reset;
  if (old.kind != kind_of(wish)) return false;
  if (needs_factor && !same_window(old, wish, same_calendar)) {
    // Another rate alone changes nothing of what proportional keeps.
    const bool same_burst = old.burst_tokens == wish.window.burst;
    if (word == OnChange::Reset || !same_burst) return false;
  }
  if (is_calendar(wish)) {
    return same_calendar && old.mult >= step_of(wish);
  }
  const int ideal = ideal_bits(wish);
  return old.f <= ideal && ideal - old.f <= kCoarserBits;
}

RuleRecord changed_rule(const RuleRecord& old, const RuleWish& wish, OnChange word, Units n,
                        std::int64_t base_t) {
  RuleRecord r = old;
  rule::Piece before = read_after(old);
  rule::Piece piece = before;
  set_line(piece, wish, old.f, old.mult);
  piece.base_t = base_t;
  const auto calendar = [&](Units value) {       // base_n of a calendar is without its steps
    return is_calendar(wish) ? before.base_n + (value - n) : value;
  };
  piece.base_n = calendar(n);
  piece.floor = before.floor;
  if (word == OnChange::AsIs) {
    const Units grown = piece.burst - before.burst;
    piece.base_n = calendar(n - grown);
    // Absent and full keys agree, and slices stay disjoint though N steps down.
    if (grown > 0 && guarded(Guard::FloorUnderAsIs)) piece.floor = std::max(before.floor, n);
  }
  if (!guarded(Guard::FloorNeverFalls)) piece.floor = n;
  // Else a lowered burst would forgive debts; and a raised one: who comes with a stamp of before
  // meets what was charged after it.
  if (guarded(Guard::ReachNeverFalls)) piece.reach = std::max(piece.reach, before.reach);
  before.reach = std::max(piece.reach, before.reach);
  set_before(r, before);
  set_after(r, piece);
  set_configured(r, wish);
  return r;
}

std::optional<RuleRecord> with_reach(const RuleRecord& old, std::uint64_t tokens) noexcept {
  RuleRecord r = old;
  if (tokens <= reach_tokens(old)) return r;
  if (old.kind == static_cast<std::uint8_t>(RuleKind::Calendar)) {
    if (tokens >= old.mult) return std::nullopt;
  } else {
    const rule::Rate rate{old.rate_count, old.rate_period_ns};
    if (tokens > kMaxOwed || tokens < old.burst_tokens) return std::nullopt;
    if (rule::fraction_bits(rate, old.burst_tokens, tokens - old.burst_tokens) < old.f) {
      return std::nullopt;
    }
  }
  r.reach = r.reach0 = static_cast<Units>(tokens << old.f);
  return r;
}

std::optional<RuleRecord> successor(const RuleRecord& old, std::uint16_t old_id,
                                    const RuleWish& wish, OnChange word, Units n,
                                    std::int64_t base_t, std::uint64_t k) {
  RuleWish wide = wish;
  const bool same = old.burst_tokens == wish.window.burst && word == OnChange::Proportional;
  // The new scale must hold the largest debt of the old one, else a change would forgive it.
  if (guarded(Guard::ReachNeverFalls)) {
    wide.owed = std::max(wish.owed, converted_tokens(old, wish, word) + 1);
  }
  auto made = fresh_rule(wide, {old.limit, old.window, old.flags}, base_t, k, {});
  if (!made) return made;
  RuleRecord& r = *made;
  const Factor factor = factor_of(old, r, word, same);
  r.pred = old_id;
  r.pred_num = factor.num;
  r.pred_den = factor.den;
  r.pred_shift = factor.shift;
  const Units filling = old.floor > n && guarded(Guard::FloorNeverFalls) ? old.floor - n : 0;
  const Units lacking = apply(factor, filling);
  if (lacking > 0 && (filling > 0 || guarded(Guard::FloorUnderAsIs))) {
    r.floor = r.base_n0 + lacking;
  }
  r.floor0 = r.floor;
  return made;
}

RuleRecord predecessor(const RuleRecord& old, std::uint16_t successor_id, Units n,
                       std::int64_t base_t) {
  RuleRecord r = old;
  rule::Piece piece = read_after(old);
  set_before(r, piece);
  piece.base_n = n;
  piece.base_t = base_t;
  piece.mult = 0;
  set_after(r, piece);
  r.pred = 0;
  r.succ = successor_id;
  return r;
}

}  // namespace cutwater::shm
