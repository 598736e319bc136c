// SPDX-License-Identifier: Apache-2.0
// Everything a person may ask of one breaker, in whole sentences: the next decision first
// (rule/breaker_text.hpp), then every setting that bears on it, then what it does once it opened.
// The daemon, the library and the tool print the same sentences, because all take them from here.
// Pure; allocates.
#pragma once
#include <string>
#include <vector>

#include "rule/breaker_text.hpp"

namespace cutwater::rule {

/// What stands beside the story of the present state.
struct BreakerAround {
  std::uint32_t users = 0;        ///< living processes that use it
  std::uint32_t users_open = 0;   ///< of them, open for themselves alone
  std::uint32_t hanging = 0;      ///< calls out longer than the slow threshold
  /// METRICS_ONLY: the first reason of this visit that would have opened it, and how long ago.
  BreakerReason would_open = BreakerReason::None;
  std::int64_t would_open_ns = 0;
};

/// The state as the next caller will find it: what `story.state` becomes when it is over.
BreakerState state_after(const BreakerNumbers& numbers, BreakerState state) noexcept;

/// "failure rate", "slow calls", "too many failures", "failures in a row": what may open it, as a
/// word.
std::string_view opening_word(BreakerReason reason) noexcept;
/// METRICS_ONLY: why the window as it stands would open it at the next bad outcome; None when not.
BreakerReason would_open_now(const BreakerNumbers& numbers, const BreakerWindow& window) noexcept;

/// `last 20 calls`, `calls of the last 10 s`, `last 20 calls, or all of the last 1 s`.
std::string window_words(const BreakerNumbers& numbers);

/// Sentences without a capital and without a full stop, most important first; never empty.
std::vector<std::string> explain_lines(const BreakerNumbers& numbers, const BreakerStory& story,
                                       const BreakerAround& around);

}  // namespace cutwater::rule
