// SPDX-License-Identifier: Apache-2.0
#include "rows/named_rows.hpp"

#include <algorithm>

#include "shm/breaker/breaker.hpp"
#include "shm/bulkhead/bulkhead.hpp"

namespace cutwater::rows {
namespace {

template <class IsWell>
std::vector<Named> by_name(const shm::PatternSide& side, Which which, IsWell is_well) {
  std::vector<Named> out;
  const std::uint64_t current = side.view().current();
  for (std::uint32_t i = 0; i < side.count(); ++i) {
    const shm::PatternEntry entry = side.entry(current, i);
    if (!entry.used || (entry.kind == shm::kInstanceEntry && !shm::is_taken(entry))) continue;
    if (which == Which::NotWell && is_well(i)) continue;
    char name[sizeof(shm::NameRecord::text) + 1];
    side.name(current, i, name, sizeof name);
    out.push_back({name, i, entry.incarnation});
  }
  std::sort(out.begin(), out.end(), [](const Named& a, const Named& b) {
    return a.name != b.name ? a.name < b.name : a.index < b.index;
  });
  return out;
}

bool is_full(const shm::PatternSide& side, std::uint32_t pattern) {
  if (pattern == shm::kNoLine) return false;
  const std::uint64_t current = side.view().current();
  for (std::uint32_t i = 0; i < side.count(); ++i) {
    const shm::PatternEntry entry = side.entry(current, i);
    const bool of_it = entry.used && entry.kind == shm::kInstanceEntry && entry.pattern == pattern;
    if (of_it && !shm::is_taken(entry)) return false;
  }
  return true;
}

}  // namespace

bool breaker_pattern_is_full(const shm::View& view, std::string_view pattern) {
  return is_full(shm::BreakerSide(view), shm::find_breaker(view, pattern).index);
}

bool bulkhead_pattern_is_full(const shm::View& view, std::string_view pattern) {
  return is_full(shm::BulkheadSide(view), shm::find_bulkhead(view, pattern).index);
}

std::vector<Named> breakers_by_name(const shm::View& view, Which which) {
  return by_name(shm::BreakerSide(view), which,
                 [&](std::uint32_t i) { return shm::breaker_is_plain(view, i); });
}

std::vector<Named> bulkheads_by_name(const shm::View& view, Which which) {
  return by_name(shm::BulkheadSide(view), which,
                 [&](std::uint32_t i) { return shm::bulkhead_has_room(view, i); });
}

std::vector<std::string> names_of(const std::vector<Named>& all) {
  std::vector<std::string> out;
  for (const Named& one : all) out.push_back(one.name);
  return out;
}

}  // namespace cutwater::rows
