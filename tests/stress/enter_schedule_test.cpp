// SPDX-License-Identifier: Apache-2.0
// Admission in one step against somebody who is faster between two of its steps, in the order each
// test writes down: all or none, and nothing left behind.
#include <gtest/gtest.h>

#include "stress/actor.hpp"
#include "stress/enter_world.hpp"

namespace cutwater::test {
namespace {

using shm::Ended;
using shm::EnterPart;
using shm::Steer;

class EnterSchedule : public testing::Test {
 protected:
  void expect_nothing_left(std::uint64_t one, std::uint64_t two) {
    EXPECT_EQ(w.bulkhead_info().in_use, 0U);
    EXPECT_EQ(w.tokens(0), one);
    EXPECT_EQ(w.tokens(1), two);
  }
  EnterWorld w{EnterSetup{}};
};

TEST_F(EnterSchedule, WhoLosesTheProbeGivesBackTokensAndPlace) {
  w.make_half_open();
  const auto slow = w.ask(0), fast = w.ask(1, {.bulkhead = false, .cost = {0, 0}});
  Actor actor([&] { w.begin(*slow); });
  ASSERT_TRUE(actor.run_to("enter.before_probe"));
  EXPECT_EQ(w.bulkhead_info().in_use, 1U);
  w.begin(*fast);
  ASSERT_TRUE(fast->granted());
  actor.finish();

  EXPECT_EQ(slow->answer.reason, Reason::Probing);
  EXPECT_EQ(slow->answer.part, EnterPart::Breaker);
  expect_nothing_left(2, 3);
}

TEST_F(EnterSchedule, WhoLosesTheTokensGivesBackThePlace) {
  const auto slow = w.ask(0);
  Actor actor([&] { w.begin(*slow); });
  ASSERT_TRUE(actor.run_to("enter.before_tokens"));
  w.world().drain("two", key(1));
  actor.finish();

  EXPECT_EQ(slow->answer.reason, Reason::Limit);
  EXPECT_EQ(slow->answer.part, EnterPart::Limit);
  expect_nothing_left(2, 0);
}

TEST_F(EnterSchedule, WhoLosesThePlaceTookNothing) {
  const auto slow = w.ask(0), fast = w.ask(1, {.breaker = false, .cost = {0, 0}});
  Actor actor([&] { w.begin(*slow); });
  ASSERT_TRUE(actor.run_to("enter.before_place"));
  w.begin(*fast);
  ASSERT_TRUE(fast->granted());
  actor.finish();

  EXPECT_EQ(slow->answer.reason, Reason::Full);
  EXPECT_EQ(slow->answer.part, EnterPart::Bulkhead);
  w.finish(*fast);
  expect_nothing_left(2, 3);
}

TEST_F(EnterSchedule, ABreakerThatOpensAfterTheFirstLookCostsNoToken) {
  const auto slow = w.ask(0);
  Actor actor([&] { w.begin(*slow); });
  ASSERT_TRUE(actor.run_to("enter.before_second_look"));
  w.steer(Steer::ToOpen, kHour);
  // With nothing charged and given back, not even the first sight of a key is left.
  const auto members = w.world().members_of(key(0));
  actor.finish();

  EXPECT_EQ(slow->answer.reason, Reason::Open);
  EXPECT_EQ(slow->answer.part, EnterPart::Breaker);
  EXPECT_EQ(w.world().members_of(key(0)), members);
  expect_nothing_left(2, 3);
}

TEST_F(EnterSchedule, SomebodyWhoChargedAfterItKeepsWhatItTook) {
  w.make_half_open();
  const auto slow = w.ask(0), fast = w.ask(1, {.bulkhead = false, .cost = {1, 0}});
  Actor actor([&] { w.begin(*slow); });
  ASSERT_TRUE(actor.run_to("enter.before_probe"));
  w.begin(*fast);                                    // the probe, and the last token of "one"
  ASSERT_TRUE(fast->granted());
  actor.finish();

  EXPECT_EQ(slow->answer.reason, Reason::Probing);
  // "one" was charged after it: exact undo is too late there, the token refills. "two" is back.
  expect_nothing_left(0, 3);
}

TEST_F(EnterSchedule, APlaceGivenBackOnTheWayGoesToTheNextInLine) {
  w.make_half_open();
  const auto slow = w.ask(0), fast = w.ask(1, {.bulkhead = false, .cost = {0, 0}});
  const auto next = w.ask(2, {.breaker = false, .cost = {0, 0}, .max_wait_ns = -1});
  Actor actor([&] { w.begin(*slow); });
  ASSERT_TRUE(actor.run_to("enter.before_probe"));
  w.begin(*fast);
  w.begin(*next);
  ASSERT_TRUE(next->waits());
  actor.finish();
  w.resume(*next);

  EXPECT_FALSE(slow->granted());
  EXPECT_TRUE(next->granted());
}

}  // namespace
}  // namespace cutwater::test
