// SPDX-License-Identifier: Apache-2.0
#include "config/decimal.hpp"

#include <optional>

#include "config/count.hpp"
#include "config/words.hpp"
#include "rule/breaker_settings.hpp"

namespace cutwater::config {
namespace {

constexpr std::uint64_t kMaxWhole = 1'000'000;   // more is out of every range here
constexpr std::size_t kPercentPlaces = 4;
constexpr std::size_t kDecimalPlaces = 6;

/// What was written, times 10^places; the text is digits with at most one point.
struct Number {
  std::uint64_t scaled = 0;
  bool too_fine = false;    ///< more places than there are
  bool too_large = false;
};

std::optional<Number> scan(std::string_view text, std::size_t places) {
  const Digits whole = scan_digits(text);
  if (whole.length == 0) return std::nullopt;
  Number number{.scaled = whole.value};
  number.too_large = whole.overflow || whole.value > kMaxWhole;
  std::string_view fraction;
  if (whole.length < text.size()) {
    if (text[whole.length] != '.') return std::nullopt;
    fraction = text.substr(whole.length + 1);
    const Digits behind = scan_digits(fraction);
    if (behind.length == 0 || behind.length != fraction.size()) return std::nullopt;
    while (fraction.ends_with('0')) fraction.remove_suffix(1);
  }
  number.too_fine = fraction.size() > places;
  if (number.too_fine || number.too_large) return number;
  for (std::size_t i = 0; i < places; ++i) {
    number.scaled = number.scaled * 10 +
                    (i < fraction.size() ? static_cast<std::uint64_t>(fraction[i] - '0') : 0);
  }
  return number;
}

/// ppm / 10^6 or ppm / 10^4 with its places and no zeroes behind them.
std::string format(std::uint64_t ppm, std::size_t places) {
  std::uint64_t unit = 1;
  for (std::size_t i = 0; i < places; ++i) unit *= 10;
  std::string fraction = std::to_string(ppm % unit);
  fraction.insert(0, places - fraction.size(), '0');
  while (fraction.ends_with('0')) fraction.pop_back();
  const std::string whole = std::to_string(ppm / unit);
  return fraction.empty() ? whole : whole + "." + fraction;
}

}  // namespace

Result<std::uint64_t> parse_percent(std::string_view text) {
  const bool sign = text.ends_with('%');
  std::string_view digits = text.substr(0, text.size() - (sign ? 1 : 0));
  while (sign && digits.ends_with(' ')) digits.remove_suffix(1);
  const auto number = scan(digits, kPercentPlaces);
  if (!number) {
    return refusal(in_quotes(text) + " is no percentage; write 50, 33.3333 or 0.5%");
  }
  if (number->too_fine) {
    return refusal(in_quotes(text) + " has more than four places; write 33.3333");
  }
  if (number->too_large || number->scaled > rule::kPpm) {
    return refusal(std::string(text) + " is above the maximum of 100 %");
  }
  if (!sign && number->scaled > 0 && number->scaled < 10'000) {
    const std::string part = format_percent(number->scaled * 100);
    const std::string share = part.substr(0, part.size() - 1);
    const bool half = number->scaled == 5'000;
    return refusal(std::string(text) + "; for " + (half ? "half" : share + " in a hundred") +
                   " of the calls write " + share + ", for " +
                   (half ? "half a percent" : "less than one percent") + " " + std::string(text) +
                   "%");
  }
  return number->scaled;
}

Result<std::uint64_t> parse_decimal(std::string_view text, std::uint64_t min_ppm,
                                    std::uint64_t max_ppm) {
  const auto number = scan(text, kDecimalPlaces);
  if (!number) return refusal(in_quotes(text) + " is no decimal; write one such as 0.5");
  if (number->too_fine) {
    return refusal(in_quotes(text) + " has more than six places; write one such as 0.333333");
  }
  if (number->too_large || number->scaled > max_ppm) {
    const bool percent = max_ppm == rule::kPpm && !number->too_large &&
                         number->scaled <= 100 * max_ppm;
    return refusal(std::string(text) + " is above the maximum of " + format_decimal(max_ppm) +
                   (percent ? "; for " + std::string(text) + " % write " +
                                  format_decimal(number->scaled / 100)
                            : ""));
  }
  if (number->scaled < min_ppm) {
    return refusal(std::string(text) + " is below the minimum of " + format_decimal(min_ppm));
  }
  return number->scaled;
}

std::string format_percent(std::uint64_t ppm) { return format(ppm, kPercentPlaces) + "%"; }

std::string format_decimal(std::uint64_t ppm) { return format(ppm, kDecimalPlaces); }

}  // namespace cutwater::config
