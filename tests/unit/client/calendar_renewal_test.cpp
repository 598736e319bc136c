// SPDX-License-Identifier: Apache-2.0
// Calendar edges of clients that have no daemon to renew them.
#include <cutwater/testing.hpp>

#include <gtest/gtest.h>

#include "calendar/period.hpp"
#include "src/core.hpp"

namespace cutwater::test {
namespace {

using namespace std::chrono_literals;

constexpr char kYaml[] =
    "limits:\n"
    "  minute: {calendar: {count: 3, per: minute}}\n"
    "  day:    {calendar: {count: 3, per: day, zone: Europe/Berlin}}\n"
    "  month:  {calendar: {count: 3, per: month, zone: America/New_York}}\n"
    "  year:   {calendar: {count: 3, per: year}}\n";

struct Calendar {
  const char* limit;
  rule::CalendarUnit unit;
  const char* zone;
};
constexpr Calendar kAll[] = {{"minute", rule::CalendarUnit::Minute, "UTC"},
                             {"day", rule::CalendarUnit::Day, "Europe/Berlin"},
                             {"month", rule::CalendarUnit::Month, "America/New_York"},
                             {"year", rule::CalendarUnit::Year, "UTC"}};

/// Time until the next edge, of a clock whose 0 is the first of 1970.
Nanos until_edge(const Calendar& calendar, Nanos now) {
  const auto zone = calendar::Zone::load(calendar.zone).value();
  const std::int64_t now_s = now.count() / 1'000'000'000;
  const auto found = calendar::next_edges(zone, calendar.unit, now_s, 1).value();
  return Nanos{found.edges_s.at(0) * 1'000'000'000} - now;
}

/// All of a period can be had once, and comes back at its very edge.
void expect_exact(Client& client, const SteppedClock& clock) {
  for (const Calendar& calendar : kAll) {
    SCOPED_TRACE(testing::Message() << calendar.limit << " at " << clock.now().count());
    Limit limit = client.limit(calendar.limit).value();
    const std::string key = std::to_string(clock.now().count());
    const Decision all = limit.try_acquire(key, 3);
    ASSERT_TRUE(all.allowed());
    const Decision none = limit.try_acquire(key);
    ASSERT_FALSE(none.allowed());
    EXPECT_FALSE(all.extrapolated() || none.extrapolated());
    EXPECT_EQ(none.retry_after(), until_edge(calendar, clock.now()));
  }
}

TEST(CalendarRenewal, AClockMovedByHandNeverOutrunsTheEdges) {
  SteppedClock clock;
  Client client = Client::in_memory(kYaml, clock).value();

  expect_exact(client, clock);
  // By minutes, days, months and years: the clock stands exactly where it was told to.
  for (const auto step : {Nanos(59s), Nanos(61s), Nanos(25min), Nanos(13h), Nanos(24h * 29),
                          Nanos(24h * 400), Nanos(24h * 365 * 9)}) {
    for (int i = 0; i < 3 && clock.now() + step < 24h * 365 * 17; ++i) {
      clock.advance(step);
      EXPECT_EQ(client.now() - clock.now(), Nanos{kSteppedOriginNs});
      expect_exact(client, clock);
    }
  }
}

TEST(CalendarRenewal, WhatWasUsedStaysUsedOverIt) {
  SteppedClock clock;
  Client client = Client::in_memory(kYaml, clock).value();
  Limit year = client.limit("year").value();
  EXPECT_TRUE(year.try_acquire("k", 2).allowed());

  for (int month = 0; month < 11; ++month) clock.advance(24h * 30);   // minutes renewed 11 times
  EXPECT_EQ(year.peek("k").remaining(), 0U);
  EXPECT_FALSE(year.try_acquire("k", 2).allowed());
  clock.advance(24h * 40);
  EXPECT_TRUE(year.try_acquire("k", 3).allowed());
}

TEST(CalendarRenewal, EveryClientOfOneClockAndTheTestKit) {
  SteppedClock clock;
  Client first = Client::in_memory(kYaml, clock).value();
  Client second = Client::in_memory(kYaml, clock).value();
  clock.advance(24h * 1000);
  expect_exact(first, clock);
  expect_exact(second, clock);

  TestLimits kit = TestLimits::make(kYaml).value();
  Limit day = kit.client().limit("day").value();
  for (int i = 0; i < 100; ++i) {
    kit.advance(24h);
    const Decision all = day.try_acquire("k", 3);
    EXPECT_TRUE(all.allowed() && !all.extrapolated()) << i;
  }
}

/// Periods that are known for three edges only: due at every ask.
Result<shm::WallPeriods> few(rule::CalendarUnit unit, const std::string& zone, std::int64_t unix_s,
                             std::size_t) {
  return shm::system_periods(unit, zone, unix_s, 3);
}

TEST(CalendarRenewal, OnARunningClockTheCallerRenewsWhatRunsOut) {
  Client client = Client::in_memory("limits:\n  day: {calendar: {count: 9, per: day}}\n").value();
  detail::CalendarRenewal& renewal = *client.core().renewal();
  const auto due = [&] {
    return renewal.with_publisher([](shm::Publisher& p) { return p.renew_at(); });
  };
  renewal.with_publisher([](shm::Publisher& p) {
    p.set_period_source(few);
    return 0;
  });
  ASSERT_TRUE(client.reload("limits:\n  day: {calendar: {count: 8, per: day}}\n"));
  ASSERT_LE(due(), client.now().count());
  renewal.with_publisher([](shm::Publisher& p) {
    p.set_period_source(shm::system_periods);
    return 0;
  });
  Limit day = client.limit("day").value();

  // Busy while the reload is not in force yet, and tried again: by every way to ask.
  const auto until = client.now() + 60s;
  for (int i = 0; due() <= client.now().count() && client.now() < until; ++i) {
    if (i % 3 == 0) (void)day.peek("k");
    if (i % 3 == 1) (void)day.reserve("k", {.max_wait = 0s});
    if (i % 3 == 2) (void)client.peek_all({{day, "k"}});
  }

  EXPECT_GT(due(), (client.now() + 24h * 5).count());
  EXPECT_FALSE(day.peek("k").extrapolated());
}

}  // namespace
}  // namespace cutwater::test
