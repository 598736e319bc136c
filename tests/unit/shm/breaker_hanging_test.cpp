// SPDX-License-Identifier: Apache-2.0
// count-hanging-calls: calls that are out for longer than the slow threshold count as slow ones
// before they return, and once only.
#include "shm/breaker/detail.hpp"
#include "shm/breaker/trips.hpp"
#include "stress/breaker_world.hpp"

namespace cutwater::test {
namespace {

using rule::BreakerReason;
using rule::BreakerState;
using shm::BreakerCounter;
using shm::BreakerEntry;
using shm::Ended;
using shm::Recorded;

constexpr std::int64_t kMs = kMillisecond;
constexpr std::int64_t kSlow = 100 * kMs;

/// Opens when half of at least `minimum` calls took longer than 100 ms.
rule::BreakerSettings hanging_breaker(std::uint32_t minimum, bool time = false) {
  rule::BreakerSettings s = count_breaker({20, minimum, 1});
  s.failure_rate_ppm = rule::kOffPpm;
  s.slow_rate_ppm = 500'000;
  s.slow_duration_ns = kSlow;
  s.count_hanging = true;
  if (time) {
    s.window_type = rule::WindowType::TimeBased;
    s.window_span_ns = 10'000'000'000;
  }
  return s;
}

TEST(BreakerHanging, OpensBeforeTheFirstTimeOutReturns) {
  for (const bool time : {false, true}) {
    BreakerWorld w(hanging_breaker(4, time));
    for (std::uint32_t i = 0; i < 4; ++i) ASSERT_TRUE(w.enter(i).granted);
    w.pass(kSlow);
    EXPECT_EQ(w.info().hanging, 0U);                 // exactly the threshold is not above it
    const BreakerEntry fifth = w.enter();
    EXPECT_TRUE(fifth.granted);
    w.finish(fifth, Ended::Cancelled);
    w.pass(kMs);
    EXPECT_EQ(w.info().hanging, 4U);

    const BreakerEntry refused = w.enter();

    EXPECT_FALSE(refused.granted);
    EXPECT_EQ(refused.reason, Reason::Open);
    EXPECT_EQ(refused.retry_after_ns, 1'000 * kMs + 1);
    const auto trips = shm::read_trips(w.view(), "", 1);
    ASSERT_EQ(trips.size(), 1U);
    EXPECT_EQ(trips[0].reason, BreakerReason::SlowRate);
    EXPECT_EQ(trips[0].hanging, 4U);
    EXPECT_EQ(trips[0].window.calls, 4U);
    EXPECT_EQ(trips[0].window.slow, 4U);
    EXPECT_EQ(w.count(BreakerCounter::Success) + w.count(BreakerCounter::Failure), 0U);
  }
}

TEST(BreakerHanging, AnOutcomeAndTheTickJudgeThemToo) {
  BreakerWorld by_outcome(hanging_breaker(4));
  const BreakerEntry quick = by_outcome.enter();
  for (std::uint32_t i = 1; i < 4; ++i) ASSERT_TRUE(by_outcome.enter(i).granted);
  by_outcome.pass(kSlow + kMs);
  by_outcome.finish(quick, Ended::Success, 0, kMs);
  EXPECT_EQ(by_outcome.state(), BreakerState::Open);   // 3 of 4
  EXPECT_EQ(by_outcome.info().trip_permille, 750U);

  BreakerWorld by_tick(hanging_breaker(4));
  for (std::uint32_t i = 0; i < 4; ++i) ASSERT_TRUE(by_tick.enter(i).granted);
  EXPECT_TRUE(shm::breaker_needs_tick(by_tick.view(), by_tick.ref().index));
  by_tick.pass(kSlow);
  by_tick.tick();
  EXPECT_EQ(by_tick.state(), BreakerState::Closed);
  by_tick.pass(kMs);
  by_tick.tick();
  EXPECT_EQ(by_tick.state(), BreakerState::Open);
}

TEST(BreakerHanging, ACallThatReturnsCountsOnce) {
  BreakerWorld w(hanging_breaker(2));
  const BreakerEntry call = w.enter();
  w.pass(kSlow + kMs);
  const BreakerEntry again = w.enter(1);               // looks: one hangs
  ASSERT_TRUE(again.granted);
  EXPECT_EQ(w.info().hanging, 1U);

  EXPECT_EQ(w.finish(call, Ended::Success), Recorded::Counted);

  EXPECT_EQ(w.state(), BreakerState::Closed);          // one slow call, and the minimum is 2
  EXPECT_EQ(w.info().hanging, 0U);
  EXPECT_EQ(w.info().window.slow, 1U);
  EXPECT_TRUE(w.enter(2).granted);                     // also for who looks within the same ms
  EXPECT_EQ(w.state(), BreakerState::Closed);
  w.finish(again, Ended::Success, 1, kSlow + kMs);
  EXPECT_EQ(w.state(), BreakerState::Open);
}

TEST(BreakerHanging, OneLookPerMillisecondIsBelievedUntilACallEnds) {
  BreakerWorld w(hanging_breaker(10));
  const BreakerEntry first = w.enter(), second = w.enter();
  w.pass(kSlow + kMs);
  w.enter();
  const std::uint64_t looked = w.view().breakers[w.ref().index].hanging;
  w.enter();
  EXPECT_EQ(w.view().breakers[w.ref().index].hanging, looked);
  w.finish(first, Ended::Cancelled);
  EXPECT_NE(w.view().breakers[w.ref().index].hanging, looked);
  w.finish(second, Ended::Ignored);
  EXPECT_EQ(w.info().hanging, 0U);
}

TEST(BreakerHanging, NobodyOfAnotherLifeCounts) {
  BreakerWorld w(hanging_breaker(2));
  const BreakerEntry old = w.enter();
  ASSERT_TRUE(w.enter(1).granted);
  w.pass(kSlow + kMs);
  EXPECT_FALSE(w.enter(2).granted);                    // 2 of 2: open
  w.pass(1'001 * kMs);
  w.run("S");
  ASSERT_EQ(w.state(), BreakerState::Closed);
  w.pass(10 * kMs);
  EXPECT_EQ(w.info().hanging, 0U);
  w.tick();
  EXPECT_EQ(w.state(), BreakerState::Closed);
  EXPECT_EQ(w.finish(old, Ended::Success), Recorded::Stale);
}

TEST(BreakerHanging, TheDeadProveNothingAndTheirCellsComeBack) {
  BreakerWorld w(hanging_breaker(4));
  for (std::uint32_t i = 0; i < 4; ++i) ASSERT_TRUE(w.enter(i).granted);
  for (std::uint32_t i = 0; i < 4; ++i) w.kill(i);
  w.pass(kSlow + kMs);
  EXPECT_EQ(w.info().hanging, 0U);
  w.tick();
  EXPECT_EQ(w.state(), BreakerState::Closed);
  EXPECT_EQ(w.count(BreakerCounter::HangingReclaimed), 4U);
  w.tick();
  EXPECT_EQ(w.count(BreakerCounter::HangingReclaimed), 4U);
}

TEST(BreakerHanging, TheDeadAreReclaimedWhileItIsOpenToo) {
  BreakerWorld w(hanging_breaker(2));
  w.enter(1);
  shm::steer_breaker(w.view(), w.ref(), shm::Steer::ForceOpen, 0, 0);
  w.kill(1);
  ASSERT_TRUE(shm::breaker_needs_tick(w.view(), w.ref().index));
  w.tick();
  EXPECT_EQ(w.count(BreakerCounter::HangingReclaimed), 1U);
}

TEST(BreakerHanging, NoFreeCellIsGrantedUntrackedAndCounted) {
  rule::BreakerSettings s = hanging_breaker(1'000);
  s.window_calls = 2'000;
  s.minimum_calls = 1'000;
  BreakerWorld w(s);
  std::vector<BreakerEntry> calls;
  for (std::uint32_t i = 0; i < shm::kHangingCells; ++i) calls.push_back(w.enter(i % 3));
  EXPECT_EQ(w.count(BreakerCounter::Untracked), 0U);
  const BreakerEntry one_more = w.enter();
  EXPECT_TRUE(one_more.granted);
  EXPECT_EQ(w.count(BreakerCounter::Untracked), 1U);
  w.pass(kSlow + kMs);
  EXPECT_EQ(w.info().hanging, shm::kHangingCells);
  EXPECT_EQ(w.finish(one_more, Ended::Success), Recorded::Counted);
  for (const BreakerEntry& call : calls) w.finish(call, Ended::Success);
  EXPECT_EQ(w.info().hanging, 0U);
  EXPECT_EQ(w.info().window.slow, shm::kHangingCells + 1);
}

TEST(BreakerHanging, ACallerWithoutARowIsNotTracked) {
  BreakerWorld w(hanging_breaker(1));
  shm::BreakerCaller nobody = w.caller();
  nobody.row = 0;
  const BreakerEntry entry = shm::enter_breaker(w.view(), w.ref(), nobody, 0);
  EXPECT_TRUE(entry.granted);
  EXPECT_EQ(w.count(BreakerCounter::Untracked), 1U);
  w.pass(kSlow + kMs);
  EXPECT_EQ(w.info().hanging, 0U);
}

TEST(BreakerHanging, MetricsOnlyTellsAndOpensNothing) {
  BreakerWorld w(hanging_breaker(2));
  shm::steer_breaker(w.view(), w.ref(), shm::Steer::MetricsOnly, 0, 0);
  w.enter();
  w.enter(1);
  w.pass(kSlow + kMs);
  EXPECT_TRUE(w.enter(2).granted);
  EXPECT_EQ(w.state(), BreakerState::MetricsOnly);
  EXPECT_EQ(w.events(shm::EventKind::BreakerWouldOpen).size(), 1U);
}

TEST(BreakerHanging, EvaluateOnFailureOpensOnACallThatHangs) {
  rule::BreakerSettings s = hanging_breaker(2);
  s.evaluate_on = rule::EvaluateOn::Failure;
  BreakerWorld w(s);
  w.enter();
  w.enter(1);
  w.pass(kSlow + kMs);
  EXPECT_FALSE(w.enter(2).granted);
}

TEST(BreakerHanging, ADependencyThatSwallowsTheCallsOfAllOpensTheHost) {
  rule::BreakerSettings s = hanging_breaker(4);
  s.min_processes = rule::kMinProcessesAuto;
  BreakerWorld w(s);
  ASSERT_EQ(w.info().users, 4U);
  for (std::uint32_t i = 0; i < 4; ++i) ASSERT_TRUE(w.enter(i).granted);
  w.pass(kSlow + kMs);
  EXPECT_FALSE(w.enter(1).granted);
  EXPECT_EQ(w.state(), BreakerState::Open);
}

TEST(BreakerHanging, OneProcessWhoseCallsHangAloneOpensForItself) {
  rule::BreakerSettings s = hanging_breaker(4);
  s.min_processes = rule::kMinProcessesAuto;
  BreakerWorld w(s);
  for (std::uint32_t i = 0; i < 6; ++i) w.call(Ended::Success, kMs, 1 + i % 3);
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(w.enter(0).granted);
  w.pass(kSlow + kMs);

  EXPECT_TRUE(w.enter(1).granted);
  const BreakerEntry refused = w.enter(0);

  EXPECT_FALSE(refused.granted);
  EXPECT_EQ(refused.scope, shm::RefusalScope::Process);
  EXPECT_EQ(w.state(), BreakerState::Closed);
  EXPECT_EQ(w.info().users_open, 1U);
}

TEST(BreakerHanging, ReloadSwitchesItOnAndOffUnderRunningCalls) {
  rule::BreakerSettings s = hanging_breaker(1);
  s.count_hanging = false;
  BreakerWorld w(s);
  const BreakerEntry before = w.enter();
  s.count_hanging = true;
  w.publish(s);
  w.pass(kSlow + kMs);
  EXPECT_EQ(w.info().hanging, 0U);                     // it was granted untracked
  EXPECT_EQ(w.finish(before, Ended::Success, 0, kMs), Recorded::Counted);
  const BreakerEntry tracked = w.enter();
  s.count_hanging = false;
  w.publish(s);
  w.pass(kSlow + kMs);
  EXPECT_TRUE(w.enter(1).granted);
  s.count_hanging = true;
  w.publish(s);                                        // other cells: the old ticket fits none
  EXPECT_EQ(w.finish(tracked, Ended::Success, 0, kMs), Recorded::Counted);
  EXPECT_EQ(w.info().hanging, 0U);
}

TEST(BreakerHanging, AFloodOfScribblesIsSurvived) {
  BreakerWorld w(hanging_breaker(4));
  const BreakerEntry call = w.enter();
  shm::BreakerParts parts;
  ASSERT_TRUE(shm::read_parts(w.view(), w.ref(), parts));
  auto* const bytes = reinterpret_cast<std::uint8_t*>(parts.hanging);
  for (std::size_t at = 0; at < shm::kHangingCells * sizeof(Word16); ++at) {
    bytes[at] = static_cast<std::uint8_t>(at * 37 + 11);
  }
  for (int i = 0; i < 300; ++i) w.call(Ended::Success);
  w.finish(call, Ended::Success);
  w.tick();
  EXPECT_LE(w.info().hanging, shm::kHangingCells);
}

}  // namespace
}  // namespace cutwater::test
