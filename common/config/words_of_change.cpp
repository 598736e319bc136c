// SPDX-License-Identifier: Apache-2.0
#include "config/words_of_change.hpp"

#include <algorithm>
#include <limits>
#include <string_view>

#include "config/diff.hpp"
#include "config/duration.hpp"
#include "config/rate.hpp"

namespace cutwater::config {
namespace {

using rule::LimitKind;
using rule::LimitSettings;
using rule::OnChange;
using rule::WindowKind;
using rule::WindowSettings;
using Words = std::vector<std::string>;

constexpr std::string_view kUnits[] = {"minute", "hour", "day", "week", "month", "year"};

__extension__ using Wide = unsigned __int128;

std::uint64_t ceil_div(Wide a, std::uint64_t b) {
  const Wide up = (a + b - 1) / b;
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  return up > kMost ? kMost : static_cast<std::uint64_t>(up);
}

std::string level_text(const Effect& effect) {
  std::string out = "level " + std::to_string(effect.level);
  if (effect.edges > 0) {
    return out + ": first token after " + std::to_string(effect.edges) +
           (effect.edges == 1 ? " edge" : " edges");
  }
  if (effect.level >= 1) return out;
  return out + ": first token after " + format_duration(effect.first_token_ns);
}

std::string start_text(const LimitSettings& limit) {
  return limit.initial == rule::Initial::Empty ? "starts empty and fills from then on"
                                               : "starts full";
}

/// What becomes of debts in a window whose numbers change.
std::string keys_text(const WindowSettings& before, const WindowSettings& after,
                      OnChange on_change) {
  const std::uint64_t all = before.burst;
  const std::uint64_t half = all / 2;
  const auto level = [&](std::uint64_t used) {
    return level_text(effect_of(before, after, on_change, used));
  };
  switch (on_change) {
    case OnChange::Reset: return "reset: every key is full again";
    case OnChange::AsIs: {
      const std::string cut = after.burst < all ? ", at most " + std::to_string(after.burst)
                                                : " and grow to " + std::to_string(after.burst);
      return "as-is: the tokens a key has left stay" + cut;
    }
    case OnChange::KeepUsed:
      if (after.burst == all) {
        return "keep-used: the tokens a key has until then stay; then they come at the new rate";
      }
      break;
    case OnChange::Proportional: break;
  }
  std::string out = on_change == OnChange::KeepUsed ? "keep-used: " : "proportional: ";
  if (half > 0) {
    out += "a key that had used " + std::to_string(half) + " of " + std::to_string(all) +
           " is at " + level(half) + "; ";
  }
  return out + "one that had used all " + std::to_string(all) + " is at " + level(all);
}

void add_window_words(const LimitSettings& before, const LimitSettings& after, Words& words) {
  const std::size_t common = std::min(before.windows.size(), after.windows.size());
  const bool several = before.windows.size() > 1 || after.windows.size() > 1;
  const auto name = [&](std::size_t i) {
    return several ? "window " + std::to_string(i + 1) + ": " : std::string();
  };
  for (std::size_t i = 0; i < common; ++i) {
    const WindowSettings& old = before.windows[i];
    const WindowSettings& now = after.windows[i];
    if (old == now) continue;
    words.push_back(name(i) + window_text(old) + " becomes " + window_text(now));
    words.push_back(name(i) + keys_text(old, now, after.on_change));
  }
  for (std::size_t i = common; i < after.windows.size(); ++i) {
    words.push_back(name(i) + window_text(after.windows[i]) + " is new and " + start_text(after));
  }
  for (std::size_t i = common; i < before.windows.size(); ++i) {
    words.push_back(name(i) + window_text(before.windows[i]) +
                    " is gone, with what was used of it");
  }
}

void add_override_words(const LimitSettings& before, const LimitSettings& after, Words& words) {
  const auto count_missing = [](const LimitSettings& in, const LimitSettings& from) {
    return std::count_if(from.overrides.begin(), from.overrides.end(), [&](const auto& one) {
      return std::none_of(in.overrides.begin(), in.overrides.end(), [&](const auto& other) {
        return other.pattern == one.pattern && other.key == one.key;
      });
    });
  };
  const auto added = count_missing(before, after);
  const auto gone = count_missing(after, before);
  const auto changed =
      std::count_if(after.overrides.begin(), after.overrides.end(), [&](const auto& one) {
        return std::any_of(
            before.overrides.begin(), before.overrides.end(), [&](const auto& other) {
              return other.pattern == one.pattern && other.key == one.key && other != one;
            });
      });
  if (added + gone + changed == 0) return;
  words.push_back("keys of their own: " + std::to_string(added) + " new, " +
                  std::to_string(changed) + " changed, " + std::to_string(gone) +
                  " gone; each keeps what it used");
}

Words words_of_new(const LimitSettings& limit) {
  switch (limit.kind) {
    case LimitKind::Unlimited: return {"is new: everything passes and is counted"};
    case LimitKind::Blocked: return {"is new: everything is refused as banned"};
    case LimitKind::Bucket: break;
  }
  Words words;
  for (const WindowSettings& window : limit.windows) {
    words.push_back("is new: " + window_text(window) + ", every key " + start_text(limit));
  }
  return words;
}

}  // namespace

std::vector<std::string> words_of_change(const LimitSettings* before, const LimitSettings* after) {
  if (before == nullptr && after == nullptr) return {};
  if (before == nullptr) return words_of_new(*after);
  if (after == nullptr) return {"is gone with what was used of it: put back, it starts anew"};
  Words words;
  if (before->kind != after->kind) {
    if (after->kind == LimitKind::Unlimited) {
      words.emplace_back("is not limited any more: everything passes and is counted");
    } else if (after->kind == LimitKind::Blocked) {
      words.emplace_back("is blocked from then on: everything is refused as banned");
    } else {
      words.emplace_back("is limited from then on: every key " + start_text(*after));
    }
  } else {
    add_window_words(*before, *after, words);
  }
  if (before->mode != after->mode) {
    words.emplace_back(after->mode == rule::Mode::Shadow
                           ? "refuses nobody any more, and counts what it would refuse"
                           : "refuses from then on: it was in shadow before");
  }
  add_override_words(*before, *after, words);
  return words;
}

std::string window_text(const WindowSettings& window) {
  if (window.kind == WindowKind::Calendar) {
    return std::to_string(window.rate_count) + " per " +
           std::string(kUnits[static_cast<std::size_t>(window.unit)]) + " of " +
           (window.zone.empty() ? "UTC" : window.zone);
  }
  return format_rate({.count = window.rate_count, .period_ns = window.rate_period_ns}) +
         ", burst " + std::to_string(window.burst);
}

Effect effect_of(const WindowSettings& before, const WindowSettings& after, OnChange on_change,
                 std::uint64_t used) {
  const auto burst = static_cast<std::int64_t>(after.burst);
  const auto level_after = [&](std::uint64_t kept) {
    return burst - static_cast<std::int64_t>(kept);
  };
  Effect effect{.level = burst, .first_token_ns = 0, .edges = 0};
  switch (on_change) {
    case OnChange::Reset: break;
    case OnChange::KeepUsed: effect.level = level_after(used); break;
    case OnChange::AsIs:
      effect.level = std::min(burst, static_cast<std::int64_t>(before.burst) -
                                         static_cast<std::int64_t>(used));
      break;
    case OnChange::Proportional:
      effect.level = level_after(ceil_div(Wide{used} * after.burst, before.burst));
      break;
  }
  if (effect.level >= 1) return effect;
  const auto missing = static_cast<std::uint64_t>(1 - effect.level);
  if (after.kind == WindowKind::Calendar) {
    effect.edges = ceil_div(missing, after.rate_count);
  } else {
    effect.first_token_ns = ceil_div(Wide{missing} * after.rate_period_ns, after.rate_count);
  }
  return effect;
}

}  // namespace cutwater::config
