// SPDX-License-Identifier: Apache-2.0
// What the three bucket files share: the frame of one attempt,
// the look-up of a member, and how an answer is filled. Not for anybody else.
#pragma once
#include "shm/limit/bucket.hpp"
#include "shm/limit/bucket_table.hpp"
#include "shm/limit/rule_reader.hpp"

namespace cutwater::shm::detail {

using rule::Units;

inline constexpr std::uint8_t kWindow0 = 0;  // the window of a plain limit

/// Everything one attempt knows: read in the order clock, generation, rule; then only computed
/// with.
struct Frame {
  std::int64_t t = 0;                    ///< the stamp
  std::uint64_t c = 0;                   ///< `current` when the rule was read
  const RuleRecord* record = nullptr;
  rule::Piece piece;                     ///< the line of the rule that holds at t
  rule::Piece next;                      ///< with old_piece: the line that follows it
  Units n = 0;                           ///< N(t)
  Units cost = 0;                        ///< units
  Units reserve = 0;  ///< units beyond the burst a waiting caller may owe: N(t+wait) - N(t)
  std::uint16_t id = 0;                  ///< rule id, chosen by the stamp
  std::uint8_t f = 0;
  std::uint8_t on_full = 0;
  std::uint8_t window = 0;
  Take take = Take::Cost;
  bool calendar = false;                 ///< the clock goes in steps, the next of them ...
  bool extrapolated = false;             ///< ... behind the last known edge
  std::int64_t next_edge = 0;            ///< ... at this moment
  bool old_piece = false;                ///< t lies before the rule's last change
  bool leaving = false;  ///< ... and that change gave it a new id: due times are hints
  bool never = false;                    ///< cost over the burst
};

enum class FrameStatus : std::uint8_t { Ready, ReadClockAgain, Gone, Superseded, Changed };

/// Rare half of read_frame: t lies before the rule's last change. Chooses line or id by the stamp.
FrameStatus read_old_piece(const View& view, const BucketAsk& ask, Frame& frame) noexcept;
/// Rare half of read_frame: the clock of another kind of rule than Token.
FrameStatus read_other_kind(const View& view, Frame& frame) noexcept;
/// Rare half of read_frame: what Take::Most and Take::Rest ask for, in units.
void read_take(const BucketAsk& ask, Frame& frame) noexcept;

/// Reads the limit's rule for stamp `t`, which was read before: clock, generation, rule.
[[gnu::always_inline]] inline FrameStatus read_frame(const View& view, const BucketAsk& ask,
                                                     std::int64_t t, Frame& frame) noexcept {
  frame.c = view.current();
  frame.t = t;
  frame.window = ask.window;
  frame.take = ask.take;
  if ((frame.c & kCurrentSupersededBit) != 0) [[unlikely]] return FrameStatus::Superseded;
  if (ask.expect != 0 && ask.expect != frame.c) [[unlikely]] return FrameStatus::Changed;
  if (ask.limit.index >= view.limit_count) [[unlikely]] return FrameStatus::Gone;
  const LimitConfig& config = view.limit_config(frame.c, ask.limit.index);
  if (read_once(config.windows) == 0 || read_once(config.incarnation) != ask.limit.incarnation)
      [[unlikely]] {
    return view.current() == frame.c ? FrameStatus::Gone : FrameStatus::ReadClockAgain;
  }
  frame.id = ask.rule != 0 ? ask.rule : read_once(config.rule[ask.window]);
  frame.on_full = read_once(config.on_full);
  if (frame.id >= view.rule_count) [[unlikely]] return FrameStatus::Gone;
  frame.record = &view.rule(frame.c, frame.id);
  frame.f = read_once(frame.record->f) & 63;
  frame.piece = read_after(*frame.record);
  if (t < frame.piece.base_t && guarded(Guard::OldPieceBeforeBase)) [[unlikely]] {
    const FrameStatus status = read_old_piece(view, ask, frame);
    if (status != FrameStatus::Ready) return status;
  }
  frame.n = rule::units_at(frame.piece, t);
  if (!is_kind(*frame.record, RuleKind::Token)) [[unlikely]] {
    const FrameStatus status = read_other_kind(view, frame);
    if (status != FrameStatus::Ready) return status;
  }
  const std::uint64_t burst_tokens = static_cast<std::uint64_t>(frame.piece.burst) >> frame.f;
  frame.never = ask.cost > burst_tokens;
  // A cost over the burst is never there (L6); burst + 1 stands for all of them, so that nothing
  // overflows.
  frame.cost = static_cast<Units>((frame.never ? burst_tokens + 1 : ask.cost) << frame.f);
  if (ask.take != Take::Cost) [[unlikely]] read_take(ask, frame);
  // Nobody stands in line for a calendar edge: all who wait would start at one moment.
  if (ask.max_wait_ns > 0 && !frame.calendar) [[unlikely]] {
    const auto most = static_cast<std::int64_t>(read_once(config.max_wait_ns));
    const std::int64_t until = t + std::min(ask.max_wait_ns, most);
    frame.reserve = rule::units_at(read_piece_at(*frame.record, until), until) - frame.n;
  }
  return FrameStatus::Ready;
}

/// True when rule `id` of the image belongs to this limit and window, and to a bucket.
bool belongs(const View& view, std::uint64_t c, std::uint16_t id, std::uint32_t limit,
             std::uint8_t window) noexcept;

/// A member as found: its slot and the exact word.
struct Member {
  Word16* slot = nullptr;
  Word16 word;
};

/// N(t) by the frame alone, for t at or after its stamp: of a calendar at most one step on.
inline Units clock_of(const Frame& frame, std::int64_t t) noexcept {
  if (frame.calendar) [[unlikely]] {
    return t >= frame.next_edge ? frame.n + static_cast<Units>(frame.piece.mult) : frame.n;
  }
  return rule::units_at(frame.piece, t);
}

/// One charge of what the frame asks for, by an entry of `tat` at N = n. `cost`: units it takes,
/// which Take::Most and Take::Rest choose.
rule::Step step_beyond(const Frame& frame, Units n, Units tat, Units& cost) noexcept;
[[gnu::always_inline]] inline rule::Step step_of(const Frame& frame, Units n, Units tat,
                                                 Units& cost) noexcept {
  cost = frame.cost;
  if (frame.take != Take::Cost) [[unlikely]] return step_beyond(frame, n, tat, cost);
  return rule::charge(frame.piece, n, tat, cost, frame.reserve);
}

/// Slow half of find_member: every entry of this fingerprint in a group, judged by the rule it
/// lives under.
Member find_in_group(const View& view, const Frame& frame, std::uint64_t want, std::uint32_t limit,
                     Word16* group) noexcept;

/// The member of this key, under this or another rule id of the limit; slot nullptr when there is
/// none.
[[gnu::always_inline]] inline Member find_member(const View& view, const Frame& frame,
                                                 const Place& place, std::uint32_t limit) noexcept {
  std::uint64_t want = place.fp_bits;
  Word16* group = place.first;
  for (int side = 0; side < 2; ++side) {
    Word16* hit = scan_group(group, place.line, want, ~kTagRuleMask);
    if (hit != nullptr) {
      const Word16 word = load16(hit);
      if (word.lo == (want | frame.id)) [[likely]] return {hit, word};
      // Another rule id: a change of this limit, or somebody else's fingerprint.
      const Member other = find_in_group(view, frame, want, limit, group);
      if (other.slot != nullptr) return other;
    }
    want |= kTagAlt;
    group = place.other;
  }
  return {};
}

/// Any claim of this key in `group`; slot nullptr when there is none. `alt` = kTagAlt for the other
/// group.
Member find_claim(const View& view, const Frame& frame, const Place& place, std::uint32_t limit,
                  Word16* group, std::uint64_t alt) noexcept;

/// The tat of an entry, on the axis of the frame's rule: itself, or converted (spec memory 8.2):
/// first, when its clock stands still, to its successor's axis by the factor of that change and at
/// its moment (guards PredecessorFirst, ConvertAtChangeMoment), then, under an override added or
/// dropped, at the frame's stamp with the debt kept.
/// False: the entry already lives under the successor of my rule: read the clock again.
bool tat_of(const View& view, const Frame& frame, std::uint16_t entry_id, Units tat,
            Units& out) noexcept;

/// The limit's overflow debt on the axis of the frame's rule; 0 when there is none.
Units overflow_tat(const View& view, const Frame& frame, std::uint32_t limit) noexcept;
/// A key that is not in the table was refused: by what keys without a place owe together?
inline bool refused_by_overflow(const Frame& frame, Units debt) noexcept {
  return debt > rule::full_at(frame.piece, frame.n);
}

/// `cost`: units charged, as step_of() gave them.
void fill_grant(const Frame& frame, Word16* slot, std::uint64_t tag, Units y, Units cost,
                DecisionData& out) noexcept;
void fill_refusal(const Frame& frame, Units level, DecisionData& out) noexcept;

/// What an attempt came to. StartOver: somebody else made progress; read the clock and try again.
enum class Attempt : std::uint8_t { Done, StartOver, NoPlace };

/// Where a new entry of a key may be put: the first group while two slots of it may be overwritten,
/// else the group with more of them. slot nullptr: nowhere. `asker`: the rule id of whoever asks.
struct Vacancy {
  Member victim;
  std::uint64_t alt = 0;
};
Vacancy find_vacancy(const View& view, std::uint64_t c, std::uint16_t asker, const Place& place,
                     std::int64_t t) noexcept;

/// bucket_insert.cpp: first sight of a key. `frame` is the frame of the miss.
Attempt insert(const View& view, const BucketAsk& ask, const Place& place, const Frame& frame,
               std::uint64_t& hint, DecisionData& out) noexcept;
/// bucket_overflow.cpp: no place; by the limit's on-full.
Attempt without_place(const View& view, const BucketAsk& ask, const Place& place,
                      const Frame& frame, DecisionData& out) noexcept;

}  // namespace cutwater::shm::detail
