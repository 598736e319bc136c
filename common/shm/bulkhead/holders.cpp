// SPDX-License-Identifier: Apache-2.0
#include "shm/bulkhead/holders.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "shm/bulkhead/detail.hpp"

namespace cutwater::shm {
namespace {

using Owner = std::pair<std::uint32_t, std::uint32_t>;   // row, generation
using ByOwner = std::map<Owner, BulkheadHolder>;

BulkheadHolder& holder(ByOwner& owners, std::uint32_t row, std::uint32_t generation) {
  BulkheadHolder& found = owners[{row, generation}];
  found.row = row;
  found.generation = generation;
  return found;
}

void add_places(const BulkheadParts& parts, const BulkheadScan& scan, std::int64_t now,
                ByOwner& owners) {
  for (std::uint32_t i = 0; i < parts.cells; ++i) {
    const PlaceCell cell = unpack_place(scan.cell[i]);
    if (cell.state == PlaceState::Handed && !scan.voids.test(i) && cell.record < parts.records) {
      const Waiter waiter = unpack_waiter(load16(&parts.record(cell.record)->word));
      if (waiter.ticket == cell.ticket) ++holder(owners, waiter.row, waiter.generation).places;
    }
    if (cell.state != PlaceState::Held) continue;
    BulkheadHolder& of = holder(owners, cell.row, cell.generation);
    ++of.places;
    // relaxed: for people; a stamp that is not of this take is not believed.
    const std::int64_t since =
        since_of(__atomic_load_n(parts.stamp(i), __ATOMIC_RELAXED), cell.take);
    if (since != 0) of.oldest_ns = std::max(of.oldest_ns, now - since);
  }
}

void add_line(const BulkheadParts& parts, std::int64_t now, ByOwner& owners) {
  for (std::uint32_t i = 0; i < parts.records; ++i) {
    const Waiter waiter = unpack_waiter(load16(&parts.record(i)->word));
    if (waiter.state != WaiterState::Waiting || !in_time(waiter, now)) continue;
    if (!place_owner_alive(*parts.view, waiter.row, waiter.generation)) continue;
    ++holder(owners, waiter.row, waiter.generation).waiting;
  }
}

}  // namespace

bool read_bulkhead_holders(const View& view, std::uint32_t index, BulkheadHolders& out) {
  out = {};
  BulkheadParts parts;
  if (!read_parts(view, index, parts)) return false;
  const std::int64_t now = view.clock.now();
  BulkheadScan scan;
  scan_bulkhead(parts, now, scan);
  ByOwner owners;
  add_places(parts, scan, now, owners);
  add_line(parts, now, owners);
  for (auto& [owner, one] : owners) {
    one.gone = !place_owner_alive(view, owner.first, owner.second);
    out.all.push_back(one);
  }
  std::stable_sort(out.all.begin(), out.all.end(),
                   [](const BulkheadHolder& a, const BulkheadHolder& b) {
                     return a.places != b.places ? a.places > b.places : a.waiting > b.waiting;
                   });
  if (scan.first == kNoLine) return true;
  const Waiter first = unpack_waiter(load16(&parts.record(scan.first)->word));
  if (first.state != WaiterState::Waiting || first.ticket != scan.first_ticket) return true;
  out.next_row = first.row;
  // A wait without an end is stored as the last deadline there is.
  const std::uint64_t left = first.deadline >= kDeadlineMax
                                 ? static_cast<std::uint64_t>(kHorizonNs)
                                 : first.deadline * kDeadlineNs;
  out.next_left_ns = std::max<std::int64_t>(static_cast<std::int64_t>(left) - now, 0);
  return true;
}

}  // namespace cutwater::shm
