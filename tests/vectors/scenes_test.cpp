// SPDX-License-Identifier: Apache-2.0
// Scenes of several steps, over every way. Others count in cycles that begin anew: what they get
// wrong is written beside the number we give.
#include "shm/limit/rule_reader.hpp"
#include "shm/limit/rule_writer.hpp"
#include "vectors/every_way.hpp"

namespace cutwater::test {
namespace {

class Scenes : public EveryWay {
 protected:
  std::uint64_t admitted_of(int calls) {
    std::uint64_t admitted = 0;
    for (int i = 0; i < calls; ++i) admitted += limit().try_acquire("k").allowed() ? 1 : 0;
    return admitted;
  }
  Decision wait(std::uint64_t cost, Nanos longest) {
    return limit().reserve("k", {.cost = cost, .max_wait = longest});
  }
};

INSTANTIATE_TEST_SUITE_P(Ways, Scenes, ::testing::ValuesIn(every_way()), way_name);

// Cycles of a second would give 10 more at 1000: 20 within a millisecond.
TEST_P(Scenes, S54NoSecondBurstAtTheEdgeOfASecond) {
  ASSERT_NO_FATAL_FAILURE(start("api: {rate: 10/s, burst: 10}"));
  at(999ms);
  EXPECT_EQ(admitted_of(20), 10U);
  at(1000ms);
  EXPECT_EQ(admitted_of(20), 0U);
  EXPECT_EQ(limit().try_acquire("k").retry_after(), 99ms);
  at(1099ms - 1ns);
  EXPECT_EQ(admitted_of(1), 0U);
  at(1099ms);
  EXPECT_EQ(admitted_of(2), 1U);
}

// Cycles would let the four begin at 1000.
TEST_P(Scenes, S55PlacesInLineBeyondAnEmptyBucket) {
  ASSERT_NO_FATAL_FAILURE(start("api: {rate: 10/s, burst: 10}"));

  const Decision ten = wait(10, 5s), four = wait(4, 5s);

  EXPECT_TRUE(ten.allowed());
  EXPECT_EQ(ten.starts_in(), 0ns);
  EXPECT_TRUE(four.allowed());
  EXPECT_EQ(four.starts_in(), 400ms);
  EXPECT_EQ(four.remaining(), 0U);
  EXPECT_EQ(four.reset_after(), 1400ms) << "a balance of -4";
  EXPECT_EQ(limit().peek("k").retry_after(), 500ms);
}

// Cycles would answer 2000: in two of them the tokens are there, but never at once.
TEST_P(Scenes, S57MoreThanTheBurstCannotStandInLine) {
  ASSERT_NO_FATAL_FAILURE(start("api: {rate: 10/s, burst: 10}"));

  const Decision reserved = wait(25, 5s);
  const Decision waited = limit().acquire("k", {.cost = 25, .max_wait = 5s});

  EXPECT_EQ(reserved.reason(), Reason::Never);
  EXPECT_EQ(reserved.retry_after(), kNever);
  EXPECT_EQ(waited.reason(), Reason::Never);
  EXPECT_EQ(limit().peek("k", 0).remaining(), 10U) << "nothing was taken";
}

TEST_P(Scenes, S65ARaisedRateKeepsWhatAccruedBeforeIt) {
  ASSERT_NO_FATAL_FAILURE(start("api: {rate: 10/s, burst: 10}"));
  ASSERT_EQ(limit().try_acquire("k", 10).remaining(), 0U);
  at(500ms - 1ns);
  ASSERT_EQ(limit().peek("k", 0).remaining(), 4U);

  ASSERT_NO_FATAL_FAILURE(reload("api: {rate: 20/s, burst: 10}"));

  const Decision then = limit().peek("k", 6);
  EXPECT_EQ(then.remaining(), 5U) << "5 tokens stay 5";
  EXPECT_EQ(then.retry_after(), 50ms) << "the sixth at the new rate";
  EXPECT_EQ(then.reset_after(), 250ms);
  at(750ms - 1ns);
  EXPECT_EQ(limit().peek("k", 0).remaining(), 9U);
  at(750ms);
  EXPECT_EQ(limit().peek("k", 0).remaining(), 10U);
}

// The same published at 400 for 500, as on a real clock: until then everybody, with the old image
// or the new one, counts by the old rate, and from then on by the new.
// covers: S65 (pure)
TEST(ScenesOfRules, S65APublishedChangeWaitsForItsMoment) {
  rule::LimitSettings slow;
  slow.windows.resize(1);
  slow.name = "api";
  slow.windows[0].rate_count = 10;
  slow.windows[0].rate_period_ns = 1'000'000'000;
  slow.windows[0].burst = 10;
  rule::LimitSettings fast = slow;
  fast.windows[0].rate_count = 20;
  constexpr std::int64_t kZero = 1'000'000'000, kMs = 1'000'000, kMoment = kZero + 500 * kMs;
  const auto n_at = [](const shm::RuleRecord& record, std::int64_t t) {
    return rule::units_at(shm::read_piece_at(record, t), t);
  };
  const shm::RuleRecord old =
      shm::fresh_rule(shm::wish_of(slow, slow.windows[0]), {}, kZero, 0, {}).value();

  const shm::RuleRecord changed =
      shm::changed_rule(old, shm::wish_of(fast, fast.windows[0]), rule::OnChange::KeepUsed,
                        n_at(old, kMoment), kMoment);

  const rule::Units one = rule::Units{1} << old.f;
  ASSERT_EQ(changed.f, old.f);
  for (const std::int64_t t : {kZero + 400 * kMs, kMoment - kMs, kMoment - 1, kMoment}) {
    EXPECT_EQ(n_at(changed, t), n_at(old, t)) << t;
  }
  EXPECT_EQ(n_at(changed, kMoment), 5 * one);
  EXPECT_EQ(n_at(changed, kMoment + 250 * kMs), 10 * one);
  EXPECT_LT(n_at(changed, kMoment + 250 * kMs - 1), 10 * one);
}

}  // namespace
}  // namespace cutwater::test
