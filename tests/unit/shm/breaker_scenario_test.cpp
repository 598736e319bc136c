// SPDX-License-Identifier: Apache-2.0
// What others measured of their breakers, and what went wrong there: each with its number. Times
// are of the stepped clock, in ms since the start; calls take 1 ms unless said.
#include <chrono>

#include "stress/breaker_world.hpp"
#include "support/wall_clock.hpp"

namespace cutwater::test {
namespace {

using rule::BreakerReason;
using rule::BreakerSettings;
using rule::BreakerState;
using shm::BreakerCounter;
using shm::BreakerEntry;
using shm::Ended;
using shm::EventKind;
using shm::Recorded;
using shm::Steer;
using shm::Steered;

constexpr std::int64_t kMs = kMillisecond;

BreakerSettings microprofile(std::uint32_t volume, std::uint32_t ppm) {
  BreakerSettings s = rule::preset(rule::BreakerPreset::Microprofile);
  s.name = std::string("b");
  s.window_calls = s.minimum_calls = volume;
  s.failure_rate_ppm = ppm;
  return s;
}

BreakerSettings slow_breaker(std::uint32_t window, std::uint32_t ppm) {
  BreakerSettings s = count_breaker({window, 4, 2});
  s.slow_rate_ppm = ppm;
  s.slow_duration_ns = 100'000'000;
  return s;
}

BreakerSettings time_breaker(std::uint64_t seconds, std::uint32_t minimum) {
  BreakerSettings s = count_breaker({1, minimum, 2});
  s.window_type = rule::WindowType::TimeBased;
  s.window_span_ns = seconds * 1'000'000'000;
  s.window_slots = rule::default_slots(rule::BreakerPreset::Resilience4j, s.window_span_ns);
  return s;
}

/// One call that ends at `ms` after the start.
void ends_at(BreakerWorld& w, std::int64_t ms, Ended how) {
  const BreakerEntry entry = w.enter();
  w.at(ms * kMs);
  w.finish(entry, how);
}

TEST(BreakerScenario, S01_TripRefuseTwoProbesClose) {
  BreakerSettings s = count_breaker({10, 5, 2});
  s.open_wait_ns = 2'000'000'000;
  BreakerWorld w(s);
  EXPECT_EQ(w.run("FFFFF"), "FFFFF");
  EXPECT_EQ(w.state(), BreakerState::Open);
  EXPECT_EQ(w.info().trip_permille, 1000U);
  EXPECT_EQ(w.info().window.calls, 5U);
  EXPECT_EQ(w.run("SSS"), "XXX");
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

/// OPEN since the last failure, which ended at `ms`.
void trip(BreakerWorld& w, std::int64_t ms) {
  while (w.state() == BreakerState::Closed) ends_at(w, ms, Ended::Failure);
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

TEST(BreakerScenario, S29_OpenByHandRestartsTheWait) {
  BreakerWorld w(count_breaker({1, 1, 1}));
  trip(w, 0);
  w.at(900 * kMs);
  EXPECT_EQ(shm::steer_breaker(w.view(), w.ref(), Steer::ToOpen, 0, 1), Steered::Done);
  w.at(1'500 * kMs);
  EXPECT_FALSE(w.enter().granted);
  w.at(1'901 * kMs);
  EXPECT_TRUE(w.enter().granted);
  EXPECT_EQ(w.info().word.attempts, 2U);
}

TEST(BreakerScenario, S30_WaitsGrowUntilItCloses) {
  BreakerSettings s = count_breaker({1, 1, 1});
  s.backoff = true;
  s.backoff_ppm = 2 * rule::kPpm;
  BreakerWorld w(s);
  trip(w, 0);
  std::int64_t at = 0;
  for (const std::int64_t wait : {1'001, 2'001, 4'001}) {
    at += wait;
    w.at((at - 1) * kMs);
    EXPECT_FALSE(w.enter().granted);
    w.at(at * kMs);
    w.finish(w.enter(), Ended::Failure);
    EXPECT_EQ(w.state(), BreakerState::Open);
  }
  at += 8'001;
  w.at(at * kMs);
  w.finish(w.enter(), Ended::Success);
  EXPECT_EQ(w.state(), BreakerState::Closed);
  trip(w, at);
  w.at((at + 1'000) * kMs);
  EXPECT_FALSE(w.enter().granted);
  w.at((at + 1'001) * kMs);
  EXPECT_TRUE(w.enter().granted);
}

TEST(BreakerScenario, S32_ResetInHalfOpenStaysClosed) {
  BreakerSettings s = count_breaker({1, 1, 1});
  s.half_open_max_wait_ns = 300'000'000;
  BreakerWorld w(s);
  trip(w, 0);
  w.at(1'001 * kMs);
  w.enter();
  shm::steer_breaker(w.view(), w.ref(), Steer::Reset, 0, 1);
  EXPECT_EQ(w.state(), BreakerState::Closed);
  w.pass(600 * kMs);
  w.tick();
  EXPECT_TRUE(w.enter().granted);
  EXPECT_EQ(w.state(), BreakerState::Closed);
}

TEST(BreakerScenario, S34_OpenNowWithoutADurationWaitsAsConfigured) {
  BreakerWorld w(count_breaker());
  const BreakerEntry call = w.enter();
  shm::BreakerReport report;
  report.kind = Ended::Failure;
  report.open_now = true;
  shm::finish_breaker(w.view(), w.ref(), w.caller(), call.call, report);
  EXPECT_EQ(w.state(), BreakerState::Open);
  EXPECT_EQ(w.enter().retry_after_ns, 1'000 * kMs + 1);
}

TEST(BreakerScenario, S36_MetricsOnlyMeasuresAndGrants) {
  BreakerWorld w(count_breaker({4, 2, 1}));
  shm::steer_breaker(w.view(), w.ref(), Steer::MetricsOnly, 0, 1);
  EXPECT_EQ(w.run("FFFF"), "FFFF");
  EXPECT_EQ(w.info().window.failures, 4U);
  EXPECT_EQ(w.events(EventKind::BreakerWouldOpen).size(), 1U);
  shm::steer_breaker(w.view(), w.ref(), Steer::Auto, 0, 1);
  EXPECT_EQ(w.state(), BreakerState::Closed);
  EXPECT_EQ(w.info().window.calls, 0U);
  shm::steer_breaker(w.view(), w.ref(), Steer::MetricsOnly, 0, 1);
  EXPECT_EQ(shm::steer_breaker(w.view(), w.ref(), Steer::ToOpen, 0, 1), Steered::Done);
}

TEST(BreakerScenario, S37_DisabledRecordsNothing) {
  BreakerWorld w(count_breaker({4, 2, 1}));
  shm::steer_breaker(w.view(), w.ref(), Steer::Disable, 0, 1);
  EXPECT_EQ(w.run("FFFF"), "FFFF");
  EXPECT_EQ(w.info().window.calls, 0U);
  EXPECT_EQ(w.events(EventKind::BreakerMoved).size(), 1U);
}

TEST(BreakerScenario, S38_ForcedOpenRefusesForEver) {
  BreakerWorld w(count_breaker({4, 2, 2}));
  shm::steer_breaker(w.view(), w.ref(), Steer::ForceOpen, 0, 1);
  EXPECT_EQ(w.run("SS"), "XX");
  w.at(10'000'000 * kMs);
  EXPECT_EQ(w.run("S"), "X");
  EXPECT_EQ(w.count(BreakerCounter::RefusedOpen), 3U);
  EXPECT_EQ(shm::steer_breaker(w.view(), w.ref(), Steer::ToHalfOpen, 0, 1), Steered::Done);
  EXPECT_EQ(w.run("SS"), "SS");
  EXPECT_EQ(w.state(), BreakerState::Closed);
}

TEST(BreakerScenario, S39_ClosedDoesNotGoHalfOpenByHand) {
  BreakerWorld w(count_breaker());
  EXPECT_EQ(shm::steer_breaker(w.view(), w.ref(), Steer::ToHalfOpen, 0, 1), Steered::NotAllowed);
}

TEST(BreakerScenario, S40_ForcedOpenExpiresIntoHalfOpen) {
  BreakerWorld w(count_breaker({1, 1, 1}));
  shm::steer_breaker(w.view(), w.ref(), Steer::ForceOpen, 60'000 * kMs, 1);
  w.at(60'000 * kMs - 1);
  EXPECT_EQ(w.enter().retry_after_ns, 1);
  w.at(60'000 * kMs);
  EXPECT_TRUE(w.enter().granted);
  EXPECT_EQ(w.state(), BreakerState::HalfOpen);
}

TEST(BreakerScenario, S42_OneFailureOpensWhereAllMustSucceed) {
  BreakerSettings s = count_breaker({1, 1, 3});
  s.half_open_rule = rule::HalfOpenRule::AllSucceed;
  BreakerWorld w(s);
  trip(w, 0);
  w.at(1'001 * kMs);
  const BreakerEntry out = w.enter();
  w.run("SF");
  EXPECT_EQ(w.state(), BreakerState::Open);
  EXPECT_EQ(w.finish(out, Ended::Success), Recorded::Stale);
}

TEST(BreakerScenario, S44_TheProbeOfADeadProcessGoesBackAtTheTick) {
  BreakerWorld w(count_breaker({1, 1, 1}));
  trip(w, 0);
  w.at(1'001 * kMs);
  ASSERT_TRUE(w.enter(0).granted);
  EXPECT_FALSE(w.enter(1).granted);
  w.kill(0);
  w.tick();
  EXPECT_EQ(w.info().probes_held, 0U);
  EXPECT_TRUE(w.enter(1).granted);
  EXPECT_EQ(w.count(BreakerCounter::ProbesReclaimed), 1U);
  EXPECT_EQ(w.count(BreakerCounter::ProbesExpired), 0U);
}

TEST(BreakerScenario, S45_AStoppedProbeIsAFailureAtItsDeadlineOrReleased) {
  for (const bool release : {false, true}) {
    BreakerSettings s = count_breaker({1, 1, 1});
    s.probe_timeout_ns = 500'000'000;
    if (release) s.on_probe_timeout = rule::OnProbeTimeout::Release;
    BreakerWorld w(s);
    trip(w, 0);
    w.at(1'001 * kMs);
    const BreakerEntry stopped = w.enter(0);
    w.at(1'501 * kMs - 1);
    EXPECT_FALSE(w.enter(1).granted);
    w.at(1'501 * kMs);
    EXPECT_EQ(w.enter(1).granted, release);
    EXPECT_EQ(w.state(), release ? BreakerState::HalfOpen : BreakerState::Open);
    EXPECT_EQ(w.finish(stopped, Ended::Success, 0), Recorded::Stale);
    EXPECT_EQ(w.count(BreakerCounter::ProbesExpired), 1U);
  }
}

TEST(BreakerScenario, C069_IgnoredOutcomesGiveTheProbeBack) {
  for (const std::uint32_t probes : {1u, 5u}) {
    BreakerWorld w(count_breaker({1, 1, probes}));
    trip(w, 0);
    w.at(1'001 * kMs);
    for (const auto how : {Ended::Ignored, Ended::Cancelled}) {
      std::vector<BreakerEntry> all;
      for (std::uint32_t i = 0; i < probes; ++i) all.push_back(w.enter());
      EXPECT_FALSE(w.enter().granted);
      for (const BreakerEntry& one : all) w.finish(one, how);
      EXPECT_EQ(w.state(), BreakerState::HalfOpen);
    }
    EXPECT_TRUE(w.enter().granted);
  }
}

TEST(BreakerScenario, C070_ProbesThatNeverReportBlockNobody) {
  BreakerSettings s = count_breaker({1, 1, 3});
  s.probe_timeout_ns = 100'000'000;
  BreakerWorld killed(s);
  trip(killed, 0);
  killed.at(1'001 * kMs);
  for (std::uint32_t p = 0; p < 3; ++p) ASSERT_TRUE(killed.enter(p).granted);
  for (std::uint32_t p = 0; p < 3; ++p) killed.kill(p);
  EXPECT_TRUE(killed.enter(3).granted);
  EXPECT_EQ(killed.state(), BreakerState::HalfOpen);
  EXPECT_LE(killed.info().probes_held, 3U);
  BreakerWorld asleep(s);
  trip(asleep, 0);
  asleep.at(1'001 * kMs);
  for (std::uint32_t p = 0; p < 3; ++p) ASSERT_TRUE(asleep.enter(p).granted);
  asleep.pass(100 * kMs);
  EXPECT_FALSE(asleep.enter(3).granted);
  EXPECT_EQ(asleep.state(), BreakerState::Open);
}

TEST(BreakerScenario, C071_ResultsOfAnEarlierLifeAreStatisticsOnly) {
  BreakerWorld w(count_breaker({20, 2, 1}));
  std::vector<BreakerEntry> old;
  for (int i = 0; i < 20; ++i) old.push_back(w.enter());
  w.at(1'000 * kMs);
  w.run("FF");
  ASSERT_EQ(w.state(), BreakerState::Open);
  w.at(6'000 * kMs);
  ASSERT_TRUE(w.enter(1).granted);
  w.at(7'000 * kMs);
  for (std::size_t i = 0; i < old.size(); ++i) {
    w.finish(old[i], i < 10 ? Ended::Success : Ended::Failure);
  }
  EXPECT_EQ(w.state(), BreakerState::HalfOpen);
  EXPECT_EQ(w.info().probes_held, 1U);
  EXPECT_EQ(w.count(BreakerCounter::Stale), 20U);
  EXPECT_FALSE(w.enter(2).granted);
}

TEST(BreakerScenario, C073_ThreeSuccessesCloseAndOneFailureOpens) {
  const auto outcome = [](const std::string& script) {
    BreakerSettings s = count_breaker({1, 1, 3});
    s.half_open_rule = rule::HalfOpenRule::AllSucceed;
    BreakerWorld w(s);
    trip(w, 0);
    w.at(1'001 * kMs);
    w.run(script);
    return w.state();
  };
  EXPECT_EQ(outcome("SSF"), BreakerState::Open);
  EXPECT_EQ(outcome("SSS"), BreakerState::Closed);
  EXPECT_EQ(outcome("F"), BreakerState::Open);
  EXPECT_EQ(outcome("SFSSS"), BreakerState::Open);
}

TEST(BreakerScenario, C075_ExactlyWhenItOpens) {
  const auto after = [](const std::string& script) {
    BreakerWorld w(count_breaker({20, 10, 1}));
    w.run(script);
    return w.state();
  };
  EXPECT_EQ(after("SSSSSFFFF"), BreakerState::Closed);
  EXPECT_EQ(after("SSSSSFFFFF"), BreakerState::Open);
  EXPECT_EQ(after("FFFFFFFFFS"), BreakerState::Open);
  EXPECT_EQ(after("FFFFFFFFF"), BreakerState::Closed);
  EXPECT_EQ(after("SSSSFFFFF"), BreakerState::Closed);
}

TEST(BreakerScenario, C076_OldFailuresDoNotComeAliveAfterAQuietTime) {
  BreakerWorld w(time_breaker(10, 5));
  for (int i = 0; i < 4; ++i) ends_at(w, 0, Ended::Failure);
  ends_at(w, 60'000, Ended::Failure);
  EXPECT_EQ(w.state(), BreakerState::Closed);
  EXPECT_EQ(w.info().window.calls, 1U);
  for (int i = 0; i < 4; ++i) ends_at(w, 60'000, Ended::Failure);
  EXPECT_EQ(w.state(), BreakerState::Open);
}

TEST(BreakerScenario, C078_AReaderSeesThatItIsReadyWithoutTraffic) {
  BreakerSettings s = count_breaker({1, 1, 1});
  s.open_wait_ns = 120'000'000'000;
  BreakerWorld w(s);
  trip(w, 0);
  w.at(119'000 * kMs);
  EXPECT_FALSE(w.info().effective.ready);
  w.at(3'600'000 * kMs);
  EXPECT_TRUE(w.info().effective.ready);
  EXPECT_EQ(w.enter().call.kind, shm::CallKind::Probe);
}

}  // namespace
}  // namespace cutwater::test
