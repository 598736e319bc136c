// SPDX-License-Identifier: Apache-2.0
// What the publishers of breakers and of bulkheads share: a pattern becomes its own entry and
// max-instances places behind it (shm/pattern_layout.hpp). Part of both; not for anybody else.
// Thread safety: pure functions. Allocates; never on a decision path.
#pragma once
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <cutwater/result.hpp>

#include "rule/breaker_pattern.hpp"
#include "rule/limit_settings.hpp"
#include "shm/pattern_layout.hpp"

namespace cutwater::shm {

/// One entry of the image to be.
template <class Settings>
struct WantedEntry {
  Settings settings;                 ///< of a place: its pattern's, under the place's name
  std::uint8_t kind;                 ///< kNamedEntry, ...
  std::string pattern;               ///< of a place: whose
};

/// Name of place `i` of a pattern in the image: no name of an operator has such characters.
inline std::string place_name(const std::string& pattern, std::uint32_t i) {
  return "*" + std::to_string(rule::name_hash(pattern)) + "#" + std::to_string(i);
}

/// Each name, and each place of each pattern behind the pattern's own.
template <class Settings>
std::vector<WantedEntry<Settings>> expand_patterns(const std::vector<Settings>& all) {
  std::vector<WantedEntry<Settings>> out;
  for (const Settings& settings : all) {
    const bool pattern = rule::is_pattern(settings);
    out.push_back({settings, pattern ? kPatternEntry : kNamedEntry, {}});
    for (std::uint32_t i = 0; pattern && i < settings.max_instances; ++i) {
      out.push_back({settings, kInstanceEntry, settings.name});
      out.back().settings.name = place_name(settings.name, i);
    }
  }
  return out;
}

/// Entries of the image that these settings take: one, and one more for each place.
template <class Settings>
std::uint64_t entries_of(const Settings& settings) {
  return rule::is_pattern(settings) ? std::uint64_t{settings.max_instances} + 1 : 1;
}

/// A name that is given twice, or two patterns nobody could choose between. `what`: breaker.
template <class Settings>
Result<void> check_names(std::string_view what, const std::vector<Settings>& all) {
  const std::string word(what);
  std::set<std::string_view> names;
  for (const Settings& settings : all) {
    if (!names.insert(settings.name).second) {
      return Error{Errc::InvalidArgument,
                   word + " '" + settings.name + "' is given twice; keep one"};
    }
  }
  for (const Settings& settings : all) {
    if (!rule::is_pattern(settings)) continue;
    for (const Settings& other : all) {
      if (&other == &settings || !rule::patterns_clash(settings.name, other.name)) continue;
      return Error{Errc::InvalidArgument,
                   word + " '" + settings.name + "': '" + other.name +
                       "' stands for the same names and is as long; make one of them longer"};
    }
  }
  return {};
}

/// Behind a number of entries that do not fit: which pattern takes most of them. Empty: none does.
template <class Settings>
std::string widest_pattern(const std::vector<Settings>& all) {
  const Settings* widest = nullptr;
  for (const Settings& one : all) {
    if (!rule::is_pattern(one)) continue;
    if (widest == nullptr || one.max_instances > widest->max_instances) widest = &one;
  }
  if (widest == nullptr) return {};
  return " ('" + widest->name + "' takes " + std::to_string(widest->max_instances + 1) +
         ": its max-instances and one)";
}

}  // namespace cutwater::shm
