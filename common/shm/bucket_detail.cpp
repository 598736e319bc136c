// SPDX-License-Identifier: Apache-2.0
#include "shm/bucket_detail.hpp"

namespace cutwater::shm::detail {

FrameStatus read_old_piece(const View& view, const BucketAsk& ask, Frame& frame) noexcept {
  const std::uint16_t pred = read_once(frame.record->pred);
  if (pred != 0 && belongs(view, frame.c, pred, ask.limit.index, kWindow0)) {
    // The change gave the limit a new id: before its moment the old one decides (8.1).
    frame.id = pred;
    frame.record = &view.rule(frame.c, pred);
    frame.f = read_once(frame.record->f) & 63;
    frame.leaving = true;
  }
  frame.piece = read_before(*frame.record);
  frame.next = frame.leaving ? frame.piece : read_after(*frame.record);
  frame.old_piece = true;
  if (frame.t < frame.piece.base_t) {
    // Older than the rule itself: only a stamp read before its publication. A fresh one is not.
    return FrameStatus::ReadClockAgain;
  }
  return FrameStatus::Ready;
}

bool belongs(const View& view, std::uint64_t c, std::uint16_t id, std::uint32_t limit,
             std::uint8_t window) noexcept {
  if (id == 0 || id >= view.rule_count) return false;
  const RuleRecord& record = view.rule(c, id);
  return read_once(record.kind) == static_cast<std::uint8_t>(RuleKind::Token) &&
         read_once(record.limit) == limit && read_once(record.window) == window;
}

Member find_in_group(const View& view, const Frame& frame, std::uint64_t want, std::uint32_t limit,
                     Word16* group) noexcept {
  for (std::size_t i = 0; i < kGroupSlots; ++i) {
    const Word16 word = load16(group + i);
    if ((word.lo & ~kTagRuleMask) != want) continue;
    const std::uint16_t id = rule_of(word.lo);
    if (id == frame.id || belongs(view, frame.c, id, limit, kWindow0)) return {group + i, word};
  }
  return {};
}

Member find_claim(const View& view, const Frame& frame, const Place& place, std::uint32_t limit,
                  Word16* group, std::uint64_t alt) noexcept {
  return find_in_group(view, frame, place.fp_bits | alt | kTagTentative, limit, group);
}

bool tat_of(const View& view, const Frame& frame, std::uint16_t entry_id, Units tat,
            Units& out) noexcept {
  if (entry_id == frame.id ||
      !belongs(view, frame.c, entry_id, read_once(frame.record->limit), kWindow0)) {
    out = tat;
    return true;
  }
  const RuleRecord& theirs = view.rule(frame.c, entry_id);
  if (read_once(theirs.pred) == frame.id)
    return false;  // already converted by a later stamp than mine
  const bool predecessor = read_once(frame.record->pred) == entry_id;
  // A predecessor is read at base_t, where its clock stopped: the result does not depend on when it
  // is converted.
  const rule::Piece piece = predecessor ? read_after(theirs) : read_piece_at(theirs, frame.t);
  const Units n = predecessor ? piece.base_n : rule::units_at(piece, frame.t);
  const Units debt = rule::effective(piece, n, tat) - n;
  const std::uint8_t their_f = read_once(theirs.f) & 63;
  using Wide = unsigned __int128;
  Wide num = 1, den = 1;
  if (predecessor) {
    num = read_once(frame.record->pred_num);
    den = read_once(frame.record->pred_den);
    if (den == 0) den = 1;
  } else if (frame.f >= their_f) {
    num = Wide{1} << (frame.f - their_f);
  } else {
    den = Wide{1} << (their_f - frame.f);
  }
  // debt < 2^62 and num < 2^64: no overflow. Rounded up: against the caller.
  const Wide scaled = (static_cast<Wide>(debt) * num + den - 1) / den;
  const Wide most = Wide{static_cast<std::uint64_t>(frame.piece.reach)};
  out = (predecessor ? frame.record == nullptr ? 0 : read_once(frame.record->base_n) : frame.n) +
        static_cast<Units>(std::min(scaled, most));
  return true;
}

Units overflow_tat(const View& view, const Frame& frame, std::uint32_t limit) noexcept {
  const Word16 word = load16(&view.limits[limit].overflow[kWindow0]);
  if (word.lo == 0) return 0;
  Units tat = 0;
  const auto id = rule_of(word.lo);
  if (id != frame.id && !belongs(view, frame.c, id, limit, kWindow0)) return 0;
  // Under a successor of my rule: as it stands there is beyond my axis; the swap on `current` will
  // start me over.
  if (!tat_of(view, frame, id, static_cast<Units>(word.hi), tat))
    return frame.n + frame.piece.reach;
  return tat;
}

namespace {

void fill_common(const Frame& frame, DecisionData& out) noexcept {
  out.window = kWindow0;
  out.shift = frame.piece.shift;
  out.f = frame.f;
  out.t = frame.t;
  out.mult = frame.piece.mult;
  out.base_t = frame.piece.base_t;
  out.base_n = frame.piece.base_n;
  out.burst = frame.piece.burst;
  out.n = frame.n;
  out.cost = frame.cost;
}

// Before the moment of a change the answer spans two lines: finished at once (at most 100 ms after
// a reload). From the frame alone: behind a swap the image may be another.
void compute_now(const Frame& frame, bool granted, DecisionData& out) noexcept {
  const rule::TokenRule rule{frame.next, frame.piece, frame.piece.base_t, frame.f};
  if (frame.leaving) out.flags |= Decision::kHint;       // the old slope, as if it went on
  const rule::Report report = rule::report(rule, frame.t, frame.n, out.level, frame.cost, granted);
  out.computed = true;
  out.mult = report.remaining;
  out.base_t = report.retry_after_ns;
  out.base_n = report.reset_after_ns;
  out.burst = report.starts_in_ns;
}

}  // namespace

void fill_grant(const Frame& frame, Word16* slot, std::uint64_t tag, Units y,
                DecisionData& out) noexcept {
  out.reason = Reason::Allowed;
  out.flags = 0;
  out.computed = false;
  out.receipt = slot != nullptr ? Receipt::One : Receipt::None;
  out.slot = slot;
  out.tag = tag;
  out.level = y;
  fill_common(frame, out);
  if (frame.old_piece) [[unlikely]] compute_now(frame, true, out);
}

void fill_refusal(const Frame& frame, Units level, DecisionData& out) noexcept {
  out.reason = frame.never ? Reason::Never : Reason::Limit;
  out.flags = 0;
  out.computed = false;
  out.receipt = Receipt::None;
  out.slot = nullptr;
  out.tag = 0;
  out.level = level;
  fill_common(frame, out);
  if (frame.old_piece) [[unlikely]] compute_now(frame, false, out);
}

}  // namespace cutwater::shm::detail
