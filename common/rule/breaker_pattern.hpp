// SPDX-License-Identifier: Apache-2.0
// Names that a pattern stands for: exactly one '*', which is any number of name characters. An
// exact name beats a pattern, the longer literal part beats the shorter; two patterns whose literal
// parts are as long and that can stand for one name are an error of the configuration.
// Thread safety: pure functions.
#pragma once
#include <algorithm>
#include <string_view>

namespace cutwater::rule {

/// True when `pattern`, which has its one '*', stands for `name`.
constexpr bool pattern_stands_for(std::string_view pattern, std::string_view name) noexcept {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos || name.size() + 1 < pattern.size()) return false;
  return name.starts_with(pattern.substr(0, star)) && name.ends_with(pattern.substr(star + 1));
}

/// True when nobody could tell which of the two a name they share belongs to.
constexpr bool patterns_clash(std::string_view a, std::string_view b) noexcept {
  const std::size_t i = a.find('*'), j = b.find('*');
  if (i == std::string_view::npos || j == std::string_view::npos || a.size() != b.size()) {
    return false;
  }
  const std::size_t head = std::min(i, j), tail = std::min(a.size() - i, b.size() - j) - 1;
  return a.substr(0, head) == b.substr(0, head) &&
         a.substr(a.size() - tail) == b.substr(b.size() - tail);
}

}  // namespace cutwater::rule
