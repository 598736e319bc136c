// SPDX-License-Identifier: Apache-2.0
#include "shm/rule_writer.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "shm/rule_reader.hpp"

namespace cutwater::shm {
namespace {

using rule::Units;

constexpr int kCoarserBits = 4;

rule::Rate rate_of(const rule::LimitSettings& s) noexcept {
  return {s.windows[0].rate_count, s.windows[0].rate_period_ns};
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

void set_configured(RuleRecord& r, const rule::LimitSettings& s) noexcept {
  r.max_reserve = reserve_of(s);
  r.rate_count = s.windows[0].rate_count;
  r.rate_period_ns = s.windows[0].rate_period_ns;
  r.burst_tokens = s.windows[0].burst;
}

// The line of `settings` at f fraction bits, without its base.
rule::Piece line_of(const rule::LimitSettings& s, unsigned f) noexcept {
  rule::Piece piece;
  const bool written = rule::set_slope(piece, rate_of(s), f);
  CUTWATER_ASSERT(written);
  piece.burst = static_cast<Units>(s.windows[0].burst << f);
  piece.reach = static_cast<Units>((s.windows[0].burst + reserve_of(s)) << f);
  return piece;
}

}  // namespace

std::uint64_t reserve_of(const rule::LimitSettings& s) noexcept {
  return s.max_wait_ns == 0 ? 0 : rule::tokens_in(rate_of(s), s.max_wait_ns) + 1;
}

int ideal_fraction_bits(const rule::LimitSettings& s) noexcept {
  return rule::fraction_bits(rate_of(s), s.windows[0].burst, reserve_of(s));
}

bool same_numbers(const RuleRecord& record, const rule::LimitSettings& s) noexcept {
  return record.rate_count == s.windows[0].rate_count &&
         record.rate_period_ns == s.windows[0].rate_period_ns &&
         record.burst_tokens == s.windows[0].burst && record.max_reserve == reserve_of(s);
}

RuleRecord fresh_rule(const rule::LimitSettings& s, std::uint32_t limit, std::int64_t base_t,
                      bool empty, std::uint64_t extra) {
  const int f = rule::fraction_bits(rate_of(s), s.windows[0].burst, reserve_of(s) + extra);
  CUTWATER_ASSERT(f >= 0);
  RuleRecord r{};
  rule::Piece piece = line_of(s, static_cast<unsigned>(f));
  piece.base_t = base_t;
  piece.floor = empty ? piece.burst : 0;
  set_after(r, piece);
  // Nobody used this rule before base_t: a clock that stands still, from the same moment on.
  piece.mult = 0;
  set_before(r, piece);
  r.f = static_cast<std::uint8_t>(f);
  r.kind = static_cast<std::uint8_t>(RuleKind::Token);
  r.limit = static_cast<std::uint16_t>(limit);
  set_configured(r, s);
  return r;
}

bool fits_scale(const RuleRecord& old, const rule::LimitSettings& s) noexcept {
  const int ideal = ideal_fraction_bits(s);
  return old.f <= ideal && ideal - old.f <= kCoarserBits;
}

RuleRecord keep_used(const RuleRecord& old, const rule::LimitSettings& s, std::int64_t base_t) {
  RuleRecord r = old;
  rule::Piece before = read_after(old);
  rule::Piece piece = line_of(s, old.f);
  piece.base_t = base_t;
  piece.base_n = rule::units_at(before, base_t);
  piece.floor = before.floor;                            // a new F never lies below the old one
  piece.reach = std::max(piece.reach, before.reach);     // else a lowered burst would forgive debts
  // ... and a raised one: who comes with a stamp of before meets what was charged after it.
  before.reach = piece.reach;
  set_before(r, before);
  set_after(r, piece);
  set_configured(r, s);
  return r;
}

RuleRecord successor(const RuleRecord& old, std::uint16_t old_id, const rule::LimitSettings& s,
                     std::int64_t base_t) {
  const rule::Piece before = read_after(old);
  // The new scale must hold the largest debt of the old one, else a change would forgive it.
  const std::uint64_t owed = (static_cast<std::uint64_t>(before.reach) >> old.f) + 1;
  RuleRecord r = fresh_rule(s, old.limit, base_t, false, owed);
  const Units n = rule::units_at(before, base_t);
  r.pred = old_id;
  r.pred_num = r.f > old.f ? std::uint64_t{1} << (r.f - old.f) : 1;
  r.pred_den = r.f < old.f ? std::uint64_t{1} << (old.f - r.f) : 1;
  const auto convert = [&](Units debt) {
    using Wide = unsigned __int128;
    return static_cast<Units>(
        (Wide{static_cast<std::uint64_t>(debt)} * r.pred_num + r.pred_den - 1) / r.pred_den);
  };
  r.floor = r.base_n + (before.floor > n ? convert(before.floor - n) : 0);
  r.reach = std::max(r.reach, convert(before.reach));
  r.floor0 = r.floor;
  r.reach0 = r.reach;
  return r;
}

RuleRecord predecessor(const RuleRecord& old, std::int64_t base_t) {
  RuleRecord r = old;
  rule::Piece piece = read_after(old);
  set_before(r, piece);
  piece.base_n = rule::units_at(piece, base_t);
  piece.base_t = base_t;
  piece.mult = 0;
  set_after(r, piece);
  r.pred = 0;
  return r;
}

}  // namespace cutwater::shm
