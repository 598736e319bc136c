// SPDX-License-Identifier: Apache-2.0
#include "calendar/period.hpp"

#include <chrono>

namespace cutwater::calendar {
namespace {

using rule::CalendarUnit;

constexpr std::int64_t kMinute = 60;
constexpr std::int64_t kHour = 3600;
constexpr std::int64_t kDay = 86'400;
constexpr std::int64_t kMondayShift = 3;   // 1970-01-01 was a Thursday

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  return a / b - (a % b != 0 && (a % b < 0) != (b < 0) ? 1 : 0);
}

/// Minutes and hours follow the face of the clock, the others the date.
bool by_clock(CalendarUnit unit) {
  return unit == CalendarUnit::Minute || unit == CalendarUnit::Hour;
}

/// The number of the period on a calendar without clock changes: what the clock shows at `local_s`,
/// seconds since 1970-01-01T00:00:00 by that clock.
std::int64_t label_of(CalendarUnit unit, std::int64_t local_s) {
  using namespace std::chrono;
  switch (unit) {
    case CalendarUnit::Minute: return floor_div(local_s, kMinute);
    case CalendarUnit::Hour: return floor_div(local_s, kHour);
    case CalendarUnit::Day: return floor_div(local_s, kDay);
    case CalendarUnit::Week: return floor_div(floor_div(local_s, kDay) + kMondayShift, 7);
    case CalendarUnit::Month:
    case CalendarUnit::Year: break;
  }
  const year_month_day date{sys_days(days(floor_div(local_s, kDay)))};
  const auto year = static_cast<std::int64_t>(static_cast<int>(date.year()));
  if (unit == CalendarUnit::Year) return year;
  return year * 12 + static_cast<std::int64_t>(static_cast<unsigned>(date.month())) - 1;
}

/// The first second of a label by that clock.
std::int64_t start_of(CalendarUnit unit, std::int64_t label) {
  using namespace std::chrono;
  switch (unit) {
    case CalendarUnit::Minute: return label * kMinute;
    case CalendarUnit::Hour: return label * kHour;
    case CalendarUnit::Day: return label * kDay;
    case CalendarUnit::Week: return (label * 7 - kMondayShift) * kDay;
    case CalendarUnit::Month:
    case CalendarUnit::Year: break;
  }
  const std::int64_t months = unit == CalendarUnit::Year ? label * 12 : label;
  const year in(static_cast<int>(floor_div(months, 12)));
  const month_day first{month(static_cast<unsigned>(months - floor_div(months, 12) * 12 + 1)),
                        day(1)};
  return sys_days(in / first.month() / first.day()).time_since_epoch().count() * kDay;
}

/// Walks forward from 1970, stretch by stretch, and counts beginnings.
class Walk {
 public:
  Walk(const Zone& zone, CalendarUnit unit)
      : zone_(zone), unit_(unit), stretch_(zone.stretch_at(0)), label_(shown(0)) {}

  std::uint64_t index() const { return index_; }
  std::int64_t begin_s() const { return begin_s_; }

  /// To the period that contains `unix_s`.
  void go_to(std::int64_t unix_s) {
    while (stretch_.end_s <= unix_s) {
      reach(stretch_.end_s - 1);
      enter_next();
    }
    reach(unix_s);
  }

  /// To the next beginning, which it returns.
  std::int64_t next() {
    for (;;) {
      const std::int64_t at = start_of(unit_, label_ + 1) - stretch_.offset_s;
      if (at < stretch_.end_s) {
        begin(at);
        ++label_;
        return at;
      }
      if (enter_next()) return begin_s_;
    }
  }

 private:
  std::int64_t shown(std::int64_t unix_s) const {
    return label_of(unit_, unix_s + stretch_.offset_s);
  }

  void begin(std::int64_t at) {
    ++index_;
    begin_s_ = at;
  }

  /// Counts up to a moment of the same stretch. The date may be behind label_ there, when the clock
  /// went back over a midnight: then nothing begins.
  void reach(std::int64_t unix_s) {
    const std::int64_t label = shown(unix_s);
    if (label <= label_) return;
    index_ += static_cast<std::uint64_t>(label - label_);
    label_ = label;
    begin_s_ = start_of(unit_, label) - stretch_.offset_s;
  }

  /// Into the stretch behind this one; true when a period begins there.
  bool enter_next() {
    const std::int64_t at = stretch_.end_s;
    const std::int64_t before = by_clock(unit_) ? shown(at - 1) : label_;
    stretch_ = zone_.stretch_at(at);
    const std::int64_t label = shown(at);
    const bool first_second = start_of(unit_, label) == at + stretch_.offset_s;
    const bool begins = label > before || (by_clock(unit_) && first_second);
    if (begins) begin(at);
    label_ = by_clock(unit_) ? label : std::max(label_, label);
    return begins;
  }

  const Zone& zone_;
  CalendarUnit unit_;
  Stretch stretch_;
  std::int64_t label_;             // by_clock: of where we are; else the highest so far
  std::uint64_t index_ = 0;
  std::int64_t begin_s_ = 0;
};

}  // namespace

Result<Periods> next_edges(const Zone& zone, CalendarUnit unit, std::int64_t unix_s,
                           std::size_t count) {
  if (unix_s < 0 || unix_s > kMaxUnixSecond) {
    return Error(Errc::InvalidArgument,
                 "the moment " + std::to_string(unix_s) +
                     " is outside 1970..9999; set the clock of this host");
  }
  if (count > kMaxEdges) {
    return Error(Errc::InvalidArgument, std::to_string(count) + " edges are above the maximum of " +
                                            std::to_string(kMaxEdges));
  }
  Walk walk(zone, unit);
  walk.go_to(unix_s);
  Periods periods{.index = walk.index(), .begin_s = walk.begin_s(), .edges_s = {}};
  periods.edges_s.reserve(count);
  while (periods.edges_s.size() < count) periods.edges_s.push_back(walk.next());
  return periods;
}

}  // namespace cutwater::calendar
