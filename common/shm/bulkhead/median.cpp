// SPDX-License-Identifier: Apache-2.0
#include "shm/bulkhead/median.hpp"

#include <algorithm>
#include <cstring>

#include "shm/breaker/breaker.hpp"

namespace cutwater::shm {

std::int64_t median_of(const std::uint32_t (&cells)[kHistogramCells]) noexcept {
  std::uint64_t all = 0, seen = 0;
  for (const std::uint32_t count : cells) all += count;
  for (std::size_t i = 0; i < kHistogramCells && all != 0; ++i) {
    seen += cells[i];
    if (2 * seen >= all) return histogram_upper_ns(i);
  }
  return 0;
}

void HoldMedians::look(const View& view) {
  const std::int64_t now = view.clock.now();
  const bool other = std::memcmp(of_, view.uuid, sizeof of_) != 0;
  if (!other && now < next_ns_) return;
  if (other) kept_.clear();
  std::memcpy(of_, view.uuid, sizeof of_);
  next_ns_ = now + kStepNs;
  kept_.resize(view.bulkhead_count);
  for (std::uint32_t index = 0; index < view.bulkhead_count; ++index) {
    Kept& kept = kept_[index];
    BulkheadInfo info;
    if (!read_bulkhead(view, index, info)) {
      kept = {};
      continue;
    }
    if (kept.incarnation != info.incarnation) kept = {info.incarnation, {}};
    const BulkheadSums sums = sum_bulkhead_counters(view, index);
    while (!kept.looks.empty() &&
           now - kept.looks.front().t_ns > kStepNs * static_cast<std::int64_t>(kSteps + 1)) {
      kept.looks.erase(kept.looks.begin());
    }
    if (!kept.looks.empty()) {
      std::uint32_t since[kHistogramCells];
      // Differences modulo 2^32, as all counts of that width.
      for (std::size_t i = 0; i < kHistogramCells; ++i) {
        since[i] = sums.held[i] - kept.looks.front().held[i];
      }
      const std::int64_t median = median_of(since);
      Word16* const place = &view.bulkheads[index].holding;
      Word16 seen = load16(place);
      const Word16 told{static_cast<std::uint64_t>(median), static_cast<std::uint64_t>(now)};
      while (median != 0 && !cas16(place, seen, told)) {}
    }
    if (kept.looks.size() == kSteps) kept.looks.erase(kept.looks.begin());
    Look& present = kept.looks.emplace_back();
    present.t_ns = now;
    std::copy(std::begin(sums.held), std::end(sums.held), present.held.begin());
  }
}

}  // namespace cutwater::shm
