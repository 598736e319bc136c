// SPDX-License-Identifier: Apache-2.0
// T3, T5: the races of first sight and of keys without a place, each in the one order that goes
// wrong when a guard is missing (tests/CONTROLS.md). In each, A or C stands still at a named stop
// while others decide. The proof is always the same: the slices of the token axis that one key was
// given are disjoint, so nobody gained a token (P1).
#include <gtest/gtest.h>

#include <algorithm>

#include "stress/actor.hpp"
#include "stress/world.hpp"

namespace cutwater::test {
namespace {

constexpr std::int64_t kClaimTick = std::int64_t{1} << shm::kClaimTickShift;

class ScheduleTest : public testing::Test {
 protected:
  void open(Rate rate, std::uint64_t burst) {
    world_ = std::make_unique<World>(std::vector{limit("api", rate, burst),
                                                 limit("fast", {1'000, kSecond}, 1),
                                                 limit("slow", {1, 10 * kHour}, 1)});
  }
  World& world() { return *world_; }

  // A key other than key(7) that looks for a place in exactly the same order.
  shm::KeyHash like(std::uint64_t number) {
    const shm::Place want = place_of(world().view(), key(7), 0);
    for (std::uint64_t n = 1'000'000;; ++n) {
      const shm::Place place = place_of(world().view(), key(n), 0);
      if (place.first == want.first && place.line == want.line && number-- == 0) return key(n);
    }
  }
  void grant(const DecisionData& d) {
    if (d.reason == Reason::Allowed) slices_.push_back({d.level - d.cost, d.level});
  }
  void take_all(shm::KeyHash hash, std::uint64_t cost = 1) {
    for (int i = 0; i < 100; ++i) {
      const DecisionData d = world().take("api", hash, cost);
      if (d.reason != Reason::Allowed) return;
      grant(d);
    }
  }
  void expect_disjoint() {
    std::sort(slices_.begin(), slices_.end());
    for (std::size_t i = 1; i < slices_.size(); ++i) {
      EXPECT_LE(slices_[i - 1].second, slices_[i].first) << "a token was given twice";
    }
    EXPECT_LE(world().members_of(key(7)), 1U);
    EXPECT_EQ(world().verify(), "");
  }

  std::unique_ptr<World> world_;
  std::vector<std::pair<std::int64_t, std::int64_t>> slices_;
};

// A chose a free slot; then an earlier slot of the scan became free, where B puts the same key.
class TwoPlaces : public ScheduleTest {
 protected:
  void SetUp() override {
    open({1, kSecond}, 1);
    world().take("fast", like(0));                 // first in the scan, in debt for 1 ms
  }
};

TEST_F(TwoPlaces, ASecondReadingStartsTheBucketOfTheLate) {
  DecisionData late;
  Actor a([&] { late = world().take("api", key(7)); });
  ASSERT_TRUE(a.run_to("insert.before_claim"));
  world().pass(kMillisecond);
  take_all(key(7));
  world().pass(kSecond);
  world().take("fast", like(1));                   // the full entry of B is replaced
  ASSERT_EQ(world().members_of(key(7)), 0U);

  a.finish();
  grant(late);
  take_all(key(7));

  EXPECT_EQ(late.reason, Reason::Allowed);
  EXPECT_EQ(slices_.size(), 2U);
  expect_disjoint();
}

TEST_F(TwoPlaces, TheLateLooksForTheKeyAgain) {
  DecisionData late;
  Actor a([&] { late = world().take("api", key(7)); });
  ASSERT_TRUE(a.run_to("insert.before_claim"));
  world().pass(kMillisecond);
  take_all(key(7));

  a.finish();
  grant(late);

  EXPECT_EQ(late.reason, Reason::Limit);
  expect_disjoint();
}

TEST_F(TwoPlaces, OfTwoClaimsTheLowerStays) {
  DecisionData first, second;
  Actor a([&] { first = world().take("api", key(7)); });
  ASSERT_TRUE(a.run_to("insert.before_claim"));
  world().pass(kMillisecond);
  Actor b([&] { second = world().take("api", key(7)); });
  ASSERT_TRUE(b.run_to("insert.before_claim"));

  a.run_to("insert.after_claim");
  b.run_to("insert.after_claim");
  ASSERT_EQ(world().claims_of(key(7)), 2U);
  a.run_to("insert.after_rescan");
  b.run_to("insert.after_rescan");
  a.finish();
  b.finish();
  grant(first);
  grant(second);

  EXPECT_EQ(slices_.size(), 1U);
  EXPECT_EQ(world().claims_of(key(7)), 0U);
  expect_disjoint();
}

TEST_F(ScheduleTest, AnExpiredClaimThatAnotherKeyTookIsNotPromoted) {
  open({1, kSecond}, 1);
  DecisionData late;
  Actor a([&] { late = world().take("api", key(7)); });
  ASSERT_TRUE(a.run_to("insert.before_promotion"));
  world().pass(3 * kClaimTick);
  ASSERT_EQ(world().take("api", like(0)).reason, Reason::Allowed);
  ASSERT_EQ(world().claims_of(key(7)), 0U);

  a.finish();

  EXPECT_EQ(world().take("api", like(0)).reason, Reason::Limit) << "its debt was forgotten";
  EXPECT_EQ(late.reason, Reason::Allowed);
}

TEST_F(ScheduleTest, NobodyPromotesAClaimThatOnlyLooksLikeHisOwn) {
  open({10'000'000, kSecond}, 1);                  // a token each 100 ns: all within one claim tick
  world().pass(kClaimTick - world().now() % kClaimTick);
  DecisionData late, third;
  Actor a([&] { late = world().take("api", key(7)); });
  ASSERT_TRUE(a.run_to("insert.before_promotion"));
  take_all(key(7));                                // B adopts A's claim
  ASSERT_EQ(slices_.size(), 1U);
  world().pass(100);
  world().take("api", like(0));                    // ... whose place somebody else gets
  ASSERT_EQ(world().members_of(key(7)), 0U);
  world().pass(100);
  Actor c([&] { third = world().take("api", key(7)); });
  ASSERT_TRUE(c.run_to("insert.after_claim"));     // the same slot, the same deadline
  ASSERT_EQ(world().claims_of(key(7)), 1U);

  a.finish();
  c.finish();
  grant(late);
  grant(third);

  expect_disjoint();
}

// No place for key(7) at the moment at which C looked, and a debt of others in the overflow word
// that still lies ahead of the clock.
class NoPlace : public ScheduleTest {
 protected:
  void crowd(Rate rate, std::uint64_t burst, std::uint64_t owed) {
    open(rate, burst);
    world().crowd("fast", 1, 1000);
    if (owed > 0) {
      ASSERT_TRUE(Decision{world().take("api", key(500), owed)}.overflow());
    }
  }
  void places_come() { world().pass(kMillisecond); }
};

TEST_F(NoPlace, AnInserterStartsWithWhatTheKeyOwesInTheOverflowWord) {
  crowd({1, kHour}, 3, 1);
  DecisionData charged, inserted;
  Actor c([&] { charged = world().take("api", key(7), 2); });
  ASSERT_TRUE(c.run_to("overflow.before_charge"));
  places_come();
  Actor a([&] { inserted = world().take("api", key(7)); });
  ASSERT_TRUE(a.run_to("insert.before_claim"));
  c.finish();
  ASSERT_EQ(charged.reason, Reason::Allowed);

  a.finish();
  grant(charged);
  grant(inserted);
  take_all(key(7));

  EXPECT_EQ(slices_.size(), 1U) << "2 of the overflow word, 1 of others: the burst of 3 is spent";
  expect_disjoint();
}

TEST_F(NoPlace, TheChargerLooksForTheKeyAgain) {
  crowd({1, kHour}, 3, 1);
  DecisionData charged;
  Actor c([&] { charged = world().take("api", key(7), 2); });
  ASSERT_TRUE(c.run_to("overflow.before_charge"));
  places_come();
  take_all(key(7));
  ASSERT_EQ(slices_.size(), 2U);

  c.finish();
  grant(charged);

  EXPECT_EQ(charged.reason, Reason::Limit);
  expect_disjoint();
}

TEST_F(NoPlace, TheChargerReadsTheClockAgain) {
  crowd({1, kSecond}, 1, 0);
  DecisionData charged;
  Actor c([&] { charged = world().take("api", key(7)); });
  ASSERT_TRUE(c.run_to("overflow.before_charge"));
  places_come();
  take_all(key(7));                                // made, spent ...
  world().pass(kSecond);
  world().take("fast", like(0));                   // ... full again and replaced
  ASSERT_EQ(world().members_of(key(7)), 0U);

  c.finish();
  grant(charged);
  take_all(key(7));

  EXPECT_EQ(slices_.size(), 2U);
  expect_disjoint();
}

TEST_F(NoPlace, TheChargerStartsOverAfterAReload) {
  crowd({1, kHour}, 2, 1);
  DecisionData charged;
  Actor c([&] { charged = world().take("api", key(7)); });
  ASSERT_TRUE(c.run_to("overflow.before_charge"));
  places_come();
  DecisionData inserted;
  Actor a([&] { inserted = world().take("api", key(7)); });
  ASSERT_TRUE(a.run_to("insert.before_promotion"));    // has read the overflow word
  c.run_to("overflow.after_charge");
  a.finish();
  grant(inserted);
  auto faster = limit("api", {16, kHour}, 2);
  world().publish({faster, limit("fast", {1'000, kSecond}, 1), limit("slow", {1, 10 * kHour}, 1)});
  world().pass(kHour / 8);                         // full again, by the new rate
  world().take("fast", like(0));
  ASSERT_EQ(world().members_of(key(7)), 0U);

  c.finish();
  grant(charged);
  take_all(key(7));

  expect_disjoint();
}

TEST_F(ScheduleTest, AReloadTakesEffectAheadOfEveryStampInUse) {
  open({1, kHour}, 10);
  world().take("api", key(7), 5);
  DecisionData late;
  Actor a([&] { late = world().take("api", key(7), 5); });
  ASSERT_TRUE(a.run_to("bucket.before_swap"));

  const auto report = world().publish({limit("api", {1, kHour}, 5)});
  a.finish();

  ASSERT_EQ(late.reason, Reason::Allowed);
  const std::int64_t burst = (late.t >= report.effective_ns ? 5LL : 10LL) << late.f;
  EXPECT_LE(late.level - late.n, burst) << "two rules for one stamp";
  EXPECT_EQ(world().drain("api", key(7)), 0U);
}

TEST_F(ScheduleTest, AStoppedCallerKeepsTheRulesOfItsStamp) {
  // Stopped before its swap through a reload and an hour: the old rule at the old stamp, and what
  // it was given is not given again.
  open({1, kHour}, 10);
  world().take("api", key(7), 5);
  DecisionData late;
  Actor a([&] { late = world().take("api", key(7), 5); });
  ASSERT_TRUE(a.run_to("bucket.before_swap"));
  world().publish({limit("api", {2, kHour}, 4)});
  world().pass(kHour);
  take_all(key(7));                                // 5 + 4 - 5 used + 2 come = 1 of 4

  a.finish();
  grant(late);

  expect_disjoint();
}

// A debt made by the new burst lies beyond what the old one could reach: it is no damage to repair.
TEST_F(ScheduleTest, AnOldReadingTakesNoHonestDebtForDamage) {
  open({1, kHour}, 2);
  take_all(key(7), 2);
  const std::int64_t old = world().now();
  world().publish({limit("api", {1, kHour}, 3)});
  take_all(key(7));
  ASSERT_EQ(slices_.size(), 2U);

  const DecisionData late = world().take_at(old, "api", key(7));
  grant(late);
  take_all(key(7));

  EXPECT_EQ(late.reason, Reason::Limit);
  EXPECT_EQ(slices_.size(), 2U);
  EXPECT_EQ(world().view().stats_control->damage, 0U);
  expect_disjoint();
}

// covers: C026 (ten stopped callers, the place reused)
TEST_F(ScheduleTest, TenStoppedCallersMintNothing) {
  // Burst 10, 1/s, drained at -5 s. Ten stand still at 0 between their reading and their swap, ten
  // more where they know of no entry; the place goes to another key at 5.001 s; all go on.
  open({1, kSecond}, 10);
  take_all(key(7));
  ASSERT_EQ(slices_.size(), 10U);
  world().pass(5 * kSecond);
  const std::int64_t begin = world().now();
  std::vector<DecisionData> answers(20);
  std::vector<std::unique_ptr<Actor>> actors;
  for (std::size_t i = 0; i < 10; ++i) {
    actors.push_back(std::make_unique<Actor>([&, i] { answers[i] = world().take("api", key(7)); }));
    ASSERT_TRUE(actors.back()->run_to("bucket.before_swap"));
  }
  world().pass(5 * kSecond + kMillisecond);
  world().take("fast", like(0));
  ASSERT_EQ(world().members_of(key(7)), 0U);
  for (std::size_t i = 10; i < 20; ++i) {
    actors.push_back(std::make_unique<Actor>([&, i] { answers[i] = world().take("api", key(7)); }));
    ASSERT_TRUE(actors.back()->run_to("insert.before_claim"));
  }

  for (auto& actor : actors) actor->finish();
  for (const DecisionData& d : answers) grant(d);

  const auto since = std::count_if(answers.begin(), answers.end(), [&](const DecisionData& d) {
    return d.reason == Reason::Allowed && d.t >= begin;
  });
  EXPECT_LE(since, 15);
  EXPECT_GE(since, 10);
  expect_disjoint();
}

// Every word of a publication: who asks meanwhile gets the old answers, of two limits alike, and
// after it the new ones. T8.
TEST_F(ScheduleTest, ReadersSeeTheOldRulesUntilAllIsThere) {
  const std::vector before{limit("a", {1, kHour}, 3), limit("b", {1, kHour}, 5)};
  const std::vector after{limit("a", {1, kHour}, 30), limit("b", {1, kHour}, 50)};
  world_ = std::make_unique<World>(before);
  const auto left = [&](const char* name) {
    return Decision{world().peek(name, key(7), 0)}.remaining();
  };
  std::uint64_t words = 0;
  Actor daemon([&] { world().publish(after); });

  while (daemon.run_to("publish.word")) {
    ++words;
    ASSERT_EQ(left("a"), 3U) << "after word " << words;
    ASSERT_EQ(left("b"), 5U) << "after word " << words;
  }

  EXPECT_GE(words, 20U);
  EXPECT_EQ(left("a"), 30U);
  EXPECT_EQ(left("b"), 50U);
  std::printf("looked after each of %lu words of a publication\n",
              static_cast<unsigned long>(words));
}

}  // namespace
}  // namespace cutwater::test
