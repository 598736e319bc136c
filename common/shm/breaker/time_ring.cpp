// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/guard.hpp"
#include "base/sync_point.hpp"
#include "shm/breaker/ring.hpp"

namespace cutwater::shm {
namespace {

/// a - b of two slots, signed, modulo 2^31.
constexpr std::int32_t ahead(std::uint32_t a, std::uint32_t b) noexcept {
  return static_cast<std::int32_t>((a - b) << 1) >> 1;
}
constexpr std::uint32_t plus(std::uint32_t slot, std::uint32_t n) noexcept {
  return (slot + n) & kSlotMask;
}

Word16* cell_at(const RingView& ring, std::uint32_t slot) noexcept {
  return ring.cells + (slot & ring.mask);
}

/// An ordinary hint: only ever forward, and only a hint.
void raise_hint(const RingView& ring, std::uint32_t slot) noexcept {
  std::uint64_t seen = __atomic_load_n(&ring.head->hint, __ATOMIC_RELAXED);
  while (ahead(slot, static_cast<std::uint32_t>(seen) & kSlotMask) > 0) {
    // release: whoever starts from the hint sees the cell it names; pairs with newest_slot().
    if (__atomic_compare_exchange_n(&ring.head->hint, &seen, slot, false, __ATOMIC_RELEASE,
                                    __ATOMIC_RELAXED)) {
      return;
    }
  }
}

/// The newest slot in use: the hint, or what the cells themselves say when it is stale. A cell
/// stamped newer than the hint is the new hint. Bounded by the ring.
std::uint32_t newest_slot(const RingView& ring) noexcept {
  auto at = static_cast<std::uint32_t>(__atomic_load_n(&ring.head->hint, __ATOMIC_ACQUIRE)) &
            kSlotMask;
  const std::uint32_t stamped = unpack_time(load16(cell_at(ring, at))).slot;
  const bool consistent = ((stamped ^ at) & ring.mask) == 0;
  if (stamped != at && guarded(Guard::BreakerHintChecked)) {
    if (consistent && ahead(stamped, at) > 0) return stamped;
    // The hint names no cell: the newest that lies where its stamp says.
    bool found = false;
    for (std::uint64_t i = 0; i <= ring.mask; ++i) {
      const std::uint32_t slot = unpack_time(load16(ring.cells + i)).slot;
      if ((slot & ring.mask) != i) continue;
      if (!found || ahead(slot, at) > 0) at = slot;
      found = true;
    }
  }
  return at;
}

/// Seals the cell of `open` and everything up to `to`, which becomes the open one. Only the last
/// `slots` cells before it matter: what is skipped beyond them no window reaches. Returns `to`, or
/// the slot of whoever went past us.
std::uint32_t open_slot(const RingView& ring, const TimeShape& shape, std::uint32_t open,
               std::uint32_t to) noexcept {
  Word16 word = load16(cell_at(ring, open));
  TimeCell cell = unpack_time(word);
  for (int round = 0; cell.slot == open && !cell.sealed; ++round) {
    if (round == kRingRounds) return open;           // the caller's own rounds go on
    TimeCell sealed = cell;
    sealed.sealed = true;
    CUTWATER_SYNC_POINT("breaker.before_seal");
    if (cas16(cell_at(ring, open), word, pack_time(sealed))) {
      cell = sealed;
      break;
    }
    cell = unpack_time(word);
  }
  if (cell.slot != open) return newest_slot(ring);
  std::uint32_t slot = plus(open, 1);
  if (ahead(to, slot) > static_cast<std::int32_t>(shape.slots)) slot = plus(to, -shape.slots);
  TimeCell carry = cell;
  for (; ahead(to, slot) >= 0; slot = plus(slot, 1)) {
    Word16* const place = cell_at(ring, slot);
    Word16 seen = load16(place);
    for (int round = 0; round < kRingRounds; ++round) {
      const TimeCell there = unpack_time(seen);
      const bool in_place = ((there.slot ^ slot) & ring.mask) == 0;
      if (ahead(there.slot, slot) > 0 && in_place) return there.slot;
      if (there.slot == slot) {
        if (slot == to || there.sealed) break;
        TimeCell sealed = there;
        sealed.sealed = true;
        if (cas16(place, seen, pack_time(sealed))) { seen = pack_time(sealed); break; }
        continue;
      }
      TimeCell next = carry;
      next.slot = slot;
      next.sealed = slot != to;
      CUTWATER_SYNC_POINT("breaker.before_open_slot");
      if (cas16(place, seen, pack_time(next))) { seen = pack_time(next); break; }
    }
    carry = unpack_time(seen);
  }
  raise_hint(ring, to);
  return to;
}

struct Sums {
  std::uint32_t total = 0, failures = 0, slow = 0;
};
Sums difference(const TimeCell& cell, std::uint32_t total, std::uint32_t failures,
                std::uint32_t slow) noexcept {
  return {cell.total - total, (cell.failures - failures) & kTimeFailMask, cell.slow - slow};
}

/// The window that ends with `cell` and begins behind the slot of `old`, cut at the epoch's base.
rule::BreakerWindow window_of(const RingView& ring, const TimeCell& cell, const TimeCell& old,
                              bool old_good, std::uint32_t epoch) noexcept {
  Sums sums = old_good ? difference(cell, old.total, old.failures, old.slow) : Sums{};
  const TimeBase base = unpack_base(load16(&ring.head->base[epoch & 3]));
  std::uint32_t run = cell.run;
  if (base.epoch == epoch) {
    const Sums since = difference(cell, base.total, base.failures, base.slow);
    if (!old_good || since.total < sums.total) sums = since;
    run = std::min(run, since.total);
  }
  return {sums.total, sums.failures, sums.slow, run};
}

/// The ring says it is in the future although a fresh look at the clock does not: scribbled over.
/// It starts again, empty; the outcomes of one window are lost, and nobody hangs.
void restart_ring(const RingView& ring, std::uint32_t slot) noexcept {
  for (std::uint64_t i = 0; i <= ring.mask; ++i) {
    const std::uint32_t own = plus(slot, static_cast<std::uint32_t>(-i));
    Word16* const place = cell_at(ring, own);
    Word16 seen = load16(place);
    TimeCell cell;
    cell.slot = own;
    cell.sealed = i != 0;
    cas16(place, seen, pack_time(cell));
  }
  __atomic_store_n(&ring.head->hint, std::uint64_t{slot}, __ATOMIC_RELEASE);
}

}  // namespace

void init_time_ring(const RingView& ring, std::uint32_t slot, std::uint32_t epoch) noexcept {
  *ring.head = {};
  for (std::uint64_t i = 0; i <= ring.mask; ++i) {
    TimeCell cell;
    cell.slot = plus(slot, static_cast<std::uint32_t>(-i));
    cell.sealed = i != 0;
    *cell_at(ring, cell.slot) = pack_time(cell);
  }
  ring.head->hint = slot;
  TimeBase base;
  base.epoch = epoch;
  ring.head->base[epoch & 3] = pack_base(base);
}

Appended append_time(const RingView& ring, const TimeShape& shape, const SegmentClock& clock,
                     std::int64_t now, std::uint32_t epoch, rule::BreakerOutcome outcome,
                     rule::BreakerWindow& out, std::uint32_t* total) noexcept {
  std::uint32_t slot = slot_of(now, shape.slot_ns);
  std::uint32_t at = newest_slot(ring);
  for (int round = 0; round < kRingRounds; ++round) {
    if (ahead(at, slot) > 1) {
      slot = slot_of(clock.now(), shape.slot_ns);    // an old reading, or the ring is wrong
      if (ahead(at, slot) > 1) restart_ring(ring, slot);
      at = newest_slot(ring);
    }
    if (ahead(slot, at) > 0) {
      at = open_slot(ring, shape, at, slot);
      continue;
    }
    Word16* const place = cell_at(ring, at);
    Word16 word = load16(place);
    const TimeCell cell = unpack_time(word);
    if (cell.slot != at) {
      at = newest_slot(ring);
      continue;
    }
    if (cell.sealed && guarded(Guard::BreakerSealedStays)) {
      // Sealed and still the newest: its sealer died. Open the next.
      const std::uint32_t next = newest_slot(ring);
      at = next == at ? open_slot(ring, shape, at, plus(at, 1)) : next;
      continue;
    }
    TimeCell next = cell;
    next.total += 1;
    next.failures = (cell.failures + (outcome.failed ? 1 : 0)) & kTimeFailMask;
    next.slow += outcome.slow ? 1 : 0;
    next.run = outcome.failed ? std::min(cell.run + 1, kRunMax) : 0;
    CUTWATER_SYNC_POINT("breaker.before_count");
    if (!cas16(place, word, pack_time(next))) continue;
    const std::uint32_t from = plus(at, -shape.slots);
    const TimeCell old = unpack_time(load16(cell_at(ring, from)));
    out = window_of(ring, next, old, old.slot == from, epoch);
    if (total != nullptr) *total = next.total;
    return Appended::Yes;
  }
  return Appended::GaveUp;
}

rule::BreakerWindow time_window(const RingView& ring, const TimeShape& shape, std::int64_t now,
                                std::uint32_t epoch) noexcept {
  const std::uint32_t slot = slot_of(now, shape.slot_ns);
  for (int round = 0; round < 8; ++round) {
    const std::uint32_t at = newest_slot(ring);
    const TimeCell cell = unpack_time(load16(cell_at(ring, at)));
    if (cell.slot != at) continue;
    const std::uint32_t end = ahead(slot, at) > 0 ? slot : at;
    const std::uint32_t from = plus(end, -shape.slots);
    if (ahead(from, at) >= 0) {                      // everything has left
      rule::BreakerWindow empty;
      empty.run = window_of(ring, cell, cell, true, epoch).run;
      return empty;
    }
    const TimeCell old = unpack_time(load16(cell_at(ring, from)));
    if (old.slot != from && ahead(old.slot, from) > 0) continue;   // overtaken while we looked
    return window_of(ring, cell, old, old.slot == from, epoch);
  }
  return {};
}

rule::BreakerWindow last_time_window(const RingView& ring, const TimeShape& shape,
                                     std::uint32_t epoch, std::uint32_t& total) noexcept {
  const std::uint32_t at = newest_slot(ring);
  const TimeCell cell = unpack_time(load16(cell_at(ring, at)));
  const std::uint32_t from = plus(at, -shape.slots);
  const TimeCell old = unpack_time(load16(cell_at(ring, from)));
  total = cell.total;
  return window_of(ring, cell, old, old.slot == from, epoch);
}

TimeBase time_total(const RingView& ring) noexcept {
  const TimeCell cell = unpack_time(load16(cell_at(ring, newest_slot(ring))));
  return {0, cell.total, cell.failures, cell.slow};
}

}  // namespace cutwater::shm
