// SPDX-License-Identifier: Apache-2.0
#include "config/moment.hpp"

#include <chrono>
#include <optional>

#include "config/words.hpp"

namespace cutwater::config {
namespace {

constexpr std::int64_t kDay = 86'400;
constexpr std::string_view kExample = "2030-01-01T00:00:00Z";

/// Takes digits and signs off the front of a text.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  bool done() const { return rest_.empty(); }

  bool take(std::string_view any) {
    if (rest_.empty() || any.find(rest_.front()) == std::string_view::npos) return false;
    rest_.remove_prefix(1);
    return true;
  }

  /// Exactly `width` digits, at most `max`.
  std::optional<int> number(std::size_t width, int max) {
    int value = 0;
    for (std::size_t i = 0; i < width; ++i) {
      if (rest_.empty() || rest_.front() < '0' || rest_.front() > '9') return std::nullopt;
      value = value * 10 + (rest_.front() - '0');
      rest_.remove_prefix(1);
    }
    if (value > max) return std::nullopt;
    return value;
  }

  /// Digits behind a point; true when they are not all 0.
  std::optional<bool> fraction() {
    bool some = false;
    std::size_t length = 0;
    while (!rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9') {
      some |= rest_.front() != '0';
      rest_.remove_prefix(1);
      ++length;
    }
    if (length == 0) return std::nullopt;
    return some;
  }

 private:
  std::string_view rest_;
};

/// hh:mm in seconds.
std::optional<std::int64_t> hours_and_minutes(Scanner& scanner) {
  const auto hour = scanner.number(2, 23);
  if (!hour || !scanner.take(":")) return std::nullopt;
  const auto minute = scanner.number(2, 59);
  if (!minute) return std::nullopt;
  return *hour * 3600 + *minute * 60;
}

std::optional<std::int64_t> date_in_days(Scanner& scanner) {
  using namespace std::chrono;
  const auto year_number = scanner.number(4, 9999);
  if (!year_number || !scanner.take("-")) return std::nullopt;
  const auto month_number = scanner.number(2, 12);
  if (!month_number || !scanner.take("-")) return std::nullopt;
  const auto day_number = scanner.number(2, 31);
  if (!day_number) return std::nullopt;
  const year_month_day date{year(*year_number), month(static_cast<unsigned>(*month_number)),
                            day(static_cast<unsigned>(*day_number))};
  if (!date.ok()) return std::nullopt;
  return sys_days(date).time_since_epoch().count();
}

Error none(std::string_view text) {
  return refusal(in_quotes(text) + " is no moment; write one such as " + std::string(kExample));
}

}  // namespace

Result<std::uint64_t> parse_moment(std::string_view text) {
  Scanner scanner(text);
  const auto days = date_in_days(scanner);
  if (!days || !scanner.take("Tt")) return none(text);
  const auto of_day = hours_and_minutes(scanner);
  if (!of_day || !scanner.take(":")) return none(text);
  const auto second = scanner.number(2, 59);
  if (!second) return none(text);
  std::int64_t at = *days * kDay + *of_day + *second;
  if (scanner.take(".")) {
    const auto some = scanner.fraction();
    if (!some) return none(text);
    at += *some ? 1 : 0;
  }
  if (scanner.done()) {
    return refusal(in_quotes(text) + " has no zone; write " + std::string(text.substr(0, 19)) +
                   "Z for UTC, or +01:00 behind it");
  }
  if (!scanner.take("Zz")) {
    const bool ahead = scanner.take("+");
    if (!ahead && !scanner.take("-")) return none(text);
    const auto offset = hours_and_minutes(scanner);
    if (!offset) return none(text);
    at += ahead ? -*offset : *offset;
  }
  if (!scanner.done()) return none(text);
  if (at <= 0) return refusal(in_quotes(text) + " is not after 1970; write a later moment");
  if (at > static_cast<std::int64_t>(kMaxMoment)) {
    return refusal(in_quotes(text) + " is above the maximum of " + format_moment(kMaxMoment) +
                   "; leave it out for ever");
  }
  return static_cast<std::uint64_t>(at);
}

std::string format_moment(std::uint64_t unix_s) {
  using namespace std::chrono;
  const auto days_since = static_cast<std::int64_t>(unix_s) / kDay;
  const auto of_day = static_cast<std::int64_t>(unix_s) % kDay;
  const year_month_day date{sys_days(days(days_since))};
  const auto padded = [](std::int64_t value, std::size_t width) {
    const std::string digits = std::to_string(value);
    return std::string(width - std::min(width, digits.size()), '0') + digits;
  };
  return padded(static_cast<int>(date.year()), 4) + "-" +
         padded(static_cast<unsigned>(date.month()), 2) + "-" +
         padded(static_cast<unsigned>(date.day()), 2) + "T" + padded(of_day / 3600, 2) + ":" +
         padded(of_day / 60 % 60, 2) + ":" + padded(of_day % 60, 2) + "Z";
}

}  // namespace cutwater::config
