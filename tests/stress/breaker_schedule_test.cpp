// SPDX-License-Identifier: Apache-2.0
// T13-T15: the races of a breaker, each in the one order that goes wrong when a guard is missing
// (tests/CONTROLS.md). An actor that stands still at a stop is what a killed or stopped process
// leaves behind.
#include <atomic>
#include <thread>
#include <vector>

#include "shm/breaker/detail.hpp"
#include "shm/breaker/trips.hpp"
#include "stress/actor.hpp"
#include "stress/breaker_world.hpp"

namespace cutwater::test {
namespace {

using rule::BreakerState;
using shm::Ended;
using shm::EventKind;
using shm::Recorded;
using shm::Steer;

constexpr std::int64_t kMs = kMillisecond;

rule::BreakerSettings half_open_breaker(std::uint32_t probes) {
  return count_breaker({1, 1, probes});
}

/// HALF_OPEN, all cells free.
void half_open(BreakerWorld& w) {
  shm::steer_breaker(w.view(), w.ref(), Steer::ToOpen, 1, 1);
  w.pass(2);
  shm::steer_breaker(w.view(), w.ref(), Steer::ToHalfOpen, 0, 1);
}

TEST(BreakerSchedule, AnOutcomeWhoseRecorderDiedIsJudgedAtItsOwnWindow) {
  rule::BreakerSettings settings = count_breaker({2, 2, 1});
  settings.failure_rate_ppm = rule::kPpm;
  BreakerWorld w(settings);
  w.run("F");
  const auto second = w.enter();
  Actor a([&] { w.finish(second, Ended::Failure); });
  ASSERT_TRUE(a.run_to("breaker.appended"));         // two of two failed, and nobody looked
  EXPECT_EQ(w.state(), BreakerState::Closed);

  EXPECT_EQ(w.run("S"), "S");                        // the window is one of two now

  EXPECT_EQ(w.state(), BreakerState::Open);
}

TEST(BreakerSchedule, ATickJudgesWhatTheDeadLeft) {
  for (const bool time : {false, true}) {
    rule::BreakerSettings settings = count_breaker({2, 2, 1});
    if (time) settings.window_type = rule::WindowType::TimeBased;
    BreakerWorld w(settings);
    w.run("F");
    const auto second = w.enter();
    Actor a([&] { w.finish(second, Ended::Failure); });
    ASSERT_TRUE(a.run_to("breaker.appended"));
    EXPECT_TRUE(shm::breaker_needs_tick(w.view(), w.ref().index));

    w.tick();

    EXPECT_EQ(w.state(), BreakerState::Open);
    EXPECT_FALSE(shm::breaker_needs_tick(w.view(), w.ref().index));
  }
}

TEST(BreakerSchedule, ATransitionWhoseMakerDiedIsAnnouncedBeforeTheNext) {
  BreakerWorld w(count_breaker({1, 1, 1}));
  const auto call = w.enter();
  Actor a([&] { w.finish(call, Ended::Failure); });
  ASSERT_TRUE(a.run_to("breaker.moved"));            // OPEN, and nobody was told
  EXPECT_FALSE(w.info().word.announced);

  w.pass(1'001 * kMs);
  EXPECT_EQ(w.run("S"), "S");

  const std::vector<shm::Event> events = w.events(EventKind::BreakerMoved);
  ASSERT_EQ(events.size(), 3U);
  for (std::size_t i = 0; i < events.size(); ++i) EXPECT_EQ(events[i].epoch, i + 2);
}

TEST(BreakerSchedule, AnEventIsShownOnceAlthoughTwoWroteIt) {
  BreakerWorld w(count_breaker({1, 1, 1}));
  const auto call = w.enter();
  Actor a([&] { w.finish(call, Ended::Failure); });
  ASSERT_TRUE(a.run_to("breaker.before_announced"));
  w.tick();                                          // writes it again
  a.finish();
  EXPECT_EQ(w.events(EventKind::BreakerMoved).size(), 1U);
  EXPECT_TRUE(w.info().word.announced);
}

/// Threads of one forked child, which joins when its first outcomes come.
shm::BreakerCaller child_of(BreakerWorld& w, std::uint32_t process, shm::BreakerLocal& local) {
  const shm::BreakerCaller parent = w.caller(process);
  return {0, 0, parent.stripe, &local, {parent.row, parent.generation, 7}};
}

TEST(BreakerSchedule, ThreadsThatJoinAtOnceAreOneUser) {
  BreakerWorld w(count_breaker({20, 10, 1}), 2);
  shm::BreakerLocal local;
  const shm::BreakerCaller child = child_of(w, 1, local);
  Actor a([&] { shm::join_breaker(w.view(), w.ref(), child); });
  ASSERT_TRUE(a.run_to("breaker.before_join"));      // it knows that it has no place

  shm::join_breaker(w.view(), w.ref(), child);
  EXPECT_EQ(w.info().users, 3U);
  a.finish();

  EXPECT_EQ(w.info().users, 3U);
}

TEST(BreakerSchedule, ASecondPlaceOfOneUserIsFreedByTheTick) {
  BreakerWorld w(count_breaker({20, 10, 1}), 3);
  w.kill(2);
  w.tick();
  Actor a([&] { w.revive(2); });
  for (int place = 0; place <= 2; ++place) ASSERT_TRUE(a.run_to("breaker.before_join"));
  w.kill(0);
  w.tick();                                          // a place before the one it stands at is free
  w.join(2);
  EXPECT_EQ(w.info().users, 2U);
  a.finish();

  w.tick();

  EXPECT_EQ(w.info().users, 2U);
}

TEST(BreakerSchedule, AProbeIsAdmittedByItsSecondLook) {
  BreakerWorld w(half_open_breaker(1));
  half_open(w);
  shm::BreakerEntry late;
  Actor a([&] { late = w.enter(0); });
  ASSERT_TRUE(a.run_to("breaker.before_take"));
  shm::steer_breaker(w.view(), w.ref(), Steer::ForceOpen, 0, 1);

  a.finish();

  EXPECT_FALSE(late.granted);
  EXPECT_EQ(late.state, BreakerState::ForcedOpen);
}

TEST(BreakerSchedule, ACellOfALaterEpochIsNobodysToTake) {
  BreakerWorld w(half_open_breaker(1));
  half_open(w);
  shm::BreakerEntry late;
  Actor a([&] { late = w.enter(0); });
  ASSERT_TRUE(a.run_to("breaker.before_scan"));      // its word is two epochs old in a moment
  half_open(w);
  const shm::BreakerEntry later = w.enter(1);
  ASSERT_TRUE(later.granted);

  a.finish();

  EXPECT_FALSE(late.granted);
  EXPECT_EQ(late.reason, Reason::Probing);
  EXPECT_EQ(w.finish(later, Ended::Success, 1), Recorded::Counted);
  EXPECT_EQ(w.state(), BreakerState::Closed);
}

TEST(BreakerSchedule, TwoTakesOfOneCellAreTwoWords) {
  BreakerWorld w(half_open_breaker(1));
  half_open(w);
  const shm::BreakerEntry first = w.enter(0);
  w.finish(first, Ended::Ignored, 0);
  const shm::BreakerEntry second = w.enter(0);       // the same process, cell, epoch and deadline
  ASSERT_TRUE(second.granted);

  EXPECT_EQ(w.finish(first, Ended::Failure, 0), Recorded::Stale);

  EXPECT_EQ(w.state(), BreakerState::HalfOpen);
  EXPECT_EQ(w.finish(second, Ended::Success, 0), Recorded::Counted);
}

TEST(BreakerSchedule, SomeOfTheProbesDecideOnOneMomentOnly) {
  rule::BreakerSettings settings = half_open_breaker(2);
  settings.half_open_rule = rule::HalfOpenRule::RateOver;
  settings.half_open_value = 1;
  settings.failure_rate_ppm = 600'000;
  BreakerWorld w(settings);
  half_open(w);
  const shm::BreakerEntry first = w.enter(0), second = w.enter(1);
  Actor good([&] { w.finish(first, Ended::Success, 0); });
  Actor bad([&] { w.finish(second, Ended::Failure, 1); });
  Actor reader([&] { w.enter(2); });
  ASSERT_TRUE(reader.run_to("breaker.cell_read"));   // the first cell, still out
  ASSERT_TRUE(good.run_to("breaker.spent"));         // back first, and its process killed
  ASSERT_TRUE(bad.run_to("breaker.spent"));          // then this one

  reader.finish();                                   // half of them failed: below 60 %

  EXPECT_EQ(w.state(), BreakerState::Closed);
}

TEST(BreakerSchedule, AProbePassesOnByItsExactWordOnly) {
  BreakerWorld w(half_open_breaker(1));
  half_open(w);
  shm::BreakerEntry former = w.enter(0);
  w.finish(former, Ended::Cancelled, 0);
  const shm::BreakerEntry present = w.enter(1);
  ASSERT_EQ(present.call.cell, former.call.cell);

  EXPECT_FALSE(shm::pass_probe(w.view(), w.ref(), w.caller(2), former.call));

  EXPECT_NE(w.finish(present, Ended::Success, 1), Recorded::Stale);
  EXPECT_EQ(w.state(), BreakerState::Closed);
}

TEST(BreakerSchedule, NobodyIsRefusedByAHalfOpenThatIsDecided) {
  BreakerWorld w(half_open_breaker(1));
  half_open(w);
  const shm::BreakerEntry probe = w.enter(0);
  Actor a([&] { w.finish(probe, Ended::Success, 0); });
  ASSERT_TRUE(a.run_to("breaker.spent"));            // killed before it moved the state

  EXPECT_TRUE(w.enter(1).granted);

  EXPECT_EQ(w.state(), BreakerState::Closed);
}

TEST(BreakerSchedule, ASealedSlotTakesNoMore) {
  rule::BreakerSettings settings = count_breaker({100, 100, 1});
  settings.window_type = rule::WindowType::TimeBased;
  settings.minimum_calls = 100;
  BreakerWorld w(settings);
  w.run("S");
  const auto early = w.enter();
  const auto next = w.enter();
  Actor late([&] { w.finish(early, Ended::Success); });
  ASSERT_TRUE(late.run_to("breaker.before_count"));  // about to count in the slot of its reading
  w.at(2'000 * kMs);
  Actor a([&] { w.finish(next, Ended::Success); });
  ASSERT_TRUE(a.run_to("breaker.before_open_slot")); // sealed that one, copied what it had

  late.finish();
  a.finish();

  EXPECT_EQ(w.info().window.calls, 3U);
}

TEST(BreakerSchedule, AHintThatNamesNoSlotIsNotBelieved) {
  rule::BreakerSettings settings = count_breaker({100, 100, 1});
  settings.window_type = rule::WindowType::TimeBased;
  BreakerWorld w(settings);
  w.run("SS");
  shm::BreakerParts parts;
  ASSERT_TRUE(shm::read_parts(w.view(), w.ref(), parts));
  parts.ring.head->hint = 0x1234'5678;

  EXPECT_EQ(w.run("S"), "S");

  EXPECT_EQ(w.info().window.calls, 3U);
}

TEST(BreakerSchedule, AnOutcomeCountsInTheEpochOfItsGrantOnly) {
  BreakerWorld w(count_breaker({2, 2, 1}));
  const auto old = w.enter();
  shm::steer_breaker(w.view(), w.ref(), Steer::Reset, 0, 1);

  EXPECT_EQ(w.finish(old, Ended::Failure), Recorded::Stale);

  EXPECT_EQ(w.info().window.calls, 0U);
}

TEST(BreakerSchedule, TwoPastTheThresholdMoveOnce) {
  BreakerWorld w(count_breaker({1, 1, 1}));
  const auto first = w.enter(), second = w.enter();
  Actor a([&] { w.finish(first, Ended::Failure); });
  ASSERT_TRUE(a.run_to("breaker.before_move"));
  w.finish(second, Ended::Failure);
  const BreakerState after = w.state();
  a.finish();
  EXPECT_EQ(after, BreakerState::Open);
  EXPECT_EQ(w.events(EventKind::BreakerMoved).size(), 1U);
  EXPECT_EQ(w.info().word.epoch, 2U);
}

/// Threads over one mapping: outcomes, calls in flight, trips and their records, acts by hand and
/// ticks at once. Every call ends in one count.
TEST(BreakerSchedule, ThreadsOverOneMappingLoseNoOutcome) {
  constexpr std::uint32_t kThreads = 4;
  constexpr int kCalls = 1'500;
  rule::BreakerSettings settings = count_breaker({20, 10, 2});
  settings.slow_rate_ppm = rule::kPpm;
  settings.slow_duration_ns = 5 * kMs;
  settings.open_wait_ns = 2'000'000;
  settings.count_hanging = true;
  WorldOptions options;
  options.trips = 8;
  BreakerWorld w(settings, kThreads, options);
  std::atomic<std::uint64_t> granted{0};
  const auto work = [&](std::uint32_t process) {
    Chance chance(7 + process);
    for (int i = 0; i < kCalls; ++i) {
      const shm::BreakerEntry entry = w.enter(process);
      if (chance.one_in(4)) w.pass(kMs);
      if (chance.one_in(20)) w.tick();
      if (process == 0 && i % 100 == 99) shm::read_trips(w.view(), "", 8);
      if (process == 0 && i % 200 == 199) {
        shm::steer_breaker(w.view(), w.ref(), Steer::Reset, 0, 1);
      }
      if (!entry.granted) continue;
      ++granted;
      w.finish(entry, chance.one_in(3) ? Ended::Failure : Ended::Success, process);
    }
  };
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < kThreads; ++t) threads.emplace_back(work, t);
  for (std::thread& thread : threads) thread.join();

  EXPECT_GT(granted, 0U);
  EXPECT_EQ(w.count(shm::BreakerCounter::Success) + w.count(shm::BreakerCounter::Failure) +
                w.count(shm::BreakerCounter::Stale),
            granted);
  EXPECT_EQ(w.info().hanging, 0U);
  EXPECT_FALSE(shm::read_trips(w.view(), "", 8).empty());
}

}  // namespace
}  // namespace cutwater::test
