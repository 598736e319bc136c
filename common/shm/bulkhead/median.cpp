// SPDX-License-Identifier: Apache-2.0
#include "shm/bulkhead/median.hpp"

#include <algorithm>
#include <cstring>

#include "shm/breaker/breaker.hpp"
#include "shm/bulkhead/detail.hpp"

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
  if (std::memcmp(of_, view.uuid, sizeof of_) != 0) kept_.clear();
  std::memcpy(of_, view.uuid, sizeof of_);
  kept_.resize(view.bulkhead_count);
  const std::uint32_t many = std::min(view.bulkhead_count, kAtOnce);
  for (std::uint32_t n = 0; n < many; ++n) {
    const std::uint32_t index = next_ < view.bulkhead_count ? next_ : 0;
    next_ = index + 1;
    Kept& kept = kept_[index];
    if (now < kept.next_ns) continue;
    kept.next_ns = now + kStepNs;
    look_at(view, index, now, kept);
  }
}

void HoldMedians::look_at(const View& view, std::uint32_t index, std::int64_t now, Kept& kept) {
  BulkheadParts parts;
  if (!read_parts(view, index, parts)) {
    kept = {0, kept.next_ns, 0, {}};
    return;
  }
  if (kept.incarnation != parts.config.incarnation) {
    kept = {parts.config.incarnation, kept.next_ns, 0, {}};
  }
  const BulkheadSums sums = sum_bulkhead_counters(view, index);
  const bool none = std::all_of(std::begin(sums.held), std::end(sums.held),
                                [](std::uint32_t count) { return count == 0; });
  if (none) {                                        // nothing to keep: most of a wide pattern's
    kept.looks.clear();
    kept.none_ns = now;
    return;
  }
  if (kept.looks.empty() && kept.none_ns != 0) kept.looks.push_back({kept.none_ns, {}});
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

}  // namespace cutwater::shm
