// SPDX-License-Identifier: Apache-2.0
// Bans: entries of rule kBanRuleId in the bucket table, {tag, end}. Written by the segment's owner
// alone, so one swap puts an entry: no second inserter of the same tag is there to race with.
#include <algorithm>

#include "base/sync_point.hpp"
#include "shm/limit/admit.hpp"
#include "shm/limit/bucket_detail.hpp"

namespace cutwater::shm {
namespace {

Place ban_place(const View& view, KeyHash key) noexcept { return place_of(view, key, kBanWindow); }

/// The entry of the key, or nullptr.
Word16* find_ban(const Place& place) noexcept {
  std::uint64_t tag = place.fp_bits | kBanRuleId;
  Word16* found = scan_group(place.first, place.line, tag, ~std::uint64_t{0});
  if (found != nullptr) return found;
  tag |= kTagAlt;
  return scan_group(place.other, place.line, tag, ~std::uint64_t{0});
}

bool is_there(const View& view, LimitRef limit) noexcept {
  if (limit.index >= view.limit_count) return false;
  const LimitConfig& config = view.limit_config(view.current(), limit.index);
  return read_once(config.windows) != 0 && read_once(config.incarnation) == limit.incarnation;
}

/// Puts the entry where something may be overwritten: the emptier group, as every insert does.
bool put_ban(const View& view, const Place& place, std::int64_t until) noexcept {
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    const std::uint64_t c = view.current();
    const detail::Vacancy vacancy =
        detail::find_vacancy(view, c, kBanRuleId, place, view.clock.now());
    if (vacancy.victim.slot == nullptr) return false;
    if (view.current() != c) continue;                   // judged by another image
    const Word16 entry{place.fp_bits | vacancy.alt | kBanRuleId, static_cast<std::uint64_t>(until)};
    Word16 seen = vacancy.victim.word;
    CUTWATER_SYNC_POINT("ban.before_entry");
    if (cas16(vacancy.victim.slot, seen, entry)) return true;
  }
  return false;
}

/// Replaces the end of an entry that is there. False: it is gone.
bool move_ban(Word16* slot, std::int64_t until) noexcept {
  Word16 seen = load16(slot);
  const std::uint64_t tag = seen.lo;
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    if (seen.lo != tag || rule_of(tag) != kBanRuleId || is_claim(tag)) return false;
    if (cas16(slot, seen, {tag, static_cast<std::uint64_t>(until)})) return true;
  }
  return false;
}

}  // namespace

BanAnswer ban(const View& view, LimitRef limit, KeyHash key, std::int64_t until_ns) noexcept {
  BanAnswer answer;
  if (!is_there(view, limit)) return {BanOutcome::LimitGone, false};
  const auto until = static_cast<std::uint64_t>(std::max<std::int64_t>(until_ns, 1));
  std::uint64_t* word = &view.limits[limit.index].bans_until;
  const auto raise = [&] {
    const std::uint64_t before = __atomic_load_n(word, __ATOMIC_RELAXED);   // one writer
    answer.announce = before == 0;
    // seq_cst: before the entry's swap, and seen by whoever looks after the act was answered.
    if (before < until) __atomic_store_n(word, until, __ATOMIC_SEQ_CST);
  };
  if (guarded(Guard::BansUntilRaisedFirst)) raise();
  CUTWATER_SYNC_POINT("ban.after_raise");
  const Place place = ban_place(view, key);
  Word16* there = find_ban(place);
  const bool moved = there != nullptr && move_ban(there, static_cast<std::int64_t>(until));
  if (!moved && !put_ban(view, place, static_cast<std::int64_t>(until))) {
    answer.outcome = BanOutcome::NoPlace;
  }
  CUTWATER_SYNC_POINT("ban.after_entry");
  if (!guarded(Guard::BansUntilRaisedFirst)) raise();
  return answer;
}

bool unban(const View& view, LimitRef limit, KeyHash key) noexcept {
  if (!is_there(view, limit)) return false;
  Word16* there = find_ban(ban_place(view, key));
  if (there == nullptr) return false;
  const bool held = static_cast<std::int64_t>(load16(there).hi) > view.clock.now();
  return move_ban(there, 0) && held;
}

std::int64_t banned_until(const View& view, LimitRef limit, KeyHash key, std::int64_t t) noexcept {
  if (limit.index >= view.limit_count) return 0;
  // acquire: pairs with the store of ban(), so the entry put after it is seen.
  const auto last = __atomic_load_n(&view.limits[limit.index].bans_until, __ATOMIC_ACQUIRE);
  if (static_cast<std::int64_t>(last) <= t) [[likely]] return 0;
  const Place place = ban_place(view, key);
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    Word16* there = find_ban(place);
    if (there == nullptr) return 0;
    const Word16 word = load16(there);
    if ((word.lo & ~kTagAlt) != (place.fp_bits | kBanRuleId)) continue;
    const auto until = static_cast<std::int64_t>(word.hi);
    return until > t ? until : 0;
  }
  return 0;
}

bool clear_bans(const View& view) noexcept {
  const auto now = static_cast<std::uint64_t>(std::max<std::int64_t>(view.clock.now(), 0));
  bool cleared = false;
  for (std::uint32_t index = 0; index < view.limit_count; ++index) {
    std::uint64_t* word = &view.limits[index].bans_until;
    const std::uint64_t until = __atomic_load_n(word, __ATOMIC_RELAXED);    // one writer
    if (until == 0 || until > now) continue;
    __atomic_store_n(word, std::uint64_t{0}, __ATOMIC_RELEASE);
    cleared = true;
  }
  return cleared;
}

}  // namespace cutwater::shm
