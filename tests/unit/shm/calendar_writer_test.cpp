// SPDX-License-Identifier: Apache-2.0
// Calendar windows: edges as stamps, written anew in time, and a window number that never falls.
#include "shm/limit/calendar_writer.hpp"

#include <algorithm>
#include <cstring>
#include <random>

#include "shm/limit/rule_reader.hpp"
#include "unit/shm/publish_fixture.hpp"

namespace cutwater::shm {
namespace {

using rule::CalendarUnit;

constexpr std::int64_t kSecondNs = 1'000'000'000;

/// Periods of `length_s`, counted from 1970, that begin `shift_s` late.
PeriodSource plain(std::int64_t length_s, std::int64_t shift_s = 0) {
  return [=](CalendarUnit, const std::string&, std::int64_t unix_s,
             std::size_t count) -> Result<WallPeriods> {
    WallPeriods out;
    out.index = (unix_s - shift_s) / length_s;
    for (std::size_t i = 0; i < count; ++i) {
      out.edges_s.push_back((out.index + 1 + static_cast<std::int64_t>(i)) * length_s + shift_s);
    }
    return out;
  };
}

class CalendarWriter : public testing::Test {
 protected:
  static constexpr std::int64_t kLength = 60;
  StampedPeriods periods(std::int64_t t, std::int64_t offset) {
    return stamped_periods(plain(kLength), CalendarUnit::Minute, "UTC", t, offset).value();
  }
  CalendarRecord fresh(std::int64_t t) {
    return fresh_calendar(CalendarUnit::Minute, "UTC", periods(t, 0), t);
  }
};

TEST_F(CalendarWriter, EdgesAreStampsAndTheLastPeriodRepeats) {
  const CalendarRecord record = fresh(90 * kSecondNs);
  EXPECT_EQ(record.edges, kCalendarEdges);
  EXPECT_EQ(record.edge[0], 120 * kSecondNs);
  EXPECT_EQ(record.period_ns, 60 * kSecondNs);
  EXPECT_EQ(period_at(record, 119 * kSecondNs), 0U);
  EXPECT_EQ(period_at(record, 120 * kSecondNs), 1U);
  EXPECT_EQ(period_at(record, (120 + 60 * 23) * kSecondNs), 24U);
  EXPECT_EQ(period_at(record, (120 + 60 * 30) * kSecondNs), 31U);
}

TEST_F(CalendarWriter, NothingIsWrittenAnewWhileItAgrees) {
  const CalendarRecord record = fresh(90 * kSecondNs);
  const std::int64_t due = renew_calendar_at(record);
  const CalendarRecord same = renewed_calendar(record, periods(due - 1, 0), due - 1);
  EXPECT_EQ(std::memcmp(&record, &same, sizeof record), 0);
  const CalendarRecord next = renewed_calendar(record, periods(due, 0), due);
  EXPECT_NE(std::memcmp(&record, &next, sizeof record), 0);
  for (std::int64_t t = next.valid_from; t < due + 3000 * kSecondNs; t += 7 * kSecondNs) {
    ASSERT_EQ(period_at(next, t), period_at(record, t)) << t;
  }
}

TEST_F(CalendarWriter, AClockThatIsSetForwardBeginsOnePeriod) {
  const CalendarRecord record = fresh(90 * kSecondNs);
  const std::int64_t t = 200 * kSecondNs;
  const CalendarRecord next = renewed_calendar(record, periods(t, 1000 * kSecondNs), t);
  EXPECT_EQ(period_at(next, t - 1), period_at(record, t - 1));
  EXPECT_EQ(period_at(next, t), period_at(record, t) + 1);
  EXPECT_EQ(period_start(next, period_at(next, t) + 1), (1260 - 1000) * kSecondNs);
}

TEST_F(CalendarWriter, AClockThatIsSetBackTakesNothingAndGivesNothing) {
  const CalendarRecord record = fresh(90 * kSecondNs);
  const std::int64_t t = 1030 * kSecondNs;
  const CalendarRecord next = renewed_calendar(record, periods(t, -500 * kSecondNs), t);
  EXPECT_EQ(period_at(next, t), period_at(record, t));
  EXPECT_EQ(period_start(next, period_at(next, t) + 1), (540 + 500) * kSecondNs);
}

TEST_F(CalendarWriter, TheNumberNeverFallsInTenThousandSettingsOfTheClock) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 chance(seed);
  CalendarRecord record = fresh(90 * kSecondNs);
  std::int64_t t = 100 * kSecondNs, offset = 0;
  for (int i = 0; i < 10'000; ++i) {
    t += static_cast<std::int64_t>(chance() % (200 * kSecondNs));
    if (chance() % 40 == 0) t += 3000 * kSecondNs;
    if (chance() % 3 == 0) {
      offset = static_cast<std::int64_t>(chance() % (10'000 * kSecondNs)) - 5'000 * kSecondNs;
      offset = std::max(offset, -t);
    }
    const CalendarRecord next = renewed_calendar(record, periods(t, offset), t);
    ASSERT_GT(next.edges, 0);
    ASSERT_TRUE(std::is_sorted(next.edge, next.edge + next.edges));
    ASSERT_EQ(std::adjacent_find(next.edge, next.edge + next.edges), next.edge + next.edges);
    for (std::int64_t before = t - 1; before > next.valid_from; before -= 9 * kSecondNs) {
      ASSERT_EQ(period_at(next, before), period_at(record, before)) << "old and new differ";
      if (t - before > 100 * kSecondNs) break;
    }
    ASSERT_GE(period_at(next, t), period_at(record, t));
    ASSERT_LE(period_at(next, t), period_at(record, t) + 1);
    record = next;
  }
}

TEST(CalendarNames, UnitAndZoneMakeTheName) {
  EXPECT_EQ(calendar_hash(CalendarUnit::Day, ""), calendar_hash(CalendarUnit::Day, "UTC"));
  EXPECT_NE(calendar_hash(CalendarUnit::Day, ""), calendar_hash(CalendarUnit::Week, ""));
  EXPECT_NE(calendar_hash(CalendarUnit::Day, ""), calendar_hash(CalendarUnit::Day, "Asia/Tokyo"));
}

class CalendarLimit : public PublishTest {
 protected:
  static Limits minutes(std::uint64_t count, std::string zone = "UTC") {
    return {limit("api", {rule::calendar_window(count, CalendarUnit::Minute, std::move(zone))})};
  }
};

TEST_F(CalendarLimit, W1TenBeforeTheEdgeAndTenBehindIt) {
  open(minutes(10));
  step_clock(view(), kEpochLeadNs + 59 * kSecond);
  EXPECT_TRUE(allowed(take("api", "k", 10)));
  EXPECT_EQ(rule::report_of(peek("api", "k")).reset_after_ns, kSecond);
  EXPECT_FALSE(allowed(take("api", "k")));
  step_clock(view(), kEpochLeadNs + 60 * kSecond);
  EXPECT_TRUE(allowed(take("api", "k", 10)));
  EXPECT_EQ(rule::report_of(peek("api", "k")).reset_after_ns, 60 * kSecond);
  EXPECT_EQ(verified(), "");
}

TEST_F(CalendarLimit, WrittenAnewBeforeTheEdgesRunOut) {
  open(minutes(10));
  std::uint64_t taken = 0;
  for (int minute = 0; minute < 200; ++minute) {
    if (view().clock.now() >= publisher->renew_at()) {
      ASSERT_TRUE(publisher->renew());
    }
    const DecisionData d = take("api", "k", 10);
    ASSERT_TRUE(allowed(d)) << minute;
    ASSERT_EQ(d.flags & Decision::kExtrapolated, 0) << minute;
    ASSERT_FALSE(allowed(take("api", "k")));
    taken += 10;
    pass(60 * kSecond);
  }
  EXPECT_EQ(taken, 2000U);
}

TEST_F(CalendarLimit, BehindTheLastEdgeThePeriodRepeatsAndSaysSo) {
  open(minutes(10));
  pass(60 * kSecond * 40);
  EXPECT_TRUE(allowed(take("api", "k", 10)));
  EXPECT_FALSE(allowed(take("api", "k")));
  EXPECT_NE(take("api", "k").flags & Decision::kExtrapolated, 0);
  pass(60 * kSecond);
  EXPECT_TRUE(allowed(take("api", "k", 10)));
}

TEST_F(CalendarLimit, SettingTheClockBackGivesNoSecondCount) {
  open(minutes(10));
  step_clock(view(), kEpochLeadNs + 130 * kSecond);
  take("api", "k", 10);
  publisher->set_wall_offset(publisher->wall_offset() - 100 * kSecond);    // 30 s after 1970 again
  ASSERT_TRUE(publisher->renew());
  EXPECT_EQ(left("api", "k"), 0U);
  pass(29 * kSecond);
  EXPECT_EQ(left("api", "k"), 0U);
  pass(kSecond);
  EXPECT_EQ(left("api", "k"), 10U) << "the next edge of the wall clock";
}

TEST_F(CalendarLimit, AnotherZoneKeepsWhatWasUsed) {
  open({limit("api", {rule::calendar_window(10, CalendarUnit::Day, "UTC")})});
  take("api", "k", 4);
  publish({limit("api", {rule::calendar_window(10, CalendarUnit::Day, "Asia/Tokyo")})});
  EXPECT_EQ(left("api", "k"), 6U);
  sweep();
  EXPECT_EQ(left("api", "k"), 6U);
  // 1970-01-01 00:00 UTC is nine in the morning there: fifteen hours to midnight.
  EXPECT_NEAR(static_cast<double>(rule::report_of(peek("api", "k")).reset_after_ns), 15 * 3600e9,
              10);
  publish({limit("api", {rule::calendar_window(20, CalendarUnit::Day, "Asia/Tokyo")})});
  EXPECT_EQ(left("api", "k"), 16U) << "another count under the same id";
  EXPECT_EQ(verified(), "");
}

TEST_F(CalendarLimit, AZoneThatIsNotThereIsNamed) {
  open({});
  const std::string text = refused(minutes(10, "Europe/Berlinn"), Errc::InvalidArgument);
  EXPECT_NE(text.find("Europe/Berlinn"), std::string::npos) << text;
}

TEST_F(CalendarLimit, MoreCalendarsThanReservedAreRefused) {
  open({});
  Limits limits;
  for (int unit = 0; unit < 5; ++unit) {
    limits.push_back(limit("l" + std::to_string(unit),
                           {rule::calendar_window(1, static_cast<CalendarUnit>(unit), "UTC")}));
  }
  EXPECT_EQ(refused(limits, Errc::InvalidArgument),
            "more than 4 different calendars (unit and zone); let windows share some");
}

}  // namespace
}  // namespace cutwater::shm
