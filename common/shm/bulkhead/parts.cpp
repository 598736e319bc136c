// SPDX-License-Identifier: Apache-2.0
// The parts of a bulkhead with private bounds, and what readers see of it.
#include <algorithm>
#include <cstring>

#include "shm/breaker/detail.hpp"
#include "shm/bulkhead/detail.hpp"
#include "shm/limit/rule_reader.hpp"
#include "shm/process_table.hpp"

namespace cutwater::shm {
namespace {

const BulkheadConfig& config_at(const View& view, std::uint64_t current,
                                std::uint32_t index) noexcept {
  return reinterpret_cast<const BulkheadConfig*>(view.image[current & kCurrentImageBit] +
                                                 view.image_bulkheads_offset)[index];
}

/// Word by word, so that no half of a field is of another publication once `current` agrees; and at
/// once to its place: copied on from here in wider pieces it would wait for its own stores.
void copy_config(const BulkheadConfig& from, BulkheadConfig& to) noexcept {
  static_assert(sizeof(BulkheadConfig) % 8 == 0);
  const auto* source = reinterpret_cast<const std::uint64_t*>(&from);
  auto* const place = reinterpret_cast<unsigned char*>(&to);
  for (std::size_t i = 0; i < sizeof to / 8; ++i) {
    const std::uint64_t word = read_once(source[i]);
    std::memcpy(place + 8 * i, &word, sizeof word);
  }
}

bool add_up(const Extent (&extents)[kExtents], std::uint64_t room, std::uint64_t most,
            std::uint32_t& total) noexcept {
  std::uint64_t sum = 0;
  for (const Extent& extent : extents) {
    if (std::uint64_t{extent.first} + extent.count > room) return false;
    sum += extent.count;
  }
  total = static_cast<std::uint32_t>(sum);
  return sum <= most;
}

bool locate(const View& view, BulkheadParts& parts) noexcept {
  const BulkheadConfig& c = parts.config;
  return add_up(c.cells, view.bulkhead_cell_count, rule::kMaxConcurrentCalls, parts.cells) &&
         add_up(c.records, view.waiter_count, rule::kMaxBulkheadWaiting, parts.records) &&
         c.limit <= parts.cells;
}

/// What lies at `index`, whether anybody may use it or not.
bool read_any(const View& view, std::uint32_t index, BulkheadParts& out) noexcept {
  if (index >= view.bulkhead_count) return false;
  out.view = &view;
  out.index = index;
  out.head = view.bulkheads + index;
  for (int i = 0; i < kConfigReads; ++i) {
    out.current = view.current();
    copy_config(config_at(view, out.current, index), out.config);
    if (view.current() != out.current) continue;
    // Whoever holds a place in a memory that was superseded holds it in its successor.
    if ((out.current & kCurrentSupersededBit) != 0) return false;
    if (locate(view, out)) return true;
    count_damage(view);
    return false;
  }
  count_contention(view);
  return false;
}

}  // namespace

bool read_parts(const View& view, std::uint32_t index, BulkheadParts& out) noexcept {
  if (!read_any(view, index, out) || out.config.used == 0) return false;
  return out.config.kind != kInstanceEntry || is_taken(bulkhead_entry(view, out.config, index));
}

bool read_parts(const View& view, BulkheadRef ref, BulkheadParts& out) noexcept {
  return read_parts(view, ref.index, out) && out.config.incarnation == ref.incarnation;
}

bool read_parts_left(const View& view, BulkheadRef ref, BulkheadParts& out) noexcept {
  return read_any(view, ref.index, out);
}

bool refresh_parts(BulkheadParts& parts) noexcept {
  if (parts.view->current() == parts.current) return true;
  BulkheadParts anew;
  if (!read_parts(*parts.view, {parts.index, parts.config.incarnation}, anew)) return false;
  parts = anew;
  return true;
}

void keep_bulkhead(const BulkheadParts& parts, const BulkheadCaller& caller) noexcept {
  if (caller.local == nullptr) return;
  const BulkheadConfig& c = parts.config;
  const bool places = c.enabled != 0 && c.limit != 0 && c.cells[0].count == parts.cells;
  const std::uint32_t first = places ? first_look(caller, c.limit) : 0;
  const auto place = [](const void* at) { return reinterpret_cast<std::uint64_t>(at); };
  // In the order of BulkheadWord.
  caller.local->kept.keep(
      *parts.view, parts.current,
      {pack_ref(parts.index, c.incarnation),
       (places ? kKeptPlaces : 0) | (c.max_hold_ns != 0 ? kKeptExact : 0), place(parts.head),
       place(parts.view->bulkhead_cells + c.cells[0].first),
       place(parts.view->bulkhead_stamps + c.cells[0].first),
       std::uint64_t{parts.cells} << 32 | c.limit, std::uint64_t{caller.row} << 32 | first,
       parts.view->stripe_bulkheads_offset +
           std::uint64_t{parts.index} * sizeof(BulkheadCounters)});
}

bool place_owner_alive(const View& view, std::uint32_t row, std::uint32_t generation) noexcept {
  if (row == 0 || row >= view.row_count) return false;
  // acquire: pairs with the release of the owner of the rows.
  const RowWord word = unpack_row(__atomic_load_n(&view.rows[row].word, __ATOMIC_ACQUIRE));
  return (word.generation & kPlaceGenerationMask) == generation &&
         (word.state == RowState::Live || word.state == RowState::Orphan);
}

/// Nobody alive holds a place of these runs, has one handed to it, or is in line.
bool nobody_is_in(const View& view, const BulkheadConfig& c) noexcept {
  const auto waits = [&](std::uint64_t at) {
    if (at >= view.waiter_count) return false;
    const Waiter waiter = unpack_waiter(load16(&view.waiters[at].word));
    return waiter.state != WaiterState::Idle &&
           place_owner_alive(view, waiter.row, waiter.generation);
  };
  for (const Extent& run : c.records) {
    for (std::uint32_t i = 0; i < run.count; ++i) {
      if (waits(std::uint64_t{run.first} + i)) return false;
    }
  }
  // What was handed to somebody who does not wait is nobody's.
  for (const Extent& run : c.cells) {
    for (std::uint32_t i = 0; i < run.count; ++i) {
      const std::uint64_t at = std::uint64_t{run.first} + i;
      if (at >= view.bulkhead_cell_count) continue;
      const PlaceCell cell = unpack_place(load_cell(view.bulkhead_cells + at));
      if (cell.state == PlaceState::Held && place_owner_alive(view, cell.row, cell.generation)) {
        return false;
      }
    }
  }
  return true;
}

OldestHolder oldest_holder(const BulkheadParts& parts, std::int64_t now) noexcept {
  OldestHolder oldest;
  for (std::uint32_t i = 0; i < parts.cells; ++i) {
    const PlaceCell cell = unpack_place(load_cell(parts.cell(i)));
    if (cell.state != PlaceState::Held) continue;
    // relaxed: for people; a stamp that is not of this take is not believed.
    const std::int64_t since =
        since_of(__atomic_load_n(parts.stamp(i), __ATOMIC_RELAXED), cell.take);
    if (since == 0 || now - since <= oldest.ns) continue;
    oldest = {now - since, cell.row};
  }
  return oldest;
}

std::int64_t median_hold(const BulkheadParts& parts, std::int64_t now) noexcept {
  const Word16 holding = load16(&parts.head->holding);
  const auto told = static_cast<std::int64_t>(holding.hi);
  const bool known = told != 0 && told <= now && now - told <= kMedianGoodNs;
  const auto median = static_cast<std::int64_t>(holding.lo);
  return known && median > 0 && median < kHorizonNs ? median : 0;
}

bool read_bulkhead(const View& view, std::uint32_t index, BulkheadInfo& out) noexcept {
  out = {};
  BulkheadParts parts;
  if (!read_parts(view, index, parts)) return false;
  out.used = true;
  out.kind = parts.config.kind;
  out.enabled = parts.config.enabled != 0;
  out.incarnation = parts.config.incarnation;
  out.limit = parts.limit();
  out.max_waiting = parts.config.max_waiting;
  out.max_wait_ns = parts.config.max_wait_ns;
  out.max_hold_ns = parts.config.max_hold_ns;
  out.now_ns = view.clock.now();
  BulkheadScan scan;
  scan_bulkhead(parts, out.now_ns, scan);
  // A place handed to somebody who is gone is nobody's.
  out.in_use = scan.occupied - static_cast<std::uint32_t>(scan.voids.count());
  out.over = out.in_use > out.limit ? out.in_use - out.limit : 0;
  out.waiting = scan.waiting;
  const OldestHolder oldest = oldest_holder(parts, out.now_ns);
  out.oldest_ns = oldest.ns;
  out.oldest_row = oldest.row;
  out.median_ns = median_hold(parts, out.now_ns);
  bulkhead_name(view, parts.current, index, out.name, sizeof out.name);
  return true;
}

}  // namespace cutwater::shm
