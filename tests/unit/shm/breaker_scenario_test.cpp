// SPDX-License-Identifier: Apache-2.0
// What others measured of their breakers: closed, opening, half-open, each with its number. Times
// are of the stepped clock, in ms since the start; calls take 1 ms unless said.
#include <chrono>

#include "support/wall_clock.hpp"
#include "unit/shm/breaker_scenes.hpp"

namespace cutwater::test {
namespace {

TEST(BreakerScenario, S01_TripRefuseTwoProbesClose) {
  BreakerSettings s = count_breaker({10, 5, 2});
  s.open_wait_ns = 2'000'000'000;
  BreakerWorld w(s);
  EXPECT_EQ(w.run("FFFFF"), "FFFFF");
  EXPECT_EQ(w.state(), BreakerState::Open);
  EXPECT_EQ(w.info().trip_permille, 1000U);
  EXPECT_EQ(w.info().window.calls, 5U);
  EXPECT_EQ(w.run("SSS"), std::string(3, 'X'));
  EXPECT_EQ(w.count(BreakerCounter::RefusedOpen), 3U);
  w.pass(2'100 * kMs);
  w.run("S");
  EXPECT_EQ(w.state(), BreakerState::HalfOpen);
  EXPECT_EQ(w.info().probes.spent, 1U);
  w.run("S");
  EXPECT_EQ(w.state(), BreakerState::Closed);
  EXPECT_EQ(w.info().window.calls, 0U);
}

TEST(BreakerScenario, S02_TheWindowSlides) {
  BreakerWorld w(count_breaker({4, 4, 2}));
  EXPECT_EQ(w.run("FSSSF"), "FSSSF");
  EXPECT_EQ(w.state(), BreakerState::Closed);
  EXPECT_EQ(w.info().window.failures, 1U);
  w.run("F");
  EXPECT_EQ(w.state(), BreakerState::Open);
}

TEST(BreakerScenario, S03_MicroProfileOpensOnTheFifth) {
  BreakerWorld w(microprofile(4, 500'000));
  EXPECT_EQ(w.run("SFSSFS"), "SFSSFX");
}

TEST(BreakerScenario, S04_MicroProfileOpensOnTheFourthNotTheThird) {
  BreakerWorld w(microprofile(4, 500'000));
  EXPECT_EQ(w.run("SFFSS"), "SFFSX");
}

TEST(BreakerScenario, S05_ASuccessMayOpenUnlessOnlyFailuresMay) {
  BreakerWorld any(count_breaker({10, 5, 2}));
  any.run("FFFFS");
  EXPECT_EQ(any.state(), BreakerState::Open);
  EXPECT_EQ(any.info().trip_permille, 800U);
  BreakerSettings s = count_breaker({10, 5, 2});
  s.evaluate_on = rule::EvaluateOn::Failure;
  BreakerWorld only(s);
  only.run("FFFFS");
  EXPECT_EQ(only.state(), BreakerState::Closed);
  only.run("F");
  EXPECT_EQ(only.state(), BreakerState::Open);
}

TEST(BreakerScenario, S06_DefaultsOfTheirsAndOurs) {
  BreakerSettings theirs = rule::preset(rule::BreakerPreset::Resilience4j);
  theirs.name = std::string("b");
  BreakerWorld slow(theirs);
  slow.run(std::string(99, 'F'));
  EXPECT_EQ(slow.state(), BreakerState::Closed);
  slow.run("F");
  EXPECT_EQ(slow.state(), BreakerState::Open);
  BreakerSettings ours;
  ours.name = std::string("b");
  BreakerWorld quick(ours);
  EXPECT_EQ(quick.run("FFFFFF"), "FFFFFX");
  EXPECT_EQ(quick.info().word.reason, BreakerReason::Consecutive);
}

TEST(BreakerScenario, S07_IgnoredOutcomesAreNotInTheWindow) {
  BreakerWorld w(count_breaker({4, 2, 2}));
  w.run("III");
  EXPECT_EQ(w.info().window.calls, 0U);
  w.run("F");
  EXPECT_EQ(w.info().window.calls, 1U);
  w.run("F");
  EXPECT_EQ(w.state(), BreakerState::Open);
}

TEST(BreakerScenario, S09_SevenOfAHundredAtSevenPerCent) {
  BreakerWorld w(microprofile(100, 70'000));
  w.run(std::string(93, 'S') + "FFFFFF");
  EXPECT_EQ(w.state(), BreakerState::Closed);
  w.run("F");
  EXPECT_EQ(w.state(), BreakerState::Open);
}

TEST(BreakerScenario, S10_ARatioOfZeroOpensAtTheFifthSuccess) {
  BreakerSettings s = microprofile(5, 0);
  EXPECT_FALSE(rule::remark(s).empty());
  BreakerWorld w(s);
  EXPECT_EQ(w.run("SSSSSS"), "SSSSSX");
}

TEST(BreakerScenario, S11_SlowMeansStrictlyLonger) {
  BreakerWorld w(slow_breaker(10, 500'000));
  w.call(Ended::Success, 100 * kMs);
  w.call(Ended::Success, 101 * kMs);
  w.call(Ended::Success, 50 * kMs);
  EXPECT_EQ(w.state(), BreakerState::Closed);
  EXPECT_EQ(w.info().window.slow, 1U);
  w.call(Ended::Success, 150 * kMs);
  EXPECT_EQ(w.state(), BreakerState::Open);
  EXPECT_EQ(w.info().word.reason, BreakerReason::SlowRate);
}

TEST(BreakerScenario, S12_AFailureCanBeSlowToo) {
  BreakerWorld w(slow_breaker(4, 750'000));
  w.call(Ended::Success, 200 * kMs);
  w.call(Ended::Failure, 200 * kMs);
  w.call(Ended::Success, 50 * kMs);
  w.call(Ended::Success, 200 * kMs);
  EXPECT_EQ(w.state(), BreakerState::Open);
  EXPECT_EQ(w.info().word.reason, BreakerReason::SlowRate);
  EXPECT_EQ(w.info().trip_permille, 750U);
  EXPECT_EQ(w.count(BreakerCounter::SlowFailure), 1U);
}

TEST(BreakerScenario, S14_JustInsideTheTimeWindow) {
  BreakerWorld w(time_breaker(10, 5));
  for (const std::int64_t ms : {0, 100, 200, 300}) ends_at(w, ms, Ended::Failure);
  ends_at(w, 9'999, Ended::Success);
  EXPECT_EQ(w.state(), BreakerState::Open);
  EXPECT_EQ(w.info().trip_permille, 800U);
}

TEST(BreakerScenario, S15_JustOutsideTheTimeWindow) {
  BreakerWorld w(time_breaker(10, 5));
  for (const std::int64_t ms : {0, 100, 200, 300}) ends_at(w, ms, Ended::Failure);
  ends_at(w, 10'000, Ended::Success);
  EXPECT_EQ(w.state(), BreakerState::Closed);
  EXPECT_EQ(w.info().window.calls, 1U);
}

TEST(BreakerScenario, S17_ACallLeavesBetweenTheSpanLessASlotAndTheSpan) {
  BreakerWorld w(time_breaker(3, 100));
  ends_at(w, 999, Ended::Failure);
  for (const std::int64_t ms : {1'000, 2'000, 2'999}) {
    w.at(ms * kMs);
    EXPECT_EQ(w.info().window.calls, 1U) << ms;
  }
  w.at(3'000 * kMs);
  EXPECT_EQ(w.info().window.calls, 0U);
}

TEST(BreakerScenario, S19_TheWallClockIsNotAsked) {
  BreakerSettings s = count_breaker({1, 1, 1});
  s.open_wait_ns = 60'000'000'000;
  WorldOptions options;
  options.clock = shm::ClockKind::Boottime;
  BreakerWorld w(s, 4, options);
  w.finish(w.enter(), Ended::Failure);
  const std::uint64_t before = wall_clock_readings();
  step_wall_clock(std::chrono::hours{1});
  EXPECT_FALSE(w.enter().granted);
  EXPECT_EQ(w.state(), BreakerState::Open);
  EXPECT_EQ(wall_clock_readings(), before);
}

TEST(BreakerScenario, S20_TheEdgeOfOpen) {
  BreakerSettings s = count_breaker({1, 1, 1});
  BreakerWorld exclusive(s);
  ends_at(exclusive, 0, Ended::Failure);
  exclusive.at(1'000 * kMs);
  EXPECT_FALSE(exclusive.enter().granted);
  exclusive.at(1'001 * kMs);
  EXPECT_TRUE(exclusive.enter().granted);
  s.open_edge = rule::OpenEdge::Inclusive;
  BreakerWorld inclusive(s);
  ends_at(inclusive, 0, Ended::Failure);
  inclusive.at(1'000 * kMs);
  EXPECT_TRUE(inclusive.enter().granted);
}

TEST(BreakerScenario, S21_HalfOpenReopensAtTheRateOfAllProbes) {
  BreakerWorld w(count_breaker({4, 4, 4}));
  trip(w, 0);
  w.at(1'001 * kMs);
  EXPECT_EQ(w.run("FSSFS"), "FSSFX");
  EXPECT_EQ(w.state(), BreakerState::Open);
  EXPECT_EQ(w.info().trip_permille, 500U);
}

TEST(BreakerScenario, S22_HalfOpenClosesBelowTheRateWithAnEmptyWindow) {
  BreakerWorld w(count_breaker({4, 4, 4}));
  trip(w, 0);
  w.at(1'001 * kMs);
  EXPECT_EQ(w.run("FSSS"), "FSSS");
  EXPECT_EQ(w.state(), BreakerState::Closed);
  EXPECT_EQ(w.info().window.calls, 0U);
  w.run("FF");
  EXPECT_EQ(w.info().window.calls, 2U);
}

TEST(BreakerScenario, S24_AllProbesDecideUnlessTheRuleSaysSome) {
  for (const bool some : {false, true}) {
    BreakerSettings s = count_breaker({10, 3, 7});
    if (some) {
      s.half_open_rule = rule::HalfOpenRule::RateOver;
      s.half_open_value = 3;
    }
    BreakerWorld w(s);
    trip(w, 0);
    w.at(1'001 * kMs);
    w.run("SS");
    EXPECT_EQ(w.state(), BreakerState::HalfOpen);
    w.run("S");
    EXPECT_EQ(w.state(), some ? BreakerState::Closed : BreakerState::HalfOpen);
    if (!some) w.run("SSS");
    EXPECT_EQ(w.state(), some ? BreakerState::Closed : BreakerState::HalfOpen);
    w.run("S");
    EXPECT_EQ(w.state(), BreakerState::Closed);
  }
}

TEST(BreakerScenario, S25_IgnoredAndReleasedProbesGoBack) {
  BreakerWorld w(count_breaker({1, 1, 2}));
  trip(w, 0);
  w.at(1'001 * kMs);
  const BreakerEntry one = w.enter(), two = w.enter();
  EXPECT_TRUE(one.granted && two.granted);
  EXPECT_FALSE(w.enter().granted);
  w.finish(one, Ended::Ignored);
  const BreakerEntry three = w.enter();
  EXPECT_TRUE(three.granted);
  EXPECT_FALSE(w.enter().granted);
  w.finish(two, Ended::Cancelled);
  const BreakerEntry four = w.enter();
  EXPECT_TRUE(four.granted);
  w.finish(three, Ended::Success);
  w.finish(four, Ended::Success);
  EXPECT_EQ(w.state(), BreakerState::Closed);
  EXPECT_EQ(w.count(BreakerCounter::RefusedProbing), 2U);
}

TEST(BreakerScenario, S26_LateFailuresDecideNothing) {
  BreakerWorld w(count_breaker({4, 2, 2}));
  const BreakerEntry one = w.enter(), two = w.enter(), three = w.enter();
  w.enter();
  w.finish(one, Ended::Failure);
  w.finish(two, Ended::Failure);
  EXPECT_EQ(w.state(), BreakerState::Open);
  w.at(1'001 * kMs);
  const BreakerEntry five = w.enter();
  w.finish(five, Ended::Failure);
  EXPECT_EQ(w.state(), BreakerState::HalfOpen);
  EXPECT_EQ(w.finish(three, Ended::Failure), Recorded::Stale);
  EXPECT_EQ(w.state(), BreakerState::HalfOpen);
  w.finish(w.enter(), Ended::Success);
  EXPECT_EQ(w.state(), BreakerState::Open);          // 50 % of five and six
}

TEST(BreakerScenario, S27_LateIgnoredResultsMintNoProbes) {
  BreakerWorld w(count_breaker({4, 2, 2}));
  std::vector<BreakerEntry> tickets;
  for (int i = 0; i < 6; ++i) tickets.push_back(w.enter());
  w.finish(tickets[0], Ended::Failure);
  w.finish(tickets[1], Ended::Failure);
  w.at(1'001 * kMs);
  EXPECT_TRUE(w.enter().granted);
  EXPECT_TRUE(w.enter().granted);
  EXPECT_FALSE(w.enter().granted);
  for (int i = 2; i < 6; ++i) w.finish(tickets[static_cast<std::size_t>(i)], Ended::Ignored);
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(w.enter().granted);
}

}  // namespace
}  // namespace cutwater::test
