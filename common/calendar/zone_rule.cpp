// SPDX-License-Identifier: Apache-2.0
#include "calendar/zone_rule.hpp"

#include <algorithm>
#include <chrono>

#include "calendar/zone.hpp"

namespace cutwater::calendar {
namespace {

constexpr std::int64_t kDay = 86'400;
constexpr std::int32_t kMaxOffsetHours = 24;
constexpr std::int32_t kMaxTimeHours = 167;   // RFC 8536, version 3

std::int64_t unix_of(std::chrono::sys_days day) { return day.time_since_epoch().count() * kDay; }

/// The moment a rule's day and time mean in a year, when the clock is `offset_s` ahead of UTC.
std::int64_t moment_of(const RuleDay& rule, std::chrono::year year, std::int32_t offset_s) {
  using namespace std::chrono;
  sys_days day = year / January / 1;
  if (rule.kind == RuleDay::Kind::Plain) {
    day += days(rule.day);
  } else if (rule.kind == RuleDay::Kind::Julian) {
    day += days(rule.day - 1 + (year.is_leap() && rule.day >= 60 ? 1 : 0));
  } else {
    const month in(static_cast<unsigned>(rule.month));
    const weekday wanted(static_cast<unsigned>(rule.day));
    day = rule.week == 5 ? sys_days(year / in / wanted[last])
                         : sys_days(year / in / wanted[static_cast<unsigned>(rule.week)]);
  }
  return unix_of(day) + rule.second - offset_s;
}

/// Reads a footer from left to right; every call takes what it understood off the front.
class Footer {
 public:
  explicit Footer(std::string_view text) : rest_(text) {}

  bool done() const { return rest_.empty(); }

  bool take(char c) {
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  /// A name of a clock: three letters or more, or anything in < and >.
  bool name() {
    const bool quoted = take('<');
    std::size_t length = 0;
    const auto inner = [&](char c) {
      const bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
      return letter || (quoted && ((c >= '0' && c <= '9') || c == '+' || c == '-'));
    };
    while (length < rest_.size() && inner(rest_[length])) ++length;
    rest_.remove_prefix(length);
    return length >= 3 && (!quoted || take('>'));
  }

  std::optional<std::int32_t> number(std::int32_t low, std::int32_t high) {
    std::int32_t value = 0;
    std::size_t length = 0;
    while (length < rest_.size() && length < 4 && rest_[length] >= '0' && rest_[length] <= '9') {
      value = value * 10 + (rest_[length++] - '0');
    }
    rest_.remove_prefix(length);
    if (length == 0 || value < low || value > high) return std::nullopt;
    return value;
  }

  /// [+-]hh[:mm[:ss]] in seconds.
  std::optional<std::int32_t> time(std::int32_t max_hours) {
    const bool negative = take('-');
    if (!negative) take('+');
    const auto hours = number(0, max_hours);
    if (!hours) return std::nullopt;
    std::int32_t seconds = *hours * 3600;
    for (const std::int32_t unit : {60, 1}) {
      if (!take(':')) break;
      const auto part = number(0, 59);
      if (!part) return std::nullopt;
      seconds += *part * unit;
    }
    return negative ? -seconds : seconds;
  }

  std::optional<RuleDay> day() {
    RuleDay rule;
    std::optional<std::int32_t> day;
    if (take('M')) {
      rule.kind = RuleDay::Kind::Weekday;
      const auto month = number(1, 12);
      if (!month || !take('.')) return std::nullopt;
      const auto week = number(1, 5);
      if (!week || !take('.')) return std::nullopt;
      rule.month = *month;
      rule.week = *week;
      day = number(0, 6);
    } else if (take('J')) {
      rule.kind = RuleDay::Kind::Julian;
      day = number(1, 365);
    } else {
      day = number(0, 365);
    }
    if (!day) return std::nullopt;
    rule.day = *day;
    rule.second = 2 * 3600;
    if (take('/')) {
      const auto second = time(kMaxTimeHours);
      if (!second) return std::nullopt;
      rule.second = *second;
    }
    return rule;
  }

 private:
  std::string_view rest_;
};

}  // namespace

Stretch ZoneRule::stretch_at(std::int64_t unix_s) const {
  Stretch found{.offset_s = standard_offset_s};
  if (!saves) return found;
  using namespace std::chrono;
  const auto day = floor<days>(sys_seconds(seconds(unix_s)));
  const year_month_day date(day);
  // The years around it too: a rule may reach over the turn of the year by up to a week.
  struct Change {
    std::int64_t at_s;
    std::int32_t offset_s;
  };
  std::array<Change, 6> changes{};
  std::size_t count = 0;
  for (int year = -1; year <= 1; ++year) {
    const auto in = date.year() + years(year);
    const Change on{moment_of(begin, in, standard_offset_s), saving_offset_s};
    const Change off{moment_of(end, in, saving_offset_s), standard_offset_s};
    const bool north = on.at_s <= off.at_s;
    changes[count++] = north ? on : off;
    changes[count++] = north ? off : on;
  }
  // Stable: where the end of one year's saving is the beginning of the next one's, the latter wins.
  std::stable_sort(changes.begin(), changes.end(),
                   [](const Change& a, const Change& b) { return a.at_s < b.at_s; });
  for (const Change& change : changes) {
    if (change.at_s > unix_s) {
      found.end_s = change.at_s;
      break;
    }
    found.begin_s = change.at_s;
    found.offset_s = change.offset_s;
  }
  return found;
}

std::optional<ZoneRule> parse_rule(std::string_view text) {
  Footer footer(text);
  ZoneRule rule;
  if (!footer.name()) return std::nullopt;
  const auto west = footer.time(kMaxOffsetHours);
  if (!west) return std::nullopt;
  rule.standard_offset_s = -*west;
  rule.saving_offset_s = rule.standard_offset_s;
  if (footer.done()) return rule;
  if (!footer.name()) return std::nullopt;
  rule.saves = true;
  rule.saving_offset_s += 3600;
  if (!footer.take(',')) {
    const auto saving_west = footer.time(kMaxOffsetHours);
    if (!saving_west || !footer.take(',')) return std::nullopt;
    rule.saving_offset_s = -*saving_west;
  }
  const auto begin = footer.day();
  if (!begin || !footer.take(',')) return std::nullopt;
  const auto end = footer.day();
  if (!end || !footer.done()) return std::nullopt;
  rule.begin = *begin;
  rule.end = *end;
  return rule;
}

}  // namespace cutwater::calendar
