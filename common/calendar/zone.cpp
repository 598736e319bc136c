// SPDX-License-Identifier: Apache-2.0
#include "calendar/zone.hpp"

#include <algorithm>

namespace cutwater::calendar {
namespace {

/// Edges are asked for beyond kMaxUnixSecond, by at most kMaxEdges years; std::chrono's years reach
/// further than this.
constexpr std::int64_t kMaxRuledSecond = 2 * kMaxUnixSecond;

}  // namespace

Stretch Zone::stretch_at(std::int64_t unix_s) const {
  const std::int64_t at = std::clamp<std::int64_t>(unix_s, 0, kMaxRuledSecond);
  const auto next = std::upper_bound(changes_.begin(), changes_.end(), at);
  Stretch found{.offset_s = first_offset_};
  if (next != changes_.begin()) {
    const auto last = static_cast<std::size_t>(next - changes_.begin()) - 1;
    found.begin_s = changes_[last];
    found.offset_s = offsets_[last];
  }
  if (next != changes_.end()) {
    found.end_s = *next;
    return found;
  }
  if (!rule_) return found;
  Stretch ruled = rule_->stretch_at(at);
  ruled.begin_s = std::max(ruled.begin_s, found.begin_s);
  return ruled;
}

bool is_zone_name(std::string_view name) noexcept {
  if (name.empty() || name.size() > kMaxZoneName) return false;
  char before = '/';
  for (const char c : name) {
    const bool plain = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                       c == '+' || c == '-' || c == '_';
    if (!plain && (c != '/' || before == '/')) return false;
    before = c;
  }
  return before != '/';
}

}  // namespace cutwater::calendar
