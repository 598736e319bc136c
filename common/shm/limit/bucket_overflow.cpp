// SPDX-License-Identifier: Apache-2.0
// No place in the table (spec memory 6.5). A key in debt is never evicted; the limit's on-full
// decides:
//
//   share one overflow word per limit, outside the table, charged like a bucket by every key
//     without a place;
//   deny refused; allow admitted (outside P1, says so). Both write nothing. All three are flagged
//     and counted.
//
// Inserter: claim, rescan, clock, overflow word. Charger: overflow word, rescan, clock. One of the
// two always sees the other. The last clock is needed because a member may have been made, spent
// and replaced before the rescan: what was replaced lay below N of a reading older than t', so at
// or below x. A cost equal to the burst fits only at the one moment N = x: so a charge starts 2 us
// ahead of the clock and waits for its start, like any place in line. I9: no token taken from the
// overflow word lies below what the key had before, and a fresh bucket starts at its debt.
#include "base/sync_point.hpp"
#include "shm/limit/bucket_detail.hpp"

namespace cutwater::shm::detail {
namespace {

constexpr std::int64_t kLeadNs = 2'000;
constexpr int kMaxClockReads = 1'000'000;  // bound of the wait for a start at most kLeadNs ahead

bool key_has_place(const View& view, const Frame& frame, const Place& place,
                   std::uint32_t limit) noexcept {
  return find_member(view, frame, place, limit).slot != nullptr ||
         find_claim(view, frame, place, limit, place.first, 0).slot != nullptr ||
         find_claim(view, frame, place, limit, place.other, kTagAlt).slot != nullptr;
}

Attempt refuse(const View& view, const Frame& frame, Units level, DecisionData& out) noexcept {
  fill_refusal(frame, level, out);
  out.flags |= Decision::kOverflow;
  return view.current() == frame.c ? Attempt::Done : Attempt::StartOver;
}

Attempt share(const View& view, const BucketAsk& ask, const Place& place, Frame frame,
              DecisionData& out) noexcept {
  const std::uint32_t limit = ask.limit.index;
  Word16* word = &view.limits[limit].overflow[frame.window];
  const std::int64_t lead = view.clock.is_stepped() ? 0 : kLeadNs;
  const Units ahead = clock_of(frame, frame.t + lead);
  Word16 seen = load16(word);
  Units tat = 0;
  const std::uint16_t id = rule_of(seen.lo);
  if (seen.lo != 0 && (id == frame.id || belongs(view, frame.c, id, limit, frame.window)) &&
      !tat_of(view, frame, id, static_cast<Units>(seen.hi), tat)) {
    return Attempt::StartOver;
  }
  Units cost;
  const rule::Step step = step_of(frame, ahead, tat, cost);
  if (!step.granted) return refuse(view, frame, rule::effective(frame.piece, frame.n, tat), out);
  if (view.current() != frame.c) return Attempt::StartOver;
  const Word16 charged{frame.id, static_cast<std::uint64_t>(step.y)};
  CUTWATER_SYNC_POINT("overflow.before_charge");
  if (!cas16(word, seen, charged)) return Attempt::StartOver;
  CUTWATER_SYNC_POINT("overflow.after_charge");
  const auto give_back = [&] {
    Word16 mine = charged;
    cas16(word, mine, {frame.id, static_cast<std::uint64_t>(step.y - cost)});
    return Attempt::StartOver;
  };
  if (guarded(Guard::OverflowRescan) && key_has_place(view, frame, place, limit))
    return give_back();
  std::int64_t stamp = guarded(Guard::OverflowSecondClock) ? view.clock.now() : frame.t;
  if (guarded(Guard::OverflowSecondClock) && clock_of(frame, stamp) > step.eff)
    return give_back();
  // A reload since: by the new rule a member may have been made, spent, refilled and replaced
  // beyond x.
  if (view.current() != frame.c) return give_back();
  if (guarded(Guard::OverflowWaitsForStart) && frame.reserve == 0 && lead != 0) {
    const Units begins = step.y - frame.piece.burst;
    std::int64_t start = frame.calendar ? frame.next_edge : rule::time_when(frame.piece, begins);
    if (frame.calendar && begins <= frame.n) start = stamp;
    std::int64_t seen_t = stamp;
    for (int reads = 0; seen_t < start && reads < kMaxClockReads; ++reads)
      seen_t = view.clock.now();
    stamp = std::max(stamp, start);
  }
  frame.t = stamp;
  frame.n = clock_of(frame, stamp);
  fill_grant(frame, word, frame.id, step.y, cost, out);
  out.flags |= Decision::kOverflow;
  return Attempt::Done;
}

}  // namespace

Attempt without_place(const View& view, const BucketAsk& ask, const Place& place,
                      const Frame& frame, DecisionData& out) noexcept {
  switch (frame.on_full) {
    case 1:                                        // rule::OnFull::Deny
      fill_refusal(frame, frame.n + frame.piece.burst, out);   // hint: as if the bucket were empty
      out.reason = Reason::Degraded;
      out.flags |= Decision::kDegraded | Decision::kOverflow | Decision::kHint;
      return Attempt::Done;
    case 2:                                        // rule::OnFull::Allow
      fill_grant(frame, nullptr, 0, frame.n + frame.cost, frame.cost, out);
      out.flags |= Decision::kDegraded | Decision::kOverflow;
      return Attempt::Done;
    default:
      return share(view, ask, place, frame, out);
  }
}

}  // namespace cutwater::shm::detail
