// SPDX-License-Identifier: Apache-2.0
#include "shm/limit/bucket.hpp"

#include "base/sync_point.hpp"
#include "shm/limit/bucket_detail.hpp"
#include "shm/limit/bucket_fast.hpp"

namespace cutwater::shm {
namespace {

using detail::Attempt;
using detail::Frame;
using detail::FrameStatus;
using detail::Member;
using rule::Units;

enum class Mode : std::uint8_t { Charge, Look };

// An entry beyond N + D is damage: nobody waits longer than the time to empty. The only write a
// refusal may make.
Attempt repair(const View& view, const Frame& frame, Member member) noexcept {
  if (view.current() != frame.c) return Attempt::StartOver;      // judged by another image
  // relaxed: a count, nothing rides on it.
  __atomic_fetch_add(&view.stats_control->damage, 1, __ATOMIC_RELAXED);
  const std::uint64_t tag = (member.word.lo & ~kTagRuleMask) | frame.id;
  const Units n = rule::units_at(frame.piece, view.clock.now());
  cas16(member.slot, member.word, {tag, static_cast<std::uint64_t>(n + frame.piece.burst)});
  return Attempt::StartOver;
}

// Charge of a member whose word is known. Refused: no write. Won: the slice is ours.
template <Mode mode>
[[gnu::always_inline]] inline Attempt charge_member(const View& view, const Frame& frame,
                                                    Member member, DecisionData& out) noexcept {
  const std::uint64_t tag = (member.word.lo & ~kTagRuleMask) | frame.id;
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    auto tat = static_cast<Units>(member.word.hi);
    if (member.word.lo != tag) [[unlikely]] {
      if (!detail::tat_of(view, frame, rule_of(member.word.lo), tat, tat))
        return Attempt::StartOver;
      if (mode == Mode::Charge && !guarded(Guard::ConversionInOneSwap)) {
        cas16(member.slot, member.word, {tag, member.word.hi});
        member.word = {tag, member.word.hi};
      }
    }
    if (tat > frame.n + frame.piece.reach) [[unlikely]] {
      // One more reading of the clock decides: mine may simply be old.
      if (rule::units_at(frame.piece, view.clock.now()) + frame.piece.reach < tat &&
          mode == Mode::Charge) {
        return repair(view, frame, member);
      }
    }
    Units cost;
    const rule::Step step = detail::step_of(frame, frame.n, tat, cost);
    if (!step.granted || frame.never || cost == 0 || mode == Mode::Look) {
      if (mode == Mode::Charge && !step.granted && !guarded(Guard::RefusalWritesNothing)) {
        cas16(member.slot, member.word, {tag, static_cast<std::uint64_t>(step.eff)});
      }
      // A look answers what the charge would have; it owns nothing.
      if (!step.granted || frame.never) {
        detail::fill_refusal(frame, step.eff, out);
      } else {
        detail::fill_grant(frame, nullptr, tag, step.y, cost, out);
      }
      return guarded(Guard::GenerationBeforeSwap) && view.current() != frame.c ? Attempt::StartOver
                                                                               : Attempt::Done;
    }
    // Clock, generation, compute, generation again, swap: a decision of the old image carries an
    // old stamp (I2).
    if (guarded(Guard::GenerationBeforeSwap) && view.current() != frame.c) [[unlikely]]
      return Attempt::StartOver;
    CUTWATER_SYNC_POINT("bucket.before_swap");
    const Word16 next{tag, static_cast<std::uint64_t>(step.y)};
    if (cas16(member.slot, member.word, next)) {
      detail::fill_grant(frame, member.slot, tag, step.y, cost, out);
      return Attempt::Done;
    }
    // Lost. Same entry: compute again with the same stamp, since equal words are equal states.
    // Another: look again.
    if (((member.word.lo ^ tag) & ~kTagRuleMask) != 0) return Attempt::StartOver;
  }
  return Attempt::StartOver;
}

// A key that is not in the table: would a fresh bucket refuse? Then nothing is written (also for
// initial: empty).
template <Mode mode>
Attempt decide_absent(const View& view, const BucketAsk& ask, const Place& place,
                      const Frame& frame, std::uint64_t& hint, DecisionData& out) noexcept {
  const Units debt = detail::overflow_tat(view, frame, ask.limit.index);
  Units cost;
  const rule::Step step = detail::step_of(frame, frame.n, debt, cost);
  if (mode == Mode::Charge && step.granted && !frame.never && cost > 0) {
    Attempt attempt = detail::insert(view, ask, place, frame, hint, out);
    if (attempt == Attempt::NoPlace) attempt = detail::without_place(view, ask, place, frame, out);
    return attempt;
  }
  if (!step.granted || frame.never) {
    detail::fill_refusal(frame, step.eff, out);
    if (!frame.never && detail::refused_by_overflow(frame, debt)) out.flags |= Decision::kOverflow;
  } else {
    detail::fill_grant(frame, nullptr, 0, step.y, cost, out);
  }
  return view.current() == frame.c ? Attempt::Done : Attempt::StartOver;
}

// One attempt with stamp `t`. `hint` first: a resolved key skips the scan, and the swap proves it
// right.
template <Mode mode>
[[gnu::always_inline]] inline Attempt attempt_once(const View& view, const BucketAsk& ask,
                                                   const Frame& frame, std::uint64_t& hint,
                                                   DecisionData& out) noexcept {
  const std::uint64_t fp_bits = fingerprint(ask.key, frame.window) << kFingerprintShift;
  if (hint < view.slot_count) {
    Word16* slot = view.slots + hint;
    const Word16 word = load16(slot);
    if ((word.lo & ~kTagAlt) == (fp_bits | frame.id)) [[likely]] {
      return charge_member<mode>(view, frame, {slot, word}, out);
    }
  }
  const Place place = place_of(view, ask.key, frame.window);
  const Member member = detail::find_member(view, frame, place, ask.limit.index);
  if (member.slot != nullptr) [[likely]] {
    hint = static_cast<std::uint64_t>(member.slot - view.slots);
    return charge_member<mode>(view, frame, member, out);
  }
  return decide_absent<mode>(view, ask, place, frame, hint, out);
}

// Out of attempts: somebody scribbles, or the clock stands. Answered conservatively and counted.
void answer_contended(const View& view, DecisionData& out) noexcept {
  __atomic_fetch_add(&view.stats_control->contention, 1, __ATOMIC_RELAXED);
  out = {};
  out.reason = Reason::Degraded;
  out.flags = Decision::kDegraded | Decision::kHint;
  out.computed = true;
  out.base_t = 1'000'000;                               // hint: 1 ms
}

template <Mode mode>
Outcome decide(const View& view, const BucketAsk& ask, std::int64_t t, std::uint64_t& hint,
               DecisionData& out) noexcept {
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    Frame frame;
    switch (detail::read_frame(view, ask, t, frame)) {
      case FrameStatus::Ready: break;
      case FrameStatus::ReadClockAgain: t = view.clock.now(); continue;
      case FrameStatus::Gone: return Outcome::LimitGone;
      case FrameStatus::Superseded: return Outcome::Superseded;
      case FrameStatus::Changed: return Outcome::Changed;
    }
    if (attempt_once<mode>(view, ask, frame, hint, out) == Attempt::Done) [[likely]]
      return Outcome::Answered;
    hint = kNoSlot;
    t = view.clock.now();
  }
  answer_contended(view, out);
  return Outcome::Answered;
}

}  // namespace

