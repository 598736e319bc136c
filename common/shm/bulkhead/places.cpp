// SPDX-License-Identifier: Apache-2.0
// The part of BulkheadPublisher that gives bulkheads runs of cells and records and takes them back.
#include <algorithm>
#include <vector>

#include "shm/bulkhead/detail.hpp"
#include "shm/bulkhead/publisher.hpp"

namespace cutwater::shm {
namespace {

/// The same without what `extents` cover.
void cut(std::vector<Gap>& gaps, const Extent (&extents)[kExtents]) {
  for (const Extent& one : extents) {
    const std::uint32_t begin = one.first, end = one.first + one.count;
    const std::size_t many = gaps.size();
    for (std::size_t i = 0; one.count != 0 && i < many; ++i) {
      const std::uint32_t gap_end = gaps[i].first + gaps[i].count;
      if (gap_end <= begin || gaps[i].first >= end) continue;
      if (gap_end > end) gaps.push_back({end, gap_end - end});
      gaps[i].count = begin > gaps[i].first ? begin - gaps[i].first : 0;
    }
  }
  std::erase_if(gaps, [](const Gap& gap) { return gap.count == 0; });
}

/// Both in order, those that touch as one.
std::vector<Gap> join(std::vector<Gap> gaps, const std::vector<Gap>& more) {
  gaps.insert(gaps.end(), more.begin(), more.end());
  std::erase_if(gaps, [](const Gap& gap) { return gap.count == 0; });
  std::sort(gaps.begin(), gaps.end(),
            [](const Gap& a, const Gap& b) { return a.first < b.first; });
  std::vector<Gap> out;
  for (const Gap& gap : gaps) {
    const bool touches = !out.empty() && out.back().first + out.back().count >= gap.first;
    if (!touches) {
      out.push_back(gap);
      continue;
    }
    const std::uint32_t end = std::max(out.back().first + out.back().count, gap.first + gap.count);
    out.back().count = end - out.back().first;
  }
  return out;
}

}  // namespace

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
  Gaps& free = gaps(pool);
  const std::vector<Gap> own = its_own(pool);
  std::size_t last = 0;
  while (last < kExtents && extents[last].count != 0) ++last;
  const std::uint32_t behind = last == 0 ? 0 : extents[last - 1].first + extents[last - 1].count;
  const auto take_from = [&](Gap gap) {
    const Extent part{gap.first, std::min(gap.count, count)};
    if (part.count == 0 || !take(extents, {part, pool})) return;
    free.take({part.first, part.count});
    count -= part.count;
  };
  // First what lies behind the last run, then a gap that holds all of it, then the largest ones.
  if (own.empty()) {
    if (const Gap* const next = last == 0 ? nullptr : free.at(behind)) take_from(*next);
    if (const Gap* const whole = count == 0 ? nullptr : free.first_fit(count)) take_from(*whole);
    if (count == 0) return {};
  }
  std::vector<Gap> all = join(free.all(), own);
  for (const Gap& gap : all) {
    if (last > 0 && gap.first == behind) take_from(gap);
  }
  cut(all, extents);
  for (const Gap& gap : all) {
    if (count != 0 && gap.count >= count) take_from(gap);
  }
  std::sort(all.begin(), all.end(), [](const Gap& a, const Gap& b) { return a.count > b.count; });
  for (const Gap& gap : all) {
    if (count != 0) take_from(gap);
  }
  if (count == 0) return {};
  return scattered(pool);
}

/// One more run of it; false: it has as many as it can have.
bool BulkheadPublisher::take(Extent (&extents)[kExtents], Run run) {
  std::size_t last = 0;
  while (last < kExtents && extents[last].count != 0) ++last;
  if (last > 0 && extents[last - 1].first + extents[last - 1].count == run.extent.first) {
    extents[last - 1].count += run.extent.count;
  } else if (last < kExtents) {
    extents[last] = run.extent;
  } else {
    return false;
  }
  clear(run);
  return true;
}

Error BulkheadPublisher::scattered(Pool pool) const {
  const bool cells = pool == Pool::Cells;
  return {Errc::Busy,
          std::string(cells ? "places" : "places in line") +
              " of bulkheads that were changed or removed rest for 10 s or lie too scattered, "
              "and no room is left; raise capacity." +
              (cells ? "bulkhead-cells" : "waiters") + " (now " + std::to_string(room(pool)) +
              ") and restart, or wait"};
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
    resting_of_.emplace(writing_, resting_next_.size() - 1);
    if (extent.count == 0) extent = {};
    total -= part;
  }
}

/// What this apply() may give to anybody.
Gaps& BulkheadPublisher::gaps(Pool pool) {
  std::optional<Gaps>& kept = gaps_[static_cast<std::size_t>(pool)];
  if (kept) return *kept;
  std::vector<Gap> used;
  for (const Resting& resting : resting_next_) {
    if (resting.run.pool == pool) {
      used.push_back({resting.run.extent.first, resting.run.extent.count});
    }
  }
  for (std::uint32_t i = 0; i < view_.bulkhead_count; ++i) {
    for (const Extent& one : pool == Pool::Cells ? config(i).cells : config(i).records) {
      if (one.count != 0) used.push_back({one.first, one.count});
    }
  }
  return kept.emplace(std::move(used), room(pool));
}

/// What the bulkhead at hand gave up, rests, and is not in its runs again.
std::vector<Gap> BulkheadPublisher::its_own(Pool pool) const {
  std::vector<Gap> own;
  const auto range = resting_of_.equal_range(writing_);
  for (auto at = range.first; at != range.second; ++at) {
    const Resting& resting = resting_next_[at->second];
    if (resting.run.pool != pool || !is_its_own(resting)) continue;
    own.push_back({resting.run.extent.first, resting.run.extent.count});
  }
  const BulkheadConfig& c = config(writing_);
  cut(own, pool == Pool::Cells ? c.cells : c.records);
  return own;
}

bool BulkheadPublisher::is_its_own(const Resting& resting) const noexcept {
  return resting.index == writing_ && resting.until > now_ &&
         resting.incarnation == config(writing_).incarnation;
}

void BulkheadPublisher::clear(Run run) noexcept {
  const auto range = resting_of_.equal_range(writing_);
  const auto begin = range.first, end = range.second;
  for (std::uint32_t i = 0; i < run.extent.count; ++i) {
    const std::uint32_t at = run.extent.first + i;
    // What it gets back was empty when it drained. Somebody who took a place there since, by rules
    // of before, counts with the present ones and keeps it or gives it back: not ours to clear.
    const bool had_it = std::any_of(begin, end, [&](const auto& one) {
      const Resting& resting = resting_next_[one.second];
      const Extent& had = resting.run.extent;
      return resting.run.pool == run.pool && at >= had.first && at - had.first < had.count &&
             is_its_own(resting);
    });
    if (had_it) continue;
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
