// SPDX-License-Identifier: Apache-2.0
// T16: the races of a bulkhead, each in the one order that goes wrong when a guard is missing
// (tests/CONTROLS.md); the orders are those that the waiters model finds (tests/model). An actor
// that stands still at a stop is what a killed or stopped process leaves behind.
#include "shm/bulkhead/detail.hpp"
#include "stress/actor.hpp"
#include "stress/bulkhead_world.hpp"

namespace cutwater::test {
namespace {

using shm::BulkheadEntry;
using shm::Left;
using State = shm::LineLook::State;

constexpr std::int64_t kMs = kMillisecond;

TEST(BulkheadSchedule, WhoTakesCountsAllPlacesAfterwards) {
  BulkheadWorld w(bulkhead_of({2, 0, 8, 0}));
  ASSERT_TRUE(w.enter(1).granted);
  BulkheadEntry late;
  Actor a([&] { late = w.enter(0); });
  ASSERT_TRUE(a.run_to("bulkhead.before_take"));     // the other cell, under the limit of 2
  w.publish(bulkhead_of({1, 0, 8, 0}));

  a.finish();

  EXPECT_FALSE(late.granted);
  EXPECT_LE(w.in_use(), 1U);
}

TEST(BulkheadSchedule, TwoTakesOfOneCellAreTwoWords) {
  BulkheadWorld w(bulkhead_of({1, 0, 8, 0}));
  const BulkheadEntry first = w.enter(0);
  EXPECT_EQ(w.leave(first, 0), Left::Returned);
  const BulkheadEntry second = w.enter(0);           // the same process, the same cell
  ASSERT_TRUE(second.granted);

  EXPECT_EQ(w.leave(first, 0), Left::Stale);

  EXPECT_FALSE(w.enter(1).granted);
  EXPECT_EQ(w.leave(second, 0), Left::Returned);
}

TEST(BulkheadSchedule, WhoFreesLooksAtTheLineAfterwards) {
  BulkheadWorld w(waiting_bulkhead(1));
  const BulkheadEntry held = w.enter(0);
  Actor a([&] { w.leave(held, 0); });
  ASSERT_TRUE(a.run_to("bulkhead.before_free"));     // it saw a quiet line
  const auto joined = w.join(1);                     // and this one saw a full bulkhead
  ASSERT_TRUE(joined.joined);
  EXPECT_EQ(w.poll(joined, 1).state, State::Waiting);

  a.finish();

  EXPECT_EQ(w.poll(joined, 1).state, State::Granted);
}

TEST(BulkheadSchedule, WhoJoinsTheLineLooksForAPlaceAfterwards) {
  BulkheadWorld w(waiting_bulkhead(1));
  const BulkheadEntry held = w.enter(0);
  shm::JoinedLine joined;
  Actor a([&] { joined = w.join(1); });
  ASSERT_TRUE(a.run_to("bulkhead.before_arrival"));  // nobody can know of it yet
  EXPECT_EQ(w.leave(held, 0), Left::Returned);

  a.finish();

  EXPECT_EQ(w.poll(joined, 1).state, State::Granted);
}

TEST(BulkheadSchedule, WhoGivesUpPassesOnWhatWasHandedToIt) {
  BulkheadWorld w(waiting_bulkhead(1));
  const BulkheadEntry held = w.enter(0);
  const auto first = w.join(1, {100'000'000, 0});
  const auto second = w.join(2);
  w.pass(100 * kMs);
  Actor a([&] { static_cast<void>(w.poll(first, 1)); });
  // Its time is over and it is about to leave; in its record it is in time for 4 us yet.
  ASSERT_TRUE(a.run_to("bulkhead.before_leave_line"));
  EXPECT_EQ(w.leave(held, 0), Left::Returned);
  EXPECT_EQ(w.poll(second, 2).state, State::Waiting);

  a.finish();

  EXPECT_EQ(w.poll(second, 2).state, State::Granted);
}

TEST(BulkheadSchedule, WhoLeftTheLineBetweenScanAndHandOverGetsNothing) {
  BulkheadWorld w(waiting_bulkhead(1));
  const BulkheadEntry held = w.enter(0);
  const auto first = w.join(1), second = w.join(2);
  Actor a([&] { w.leave(held, 0); });
  ASSERT_TRUE(a.run_to("bulkhead.before_pass"));     // to the first, as it saw
  shm::leave_line(w.view(), w.ref(), w.caller(1), first.wait);

  a.finish();

  EXPECT_EQ(w.poll(second, 2).state, State::Granted);
}

TEST(BulkheadSchedule, WhatWasHandedToTheDeadIsFreeForAll) {
  BulkheadWorld w(waiting_bulkhead(1));
  const BulkheadEntry held = w.enter(0);
  const auto joined = w.join(1);
  ASSERT_TRUE(joined.joined);
  EXPECT_EQ(w.leave(held, 0), Left::Returned);       // handed to 1
  w.kill(1);                                         // and no tick comes

  EXPECT_TRUE(w.enter(2).granted);
}

TEST(BulkheadSchedule, ALineIsMadeQuietOnlyAsItWasRead) {
  BulkheadWorld w(waiting_bulkhead(1));
  const BulkheadEntry held = w.enter(0);
  const auto gone = w.join(3);
  shm::leave_line(w.view(), w.ref(), w.caller(3), gone.wait);
  Actor a([&] { w.leave(held, 0); });
  ASSERT_TRUE(a.run_to("bulkhead.before_quiet"));    // nobody waited when it looked
  const auto joined = w.join(1);
  EXPECT_EQ(w.poll(joined, 1).state, State::Waiting);

  a.finish();

  EXPECT_EQ(w.poll(joined, 1).state, State::Granted);
}

TEST(BulkheadSchedule, ANewcomerDoesNotPassThoseInLine) {
  BulkheadWorld w(waiting_bulkhead(1));
  const BulkheadEntry held = w.enter(0);
  const auto joined = w.join(1);
  ASSERT_TRUE(joined.joined);
  Actor a([&] { w.leave(held, 0); });
  ASSERT_TRUE(a.run_to("bulkhead.before_pass"));
  w.kill(0);                                         // the holder, in the middle of it
  // Its cell is freed by the reaper, who is killed before it serves.
  Actor reaper([&] { w.tick(); });
  ASSERT_TRUE(reaper.run_to("bulkhead.before_tick_serves"));

  EXPECT_FALSE(w.enter(2).granted);

  EXPECT_EQ(w.poll(joined, 1).state, State::Granted);
}

// ---- what the guards together must give ---------------------------------------------------------

TEST(BulkheadSchedule, AHandOverWithoutAWakeIsFoundByTheNextLook) {
  BulkheadWorld w(waiting_bulkhead(1));
  const BulkheadEntry held = w.enter(0);
  const auto joined = w.join(1);
  const auto before = w.poll(joined, 1);
  Actor a([&] { w.leave(held, 0); });
  ASSERT_TRUE(a.run_to("bulkhead.before_wake"));     // stopped before it woke anybody
  EXPECT_EQ(*shm::line_futex(w.view(), w.ref(), joined.wait), before.seen);
  shm::sleep_in_line(w.view(), w.ref(), w.caller(1), joined.wait, before);   // ends by itself
  EXPECT_EQ(w.poll(joined, 1).state, State::Granted);
}

TEST(BulkheadSchedule, WhoWasHandedTwoPlacesKeepsOne) {
  BulkheadWorld w(waiting_bulkhead(2));
  const BulkheadEntry one = w.enter(0), two = w.enter(1);
  const auto first = w.join(2), second = w.join(3);
  Actor a([&] { w.leave(one, 0); });
  ASSERT_TRUE(a.run_to("bulkhead.before_pass"));     // both see the first without a place
  Actor b([&] { w.leave(two, 1); });
  ASSERT_TRUE(b.run_to("bulkhead.before_pass"));
  a.finish();
  b.finish();
  EXPECT_EQ(w.poll(first, 2).state, State::Granted);
  EXPECT_EQ(w.poll(second, 3).state, State::Granted);
  EXPECT_EQ(w.in_use(), 2U);
}

TEST(BulkheadSchedule, AStoppedWaiterPastItsTimeClosesNothing) {
  BulkheadWorld w(waiting_bulkhead(1));
  const BulkheadEntry held = w.enter(0);
  const auto stopped = w.join(1);                    // and never looks again
  ASSERT_TRUE(stopped.joined);
  w.pass(2 * kSecond);
  EXPECT_EQ(w.leave(held, 0), Left::Returned);
  for (int i = 0; i < 3; ++i) {
    const BulkheadEntry entry = w.enter(2);
    ASSERT_TRUE(entry.granted);
    EXPECT_EQ(w.leave(entry, 2), Left::Returned);
  }
}

TEST(BulkheadSchedule, AClaimOfTheDeadIsEmptiedByTheTick) {
  BulkheadWorld w(bulkhead_of({1, 1'000'000'000, 1, 0}));
  static_cast<void>(w.enter(0));
  Actor a([&] { static_cast<void>(w.join(1)); });
  ASSERT_TRUE(a.run_to("bulkhead.claimed"));
  EXPECT_FALSE(w.join(2).joined);                    // the only record is claimed
  w.kill(1);
  EXPECT_EQ(w.tick().left_line, 1U);
  EXPECT_TRUE(w.join(2).joined);
}

TEST(BulkheadSchedule, TheStoppedKeepsItsPlaceUntilMaxHold) {
  BulkheadWorld w(bulkhead_of({1, 0, 8, 300'000'000}));
  const BulkheadEntry held = w.enter(0);
  w.pass(299 * kMs);
  EXPECT_EQ(w.tick().revoked, 0U);
  EXPECT_FALSE(w.enter(1).granted);
  w.pass(2 * kMs);
  EXPECT_EQ(w.tick().revoked, 1U);
  EXPECT_TRUE(w.enter(1).granted);
  EXPECT_EQ(w.leave(held, 0), Left::Stale);
}

}  // namespace
}  // namespace cutwater::test
