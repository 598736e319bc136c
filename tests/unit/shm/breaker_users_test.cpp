// SPDX-License-Identifier: Apache-2.0
// One sick process: it opens for itself, and the host opens only for a fault that is not its own.
#include "unit/shm/breaker_scenes.hpp"

namespace cutwater::test {
namespace {

using shm::BreakerCaller;
using shm::BreakerUserInfo;
using shm::RefusalScope;

/// N 20, minimum 10, 50 %, wait 1000 ms doubled with each opening, inclusive.
BreakerSettings shared_breaker() {
  BreakerSettings s = count_breaker({20, 10, 1});
  s.min_processes = rule::kMinProcessesAuto;
  s.open_edge = rule::OpenEdge::Inclusive;
  s.backoff = true;
  s.backoff_ppm = 2 * rule::kPpm;
  return s;
}

std::vector<BreakerUserInfo> users(const BreakerWorld& w) {
  BreakerUserInfo found[shm::kBreakerUsers];
  const std::size_t count = shm::read_breaker_users(w.view(), w.ref().index, found);
  return {found, found + count};
}

/// Calls of the healthy processes, one each.
void healthy_round(BreakerWorld& w, std::uint32_t first, std::uint32_t count) {
  for (std::uint32_t i = first; i < first + count; ++i) w.call(Ended::Success, kMs, i);
}

/// Process 0 fails, the others do not, until it opened for itself.
void single_out(BreakerWorld& w, std::uint32_t processes) {
  for (int i = 0; i < 40 && w.info().users_open == 0; ++i) {
    healthy_round(w, 1, processes - 1);
    w.call(Ended::Failure, kMs, 0);
  }
  ASSERT_EQ(w.info().users_open, 1U);
  ASSERT_EQ(w.state(), BreakerState::Closed);
}

TEST(BreakerUsersTest, EveryProcessThatResolvedTheNameIsAUser) {
  BreakerWorld w(shared_breaker(), 3);
  EXPECT_EQ(w.info().users, 3U);

  w.join(1);                                         // once more: the same user
  EXPECT_EQ(w.info().users, 3U);
  w.kill(1);
  w.tick();
  EXPECT_EQ(w.info().users, 2U);
}

TEST(BreakerUsersTest, WithFewerThanThreeNothingIsKept) {
  BreakerWorld w(shared_breaker(), 2);

  w.run("SFSFF");

  for (const BreakerUserInfo& user : users(w)) {
    EXPECT_EQ(user.calls, 0U);
    EXPECT_EQ(user.run, 0U);
  }
  while (w.state() == BreakerState::Closed) ASSERT_TRUE(w.call(Ended::Failure));
  EXPECT_EQ(w.count(BreakerCounter::LocalFaults), 0U);
}

TEST(BreakerUsersTest, OneSickOfFourIsRefusedAloneAndNamed) {
  BreakerWorld w(shared_breaker(), 4);

  single_out(w, 4);

  const BreakerEntry refused = w.enter(0);
  EXPECT_FALSE(refused.granted);
  EXPECT_EQ(refused.scope, RefusalScope::Process);
  EXPECT_EQ(refused.reason, Reason::Open);
  EXPECT_EQ(refused.state, BreakerState::Open);
  EXPECT_EQ(refused.retry_after_ns, 1'000 * kMs);
  EXPECT_FALSE(refused.hint);
  EXPECT_FALSE(shm::look_at_breaker(w.view(), w.ref(), w.caller(0)).granted);
  EXPECT_TRUE(shm::look_at_breaker(w.view(), w.ref(), w.caller(1)).granted);
  for (std::uint32_t i = 1; i < 4; ++i) EXPECT_TRUE(w.call(Ended::Success, kMs, i));
  EXPECT_EQ(w.count(BreakerCounter::RefusedProcess), 1U);
  EXPECT_EQ(w.count(BreakerCounter::LocalFaults), 1U);
  EXPECT_EQ(w.info().word.epoch, 1U);                // no view is a transition
  const auto told = w.events(EventKind::BreakerLocalFault);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].row, w.row(0).index);
  EXPECT_EQ(told[0].object, w.ref().index);
  // pid, failures of its calls, of those of the rest, command
  EXPECT_STREQ(told[0].text, "1000 6/6 0/15 test");
}

TEST(BreakerUsersTest, AShareTooSmallForTheWindowIsFoundByItsRun) {
  BreakerWorld w(shared_breaker(), 8);

  for (int i = 0; i < 9; ++i) {
    healthy_round(w, 1, 7);
    EXPECT_TRUE(w.call(Ended::Failure, kMs, 0));
  }
  EXPECT_EQ(w.info().users_open, 0U);
  EXPECT_LT(w.info().window.failures, 4U);           // 8 of 20 would be far from the threshold
  w.call(Ended::Failure, kMs, 0);                    // its tenth: the minimum

  EXPECT_EQ(w.info().users_open, 1U);
  EXPECT_FALSE(w.enter(0).granted);
}

TEST(BreakerUsersTest, ItsOwnProbeClosesWhatItHad) {
  BreakerWorld w(shared_breaker(), 4);
  single_out(w, 4);

  w.pass(1'000 * kMs);
  const BreakerEntry probe = w.enter(0);
  ASSERT_TRUE(probe.granted);
  EXPECT_EQ(probe.call.kind, shm::CallKind::OwnProbe);
  const BreakerEntry second = w.enter(0);            // one at a time
  EXPECT_FALSE(second.granted);
  EXPECT_EQ(second.reason, Reason::Probing);
  EXPECT_EQ(second.scope, RefusalScope::Process);
  EXPECT_TRUE(second.hint);
  EXPECT_EQ(second.retry_after_ns, static_cast<std::int64_t>(w.info().numbers.probe_timeout_ns));
  EXPECT_EQ(w.finish(probe, Ended::Success, 0), Recorded::Counted);

  EXPECT_EQ(w.info().users_open, 0U);
  healthy_round(w, 0, 4);                            // the window still holds its old failures
  EXPECT_EQ(w.info().users_open, 0U);
  EXPECT_EQ(w.state(), BreakerState::Closed);
}

TEST(BreakerUsersTest, AFailedProbeOpensForTwiceAsLong) {
  BreakerWorld w(shared_breaker(), 4);
  single_out(w, 4);

  w.pass(1'000 * kMs);
  ASSERT_TRUE(w.call(Ended::Failure, kMs, 0));

  EXPECT_EQ(w.enter(0).retry_after_ns, 2'000 * kMs);
  EXPECT_EQ(w.events(EventKind::BreakerLocalFault).size(), 2U);
  EXPECT_EQ(w.state(), BreakerState::Closed);
}

TEST(BreakerUsersTest, AProbeThatSaysNothingIsGivenBack) {
  BreakerWorld w(shared_breaker(), 4);
  single_out(w, 4);

  w.pass(1'000 * kMs);
  for (const Ended how : {Ended::Ignored, Ended::Cancelled}) {
    ASSERT_TRUE(w.call(how, kMs, 0));
    EXPECT_EQ(w.info().users_open, 1U);
  }
  EXPECT_TRUE(w.call(Ended::Success, kMs, 0));
  EXPECT_EQ(w.info().users_open, 0U);
}

TEST(BreakerUsersTest, AProbeThatNeverReportsFailedOrIsGivenToTheNext) {
  for (const bool release : {false, true}) {
    BreakerSettings s = shared_breaker();
    s.probe_timeout_ns = 500'000'000;
    s.on_probe_timeout = release ? rule::OnProbeTimeout::Release : rule::OnProbeTimeout::Failure;
    BreakerWorld w(s, 4);
    single_out(w, 4);
    w.pass(1'000 * kMs);
    const BreakerEntry late = w.enter(0);
    ASSERT_TRUE(late.granted);

    w.pass(500 * kMs);
    const BreakerEntry next = w.enter(0);

    EXPECT_EQ(next.granted, release);
    w.finish(late, Ended::Success, 0);               // counts in the window, decides nothing here
    EXPECT_EQ(w.info().users_open, 1U);
  }
}

TEST(BreakerUsersTest, TheHostOpensAtTheTenthCallWhenEveryProcessFails) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    BreakerWorld w(shared_breaker(), 8);
    Chance chance(seed);
    SCOPED_TRACE("seed " + std::to_string(seed));
    for (int i = 1; i <= 10; ++i) {
      ASSERT_EQ(w.state(), BreakerState::Closed) << i;
      ASSERT_TRUE(w.call(Ended::Failure, kMs, static_cast<std::uint32_t>(chance.below(8))));
    }
    EXPECT_EQ(w.state(), BreakerState::Open);
    EXPECT_EQ(w.count(BreakerCounter::LocalFaults), 0U);
  }
}

TEST(BreakerUsersTest, AMoveOfTheHostEndsWhatProcessesHadForThemselves) {
  BreakerWorld w(shared_breaker(), 4);
  single_out(w, 4);
  ASSERT_FALSE(w.enter(0).granted);

  shm::steer_breaker(w.view(), w.ref(), Steer::Reset, 0, 1);

  EXPECT_EQ(w.info().users_open, 0U);
  EXPECT_TRUE(w.call(Ended::Success, kMs, 0));
}

TEST(BreakerUsersTest, NobodyIsSingledOutWhereMinProcessesIsOffOrNothingOpens) {
  BreakerSettings off = shared_breaker();
  off.min_processes = rule::kMinProcessesOff;
  BreakerSettings measured = shared_breaker();
  measured.initial_state = BreakerState::MetricsOnly;
  for (const BreakerSettings& s : {off, measured}) {
    BreakerWorld w(s, 4);
    for (int i = 0; i < 40; ++i) {
      healthy_round(w, 1, 3);
      w.call(Ended::Failure, kMs, 0);
    }
    EXPECT_EQ(w.info().users_open, 0U);
    EXPECT_TRUE(w.enter(0).granted);
    EXPECT_EQ(w.count(BreakerCounter::LocalFaults), 0U);
  }
}

TEST(BreakerUsersTest, MinProcessesThreeLeavesTwoOut) {
  BreakerSettings s = shared_breaker();
  s.min_processes = 3;
  BreakerWorld w(s, 4);

  for (int i = 0; i < 5; ++i) {
    w.call(Ended::Failure, kMs, 0);
    w.call(Ended::Failure, kMs, 1);
    healthy_round(w, 2, 2);
  }

  EXPECT_EQ(w.info().users_open, 2U);
  EXPECT_EQ(w.state(), BreakerState::Closed);
}

TEST(BreakerUsersTest, ATimeWindowCountsTurnsBySpans) {
  BreakerSettings s = time_breaker(10, 10);
  s.min_processes = rule::kMinProcessesAuto;
  BreakerWorld w(s, 4);
  single_out(w, 4);

  EXPECT_FALSE(w.enter(0).granted);
  EXPECT_EQ(users(w)[0].failures, 10U);
  w.pass(30'000 * kMs);                              // two turns later nothing of it counts
  EXPECT_EQ(users(w)[0].failures, 0U);
}

TEST(BreakerUsersTest, TheSickProcessThatDiesTakesItsViewAlong) {
  BreakerWorld w(shared_breaker(), 4);
  single_out(w, 4);

  w.kill(0);
  w.revive(0);

  EXPECT_EQ(w.info().users_open, 0U);
  EXPECT_EQ(w.info().users, 4U);
  EXPECT_TRUE(w.call(Ended::Success, kMs, 0));
}

TEST(BreakerUsersTest, OutOfPlacesTheLastOneIsShared) {
  BreakerWorld w(shared_breaker(), shm::kBreakerUsers + 2);
  EXPECT_EQ(w.info().users, shm::kBreakerUsers);

  w.call(Ended::Failure, kMs, shm::kBreakerUsers - 1);
  w.call(Ended::Failure, kMs, shm::kBreakerUsers);
  w.call(Ended::Success, kMs, shm::kBreakerUsers + 1);

  const std::vector<BreakerUserInfo> found = users(w);
  ASSERT_EQ(found.size(), shm::kBreakerUsers);
  EXPECT_EQ(found.back().calls, 3U);
  EXPECT_EQ(found.back().failures, 2U);
  // Full: the tick looks for places whose owners are gone.
  EXPECT_TRUE(shm::breaker_needs_tick(w.view(), w.ref().index));
  w.kill(3);
  w.tick();
  w.call(Ended::Success, kMs, shm::kBreakerUsers);   // joins by itself
  EXPECT_EQ(users(w)[3].calls, 1U);
}

TEST(BreakerUsersTest, AForkedChildIsAUserOfItsOwnUntilItIsSilent) {
  BreakerWorld w(shared_breaker(), 2);
  shm::BreakerLocal local;
  BreakerCaller child = w.caller(0);
  child.user = {child.row, child.generation, 77};
  child.row = child.generation = 0;
  child.local = &local;
  const auto call = [&](Ended how) {
    const BreakerEntry entry = shm::enter_breaker(w.view(), w.ref(), child, 0);
    return entry.granted && shm::finish_breaker(w.view(), w.ref(), child, entry.call,
                                                {.kind = how}) == Recorded::Counted;
  };

  ASSERT_TRUE(call(Ended::Failure));

  EXPECT_EQ(w.info().users, 3U);
  ASSERT_EQ(users(w).size(), 3U);
  EXPECT_TRUE(users(w)[2].forked);
  EXPECT_EQ(users(w)[2].row, w.row(0).index);
  EXPECT_EQ(users(w)[2].failures, 1U);
  w.tick();
  EXPECT_EQ(w.info().users, 3U);
  for (int i = 0; i < 40; ++i) w.call(Ended::Success, kMs, 1);   // two turns without it
  w.tick();
  EXPECT_EQ(w.info().users, 2U);
  ASSERT_TRUE(call(Ended::Success));                 // it lives after all
  EXPECT_EQ(w.info().users, 3U);
  w.kill(0);                                         // with its parent's row it goes for good
  w.tick();
  EXPECT_EQ(w.info().users, 1U);
}

}  // namespace
}  // namespace cutwater::test
