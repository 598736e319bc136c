// SPDX-License-Identifier: Apache-2.0
// T11: races of what charges several words, each in the one order that goes wrong when a guard is
// missing (tests/CONTROLS.md).
#include <gtest/gtest.h>

#include "rule/decision_report.hpp"
#include "shm/limit/admit.hpp"
#include "stress/actor.hpp"
#include "stress/world.hpp"
#include "support/image_edit.hpp"

namespace cutwater::test {
namespace {

class AdmitSchedule : public testing::Test {
 protected:
  static ImageEdit::Window hourly(std::uint64_t burst) {
    return {.count = 1, .period_ns = kHour, .burst = burst};
  }
  static shm::AdmitAsk ask(shm::LimitRef limit, std::uint64_t cost = 1) {
    return {limit, {key(7), {}}, cost, 0};
  }
  DecisionData admit(shm::LimitRef limit, std::uint64_t cost = 1) {
    DecisionData out;
    EXPECT_EQ(shm::admit(world_.view(), ask(limit, cost), out), shm::Outcome::Answered);
    return out;
  }
  DecisionData admit_all(shm::LimitRef first, shm::LimitRef second) {
    const shm::AdmitAsk asks[] = {ask(first), ask(second)};
    shm::AdmitAnswer answer;
    EXPECT_EQ(shm::admit_all(world_.view(), asks, answer), shm::Outcome::Answered);
    return answer.verdict;
  }
  shm::BucketAsk window(shm::LimitRef limit, std::uint8_t number, std::uint64_t cost) {
    shm::BucketAsk one{.limit = limit, .key = key(7)};
    one.cost = cost;
    one.window = number;
    return one;
  }
  std::uint64_t left(shm::LimitRef limit, std::uint8_t number) {
    std::uint64_t hint = shm::kNoSlot;
    DecisionData out;
    EXPECT_EQ(shm::look(world_.view(), window(limit, number, 0), hint, out),
              shm::Outcome::Answered);
    return rule::report_of(out).remaining;
  }
  void take_window(shm::LimitRef limit, std::uint8_t number, std::uint64_t cost) {
    std::uint64_t hint = shm::kNoSlot;
    DecisionData out;
    EXPECT_EQ(shm::charge(world_.view(), window(limit, number, cost), hint, out),
              shm::Outcome::Answered);
    EXPECT_EQ(out.reason, Reason::Allowed);
  }

  World world_{{limit("plain", {1, kHour}, 1)}, {.limits = 6}};
  ImageEdit edit_{world_.view()};
};

TEST_F(AdmitSchedule, TheLoserOfAWindowGivesBackTheOthers) {
  const shm::LimitRef api = edit_.add_limit("api", {hourly(3), hourly(3)});
  DecisionData late;
  Actor a([&] { late = admit(api); });
  ASSERT_TRUE(a.run_to("admit.before_window"));
  ASSERT_TRUE(a.run_to("admit.before_window"));          // the first window is charged
  EXPECT_EQ(left(api, 0), 2U);
  take_window(api, 1, 3);

  a.finish();

  EXPECT_EQ(late.reason, Reason::Limit);
  EXPECT_EQ(late.window, 1);
  EXPECT_EQ(left(api, 0), 3U);
}

TEST_F(AdmitSchedule, TheLoserOfALimitGivesBackTheOthers) {
  const shm::LimitRef one = edit_.add_limit("one", {hourly(3)});
  const shm::LimitRef two = edit_.add_limit("two", {hourly(3)});
  DecisionData late;
  Actor a([&] { late = admit_all(one, two); });
  ASSERT_TRUE(a.run_to("admit_all.before_charge"));
  ASSERT_TRUE(a.run_to("admit_all.before_charge"));
  EXPECT_EQ(left(one, 0), 2U);
  EXPECT_EQ(admit(two, 3).reason, Reason::Allowed);

  a.finish();

  EXPECT_EQ(late.reason, Reason::Limit);
  EXPECT_EQ(left(one, 0), 3U);
}

// Overtaken between charge and undo: the token stays spent, and nobody gains one (L7).
TEST_F(AdmitSchedule, AnOvertakenRollBackLosesItsCostAndMintsNothing) {
  const shm::LimitRef api = edit_.add_limit("api", {hourly(3), hourly(3)});
  DecisionData late;
  Actor a([&] { late = admit(api); });
  ASSERT_TRUE(a.run_to("admit.before_window"));
  ASSERT_TRUE(a.run_to("admit.before_window"));
  take_window(api, 0, 1);                                // after a's charge
  take_window(api, 1, 3);

  a.finish();

  EXPECT_EQ(late.reason, Reason::Limit);
  EXPECT_EQ(left(api, 0), 1U);
}

// Both have looked; then both charge, their lists the other way round. The second meets the first
// at the limit that both charge first, and has written nothing when it loses.
TEST_F(AdmitSchedule, ListsTheOtherWayRoundMeetAtTheSameLimit) {
  const shm::LimitRef one = edit_.add_limit("one", {hourly(1)});
  const shm::LimitRef two = edit_.add_limit("two", {hourly(2)});
  EXPECT_EQ(admit(two).reason, Reason::Allowed);
  world_.pass(2 * kHour);                                // full; an undo would move its tat
  DecisionData first, second;
  Actor a([&] { first = admit_all(one, two); });
  ASSERT_TRUE(a.run_to("admit_all.before_charge"));
  Actor b([&] { second = admit_all(two, one); });
  ASSERT_TRUE(b.run_to("admit_all.before_charge"));
  ASSERT_TRUE(a.run_to("admit_all.before_charge"));      // has charged "one"
  const Snapshot before = world_.save();

  b.finish();

  EXPECT_EQ(second.reason, Reason::Limit);
  EXPECT_TRUE(world_.same(before));
  a.finish();
  EXPECT_EQ(first.reason, Reason::Allowed);
}

// Stopped between look and charge, then the rules change: decided anew by the new ones.
TEST_F(AdmitSchedule, AnOverrideThatComesInBetweenDecides) {
  const shm::LimitRef api = edit_.add_limit("api", {hourly(1), hourly(1)});
  DecisionData late;
  Actor a([&] { late = admit(api); });
  ASSERT_TRUE(a.run_to("admit.before_window"));
  edit_.add_override(api, key(7), edit_.add_set(api, {hourly(5), hourly(9)}));

  a.finish();

  EXPECT_EQ(late.reason, Reason::Allowed);
  EXPECT_EQ(rule::report_of(late).remaining, 4U);
  EXPECT_NE(late.notes & shm::kNoteOverridden, 0);
}

// A ban is looked for as soon as its entry may be there: bans_until comes first.
TEST_F(AdmitSchedule, ABanIsFoundAsSoonAsItsEntryIsThere) {
  const shm::LimitRef plain = world_.ref("plain");
  Actor owner([&] { (void)shm::ban(world_.view(), plain, key(7), world_.now() + kSecond); });
  ASSERT_TRUE(owner.run_to("ban.after_entry"));

  EXPECT_EQ(admit(plain).reason, Reason::Banned);
  owner.finish();
}

}  // namespace
}  // namespace cutwater::test
