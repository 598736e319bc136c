// SPDX-License-Identifier: Apache-2.0
// verify: bulkheads. Runs within the regions and of nobody else's, cells of living rows, records.
#include <algorithm>
#include <string>
#include <vector>

#include "rule/bulkhead_settings.hpp"
#include "shm/bulkhead/layout.hpp"
#include "shm/process_table.hpp"
#include "shm/verify_detail.hpp"

namespace cutwater::shm::detail {
namespace {

const BulkheadConfig& config_of(const Verifier& v, std::uint32_t index) {
  return reinterpret_cast<const BulkheadConfig*>(v.view.image[v.c & kCurrentImageBit] +
                                                 v.view.image_bulkheads_offset)[index];
}

/// Their sum; more than there is room for when one lies outside.
std::uint64_t sum_of(const Extent (&runs)[kExtents], std::uint64_t room) {
  std::uint64_t sum = 0;
  for (const Extent& run : runs) {
    if (std::uint64_t{run.first} + run.count > room) return ~std::uint64_t{0};
    sum += run.count;
  }
  return sum;
}

std::string check_places(const View& view, const BulkheadConfig& c) {
  const std::uint64_t cells = sum_of(c.cells, view.bulkhead_cell_count);
  if (cells > rule::kMaxConcurrentCalls) return "its places lie outside those reserved";
  if (sum_of(c.records, view.waiter_count) > rule::kMaxBulkheadWaiting) {
    return "its places in line lie outside those reserved";
  }
  return c.limit <= cells ? "" : "has fewer places than its limit";
}

/// The row of a live holder or waiter; `generation` in its low 14 bits.
std::string check_owner(const View& view, std::uint32_t row, std::uint32_t generation) {
  RowInfo info;
  if (row == 0 || !read_row(view, row, info)) {
    return "row " + std::to_string(row) + ", which does not exist";
  }
  const bool same = (info.word.generation & kPlaceGenerationMask) == generation;
  // A row is freed after everything of it.
  if (!same || info.word.state == RowState::Free) {
    return "a life of row " + std::to_string(row) + " that is over";
  }
  return "";
}

std::string check_cell(const Verifier& v, const BulkheadConfig& c, std::uint32_t cell) {
  const std::uint64_t value = read_once(v.view.bulkhead_cells[cell]);
  const PlaceCell place = unpack_place(value);
  const std::string which = "place " + std::to_string(cell) + " ";
  if (place.state == PlaceState::Scribbled || (place.state == PlaceState::Free && value != 0)) {
    return which + "is in a state that does not exist";
  }
  if (place.state == PlaceState::Handed && place.record >= sum_of(c.records, ~0u)) {
    return which + "is handed to a place in line that does not exist";
  }
  if (place.state != PlaceState::Held) return "";
  const std::string owner = check_owner(v.view, place.row, place.generation);
  return owner.empty() ? "" : which + "is held by " + owner;
}

std::string check_record(const Verifier& v, std::uint32_t record) {
  const Word16 word = load16(&v.view.waiters[record].word);
  const Waiter waiter = unpack_waiter(word);
  const std::string which = "place in line " + std::to_string(record) + " ";
  if (waiter.state > WaiterState::Waiting) return which + "is in a state that does not exist";
  if (waiter.state == WaiterState::Idle) return "";
  const std::string owner = check_owner(v.view, waiter.row, waiter.generation);
  return owner.empty() ? "" : which + "belongs to " + owner;
}

/// Two bulkheads with one place.
std::string check_shared(const Verifier& v, bool cells) {
  std::vector<Extent> all;
  for (std::uint32_t i = 0; i < v.view.bulkhead_count; ++i) {
    const BulkheadConfig& c = config_of(v, i);
    for (const Extent& run : cells ? c.cells : c.records) {
      if (run.count != 0) all.push_back(run);
    }
  }
  std::sort(all.begin(), all.end(),
            [](const Extent& a, const Extent& b) { return a.first < b.first; });
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (all[i].first < std::uint64_t{all[i - 1].first} + all[i - 1].count) {
      return "two of them have the same place " + std::to_string(all[i].first);
    }
  }
  return "";
}

}  // namespace

void verify_bulkheads(Verifier& v) {
  v.expect("bulkheads", Verifier::kNoIndex, [&] { return check_shared(v, true); });
  v.expect("bulkheads' lines", Verifier::kNoIndex, [&] { return check_shared(v, false); });
  for (std::uint32_t i = 0; i < v.view.bulkhead_count; ++i) {
    v.expect("bulkhead", i, [&]() -> std::string {
      const BulkheadConfig& c = config_of(v, i);
      return read_once(c.used) == 0 ? "" : check_places(v.view, c);
    });
    const BulkheadConfig c = config_of(v, i);
    if (c.used == 0 || !check_places(v.view, c).empty()) continue;
    for (const Extent& run : c.cells) {
      for (std::uint32_t n = 0; n < run.count; ++n) {
        v.expect("bulkhead", i, [&] { return check_cell(v, c, run.first + n); });
      }
    }
    for (const Extent& run : c.records) {
      for (std::uint32_t n = 0; n < run.count; ++n) {
        v.expect("bulkhead", i, [&] { return check_record(v, run.first + n); });
      }
    }
  }
}

}  // namespace cutwater::shm::detail
