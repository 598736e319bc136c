// SPDX-License-Identifier: Apache-2.0
// "did you mean": the name nearest to a written word. Thread safety: pure functions.
#pragma once
#include <cstddef>
#include <span>
#include <string_view>

namespace cutwater {

/// Most edits between a written word and the name it is taken for.
inline constexpr std::size_t kMaxEditDistance = 3;

/// Insertions, deletions and replacements from `a` to `b`, ignoring ASCII case; stops counting
/// above kMaxEditDistance and then returns kMaxEditDistance + 1.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The nearest of `names` within kMaxEditDistance (the first of equals), or empty. A word that
/// shares no letter place with a name is not near it, however short.
std::string_view nearest(std::string_view word, std::span<const std::string_view> names);

}  // namespace cutwater
