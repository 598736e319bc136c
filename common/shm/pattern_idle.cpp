// SPDX-License-Identifier: Apache-2.0
#include "shm/pattern_idle.hpp"

#include <algorithm>
#include <cstring>
#include <map>

namespace cutwater::shm {

UnusedPlaces IdlePlaces::look(const View& view, const std::vector<rule::BreakerSettings>& breakers,
                              const std::vector<rule::BulkheadSettings>& bulkheads) {
  if (std::memcmp(of_, view.uuid, sizeof of_) != 0) {
    breakers_ = {};
    bulkheads_ = {};
    std::memcpy(of_, view.uuid, sizeof of_);
  }
  return {look(BreakerSide(view), breakers, breakers_),
          look(BulkheadSide(view), bulkheads, bulkheads_)};
}

/// Goes on where the last look ended, so that a look has a bound whatever there is.
void IdlePlaces::look_on(const PatternSide& side, std::uint64_t current, std::int64_t now,
                         Ages& ages) {
  ages.seen.resize(side.count());
  std::uint32_t read = 0;
  for (std::uint32_t n = 0; n < side.count() && read < kPlacesAtOnce; ++n) {
    const std::uint32_t index = ages.next;
    ages.next = (ages.next + 1) % side.count();
    Seen& seen = ages.seen[index];
    const PatternEntry entry = side.entry(current, index);
    if (!entry.used || entry.kind != kInstanceEntry || !is_taken(entry)) {
      seen = {};
      continue;
    }
    ++read;
    const std::uint64_t uses = side.uses(index);
    const bool same = seen.incarnation == entry.incarnation && seen.uses == uses;
    if (!same || !side.rests(index)) seen = {entry.incarnation, uses, now};
  }
}

template <class Settings>
std::vector<PlaceRef> IdlePlaces::look(const PatternSide& side,
                                       const std::vector<Settings>& settings, Ages& ages) {
  const bool any = std::any_of(settings.begin(), settings.end(),
                               [](const Settings& one) { return rule::is_pattern(one); });
  if (!any) {
    ages = {};
    return {};
  }
  const std::uint64_t current = side.view().current();
  const std::int64_t now = side.view().clock.now();
  look_on(side, current, now, ages);
  std::map<std::uint32_t, std::vector<PlaceRef>> taken;          // by pattern
  std::map<std::uint32_t, bool> full;
  for (std::uint32_t i = 0; i < side.count(); ++i) {
    const PatternEntry entry = side.entry(current, i);
    if (!entry.used || entry.kind != kInstanceEntry) continue;
    const bool has_name = is_taken(entry);
    full.try_emplace(entry.pattern, true).first->second &= has_name;
    if (has_name) taken[entry.pattern].push_back({i, entry.incarnation});
  }
  std::vector<PlaceRef> out;
  for (const auto& [pattern, places] : taken) {
    if (!full[pattern] || pattern >= side.count()) continue;
    char name[sizeof(NameRecord::text) + 1];
    side.name(current, pattern, name, sizeof name);
    const auto of = std::find_if(settings.begin(), settings.end(),
                                 [&](const Settings& one) { return one.name == name; });
    if (of == settings.end()) continue;
    for (const PlaceRef& place : places) {
      if (out.size() >= kPlacesAtOnce) break;
      const Seen& seen = ages.seen[place.index];
      const bool old = seen.incarnation == place.incarnation &&
                       now - seen.since_ns >= static_cast<std::int64_t>(of->idle_ns);
      if (old && side.rests(place.index) && side.uses(place.index) == seen.uses) {
        out.push_back(place);
      }
    }
  }
  return out;
}

}  // namespace cutwater::shm
