// SPDX-License-Identifier: Apache-2.0
#include "rule/limit_settings.hpp"

#include <algorithm>
#include <initializer_list>
#include <set>
#include <utility>

namespace cutwater::rule {
namespace {

/// One number that must lie in a range.
struct Range {
  std::string_view field;
  std::uint64_t value;
  std::uint64_t low;
  std::uint64_t high;
};

Error wrong(const std::string& place, const std::string& what) {
  return Error(Errc::InvalidArgument, place + ": " + what);
}

Result<void> check_ranges(const std::string& place, std::initializer_list<Range> ranges) {
  for (const Range& range : ranges) {
    if (range.value >= range.low && range.value <= range.high) continue;
    return wrong(place, std::string(range.field) + " is " + std::to_string(range.value) +
                            "; it must be " + std::to_string(range.low) + ".." +
                            std::to_string(range.high));
  }
  return {};
}

Result<void> check_window(const std::string& place, const WindowSettings& window) {
  if (auto fine = check_ranges(place, {{"rate_count", window.rate_count, 1, kMaxRateCount},
                                       {"burst", window.burst, 1, kMaxBurst},
                                       {"kind", static_cast<std::uint64_t>(window.kind), 0, 1}});
      !fine) {
    return fine;
  }
  if (window.kind == WindowKind::Calendar) {
    return check_ranges(
        place, {{"burst", window.burst, window.rate_count, window.rate_count},
                {"unit", static_cast<std::uint64_t>(window.unit), 0, kCalendarUnits - 1},
                {"length of zone", window.zone.size(), 0, kMaxZoneLength}});
  }
  if (auto fine = check_ranges(
          place, {{"rate_period_ns", window.rate_period_ns, kMinPeriodNs, kMaxPeriodNs}});
      !fine) {
    return fine;
  }
  if (above_max_rate(window.rate_count, window.rate_period_ns)) {
    return wrong(place, std::to_string(window.rate_count) + " per " +
                            std::to_string(window.rate_period_ns) +
                            " ns is above the maximum of " + std::to_string(kMaxRatePerSecond) +
                            " per second");
  }
  return {};
}

Result<void> check_windows(const std::string& place, LimitKind kind,
                           const std::vector<WindowSettings>& windows) {
  if (auto fine = check_ranges(place, {{"kind", static_cast<std::uint64_t>(kind), 0, 2}}); !fine) {
    return fine;
  }
  const bool bucket = kind == LimitKind::Bucket;
  if (auto fine = check_ranges(place, {{"number of windows", windows.size(), bucket ? 1U : 0U,
                                        bucket ? kMaxWindows : 0U}});
      !fine) {
    return fine;
  }
  for (std::size_t i = 0; i < windows.size(); ++i) {
    std::string at = place;
    if (windows.size() > 1) at += ", window " + std::to_string(i + 1);
    if (auto fine = check_window(at, windows[i]); !fine) return fine;
  }
  return {};
}

Result<void> check_override(const LimitSettings& settings, const OverrideSettings& over) {
  // Keys of callers stay out of errors: they may end in a log. The place in the list names it.
  const auto number = &over - settings.overrides.data() + 1;
  const std::string place =
      "limit '" + settings.name + "', override " + std::to_string(number);
  if (auto fine = check_ranges(place, {{"length of key", over.key.size(), 1, kMaxOverrideKey},
                                       {"length of note", over.note.size(), 0, kMaxNoteLength}});
      !fine) {
    return fine;
  }
  if (over.pattern) {
    const auto stars = std::count(over.key.begin(), over.key.end(), '*');
    if (auto fine = check_ranges(
            place, {{"number of '*' in the pattern", static_cast<std::uint64_t>(stars), 1, 1},
                    {"length of the pattern", over.key.size(), 1, kMaxPatternLength}});
        !fine) {
      return fine;
    }
  }
  return check_windows(place, over.kind, over.windows);
}

Result<void> check_overrides(const LimitSettings& settings) {
  std::set<std::pair<bool, std::string_view>> keys;
  std::size_t patterns = 0;
  for (const OverrideSettings& over : settings.overrides) {
    if (auto fine = check_override(settings, over); !fine) return fine;
    patterns += over.pattern ? 1 : 0;
    if (keys.insert({over.pattern, over.key}).second) continue;
    return wrong("limit '" + settings.name + "', override " +
                     std::to_string(&over - settings.overrides.data() + 1),
                 "its key is given twice; keep one");
  }
  return check_ranges("limit '" + settings.name + "'",
                      {{"number of patterns", patterns, 0, kMaxPatterns}});
}

std::uint64_t smallest_burst(const LimitSettings& settings) {
  std::uint64_t burst = kMaxBurst;
  for (const WindowSettings& window : settings.windows) burst = std::min(burst, window.burst);
  return burst;
}

}  // namespace

WindowSettings rate_window(std::uint64_t count, std::uint64_t period_ns, std::uint64_t burst) {
  return {.kind = WindowKind::Rate, .rate_count = count, .rate_period_ns = period_ns,
          .burst = burst};
}

WindowSettings calendar_window(std::uint64_t count, CalendarUnit unit, std::string zone) {
  return {.kind = WindowKind::Calendar, .rate_count = count, .rate_period_ns = 0, .burst = count,
          .unit = unit, .zone = std::move(zone)};
}

Result<void> check(const LimitSettings& settings) {
  if (!is_name(settings.name)) {
    return Error(Errc::InvalidArgument,
                 "a limit is named '" + settings.name.substr(0, kMaxNameLength) +
                     "'; begin with a letter or digit, go on with letters, digits and . _ : -, "
                     "63 characters at most");
  }
  const std::string place = "limit '" + settings.name + "'";
  if (auto fine = check_windows(place, settings.kind, settings.windows); !fine) return fine;
  if (auto fine = check_ranges(
          place,
          {{"initial", static_cast<std::uint64_t>(settings.initial), 0, 1},
           {"on_full", static_cast<std::uint64_t>(settings.on_full), 0, 2},
           {"on_change", static_cast<std::uint64_t>(settings.on_change), 0, 3},
           {"mode", static_cast<std::uint64_t>(settings.mode), 0, 1},
           {"show_keys", static_cast<std::uint64_t>(settings.show_keys), 0, 2},
           {"max_wait_ns", settings.max_wait_ns, 0, kMaxWaitNs},
           {"max_waiting", settings.max_waiting, 0, kMaxWaiting},
           {"max_debt", settings.max_debt, 0, kMaxDebt},
           {"ip_prefix_v4", settings.ip_prefix_v4, 0, 32},
           {"ip_prefix_v6", settings.ip_prefix_v6, 0, 128},
           {"thread_lease", settings.thread_lease, 0,
            std::min<std::uint64_t>(kMaxThreadLease, smallest_burst(settings) / 16)},
           {"length of note", settings.note.size(), 0, kMaxNoteLength}});
      !fine) {
    return fine;
  }
  return check_overrides(settings);
}

bool is_name(std::string_view text) noexcept {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  const auto inner = [&](char c) {
    return plain(c) || c == '.' || c == '_' || c == ':' || c == '-';
  };
  return !text.empty() && text.size() <= kMaxNameLength && plain(text.front()) &&
         std::all_of(text.begin(), text.end(), inner);
}

bool above_max_rate(std::uint64_t count, std::uint64_t period_ns) noexcept {
  // count <= 1e9 and period <= 3.2e17 ns: the products need more than 64 bits.
  __extension__ using Wide = unsigned __int128;
  return Wide{count} * kNanosPerSecond > Wide{period_ns} * kMaxRatePerSecond;
}

}  // namespace cutwater::rule
