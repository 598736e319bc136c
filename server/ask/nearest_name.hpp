// SPDX-License-Identifier: Apache-2.0
// The nearest of many names, for an unknown one. Among more than kMaxComparedNames none is looked
// for: a person asks there, and the lists show them. Pure. Thread safety: functions without state.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "config/words.hpp"

namespace cutwater::server {

inline constexpr std::size_t kMaxComparedNames = 1024;

/// "" when none is near. `settings`: whatever has a `name`.
template <class Settings>
std::string nearest_name(std::string_view asked, const std::vector<Settings>& settings) {
  if (settings.size() > kMaxComparedNames) return {};
  std::vector<std::string_view> names;
  for (const Settings& one : settings) names.push_back(one.name);
  return std::string(config::nearest(asked, names));
}

}  // namespace cutwater::server
