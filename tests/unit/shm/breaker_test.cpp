// SPDX-License-Identifier: Apache-2.0
#include "stress/breaker_world.hpp"

namespace cutwater::test {
namespace {

using rule::BreakerReason;
using rule::BreakerState;
using shm::BreakerCounter;
using shm::Ended;
using shm::EventKind;
using shm::Recorded;
using shm::Steer;
using shm::Steered;

constexpr std::int64_t kMs = kMillisecond;

TEST(Breaker, OpensAtTheFifthFailureAndComesBackByTwoProbes) {
  rule::BreakerSettings settings = count_breaker();
  settings.open_wait_ns = 2'000 * kMs;
  BreakerWorld w(settings);

  EXPECT_EQ(w.run("FFFFFFF"), "FFFFFXX");
  EXPECT_EQ(w.state(), BreakerState::Open);
  EXPECT_EQ(w.info().window.calls, 5u);
  EXPECT_EQ(w.info().trip_permille, 1000u);
  EXPECT_EQ(w.count(BreakerCounter::RefusedOpen), 2u);
  w.at(2'006 * kMs);
  EXPECT_EQ(w.run("S"), "S");
  EXPECT_EQ(w.state(), BreakerState::HalfOpen);
  EXPECT_EQ(w.info().probes.spent, 1u);
  EXPECT_EQ(w.run("S"), "S");
  EXPECT_EQ(w.state(), BreakerState::Closed);
  EXPECT_EQ(w.info().window.calls, 0u);
}

TEST(Breaker, TheAdvertisedWaitIsExactForBothEdges) {
  for (const auto edge : {rule::OpenEdge::Inclusive, rule::OpenEdge::Exclusive}) {
    rule::BreakerSettings settings = count_breaker({1, 1, 1});
    settings.open_edge = edge;
    BreakerWorld w(settings);
    w.run("F");
    w.pass(123);
    const shm::BreakerEntry refused = w.enter();
    ASSERT_FALSE(refused.granted);
    EXPECT_EQ(refused.reason, Reason::Open);
    EXPECT_FALSE(refused.hint);

    w.pass(refused.retry_after_ns - 1);
    EXPECT_FALSE(w.enter().granted);
    w.pass(1);
    EXPECT_TRUE(w.enter().granted);
  }
}

TEST(Breaker, EachTransitionIsOneEventInEpochOrder) {
  BreakerWorld w(count_breaker({2, 2, 1}));
  w.run("FF");
  w.pass(1'001 * kMs);
  w.run("F");
  w.pass(1'001 * kMs);
  w.run("S");

  const std::vector<shm::Event> events = w.events(EventKind::BreakerMoved);
  ASSERT_EQ(events.size(), 5u);
  for (std::size_t i = 0; i < events.size(); ++i) EXPECT_EQ(events[i].epoch, i + 2);
  EXPECT_EQ(events[0].to, static_cast<int>(BreakerState::Open));
  EXPECT_EQ(events[0].reason, static_cast<int>(BreakerReason::FailureRate));
  EXPECT_EQ(events[1].from, static_cast<int>(BreakerState::Open));
  EXPECT_EQ(events[4].to, static_cast<int>(BreakerState::Closed));
  EXPECT_STREQ(events[0].text, "b");
}

TEST(Breaker, LateOutcomesChangeNothing) {
  BreakerWorld w(count_breaker({2, 2, 2}));
  const auto first = w.enter(), second = w.enter(), third = w.enter();
  w.finish(first, Ended::Failure);
  w.finish(second, Ended::Failure);
  ASSERT_EQ(w.state(), BreakerState::Open);

  EXPECT_EQ(w.finish(third, Ended::Failure), Recorded::Stale);
  EXPECT_EQ(w.info().window.calls, 2u);
  EXPECT_EQ(w.count(BreakerCounter::Stale), 1u);
}

TEST(Breaker, ShowInOpenShowsLateOutcomesAndDecidesNothing) {
  rule::BreakerSettings settings = count_breaker({4, 2, 2});
  settings.late_results = rule::LateResults::ShowInOpen;
  BreakerWorld w(settings);
  const auto first = w.enter(), second = w.enter(), third = w.enter();
  w.finish(first, Ended::Failure);
  w.finish(second, Ended::Failure);

  EXPECT_EQ(w.finish(third, Ended::Success), Recorded::Stale);
  EXPECT_EQ(w.info().window.calls, 3u);
  EXPECT_EQ(w.state(), BreakerState::Open);
}

TEST(Breaker, ProbesAreFreedByIgnoredResultsDeadOwnersAndDeadlines) {
  rule::BreakerSettings settings = count_breaker({1, 1, 1});
  settings.probe_timeout_ns = 500 * kMs;
  BreakerWorld w(settings);
  w.run("F");
  w.pass(1'001 * kMs);
  const auto ignored = w.enter(0);
  ASSERT_TRUE(ignored.granted);
  EXPECT_FALSE(w.enter(1).granted);
  EXPECT_EQ(w.finish(ignored, Ended::Ignored, 0), Recorded::Nothing);
  const auto dead = w.enter(1);
  ASSERT_TRUE(dead.granted);
  w.kill(1);
  const auto after = w.enter(2);                     // finds the owner dead, without a tick
  ASSERT_TRUE(after.granted);
  EXPECT_EQ(w.count(BreakerCounter::ProbesReclaimed), 1u);
  const shm::BreakerEntry refused = w.enter(3);
  EXPECT_EQ(refused.reason, Reason::Probing);
  EXPECT_TRUE(refused.hint);
  EXPECT_EQ(refused.retry_after_ns, 500 * kMs);
  w.pass(500 * kMs);
  EXPECT_FALSE(w.enter(3).granted);                  // settles it as a failure
  EXPECT_EQ(w.state(), BreakerState::Open);
  EXPECT_EQ(w.info().word.attempts, 2u);
  EXPECT_EQ(w.finish(after, Ended::Success, 2), Recorded::Stale);
  EXPECT_EQ(w.events(EventKind::BreakerReclaimed).size(), 1u);
  EXPECT_EQ(w.events(EventKind::BreakerProbeExpired).size(), 1u);
}

TEST(Breaker, ACallersDeadlineBoundsItsProbe) {
  BreakerWorld w(count_breaker({1, 1, 1}));
  w.run("F");
  w.pass(1'001 * kMs);
  ASSERT_TRUE(w.enter(0, w.view().clock.now() + 20 * kMs).granted);
  EXPECT_EQ(w.enter(1).retry_after_ns, 20 * kMs);
  w.pass(20 * kMs);
  w.enter(1);
  EXPECT_EQ(w.state(), BreakerState::Open);
}

TEST(Breaker, OpenForAHintOpensAtOnceAndKeepsAttempts) {
  rule::BreakerSettings settings = count_breaker();
  settings.max_open_for_ns = 300 * kMs;
  BreakerWorld w(settings);
  shm::BreakerReport report{Ended::Failure, -1, 0, true, 200 * kMs};
  auto entry = w.enter();
  shm::finish_breaker(w.view(), w.ref(), w.caller(), entry.call, report);
  EXPECT_EQ(w.info().word.reason, BreakerReason::Hint);
  EXPECT_EQ(w.info().word.attempts, 0u);
  EXPECT_EQ(w.enter().retry_after_ns, 200 * kMs + 1);
  w.pass(201 * kMs);
  entry = w.enter();
  ASSERT_TRUE(entry.granted);
  report.open_for_ns = 900 * kMs;                    // from a probe, and cut
  shm::finish_breaker(w.view(), w.ref(), w.caller(), entry.call, report);
  EXPECT_EQ(w.enter().retry_after_ns, 300 * kMs + 1);
  EXPECT_EQ(w.events(EventKind::BreakerMoved).size(), 3u);
}

TEST(Breaker, HalfOpenTooLongReopensOrCloses) {
  for (const auto after : {rule::AfterHalfOpenWait::Open, rule::AfterHalfOpenWait::Closed}) {
    rule::BreakerSettings settings = count_breaker({1, 1, 2});
    settings.half_open_max_wait_ns = 300 * kMs;
    settings.after_half_open_wait = after;
    BreakerWorld w(settings);
    w.run("F");
    w.pass(1'001 * kMs);
    ASSERT_TRUE(w.enter().granted);
    w.pass(300 * kMs);
    w.enter();
    EXPECT_EQ(w.state(), after == rule::AfterHalfOpenWait::Open ? BreakerState::Open
                                                                 : BreakerState::Closed);
  }
}

TEST(Breaker, ATickMakesTheStepOnlyWhereAskedTo) {
  for (const bool automatic : {false, true}) {
    rule::BreakerSettings settings = count_breaker({1, 1, 1});
    settings.automatic_half_open = automatic;
    BreakerWorld w(settings);
    w.run("F");
    w.pass(1'001 * kMs);
    w.tick();
    EXPECT_EQ(w.state(), automatic ? BreakerState::HalfOpen : BreakerState::Open);
    EXPECT_TRUE(w.info().effective.ready || automatic);
  }
}

TEST(Breaker, StatesSetByHandHoldUntilTheyExpireOrAreTakenBack) {
  BreakerWorld w(count_breaker({2, 2, 1}));
  const auto steer = [&](Steer what, std::int64_t for_ns = 0) {
    return shm::steer_breaker(w.view(), w.ref(), what, for_ns, 1);
  };
  EXPECT_EQ(steer(Steer::Auto), Steered::NoChange);
  EXPECT_EQ(steer(Steer::ToHalfOpen), Steered::NotAllowed);
  EXPECT_EQ(steer(Steer::ForceOpen), Steered::Done);
  EXPECT_EQ(w.enter().retry_after_ns, -1);
  EXPECT_EQ(steer(Steer::ForceOpen, 60'000 * kMs), Steered::Done);
  EXPECT_EQ(w.enter().retry_after_ns, 60'000 * kMs);
  w.pass(60'000 * kMs);
  EXPECT_TRUE(w.enter().granted);
  EXPECT_EQ(w.state(), BreakerState::HalfOpen);
  EXPECT_EQ(steer(Steer::Disable), Steered::Done);
  EXPECT_EQ(w.run("FFFF"), "FFFF");
  EXPECT_EQ(w.info().window.calls, 0u);
  EXPECT_EQ(steer(Steer::Auto), Steered::Done);
  EXPECT_EQ(w.state(), BreakerState::Closed);
  EXPECT_EQ(steer(Steer::MetricsOnly), Steered::Done);
  EXPECT_EQ(w.run("FFFF"), "FFFF");
  EXPECT_EQ(w.info().window.failures, 2u);
  EXPECT_EQ(w.events(EventKind::BreakerWouldOpen).size(), 1u);
  EXPECT_EQ(steer(Steer::ToClosed), Steered::Done);
  EXPECT_EQ(w.info().window.calls, 0u);
  EXPECT_EQ(steer(Steer::ToOpen), Steered::Done);
  EXPECT_EQ(w.info().word.attempts, 1u);
  EXPECT_EQ(steer(Steer::ToOpen, 5 * kMs), Steered::Done);
  EXPECT_EQ(w.info().word.attempts, 1u);
  EXPECT_EQ(steer(Steer::Reset), Steered::Done);
  EXPECT_EQ(w.run("S"), "S");
}

TEST(Breaker, ARampLetsMoreThroughStepByStep) {
  rule::BreakerSettings settings = count_breaker({10, 10, 1});
  settings.ramp = rule::Ramp::On;
  settings.ramp_ns = 3'000 * kMs;
  settings.ramp_percent = {25, 50, 100};
  settings.consecutive_failures = 1;
  BreakerWorld w(settings);
  w.run("F");
  w.pass(1'001 * kMs);
  const auto probe = w.enter();
  w.finish(probe, Ended::Success);
  ASSERT_TRUE(w.info().word.ramping);
  const auto admitted = [&](int calls) {
    int n = 0;
    for (int i = 0; i < calls; ++i) n += w.enter().granted;
    return n;
  };
  EXPECT_EQ(admitted(100), 25);
  w.pass(1'000 * kMs);
  EXPECT_EQ(admitted(100), 50);
  const shm::BreakerEntry one = w.enter(1);          // the next process counts its own calls
  EXPECT_TRUE(one.granted);
  const shm::BreakerEntry two = w.enter(1);
  EXPECT_EQ(two.reason, Reason::Probing);
  EXPECT_TRUE(two.hint && two.ramping);
  EXPECT_EQ(two.retry_after_ns, 2'000 * kMs);
  w.pass(1'000 * kMs);
  EXPECT_EQ(admitted(100), 100);
  w.pass(1'000 * kMs);
  const std::uint32_t epoch = w.info().word.epoch;
  EXPECT_EQ(admitted(100), 100);
  EXPECT_FALSE(w.info().word.ramping);
  EXPECT_EQ(w.info().word.epoch, epoch);
}

TEST(Breaker, ALookAnswersAsEnterWouldAndWritesNothing) {
  rule::BreakerSettings settings = count_breaker({2, 2, 1});
  BreakerWorld w(settings);
  const auto look = [&](std::uint32_t process) {
    const Snapshot before = w.world().save();
    const shm::BreakerEntry entry = shm::look_at_breaker(w.view(), w.ref(), w.caller(process));
    EXPECT_TRUE(w.world().same(before));
    return entry;
  };
  EXPECT_TRUE(look(0).granted);
  w.run("FF");
  const shm::BreakerEntry open = look(0);
  EXPECT_EQ(open.reason, Reason::Open);
  EXPECT_EQ(open.retry_after_ns, w.enter().retry_after_ns);
  w.pass(1'001 * kMs);
  EXPECT_TRUE(look(0).granted);
  EXPECT_EQ(w.state(), BreakerState::Open);          // the look made no step
  ASSERT_TRUE(w.enter().granted);
  EXPECT_EQ(look(1).reason, Reason::Probing);
  w.kill(0);
  EXPECT_TRUE(look(1).granted);
}

TEST(Breaker, ARefusalWritesNothingButItsCounter) {
  BreakerWorld w(count_breaker({2, 2, 1}));
  w.run("FF");
  const auto bytes = [&] {
    const auto* head = reinterpret_cast<const std::uint8_t*>(w.view().breakers);
    std::vector<std::uint8_t> all(head, head + sizeof(shm::BreakerHead));
    const std::size_t length = std::size_t{w.view().breaker_lines} * shm::kCacheLine;
    all.insert(all.end(), w.view().breaker_memory, w.view().breaker_memory + length);
    return all;
  };
  const auto before = bytes();
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(w.enter().granted);
  EXPECT_EQ(bytes(), before);
  EXPECT_EQ(w.count(BreakerCounter::RefusedOpen), 10u);
}

TEST(Breaker, ABreakerThatIsGoneIsDegradedAndRecordsNothing) {
  BreakerWorld w(count_breaker());
  const auto entry = w.enter();
  const shm::BreakerRef ref = w.ref();
  w.world().publisher().set_breakers({});
  ASSERT_TRUE(w.world().publisher().publish({}, 0));

  EXPECT_EQ(shm::enter_breaker(w.view(), ref, w.caller(), 0).reason, Reason::Degraded);
  EXPECT_EQ(shm::finish_breaker(w.view(), ref, w.caller(), entry.call, {}), Recorded::Nothing);
  EXPECT_EQ(shm::find_breaker(w.view(), "b").index, shm::kNoLine);
}

TEST(Breaker, DurationsFallIntoCellsOfAtMostAnEighth) {
  for (std::int64_t ns = 1'000; ns < 100'000'000'000; ns = ns * 9 / 8 + 1) {
    const std::int64_t upper = shm::histogram_upper_ns(shm::histogram_cell(ns));
    EXPECT_GE(upper, ns / 1'000 * 1'000);
    EXPECT_LE(static_cast<double>(upper), static_cast<double>(ns) * 1.26);
  }
  EXPECT_EQ(shm::histogram_cell(0), 0u);
  EXPECT_LT(shm::histogram_cell(INT64_MAX), shm::kHistogramCells);
}

}  // namespace
}  // namespace cutwater::test
