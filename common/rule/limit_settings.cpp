// SPDX-License-Identifier: Apache-2.0
#include "rule/limit_settings.hpp"

#include <algorithm>

namespace cutwater::rule {
namespace {

Error outside(const LimitSettings& settings, std::string_view field, std::uint64_t value,
              std::uint64_t low, std::uint64_t high) {
  return Error(Errc::InvalidArgument,
               "limit '" + settings.name + "': " + std::string(field) + " is " +
                   std::to_string(value) + "; it must be " + std::to_string(low) + ".." +
                   std::to_string(high));
}

}  // namespace

Result<void> check(const LimitSettings& settings) {
  if (!is_name(settings.name)) {
    return Error(Errc::InvalidArgument,
                 "a limit is named '" + settings.name.substr(0, kMaxNameLength) +
                     "'; begin with a letter or digit, go on with letters, digits and . _ : -, "
                     "63 characters at most");
  }
  struct Range {
    std::string_view field;
    std::uint64_t value;
    std::uint64_t low;
    std::uint64_t high;
  };
  const Range ranges[] = {
      {"rate_count", settings.rate_count, 1, kMaxRateCount},
      {"rate_period_ns", settings.rate_period_ns, kMinPeriodNs, kMaxPeriodNs},
      {"burst", settings.burst, 1, kMaxBurst},
      {"initial", static_cast<std::uint64_t>(settings.initial), 0, 1},
      {"on_full", static_cast<std::uint64_t>(settings.on_full), 0, 2},
      {"on_change", static_cast<std::uint64_t>(settings.on_change), 0, 0},
      {"max_wait_ns", settings.max_wait_ns, 0, kMaxWaitNs},
      {"max_waiting", settings.max_waiting, 0, kMaxWaiting},
      {"thread_lease", settings.thread_lease, 0, std::min<std::uint64_t>(kMaxThreadLease,
                                                                         settings.burst / 16)},
      {"length of note", settings.note.size(), 0, kMaxNoteLength},
  };
  for (const Range& range : ranges) {
    if (range.value < range.low || range.value > range.high) {
      return outside(settings, range.field, range.value, range.low, range.high);
    }
  }
  if (above_max_rate(settings.rate_count, settings.rate_period_ns)) {
    return Error(Errc::InvalidArgument,
                 "limit '" + settings.name + "': " + std::to_string(settings.rate_count) + " per " +
                     std::to_string(settings.rate_period_ns) + " ns is above the maximum of " +
                     std::to_string(kMaxRatePerSecond) + " per second");
  }
  return {};
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