Outcome charge_slow(const View& view, const BucketAsk& ask, std::int64_t t, std::uint64_t& hint,
                    DecisionData& out) noexcept {
  return decide<Mode::Charge>(view, ask, t, hint, out);
}

Outcome charge(const View& view, const BucketAsk& ask, std::uint64_t& hint,
               DecisionData& out) noexcept {
  if (hint >= view.slot_count)
    prefetch(view, ask.key);  // the line comes in while the clock is read
  return charge_at(view, ask, view.clock.now(), hint, out);
}

Outcome charge_at(const View& view, const BucketAsk& ask, std::int64_t t, std::uint64_t& hint,
                  DecisionData& out) noexcept {
  const bool plain = ask.max_wait_ns == 0 && ask.window == 0 && ask.rule == 0 &&
                     ask.take == Take::Cost;
  if (plain && detail::charge_fast(view, ask.limit, ask.key, ask.cost, t, hint, out)) [[likely]] {
    return Outcome::Answered;
  }
  return decide<Mode::Charge>(view, ask, t, hint, out);
}

Outcome look_at(const View& view, const BucketAsk& ask, std::int64_t t, std::uint64_t& hint,
                DecisionData& out) noexcept {
  return decide<Mode::Look>(view, ask, t, hint, out);
}

Outcome look(const View& view, const BucketAsk& ask, std::uint64_t& hint,
             DecisionData& out) noexcept {
  return look_at(view, ask, view.clock.now(), hint, out);
}

