// SPDX-License-Identifier: Apache-2.0
// First sight of a key (spec memory 6.4, model tests/model/insert).
//
//   1 clock (judges what may be replaced; an old reading only replaces less). Scan: a member ->
//     charge it;
//     a claim of this tag, also a dead or stopped one's -> adopt it; else choose a victim and swap
//       it to my claim.
//   2 rescan both groups: a member, or a claim at a lower address -> withdraw mine, start over;
//     a claim at a higher address -> swap it to {0,0}.
//   3 clock again, THEN the overflow word; `current` unchanged; then swap the exact claim to {tag,
//     y}.
//
// I8: the reading that starts a bucket comes after the rescan and before the promotion. Any earlier
// member of this key was overwritten before the rescan read its slot, by a reading older than t2,
// so N(t2) >= its tat; and while my claim stays no other member can arise. With only the first
// reading 3416 of 40 000 random schedules exceed the bound, with one after the first scan 72, after
// the claim 3, after the rescan 0.
// Claims differ by a nonce: else a stopped inserter promotes somebody else's claim with its old
// clock. Killed after 1: a claim that anybody adopts, or overwrites at its deadline (1.05-2.1 ms).
// After 3: a whole bucket. Where names of keys are kept (key_name.hpp) the name follows the
// promotion; a kill before it leaves a bucket without one.
#include "base/fork_page.hpp"
#include "base/sync_point.hpp"
#include "rule/limit_settings.hpp"
#include "shm/limit/bucket_detail.hpp"
#include "shm/limit/key_name.hpp"

namespace cutwater::shm::detail {
namespace {

constexpr std::uint64_t kNonceMask = (std::uint64_t{1} << kClaimNonceBits) - 1;

std::uint64_t make_claim(std::int64_t t) noexcept {
  const auto deadline =
      (static_cast<std::uint64_t>(t) >> kClaimTickShift) + 2;  // the second edge after t
  const std::uint64_t nonce =
      guarded(Guard::InsertClaimNonce) ? next_claim_nonce() & kNonceMask : 1;
  return deadline << kClaimNonceBits | nonce;
}

bool claim_expired(std::uint64_t claim, std::int64_t t) noexcept {
  return claim >> kClaimNonceBits <= static_cast<std::uint64_t>(t) >> kClaimTickShift;
}

// I7: what may be overwritten at `t`. Each entry is judged by its own rule id; an unknown one
// counts as full (the caller reads `current` again before it swaps). Remembers the last rule:
// neighbours often share it.
class Judge {
 public:
  Judge(const View& view, std::uint64_t c, std::uint16_t asker, std::int64_t t) noexcept
      : view_(view), c_(c), asker_(asker), t_(t) {}

  bool overwritable(Word16 word) noexcept {
    if (word.lo == 0) return true;
    if (is_claim(word.lo)) return claim_expired(word.hi, t_);
    const std::uint16_t id = guarded(Guard::JudgedByOwnRule) ? rule_of(word.lo) : asker_;
    if (id == kBanRuleId) return static_cast<std::int64_t>(word.hi) <= t_;
    if (id != id_) {
      id_ = id;
      known_ = id < view_.rule_count && is_bucket_kind(view_.rule(c_, id));
      full_ = known_ ? full_level(view_, c_, view_.rule(c_, id), t_) : 0;
    }
    return !known_ || static_cast<Units>(word.hi) <= full_;
  }

