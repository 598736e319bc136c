// SPDX-License-Identifier: Apache-2.0
// The making of headers: how many bytes each region gets and where it lies.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/crc32c.hpp"
#include "shm/breaker/trip_layout.hpp"
#include "shm/bulkhead/layout.hpp"
#include "shm/header.hpp"
#include "shm/limit/key_hash.hpp"
#include "shm/process_table.hpp"

namespace cutwater::shm {
namespace {

constexpr std::uint64_t kMaxKeys = std::uint64_t{1} << 30;
constexpr std::uint32_t kMaxLimits = 65'535;
constexpr std::uint32_t kMaxProcesses = 65'533;
constexpr std::uint32_t kMaxStripes = 4096;
constexpr std::uint32_t kMaxEvents = std::uint32_t{1} << 20;
constexpr std::uint32_t kMaxRules = 65'535;
constexpr std::uint32_t kMaxOverrides = std::uint32_t{1} << 20;
constexpr std::uint32_t kMaxTops = 4096;
constexpr std::uint32_t kMaxTrips = 65'536;
constexpr std::uint32_t kMinPatterns = 16, kOverridesPerPattern = 16;
constexpr std::uint64_t kMaxBreakerMemory = std::uint64_t{1} << 32;
constexpr std::uint32_t kMaxBulkheadCells = std::uint32_t{1} << 20;
constexpr std::uint32_t kMaxWaiters = std::uint32_t{1} << 18;
constexpr std::uint64_t kMinGroups = 2;

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t step) noexcept {
  return (value + step - 1) / step * step;
}

std::uint64_t slots_for(std::uint64_t keys) noexcept {
  return std::max(round_up(2 * keys, kGroupSlots), kMinGroups * kGroupSlots);
}

/// Lays regions one behind the other.
class Planner {
 public:
  explicit Planner(FileHeader& header) : header_(header) {}

  void add(RegionKind kind, std::uint64_t stride, std::uint64_t count, std::uint64_t align) {
    end_ = round_up(end_, align);
    add_at(kind, stride, count, end_);
    end_ += stride * count;
  }
  void add_at(RegionKind kind, std::uint64_t stride, std::uint64_t count, std::uint64_t offset) {
    header_.region[used_++] = {static_cast<std::uint32_t>(kind), static_cast<std::uint32_t>(stride),
                               offset, count, 0};
  }
  void set_flags(std::uint64_t flags) { header_.region[used_ - 1].flags = flags; }
  std::uint64_t end() const { return end_; }

