// SPDX-License-Identifier: Apache-2.0
#include "shm/row_holdings.hpp"

#include "base/sync_point.hpp"
#include "shm/breaker/detail.hpp"
#include "shm/bulkhead/detail.hpp"

namespace cutwater::shm {
namespace {

bool is_held_probe(Word16 word, RowGrant row) noexcept {
  const ProbeCell cell = unpack_probe(word);
  return cell.state == ProbeState::Held && cell.row == row.index &&
         cell.generation == (row.generation & kProbeGenerationMask);
}

bool holds_of_breaker(const BreakerParts& parts, RowGrant row) noexcept {
  for (std::uint32_t i = 0; i < parts.probe_count; ++i) {
    if (is_held_probe(load16(parts.probes + i), row)) return true;
  }
  for (std::uint32_t i = 0; i < parts.hanging_count; ++i) {
    if (is_held_probe(load16(parts.hanging + i), row)) return true;
  }
  return false;
}

bool is_row(std::uint32_t index, std::uint32_t generation, RowGrant row) noexcept {
  return index == row.index && generation == (row.generation & kPlaceGenerationMask);
}

bool holds_of_bulkhead(const BulkheadParts& parts, RowGrant row) noexcept {
  for (std::uint32_t i = 0; i < parts.cells; ++i) {
    const PlaceCell cell = unpack_place(load_cell(parts.cell(i)));
    if (cell.state == PlaceState::Held && is_row(cell.row, cell.generation, row)) return true;
  }
  return false;
}

}  // namespace

bool row_holds(const View& view, RowGrant row) noexcept {
  for (std::uint32_t i = 0; i < view.bulkhead_count; ++i) {
    BulkheadParts parts;
    if (read_parts_left(view, {i, 0}, parts) && holds_of_bulkhead(parts, row)) return true;
  }
  for (std::uint32_t i = 0; i < view.breaker_count; ++i) {
    BreakerParts parts;
    if (read_parts(view, i, parts) && holds_of_breaker(parts, row)) return true;
  }
  return false;
}

void empty_line_of(const View& view, RowGrant row, StripeHandle stripe) noexcept {
  for (std::uint32_t index = 0; index < view.bulkhead_count; ++index) {
    BulkheadParts parts;
    if (!read_parts_left(view, {index, 0}, parts)) continue;
    for (std::uint32_t i = 0; i < parts.records; ++i) {
      Word16* const word = &parts.record(i)->word;
      Word16 seen = load16(word);
      const Waiter waiter = unpack_waiter(seen);
      const bool in_line =
          waiter.state == WaiterState::Claimed || waiter.state == WaiterState::Waiting;
      if (!in_line || !is_row(waiter.row, waiter.generation, row)) continue;
      CUTWATER_SYNC_POINT("bulkhead.before_forget");
      cas16(word, seen, {});
    }
    // What was handed to it is void from here on, and this hands it on; so too what one left that
    // was killed before it did.
    if (parts.config.used != 0) serve_line(parts, stripe);
  }
}

}  // namespace cutwater::shm
