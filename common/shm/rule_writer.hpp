// SPDX-License-Identifier: Apache-2.0
// How the numbers of a RuleRecord come about: a fresh rule, and
// a change of a rule (spec memory 8.1). Pure: settings and the old record in, new records out; no
// shared memory, no clock.
#pragma once
#include "rule/limit_settings.hpp"
#include "rule/token_clock.hpp"
#include "shm/layout.hpp"

namespace cutwater::shm {

/// Tokens that may lie ahead of the burst: what max-wait may reserve.
std::uint64_t reserve_of(const rule::LimitSettings& settings) noexcept;

/// Fraction bits a fresh rule of these settings gets; check() has made sure that it is >= 0.
int ideal_fraction_bits(const rule::LimitSettings& settings) noexcept;

/// True when the record decides exactly by these numbers already.
bool same_numbers(const RuleRecord& record, const rule::LimitSettings& settings) noexcept;

/// A rule nobody has used: its clock starts at `base_t` with N = 0. `empty`: F = N(base_t) + B
/// (L11). `extra`: tokens the scale must hold besides burst and reserve.
RuleRecord fresh_rule(const rule::LimitSettings& settings, std::uint32_t limit, std::int64_t base_t,
                      bool empty, std::uint64_t extra = 0);

/// True when the new rate can go on with the old rule id: it fits the old scale, and the unit is at
/// most 16 times coarser than a fresh rule's would be.
bool fits_scale(const RuleRecord& old, const rule::LimitSettings& settings) noexcept;

/// keep-used under the same id: base_n = N_old(base_t), the new slope and burst; debts in tokens
/// stay.
RuleRecord keep_used(const RuleRecord& old, const rule::LimitSettings& settings,
                     std::int64_t base_t);

/// keep-used under a new id: the successor, with `old_id` as predecessor and the scale change as
/// factor, ...
RuleRecord successor(const RuleRecord& old, std::uint16_t old_id,
                     const rule::LimitSettings& settings, std::int64_t base_t);
/// ... and what the predecessor becomes: its clock stands still from base_t, so debts not yet
/// converted stay whole.
RuleRecord predecessor(const RuleRecord& old, std::int64_t base_t);

}  // namespace cutwater::shm
