// SPDX-License-Identifier: Apache-2.0
// Scenarios of waits, manual states, dead and late probes, and cases that went wrong elsewhere,
// each with its number.
#include "unit/shm/breaker_scenes.hpp"

namespace cutwater::test {
namespace {

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

TEST(BreakerScenario, C082_ARestartOfTheDaemonChangesNothing) {
  BreakerSettings s = count_breaker({1, 1, 1});
  s.open_wait_ns = 30'000'000'000;
  BreakerWorld w(s);
  trip(w, 0);
  w.at(5'000 * kMs);                                 // nobody holds a timer
  const std::int64_t deadline = w.info().word.deadline_ns;
  w.at(8'000 * kMs);
  w.world().adopt();
  w.publish(s);
  w.tick();
  EXPECT_EQ(w.state(), BreakerState::Open);
  EXPECT_EQ(w.info().word.deadline_ns, deadline);
  w.at(30'000 * kMs);
  EXPECT_FALSE(w.enter().granted);
  w.at(30'001 * kMs);
  EXPECT_TRUE(w.enter().granted);
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

TEST(BreakerScenario, C070_WhoOnlyLooksIsNotRefusedForEver) {
  BreakerSettings s = count_breaker({1, 1, 1});
  s.probe_timeout_ns = 100'000'000;
  for (const std::int64_t longest : {0, 100'000'000}) {
    s.half_open_max_wait_ns = static_cast<std::uint64_t>(longest);
    BreakerWorld w(s);
    trip(w, 0);
    w.at(1'001 * kMs);
    w.enter(1);
    w.pass(99 * kMs);
    const auto look = [&] { return shm::look_after_settling(w.view(), w.ref(), w.caller()); };
    EXPECT_EQ(look().reason, Reason::Probing);
    EXPECT_EQ(w.state(), BreakerState::HalfOpen);

    w.pass(1 * kMs + 1'000);

    EXPECT_EQ(look().reason, Reason::Open);
    EXPECT_EQ(w.state(), BreakerState::Open) << "the probe was late: a failure";
    w.pass(1'000 * kMs);
    EXPECT_FALSE(look().granted);
    w.pass(1);
    EXPECT_TRUE(look().granted);
    EXPECT_EQ(w.state(), BreakerState::Open) << "a look that grants makes no step";
    EXPECT_TRUE(w.enter().granted);
  }
}

}  // namespace
}  // namespace cutwater::test