bool undo(const View&, const DecisionData& receipt) noexcept {
  auto* slot = static_cast<Word16*>(receipt.slot);
  if (slot == nullptr) return false;
  const auto y = static_cast<std::uint64_t>(receipt.level);
  const auto before = static_cast<std::uint64_t>(receipt.level - receipt.cost);
  Word16 expected{receipt.tag, y};
  if (!guarded(Guard::UndoNeedsReceipt)) {
    expected = load16(slot);
    return cas16(slot, expected,
                 {expected.lo, expected.hi - static_cast<std::uint64_t>(receipt.cost)});
  }
  return cas16(slot, expected, {receipt.tag, before});
}

Outcome credit_window(const View& view, const BucketAsk& ask, std::uint64_t tokens,
                      bool& had_debt) noexcept {
  had_debt = false;
  for (int attempt = 0; attempt < kMaxAttempts; ++attempt) {
    Frame frame;
    switch (detail::read_frame(view, ask, view.clock.now(), frame)) {
      case FrameStatus::Ready: break;
      case FrameStatus::ReadClockAgain: continue;
      case FrameStatus::Gone: return Outcome::LimitGone;
      case FrameStatus::Superseded: return Outcome::Superseded;
      case FrameStatus::Changed: return Outcome::Changed;
    }
    const Place place = place_of(view, ask.key, frame.window);
    Member member = detail::find_member(view, frame, place, ask.limit.index);
    if (member.slot == nullptr) {
      if (view.current() != frame.c) continue;
      return Outcome::Answered;
    }
    Units tat = 0;
    if (!detail::tat_of(view, frame, rule_of(member.word.lo), static_cast<Units>(member.word.hi),
                        tat))
      continue;
    // What is owed at most is within reach: a credit beyond it is a full bucket.
    const Units owed = std::max<Units>(0, rule::effective(frame.piece, frame.n, tat) - frame.n);
    const bool all = tokens > static_cast<std::uint64_t>(owed) >> frame.f;
    const Units less = all ? owed : static_cast<Units>(tokens << frame.f);
    Units next = frame.n + owed - less;
    if (!guarded(Guard::CreditNotBelowFull)) next = tat - static_cast<Units>(tokens << frame.f);
    // The entry stays: a full bucket carries no information, and the place can be taken by whoever
    // comes next.
    const std::uint64_t tag = (member.word.lo & ~kTagRuleMask) | frame.id;
    if (view.current() != frame.c) continue;
    if (cas16(member.slot, member.word, {tag, static_cast<std::uint64_t>(next)})) {
      had_debt = tat > frame.n;
      return Outcome::Answered;
    }
  }
  return Outcome::Answered;
}

bool reset(const View& view, LimitRef limit, KeyHash key) noexcept {
  const BucketAsk ask{.limit = limit, .key = key};
  bool had_debt = false;
  (void)credit_window(view, ask, kMaxCost * 4, had_debt);
  return had_debt;
}

void prefetch(const View& view, KeyHash key) noexcept {
  const std::uint64_t fp = fingerprint(key, detail::kWindow0);
  const Word16* group = view.slots + first_group(view, mulhi(key.lo, view.g0), fp) * kGroupSlots;
  __builtin_prefetch(group + (fp & 3) * kLineSlots, 1);
}

LimitRef find_limit(const View& view, std::string_view name) noexcept {
  for (int attempt = 0; attempt < 8; ++attempt) {       // a reload in between: at most ten a second
    const std::uint64_t c = view.current();
    LimitRef found{kNoLimit, 0};
    for (std::uint32_t i = 0; i < view.limit_count; ++i) {
      const LimitConfig& config = view.limit_config(c, i);
      if (read_once(config.windows) == 0) continue;
      const NameRecord& record = view.limit_name(c, i);
      const std::size_t length = read_once(record.length);
      if (length != name.size() || length > sizeof record.text) continue;
      if (std::string_view{record.text, length} != name) continue;
      found = {i, read_once(config.incarnation)};
      break;
    }
    if (view.current() == c) return found;
  }
  return {kNoLimit, 0};
}

}  // namespace cutwater::shm
