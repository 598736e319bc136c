// SPDX-License-Identifier: Apache-2.0
// The scan, and the ways a place goes on: handed to the first in line, or free again.
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

#include "base/sync_point.hpp"
#include "shm/breaker/detail.hpp"
#include "shm/bulkhead/detail.hpp"

namespace cutwater::shm {
namespace {

/// The waiter in this record has no place yet: looks for one among the cells that were read, and
/// takes it off the void ones.
bool has_place(const BulkheadParts& parts, BulkheadScan& scan, std::uint64_t handed) noexcept {
  bool found = false;
  for (std::uint32_t i = 0; i < parts.cells; ++i) {
    if (scan.cell[i] != handed) continue;
    scan.voids.reset(i);
    found = true;
  }
  return found;
}

/// Somebody whose record says that he still waits for exactly this.
bool still_waits(const BulkheadParts& parts, std::uint32_t record, std::uint64_t ticket) noexcept {
  const Waiter waiter = unpack_waiter(load16(&parts.record(record)->word));
  return waiter.state == WaiterState::Waiting && waiter.ticket == ticket &&
         in_time(waiter, parts.view->clock.now()) &&
         place_owner_alive(*parts.view, waiter.row, waiter.generation);
}

/// The line is quiet as of `seen`. Whoever arrived since has changed the word.
void make_quiet(const BulkheadParts& parts, std::uint64_t seen) noexcept {
  if (line_is_quiet(seen)) return;
  CUTWATER_SYNC_POINT("bulkhead.before_quiet");
  if (!guarded(Guard::PlaceLineSwappedWhole)) {
    seen = __atomic_load_n(&parts.head->line, __ATOMIC_SEQ_CST);
  }
  const std::uint64_t quiet = std::uint64_t{arrivals_of(seen)} << 32 | arrivals_of(seen);
  __atomic_compare_exchange_n(&parts.head->line, &seen, quiet, false, __ATOMIC_SEQ_CST,
                              __ATOMIC_RELAXED);
}

/// Confirmed: the waiter is woken. False: it has gone meanwhile, and the cell is void.
bool confirm_handed(const BulkheadParts& parts, std::uint32_t record, std::uint64_t ticket,
                    StripeHandle stripe) noexcept {
  CUTWATER_SYNC_POINT("bulkhead.handed");
  if (guarded(Guard::PlaceRecordReadAgain) && !still_waits(parts, record, ticket)) return false;
  count_bulkhead(*parts.view, stripe, parts.index, BulkheadCounter::HandedOver);
  CUTWATER_SYNC_POINT("bulkhead.before_wake");
  wake_waiter(parts.record(record));
  return true;
}

}  // namespace

std::uint32_t BulkheadScan::usable(const BulkheadParts& parts) const noexcept {
  const std::uint32_t limit = parts.limit();
  for (std::uint32_t i = 0; i < limit; ++i) {
    if (cell[i] == 0 ? occupied < limit : voids.test(i) && occupied <= limit) return i;
  }
  return kNoLine;
}

void scan_bulkhead(const BulkheadParts& parts, std::int64_t now, BulkheadScan& out) noexcept {
  out.line = load_line(parts);
  out.occupied = out.waiting = 0;
  out.first = kNoLine;
  out.first_ticket = 0;
  out.anybody = false;
  out.voids.reset();
  std::bitset<kPlaceRecordMask + 1> named;   // records that some cell is handed to
  CUTWATER_SYNC_POINT("bulkhead.before_scan");
  for (std::uint32_t i = 0; i < parts.cells; ++i) {
    const std::uint64_t value = load_cell(parts.cell(i));
    out.cell[i] = value;
    out.occupied += value != 0;
    if (state_of_cell(value) != PlaceState::Handed) continue;
    out.voids.set(i);
    named.set(unpack_place(value).record);
  }
  CUTWATER_SYNC_POINT("bulkhead.cells_read");
  for (std::uint32_t i = 0; i < parts.records; ++i) {
    const Waiter waiter = unpack_waiter(load16(&parts.record(i)->word));
    if (waiter.state != WaiterState::Waiting) continue;
    if (!place_owner_alive(*parts.view, waiter.row, waiter.generation)) continue;
    out.anybody = true;
    if (!in_time(waiter, now)) continue;
    ++out.waiting;
    if (named.test(i) && has_place(parts, out, pack_handed(waiter.ticket, i))) continue;
    if (out.first != kNoLine && waiter.ticket >= out.first_ticket) continue;
    out.first = i;
    out.first_ticket = waiter.ticket;
  }
  if (!guarded(Guard::PlaceVoidIsFree)) out.voids.reset();
}

std::uint32_t count_places(const BulkheadParts& parts) noexcept {
  std::uint32_t occupied = 0;
  for (std::uint32_t i = 0; i < parts.cells; ++i) occupied += load_cell(parts.cell(i)) != 0;
  return occupied;
}

bool overshot(BulkheadParts& parts, std::uint32_t cell) noexcept {
  CUTWATER_SYNC_POINT("bulkhead.taken");
  if (!guarded(Guard::PlaceCountedAfterTake)) return false;
  const std::uint32_t occupied = count_places(parts);
  const std::uint64_t before = parts.current;
  if (!refresh_parts(parts)) return true;
  // Other cells count now: once more, with these.
  const std::uint32_t counted = parts.current == before ? occupied : count_places(parts);
  return counted > parts.limit() || cell >= parts.limit();
}

void wake_waiter(WaiterRecord* record) noexcept {
  // seq_cst: who sleeps compares the word after it looked for its cell.
  __atomic_fetch_add(&record->futex, 1, __ATOMIC_SEQ_CST);
  syscall(SYS_futex, &record->futex, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

bool pass_place(BulkheadParts& parts, HeldPlace held, bool look_first,
                StripeHandle stripe) noexcept {
  bool mine = true;                                  // nobody but us could have changed it yet
  for (std::uint32_t round = 0; round <= parts.cells + parts.records; ++round) {
    const bool there = refresh_parts(parts);
    if (there && (!look_first || !line_is_quiet(load_line(parts)))) {
      BulkheadScan scan;
      scan_bulkhead(parts, parts.view->clock.now(), scan);
      const std::uint32_t limit = parts.limit();
      if (held.cell < limit && scan.occupied <= limit && scan.first != kNoLine) {
        const std::uint64_t handed = pack_handed(scan.first_ticket, scan.first);
        CUTWATER_SYNC_POINT("bulkhead.before_pass");
        if (!swap_cell(held.place, held.value, handed)) return !mine;
        mine = false;
        held.value = handed;
        if (confirm_handed(parts, scan.first, scan.first_ticket, stripe)) return true;
        look_first = false;
        continue;
      }
      if (!scan.anybody) make_quiet(parts, scan.line);
    }
    CUTWATER_SYNC_POINT("bulkhead.before_free");
    if (!swap_cell(held.place, held.value, 0)) return !mine;
    CUTWATER_SYNC_POINT("bulkhead.freed");
    if (there && guarded(Guard::PlaceLookAfterFree) && !line_is_quiet(load_line(parts))) {
      serve_line(parts, stripe);
    }
    return true;
  }
  count_contention(*parts.view);                     // it is void: free for whoever looks next
  return true;
}

void serve_line(BulkheadParts& parts, StripeHandle stripe) noexcept {
  for (std::uint32_t round = 0; round <= 2 * (parts.cells + parts.records); ++round) {
    if (!refresh_parts(parts)) return;
    BulkheadScan scan;
    scan_bulkhead(parts, parts.view->clock.now(), scan);
    const std::uint32_t cell = scan.usable(parts);
    if (cell != kNoLine && scan.first != kNoLine) {
      CUTWATER_SYNC_POINT("bulkhead.before_serve");
      const std::uint64_t handed = pack_handed(scan.first_ticket, scan.first);
      if (!swap_cell(parts.cell(cell), scan.cell[cell], handed)) continue;
      // Not confirmed: it is void now, and the next round sees it.
      static_cast<void>(confirm_handed(parts, scan.first, scan.first_ticket, stripe));
      continue;
    }
    const std::size_t empty = scan.voids._Find_first();
    if (empty < parts.cells) {
      CUTWATER_SYNC_POINT("bulkhead.before_void");
      swap_cell(parts.cell(static_cast<std::uint32_t>(empty)), scan.cell[empty], 0);
      continue;
    }
    if (!scan.anybody) make_quiet(parts, scan.line);
    return;
  }
  count_contention(*parts.view);
}

}  // namespace cutwater::shm
