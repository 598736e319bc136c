// SPDX-License-Identifier: Apache-2.0
#include "shm/gaps.hpp"

#include <algorithm>

namespace cutwater::shm {

Gaps::Gaps(std::vector<Gap> used, std::uint32_t room) {
  std::sort(used.begin(), used.end(),
            [](const Gap& a, const Gap& b) { return a.first < b.first; });
  std::uint64_t at = 0;
  for (const Gap& run : used) {
    if (run.count == 0) continue;
    if (run.first > at && at < room) {
      const auto end = std::min(run.first, room);
      gaps_.push_back({static_cast<std::uint32_t>(at), end - static_cast<std::uint32_t>(at)});
    }
    at = std::max(at, std::uint64_t{run.first} + run.count);
  }
  if (at < room) {
    gaps_.push_back({static_cast<std::uint32_t>(at), room - static_cast<std::uint32_t>(at)});
  }
}

const Gap* Gaps::first_fit(std::uint32_t count) {
  std::size_t& next = next_.try_emplace(count, 0).first->second;
  for (; next < gaps_.size(); ++next) {
    ++looks_;
    if (gaps_[next].count != 0 && gaps_[next].count >= count) return &gaps_[next];
  }
  return nullptr;
}

const Gap* Gaps::at(std::uint32_t first) {
  const auto found =
      std::lower_bound(gaps_.begin(), gaps_.end(), first,
                       [](const Gap& gap, std::uint32_t f) { return gap.first < f; });
  // An empty one may lie before it at the same place.
  for (auto gap = found; gap != gaps_.end() && gap->first == first; ++gap) {
    if (gap->count != 0) return &*gap;
  }
  return nullptr;
}

void Gaps::take(Gap run) {
  const std::uint32_t end = run.first + run.count;
  auto gap = std::lower_bound(
      gaps_.begin(), gaps_.end(), run.first,
      [](const Gap& one, std::uint32_t first) { return one.first + one.count <= first; });
  for (; gap != gaps_.end() && gap->first < end; ++gap) {
    const std::uint32_t gap_end = gap->first + gap->count;
    if (gap->first < run.first) {                    // its rest lies before the run
      gap->count = run.first - gap->first;
    } else {
      const std::uint32_t begin = std::min(end, gap_end);
      *gap = {begin, gap_end - begin};
    }
  }
}

}  // namespace cutwater::shm
