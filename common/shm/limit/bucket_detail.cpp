// SPDX-License-Identifier: Apache-2.0
#include "shm/limit/bucket_detail.hpp"

namespace cutwater::shm::detail {

FrameStatus read_old_piece(const View& view, const BucketAsk& ask, Frame& frame) noexcept {
  const std::uint16_t pred = read_once(frame.record->pred);
  if (pred != 0 && belongs(view, frame.c, pred, ask.limit.index, ask.window)) {
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

FrameStatus read_other_kind(const View& view, Frame& frame) noexcept {
  const CalendarRecord* calendar = is_kind(*frame.record, RuleKind::Calendar)
                                       ? calendar_of(view, frame.c, *frame.record)
                                       : nullptr;
  if (calendar == nullptr) {
    // Written over while it was read, or really no bucket.
    return view.current() == frame.c ? FrameStatus::Gone : FrameStatus::ReadClockAgain;
  }
  if (frame.t < read_once(calendar->valid_from)) return FrameStatus::ReadClockAgain;
  frame.calendar = true;
  frame.n = steps_at(*calendar, frame.piece, frame.t);
  // No debt outlives its period: whatever an answer waits for comes with the next edge.
  frame.next_edge = step_when(*calendar, frame.piece, frame.n + 1);
  frame.extrapolated = is_extrapolated(*calendar, frame.t);
  return FrameStatus::Ready;
}

void read_take(const BucketAsk& ask, Frame& frame) noexcept {
  frame.never = false;
  // The bound of a debt; more cannot be taken at once, so the cost never overflows.
  const std::uint64_t debt_tokens = read_once(frame.record->max_debt);
  const auto burst = static_cast<std::uint64_t>(frame.piece.burst);
  const std::uint64_t burst_tokens = burst >> frame.f;
  const std::uint64_t debt = debt_tokens == 0 ? burst_tokens : debt_tokens;
  frame.reserve = ask.take == Take::Rest ? 0 : static_cast<Units>(debt << frame.f);
  const Units within_reach = frame.piece.reach - frame.piece.burst;
  frame.reserve = std::max<Units>(0, std::min(frame.reserve, within_reach));
  frame.cost = static_cast<Units>(std::min(ask.cost, burst_tokens + debt + 1) << frame.f);
}

rule::Step step_beyond(const Frame& frame, Units n, Units tat, Units& cost) noexcept {
  const Units eff = rule::effective(frame.piece, n, tat);
  const Units room = std::max<Units>(0, frame.piece.burst + frame.reserve - (eff - n));
  if (frame.take == Take::Rest) {
    cost = room;
  } else if (guarded(Guard::DebtBounded)) {
    cost = std::min(frame.cost, (room >> frame.f) << frame.f);   // whole tokens
  }
  return {n, eff, eff + cost, true};
}

bool belongs(const View& view, std::uint64_t c, std::uint16_t id, std::uint32_t limit,
             std::uint8_t window) noexcept {
  if (id == 0 || id >= view.rule_count) return false;
  const RuleRecord& record = view.rule(c, id);
  return guarded(Guard::OverrideSharesPlace) && is_bucket_kind(record) &&
         read_once(record.limit) == limit && read_once(record.window) == window;
}

Member find_in_group(const View& view, const Frame& frame, std::uint64_t want, std::uint32_t limit,
                     Word16* group) noexcept {
  for (std::size_t i = 0; i < kGroupSlots; ++i) {
    const Word16 word = load16(group + i);
    if ((word.lo & ~kTagRuleMask) != want) continue;
    const std::uint16_t id = rule_of(word.lo);
    if (id == frame.id || belongs(view, frame.c, id, limit, frame.window)) return {group + i, word};
  }
  return {};
}

Member find_claim(const View& view, const Frame& frame, const Place& place, std::uint32_t limit,
                  Word16* group, std::uint64_t alt) noexcept {
  return find_in_group(view, frame, place.fp_bits | alt | kTagTentative, limit, group);
}

namespace {

Units scaled(Units debt, std::uint64_t num, std::uint64_t den, Units shift, Units most) noexcept {
  const Units owed = rule::convert_debt(debt, num, den);
  // as-is under a new id: a larger burst is lacking as much more (the shift is within the burst).
  return std::clamp<Units>(owed + shift, 0, std::max<Units>(most, 0));
}

// An entry of a rule whose clock stopped when `heir` took over: moved to the heir's axis at that
// moment, so the result does not depend on when it is converted.
Units to_successor(const View& view, const Frame& frame, const RuleRecord& stopped,
                   const RuleRecord& heir, Units tat) noexcept {
  const rule::Piece piece = read_after(stopped);
  const Units owed = rule::effective(piece, piece.base_n, tat) - piece.base_n;
  const std::int64_t moment = guarded(Guard::ConvertAtChangeMoment) ? piece.base_t : frame.t;
  const rule::Piece next = read_piece_at(heir, moment);
  return clock_at(view, frame.c, heir, next, moment) +
         scaled(owed, read_once(heir.pred_num), read_once(heir.pred_den),
                read_once(heir.pred_shift), next.reach);
}

// From the axis of a rule with another rate of the same window, at the frame's stamp: the debt
// stays.
Units to_frame(const View& view, const Frame& frame, const RuleRecord& theirs,
               Units tat) noexcept {
  const rule::Piece piece = read_piece_at(theirs, frame.t);
  const Units n = clock_at(view, frame.c, theirs, piece, frame.t);
  // Full by its own rule: as if it were not there. What keys without an entry lack says my own
  // rule.
  if (tat <= rule::full_at(piece, n)) return frame.n;
  const Units owed = tat - n;
  const unsigned their_f = read_once(theirs.f) & 63;
  const std::uint64_t num = frame.f >= their_f ? std::uint64_t{1} << (frame.f - their_f) : 1;
  const std::uint64_t den = frame.f >= their_f ? 1 : std::uint64_t{1} << (their_f - frame.f);
  return frame.n + scaled(owed, num, den, 0, frame.piece.reach);
}

}  // namespace

bool tat_of(const View& view, const Frame& frame, std::uint16_t entry_id, Units tat,
            Units& out) noexcept {
  out = tat;
  const std::uint32_t limit = read_once(frame.record->limit);
  if (entry_id == frame.id || !belongs(view, frame.c, entry_id, limit, frame.window)) return true;
  const RuleRecord* theirs = &view.rule(frame.c, entry_id);
  if (read_once(theirs->pred) == frame.id)
    return false;  // already converted by a later stamp than mine
  const bool mine = read_once(frame.record->pred) == entry_id;
  const std::uint16_t heir = mine ? frame.id : read_once(theirs->succ);
  const bool stopped = heir != 0 && frame.t >= read_once(theirs->base_t);
  if (stopped && guarded(Guard::PredecessorFirst) &&
      belongs(view, frame.c, heir, limit, frame.window)) {
    const RuleRecord* successor = &view.rule(frame.c, heir);
    out = to_successor(view, frame, *theirs, *successor, tat);
    if (heir == frame.id) return true;
    theirs = successor;
  }
  out = to_frame(view, frame, *theirs, out);
  return true;
}

Units overflow_tat(const View& view, const Frame& frame, std::uint32_t limit) noexcept {
  const Word16 word = load16(&view.limits[limit].overflow[frame.window]);
  if (word.lo == 0) return 0;
  Units tat = 0;
  const auto id = rule_of(word.lo);
  if (id != frame.id && !belongs(view, frame.c, id, limit, frame.window)) return 0;
  // Under a successor of my rule: as it stands there is beyond my axis; the swap on `current` will
  // start me over.
  if (!tat_of(view, frame, id, static_cast<Units>(word.hi), tat))
    return frame.n + frame.piece.reach;
  return tat;
}

namespace {

void fill_common(const Frame& frame, DecisionData& out) noexcept {
  out.window = frame.window;
  out.shift = frame.piece.shift;
  out.f = frame.f;
  out.t = frame.t;
  out.mult = frame.piece.mult;
  out.base_t = frame.piece.base_t;
  out.base_n = frame.piece.base_n;
  out.burst = frame.piece.burst;
  out.n = frame.n;
}

// A calendar: whatever is waited for comes with the next edge.
void compute_calendar(const Frame& frame, bool granted, DecisionData& out) noexcept {
  const rule::Piece& piece = frame.piece;
  const std::int64_t to_edge = frame.next_edge == rule::kNeverNs
                                   ? rule::kNeverNs
                                   : std::max<std::int64_t>(1, frame.next_edge - frame.t);
  const Units owed = out.level - frame.n;
  if (frame.extrapolated) out.flags |= Decision::kExtrapolated;
  if (frame.old_piece) out.flags |= Decision::kHint;     // edges of a rule about to change
  out.computed = true;
  out.mult = owed >= piece.burst ? 0 : static_cast<std::uint64_t>(piece.burst - owed) >> frame.f;
  out.base_t = 0;
  out.base_n = owed > 0 ? to_edge : 0;
  out.burst = 0;
  if (granted) return;
  out.base_t = frame.never ? rule::kNeverNs : to_edge;
}

// Before the moment of a change the answer spans two lines: finished at once (at most 100 ms after
// a reload). From the frame alone: behind a swap the image may be another.
void compute_now(const Frame& frame, bool granted, DecisionData& out) noexcept {
  const rule::TokenRule rule{frame.next, frame.piece, frame.piece.base_t, frame.f};
  if (frame.leaving) out.flags |= Decision::kHint;       // the old slope, as if it went on
  const rule::Report report = rule::report(rule, frame.t, frame.n, out.level, out.cost, granted);
  out.computed = true;
  out.mult = report.remaining;
  out.base_t = report.retry_after_ns;
  out.base_n = report.reset_after_ns;
  out.burst = report.starts_in_ns;
}

}  // namespace

void fill_grant(const Frame& frame, Word16* slot, std::uint64_t tag, Units y, Units cost,
                DecisionData& out) noexcept {
  out.reason = Reason::Allowed;
  out.flags = 0;
  out.computed = false;
  out.receipt = slot != nullptr ? Receipt::One : Receipt::None;
  out.slot = slot;
  out.tag = tag;
  out.level = y;
  out.cost = cost;
  fill_common(frame, out);
  if (frame.calendar) [[unlikely]] return compute_calendar(frame, true, out);
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
  out.cost = frame.cost;
  fill_common(frame, out);
  if (frame.calendar) [[unlikely]] return compute_calendar(frame, false, out);
  if (frame.old_piece) [[unlikely]] compute_now(frame, false, out);
}

}  // namespace cutwater::shm::detail
