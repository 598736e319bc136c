// SPDX-License-Identifier: Apache-2.0
// What an answer says, over every way: cases that went wrong in other limiters.
#include <vector>

#include "vectors/every_way.hpp"

namespace cutwater::test {
namespace {

class AnswerCases : public EveryWay {
 protected:
  Decision take(std::uint64_t cost = 1) { return limit().try_acquire("k", cost); }
  int admitted_of(int calls) {
    int admitted = 0;
    for (int i = 0; i < calls; ++i) admitted += take().allowed() ? 1 : 0;
    return admitted;
  }
};

INSTANTIATE_TEST_SUITE_P(Ways, AnswerCases, ::testing::ValuesIn(every_way()), way_name);

TEST_P(AnswerCases, C009ACostAboveTheBurstIsNeverAndTakesNothing) {
  ASSERT_NO_FATAL_FAILURE(start("api: {rate: 1 per 60 s, burst: 5}"));

  const Decision ten = take(10);

  EXPECT_FALSE(ten.allowed());
  EXPECT_EQ(ten.reason(), Reason::Never);
  EXPECT_EQ(ten.retry_after(), kNever);
  EXPECT_EQ(ten.remaining(), 5U);
  EXPECT_EQ(ten.reset_after(), 0ns);
  const Decision five = take(5);
  EXPECT_TRUE(five.allowed());
  EXPECT_EQ(five.remaining(), 0U);
}

TEST_P(AnswerCases, C010RefusalsAreFreeAndARaisedLimitHelpsAtOnce) {
  ASSERT_NO_FATAL_FAILURE(start("api: {rate: 10/h, burst: 10}"));
  EXPECT_EQ(admitted_of(50), 10);
  at(60s - 1ns);

  ASSERT_NO_FATAL_FAILURE(reload("api: {rate: 20/h, burst: 20}"));

  EXPECT_EQ(admitted_of(50), 10);
}

TEST_P(AnswerCases, C010WhoKnocksTooOftenGetsTheWholeRateForEver) {
  ASSERT_NO_FATAL_FAILURE(start("api: {rate: 10/m, burst: 10}"));
  // 12 a minute: the burst lasts for a while, then every minute brings its 10.
  constexpr int kMinutes = 120, kPerMinute = 12;
  int all = 0;
  for (int minute = 0; minute < kMinutes; ++minute) {
    int admitted = 0;
    for (int call = 0; call < kPerMinute; ++call) {
      at(1min * minute + 5s * call);
      admitted += take().allowed() ? 1 : 0;
    }
    if (minute >= 10) { EXPECT_EQ(admitted, 10) << "minute " << minute; }
    all += admitted;
  }
  // 10 of the burst and one each 6 s until the last call, 5 s before the end.
  EXPECT_EQ(all, 10 + (kMinutes * 60 - 5) / 6);
}

TEST_P(AnswerCases, C017ABucketHasNoEdges) {
  ASSERT_NO_FATAL_FAILURE(start("api: {rate: 10 per 60 s}"));
  at(12h + 59s + 900ms);
  EXPECT_EQ(admitted_of(10), 10);
  at(12h + 60s + 100ms);
  EXPECT_EQ(admitted_of(10), 0);
  EXPECT_EQ(take().retry_after(), 5800ms);
}

TEST_P(AnswerCases, C018TheSumCountsAndNotTheAverage) {
  ASSERT_NO_FATAL_FAILURE(start("api: {rate: 2 per 3 s, burst: 2}"));
  std::vector<bool> admitted;
  for (const Nanos t : {100ms, 200ms, 300ms, 400ms}) {
    at(t);
    admitted.push_back(take().allowed());
  }
  EXPECT_EQ(admitted, (std::vector<bool>{true, true, false, false}));
  EXPECT_EQ(take().retry_after(), 1200ms);
  at(1600ms - 1ns);
  EXPECT_FALSE(take().allowed());
  at(1600ms);
  EXPECT_TRUE(take().allowed());
}

TEST_P(AnswerCases, C022TheGoldenRow) {
  ASSERT_NO_FATAL_FAILURE(start("api: {rate: 2/s, burst: 3}"));
  struct Golden { Nanos t; bool allowed; std::uint64_t remaining; };
  constexpr Golden kRow[] = {
      {0ms, true, 2},    {250ms, true, 1},   {500ms, true, 1},
      {750ms, true, 0},  {1000ms, true, 0},  {1250ms, false, 0},
      {1500ms, true, 0}, {1750ms, false, 0}, {2000ms, true, 0},
  };
  EXPECT_EQ(limit().peek("k", 0).remaining(), 3U) << "a full bucket holds its burst, no more";
  for (const Golden& golden : kRow) {
    at(golden.t);
    const Decision d = take();
    EXPECT_EQ(d.allowed(), golden.allowed) << golden.t.count();
    EXPECT_EQ(d.remaining(), golden.remaining) << golden.t.count();
  }
}

TEST_P(AnswerCases, C022TheBurstIsTheCountOfThePeriodUnlessSaid) {
  ASSERT_NO_FATAL_FAILURE(start("api: {rate: 6 per 60 s}"));
  EXPECT_EQ(limit().peek("k", 0).remaining(), 6U);
  EXPECT_EQ(admitted_of(7), 6) << "six pass at once";
  EXPECT_EQ(take().retry_after(), 10s);
}

TEST_P(AnswerCases, C088TheRetryTimeIsExactAndNeverZeroWhileRefused) {
  ASSERT_NO_FATAL_FAILURE(start("api: {rate: 1 per 5 s, burst: 1}"));
  ASSERT_TRUE(take().allowed());
  for (const Nanos left : {Nanos{4600ms}, Nanos{1'000'000'000}, Nanos{400ms}, Nanos{1}}) {
    at(5s - left);
    const Decision refused = take();
    EXPECT_FALSE(refused.allowed());
    EXPECT_EQ(refused.retry_after(), left);
    EXPECT_EQ(limit().peek("k").retry_after(), left) << "a look says the same";
  }
  at(5s);
  EXPECT_TRUE(take().allowed());
}

TEST_P(AnswerCases, C089TheRetryTimeIsTheRestNotTheWindow) {
  ASSERT_NO_FATAL_FAILURE(start("api: {rate: 10 per 60 s, burst: 10}"));
  for (int call = 0; call < 10; ++call) {
    at(2s * call);
    ASSERT_TRUE(limit().try_acquire("steady").allowed());
  }
  at(20s);
  const Decision eleventh = limit().try_acquire("steady");
  EXPECT_TRUE(eleventh.allowed());
  EXPECT_EQ(eleventh.remaining(), 2U) << "3.33 were there";
  at(100s);
  ASSERT_EQ(admitted_of(11), 10);
  at(101s);
  EXPECT_EQ(take().retry_after(), 5s);
}

TEST_P(AnswerCases, C092WhatIsHopelessIsRefusedAtOnce) {
  ASSERT_NO_FATAL_FAILURE(start("api: {rate: 1 per 10 s, burst: 1}"));
  ASSERT_TRUE(take().allowed());

  // Nobody moves the clock: a call that slept would never come back.
  const Decision refused = limit().acquire("k", {.max_wait = 3s});
  const Decision early = limit().reserve("k", {.max_wait = 10s - 1ns});
  const Decision fitting = limit().reserve("k", {.max_wait = 12s});

  EXPECT_EQ(refused.reason(), Reason::Limit);
  EXPECT_EQ(refused.retry_after(), 10s);
  EXPECT_FALSE(refused.is_hint());
  EXPECT_FALSE(early.allowed());
  EXPECT_TRUE(fitting.allowed());
  EXPECT_EQ(fitting.starts_in(), 10s);
}

TEST_P(AnswerCases, C092TheLineIsBounded) {
  ASSERT_NO_FATAL_FAILURE(start("api: {rate: 1/s, burst: 2, max-wait: 30s}"));

  int places = 0;
  while (limit().reserve("k", {.max_wait = 1h}).allowed()) ++places;

  EXPECT_EQ(places, 2 + 30) << "burst + rate * max-wait";
  at(1s);
  EXPECT_EQ(limit().reserve("k", {.max_wait = 1h}).starts_in(), 30s);
}

}  // namespace
}  // namespace cutwater::test