 private:
  FileHeader& header_;
  std::size_t used_ = 0;
  std::uint64_t end_ = 2 * kPage;
};

void plan_rules(Planner& plan, const Capacity& capacity) {
  const std::uint64_t limits = capacity.limits;
  struct Part { RegionKind kind; std::uint64_t stride, count; };
  const Part parts[] = {
      {RegionKind::ImageLimits, sizeof(LimitConfig), limits},
      {RegionKind::ImageRules, sizeof(RuleRecord), rule_capacity(capacity.limits)},
      {RegionKind::ImageNames, sizeof(NameRecord), limits},
      {RegionKind::ImageOverrides, sizeof(OverrideRecord), override_slots(capacity.overrides)},
      {RegionKind::ImageSets, sizeof(SetRecord), set_capacity(capacity)},
      {RegionKind::ImagePatterns, sizeof(PatternRecord), pattern_capacity(capacity)},
      {RegionKind::ImageCalendars, sizeof(CalendarRecord), capacity.calendars},
      {RegionKind::ImageBreakers, sizeof(BreakerConfig), capacity.breakers},
      {RegionKind::ImageBreakerNames, sizeof(NameRecord), capacity.breakers},
      {RegionKind::ImageBreakerClasses, sizeof(BreakerClasses), capacity.breakers},
      {RegionKind::ImageBulkheads, sizeof(BulkheadConfig), capacity.bulkheads},
      {RegionKind::ImageBulkheadNames, sizeof(NameRecord), capacity.bulkheads},
  };
  std::uint64_t end = sizeof(ImageHead);
  for (const Part& part : parts) end = round_up(end, kCacheLine) + part.stride * part.count;
  plan.add(RegionKind::Image, round_up(end, kPage), 2, kPage);
  std::uint64_t at = sizeof(ImageHead);
  for (const Part& part : parts) {
    at = round_up(at, kCacheLine);
    plan.add_at(part.kind, part.stride, part.count, at);
    if (part.kind == RegionKind::ImageOverrides) plan.set_flags(capacity.overrides);
    at += part.stride * part.count;
  }
}

void plan_state(Planner& plan, const Capacity& capacity) {
  // The small regions first: they lie in what the 2 MiB alignment of the buckets leaves anyway.
  plan.add(RegionKind::Rows, sizeof(ProcessRow), capacity.processes + kFirstClientRow, kCacheLine);
  plan.add(RegionKind::Limit, sizeof(LimitState), capacity.limits, kCacheLine);
  plan.add(RegionKind::Breaker, sizeof(BreakerHead), capacity.breakers, kCacheLine);
  plan.add(RegionKind::BreakerMemory, kCacheLine, capacity.breaker_memory / kCacheLine, kCacheLine);
  plan.add(RegionKind::Bulkhead, sizeof(BulkheadHead), capacity.bulkheads, kCacheLine);
  plan.add(RegionKind::BulkheadCells, sizeof(std::uint64_t), capacity.bulkhead_cells, kCacheLine);
  plan.add(RegionKind::BulkheadStamps, sizeof(std::uint64_t), capacity.bulkhead_cells, kCacheLine);
  plan.add(RegionKind::Waiters, sizeof(WaiterRecord), capacity.waiters, kCacheLine);
  plan.add(RegionKind::Bucket, sizeof(Word16), slots_for(capacity.keys), kBucketAlign);
  plan.set_flags(1);   // k
}

void plan_stats(Planner& plan, const Capacity& capacity) {
  const std::uint64_t stride = sizeof(StripeOwner) + capacity.limits * sizeof(LimitCounters) +
                               capacity.breakers * sizeof(BreakerCounters) +
                               capacity.bulkheads * sizeof(BulkheadCounters);
  // One more: stripe 0 is shared by the threads that have none.
  plan.add(RegionKind::Stripes, stride, std::uint64_t{capacity.stripes} + 1, kPage);
  plan.add(RegionKind::Events, sizeof(EventRecord), capacity.events, kPage);
  plan.add(RegionKind::Tops, sizeof(TopRecord), std::uint64_t{capacity.limits} * capacity.tops,
           kPage);
  plan.set_flags(capacity.tops);
  plan.add(RegionKind::Trips, sizeof(TripRecord), capacity.trips, kCacheLine);
  plan.add(RegionKind::BreakerStories, sizeof(BreakerStory), capacity.breakers, kCacheLine);
  plan.add(RegionKind::KeyNames, sizeof(KeyName),
           capacity.remember_keys ? slots_for(capacity.keys) : 0, kPage);
}

Error out_of_range(const char* setting, std::uint64_t value, std::uint64_t low,
                   std::uint64_t high) {
  return {Errc::InvalidArgument, std::string("capacity.") + setting + ": " + std::to_string(value) +
                                     " is outside " + std::to_string(low) + ".." +
                                     std::to_string(high)};
}

}  // namespace

Result<void> check_capacity(const Capacity& capacity) {
  struct Range { const char* setting; std::uint64_t value, low, high; };
  const Range ranges[] = {
      {"keys", capacity.keys, 1, kMaxKeys},
      {"limits", capacity.limits, 1, kMaxLimits},
      {"processes", capacity.processes, 1, kMaxProcesses},
      {"stripes", capacity.stripes, 1, kMaxStripes},
      {"events", capacity.events, 1, kMaxEvents},
      {"overrides", capacity.overrides, 0, kMaxOverrides},
      {"breakers", capacity.breakers, 0, kMaxLimits},
      {"breaker-memory", capacity.breaker_memory, 0, kMaxBreakerMemory},
      {"bulkheads", capacity.bulkheads, 0, kMaxLimits},
      {"bulkhead-cells", capacity.bulkhead_cells, 0, kMaxBulkheadCells},
      {"waiters", capacity.waiters, 0, kMaxWaiters},
      {"tops", capacity.tops, 0, kMaxTops},
      {"trips", capacity.trips, 0, kMaxTrips},
      {"calendars", capacity.calendars, 1, kMaxRules},
  };
  for (const Range& range : ranges) {
    if (range.value < range.low || range.value > range.high) {
      return out_of_range(range.setting, range.value, range.low, range.high);
    }
  }
  return {};
}

std::uint32_t rule_capacity(std::uint32_t limits) noexcept {
  const std::uint64_t rules = std::uint64_t{4} * limits + kFirstRuleId;
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(rules, kMaxRules));
}

std::uint32_t override_slots(std::uint32_t overrides) noexcept {
  return std::bit_ceil(std::max<std::uint32_t>(2, 2 * overrides));
}

