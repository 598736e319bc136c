// SPDX-License-Identifier: Apache-2.0
#include "shm/bulkhead_publisher.hpp"

#include <algorithm>
#include <cstring>
#include <set>

#include "shm/bulkhead.hpp"

namespace cutwater::shm {
namespace {

constexpr std::uint32_t kNone = ~std::uint32_t{0};

std::uint32_t total_of(const Extent (&extents)[kExtents]) noexcept {
  std::uint32_t total = 0;
  for (const Extent& extent : extents) total += extent.count;
  return total;
}

std::uint32_t records_wanted(const rule::BulkheadSettings& settings) noexcept {
  return settings.max_wait_ns == 0 ? 0 : settings.max_waiting;
}

Error too_many(std::uint64_t needed, const std::string& what, std::uint64_t room,
               const char* setting) {
  return {Errc::InvalidArgument, std::to_string(needed) + " " + what +
                                     ", but memory was reserved for " + std::to_string(room) +
                                     "; set capacity." + setting +
                                     " to at least that number and restart"};
}

}  // namespace

BulkheadConfig& BulkheadPublisher::config(std::uint32_t index) noexcept {
  return reinterpret_cast<BulkheadConfig*>(image_ + view_.image_bulkheads_offset)[index];
}
NameRecord& BulkheadPublisher::name(std::uint32_t index) noexcept {
  return reinterpret_cast<NameRecord*>(image_ + view_.image_bulkhead_names_offset)[index];
}
std::string_view BulkheadPublisher::name_at(std::uint32_t index) noexcept {
  return {name(index).text, std::min<std::size_t>(name(index).length, sizeof(NameRecord::text))};
}

std::uint32_t BulkheadPublisher::room(Pool pool) const noexcept {
  return pool == Pool::Cells ? view_.bulkhead_cell_count : view_.waiter_count;
}

Result<void> BulkheadPublisher::check(const std::vector<rule::BulkheadSettings>& bulkheads) const {
  std::set<std::string_view> names;
  std::uint64_t places = 0, records = 0;
  for (const rule::BulkheadSettings& settings : bulkheads) {
    if (auto fine = rule::check(settings); !fine) return fine;
    if (!names.insert(settings.name).second) {
      return Error{Errc::InvalidArgument,
                   "bulkhead '" + settings.name + "' is given twice; keep one"};
    }
    if (rule::is_pattern(settings)) {
      return Error{Errc::Unsupported, "bulkhead '" + settings.name +
                                          "': patterns make no bulkheads in this version; name "
                                          "each of them"};
    }
    places += settings.max_concurrent;
    records += records_wanted(settings);
  }
  if (bulkheads.size() > view_.bulkhead_count) {
    return too_many(bulkheads.size(), "bulkheads", view_.bulkhead_count, "bulkheads");
  }
  if (places > view_.bulkhead_cell_count) {
    return too_many(places, "places of bulkheads", view_.bulkhead_cell_count, "bulkhead-cells");
  }
  if (records > view_.waiter_count) {
    return too_many(records, "calls in line at bulkheads", view_.waiter_count, "waiters");
  }
  return {};
}

Result<void> BulkheadPublisher::apply(std::uint8_t* image,
                                      const std::vector<rule::BulkheadSettings>& bulkheads,
                                      std::int64_t now) {
  image_ = image;
  now_ = now;
  taken_.clear();
  resting_next_ = resting_;
  resting_index_next_ = resting_index_;
  if (auto fine = check(bulkheads); !fine) return fine;
  std::set<std::string_view> wanted;
  for (const rule::BulkheadSettings& settings : bulkheads) wanted.insert(settings.name);
  for (std::uint32_t i = 0; i < view_.bulkhead_count; ++i) {
    if (config(i).used != 0 && wanted.count(name_at(i)) == 0) remove(i, now);
  }
  for (const rule::BulkheadSettings& settings : bulkheads) {
    const std::uint32_t index = index_of(settings.name);
    auto done = index == kNone ? add(settings, now) : write(index, settings, now);
    if (!done) return done;
  }
  return {};
}

void BulkheadPublisher::committed(const std::vector<rule::BulkheadSettings>& bulkheads) {
  settings_ = bulkheads;
  resting_ = std::move(resting_next_);
  resting_index_ = std::move(resting_index_next_);
  // A limit that was raised: those in line get what is free now.
  for (std::uint32_t i = 0; i < view_.bulkhead_count; ++i) {
    if (bulkhead_needs_tick(view_, i)) {
      static_cast<void>(tick_bulkhead(view_, i, shared_stripe(view_)));
    }
  }
}

bool BulkheadPublisher::settle_due(const std::uint8_t* image) const noexcept {
  const auto* configs = reinterpret_cast<const BulkheadConfig*>(image +
                                                                view_.image_bulkheads_offset);
  for (std::uint32_t i = 0; i < view_.bulkhead_count; ++i) {
    const BulkheadConfig& c = configs[i];
    if (c.used == 0) continue;
    const std::uint32_t cells = total_of(c.cells), records = total_of(c.records);
    const std::uint32_t line = c.max_wait_ns == 0 ? 0 : c.max_waiting;
    if (cells > c.limit && drained_to(c.cells, Pool::Cells, c.limit) < cells) return true;
    if (records > line && drained_to(c.records, Pool::Records, line) < records) return true;
  }
  return false;
}

std::uint32_t BulkheadPublisher::index_of(std::string_view wanted) noexcept {
  for (std::uint32_t i = 0; i < view_.bulkhead_count; ++i) {
    if (config(i).used != 0 && name_at(i) == wanted) return i;
  }
  return kNone;
}

std::uint32_t BulkheadPublisher::free_index(std::string_view wanted, std::int64_t now) noexcept {
  const auto resting = [&](std::uint32_t index) {
    return std::any_of(resting_index_next_.begin(), resting_index_next_.end(),
                       [&](const RestingIndex& r) { return r.index == index && r.until > now; });
  };
  std::uint32_t used = kNone;
  for (std::uint32_t i = 0; i < view_.bulkhead_count; ++i) {
    if (config(i).used != 0) continue;
    // A name that comes back gets its old index at once: nobody else could be confused by it.
    if (name(i).length != 0 && name_at(i) == wanted) return i;
    if (resting(i)) continue;
    if (used == kNone || (config(used).incarnation != 0 && config(i).incarnation == 0)) used = i;
  }
  return used;
}

void BulkheadPublisher::remove(std::uint32_t index, std::int64_t now) {
  writing_ = index;
  BulkheadConfig& c = config(index);
  shrink(c.cells, Pool::Cells, 0, now);
  shrink(c.records, Pool::Records, 0, now);
  const std::uint32_t incarnation = c.incarnation + 1;
  c = {};
  c.incarnation = incarnation;                       // holders of the old name are told at once
  resting_index_next_.push_back({index, now + kBulkheadRestNs});
}

Result<void> BulkheadPublisher::add(const rule::BulkheadSettings& settings, std::int64_t now) {
  const std::uint32_t index = free_index(settings.name, now);
  if (index == kNone) {
    return Error{Errc::Busy,
                 "bulkheads that were removed keep their place for an hour and none is left for '" +
                     settings.name + "'; raise capacity.bulkheads (now " +
                     std::to_string(view_.bulkhead_count) + ") and restart"};
  }
  // A ticket of the index's former owner is never one of the new one's: `next` goes on.
  Word16 holding = load16(&view_.bulkheads[index].holding);
  while (!cas16(&view_.bulkheads[index].holding, holding, {})) {}
  BulkheadConfig& c = config(index);
  const std::uint32_t incarnation = c.incarnation + 1;
  c = {};
  c.used = 1;
  c.incarnation = incarnation;
  NameRecord& record = name(index);
  record = {};
  record.length = static_cast<std::uint8_t>(settings.name.size());
  std::memcpy(record.text, settings.name.data(), settings.name.size());
  return write(index, settings, now);
}

Result<void> BulkheadPublisher::write(std::uint32_t index, const rule::BulkheadSettings& settings,
                                      std::int64_t now) {
  writing_ = index;
  BulkheadConfig& c = config(index);
  // What the image in force still grants or lets wait in is not given up in the same step.
  const std::uint32_t cells = std::max(settings.max_concurrent, c.limit);
  const std::uint32_t records =
      std::max(records_wanted(settings), c.max_wait_ns == 0 ? 0 : c.max_waiting);
  if (auto fine = fit(c.cells, Pool::Cells, cells, now); !fine) return fine;
  if (auto fine = fit(c.records, Pool::Records, records, now); !fine) return fine;
  c.enabled = settings.enabled ? 1 : 0;
  c.limit = settings.max_concurrent;
  c.max_waiting = settings.max_waiting;
  c.max_wait_ns = settings.max_wait_ns;
  c.max_hold_ns = settings.max_hold_ns;
  return {};
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
    if (config(i).used == 0) continue;
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
