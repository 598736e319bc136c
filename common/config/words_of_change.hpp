// SPDX-License-Identifier: Apache-2.0
// What a change of one limit means for its keys, in sentences an operator reads before it happens.
// Thread safety: pure functions.
#pragma once
#include <string>
#include <vector>

#include "rule/limit_settings.hpp"

namespace cutwater::config {

/// Sentences about a change of a limit; null: it is new, or gone. Empty when nothing changes that
/// an answer depends on.
std::vector<std::string> words_of_change(const rule::LimitSettings* before,
                                         const rule::LimitSettings* after);

/// "100/m, burst 100", "500 per month of Europe/Berlin".
std::string window_text(const rule::WindowSettings& window);

}  // namespace cutwater::config
