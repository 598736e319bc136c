// SPDX-License-Identifier: Apache-2.0
// Users of a breaker and what one of them has open for itself (rule/breaker_users.hpp), for the
// files of shm/breaker/*.cpp. Not for anybody else.
//
// A record belongs to one process: only its threads count in it and take its probe; anybody may
// open its view, by one swap. {turn, counts} and the view are one word each, so a kill leaves each
// of them old or new; what is lost is one step of a count. No view changes the host's state, and a
// view is of one epoch: the next move of the host ends it. Only the daemon's tick frees a place.
#pragma once
#include <cstdint>

#include "rule/breaker_users.hpp"
#include "shm/breaker/detail.hpp"

namespace cutwater::shm {

// ---- places and counts (user.cpp) ----------------------------------------------------------

/// The turn of a COUNT position, of a moment, and the one the window is in.
std::uint32_t turn_of_count(const BreakerParts& parts, std::uint64_t at) noexcept;
std::uint32_t turn_of_time(const BreakerParts& parts, std::int64_t now) noexcept;
std::uint32_t present_turn(const BreakerParts& parts, std::int64_t now) noexcept;
/// True when users have counts: three or more of them, and min-processes asks for it.
bool users_count(const BreakerParts& parts) noexcept;
/// The record of this caller; nullptr: it has none.
BreakerUser* own_record(const BreakerParts& parts, const BreakerCaller& caller) noexcept;
/// Where this caller counts: its own place, one it gets now, else the last one, which is shared.
BreakerUser* record_of(const BreakerParts& parts, const BreakerCaller& caller) noexcept;
/// True when every place has an owner.
bool users_full(const BreakerParts& parts) noexcept;
/// Counts an outcome of this epoch for its user; returns that user's run of failures.
std::uint32_t count_for_user(const BreakerParts& parts, const Judged& judged,
                             const BreakerCaller& caller) noexcept;
/// The same, in this record.
std::uint32_t count_in_record(BreakerUser& user, const Judged& judged) noexcept;
/// What user `i` did in this turn of `epoch` and the one before it.
rule::UserCounts counts_at(const BreakerParts& parts, std::uint32_t i, std::uint32_t epoch,
                           std::uint32_t turn) noexcept;
/// Nothing of what it did in this epoch is held against it any more.
void clear_counts(BreakerUser& user, std::uint32_t epoch) noexcept;
/// Places of the dead are freed, second ones too, and the living counted. For the daemon's tick
/// only.
void tick_users(const BreakerParts& parts, std::int64_t now) noexcept;

// ---- views (view.cpp) ----------------------------------------------------------------------

/// True: this view refuses in that epoch of the host.
bool view_holds(const UserView& view, std::uint32_t epoch) noexcept;
std::uint32_t count_open_views(const BreakerParts& parts, std::uint32_t epoch) noexcept;
/// The window says `reason`. True: it is not the host's matter; whose it is opened for itself.
bool opens_for_some_only(const BreakerParts& parts, rule::BreakerReason reason,
                         const Judged& judged, const BreakerCaller& caller) noexcept;
/// After an outcome: opens for this user when its last calls all failed beside a healthy rest.
void judge_own_run(const BreakerParts& parts, const Judged& judged, std::uint32_t run,
                   const BreakerCaller& caller) noexcept;
/// CLOSED for the host, `word.views`: true when this user's own view answers, in `out`. `take`
/// false: only looked at.
bool enter_by_view(const BreakerParts& parts, const BreakerWord& word, const BreakerCaller& caller,
                   std::int64_t deadline_ns, bool take, BreakerEntry& out) noexcept;
/// The result of a user's own probe; `counts` false: it says nothing.
void finish_own_probe(const BreakerParts& parts, const BreakerCall& call,
                      rule::BreakerOutcome outcome, bool counts, std::int64_t now,
                      const BreakerCaller& caller) noexcept;

}  // namespace cutwater::shm