std::uint32_t set_capacity(const Capacity& capacity) noexcept {
  return std::min(capacity.overrides, rule_capacity(capacity.limits)) + kFirstSet;
}

std::uint32_t pattern_capacity(const Capacity& capacity) noexcept {
  const std::uint32_t many = std::max(kMinPatterns, capacity.overrides / kOverridesPerPattern);
  return std::clamp<std::uint32_t>(std::min(many, capacity.overrides), 1, kMaxRules);
}

Capacity rounded(const Capacity& capacity) noexcept {
  Capacity out = capacity;
  out.keys = slots_for(capacity.keys) / 2;
  return out;
}

std::uint64_t file_length(const Capacity& capacity, FileKind file) noexcept {
  return plan_header(capacity, file, {}).total_length;
}

std::uint64_t total_length(const Capacity& capacity) noexcept {
  return file_length(capacity, FileKind::Rules) + file_length(capacity, FileKind::State) +
         file_length(capacity, FileKind::Stats);
}

FileHeader plan_header(const Capacity& capacity, FileKind file, const SegmentIdentity& identity) {
  FileHeader header{};
  header.magic = kMagic;
  header.abi_major = kAbiMajor;
  header.abi_minor = kAbiMinor;
  header.header_length = sizeof(FileHeader);
  header.features_optional = identity.tsc ? kFeatureTsc : 0;
  std::memcpy(header.uuid, identity.uuid, sizeof header.uuid);
  std::memcpy(header.boot_id, identity.boot_id, sizeof header.boot_id);
  header.epoch_ns = identity.epoch_ns;
  header.clock = static_cast<std::uint32_t>(identity.clock);
  header.page_kind = identity.huge_pages ? 1 : 0;
  header.time_namespace = identity.time_namespace;
  header.file = static_cast<std::uint32_t>(file);

  Planner plan(header);
  switch (file) {
    case FileKind::Rules: plan_rules(plan, capacity); break;
    case FileKind::State: plan_state(plan, capacity); break;
    case FileKind::Stats: plan_stats(plan, capacity); break;
  }
  header.total_length = round_up(plan.end(), kPage);
  header.crc32c = header_checksum(header);
  return header;
}

std::uint32_t header_checksum(const FileHeader& header) noexcept {
  const std::uint32_t sum = crc32c(&header, offsetof(FileHeader, crc32c));
  if (header.file != static_cast<std::uint32_t>(FileKind::Rules)) return sum;
  return crc32c(header.secret, sizeof header.secret, sum);
}

Result<SegmentIdentity> new_identity(const SegmentOptions& options) {
  SegmentIdentity identity;
  if (!random_bytes(identity.uuid, sizeof identity.uuid)) {
    return Error{Errc::System, "the kernel gives no random bytes (getrandom)"};
  }
  if (!read_boot_id(identity.boot_id)) {
    return Error{Errc::System, "cannot read /proc/sys/kernel/random/boot_id: is /proc mounted?"};
  }
  identity.clock = options.clock;
  // Segment time starts at 1 s, so that no stamp in use is 0 or lies before the epoch.
  const bool stepped = options.clock == ClockKind::Stepped;
  identity.epoch_ns = stepped ? 0 : boottime_ns() - kEpochLeadNs;
  identity.tsc = options.tsc && !stepped;
  identity.huge_pages = options.huge_pages;
  identity.time_namespace = time_namespace_of_self();
  return identity;
}

bool make_secret(std::uint8_t (&secret)[192]) noexcept {
  return random_bytes(secret, sizeof secret);
}

bool read_boot_id(std::uint8_t (&out)[16]) noexcept {
  const int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  char text[64] = {};
  const ssize_t length = read(fd, text, sizeof text - 1);
  close(fd);
  if (length <= 0) return false;

  std::size_t nibbles = 0;
  for (const char* at = text; *at != 0 && nibbles < 32; ++at) {
    int digit;
    if (*at >= '0' && *at <= '9') digit = *at - '0';
    else if (*at >= 'a' && *at <= 'f') digit = *at - 'a' + 10;
    else continue;   // the dashes
    const int shift = nibbles % 2 == 0 ? 4 : 0;
    if (shift == 4) out[nibbles / 2] = 0;
    out[nibbles / 2] = static_cast<std::uint8_t>(out[nibbles / 2] | (digit << shift));
    ++nibbles;
  }
  return nibbles == 32;
}

}  // namespace cutwater::shm
