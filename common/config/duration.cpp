// SPDX-License-Identifier: Apache-2.0
#include "config/duration.hpp"

#include <span>

#include "config/count.hpp"
#include "config/words.hpp"
#include "rule/limit_settings.hpp"

namespace cutwater::config {
namespace {

struct Unit {
  std::string_view text;
  std::uint64_t ns;
};

// From large to small: the order in which they may follow each other.
constexpr Unit kUnits[] = {
    {"d", rule::kNanosPerDay}, {"h", 3600 * rule::kNanosPerSecond},
    {"m", 60 * rule::kNanosPerSecond}, {"s", rule::kNanosPerSecond},
    {"ms", 1'000'000}, {"us", 1'000}, {"ns", 1},
};
constexpr Unit kIsoDateUnits[] = {{"D", rule::kNanosPerDay}};
constexpr Unit kIsoTimeUnits[] = {
    {"H", 3600 * rule::kNanosPerSecond}, {"M", 60 * rule::kNanosPerSecond},
    {"S", rule::kNanosPerSecond},
};
constexpr std::size_t kMaxFractionDigits = 9;
constexpr std::string_view kRemedy = "; write a duration such as 100ms, 15s, 1m30s or 2h";

Error malformed(std::string_view text) {
  return refusal(in_quotes(text) + " is not a duration" + std::string(kRemedy));
}

Error too_long(std::string_view text) {
  return refusal(in_quotes(text) + " is above the maximum of " +
                 format_duration(rule::kMaxPeriodNs));
}

std::string_view letters(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size() && ((text[length] >= 'a' && text[length] <= 'z') ||
                                  (text[length] >= 'A' && text[length] <= 'Z'))) {
    ++length;
  }
  return text.substr(0, length);
}

/// Reads `rest` as NUMBER UNIT pairs, units falling along `units`, and adds them to `sum`.
Result<void> add_parts(std::string_view whole, std::string_view rest, std::span<const Unit> units,
                       std::uint64_t& sum) {
  __extension__ using Wide = unsigned __int128;
  std::size_t next_unit = 0;
  while (!rest.empty()) {
    const Digits digits = scan_digits(rest);
    if (digits.length == 0) return malformed(whole);
    rest.remove_prefix(digits.length);
    Digits fraction;
    if (rest.starts_with('.')) {
      rest.remove_prefix(1);
      fraction = scan_digits(rest);
      if (fraction.length == 0) return malformed(whole);
      if (fraction.length > kMaxFractionDigits) {
        return refusal(in_quotes(whole) + " has more than 9 decimals; write it in a smaller unit");
      }
      rest.remove_prefix(fraction.length);
    }
    const std::string_view name = letters(rest);
    while (next_unit < units.size() && units[next_unit].text != name) ++next_unit;
    if (next_unit == units.size()) return malformed(whole);
    const std::uint64_t unit = units[next_unit++].ns;
    rest.remove_prefix(name.size());

    std::uint64_t scale = 1;
    for (std::size_t i = 0; i < fraction.length; ++i) scale *= 10;
    const Wide parts = Wide{fraction.value} * unit;
    if (parts % scale != 0) {
      return refusal(in_quotes(whole) + " is finer than 1ns; write whole nanoseconds");
    }
    if (digits.overflow || digits.value > rule::kMaxPeriodNs / unit) return too_long(whole);
    sum += digits.value * unit + static_cast<std::uint64_t>(parts / scale);
    if (sum > rule::kMaxPeriodNs) return too_long(whole);
  }
  return {};
}

Result<std::uint64_t> parse_iso(std::string_view text) {
  std::string_view date = text.substr(1);
  std::string_view time;
  const std::size_t split = date.find('T');
  if (split != std::string_view::npos) {
    time = date.substr(split + 1);
    date = date.substr(0, split);
    if (time.empty()) return malformed(text);
  }
  if (date.empty() && time.empty()) return malformed(text);
  std::uint64_t sum = 0;
  if (auto added = add_parts(text, date, kIsoDateUnits, sum); !added) return added.error();
  if (auto added = add_parts(text, time, kIsoTimeUnits, sum); !added) return added.error();
  return sum;
}

}  // namespace

Result<std::uint64_t> parse_duration(std::string_view text) {
  if (text == "0") return std::uint64_t{0};
  if (text.starts_with('-')) {
    return refusal(in_quotes(text) + " is negative; write 0 or a duration such as 15s");
  }
  if (text.starts_with('P')) return parse_iso(text);
  const Digits digits = scan_digits(text);
  if (digits.length == 0) return malformed(text);
  std::string_view behind = text.substr(digits.length);
  if (behind.starts_with('.')) behind.remove_prefix(1 + scan_digits(behind.substr(1)).length);
  if (behind.empty() && text.back() != '.') {
    const std::string number(text.substr(0, kMaxQuotedBytes));
    return refusal(number + " what? write " + number + "s");
  }
  std::uint64_t sum = 0;
  if (auto added = add_parts(text, text, kUnits, sum); !added) return added.error();
  return sum;
}

std::uint64_t unit_ns(std::string_view unit) noexcept {
  for (const Unit& known : kUnits) {
    if (known.text == unit) return known.ns;
  }
  return 0;
}

std::string format_duration(std::uint64_t ns) {
  if (ns == 0) return "0";
  std::string out;
  for (const Unit& unit : kUnits) {
    if (ns >= unit.ns) {
      out += std::to_string(ns / unit.ns);
      out += unit.text;
      ns %= unit.ns;
    }
  }
  return out;
}

}  // namespace cutwater::config
