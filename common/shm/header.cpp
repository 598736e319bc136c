// SPDX-License-Identifier: Apache-2.0
#include "shm/header.hpp"

#include <algorithm>
#include <cstring>
#include <initializer_list>

#include "base/crc32c.hpp"
#include "base/guard.hpp"
#include "shm/breaker/trip_layout.hpp"
#include "shm/bulkhead/layout.hpp"
#include "shm/process_table.hpp"

namespace cutwater::shm {
namespace {

constexpr std::uint64_t kMaxFileLength = std::uint64_t{1} << 46;

/// What a region of a kind must look like. stride 0: judged by its own rule below.
struct RegionRule {
  FileKind file;
  RegionKind kind;
  std::uint32_t stride;
  std::uint64_t count_min;
  std::uint64_t count_max;
  std::uint64_t align;
  bool inside_image;
  const char* name;
};
using File = FileKind;
using Kind = RegionKind;
constexpr RegionRule kRegionRules[] = {
    {File::Rules, Kind::Image, 0, 2, 2, kCacheLine, false, "images"},
    {File::Rules, Kind::ImageLimits, sizeof(LimitConfig), 1, 65'535, 64, true, "limits"},
    {File::Rules, Kind::ImageRules, sizeof(RuleRecord), kFirstRuleId + 1, 65'535, 64, true,
     "rules"},
    {File::Rules, Kind::ImageNames, sizeof(NameRecord), 1, 65'535, 64, true, "names"},
    {File::State, Kind::Rows, sizeof(ProcessRow), kFirstClientRow + 1, 65'535, 64, false, "rows"},
    {File::State, Kind::Limit, sizeof(LimitState), 1, 65'535, 64, false, "limit words"},
    // We lay buckets at a multiple of 2 MiB; a reader needs only whole lines.
    {File::State, Kind::Bucket, sizeof(Word16), 2 * kGroupSlots, std::uint64_t{1} << 36, 64, false,
     "buckets"},
    {File::Stats, Kind::Stripes, 0, 2, 4097, 64, false, "stripes"},
    {File::Stats, Kind::Events, sizeof(EventRecord), 1, std::uint64_t{1} << 20, 64, false,
     "events"},
    {File::Rules, Kind::ImageOverrides, sizeof(OverrideRecord), 2, std::uint64_t{1} << 21, 64,
     true, "overrides"},
    {File::Rules, Kind::ImageSets, sizeof(SetRecord), kFirstSet, 65'540, 64, true, "sets"},
    {File::Rules, Kind::ImagePatterns, sizeof(PatternRecord), 1, 65'535, 64, true, "patterns"},
    {File::Rules, Kind::ImageCalendars, sizeof(CalendarRecord), 1, 65'535, 64, true, "calendars"},
    {File::Rules, Kind::ImageBreakers, sizeof(BreakerConfig), 0, 65'535, 64, true,
     "breaker settings"},
    {File::Rules, Kind::ImageBreakerNames, sizeof(NameRecord), 0, 65'535, 64, true,
     "breaker names"},
    {File::Rules, Kind::ImageBreakerClasses, sizeof(BreakerClasses), 0, 65'535, 64, true,
     "breaker classes"},
    {File::State, Kind::Breaker, sizeof(BreakerHead), 0, 65'535, 64, false, "breakers"},
    {File::State, Kind::BreakerMemory, kCacheLine, 0, std::uint64_t{1} << 26, 64, false,
     "breaker memory"},
    {File::Rules, Kind::ImageBulkheads, sizeof(BulkheadConfig), 0, 65'535, 64, true,
     "bulkhead settings"},
    {File::Rules, Kind::ImageBulkheadNames, sizeof(NameRecord), 0, 65'535, 64, true,
     "bulkhead names"},
    {File::State, Kind::Bulkhead, sizeof(BulkheadHead), 0, 65'535, 64, false, "bulkheads"},
    {File::State, Kind::BulkheadCells, sizeof(std::uint64_t), 0, std::uint64_t{1} << 20, 64, false,
     "bulkhead cells"},
    {File::State, Kind::BulkheadStamps, sizeof(std::uint64_t), 0, std::uint64_t{1} << 20, 64,
     false, "bulkhead stamps"},
    {File::State, Kind::Waiters, sizeof(WaiterRecord), 0, std::uint64_t{1} << 18, 64, false,
     "waiters"},
    {File::Stats, Kind::Tops, sizeof(TopRecord), 0, std::uint64_t{1} << 28, 64, false, "tops"},
    {File::Stats, Kind::Trips, sizeof(TripRecord), 0, 65'536, 64, false, "trips"},
    {File::Stats, Kind::BreakerStories, sizeof(BreakerStory), 0, 65'535, 64, false, "stories"},
    {File::Stats, Kind::KeyNames, sizeof(KeyName), 0, std::uint64_t{1} << 36, 64, false,
     "names of keys"},
};

std::string file_text(FileKind file) {
  return "memory file `" + std::string(name_of(file)) + "`: ";
}

Error damaged(FileKind file, const std::string& what) {
  return {Errc::Damaged, file_text(file) + what};
}

/// First byte behind the region; 128 bits, so nothing wraps around to a small number.
unsigned __int128 end_of(const Region& region) noexcept {
  return static_cast<unsigned __int128>(region.stride) * region.count + region.offset;
}

Result<void> check_identity(const FileHeader& header, FileKind file, std::uint64_t length) {
  if (header.magic != kMagic) return damaged(file, "not a memory file of cutwater (foreign magic)");
  if (header.abi_major != kAbiMajor) {
    return Error{Errc::LayoutMismatch,
                 file_text(file) + "layout " + std::to_string(header.abi_major) +
                     ", this build knows layout " + std::to_string(kAbiMajor) +
                     "; run daemon, library and tools of one version"};
  }
  if (header.ready != kReady) return damaged(file, "not ready: its making was cut short");
  const std::uint64_t unknown = header.features_required & ~kFeaturesKnown;
  if (unknown != 0) {
    return Error{Errc::LayoutMismatch,
                 file_text(file) + "needs features this build does not know (" +
                     std::to_string(unknown) + ")"};
  }
  if (header.header_length != sizeof(FileHeader)) return damaged(file, "header of another length");
  if (header.file != static_cast<std::uint32_t>(file)) {
    return damaged(file, "is another of the three");
  }
  if (header.clock > static_cast<std::uint32_t>(ClockKind::Stepped)) {
    return damaged(file, "names a clock that does not exist");
  }
  // Outside this, computing segment time would overflow.
  if (header.epoch_ns < -kEpochLeadNs || header.epoch_ns > kHorizonNs) {
    return damaged(file, "its clock begins at an impossible time");
  }
  if (header.total_length != length) {
    return damaged(file, "truncated or grown: " + std::to_string(length) +
                             " bytes, its header says " + std::to_string(header.total_length));
  }
  return {};
}

Result<void> check_region(const FileHeader& header, FileKind file, const RegionRule& rule) {
  const Region* region = find_region(header, rule.kind);
  if (region == nullptr) return damaged(file, std::string("region ") + rule.name + " is missing");
  const std::string name = std::string("region ") + rule.name;
  if (rule.stride != 0 && region->stride != rule.stride) {
    return damaged(file, name + ": wrong stride");
  }
  if (region->count < rule.count_min || region->count > rule.count_max) {
    return damaged(file, name + ": count " + std::to_string(region->count) + " is out of range");
  }
  if (region->offset % rule.align != 0 || region->stride == 0) {
    return damaged(file, name + " is not aligned");
  }
  const std::uint64_t first = rule.inside_image ? sizeof(ImageHead) : 2 * kPage;
  std::uint64_t end = header.total_length;
  if (rule.inside_image) end = find_region(header, RegionKind::Image)->stride;
  if (region->offset < first || end_of(*region) > end) {
    return damaged(file, name + " reaches out of bounds (offset " + std::to_string(region->offset) +
                             ", " + std::to_string(region->count) + " x " +
                             std::to_string(region->stride) + " of " + std::to_string(end) +
                             " bytes)");
  }
  return {};
}

/// No byte belongs to two regions of the same space.
bool regions_overlap(const FileHeader& header, FileKind file) noexcept {
  for (const RegionRule& a : kRegionRules) {
    for (const RegionRule& b : kRegionRules) {
      const bool same_space = a.file == file && b.file == file && a.inside_image == b.inside_image;
      if (&a == &b || !same_space) continue;
      const Region& x = *find_region(header, a.kind);
      const Region& y = *find_region(header, b.kind);
      if (x.count == 0 || y.count == 0) continue;    // nothing reserved has no byte to share
      if (x.offset <= y.offset && end_of(x) > y.offset) return true;
    }
  }
  return false;
}

/// CRC and bounds of one file. `length` was compared with total_length before.
Result<void> check_regions(const FileHeader& header, FileKind file) {
  if (header_checksum(header) != header.crc32c) {
    return damaged(file, "header checksum is wrong");
  }
  if (header.total_length > kMaxFileLength) return damaged(file, "longer than any memory");
  for (const RegionRule& rule : kRegionRules) {
    if (rule.file != file) continue;
    if (auto checked = check_region(header, file, rule); !checked) return checked;
  }
  if (regions_overlap(header, file)) return damaged(file, "regions overlap");
  return {};
}

/// What must agree between regions and files for the bounds of a View to hold.
Result<void> check_together(const HeaderSet& headers) {
  const FileHeader& rules = headers[0];
  const FileHeader& state = headers[1];
  const FileHeader& stats = headers[2];
  const Region& image = *find_region(rules, RegionKind::Image);
  if (image.stride % kCacheLine != 0) return damaged(FileKind::Rules, "images are not aligned");
  const std::uint64_t limits = find_region(rules, RegionKind::ImageLimits)->count;
  if (find_region(rules, RegionKind::ImageNames)->count != limits ||
      find_region(state, RegionKind::Limit)->count != limits) {
    return damaged(FileKind::State, "holds another number of limits than `rules`");
  }
  const Region& overrides = *find_region(rules, RegionKind::ImageOverrides);
  if ((overrides.count & (overrides.count - 1)) != 0 || overrides.flags > overrides.count / 2) {
    return damaged(FileKind::Rules, "region overrides: not a power of two, or more than half full");
  }
  const Region& bucket = *find_region(state, RegionKind::Bucket);
  const std::uint64_t groups = bucket.count / kGroupSlots, k = bucket.flags;
  if (bucket.count % kGroupSlots != 0 || k == 0 || groups % k != 0 || groups / k < 2) {
    return damaged(FileKind::State, "region buckets: no whole groups");
  }
  const Region& stripes = *find_region(stats, RegionKind::Stripes);
  const std::uint64_t breakers = find_region(rules, RegionKind::ImageBreakers)->count;
  if (find_region(rules, RegionKind::ImageBreakerNames)->count != breakers ||
      find_region(rules, RegionKind::ImageBreakerClasses)->count != breakers ||
      find_region(state, RegionKind::Breaker)->count != breakers ||
      find_region(stats, RegionKind::BreakerStories)->count != breakers) {
    return damaged(FileKind::State, "holds another number of breakers than `rules`");
  }
  const std::uint64_t bulkheads = find_region(rules, RegionKind::ImageBulkheads)->count;
  if (find_region(rules, RegionKind::ImageBulkheadNames)->count != bulkheads ||
      find_region(state, RegionKind::Bulkhead)->count != bulkheads) {
    return damaged(FileKind::State, "holds another number of bulkheads than `rules`");
  }
  if (find_region(state, RegionKind::BulkheadCells)->count !=
      find_region(state, RegionKind::BulkheadStamps)->count) {
    return damaged(FileKind::State, "region bulkhead stamps: not one beside each cell");
  }
  if (stripes.stride != sizeof(StripeOwner) + limits * sizeof(LimitCounters) +
                            breakers * sizeof(BreakerCounters) +
                            bulkheads * sizeof(BulkheadCounters)) {
    return damaged(FileKind::Stats, "region stripes: wrong stride");
  }
  const std::uint64_t names = find_region(stats, RegionKind::KeyNames)->count;
  if (names != 0 && names != bucket.count) {
    return damaged(FileKind::Stats, "region names of keys: not one beside each slot");
  }
  const Region& tops = *find_region(stats, RegionKind::Tops);
  if (tops.count % limits != 0 || tops.flags != tops.count / limits) {
    return damaged(FileKind::Stats, "region tops: not the same number for each limit");
  }
  return {};
}

Result<void> check_origin(const HeaderSet& headers, bool check_boot) {
  const FileHeader& rules = headers[0];
  for (const FileKind file : {FileKind::State, FileKind::Stats}) {
    const FileHeader& other = headers[static_cast<std::size_t>(file)];
    if (std::memcmp(other.uuid, rules.uuid, sizeof rules.uuid) != 0) {
      return damaged(file, "belongs to another memory than `rules` (uuid differs)");
    }
    if (other.clock != rules.clock || other.epoch_ns != rules.epoch_ns ||
        std::memcmp(other.boot_id, rules.boot_id, sizeof rules.boot_id) != 0) {
      return damaged(file, "names another clock or boot than `rules`");
    }
  }
  if (!check_boot) return {};
  if (is_of_another_boot(headers)) {
    return damaged(FileKind::Rules,
                   "of another boot: its time stamps mean nothing now (boot id differs)");
  }
  const std::uint64_t own = time_namespace_of_self();
  if (rules.time_namespace != 0 && own != 0 && rules.time_namespace != own) {
    return Error{Errc::ClockMismatch,
                 file_text(FileKind::Rules) + "made in another time namespace (" +
                     std::to_string(rules.time_namespace) + ", ours is " + std::to_string(own) +
                     "): its clock is not ours; ask the daemon instead"};
  }
  return {};
}

}  // namespace

std::string_view name_of(FileKind file) noexcept {
  switch (file) {
    case FileKind::Rules: return "rules";
    case FileKind::State: return "state";
    case FileKind::Stats: return "stats";
  }
  return "unknown";
}

const Region* find_region(const FileHeader& header, RegionKind kind) noexcept {
  for (const Region& region : header.region) {
    if (region.kind == static_cast<std::uint32_t>(kind)) return &region;
  }
  return nullptr;
}

bool is_of_another_boot(const HeaderSet& headers) noexcept {
  std::uint8_t boot_id[16];
  return read_boot_id(boot_id) && std::memcmp(boot_id, headers[0].boot_id, sizeof boot_id) != 0;
}

Result<void> check_headers(const HeaderSet& headers, const std::array<std::uint64_t, 3>& lengths,
                           bool check_boot) {
  for (const FileKind file : {FileKind::Rules, FileKind::State, FileKind::Stats}) {
    const auto index = static_cast<std::size_t>(file);
    auto identity = check_identity(headers[index], file, lengths[index]);
    if (!identity) return identity;
    if (guarded(Guard::HeaderChecked)) {
      if (auto checked = check_regions(headers[index], file); !checked) return checked;
    }
  }
  if (guarded(Guard::HeaderChecked)) {
    if (auto checked = check_together(headers); !checked) return checked;
  }
  return check_origin(headers, check_boot);
}

}  // namespace cutwater::shm
