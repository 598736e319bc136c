// SPDX-License-Identifier: Apache-2.0
// View: where everything of one mapped segment lies, as private pointers and private bounds.
//
// Filled once by Segment after the header was checked; every index that comes from shared memory is
// compared with a bound in here and never with one in shared memory (design 4.13). Plain data,
// copied freely; valid as long as the Segment that made it. A view of a client has rules mapped
// read-only; writing through it faults.
#pragma once
#include <cstdint>

#include "base/clock.hpp"
#include "shm/layout.hpp"

namespace cutwater::shm {

struct BreakerHead;   // shm/breaker/layout.hpp
struct TripRecord;    // shm/breaker/trip_layout.hpp
struct BreakerStory;  // shm/breaker/trip_layout.hpp
struct BulkheadHead;  // shm/bulkhead/layout.hpp
struct WaiterRecord;

struct View {
  // rules
  RulesControl* rules_control = nullptr;
  const std::uint8_t* image[2] = {nullptr, nullptr};
  std::uint64_t image_length = 0;
  std::uint64_t image_limits_offset = 0;
  std::uint64_t image_rules_offset = 0;
  std::uint64_t image_names_offset = 0;
  std::uint64_t image_overrides_offset = 0;
  std::uint64_t image_sets_offset = 0;
  std::uint64_t image_patterns_offset = 0;
  std::uint64_t image_calendars_offset = 0;
  std::uint32_t limit_count = 0;       ///< capacity: indexes 0..limit_count-1
  std::uint32_t rule_count = 0;        ///< capacity: ids 0..rule_count-1
  std::uint32_t override_count = 0;    ///< records of the open-addressing table, a power of two
  std::uint32_t override_capacity = 0; ///< overrides that were reserved for, at most half of them
  std::uint32_t set_count = 0;
  std::uint32_t pattern_count = 0;
  std::uint32_t calendar_count = 0;
  std::uint64_t image_breakers_offset = 0;
  std::uint64_t image_breaker_names_offset = 0;
  std::uint64_t image_breaker_classes_offset = 0;
  std::uint32_t breaker_count = 0;     ///< capacity: indexes 0..breaker_count-1
  std::uint32_t breaker_lines = 0;     ///< lines of the breaker memory
  std::uint64_t image_bulkheads_offset = 0;
  std::uint64_t image_bulkhead_names_offset = 0;
  std::uint32_t bulkhead_count = 0;    ///< capacity: indexes 0..bulkhead_count-1
  std::uint32_t bulkhead_cell_count = 0;   ///< places of all bulkheads together
  std::uint32_t waiter_count = 0;      ///< records of all bulkheads together
  // state
  StateControl* state_control = nullptr;
  Word16* slots = nullptr;
  std::uint64_t slot_count = 0;
  std::uint64_t groups = 0;            ///< slot_count / kGroupSlots = k * g0
  std::uint64_t g0 = 0;
  std::uint64_t k = 1;
  LimitState* limits = nullptr;
  ProcessRow* rows = nullptr;
  std::uint32_t row_count = 0;
  BreakerHead* breakers = nullptr;
  std::uint8_t* breaker_memory = nullptr;
  BulkheadHead* bulkheads = nullptr;
  std::uint64_t* bulkhead_cells = nullptr;
  std::uint64_t* bulkhead_stamps = nullptr;
  WaiterRecord* waiters = nullptr;
  // stats
  StatsControl* stats_control = nullptr;
  std::uint8_t* stripes = nullptr;
  std::uint32_t stripe_count = 0;
  std::uint32_t stripe_stride = 0;
  std::uint32_t stripe_breakers_offset = 0;  ///< of BreakerCounters[] from a stripe's LimitCounters
  std::uint32_t stripe_bulkheads_offset = 0; ///< the same, of BulkheadCounters[]
  EventRecord* events = nullptr;
  std::uint32_t event_count = 0;
  TopRecord* tops = nullptr;
  std::uint32_t tops_per_limit = 0;    ///< 0 = none are kept
  TripRecord* trips = nullptr;
  std::uint32_t trip_count = 0;        ///< 0 = none are kept
  BreakerStory* stories = nullptr;     ///< by breaker index
  KeyName* key_names = nullptr;        ///< by slot; nullptr: names of keys are not kept

  SegmentClock clock;
  const std::uint8_t* secret = nullptr;   ///< 192 bytes: master secret of the key hash
  std::uint8_t uuid[16] = {};

  /// `current` of the rules (acquire: pairs with the publisher's release, so the image it names is
  /// whole).
  [[gnu::always_inline]] std::uint64_t current() const noexcept {
    return __atomic_load_n(&rules_control->current, __ATOMIC_ACQUIRE);
  }
  const ImageHead& image_head(std::uint64_t current_word) const noexcept {
    return *reinterpret_cast<const ImageHead*>(image[current_word & kCurrentImageBit]);
  }
  const LimitConfig& limit_config(std::uint64_t current_word, std::uint32_t index) const noexcept {
    return reinterpret_cast<const LimitConfig*>(image[current_word & kCurrentImageBit] +
                                                image_limits_offset)[index];
  }
  const RuleRecord& rule(std::uint64_t current_word, std::uint16_t id) const noexcept {
    return reinterpret_cast<const RuleRecord*>(image[current_word & kCurrentImageBit] +
                                               image_rules_offset)[id];
  }
  const NameRecord& limit_name(std::uint64_t current_word, std::uint32_t index) const noexcept {
    return reinterpret_cast<const NameRecord*>(image[current_word & kCurrentImageBit] +
                                               image_names_offset)[index];
  }
  const OverrideRecord& override_record(std::uint64_t current_word,
                                        std::uint32_t index) const noexcept {
    return reinterpret_cast<const OverrideRecord*>(image[current_word & kCurrentImageBit] +
                                                   image_overrides_offset)[index];
  }
  const SetRecord& set(std::uint64_t current_word, std::uint32_t index) const noexcept {
    return reinterpret_cast<const SetRecord*>(image[current_word & kCurrentImageBit] +
                                              image_sets_offset)[index];
  }
  const PatternRecord& pattern(std::uint64_t current_word, std::uint32_t index) const noexcept {
    return reinterpret_cast<const PatternRecord*>(image[current_word & kCurrentImageBit] +
                                                  image_patterns_offset)[index];
  }
  const CalendarRecord& calendar(std::uint64_t current_word, std::uint32_t index) const noexcept {
    return reinterpret_cast<const CalendarRecord*>(image[current_word & kCurrentImageBit] +
                                                   image_calendars_offset)[index];
  }
};

}  // namespace cutwater::shm
