// SPDX-License-Identifier: Apache-2.0
// What the owner of the memory does for a bulkhead: the dead, the too long held, those in line.
#include "base/sync_point.hpp"
#include "shm/breaker/detail.hpp"
#include "shm/bulkhead/detail.hpp"
#include "shm/event_log.hpp"
#include "shm/limit/rule_reader.hpp"

namespace cutwater::shm {
namespace {

void tell_place(const BulkheadParts& parts, EventKind kind, std::uint32_t row) noexcept {
  Event event;
  event.kind = kind;
  event.object = parts.index;
  event.row = static_cast<std::uint16_t>(row);
  bulkhead_name(*parts.view, parts.current, parts.index, event.text, sizeof event.text);
  append_event(*parts.view, event);
}

std::uint32_t empty_records_of_the_dead(const BulkheadParts& parts) noexcept {
  std::uint32_t emptied = 0;
  for (std::uint32_t i = 0; i < parts.records; ++i) {
    Word16* const word = &parts.record(i)->word;
    Word16 seen = load16(word);
    const Waiter waiter = unpack_waiter(seen);
    if (seen == Word16{} || (waiter.state != WaiterState::Idle &&
                             place_owner_alive(*parts.view, waiter.row, waiter.generation))) {
      continue;
    }
    CUTWATER_SYNC_POINT("bulkhead.before_empty");
    emptied += cas16(word, seen, {}) && waiter.state != WaiterState::Idle;
  }
  return emptied;
}

/// Held for longer than max-hold. A holder that was stopped before it wrote its stamp gets one now.
bool held_too_long(const BulkheadParts& parts, std::uint32_t i, const PlaceCell& cell,
                   std::int64_t now) noexcept {
  if (parts.config.max_hold_ns == 0) return false;
  std::uint64_t stamp = __atomic_load_n(parts.stamp(i), __ATOMIC_RELAXED);
  const std::int64_t since = since_of(stamp, cell.take);
  if (since != 0) return now - since > static_cast<std::int64_t>(parts.config.max_hold_ns);
  __atomic_compare_exchange_n(parts.stamp(i), &stamp, pack_stamp(now, cell.take), false,
                              __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return false;
}

void look_at_cell(const BulkheadParts& parts, std::uint32_t i, std::int64_t now,
                  StripeHandle stripe, BulkheadTick& out) noexcept {
  const std::uint64_t value = load_cell(parts.cell(i));
  const PlaceCell cell = unpack_place(value);
  if (cell.state == PlaceState::Scribbled || (cell.state == PlaceState::Free && value != 0)) {
    if (swap_cell(parts.cell(i), value, 0)) count_damage(*parts.view);
    return;
  }
  if (cell.state != PlaceState::Held) return;
  const bool dead = !place_owner_alive(*parts.view, cell.row, cell.generation);
  if (!dead && !held_too_long(parts, i, cell, now)) return;
  CUTWATER_SYNC_POINT("bulkhead.before_reclaim");
  if (!swap_cell(parts.cell(i), value, 0)) return;
  CUTWATER_SYNC_POINT("bulkhead.reclaimed");
  ++(dead ? out.reclaimed : out.revoked);
  count_bulkhead(*parts.view, stripe, parts.index,
                 dead ? BulkheadCounter::Reclaimed : BulkheadCounter::Revoked);
  tell_place(parts, dead ? EventKind::PlaceReclaimed : EventKind::PlaceRevoked, cell.row);
}

void wake_all(const BulkheadParts& parts) noexcept {
  for (std::uint32_t i = 0; i < parts.records; ++i) {
    const Waiter waiter = unpack_waiter(load16(&parts.record(i)->word));
    if (waiter.state == WaiterState::Waiting) wake_waiter(parts.record(i));
  }
}

}  // namespace

BulkheadTick tick_bulkhead(const View& view, std::uint32_t index, StripeHandle stripe) noexcept {
  BulkheadTick out;
  BulkheadParts parts;
  // Also of one that was taken out: its places are free for whoever has them next when all have
  // left or died.
  if (!read_parts_left(view, {index, 0}, parts)) return out;
  out.left_line = empty_records_of_the_dead(parts);
  const std::int64_t now = view.clock.now();
  for (std::uint32_t i = 0; i < parts.cells; ++i) look_at_cell(parts, i, now, stripe, out);
  CUTWATER_SYNC_POINT("bulkhead.before_tick_serves");
  if (parts.config.used != 0) serve_line(parts, stripe);
  if (out.reclaimed + out.revoked + out.left_line != 0) wake_all(parts);
  return out;
}

bool bulkhead_needs_tick(const View& view, std::uint32_t index) noexcept {
  BulkheadParts parts;
  if (!read_parts_left(view, {index, 0}, parts)) return false;
  if (parts.config.used != 0 && !line_is_quiet(load_line(parts))) return true;
  for (std::uint32_t i = 0; i < parts.cells; ++i) {
    if (load_cell(parts.cell(i)) != 0) return true;
  }
  return false;
}

bool bulkhead_may_hold(const View& view, std::uint32_t index) noexcept {
  BulkheadParts parts;
  if (!read_parts_left(view, {index, 0}, parts)) return false;
  return parts.records != 0 || bulkhead_needs_tick(view, index);
}

bool bulkhead_has_room(const View& view, std::uint32_t index) noexcept {
  BulkheadParts parts;
  if (!read_parts(view, index, parts)) return true;
  return line_is_quiet(load_line(parts)) && count_places(parts) < parts.limit();
}

void wake_line(const View& view, std::uint32_t index) noexcept {
  BulkheadParts parts;
  if (read_parts(view, index, parts)) wake_all(parts);
}

PlaceTicket take_over_place(const View& view, BulkheadRef ref, const BulkheadCaller& caller,
                            const PlaceTicket& place) noexcept {
  BulkheadParts parts;
  if (place.cell_value == 0 || caller.row == 0 || !read_parts(view, ref, parts) ||
      place.cell >= parts.cells) {
    return {};
  }
  const std::uint64_t stamp = __atomic_load_n(parts.stamp(place.cell), __ATOMIC_RELAXED);
  const std::int64_t since = since_of(stamp, unpack_place(place.cell_value).take);
  const HeldPlace held{parts.cell(place.cell),
                       pack_held({caller.row, caller.generation}, next_take()), place.cell};
  CUTWATER_SYNC_POINT("bulkhead.before_take_over");
  if (!swap_cell(held.place, place.cell_value, held.value)) return {};
  return stamp_place(parts, held, since != 0 ? since : view.clock.now());
}

}  // namespace cutwater::shm
