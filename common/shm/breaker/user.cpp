// SPDX-License-Identifier: Apache-2.0
#include "shm/breaker/user.hpp"

#include <algorithm>

#include "base/sync_point.hpp"
#include "shm/breaker/quick.hpp"
#include "shm/process_table.hpp"

namespace cutwater::shm {
namespace {

using rule::UserCounts;

std::uint64_t load_owner(const BreakerUser& user) noexcept {
  // relaxed: the word carries its whole meaning; the counts behind it are only counts.
  return __atomic_load_n(&user.owner, __ATOMIC_RELAXED);
}

/// How many there are. Stored, then counted again: of two who count at once the later one saw both.
void recount(const BreakerParts& parts) noexcept {
  for (int round = 0; round < kBreakerRounds; ++round) {
    std::uint32_t count = 0;
    for (std::uint32_t i = 0; i < parts.user_count; ++i) count += load_owner(parts.users[i]) != 0;
    if (__atomic_load_n(&parts.head->users, __ATOMIC_RELAXED) == count) return;
    // seq_cst: the next count is not read before this one is seen.
    __atomic_store_n(&parts.head->users, count, __ATOMIC_SEQ_CST);
  }
}

/// A place for this caller. nullptr: none is left. Of threads of one process that come at once the
/// slower finds the place of the other; only where one that lies before it was freed in between it
/// takes a second one, until a tick.
BreakerUser* claim(const BreakerParts& parts, const BreakerCaller& caller) noexcept {
  const std::uint64_t me = detail::owner_word(caller);
  if (me == 0) return nullptr;
  for (std::uint32_t i = 0; i < parts.user_count; ++i) {
    std::uint64_t found = 0;
    CUTWATER_SYNC_POINT("breaker.before_join");
    // acquire: pairs with the release in tick_users(); the place is empty when it is free.
    const bool taken = __atomic_compare_exchange_n(&parts.users[i].owner, &found, me, false,
                                                   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    if (!taken && found != me) continue;
    if (caller.local != nullptr) caller.local->user.store(i, std::memory_order_relaxed);
    if (taken) recount(parts);
    return parts.users + i;
  }
  return nullptr;
}

/// Its owner has a place before this one.
bool is_second(const BreakerParts& parts, std::uint32_t i, std::uint64_t owner) noexcept {
  for (std::uint32_t before = 0; before < i; ++before) {
    if (load_owner(parts.users[before]) == owner) return true;
  }
  return false;
}

UserCounts counts_of(std::uint64_t word) noexcept {
  const TurnCounts c = unpack_turn(word);
  return {c.calls, c.failures, c.slow, 0, false};
}

bool swap_whole(Word16* place, Word16 next) noexcept {
  Word16 seen = load16(place);
  for (int round = 0; round < kBreakerRounds; ++round) {
    if (cas16(place, seen, next)) return true;
  }
  return false;
}

/// One more failure in a row, or none.
std::uint32_t count_run(BreakerUser& user, std::uint32_t epoch, bool failed) noexcept {
  for (int round = 0; round < kBreakerRounds; ++round) {
    Word16 word = load16(&user.view);
    UserView view = unpack_view(word);
    if (view.epoch != epoch) view = {.epoch = epoch};
    if (view.open) return 0;
    const std::uint32_t run = failed ? std::min(view.run + 1, rule::kMaxOwnRun) : 0;
    if (run == view.run) return run;
    view.run = run;
    if (cas16(&user.view, word, pack_view(view))) return run;
  }
  return 0;
}

void empty_user(BreakerUser& user) noexcept {
  swap_whole(&user.now, {});
  swap_whole(&user.view, {});
  __atomic_store_n(&user.before, std::uint64_t{0}, __ATOMIC_RELAXED);
  CUTWATER_SYNC_POINT("breaker.before_user_freed");
  // release: whoever claims the place finds it empty; pairs with claim().
  __atomic_store_n(&user.owner, std::uint64_t{0}, __ATOMIC_RELEASE);
}

/// A forked child dies unseen: its place goes when it has not counted for two turns.
bool is_left(const BreakerParts& parts, std::uint32_t i, std::int64_t now) noexcept {
  const std::uint32_t epoch = epoch_of(state_of(parts).lo);
  if (counts_at(parts, i, epoch, present_turn(parts, now)).calls != 0) return false;
  const UserView view = unpack_view(load16(&parts.users[i].view));
  const auto keep = static_cast<std::int64_t>(parts.numbers().max_open_wait_ns);
  return !view_holds(view, epoch) || now - view.deadline_ns > keep;
}

bool is_gone(const BreakerParts& parts, std::uint32_t i, std::uint64_t owner,
             std::int64_t now) noexcept {
  if (owner_row(owner) >= parts.view->row_count) return true;
  // acquire: as wherever a row's state is read.
  const RowWord row = unpack_row(
      __atomic_load_n(&parts.view->rows[owner_row(owner)].word, __ATOMIC_ACQUIRE));
  if (row.state != RowState::Live && row.state != RowState::Orphan) return true;
  if ((row.generation & kOwnerGenerationMask) != owner_generation(owner)) return true;
  return (owner & kForkMask) != 0 && is_left(parts, i, now);
}

}  // namespace

BreakerUser* own_record(const BreakerParts& parts, const BreakerCaller& caller) noexcept {
  const std::uint64_t me = detail::owner_word(caller);
  if (me == 0) return nullptr;
  if (caller.local != nullptr) {
    // relaxed: a hint; the owner is compared.
    const std::uint32_t at = caller.local->user.load(std::memory_order_relaxed);
    if (at < parts.user_count && load_owner(parts.users[at]) == me) return parts.users + at;
  }
  for (std::uint32_t i = 0; i < parts.user_count; ++i) {
    if (load_owner(parts.users[i]) != me) continue;
    if (caller.local != nullptr) caller.local->user.store(i, std::memory_order_relaxed);
    return parts.users + i;
  }
  return nullptr;
}

BreakerUser* record_of(const BreakerParts& parts, const BreakerCaller& caller) noexcept {
  if (parts.user_count == 0) return nullptr;
  BreakerUser* record = own_record(parts, caller);
  if (record == nullptr) record = claim(parts, caller);
  return record != nullptr ? record : parts.users + parts.user_count - 1;
}

bool users_full(const BreakerParts& parts) noexcept {
  for (std::uint32_t i = 0; i < parts.user_count; ++i) {
    if (load_owner(parts.users[i]) == 0) return false;
  }
  return parts.user_count != 0;
}

std::uint32_t turn_of_count(const BreakerParts& parts, std::uint64_t at) noexcept {
  return static_cast<std::uint32_t>(at / std::max(parts.numbers().window_calls, 1u));
}

std::uint32_t turn_of_time(const BreakerParts& parts, std::int64_t now) noexcept {
  return slot_of(now, parts.numbers().slot_ns) / std::max(parts.numbers().slots, 1u);
}

std::uint32_t present_turn(const BreakerParts& parts, std::int64_t now) noexcept {
  return parts.is_time() ? turn_of_time(parts, now)
                         : turn_of_count(parts, find_count_tail(parts.ring).at);
}

bool users_count(const BreakerParts& parts) noexcept {
  // relaxed: a hint; too low by one that joins right now.
  return parts.numbers().min_processes != rule::kMinProcessesOff && parts.user_count != 0 &&
         __atomic_load_n(&parts.head->users, __ATOMIC_RELAXED) >= rule::kUsersThatCount;
}

UserCounts counts_at(const BreakerParts& parts, std::uint32_t i, std::uint32_t epoch,
                     std::uint32_t turn) noexcept {
  BreakerUser& user = parts.users[i];
  UserCounts out;
  const Word16 now = load16(&user.now);
  const std::uint32_t behind = turn - static_cast<std::uint32_t>(now.lo);
  if (epoch_of(now.lo) == epoch && (behind <= 1 || behind == ~0u)) {
    out = counts_of(now.hi);
    // relaxed: a count.
    if (behind != 1) out = out + counts_of(__atomic_load_n(&user.before, __ATOMIC_RELAXED));
  }
  out.order = load_owner(user);
  // In the shared place somebody counts although nobody may own it.
  out.present = out.order != 0 || (i + 1 == parts.user_count && out.calls != 0);
  return out;
}

std::uint32_t count_for_user(const BreakerParts& parts, const Judged& judged,
                             const BreakerCaller& caller) noexcept {
  if (parts.numbers().min_processes == rule::kMinProcessesOff) return 0;
  // A forked child, and whoever never resolved the name, joins with its first outcome.
  if (caller.local != nullptr && own_record(parts, caller) == nullptr) {
    static_cast<void>(claim(parts, caller));
  }
  // A child counts from the first on: that is how it is known to live.
  if (!users_count(parts) && caller.user_id().fork == 0) return 0;
  BreakerUser* const user = record_of(parts, caller);
  if (user == nullptr) return 0;
  return count_in_record(*user, judged);
}

std::uint32_t count_in_record(BreakerUser& user, const Judged& judged) noexcept {
  const std::uint64_t stamp = std::uint64_t{judged.epoch} << 32 | judged.turn;
  for (int round = 0; round < kBreakerRounds; ++round) {
    Word16 seen = load16(&user.now);
    const bool same_epoch = epoch_of(seen.lo) == judged.epoch;
    const std::uint32_t behind = judged.turn - static_cast<std::uint32_t>(seen.lo);
    // A thread that is one turn late counts in the present one.
    const bool present = same_epoch && (behind == 0 || behind == ~0u);
    TurnCounts c = present ? unpack_turn(seen.hi) : TurnCounts{};
    c.calls += 1;
    c.failures += judged.last.failed ? 1 : 0;
    c.slow += judged.last.slow ? 1 : 0;
    CUTWATER_SYNC_POINT("breaker.before_user_count");
    if (!cas16(&user.now, seen, {present ? seen.lo : stamp, pack_turn(c)})) continue;
    if (!present) {
      // relaxed: a count; killed before it, the turn before is one too old.
      const std::uint64_t before = same_epoch && behind == 1 ? seen.hi : 0;
      __atomic_store_n(&user.before, before, __ATOMIC_RELAXED);
    }
    break;
  }
  return count_run(user, judged.epoch, judged.last.failed);
}

void clear_counts(BreakerUser& user, std::uint32_t epoch) noexcept {
  Word16 seen = load16(&user.now);
  if (epoch_of(seen.lo) != epoch) return;
  __atomic_store_n(&user.before, std::uint64_t{0}, __ATOMIC_RELAXED);
  for (int round = 0; round < kBreakerRounds; ++round) {
    if (epoch_of(seen.lo) != epoch) return;
    if (cas16(&user.now, seen, {seen.lo, 0})) return;
  }
}

void tick_users(const BreakerParts& parts, std::int64_t now) noexcept {
  for (std::uint32_t i = 0; i < parts.user_count; ++i) {
    const std::uint64_t owner = load_owner(parts.users[i]);
    if (owner == 0) continue;
    if (is_gone(parts, i, owner, now) || is_second(parts, i, owner)) empty_user(parts.users[i]);
  }
  if (parts.user_count != 0) recount(parts);
}

void forget_users(const BreakerParts& parts) noexcept {
  for (std::uint32_t i = 0; i < parts.user_count; ++i) empty_user(parts.users[i]);
  if (parts.user_count != 0) recount(parts);
}

void join_breaker(const View& view, BreakerRef ref, const BreakerCaller& caller) noexcept {
  BreakerParts parts;
  if (!read_parts(view, ref, parts)) return;
  keep_breaker(parts, caller.local);
  if (own_record(parts, caller) == nullptr) static_cast<void>(claim(parts, caller));
}

std::size_t read_breaker_users(const View& view, std::uint32_t index,
                               BreakerUserInfo (&out)[kBreakerUsers]) noexcept {
  BreakerParts parts;
  if (!read_parts(view, index, parts)) return 0;
  const std::uint32_t epoch = epoch_of(state_of(parts).lo);
  const std::uint32_t turn = present_turn(parts, view.clock.now());
  std::size_t found = 0;
  for (std::uint32_t i = 0; i < parts.user_count; ++i) {
    const UserCounts counts = counts_at(parts, i, epoch, turn);
    if (!counts.present) continue;
    BreakerUserInfo& info = out[found++];
    info = {};
    info.row = owner_row(counts.order);
    info.generation = owner_generation(counts.order);
    info.forked = (counts.order & kForkMask) != 0;
    info.calls = counts.calls;
    info.failures = counts.failures;
    info.slow = counts.slow;
    const UserView own = unpack_view(load16(&parts.users[i].view));
    if (own.epoch != epoch) continue;
    info.run = own.run;
    info.open = own.open;
    info.probing = own.open && own.probing;
    info.attempts = own.attempts;
    info.deadline_ns = own.deadline_ns;
  }
  return found;
}

}  // namespace cutwater::shm
