// SPDX-License-Identifier: Apache-2.0
#include "shm/memory_copy_bulkheads.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "shm/bulkhead/detail.hpp"

namespace cutwater::shm {
namespace {

const BulkheadConfig& config_of(const View& view, std::uint64_t c, std::uint32_t index) noexcept {
  return reinterpret_cast<const BulkheadConfig*>(view.image[c & kCurrentImageBit] +
                                                 view.image_bulkheads_offset)[index];
}

/// One that was taken out comes along while somebody is still in.
bool comes_along(const View& view, const BulkheadConfig& config) noexcept {
  return config.used != 0 || !nobody_is_in(view, config);
}

/// All of one bulkhead's in one run from `next` on.
void lay_out(Extent (&extents)[kExtents], std::uint32_t& next) noexcept {
  const std::uint32_t total = total_of(extents);
  for (Extent& extent : extents) extent = {};
  if (total != 0) extents[0] = {next, total};
  next += total;
}

/// Word by word: somebody may make a bulkhead just now.
PatternPlace copy_of(PatternPlace& place) noexcept {
  PatternPlace out{};
  out.identity = load16(&place.identity);
  out.create = load16(&place.create);
  for (std::size_t i = 0; i < std::size(out.name); ++i) out.name[i] = load16(&place.name[i]);
  return out;
}

void copy_counters(const View& from, const View& to, std::uint32_t index) noexcept {
  const BulkheadSums sums = sum_bulkhead_counters(from, index);
  const StripeHandle stripe = shared_stripe(to);
  auto* const place = reinterpret_cast<BulkheadCounters*>(stripe.counters +
                                                          to.stripe_bulkheads_offset) + index;
  // relaxed: nobody looks yet.
  for (std::size_t i = 0; i < kBulkheadCounters; ++i) {
    __atomic_fetch_add(&place->value[i], sums.value[i], __ATOMIC_RELAXED);
  }
  for (std::size_t i = 0; i < kHistogramCells; ++i) {
    __atomic_fetch_add(&place->held[i], sums.held[i], __ATOMIC_RELAXED);
    __atomic_fetch_add(&place->waited[i], sums.waited[i], __ATOMIC_RELAXED);
  }
}

}  // namespace

Result<void> check_bulkheads_fit(const View& from, const View& to) {
  const std::uint64_t c = from.current();
  std::uint64_t last = 0, cells = 0, records = 0;
  for (std::uint32_t i = 0; i < from.bulkhead_count; ++i) {
    const BulkheadConfig& config = config_of(from, c, i);
    if (!comes_along(from, config)) continue;
    last = i + 1;
    cells += total_of(config.cells);
    records += total_of(config.records);
  }
  struct Part { std::uint64_t used, room; const char *what, *setting; };
  const Part parts[] = {
      {last, to.bulkhead_count, "places of bulkheads", "capacity.bulkheads"},
      {cells, to.bulkhead_cell_count, "places of calls", "capacity.bulkhead-cells"},
      {records, to.waiter_count, "places in line", "capacity.waiters"},
  };
  for (const Part& part : parts) {
    if (part.used <= part.room) continue;
    return Error{Errc::InvalidArgument,
                 std::to_string(part.used) + " " + part.what +
                     " are in use and the new memory has room for " + std::to_string(part.room) +
                     "; set " + part.setting + " to at least " + std::to_string(part.used)};
  }
  return {};
}

void copy_bulkhead_settings(const View& from, const View& to, std::uint8_t* image) noexcept {
  const std::uint64_t c = from.current();
  const std::uint8_t* const old = from.image[c & kCurrentImageBit];
  const std::uint32_t many = std::min(from.bulkhead_count, to.bulkhead_count);
  auto* const configs = reinterpret_cast<BulkheadConfig*>(image + to.image_bulkheads_offset);
  std::memcpy(configs, old + from.image_bulkheads_offset, many * sizeof(BulkheadConfig));
  std::memcpy(image + to.image_bulkhead_names_offset, old + from.image_bulkhead_names_offset,
              many * sizeof(NameRecord));
  std::uint32_t cells = 0, records = 0;
  for (std::uint32_t i = 0; i < many; ++i) {
    if (!comes_along(from, configs[i])) configs[i] = emptied(configs[i]);
    lay_out(configs[i].cells, cells);
    lay_out(configs[i].records, records);
  }
}

void copy_bulkheads(const View& from, const View& to) noexcept {
  for (std::uint32_t i = 0; i < std::min(from.bulkhead_count, to.bulkhead_count); ++i) {
    const BulkheadHead& old = from.bulkheads[i];
    BulkheadHead& head = to.bulkheads[i];
    const std::uint32_t arrivals = arrivals_of(old.line);
    head.line = std::uint64_t{arrivals} << 32 | arrivals;
    head.next = old.next;
    head.holding = load16(&from.bulkheads[i].holding);
    head.place = copy_of(from.bulkheads[i].place);
    copy_counters(from, to, i);
    BulkheadParts source, target;
    source.view = &from;
    source.config = config_of(from, from.current(), i);
    if (!read_parts_left(to, {i, 0}, target)) continue;
    const std::uint32_t cells = std::min(target.cells, total_of(source.config.cells));
    for (std::uint32_t cell = 0; cell < cells; ++cell) {
      const std::uint64_t value = load_cell(source.cell(cell));
      if (state_of_cell(value) != PlaceState::Held) continue;
      *target.cell(cell) = value;
      *target.stamp(cell) = __atomic_load_n(source.stamp(cell), __ATOMIC_RELAXED);
    }
    for (const Extent& run : source.config.records) {
      for (std::uint32_t record = 0; record < run.count; ++record) {
        WaiterRecord* const waiter = from.waiters + run.first + record;
        if (unpack_waiter(load16(&waiter->word)).state == WaiterState::Waiting) wake_waiter(waiter);
      }
    }
  }
}

}  // namespace cutwater::shm
