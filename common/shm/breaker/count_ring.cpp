// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>

#include "base/guard.hpp"
#include "base/sync_point.hpp"
#include "shm/breaker/count_cells.hpp"

namespace cutwater::shm {
namespace {

Word16* count_cell_at(const RingView& ring, std::uint64_t at) noexcept {
  return ring.cells + (at & ring.mask);
}

/// What comes behind this tail.
CountCell cell_behind(const CountTail& tail, std::uint32_t epoch,
                      rule::BreakerOutcome outcome) noexcept {
  CountCell next;
  next.seq = next_seq(tail.at);
  next.epoch = epoch;
  next.n = tail.cell.epoch == epoch ? std::min(tail.cell.n + 1, kCountMask) : 1;
  next.failures = (tail.cell.failures + (outcome.failed ? 1 : 0)) & kCountMask;
  next.slow = (tail.cell.slow + (outcome.slow ? 1 : 0)) & kCountMask;
  return next;
}

/// A hint was no help: the newest cell that lies where its number says and is not continued.
CountTail scan_for_tail(const RingView& ring) noexcept {
  CountTail best;
  for (std::uint64_t i = 0; i <= ring.mask; ++i) {
    const CountCell cell = unpack_count(load16(ring.cells + i));
    if ((cell.seq & ring.mask) != i) continue;
    const Word16 follower = load16(count_cell_at(ring, i + 1));
    if (unpack_count(follower).seq == next_seq(cell.seq)) continue;
    if (!best.found || newer_seq(cell.seq, best.at)) best = {true, cell.seq, cell, follower};
  }
  return best;
}

}  // namespace

std::uint64_t ring_cells(std::uint64_t window) noexcept {
  return std::bit_ceil(window + kRingSpare);
}

void init_count_ring(const RingView& ring, std::uint32_t epoch, std::uint64_t at) noexcept {
  for (std::uint64_t i = 0; i <= ring.mask; ++i) {
    CountCell cell;
    cell.seq = (at - i) & kSeqMask;
    cell.epoch = epoch;
    *count_cell_at(ring, cell.seq) = pack_count(cell);
  }
  *ring.head = {};
  ring.head->hint = ring.head->settled = at & kSeqMask;
}

CountTail find_count_tail(const RingView& ring) noexcept {
  // acquire: pairs with the release in advance_hint(); a hint is never ahead of its cell.
  std::uint64_t at = __atomic_load_n(&ring.head->hint, __ATOMIC_ACQUIRE) & kSeqMask;
  for (std::uint64_t step = 0; step <= ring.mask; ++step) {
    const CountCell cell = unpack_count(load16(count_cell_at(ring, at)));
    if (cell.seq != at) {
      // Overtaken by a whole turn while we looked; or the hint was scribbled over.
      const bool ahead = newer_seq(cell.seq, at) && ((cell.seq ^ at) & ring.mask) == 0;
      if (!ahead) break;
      at = cell.seq;
      continue;
    }
    const Word16 follower = load16(count_cell_at(ring, at + 1));
    if (unpack_count(follower).seq == next_seq(at)) {
      at = next_seq(at);
      continue;
    }
    return {true, at, cell, follower};
  }
  return scan_for_tail(ring);
}

Appended append_count(const RingView& ring, std::uint32_t epoch, rule::BreakerOutcome outcome,
                      CountTail& out) noexcept {
  for (int round = 0; round < kRingRounds; ++round) {
    CountTail tail = find_count_tail(ring);
    if (!tail.found) return Appended::Damaged;
    if (older_epoch(epoch, tail.cell.epoch)) return Appended::Stale;
    const CountCell next = cell_behind(tail, epoch, outcome);
    CUTWATER_SYNC_POINT("breaker.before_append");
    if (!cas16(count_cell_at(ring, next.seq), tail.follower, pack_count(next))) continue;
    advance_hint(ring, next.seq);
    out = {true, next.seq, next, {}};
    return Appended::Yes;
  }
  return Appended::GaveUp;
}

bool count_window(const RingView& ring, std::uint64_t at, const CountCell& cell,
                  std::uint32_t calls, std::uint32_t consecutive,
                  rule::BreakerWindow& out) noexcept {
  const std::uint32_t k = std::min(cell.n, calls);
  const std::uint64_t from = (at - k) & kSeqMask;
  const CountCell base = unpack_count(load16(count_cell_at(ring, from)));
  if (base.seq != from) return false;
  out.calls = k;
  out.failures = (cell.failures - base.failures) & kCountMask;
  out.slow = (cell.slow - base.slow) & kCountMask;
  out.run = 0;
  const std::uint32_t reach = std::min(cell.n, consecutive);
  for (std::uint32_t i = 0; i < reach; ++i) {
    const std::uint64_t to = (at - i) & kSeqMask;
    const std::uint64_t before = (to - 1) & kSeqMask;
    const CountCell here = unpack_count(load16(count_cell_at(ring, to)));
    const CountCell last = unpack_count(load16(count_cell_at(ring, before)));
    if (here.seq != to || last.seq != before) return false;
    if (here.failures == last.failures) break;
    ++out.run;
  }
  return true;
}

bool count_outcome(const RingView& ring, std::uint64_t at, CountCell& cell,
                   rule::BreakerOutcome& out) noexcept {
  const std::uint64_t before = (at - 1) & kSeqMask;
  cell = unpack_count(load16(count_cell_at(ring, at)));
  const CountCell last = unpack_count(load16(count_cell_at(ring, before)));
  if (cell.seq != at || last.seq != before) return false;
  out = {cell.failures != last.failures, cell.slow != last.slow};
  return true;
}

std::uint64_t copy_count_ring(const RingView& from, const RingView& to,
                              std::uint32_t keep) noexcept {
  const CountTail tail = find_count_tail(from);
  const std::uint32_t epoch = tail.found ? tail.cell.epoch : kFirstBreakerEpoch;
  const auto room = static_cast<std::uint32_t>(to.mask);
  const std::uint32_t n = tail.found ? std::min({tail.cell.n, keep, room}) : 0;
  const std::uint64_t base = tail.found ? (tail.at - n) & kSeqMask : 0;
  init_count_ring(to, epoch, base);
  if (!tail.found) return 0;
  // Positions go on, and what had been counted too, so turns and differences stay.
  for (std::uint32_t i = 0; i <= n; ++i) {
    const std::uint64_t at = (base + i) & kSeqMask;
    CountCell cell = unpack_count(load16(count_cell_at(from, at)));
    if (cell.seq != at) return tail.at;              // overtaken: an emptier window is never wrong
    cell.n = i;
    cell.epoch = epoch;
    *count_cell_at(to, at) = pack_count(cell);
    to.head->hint = to.head->settled = at;
  }
  return tail.at;
}

void forward_count_ring(const RingView& from, const RingView& to, std::uint64_t copied) noexcept {
  for (std::uint64_t i = 1; i <= from.mask; ++i) {
    const std::uint64_t at = (copied + i) & kSeqMask;
    CountCell cell;
    rule::BreakerOutcome outcome;
    if (!count_outcome(from, at, cell, outcome)) return;
    CountTail ignored;
    append_count(to, cell.epoch, outcome, ignored);
  }
}

}  // namespace cutwater::shm
