// SPDX-License-Identifier: Apache-2.0
#include "base/nearest.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace cutwater {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  constexpr std::size_t kFar = kMaxEditDistance + 1;
  if (a.size() > b.size()) std::swap(a, b);
  if (b.size() - a.size() > kMaxEditDistance) return kFar;
  std::vector<std::size_t> row(a.size() + 1);
  for (std::size_t i = 0; i <= a.size(); ++i) row[i] = i;
  for (std::size_t j = 1; j <= b.size(); ++j) {
    std::size_t diagonal = row[0];
    row[0] = j;
    std::size_t best = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
      const std::size_t replaced = diagonal + (lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1);
      diagonal = row[i];
      row[i] = std::min({replaced, row[i] + 1, row[i - 1] + 1});
      best = std::min(best, row[i]);
    }
    if (best > kMaxEditDistance) return kFar;
  }
  return std::min(row[a.size()], kFar);
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> names) {
  std::string_view found;
  std::size_t best = kMaxEditDistance + 1;
  for (const std::string_view name : names) {
    const std::size_t distance = edit_distance(word, name);
    // A word of which more than half would be another is no slip of the hand.
    const std::size_t longer = std::max(word.size(), name.size());
    if (distance >= longer || 2 * distance > longer + 1) continue;
    if (distance < best) {
      best = distance;
      found = name;
    }
  }
  return found;
}

}  // namespace cutwater
