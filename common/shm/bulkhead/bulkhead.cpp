// SPDX-License-Identifier: Apache-2.0
// Taking a place and giving it back.
#include "shm/bulkhead/bulkhead.hpp"

#include "base/sync_point.hpp"
#include "shm/breaker/detail.hpp"
#include "shm/bulkhead/detail.hpp"
#include "shm/supersede.hpp"

namespace cutwater::shm {
namespace {

// A scan keeps 32 KiB on the stack: functions that have one are not inlined into those that have
// none.
[[gnu::noinline]] std::uint32_t find_void(const BulkheadParts& parts,
                                          std::uint64_t& value) noexcept {
  BulkheadScan scan;
  scan_bulkhead(parts, parts.view->clock.now(), scan);
  const std::uint32_t cell = scan.usable(parts);
  if (cell != kNoLine) value = scan.cell[cell];
  return cell;
}

/// A free cell below the limit; when there is none, a void one. kNoLine: none. `value` is what it
/// must still hold.
std::uint32_t find_cell(const BulkheadParts& parts, const BulkheadCaller& caller,
                        std::uint64_t& value) noexcept {
  const std::uint32_t limit = parts.limit();
  bool handed = false;
  std::uint32_t i = limit == 0 ? 0 : first_look(caller, limit);
  for (std::uint32_t n = 0; n < limit; ++n) {
    value = load_cell(parts.cell(i));
    if (value == 0) return i;
    handed |= state_of_cell(value) == PlaceState::Handed;
    if (++i == limit) i = 0;
  }
  return handed ? find_void(parts, value) : kNoLine;
}

/// The same while somebody may be in line: nobody who is owed a place is passed. Those whose time
/// is over, and those to whom a place was handed, are owed none.
[[gnu::noinline]] std::uint32_t find_cell_behind(BulkheadParts& parts,
                                                 const BulkheadCaller& caller,
                                                 std::uint64_t& value, bool may_serve) noexcept {
  BulkheadScan scan;
  scan_bulkhead(parts, parts.view->clock.now(), scan);
  const std::uint32_t cell = scan.usable(parts);
  if (cell == kNoLine) return kNoLine;
  if (scan.first != kNoLine) {
    // A place is free and somebody waits: whoever freed it was stopped or killed.
    if (may_serve) serve_line(parts, caller.stripe);
    return kNoLine;
  }
  value = scan.cell[cell];
  return cell;
}

[[gnu::noinline]] BulkheadEntry refuse(const BulkheadParts& parts,
                                       const BulkheadCaller& caller) noexcept {
  count_bulkhead(*parts.view, caller.stripe, parts.index, BulkheadCounter::RefusedFull);
  return refusal_of(parts, Reason::Full, parts.view->clock.now());
}

BulkheadEntry passed_off(const View& view, const BulkheadParts& parts,
                         StripeHandle stripe) noexcept {
  BulkheadEntry entry;
  entry.granted = true;
  entry.limit = parts.limit();
  entry.now_ns = view.clock.now();
  count_bulkhead(view, stripe, parts.index, BulkheadCounter::PassedOff);
  return entry;
}

/// Of a place just made our own: counted, and given back when it is one too many.
[[gnu::noinline]] BulkheadEntry judge_take(BulkheadParts& parts, const HeldPlace& held,
                                           const BulkheadCaller& caller) noexcept {
  const View& view = *parts.view;
  if (overshot(parts, held.cell)) {
    count_bulkhead(view, caller.stripe, parts.index, BulkheadCounter::Overshot);
    static_cast<void>(pass_place(parts, held, true, caller.stripe));
    BulkheadEntry refusal = refuse(parts, caller);
    if (overtaken(view)) refusal.place = {held.value, 0, held.cell};
    return refusal;
  }
  BulkheadEntry entry;
  entry.granted = true;
  entry.limit = parts.limit();
  entry.now_ns = view.clock.now();
  entry.place = stamp_place(parts, held, entry.now_ns);
  count_bulkhead(view, caller.stripe, parts.index, BulkheadCounter::Granted);
  return entry;
}

}  // namespace

BulkheadEntry entry_of(const View& view, BulkheadRef ref, const BulkheadCaller& caller,
                       const QuickPlace& place, QuickTake how) noexcept {
  if (how == QuickTake::Taken) {
    BulkheadEntry entry;
    entry.granted = true;
    entry.place = place.ticket;
    entry.limit = place.limit;
    entry.now_ns = place.ticket.start_ns;
    return entry;
  }
  BulkheadParts parts;
  if (read_parts(view, ref, parts)) {
    return judge_take(parts, {place.at, place.ticket.cell_value, place.ticket.cell}, caller);
  }
  // Gone. What copies the memory meanwhile finds it held by a call that never began.
  static_cast<void>(swap_cell(place.at, place.ticket.cell_value, 0));
  BulkheadEntry refusal = degraded_place(view, ref, caller.stripe);
  if (overtaken(view)) refusal.place = {place.ticket.cell_value, 0, place.ticket.cell};
  return refusal;
}

PlaceTicket stamp_place(const BulkheadParts& parts, HeldPlace held, std::int64_t now) noexcept {
  const std::uint32_t take = unpack_place(held.value).take;
  std::uint64_t* const stamp = parts.view->bulkhead_stamps +
                               (held.place - parts.view->bulkhead_cells);
  // relaxed: read by people and by max-hold, which believe it by its take number only.
  __atomic_store_n(stamp, pack_stamp(now, take), __ATOMIC_RELAXED);
  return {held.value, now, held.cell};
}

BulkheadEntry degraded_place(const View& view, BulkheadRef ref, StripeHandle stripe) noexcept {
  BulkheadEntry entry;
  entry.reason = Reason::Degraded;
  entry.hint = true;
  entry.retry_after_ns = kUnknownHoldNs;
  entry.now_ns = view.clock.now();
  count_bulkhead(view, stripe, ref.index, BulkheadCounter::RefusedDegraded);
  return entry;
}

BulkheadEntry refusal_of(const BulkheadParts& parts, Reason reason, std::int64_t now) noexcept {
  BulkheadEntry entry;
  BulkheadScan scan;
  scan_bulkhead(parts, now, scan);
  entry.reason = reason;
  entry.hint = true;
  entry.in_use = scan.occupied - static_cast<std::uint32_t>(scan.voids.count());
  entry.limit = parts.limit();
  entry.waiting = scan.waiting;
  entry.max_wait_ns = parts.config.max_wait_ns;
  entry.may_wait = reason == Reason::Full && parts.config.max_wait_ns != 0 &&
                   parts.config.max_waiting != 0;
  entry.oldest_ns = oldest_holder(parts, now).ns;
  const std::int64_t median = median_hold(parts, now);
  entry.retry_after_ns = median != 0 ? median : kUnknownHoldNs;
  entry.now_ns = now;
  return entry;
}

BulkheadEntry enter_bulkhead(const View& view, BulkheadRef ref,
                             const BulkheadCaller& caller) noexcept {
  QuickPlace place;
  const QuickTake quick =
      take_quickly(view, pack_ref(ref.index, ref.incarnation), caller, place);
  if (quick != QuickTake::No) return entry_of(view, ref, caller, place, quick);
  BulkheadParts parts;
  if (!read_parts(view, ref, parts)) return degraded_place(view, ref, caller.stripe);
  keep_bulkhead(parts, caller);
  if (parts.config.enabled == 0) return passed_off(view, parts, caller.stripe);
  if (caller.row == 0) return degraded_place(view, ref, caller.stripe);
  for (int round = 0; round < kBulkheadRounds; ++round) {
    if (!refresh_parts(parts)) return degraded_place(view, ref, caller.stripe);
    const bool quiet = line_is_quiet(load_line(parts)) || !guarded(Guard::PlaceNewcomersQueue);
    std::uint64_t value = 0;
    const std::uint32_t cell = quiet ? find_cell(parts, caller, value)
                                     : find_cell_behind(parts, caller, value, true);
    if (cell == kNoLine) return refuse(parts, caller);
    HeldPlace held{parts.cell(cell), pack_held({caller.row, caller.generation}, next_take()),
                   cell};
    CUTWATER_SYNC_POINT("bulkhead.before_take");
    if (!swap_cell(held.place, value, held.value)) continue;
    return judge_take(parts, held, caller);
  }
  count_contention(view);
  return refuse(parts, caller);
}

BulkheadEntry look_at_bulkhead(const View& view, BulkheadRef ref,
                               const BulkheadCaller& caller) noexcept {
  BulkheadParts parts;
  if (!read_parts(view, ref, parts)) return degraded_place(view, ref, {});
  if (parts.config.enabled == 0) return passed_off(view, parts, {});
  std::uint64_t value = 0;
  const bool quiet = line_is_quiet(load_line(parts));
  const std::uint32_t cell = quiet ? find_cell(parts, caller, value)
                                   : find_cell_behind(parts, caller, value, false);
  const bool free = cell != kNoLine && count_places(parts) <= parts.limit();
  if (!free) return refusal_of(parts, Reason::Full, view.clock.now());
  BulkheadEntry entry;
  entry.granted = true;
  entry.limit = parts.limit();
  entry.now_ns = view.clock.now();
  return entry;
}

Left leave_bulkhead(const View& view, BulkheadRef ref, const BulkheadCaller& caller,
                    const PlaceTicket& place) noexcept {
  if (place.cell_value == 0) return Left::Nothing;
  bool moved = false;
  if (leave_quickly(view, pack_ref(ref.index, ref.incarnation), caller, place, moved)) {
    return moved ? Left::Moved : Left::Returned;
  }
  BulkheadParts parts;
  if (!read_parts_left(view, ref, parts)) return overtaken(view) ? Left::Moved : Left::Nothing;
  const bool gone = parts.config.used == 0 || parts.config.incarnation != ref.incarnation;
  if (!gone) keep_bulkhead(parts, caller);
  // A cell beyond those there are was empty when the bulkhead shrank.
  const bool passed =
      place.cell < parts.cells &&
      pass_place(parts, {parts.cell(place.cell), place.cell_value, place.cell}, true,
                 caller.stripe);
  if (overtaken(view)) return Left::Moved;
  if (!passed && gone) return Left::Nothing;
  if (!passed) {
    count_bulkhead(view, caller.stripe, ref.index, BulkheadCounter::Stale);
    return Left::Stale;
  }
  count_bulkhead(view, caller.stripe, ref.index, BulkheadCounter::Returned);
  if (place.start_ns == 0) return Left::Returned;
  const std::int64_t held = detail::held_for(view, place);
  if (held > 0 || !place.coarse) count_held(view, caller.stripe, ref.index, held);
  return Left::Returned;
}

}  // namespace cutwater::shm
