// SPDX-License-Identifier: Apache-2.0
#include "config/rate.hpp"

#include "config/count.hpp"
#include "config/duration.hpp"
#include "config/words.hpp"
#include "rule/limit_settings.hpp"

namespace cutwater::config {
namespace {

struct Word {
  std::string_view text;   ///< without a final s
  std::string_view unit;
};
constexpr Word kWords[] = {
    {"nanosecond", "ns"}, {"microsecond", "us"}, {"millisecond", "ms"}, {"second", "s"},
    {"sec", "s"},         {"minute", "m"},       {"min", "m"},          {"hour", "h"},
    {"day", "d"},
};

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ')) text.remove_suffix(1);
  return text;
}

Error zero() {
  return refusal("0 is neither unlimited nor blocked; write 'unlimited: true' or 'blocked: true'");
}

/// "minutes" -> "m"; a unit stays; anything else comes back empty.
std::string_view unit_of(std::string_view word) {
  if (unit_ns(word) != 0) return word;
  std::string_view singular = word;
  if (singular.size() > 1 && singular.ends_with('s')) singular.remove_suffix(1);
  for (const Word& known : kWords) {
    if (known.text == singular) return known.unit;
  }
  return {};
}

Result<Rate> checked(Rate rate, std::string_view written) {
  if (rate.count == 0) return zero();
  if (rate.count > rule::kMaxRateCount) {
    return refusal(in_quotes(written) + " has a count above the maximum of 1000000000; "
                   "write a shorter period");
  }
  if (rate.period_ns == 0) return refusal("a period of 0 is no rate; write a period such as 1s");
  if (rate.period_ns < rule::kMinPeriodNs) {
    return refusal(in_quotes(written) +
                   " has a period below the minimum of 1us; write a longer one");
  }
  if (rule::above_max_rate(rate.count, rate.period_ns)) {
    return refusal(format_rate(rate) + " is above the maximum of 10000000/s");
  }
  return rate;   // 1 per 3660d is the slowest by the bounds of count and period
}

/// Units that are no fixed time.
bool is_calendar_word(std::string_view word) {
  const std::string_view singular = word.ends_with('s') ? word.substr(0, word.size() - 1) : word;
  return singular == "month" || singular == "year" || singular == "week";
}

/// The count of a rate, which `r` may follow (10r/s).
Result<std::uint64_t> rate_count(std::string_view text) {
  if (text.size() > 1 && text.ends_with('r')) text.remove_suffix(1);
  const std::string_view digits = text.starts_with('-') ? text.substr(1) : text;
  const Digits whole = scan_digits(digits);
  if (text.starts_with('-') && whole.length > 0) {
    return refusal(in_quotes(text) + " is negative; write a rate such as 10/s");
  }
  const std::string_view rest = text.substr(whole.length);
  if (whole.length > 0 && rest.starts_with('.')) {
    return refusal(in_quotes(text) + " is not a whole count; write a longer period, such as 15/10s "
                   "for 1.5 a second");
  }
  return parse_count(text);
}

}  // namespace

Result<Rate> parse_rate(std::string_view text) {
  const std::string_view all = trimmed(text);
  std::size_t split = all.find('/');
  std::size_t width = 1;
  if (split == std::string_view::npos) {
    split = all.find(" per ");
    width = 5;
  }
  if (split != std::string_view::npos) {
    return parse_rate(trimmed(all.substr(0, split)), trimmed(all.substr(split + width)));
  }
  const Digits digits = scan_digits(all);
  if (digits.length == 0 || digits.length != all.size()) {
    if (all.starts_with('-') && scan_digits(all.substr(1)).length > 0) {
      return refusal(in_quotes(all) + " is negative; write a rate such as 10/s");
    }
    return refusal(in_quotes(text) +
                   " is not a rate; write 10/s, 100/m, 1000/15m or 100 per minute");
  }
  if (digits.value == 0 && !digits.overflow) return zero();
  const std::string number(all.substr(0, kMaxQuotedBytes));
  return refusal(in_quotes(all) + " has no period; write " + number + "/s, " + number + "/m, " +
                 number + "/h or " + number + "/d");
}

Result<Rate> parse_rate(std::string_view count, std::string_view period) {
  auto permits = rate_count(count);
  if (!permits) return permits.error();
  if (*permits == 0) return zero();
  const bool no_unit = scan_digits(period).length == 0 && unit_of(period).empty() &&
                       period.find_first_of("-P") != 0 && !is_calendar_word(period);
  if (no_unit) {
    const std::string number = std::to_string(*permits);
    return refusal(in_quotes(std::string(count) + "/" + std::string(period)) +
                   " has no known period; write " + number + "/s, " + number + "/m, " + number +
                   "/h or " + number + "/d");
  }
  auto ns = parse_period(period);
  if (!ns) return ns.error();
  return checked({.count = *permits, .period_ns = *ns},
                 std::string(count) + "/" + std::string(period));
}

Result<std::uint64_t> parse_period(std::string_view text) {
  if (const std::string_view unit = unit_of(text); !unit.empty()) return unit_ns(unit);
  const Digits digits = scan_digits(text);
  std::string_view word = text.substr(digits.length);
  const bool spaced = word.starts_with(' ');
  word = trimmed(word);
  if (is_calendar_word(word)) {
    return refusal(in_quotes(text) +
                   " has no fixed length in seconds; write days, such as 7d or 30d");
  }
  if (digits.length > 0 && !word.empty()) {
    if (const std::string_view unit = unit_of(word); !unit.empty() && (spaced || unit != word)) {
      return parse_duration(std::string(text.substr(0, digits.length)) + std::string(unit));
    }
  }
  return parse_duration(text);
}

std::string format_rate(Rate rate) {
  std::string period = format_duration(rate.period_ns);
  if (period.size() > 1 && period[0] == '1' && unit_ns(std::string_view(period).substr(1)) != 0) {
    period.erase(0, 1);
  }
  return std::to_string(rate.count) + "/" + period;
}

}  // namespace cutwater::config
