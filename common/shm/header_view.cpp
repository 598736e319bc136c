// SPDX-License-Identifier: Apache-2.0
// From headers that passed their checks to pointers and bounds.
#include <algorithm>
#include <cstddef>
#include <cstring>

#include "shm/breaker/trip_layout.hpp"
#include "shm/bulkhead/layout.hpp"
#include "shm/header.hpp"

namespace cutwater::shm {

View view_of(const HeaderSet& headers, const std::array<std::uint8_t*, 3>& bases) noexcept {
  static constexpr Region kAbsent{};
  const auto region = [&](FileKind file, RegionKind kind) -> const Region& {
    const Region* found = find_region(headers[static_cast<std::size_t>(file)], kind);
    return found == nullptr ? kAbsent : *found;
  };
  std::uint8_t* const rules = bases[0];
  std::uint8_t* const state = bases[1];
  std::uint8_t* const stats = bases[2];
  View view;
  const Region& image = region(FileKind::Rules, RegionKind::Image);
  view.rules_control = reinterpret_cast<RulesControl*>(rules + kPage);
  view.image[0] = rules + image.offset;
  view.image[1] = rules + image.offset + image.stride;
  view.image_length = image.stride;
  view.image_limits_offset = region(FileKind::Rules, RegionKind::ImageLimits).offset;
  view.image_rules_offset = region(FileKind::Rules, RegionKind::ImageRules).offset;
  view.image_names_offset = region(FileKind::Rules, RegionKind::ImageNames).offset;
  view.limit_count =
      static_cast<std::uint32_t>(region(FileKind::Rules, RegionKind::ImageLimits).count);
  view.rule_count =
      static_cast<std::uint32_t>(region(FileKind::Rules, RegionKind::ImageRules).count);

  view.image_overrides_offset = region(FileKind::Rules, RegionKind::ImageOverrides).offset;
  view.image_sets_offset = region(FileKind::Rules, RegionKind::ImageSets).offset;
  view.image_patterns_offset = region(FileKind::Rules, RegionKind::ImagePatterns).offset;
  view.image_calendars_offset = region(FileKind::Rules, RegionKind::ImageCalendars).offset;
  const auto count_of = [&](RegionKind kind) {
    return static_cast<std::uint32_t>(region(FileKind::Rules, kind).count);
  };
  view.override_count = count_of(RegionKind::ImageOverrides);
  view.override_capacity = static_cast<std::uint32_t>(
      region(FileKind::Rules, RegionKind::ImageOverrides).flags);
  view.set_count = count_of(RegionKind::ImageSets);
  view.pattern_count = count_of(RegionKind::ImagePatterns);
  view.calendar_count = count_of(RegionKind::ImageCalendars);

  const Region& bucket = region(FileKind::State, RegionKind::Bucket);
  view.state_control = reinterpret_cast<StateControl*>(state + kPage);
  view.slots = reinterpret_cast<Word16*>(state + bucket.offset);
  view.slot_count = bucket.count;
  view.groups = bucket.count / kGroupSlots;
  view.k = std::max<std::uint64_t>(1, bucket.flags);
  view.g0 = view.groups / view.k;
  view.limits =
      reinterpret_cast<LimitState*>(state + region(FileKind::State, RegionKind::Limit).offset);
  view.rows =
      reinterpret_cast<ProcessRow*>(state + region(FileKind::State, RegionKind::Rows).offset);
  view.row_count = static_cast<std::uint32_t>(region(FileKind::State, RegionKind::Rows).count);
  const Region& breakers = region(FileKind::State, RegionKind::Breaker);
  const Region& memory = region(FileKind::State, RegionKind::BreakerMemory);
  view.image_breakers_offset = region(FileKind::Rules, RegionKind::ImageBreakers).offset;
  view.image_breaker_names_offset = region(FileKind::Rules, RegionKind::ImageBreakerNames).offset;
  view.image_breaker_classes_offset =
      region(FileKind::Rules, RegionKind::ImageBreakerClasses).offset;
  view.breakers = reinterpret_cast<BreakerHead*>(state + breakers.offset);
  view.breaker_count = static_cast<std::uint32_t>(breakers.count);
  view.breaker_memory = state + memory.offset;
  view.breaker_lines = static_cast<std::uint32_t>(memory.count);
  view.stripe_breakers_offset =
      static_cast<std::uint32_t>(view.limit_count * sizeof(LimitCounters));
  const auto at = [&](RegionKind kind) {
    return state + region(FileKind::State, kind).offset;
  };
  view.image_bulkheads_offset = region(FileKind::Rules, RegionKind::ImageBulkheads).offset;
  view.image_bulkhead_names_offset = region(FileKind::Rules, RegionKind::ImageBulkheadNames).offset;
  view.bulkheads = reinterpret_cast<BulkheadHead*>(at(RegionKind::Bulkhead));
  view.bulkhead_cells = reinterpret_cast<std::uint64_t*>(at(RegionKind::BulkheadCells));
  view.bulkhead_stamps = reinterpret_cast<std::uint64_t*>(at(RegionKind::BulkheadStamps));
  view.waiters = reinterpret_cast<WaiterRecord*>(at(RegionKind::Waiters));
  view.bulkhead_count = count_of(RegionKind::ImageBulkheads);
  view.bulkhead_cell_count = static_cast<std::uint32_t>(
      region(FileKind::State, RegionKind::BulkheadCells).count);
  view.waiter_count =
      static_cast<std::uint32_t>(region(FileKind::State, RegionKind::Waiters).count);
  view.stripe_bulkheads_offset = static_cast<std::uint32_t>(
      view.stripe_breakers_offset + view.breaker_count * sizeof(BreakerCounters));

  const Region& stripes = region(FileKind::Stats, RegionKind::Stripes);
  view.stats_control = reinterpret_cast<StatsControl*>(stats + kPage);
  view.stripes = stats + stripes.offset;
  view.stripe_count = static_cast<std::uint32_t>(stripes.count);
  view.stripe_stride = stripes.stride;
  view.events =
      reinterpret_cast<EventRecord*>(stats + region(FileKind::Stats, RegionKind::Events).offset);
  view.event_count = static_cast<std::uint32_t>(region(FileKind::Stats, RegionKind::Events).count);
  const Region& tops = region(FileKind::Stats, RegionKind::Tops);
  view.tops = reinterpret_cast<TopRecord*>(stats + tops.offset);
  view.tops_per_limit = static_cast<std::uint32_t>(tops.flags);
  const Region& trips = region(FileKind::Stats, RegionKind::Trips);
  view.trips = reinterpret_cast<TripRecord*>(stats + trips.offset);
  view.trip_count = static_cast<std::uint32_t>(trips.count);
  const Region& names = region(FileKind::Stats, RegionKind::KeyNames);
  if (names.count != 0) view.key_names = reinterpret_cast<KeyName*>(stats + names.offset);
  view.stories = reinterpret_cast<BreakerStory*>(
      stats + region(FileKind::Stats, RegionKind::BreakerStories).offset);

  const FileHeader& header = headers[0];
  if (header.clock == static_cast<std::uint32_t>(ClockKind::Stepped)) {
    view.clock = SegmentClock::stepped(&view.state_control->stepped_ns);
  } else if ((header.features_optional & kFeatureTsc) != 0 && tsc_usable()) {
    view.clock = SegmentClock::tsc(header.epoch_ns);
  } else {
    view.clock = SegmentClock::boottime(header.epoch_ns);
  }
  view.secret = rules + offsetof(FileHeader, secret);
  std::memcpy(view.uuid, header.uuid, sizeof view.uuid);
  return view;
}

}  // namespace cutwater::shm
