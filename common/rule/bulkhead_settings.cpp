// SPDX-License-Identifier: Apache-2.0
#include "rule/bulkhead_settings.hpp"

#include "rule/breaker_settings.hpp"
#include "rule/limit_settings.hpp"

namespace cutwater::rule {

BulkheadSettings preset(BulkheadPreset which) {
  BulkheadSettings settings;
  if (which == BulkheadPreset::Microprofile) settings.max_concurrent = 10;
  if (which == BulkheadPreset::Spring) {
    settings.max_concurrent = 0;
    settings.max_wait_ns = kWaitForever;
  }
  return settings;
}

std::string_view name_of(BulkheadPreset which) noexcept {
  switch (which) {
    case BulkheadPreset::Resilience4j: return "resilience4j";
    case BulkheadPreset::Microprofile: return "microprofile";
    case BulkheadPreset::Spring: return "spring";
  }
  return "unknown";
}

bool is_pattern(const BulkheadSettings& settings) noexcept {
  return settings.name.find('*') != std::string::npos;
}

Result<void> check(const BulkheadSettings& s) {
  if (!is_name(s.name) && !is_pattern_name(s.name)) {
    return Error(Errc::InvalidArgument,
                 "a bulkhead is named '" + s.name.substr(0, kMaxNameLength) +
                     "'; begin with a letter or digit, go on with letters, digits and . _ : -, "
                     "63 characters at most; one * makes it a pattern");
  }
  struct Range {
    std::string_view field;
    std::uint64_t value;
    std::uint64_t low;
    std::uint64_t high;
    bool off = false;
  };
  const Range ranges[] = {
      {"max_concurrent", s.max_concurrent, 0, kMaxConcurrentCalls},
      {"max_wait_ns", s.max_wait_ns, 0, kMaxBulkheadWaitNs, s.max_wait_ns == kWaitForever},
      {"max_waiting", s.max_waiting, 0, kMaxBulkheadWaiting},
      {"max_hold_ns", s.max_hold_ns, kMinHoldNs, kMaxHoldNs, s.max_hold_ns == 0},
      {"max_instances", s.max_instances, 1, kMaxInstances},
      {"idle_ns", s.idle_ns, 0, kMaxIdleNs},
      {"length of note", s.note.size(), 0, kMaxNoteLength},
  };
  for (const Range& range : ranges) {
    if (range.off || (range.value >= range.low && range.value <= range.high)) continue;
    return Error(Errc::InvalidArgument,
                 "bulkhead '" + s.name + "': " + std::string(range.field) + " is " +
                     std::to_string(range.value) + "; it must be " + std::to_string(range.low) +
                     ".." + std::to_string(range.high));
  }
  return {};
}

}  // namespace cutwater::rule
