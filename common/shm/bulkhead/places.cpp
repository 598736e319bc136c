// SPDX-License-Identifier: Apache-2.0
// The part of BulkheadPublisher that gives bulkheads runs of cells and records and takes them back.
#include <algorithm>

#include "shm/bulkhead/detail.hpp"
#include "shm/bulkhead/publisher.hpp"

namespace cutwater::shm {

std::uint32_t BulkheadPublisher::room(Pool pool) const noexcept {
  return pool == Pool::Cells ? view_.bulkhead_cell_count : view_.waiter_count;
}

Result<void> BulkheadPublisher::fit(Extent (&extents)[kExtents], Pool pool, std::uint32_t wanted,
                                    std::int64_t now) {
  const std::uint32_t have = total_of(extents);
  if (wanted > have) return grow(extents, pool, wanted - have);
  shrink(extents, pool, drained_to(extents, pool, wanted), now);
  return {};
}

/// How many of them are still needed: `wanted`, or up to the last one that is not empty.
std::uint32_t BulkheadPublisher::drained_to(const Extent (&extents)[kExtents], Pool pool,
                                            std::uint32_t wanted) const noexcept {
  std::uint32_t number = 0, needed = wanted;
  for (const Extent& extent : extents) {
    for (std::uint32_t i = 0; i < extent.count; ++i) {
      const std::uint32_t at = extent.first + i;
      ++number;
      if (number <= wanted || at >= room(pool)) continue;
      // acquire: what was given back is seen as given back.
      const bool empty =
          pool == Pool::Cells
              ? __atomic_load_n(view_.bulkhead_cells + at, __ATOMIC_ACQUIRE) == 0
              : unpack_waiter(load16(&view_.waiters[at].word)).state == WaiterState::Idle;
      if (!empty) needed = number;
    }
  }
  return needed;
}

Result<void> BulkheadPublisher::grow(Extent (&extents)[kExtents], Pool pool,
                                     std::uint32_t count) {
  std::vector<Extent> used = in_use(pool);
  used.push_back({room(pool), 0});
  std::vector<Extent> gaps;
  std::uint32_t at = 0;
  for (const Extent& one : used) {
    if (one.first > at) gaps.push_back({at, one.first - at});
    at = std::max(at, one.first + one.count);
  }
  std::size_t last = 0;
  while (last < kExtents && extents[last].count != 0) ++last;
  const auto take = [&](Extent& gap, std::uint32_t many) {
    const Extent part{gap.first, std::min(gap.count, many)};
    if (last > 0 && extents[last - 1].first + extents[last - 1].count == part.first) {
      extents[last - 1].count += part.count;
    } else if (last < kExtents) {
      extents[last++] = part;
    } else {
      return;
    }
    taken_.push_back({part, pool});
    clear({part, pool});
    gap.first += part.count;
    gap.count -= part.count;
    count -= part.count;
  };
  // First what lies behind the last run, then a gap that holds all of it, then the largest ones.
  for (Extent& gap : gaps) {
    if (last > 0 && extents[last - 1].first + extents[last - 1].count == gap.first) {
      take(gap, count);
    }
  }
  for (Extent& gap : gaps) {
    if (count != 0 && gap.count >= count) take(gap, count);
  }
  std::sort(gaps.begin(), gaps.end(),
            [](const Extent& a, const Extent& b) { return a.count > b.count; });
  for (Extent& gap : gaps) {
    if (count != 0 && gap.count != 0) take(gap, count);
  }
  if (count == 0) return {};
  const bool cells = pool == Pool::Cells;
  return Error{Errc::Busy,
               std::string(cells ? "places" : "places in line") +
                   " of bulkheads that were changed or removed rest for an hour or lie too "
                   "scattered, and no room is left; raise capacity." +
                   (cells ? "bulkhead-cells" : "waiters") + " (now " +
                   std::to_string(room(pool)) + ") and restart, or wait"};
}

void BulkheadPublisher::shrink(Extent (&extents)[kExtents], Pool pool, std::uint32_t to,
                               std::int64_t now) {
  std::uint32_t total = total_of(extents);
  for (std::size_t i = kExtents; i-- > 0 && total > to;) {
    Extent& extent = extents[i];
    const std::uint32_t part = std::min(extent.count, total - to);
    if (part == 0) continue;
    extent.count -= part;
    resting_next_.push_back({{{extent.first + extent.count, part}, pool}, now + kBulkheadRestNs,
                             writing_, config(writing_).incarnation});
    if (extent.count == 0) extent = {};
    total -= part;
  }
}

/// Runs nobody may be given, in order.
std::vector<Extent> BulkheadPublisher::in_use(Pool pool) {
  std::vector<Extent> used;
  for (const Run& run : taken_) {
    if (run.pool == pool) used.push_back(run.extent);
  }
  for (const Resting& resting : resting_next_) {
    if (resting.run.pool == pool && resting.until > now_ && !is_its_own(resting)) {
      used.push_back(resting.run.extent);
    }
  }
  for (std::uint32_t i = 0; i < view_.bulkhead_count; ++i) {
    for (const Extent& one : pool == Pool::Cells ? config(i).cells : config(i).records) {
      if (one.count != 0) used.push_back(one);
    }
  }
  std::sort(used.begin(), used.end(),
            [](const Extent& a, const Extent& b) { return a.first < b.first; });
  return used;
}

bool BulkheadPublisher::is_its_own(const Resting& resting) noexcept {
  return resting.index == writing_ && resting.until > now_ &&
         resting.incarnation == config(writing_).incarnation;
}

void BulkheadPublisher::clear(Run run) noexcept {
  for (std::uint32_t i = 0; i < run.extent.count; ++i) {
    const std::uint32_t at = run.extent.first + i;
    // What it gets back was empty when it drained. Somebody who took a place there since, by rules
    // of before, counts with the present ones and keeps it or gives it back: not ours to clear.
    const bool its_own = std::any_of(
        resting_next_.begin(), resting_next_.end(), [&](const Resting& resting) {
          const Extent& had = resting.run.extent;
          return resting.run.pool == run.pool && at >= had.first &&
                 at - had.first < had.count && is_its_own(resting);
        });
    if (its_own) continue;
    if (run.pool == Pool::Records) {
      Word16 seen = load16(&view_.waiters[at].word);
      while (!cas16(&view_.waiters[at].word, seen, {})) {}
      continue;
    }
    // relaxed: published with the image that names them.
    __atomic_store_n(view_.bulkhead_cells + at, std::uint64_t{0}, __ATOMIC_RELAXED);
    __atomic_store_n(view_.bulkhead_stamps + at, std::uint64_t{0}, __ATOMIC_RELAXED);
  }
}

}  // namespace cutwater::shm
