// SPDX-License-Identifier: Apache-2.0
#include "calendar/period.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace cutwater::calendar {
namespace {

using rule::CalendarUnit;
using Edges = std::vector<std::int64_t>;

Zone zone_of(std::string_view name) {
  auto zone = Zone::load(name);
  EXPECT_TRUE(zone) << zone.error().text();
  return zone ? *zone : Zone();
}

/// Unix seconds of a UTC date and time.
std::int64_t utc(int year, unsigned month, unsigned day, int hour = 0, int minute = 0) {
  using namespace std::chrono;
  const sys_days date = std::chrono::year(year) / static_cast<int>(month) / static_cast<int>(day);
  return date.time_since_epoch().count() * 86'400 + hour * 3600 + minute * 60;
}

Periods periods(std::string_view zone, CalendarUnit unit, std::int64_t at, std::size_t count) {
  auto found = next_edges(zone_of(zone), unit, at, count);
  EXPECT_TRUE(found);
  return found ? *found : Periods{};
}

TEST(Periods, OfUtcAreTheObviousOnes) {
  const std::int64_t at = utc(2026, 6, 10, 12, 34) + 56;   // a Wednesday
  const auto edges = [&](CalendarUnit unit) { return periods("UTC", unit, at, 2).edges_s; };

  EXPECT_EQ(edges(CalendarUnit::Minute),
            (Edges{utc(2026, 6, 10, 12, 35), utc(2026, 6, 10, 12, 36)}));
  EXPECT_EQ(edges(CalendarUnit::Hour), (Edges{utc(2026, 6, 10, 13), utc(2026, 6, 10, 14)}));
  EXPECT_EQ(edges(CalendarUnit::Day), (Edges{utc(2026, 6, 11), utc(2026, 6, 12)}));
  EXPECT_EQ(edges(CalendarUnit::Week), (Edges{utc(2026, 6, 15), utc(2026, 6, 22)}));
  EXPECT_EQ(edges(CalendarUnit::Month), (Edges{utc(2026, 7, 1), utc(2026, 8, 1)}));
  EXPECT_EQ(edges(CalendarUnit::Year), (Edges{utc(2027, 1, 1), utc(2028, 1, 1)}));
  EXPECT_EQ(periods("UTC", CalendarUnit::Year, at, 0).begin_s, utc(2026, 1, 1));
}

TEST(Periods, AnEdgeBelongsToItsNewPeriod) {
  const std::int64_t edge = utc(2026, 3, 1);

  const Periods before = periods("UTC", CalendarUnit::Month, edge - 1, 1);
  const Periods after = periods("UTC", CalendarUnit::Month, edge, 1);

  EXPECT_EQ(before.edges_s, Edges{edge});
  EXPECT_EQ(after.index, before.index + 1);
  EXPECT_EQ(after.begin_s, edge);
  EXPECT_EQ(after.edges_s, Edges{utc(2026, 4, 1)});
}

TEST(Periods, AreCountedFrom1970) {
  EXPECT_EQ(periods("UTC", CalendarUnit::Day, 0, 1).index, 0u);
  EXPECT_EQ(periods("UTC", CalendarUnit::Day, utc(2026, 6, 10), 1).index, 20'614u);
  EXPECT_EQ(periods("UTC", CalendarUnit::Week, 0, 1).edges_s, Edges{utc(1970, 1, 5)});
  EXPECT_EQ(periods("UTC", CalendarUnit::Year, utc(2026, 6, 10), 1).index, 56u);
}

TEST(Periods, ADayOfDaylightSavingHas23Or25Hours) {
  const std::int64_t spring = utc(2026, 3, 28, 23);
  const std::int64_t autumn = utc(2026, 10, 24, 22);

  EXPECT_EQ(periods("Europe/Berlin", CalendarUnit::Day, spring, 1).edges_s,
            Edges{spring + 23 * 3600});
  EXPECT_EQ(periods("Europe/Berlin", CalendarUnit::Day, autumn, 1).edges_s,
            Edges{autumn + 25 * 3600});
  EXPECT_EQ(periods("Europe/Berlin", CalendarUnit::Hour, spring, 25).index + 25,
            periods("Europe/Berlin", CalendarUnit::Hour, spring + 25 * 3600, 1).index);
}

TEST(Periods, AnHourThatIsShownTwiceIsTwoAndOneThatIsSkippedNone) {
  const std::int64_t autumn = utc(2026, 10, 24, 23);   // 01:00 summer time; 02:00 comes twice
  const std::int64_t spring = utc(2026, 3, 29);        // 01:00; 02:00 never comes

  EXPECT_EQ(periods("Europe/Berlin", CalendarUnit::Hour, autumn, 3).edges_s,
            (Edges{autumn + 3600, autumn + 7200, autumn + 10'800}));
  EXPECT_EQ(periods("Europe/Berlin", CalendarUnit::Hour, spring, 2).edges_s,
            (Edges{spring + 3600, spring + 7200}));
}

TEST(Periods, HalfAnHourPutBackMakesOneHourLonger) {
  // Lord Howe: at 02:00 summer time, 15:00Z, the clock shows 01:30 again.
  const std::int64_t one = utc(2026, 4, 4, 14);
  EXPECT_EQ(periods("Australia/Lord_Howe", CalendarUnit::Hour, one, 2).edges_s,
            (Edges{one + 5400, one + 9000}));
  EXPECT_EQ(periods("Asia/Kathmandu", CalendarUnit::Hour, utc(2026, 6, 1), 1).edges_s,
            Edges{utc(2026, 6, 1, 0, 15)});
}

TEST(Periods, ADateThatNeverCameIsNoPeriod) {
  // Samoa went from the 29th of December 2011 to the 31st, at 10:00Z.
  const std::int64_t over = utc(2011, 12, 30, 10);
  const Periods before = periods("Pacific/Apia", CalendarUnit::Day, over - 1, 2);

  EXPECT_EQ(before.edges_s, (Edges{over, over + 86'400}));
  EXPECT_EQ(periods("Pacific/Apia", CalendarUnit::Day, over, 1).index, before.index + 1);
  EXPECT_EQ(periods("Pacific/Apia", CalendarUnit::Day, over + 86'400, 1).index, before.index + 2);
}

TEST(Periods, ADateThatComesTwiceIsOnePeriod) {
  // Havana: on the 1st of November 2026 the clock goes from 01:00 back to 00:00; St. John's once
  // went from 00:01 back to 23:01 of the day before.
  const std::int64_t havana = utc(2026, 11, 1, 4);
  EXPECT_EQ(periods("America/Havana", CalendarUnit::Day, havana - 1, 2).edges_s,
            (Edges{havana, havana + 25 * 3600}));
  const std::int64_t johns = utc(2010, 11, 7, 2, 30);
  EXPECT_EQ(periods("America/St_Johns", CalendarUnit::Day, johns - 1, 2).edges_s,
            (Edges{johns, johns + 25 * 3600}));
  EXPECT_EQ(periods("America/St_Johns", CalendarUnit::Day, johns + 3600, 1).begin_s, johns);
}

TEST(Periods, ADayWithoutMidnightBeginsWithItsFirstMoment) {
  // Sao Paulo: on the 4th of November 2018 midnight was one o'clock.
  const std::int64_t first = utc(2018, 11, 4, 3);

  EXPECT_EQ(periods("America/Sao_Paulo", CalendarUnit::Day, first - 1, 2).edges_s,
            (Edges{first, first + 23 * 3600}));
}

TEST(Periods, ReachTheEndOfTheYear9999AndBeyondByTheirEdges) {
  for (const char* zone : {"UTC", "Europe/Berlin", "Africa/Casablanca", "Australia/Lord_Howe"}) {
    const Periods last = periods(zone, CalendarUnit::Year, kMaxUnixSecond, kMaxEdges);
    ASSERT_EQ(last.edges_s.size(), kMaxEdges);
    for (std::size_t i = 1; i < kMaxEdges; ++i) ASSERT_GT(last.edges_s[i], last.edges_s[i - 1]);
  }
}

TEST(Periods, OutOfRangeIsRefused) {
  EXPECT_EQ(next_edges(Zone(), CalendarUnit::Day, -1, 1).error().text(),
            "the moment -1 is outside 1970..9999; set the clock of this host");
  EXPECT_FALSE(next_edges(Zone(), CalendarUnit::Day, kMaxUnixSecond + 1, 1));
  EXPECT_EQ(next_edges(Zone(), CalendarUnit::Day, 0, kMaxEdges + 1).error().text(),
            "1025 edges are above the maximum of 1024");
}

TEST(Periods, MayBeAskedByManyThreadsAtOnce) {
  const Zone zone = zone_of("America/New_York");
  const Periods wanted = periods("America/New_York", CalendarUnit::Month, utc(2031, 5, 6), 24);
  std::vector<Periods> found(4);
  std::vector<std::thread> threads;
  for (Periods& one : found) {
    threads.emplace_back([&one, &zone] {
      for (int i = 0; i < 200; ++i) {
        one = *next_edges(zone, CalendarUnit::Month, utc(2031, 5, 6), 24);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Periods& one : found) {
    EXPECT_EQ(one.index, wanted.index);
    EXPECT_EQ(one.edges_s, wanted.edges_s);
  }
}

}  // namespace
}  // namespace cutwater::calendar
