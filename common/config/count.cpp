// SPDX-License-Identifier: Apache-2.0
#include "config/count.hpp"

#include <algorithm>
#include <limits>
#include <span>
#include <string>

#include "config/words.hpp"

namespace cutwater::config {
namespace {

struct Suffix {
  std::string_view text;
  std::uint64_t factor;
};

constexpr std::uint64_t kKibi = 1024;
constexpr Suffix kCountSuffixes[] = {
    {"", 1},        {"k", 1000},          {"M", 1000'000},
    {"G", 1000'000'000}, {"Ki", kKibi},   {"Mi", kKibi * kKibi},
    {"Gi", kKibi * kKibi * kKibi},
};
constexpr Suffix kSizeSuffixes[] = {
    {"", 1},          {"B", 1},
    {"KiB", kKibi},   {"MiB", kKibi * kKibi}, {"GiB", kKibi * kKibi * kKibi},
    {"k", kKibi},     {"m", kKibi * kKibi},   {"g", kKibi * kKibi * kKibi},
};

Result<std::uint64_t> parse_suffixed(std::string_view text, std::span<const Suffix> suffixes,
                                     std::string_view remedy) {
  const auto refuse = [&](std::string_view what) {
    return refusal(in_quotes(text) + " " + std::string(what) + "; " + std::string(remedy));
  };
  if (text.starts_with('-')) return refuse("is negative");
  const Digits digits = scan_digits(text);
  if (digits.length == 0) return refuse("is not a number");
  const std::string_view rest = text.substr(digits.length);
  const auto suffix = std::find_if(suffixes.begin(), suffixes.end(),
                                   [&](const Suffix& s) { return s.text == rest; });
  if (suffix == suffixes.end()) return refuse("is not a whole number");
  if (digits.overflow ||
      digits.value > std::numeric_limits<std::uint64_t>::max() / suffix->factor) {
    return refuse("does not fit 64 bits");
  }
  return digits.value * suffix->factor;
}

}  // namespace

Result<std::uint64_t> parse_count(std::string_view text) {
  return parse_suffixed(text, kCountSuffixes, "write a whole number such as 4096, 64Ki or 1M");
}

Result<std::uint64_t> parse_size(std::string_view text) {
  return parse_suffixed(text, kSizeSuffixes, "write a size such as 4096, 64KiB, 64m or 1GiB");
}

std::string format_size(std::uint64_t bytes) {
  constexpr Suffix kUnits[] = {{"GiB", kKibi * kKibi * kKibi}, {"MiB", kKibi * kKibi},
                               {"KiB", kKibi}};
  for (const Suffix& unit : kUnits) {
    if (bytes != 0 && bytes % unit.factor == 0) {
      return std::to_string(bytes / unit.factor) + std::string(unit.text);
    }
  }
  return std::to_string(bytes);
}

Result<std::uint32_t> parse_mode(std::string_view text) {
  std::string_view digits = text;
  if (digits.starts_with("0o")) digits.remove_prefix(2);
  std::uint32_t mode = 0;
  const bool octal = !digits.empty() && digits.size() <= 4 &&
                     std::all_of(digits.begin(), digits.end(),
                                 [](char c) { return c >= '0' && c <= '7'; });
  if (octal) {
    for (const char c : digits) mode = mode * 8 + static_cast<std::uint32_t>(c - '0');
  }
  if (!octal || mode > 0777) {
    return refusal(in_quotes(text) + " is no permission mode; write octal digits, 0000..0777");
  }
  return mode;
}

Digits scan_digits(std::string_view text) noexcept {
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
  Digits found;
  for (const char c : text) {
    if (c < '0' || c > '9') break;
    const auto digit = static_cast<std::uint64_t>(c - '0');
    if (found.value > (kMax - digit) / 10) found.overflow = true;
    if (!found.overflow) found.value = found.value * 10 + digit;
    ++found.length;
  }
  return found;
}

}  // namespace cutwater::config
