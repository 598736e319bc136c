// SPDX-License-Identifier: Apache-2.0
// Half-open: cells of probes, and what they decide (spec memory 10; B3-B6).
#include <algorithm>

#include "base/sync_point.hpp"
#include "shm/breaker/detail.hpp"
#include "shm/event_log.hpp"
#include "shm/process_table.hpp"

namespace cutwater::shm {
namespace {

constexpr std::int64_t kNsPerUs = 1'000;

std::uint64_t deadline_us(std::int64_t deadline_ns) noexcept {
  return static_cast<std::uint64_t>((deadline_ns + kNsPerUs - 1) / kNsPerUs);
}

bool is_late(const ProbeCell& cell, std::int64_t now) noexcept {
  return now >= static_cast<std::int64_t>(cell.deadline_us) * kNsPerUs;
}

void tell_probe(const BreakerParts& parts, EventKind kind, const ProbeCell& cell) noexcept {
  Event event;
  event.kind = kind;
  event.object = parts.index;
  event.row = static_cast<std::uint16_t>(cell.row);
  breaker_name(*parts.view, parts.current, parts.index, event.text, sizeof event.text);
  append_event(*parts.view, event);
}

}  // namespace

std::int64_t probe_deadline(const BreakerParts& parts, std::int64_t now,
                            std::int64_t deadline_ns) noexcept {
  const auto timeout = static_cast<std::int64_t>(parts.numbers().probe_timeout_ns);
  if (deadline_ns <= 0) return now + timeout;
  return std::clamp(deadline_ns, now + 1,
                    now + static_cast<std::int64_t>(rule::kMaxProbeTimeoutNs));
}

bool owner_is_dead(const View& view, const ProbeCell& cell) noexcept {
  if (cell.row == 0) return false;
  if (cell.row >= view.row_count) return true;
  const RowWord row = unpack_row(__atomic_load_n(&view.rows[cell.row].word, __ATOMIC_ACQUIRE));
  const bool alive = row.state == RowState::Live || row.state == RowState::Orphan;
  return !alive || (row.generation & kProbeGenerationMask) != cell.generation;
}

Lapsed lapse_probe(const BreakerParts& parts, Word16* place, Word16 seen, std::int64_t now,
                   StripeHandle stripe) noexcept {
  ProbeCell cell = unpack_probe(seen);
  if (cell.state != ProbeState::Held) return Lapsed::No;
  const bool dead = owner_is_dead(*parts.view, cell);
  if (!dead && !is_late(cell, now)) return Lapsed::No;
  const bool release = parts.numbers().on_probe_timeout ==
                       static_cast<std::uint8_t>(rule::OnProbeTimeout::Release);
  ProbeCell next = cell;
  next.deadline_us = 0;
  next.state = dead || release ? ProbeState::Free : ProbeState::Spent;
  next.failed = next.state == ProbeState::Spent;
  next.slow = false;
  CUTWATER_SYNC_POINT("breaker.before_lapse");
  if (!cas16(place, seen, pack_probe(next))) return Lapsed::Changed;
  count_breaker(*parts.view, stripe, parts.index,
                dead ? BreakerCounter::ProbesReclaimed : BreakerCounter::ProbesExpired);
  tell_probe(parts, dead ? EventKind::BreakerReclaimed : EventKind::BreakerProbeExpired, cell);
  return dead ? Lapsed::Reclaimed : Lapsed::Expired;
}

ProbeTake take_probe(const BreakerParts& parts, Word16 seen, const BreakerCaller& caller,
                     std::int64_t now, std::int64_t deadline_ns) noexcept {
  const std::uint32_t epoch = epoch_of(seen.lo);
  const ProbeTake again{ProbeTake::Found::EnterAgain, {}, 0, 0};
  ProbeTake out;
  CUTWATER_SYNC_POINT("breaker.before_scan");
  for (std::uint32_t i = 0; i < parts.probe_count; ++i) {
    Word16* const place = parts.probes + i;
    for (int round = 0;; ++round) {
      if (round == kBreakerRounds) return again;
      Word16 word = load16(place);
      const ProbeCell cell = unpack_probe(word);
      const bool present = cell.epoch == epoch && cell.state != ProbeState::Free;
      if (older_epoch(epoch, cell.epoch) && guarded(Guard::BreakerProbeOlderOnly)) {
        if (!(state_of(parts) == seen)) return again;
        // A cell from the future of a word that has not moved: scribbled over.
        count_damage(*parts.view);
        cas16(place, word, pack_probe({0, 0, epoch, ProbeState::Free, false, false, 0, cell.take}));
        continue;
      }
      if (present && cell.state == ProbeState::Held) {
        const Lapsed lapsed = lapse_probe(parts, place, word, now, caller.stripe);
        if (lapsed != Lapsed::No) continue;
        const auto ends = static_cast<std::int64_t>(cell.deadline_us) * kNsPerUs;
        if (out.earliest_ns == 0 || ends < out.earliest_ns) out.earliest_ns = ends;
      }
      if (present) break;                            // held or spent: the next one
      const std::uint64_t until = deadline_us(probe_deadline(parts, now, deadline_ns));
      const std::uint32_t take = guarded(Guard::BreakerProbeTakeNumber) ? cell.take + 1 : cell.take;
      const Word16 mine = pack_probe({caller.row, caller.generation & kProbeGenerationMask, epoch,
                                      ProbeState::Held, false, false, until, take});
      CUTWATER_SYNC_POINT("breaker.before_take");
      if (!cas16(place, word, mine)) continue;
      CUTWATER_SYNC_POINT("breaker.taken");
      // B5: the look at which the call is admitted.
      if (guarded(Guard::BreakerProbeSecondLook) && epoch_of(state_of(parts).lo) != epoch) {
        ProbeCell back = unpack_probe(mine);
        back.state = ProbeState::Free;
        back.deadline_us = 0;
        Word16 held = mine;
        cas16(place, held, pack_probe(back));
        return again;
      }
      return {ProbeTake::Found::Taken, mine, static_cast<std::uint16_t>(i), 0};
    }
  }
  return out;
}

bool pass_probe(const View& view, BreakerRef ref, const BreakerCaller& to,
                BreakerCall& call) noexcept {
  BreakerParts parts;
  if (call.kind != CallKind::Probe || !read_parts(view, ref, parts)) return false;
  if (call.cell >= parts.probe_count) return false;
  ProbeCell cell = unpack_probe(call.ticket);
  cell.row = to.row;
  cell.generation = to.generation & kProbeGenerationMask;
  const Word16 mine = pack_probe(cell);
  Word16 held = guarded(Guard::BreakerPassesExactly) ? call.ticket
                                                     : load16(parts.probes + call.cell);
  CUTWATER_SYNC_POINT("breaker.before_pass");
  if (!cas16(parts.probes + call.cell, held, mine)) return false;
  call.ticket = mine;
  return true;
}

rule::ProbeResults collect_probes(const BreakerParts& parts, std::uint32_t epoch,
                                  std::uint32_t& held) noexcept {
  rule::ProbeResults results;
  held = 0;
  for (std::uint32_t i = 0; i < parts.probe_count; ++i) {
    const ProbeCell cell = unpack_probe(load16(parts.probes + i));
    CUTWATER_SYNC_POINT("breaker.cell_read");
    if (cell.epoch != epoch) continue;
    held += cell.state == ProbeState::Held;
    if (cell.state != ProbeState::Spent) continue;
    ++results.spent;
    results.failed += cell.failed;
    results.slow += cell.slow;
  }
  return results;
}

void settle_half_open(const BreakerParts& parts, std::int64_t now, std::uint32_t row) noexcept {
  for (int round = 0; round < kBreakerRounds; ++round) {
    const Word16 seen = state_of(parts);
    const BreakerWord word = unpack_breaker(seen);
    if (word.state != rule::BreakerState::HalfOpen) return;
    std::uint32_t held = 0;
    const rule::ProbeResults results = collect_probes(parts, word.epoch, held);
    if (rule::decides_on_some(parts.numbers()) && guarded(Guard::BreakerTwoReadings)) {
      // Results have no order: one that came back while we read may be missing where a later one
      // was counted. Two readings that agree show one moment.
      const rule::ProbeResults again = collect_probes(parts, word.epoch, held);
      if (again.spent != results.spent || again.failed != results.failed ||
          again.slow != results.slow) {
        continue;
      }
    }
    const rule::HalfOpenDecision decision = rule::decide_half_open(parts.numbers(), results);
    if (decision.verdict == rule::HalfOpenVerdict::NotYet) return;
    NextState next = decision.verdict == rule::HalfOpenVerdict::Close
                         ? closed_again(parts, now)
                         : opened(parts, word, word.attempts + 1, decision.reason, now);
    next.calls = results.spent;
    const std::uint32_t counted =
        decision.reason == rule::BreakerReason::SlowRate ? results.slow : results.failed;
    if (results.spent != 0) next.permille = counted * 1000 / results.spent;
    if (move_breaker(parts, seen, next, now, row)) return;
  }
  count_contention(*parts.view);
}

BreakerEntry look_at_probes(const BreakerParts& parts, const BreakerWord& word,
                            std::int64_t now) noexcept {
  BreakerEntry entry;
  entry.state = word.state;
  entry.now_ns = now;
  entry.call.epoch = word.epoch;
  entry.call.kind = CallKind::Probe;
  std::uint32_t held = 0;
  const rule::HalfOpenDecision decision =
      rule::decide_half_open(parts.numbers(), collect_probes(parts, word.epoch, held));
  const bool over = word.deadline_ns != 0 && now >= word.deadline_ns;
  if (decision.verdict == rule::HalfOpenVerdict::Close ||
      (over && parts.numbers().after_half_open_wait ==
                   static_cast<std::uint8_t>(rule::AfterHalfOpenWait::Closed))) {
    entry.granted = true;
    entry.call.kind = CallKind::Window;
    return entry;
  }
  if (decision.verdict == rule::HalfOpenVerdict::Open || over) {
    const NextState next = opened(parts, word, word.attempts + 1, decision.reason, now);
    entry.state = rule::BreakerState::Open;
    entry.retry_after_ns = rule::until_over(parts.edge(), next.deadline_ns, now);
    return entry;
  }
  std::int64_t earliest = 0;
  const bool release = parts.numbers().on_probe_timeout ==
                       static_cast<std::uint8_t>(rule::OnProbeTimeout::Release);
  for (std::uint32_t i = 0; i < parts.probe_count && !entry.granted; ++i) {
    const ProbeCell cell = unpack_probe(load16(parts.probes + i));
    const bool present = cell.epoch == word.epoch && cell.state != ProbeState::Free;
    const bool held_now = present && cell.state == ProbeState::Held;
    entry.granted = !present || (held_now && (owner_is_dead(*parts.view, cell) ||
                                              (release && is_late(cell, now))));
    const auto ends = static_cast<std::int64_t>(cell.deadline_us) * kNsPerUs;
    if (held_now && (earliest == 0 || ends < earliest)) earliest = ends;
  }
  if (entry.granted) return entry;
  entry.reason = Reason::Probing;
  entry.hint = true;
  entry.retry_after_ns = earliest > now ? earliest - now : 1;
  return entry;
}

}  // namespace cutwater::shm
