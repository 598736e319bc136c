// SPDX-License-Identifier: Apache-2.0
// Patterns of bulkheads: one of its own for each name at its first use, as many as were reserved
// for; names that come and go while calls are in.
#include <thread>

#include "stress/pattern_world.hpp"

namespace cutwater::test {
namespace {

using shm::BulkheadCounter;
using shm::BulkheadRef;
using shm::Left;
using shm::ResolvedBulkhead;
using State = shm::LineLook::State;

TEST(BulkheadPattern, ANameGetsPlacesOfItsOwnAtItsFirstUse) {
  PatternWorld w({gates(3, 2)});
  EXPECT_EQ(shm::find_bulkhead(w.view(), "bank-a").index, shm::kNoLine);

  const ResolvedBulkhead a = w.gate("bank-a"), b = w.gate("bank-b");

  EXPECT_NE(a.ref.index, b.ref.index);
  EXPECT_FALSE(a.shared || b.shared);
  EXPECT_EQ(w.name_of(a.ref), "bank-a");
  EXPECT_EQ(shm::find_bulkhead(w.view(), "bank-a").index, a.ref.index);
  EXPECT_TRUE(w.enter(a.ref).granted);
  EXPECT_TRUE(w.enter(a.ref).granted);
  EXPECT_FALSE(w.enter(a.ref).granted);
  EXPECT_TRUE(w.enter(b.ref).granted);
  EXPECT_TRUE(shm::verify(w.view()).ok());
}

TEST(BulkheadPattern, BeyondMaxInstancesThePatternsOwnAnswersAndIsCounted) {
  PatternWorld w({gates(2, 1)});
  w.gate("bank-a");
  w.gate("bank-b");

  const ResolvedBulkhead c = w.gate("bank-c"), d = w.gate("bank-d");

  EXPECT_TRUE(c.shared && d.shared);
  EXPECT_EQ(c.ref.index, d.ref.index);
  EXPECT_EQ(w.name_of(c.ref), "bank-*");
  EXPECT_TRUE(w.enter(c.ref).granted);
  EXPECT_FALSE(w.enter(d.ref).granted);              // one place for all who share it
  EXPECT_EQ(shm::sum_bulkhead_counters(w.view(), c.ref.index).of(
                BulkheadCounter::BeyondInstances), 2U);
}

TEST(BulkheadPattern, AnExactNameBeatsAPatternAndTheLongerPatternTheShorter) {
  rule::BulkheadSettings exact = bulkhead_of({7, 0, 8, 0}), longer = gates(1, 5);
  exact.name = "bank-north";
  longer.name = "bank-s*";
  PatternWorld w({gates(2, 1), exact, longer});
  shm::BulkheadInfo info;

  ASSERT_TRUE(shm::read_bulkhead(w.view(), w.gate("bank-north").ref.index, info));
  EXPECT_EQ(info.limit, 7U);
  EXPECT_EQ(info.kind, shm::kNamedEntry);
  ASSERT_TRUE(shm::read_bulkhead(w.view(), w.gate("bank-sun").ref.index, info));
  EXPECT_EQ(info.limit, 5U);
  EXPECT_TRUE(w.gate("bank-sea").shared);
  EXPECT_FALSE(w.gate("bank-moon").shared);
  EXPECT_EQ(w.gate("shop").ref.index, shm::kNoLine);
}

TEST(BulkheadPattern, AReloadKeepsInstancesWithTheirHolders) {
  PatternWorld w({gates(3, 2)});
  const BulkheadRef a = w.gate("bank-a").ref;
  const shm::BulkheadEntry held = w.enter(a);

  ASSERT_EQ(w.publish({gates(4, 1)}), "");

  EXPECT_EQ(w.gate("bank-a").ref.index, a.index);
  EXPECT_FALSE(w.enter(a).granted);                  // one is in, and one is the limit now
  EXPECT_EQ(w.leave(a, held), Left::Returned);
  EXPECT_TRUE(w.enter(a).granted);
  for (const char* name : {"bank-b", "bank-c", "bank-d"}) EXPECT_FALSE(w.gate(name).shared);
  EXPECT_TRUE(w.gate("bank-e").shared);
}

TEST(BulkheadPattern, APatternThatComesBackFindsItsNamesWithThoseWhoAreStillIn) {
  PatternWorld w({gates(2, 2)});
  w.gate("bank-idle");
  const BulkheadRef a = w.gate("bank-a").ref;
  const shm::BulkheadEntry held = w.enter(a);
  ASSERT_EQ(w.publish({}), "");
  EXPECT_EQ(w.gate("bank-a").ref.index, shm::kNoLine);
  EXPECT_EQ(w.enter(a).reason, Reason::Degraded);

  ASSERT_EQ(w.publish({gates(2, 2)}), "");

  EXPECT_EQ(shm::find_bulkhead(w.view(), "bank-idle").index, shm::kNoLine);
  const BulkheadRef again = shm::find_bulkhead(w.view(), "bank-a");
  EXPECT_EQ(again.index, a.index);
  EXPECT_EQ(w.name_of(again), "bank-a");
  EXPECT_NE(again.incarnation, a.incarnation);
  EXPECT_TRUE(w.enter(again).granted);
  EXPECT_FALSE(w.enter(again).granted);
  EXPECT_EQ(w.leave(a, held), Left::Returned);       // by the reference of before
  EXPECT_TRUE(w.enter(again).granted);
}

TEST(BulkheadPattern, WhatCannotFitOrBeToldApartIsRefusedWithTheRemedy) {
  PatternWorld w({gates(3, 2)}, {.bulkheads = 8, .bulkhead_cells = 32});
  EXPECT_EQ(w.publish({gates(8, 2)}),
            "9 bulkheads ('bank-*' takes 9: its max-instances and one), but memory was reserved "
            "for 8; set capacity.bulkheads to at least 9 and restart");
  EXPECT_EQ(w.publish({gates(6, 5)}),
            "35 places of bulkheads ('bank-*' takes 7: its max-instances and one), but memory was "
            "reserved for 32; set capacity.bulkhead-cells to at least 35 and restart");
  rule::BulkheadSettings other = gates(1, 1);
  other.name = "*k-one";
  EXPECT_NE(w.publish({gates(2, 1), other}).find("stands for the same names and is as long"),
            std::string::npos);
  EXPECT_FALSE(w.gate("bank-a").shared);             // what was in force still is
}

TEST(BulkheadPattern, ManyWhoAskAtOnceGetOnePlaceForEachName) {
  PatternWorld w({gates(16, 1)}, {.bulkheads = 17, .bulkhead_cells = 17});
  constexpr int kThreads = 4, kNames = 16;
  std::uint32_t found[kThreads][kNames] = {};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kNames; ++i) {
        const int n = (i * 5 + t) % kNames;
        found[t][n] = w.gate("bank-" + std::to_string(n)).ref.index;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<std::uint32_t> places;
  for (int n = 0; n < kNames; ++n) {
    for (int t = 1; t < kThreads; ++t) EXPECT_EQ(found[t][n], found[0][n]) << n;
    EXPECT_EQ(w.name_of({found[0][n], 0}), "bank-" + std::to_string(n));
    places.insert(found[0][n]);
  }
  EXPECT_EQ(places.size(), 16U);
}

// ---- idle --------------------------------------------------------------------------------------

TEST(PatternIdle, AnUnusedNameMakesRoomOnlyWhenThePatternIsFull) {
  PatternWorld w({gates(2, 1)});
  const BulkheadRef a = w.gate("bank-a").ref;
  w.look();
  w.pass(3'600 * kSecond);
  EXPECT_TRUE(w.look().empty());                     // a place is free: nobody is in its way
  w.gate("bank-b");
  w.look();

  const shm::UnusedPlaces unused = w.look();

  ASSERT_EQ(unused.bulkheads.size(), 1U);
  EXPECT_EQ(unused.bulkheads[0].index, a.index);
  ASSERT_EQ(w.make_room(unused), "");
  EXPECT_EQ(shm::find_bulkhead(w.view(), "bank-a").index, shm::kNoLine);
  const ResolvedBulkhead c = w.gate("bank-c");
  EXPECT_EQ(c.ref.index, a.index);
  EXPECT_FALSE(c.shared);
  EXPECT_EQ(w.name_of(c.ref), "bank-c");
  EXPECT_EQ(w.enter(a).reason, Reason::Degraded);    // the old name's reference is over
  EXPECT_TRUE(w.gate("bank-a").shared);
  EXPECT_TRUE(w.enter(c.ref).granted);
  EXPECT_TRUE(shm::verify(w.view()).ok());
}

TEST(PatternIdle, WhoIsInOrInLineOrWasThereLatelyKeepsTheName) {
  rule::BulkheadSettings settings = gates(4, 1);
  settings.max_wait_ns = rule::kWaitForever;
  settings.idle_ns = 60'000'000'000;
  PatternWorld w({settings});
  const BulkheadRef held = w.gate("bank-held").ref, used = w.gate("bank-used").ref;
  w.gate("bank-line");
  w.gate("bank-idle");
  const BulkheadRef line = w.gate("bank-line").ref;
  const shm::BulkheadEntry in = w.enter(held), first = w.enter(line);
  const shm::JoinedLine joined = shm::join_line(w.view(), line, w.caller(1), {});
  w.look();
  w.pass(59 * kSecond);
  w.leave(used, w.enter(used));
  w.look();
  w.pass(2 * kSecond);
  shm::UnusedPlaces unused = w.look();
  ASSERT_EQ(unused.bulkheads.size(), 1U);
  EXPECT_EQ(w.name_of({unused.bulkheads[0].index, 0}), "bank-idle");

  // What is asked to go and is used by then stays.
  unused.bulkheads.push_back({held.index, held.incarnation});
  unused.bulkheads.push_back({line.index, line.incarnation});
  ASSERT_EQ(w.make_room(unused), "");
  EXPECT_EQ(shm::find_bulkhead(w.view(), "bank-held").incarnation, held.incarnation);
  EXPECT_EQ(shm::find_bulkhead(w.view(), "bank-line").incarnation, line.incarnation);
  EXPECT_EQ(w.leave(held, in), Left::Returned);
  EXPECT_EQ(w.leave(line, first), Left::Returned);
  EXPECT_EQ(shm::poll_line(w.view(), line, w.caller(1), joined.wait).state, State::Granted);
}

TEST(PatternIdle, ABreakerThatIsNotClosedKeepsItsName) {
  rule::BreakerSettings settings = count_breaker({4, 4, 1});
  settings.name = "dep-*";
  settings.max_instances = 3;
  settings.idle_ns = 1'000'000'000;
  PatternWorld w({}, {}, {settings});
  const shm::BreakerRef open = w.breaker("dep-open").ref, closed = w.breaker("dep-closed").ref;
  w.breaker("dep-used");
  for (int i = 0; i < 4; ++i) w.end(open, shm::Ended::Failure);
  w.end(closed, shm::Ended::Failure);
  w.end(closed, shm::Ended::Failure);
  w.look();
  w.pass(1 * kSecond);
  w.end(w.breaker("dep-used").ref, shm::Ended::Success);
  const shm::UnusedPlaces unused = w.look();
  ASSERT_EQ(unused.breakers.size(), 1U);
  EXPECT_EQ(unused.breakers[0].index, closed.index);

  ASSERT_EQ(w.make_room(unused), "");

  EXPECT_FALSE(shm::enter_breaker(w.view(), closed, {}, 0).granted);
  const shm::ResolvedBreaker fresh = w.breaker("dep-new");
  EXPECT_EQ(fresh.ref.index, closed.index);
  shm::BreakerInfo info;
  ASSERT_TRUE(shm::read_breaker(w.view(), fresh.ref.index, info));
  EXPECT_STREQ(info.name, "dep-new");
  EXPECT_EQ(info.window.calls, 0U);                  // nothing of the old name is left
  for (int i = 0; i < 3; ++i) w.end(fresh.ref, shm::Ended::Failure);
  ASSERT_TRUE(shm::read_breaker(w.view(), fresh.ref.index, info));
  EXPECT_EQ(info.word.state, rule::BreakerState::Closed);
  w.end(fresh.ref, shm::Ended::Failure);
  ASSERT_TRUE(shm::read_breaker(w.view(), fresh.ref.index, info));
  EXPECT_EQ(info.word.state, rule::BreakerState::Open);
  EXPECT_TRUE(shm::verify(w.view()).ok());
}

TEST(PatternIdle, AnOpenBreakerMakesRoomWhenNobodyAskedForItSinceItsWaitWasOver) {
  rule::BreakerSettings settings = count_breaker({4, 4, 1});
  settings.name = "dep-*";
  settings.max_instances = 1;
  settings.idle_ns = 1'000'000'000;
  PatternWorld w({}, {}, {settings});
  const shm::BreakerRef old = w.breaker("dep-old").ref;
  for (int i = 0; i < 4; ++i) w.end(old, shm::Ended::Failure);
  shm::BreakerInfo info;
  ASSERT_TRUE(shm::read_breaker(w.view(), old.index, info));
  ASSERT_EQ(info.word.state, rule::BreakerState::Open);
  w.look();
  w.pass(info.word.deadline_ns - info.now_ns - 1);
  EXPECT_TRUE(w.look().empty()) << "it still keeps callers out";
  w.pass(1);
  EXPECT_TRUE(w.look().empty()) << "unused only from here on";
  w.pass(1 * kSecond);
  const shm::UnusedPlaces unused = w.look();
  ASSERT_EQ(unused.breakers.size(), 1U);

  ASSERT_EQ(w.make_room(unused), "");

  const shm::ResolvedBreaker fresh = w.breaker("dep-new");
  EXPECT_FALSE(fresh.shared);
  ASSERT_TRUE(shm::read_breaker(w.view(), fresh.ref.index, info));
  EXPECT_STREQ(info.name, "dep-new");
  EXPECT_EQ(info.word.state, rule::BreakerState::Closed);
  EXPECT_EQ(info.window.calls, 0U);
  EXPECT_FALSE(shm::enter_breaker(w.view(), old, {}, 0).granted);
  EXPECT_TRUE(shm::enter_breaker(w.view(), fresh.ref, {}, 0).granted);
  EXPECT_TRUE(shm::verify(w.view()).ok());
}

TEST(PatternIdle, AHalfOpenBreakerMakesRoomOnlyWithoutAProbeOutAndOneOfAHandNever) {
  rule::BreakerSettings settings = count_breaker({4, 4, 1});
  settings.name = "dep-*";
  settings.max_instances = 2;
  settings.idle_ns = 1'000'000'000;
  PatternWorld w({}, {}, {settings});
  const shm::BreakerRef half = w.breaker("dep-half").ref, forced = w.breaker("dep-forced").ref;
  for (int i = 0; i < 4; ++i) w.end(half, shm::Ended::Failure);
  ASSERT_EQ(shm::steer_breaker(w.view(), forced, shm::Steer::ForceOpen, 0, 1), shm::Steered::Done);
  shm::BreakerInfo info;
  ASSERT_TRUE(shm::read_breaker(w.view(), half.index, info));
  w.pass(info.word.deadline_ns - info.now_ns + 1);
  const shm::BreakerEntry probe = shm::enter_breaker(w.view(), half, {}, 0);
  ASSERT_TRUE(probe.granted);
  ASSERT_TRUE(shm::read_breaker(w.view(), half.index, info));
  ASSERT_EQ(info.word.state, rule::BreakerState::HalfOpen);
  w.look();
  w.pass(2 * kSecond);
  EXPECT_TRUE(w.look().empty()) << "its probe is out";
  shm::finish_breaker(w.view(), half, {}, probe.call, {.kind = shm::Ended::Cancelled});
  w.look();
  w.pass(1 * kSecond);

  const shm::UnusedPlaces unused = w.look();

  ASSERT_EQ(unused.breakers.size(), 1U) << "forced open is what somebody wants";
  EXPECT_EQ(unused.breakers[0].index, half.index);
  ASSERT_EQ(w.make_room(unused), "");
  EXPECT_EQ(w.breaker("dep-new").ref.index, half.index);
  EXPECT_TRUE(shm::enter_breaker(w.view(), w.breaker("dep-new").ref, {}, 0).granted);
  EXPECT_TRUE(shm::verify(w.view()).ok());
}

TEST(PatternIdle, AnOutcomeOfTheOldNameChangesNothing) {
  rule::BreakerSettings settings = count_breaker({4, 4, 1});
  settings.name = "dep-*";
  settings.max_instances = 1;
  settings.idle_ns = 1'000'000'000;
  PatternWorld w({}, {}, {settings});
  const shm::BreakerRef old = w.breaker("dep-old").ref;
  const shm::BreakerEntry call = shm::enter_breaker(w.view(), old, {}, 0);
  w.look();
  w.pass(1 * kSecond);
  ASSERT_EQ(w.make_room(w.look()), "");
  const shm::BreakerRef fresh = w.breaker("dep-new").ref;

  EXPECT_NE(shm::finish_breaker(w.view(), old, {}, call.call, {.kind = shm::Ended::Failure}),
            shm::Recorded::Counted);

  shm::BreakerInfo info;
  ASSERT_TRUE(shm::read_breaker(w.view(), fresh.index, info));
  EXPECT_EQ(info.window.calls, 0U);
}

TEST(PatternIdle, ALookHasABoundAndReachesAllPlacesInTurn) {
  const std::uint32_t many = shm::IdlePlaces::kPlacesAtOnce + 40;
  rule::BulkheadSettings settings = gates(many, 1);
  settings.idle_ns = 1'000'000'000;
  PatternWorld w({settings}, {.bulkheads = many + 1, .bulkhead_cells = many + 1});
  for (std::uint32_t i = 0; i < many; ++i) w.gate("bank-" + std::to_string(i));
  w.look();                                          // the first ones have an age ...
  w.pass(1 * kSecond);
  EXPECT_EQ(w.look().bulkheads.size(), shm::IdlePlaces::kPlacesAtOnce);
  w.look();                                          // ... and now all of them
  w.pass(1 * kSecond);
  const shm::UnusedPlaces unused = w.look();
  EXPECT_EQ(unused.bulkheads.size(), shm::IdlePlaces::kPlacesAtOnce);
  ASSERT_EQ(w.make_room(unused), "");
  EXPECT_FALSE(w.gate("bank-new").shared);
}

}  // namespace
}  // namespace cutwater::test