 private:
  const View& view_;
  std::uint64_t c_;
  std::uint16_t asker_;
  std::int64_t t_;
  std::uint16_t id_ = 0;
  bool known_ = false;
  Units full_ = 0;
};

struct Choice {
  Member victim;
  int overwritable = 0;
};

Choice choose_in(Judge& judge, Word16* group, std::uint32_t line) noexcept {
  Choice choice;
  for (std::size_t i = 0; i < kGroupSlots; ++i) {
    Word16* slot = group + (line * kLineSlots + i) % kGroupSlots;
    const Word16 word = load16(slot);
    if (!judge.overwritable(word)) continue;
    if (choice.overwritable++ == 0) choice.victim = {slot, word};
  }
  return choice;
}

// What step 1 found or made: my claim as it stands in memory.
struct Claim {
  Member own;
  std::uint64_t tag = 0;                         // of the claim, with alt and tentative
  Attempt attempt = Attempt::Done;
};

Claim adopt_or_claim(const View& view, const BucketAsk& ask, const Place& place,
                     const Frame& frame) noexcept {
  const std::int64_t t1 = view.clock.now();
  const std::uint32_t limit = ask.limit.index;
  if (find_member(view, frame, place, limit).slot != nullptr) return {{}, 0, Attempt::StartOver};
  for (const std::uint64_t alt : {std::uint64_t{0}, kTagAlt}) {
    const Member claim =
        find_claim(view, frame, place, limit, alt == 0 ? place.first : place.other, alt);
    if (claim.slot != nullptr) return {claim, claim.word.lo, Attempt::Done};
  }
  const Vacancy chosen = find_vacancy(view, frame.c, frame.id, place, t1);
  if (chosen.victim.slot == nullptr)
    return {{}, 0, view.current() == frame.c ? Attempt::NoPlace : Attempt::StartOver};
  if (view.current() != frame.c) return {{}, 0, Attempt::StartOver};
  CUTWATER_SYNC_POINT("insert.before_claim");
  const Word16 claim{place.fp_bits | chosen.alt | kTagTentative | frame.id, make_claim(t1)};
  Word16 seen = chosen.victim.word;
  if (!cas16(chosen.victim.slot, seen, claim)) return {{}, 0, Attempt::StartOver};
  return {{chosen.victim.slot, claim}, claim.lo, Attempt::Done};
}

void withdraw(Member own) noexcept { cas16(own.slot, own.word, {0, 0}); }

// Step 2. False: mine was withdrawn, or somebody else's is ahead: start over.
bool rescan(const View& view, const Frame& frame, const Place& place, std::uint32_t limit,
            Member own) noexcept {
  for (const std::uint64_t alt : {std::uint64_t{0}, kTagAlt}) {
    Word16* group = alt == 0 ? place.first : place.other;
    for (std::size_t i = 0; i < kGroupSlots; ++i) {
      Word16* slot = group + i;
      if (slot == own.slot) continue;
      for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
        Word16 word = load16(slot);
        const std::uint64_t fields = word.lo & ~(kTagRuleMask | kTagTentative);
        const std::uint16_t id = rule_of(word.lo);
        const bool mine = fields == (place.fp_bits | alt) &&
                          (id == frame.id || belongs(view, frame.c, id, limit, frame.window));
        if (!mine) break;
        if (is_claim(word.lo) && !guarded(Guard::InsertLowerAddressWins)) break;
        if (!is_claim(word.lo) || slot < own.slot) {
          withdraw(own);
          return false;
        }
        if (cas16(slot, word, {0, 0})) break;  // a claim above mine; lost: read that slot again
      }
    }
  }
  return true;
}

// For people, as far as they may see it.
[[gnu::cold]] void keep_name(const View& view, const BucketAsk& ask, std::uint64_t c,
                             std::uint64_t slot, std::uint64_t tag) noexcept {
  const LimitConfig& config = view.limit_config(c, ask.limit.index);
  if (read_once(config.show_keys) != static_cast<std::uint8_t>(rule::ShowKeys::Shown)) return;
  remember_key(view, slot, tag, ask.text);
}

}  // namespace

Vacancy find_vacancy(const View& view, std::uint64_t c, std::uint16_t asker, const Place& place,
                     std::int64_t t) noexcept {
  Judge judge(view, c, asker, t);
  const Choice first = choose_in(judge, place.first, place.line);
  if (first.overwritable >= 2) return {first.victim, 0};
  const Choice other = choose_in(judge, place.other, place.line);
  if (other.overwritable > first.overwritable) return {other.victim, kTagAlt};
  return {first.victim, 0};
}

Attempt insert(const View& view, const BucketAsk& ask, const Place& place, const Frame& miss,
               std::uint64_t& hint, DecisionData& out) noexcept {
  const Claim claim = adopt_or_claim(view, ask, place, miss);
  if (claim.attempt != Attempt::Done) return claim.attempt;
  CUTWATER_SYNC_POINT("insert.after_claim");
  std::int64_t t2 = miss.t;
  if (!guarded(Guard::InsertSecondClock)) t2 = miss.t;
  if (guarded(Guard::InsertRescan) && !rescan(view, miss, place, ask.limit.index, claim.own)) {
    return Attempt::StartOver;
  }
  CUTWATER_SYNC_POINT("insert.after_rescan");
  if (guarded(Guard::InsertSecondClock)) t2 = view.clock.now();
  Frame frame;
  const FrameStatus status = read_frame(view, ask, t2, frame);
  if (status != FrameStatus::Ready || frame.c != miss.c || frame.id != miss.id) {
    withdraw(claim.own);
    return Attempt::StartOver;
  }
  // After the reading, not before it: a charge of the overflow word that my scan could not see is
  // seen here (I9).
  const Units debt =
      guarded(Guard::InsertReadsOverflow) ? overflow_tat(view, frame, ask.limit.index) : 0;
  Units cost;
  const rule::Step step = step_of(frame, frame.n, debt, cost);
  if (view.current() != frame.c) {               // what was computed may be of two images
    withdraw(claim.own);
    return Attempt::StartOver;
  }
  if (!step.granted || cost == 0) {
    withdraw(claim.own);
    if (step.granted) {                          // nothing is left to take: it owns nothing
      fill_grant(frame, nullptr, 0, step.y, 0, out);
      return Attempt::Done;
    }
    fill_refusal(frame, step.eff, out);
    if (refused_by_overflow(frame, debt)) out.flags |= Decision::kOverflow;
    return Attempt::Done;
  }
  CUTWATER_SYNC_POINT("insert.before_promotion");
  const std::uint64_t tag = (claim.tag & ~(kTagTentative | kTagRuleMask)) | frame.id;
  const Word16 member{tag, static_cast<std::uint64_t>(step.y)};
  Word16 expected = claim.own.word;
  if (!guarded(Guard::InsertExactPromotion)) expected = load16(claim.own.slot);
  if (!cas16(claim.own.slot, expected, member))
    return Attempt::StartOver;  // adopted, killed or reused
  hint = static_cast<std::uint64_t>(claim.own.slot - view.slots);
  if (view.key_names != nullptr) [[unlikely]] keep_name(view, ask, frame.c, hint, tag);
  fill_grant(frame, claim.own.slot, tag, step.y, cost, out);
  return Attempt::Done;
}

}  // namespace cutwater::shm::detail
