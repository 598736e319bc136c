// SPDX-License-Identifier: Apache-2.0
// ramp-after-close: what a breaker that closed lets through, and when `auto` ramps.
#include "unit/shm/breaker_scenes.hpp"

namespace cutwater::test {
namespace {

/// Opens at one failure, one probe closes it, then 25, 50, 100 % for 3 s.
BreakerSettings ramping_breaker(rule::Ramp ramp) {
  BreakerSettings s = count_breaker({1, 1, 1});
  s.min_processes = rule::kMinProcessesOff;
  s.ramp = ramp;
  s.ramp_ns = 3'000'000'000;
  return s;
}

void close_again(BreakerWorld& w) {
  w.run("F");
  w.pass(1'001 * kMs);
  w.run("S");
  ASSERT_EQ(w.state(), BreakerState::Closed);
}

/// How many of `calls` a process gets through; they end without a word.
int admitted(BreakerWorld& w, std::uint32_t process, int calls) {
  int granted = 0;
  for (int i = 0; i < calls; ++i) granted += w.call(Ended::Cancelled, 0, process);
  return granted;
}

TEST(BreakerRamp, AutoRampsWithThreeUsersAndNotWithTwo) {
  for (const std::uint32_t users : {1U, 2U, 3U, 5U}) {
    BreakerWorld w(ramping_breaker(rule::Ramp::Auto), users);
    ASSERT_EQ(w.info().users, users);
    close_again(w);
    EXPECT_EQ(w.info().word.ramping, users >= 3) << users;
    EXPECT_EQ(admitted(w, 0, 8), users >= 3 ? 2 : 8) << users;
  }
}

TEST(BreakerRamp, AutoGoesByThoseWhoLiveWhenItCloses) {
  BreakerWorld w(ramping_breaker(rule::Ramp::Auto), 3);
  w.kill(2);
  w.tick();
  close_again(w);
  EXPECT_FALSE(w.info().word.ramping);
  w.revive(2);
  w.join(2);
  EXPECT_FALSE(w.info().word.ramping);               // it closed before
  close_again(w);
  EXPECT_TRUE(w.info().word.ramping);
}

TEST(BreakerRamp, OnAndOffDoNotAskHowMany) {
  BreakerWorld on(ramping_breaker(rule::Ramp::On), 1), off(ramping_breaker(rule::Ramp::Off), 5);
  close_again(on);
  close_again(off);
  EXPECT_TRUE(on.info().word.ramping);
  EXPECT_FALSE(off.info().word.ramping);
}

TEST(BreakerRamp, EachProcessHasItsOwnShareOfItsOwnCalls) {
  BreakerWorld w(ramping_breaker(rule::Ramp::Auto), 3);
  close_again(w);
  EXPECT_EQ(admitted(w, 0, 100), 25);
  EXPECT_EQ(admitted(w, 1, 4), 1);
  EXPECT_EQ(admitted(w, 2, 1), 1);                   // the first call of each
  w.pass(1'000 * kMs);                               // the second third: every second call
  EXPECT_EQ(admitted(w, 0, 100), 50);
  EXPECT_EQ(admitted(w, 1, 4), 2);
  w.pass(1'000 * kMs);
  EXPECT_EQ(admitted(w, 0, 100), 100);
}

TEST(BreakerRamp, ARefusalSaysProbingUntilTheEndOfTheRampAsAHint) {
  BreakerWorld w(ramping_breaker(rule::Ramp::Auto), 3);
  close_again(w);
  const std::int64_t end = w.info().word.deadline_ns;
  w.enter();
  w.pass(7 * kMs);
  const shm::BreakerEntry refused = w.enter();
  ASSERT_FALSE(refused.granted);
  EXPECT_EQ(refused.reason, Reason::Probing);
  EXPECT_TRUE(refused.hint);
  EXPECT_TRUE(refused.ramping);
  EXPECT_EQ(refused.retry_after_ns, end - w.view().clock.now());
  EXPECT_EQ(w.count(BreakerCounter::RefusedProbing), 1U);
}

TEST(BreakerRamp, WhoFindsItOverClearsItInTheSameEpoch) {
  BreakerWorld w(ramping_breaker(rule::Ramp::Auto), 3);
  close_again(w);
  const std::uint32_t epoch = w.info().word.epoch;
  const std::size_t told = w.events(shm::EventKind::BreakerMoved).size();
  w.pass(3'000 * kMs);
  EXPECT_TRUE(w.enter().granted);
  EXPECT_FALSE(w.info().word.ramping);
  EXPECT_EQ(w.info().word.epoch, epoch);
  EXPECT_EQ(w.events(shm::EventKind::BreakerMoved).size(), told);
  EXPECT_EQ(admitted(w, 0, 10), 10);
}

TEST(BreakerRamp, OutcomesCountAsInClosed) {
  BreakerWorld w(ramping_breaker(rule::Ramp::Auto), 3);
  close_again(w);
  w.call(Ended::Failure, kMs, 1);
  EXPECT_EQ(w.state(), BreakerState::Open);
  EXPECT_FALSE(w.info().word.ramping);
}

TEST(BreakerRamp, ALookCountsNothing) {
  BreakerWorld w(ramping_breaker(rule::Ramp::Auto), 3);
  close_again(w);
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(shm::look_at_breaker(w.view(), w.ref(), w.caller()).granted);
  }
  EXPECT_TRUE(w.enter().granted);                    // the first of its ramp, all the same
  EXPECT_FALSE(shm::look_at_breaker(w.view(), w.ref(), w.caller()).granted);
}

TEST(BreakerRamp, MayCountCallsThatHangToo) {
  BreakerSettings s = ramping_breaker(rule::Ramp::On);
  s.slow_rate_ppm = rule::kPpm;
  s.slow_duration_ns = 100 * kMs;
  s.count_hanging = true;
  BreakerWorld w(s);
  close_again(w);
  ASSERT_TRUE(w.enter(1).granted);
  w.pass(101 * kMs);
  EXPECT_FALSE(w.enter(2).granted);
  EXPECT_EQ(w.state(), BreakerState::Open);
}

}  // namespace
}  // namespace cutwater::test
