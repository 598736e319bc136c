// SPDX-License-Identifier: Apache-2.0
// The oracle itself, against the vectors every way of asking must reproduce (V01-V47), and against
// the definition of its answers: a nanosecond earlier is too early, an undo never gives back a used
// token.
#include "support/exact_limiter.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <random>
#include <vector>

namespace cutwater::test {
namespace {

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kSecond = 1000 * kMs;
constexpr std::int64_t kNever = -1;

// One row: at `at_ms` take `cost`; what must come back. Durations in ms, rounded up; times: how
// often the same question is asked with the same answer.
struct Row {
  const char* id;
  std::uint64_t at_ms;
  std::uint64_t cost;
  bool allowed;
  std::uint64_t remaining;
  std::int64_t retry_ms;
  std::uint64_t reset_ms;
  int times = 1;
};

std::uint64_t up_to_ms(std::uint64_t ns) { return (ns + kMs - 1) / kMs; }

void play(ExactBucket bucket, const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    for (int i = 0; i < row.times; ++i) {
      SCOPED_TRACE(row.id);
      const ExactAnswer looked = bucket.peek(row.at_ms * kMs, row.cost);

      const ExactAnswer answer = bucket.take(row.at_ms * kMs, row.cost);

      EXPECT_EQ(answer.allowed, row.allowed);
      EXPECT_EQ(answer.remaining, row.remaining);
      ASSERT_EQ(answer.retry_after_ns.has_value(), row.retry_ms != kNever);
      if (answer.retry_after_ns) {
        EXPECT_EQ(up_to_ms(*answer.retry_after_ns), static_cast<std::uint64_t>(row.retry_ms));
      }
      EXPECT_EQ(up_to_ms(answer.reset_after_ns), row.reset_ms);
      EXPECT_EQ(looked.allowed, answer.allowed);
      EXPECT_EQ(looked.retry_after_ns, answer.retry_after_ns);
    }
  }
}

TEST(ExactBucket, AnswersTheTableOfOnePerSecondBurstFive) {
  play(ExactBucket(1, kSecond, 5), {
      {"V01", 0, 6, false, 5, kNever, 0},
      {"V02", 0, 1, true, 4, 0, 1000},
      {"V03", 0, 1, true, 3, 0, 2000},
      {"V04", 0, 1, true, 2, 0, 3000},
      {"V05", 0, 1, true, 1, 0, 4000},
      {"V06", 0, 1, true, 0, 0, 5000},
      {"V07", 0, 1, false, 0, 1000, 5000},
      {"V08", 3000, 1, true, 2, 0, 3000},
      {"V09", 3100, 1, true, 1, 0, 3900},
      {"V10", 4000, 1, true, 1, 0, 4000},
      {"V11", 8000, 1, true, 4, 0, 1000},
      {"V12", 9500, 1, true, 4, 0, 1000},
      {"V13", 9500, 0, true, 4, 0, 1000},
      {"V14", 9500, 2, true, 2, 0, 3000},
      {"V15", 9500, 5, false, 2, 3000, 3000},
  });
}

TEST(ExactBucket, AnswersTheTableOfThirtyPerMinuteBurstSixteen) {
  play(ExactBucket(30, 60 * kSecond, 16), {
      {"V16", 0, 1, true, 15, 0, 2000},
      {"V17", 0, 15, true, 0, 0, 32000},
      {"V18", 0, 1, false, 0, 2000, 32000},
      {"V19", 1999, 1, false, 0, 1, 30001},
      {"V20", 2000, 1, true, 0, 0, 32000},
      {"V21", 34000, 0, true, 16, 0, 0},
      {"V22", 34001, 16, true, 0, 0, 32000},
  });
}

TEST(ExactBucket, AnswersTheTablesOfMinimalSpacing) {
  play(ExactBucket(1, 2 * kSecond, 1), {
      {"V23", 0, 1, true, 0, 0, 2000},
      {"V24", 0, 1, false, 0, 2000, 2000},
      {"V25", 1999, 1, false, 0, 1, 1},
      {"V26", 2000, 1, true, 0, 0, 2000},
      {"V27", 10000, 1, true, 0, 0, 2000},
      {"V28", 10000, 1, false, 0, 2000, 2000},
  });
  play(ExactBucket(1, 60 * kSecond, 1), {
      {"V29", 0, 1, true, 0, 0, 60000},
      {"V30", 1, 1, false, 0, 59999, 59999, 999},
  });
}

TEST(ExactBucket, AnswersTheTableOfARateThatDividesNothing) {
  play(ExactBucket(7, kSecond, 2), {
      {"V31", 0, 1, true, 1, 0, 143},
      {"V32", 0, 1, true, 0, 0, 286},
      {"V33", 0, 1, false, 0, 143, 286},
      {"V34", 142, 1, false, 0, 1, 144},
      {"V35", 143, 1, true, 0, 0, 286},
  });
}

TEST(ExactBucket, AnswersTheTableOfCosts) {
  play(ExactBucket(1, kSecond, 10), {
      {"V41", 0, 7, true, 3, 0, 7000},
      {"V42", 0, 4, false, 3, 1000, 7000},
      {"V43", 0, 3, true, 0, 0, 10000},
      {"V44", 0, 11, false, 0, kNever, 10000},
      {"V45", 2500, 2, true, 0, 0, 9500},
      {"V46", 2500, 1, false, 0, 500, 9500},
  });
  play(ExactBucket(1, kSecond, 10), {{"V47", 0, 10, true, 0, 0, 10000}});
}

TEST(ExactBucket, RoundsOnlyItsAnswersAndAlwaysUp) {
  ExactBucket bucket(7, kSecond, 2);
  ASSERT_TRUE(bucket.take(0, 2).allowed);

  EXPECT_EQ(bucket.retry_after_ns(0, 1), 142'857'143u);   // 142 857 142.857..
  EXPECT_EQ(bucket.reset_after_ns(0), 285'714'286u);      // 285 714 285.714..
  EXPECT_FALSE(bucket.peek(142'857'142, 1).allowed);
  EXPECT_TRUE(bucket.peek(142'857'143, 1).allowed);

  // A year of such refills: an error of a fraction of a nanosecond per token would have grown to
  // 0.2 s.
  constexpr std::uint64_t kYear = 365ull * 86400 * kSecond;
  std::uint64_t admitted = 0;
  for (std::uint64_t now = 0; now < kYear; now += 3600 * kSecond) {
    while (bucket.take(now, 1).allowed) ++admitted;
  }
  EXPECT_EQ(admitted, 2u * (365 * 24 - 1));
}

TEST(ExactBucket, RetryAndResetAreTheFirstNanosecondThatWorks) {
  constexpr std::uint64_t kSeed = 20240611;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937_64 random(kSeed);
  int refusals = 0;
  for (int round = 0; round < 20000; ++round) {
    const std::uint64_t burst = 1 + random() % 1000;
    ExactBucket bucket(1 + random() % 9'999'991, 1000 + random() % (90 * kSecond), burst);
    const std::uint64_t start = random() % (1ull << 58);
    bucket.take(start, 1 + random() % burst);
    bucket.take(start, 1 + random() % burst);
    const std::uint64_t now = start + random() % (2 * (1 + bucket.reset_after_ns(start)));
    const std::uint64_t cost = 1 + random() % burst;

    const ExactAnswer answer = bucket.peek(now, cost);
    const std::uint64_t wait = answer.retry_after_ns.value();

    EXPECT_EQ(answer.allowed, wait == 0);
    EXPECT_TRUE(bucket.peek(now + wait, cost).allowed);
    if (wait > 0) {
      EXPECT_FALSE(bucket.peek(now + wait - 1, cost).allowed);
      ++refusals;
    }
    EXPECT_EQ(bucket.remaining(now + answer.reset_after_ns), burst);
    if (answer.reset_after_ns > 0) {
      EXPECT_LT(bucket.remaining(now + answer.reset_after_ns - 1), burst);
    }
    EXPECT_EQ(bucket.retry_after_ns(now, answer.remaining), 0u);
    EXPECT_NE(bucket.retry_after_ns(now, answer.remaining + 1), 0u);
  }
  EXPECT_GT(refusals, 1000);
}

TEST(ExactBucket, StartsWithTheInitialTokensAndFillsFromItsCreation) {
  ExactBucket empty(ExactPolicy{.rate_count = 1, .period_ns = kSecond, .burst = 10, .initial = 0,
                                .created_ns = 5 * kSecond});
  ExactBucket four(1, kSecond, 10, 4);

  EXPECT_EQ(empty.remaining(5 * kSecond), 0u);
  EXPECT_EQ(empty.retry_after_ns(5 * kSecond, 1), kSecond);
  EXPECT_EQ(empty.reset_after_ns(5 * kSecond), 10 * kSecond);
  EXPECT_EQ(empty.remaining(8 * kSecond), 3u);
  EXPECT_EQ(four.remaining(0), 4u);
  EXPECT_EQ(four.retry_after_ns(0, 5), kSecond);
}

TEST(ExactBucket, UndoGivesBackExactlyUnlessSomebodyChargedAfter) {
  ExactBucket bucket(1, kSecond, 10);
  const ExactReceipt first = bucket.take(0, 4).receipt;
  const ExactReceipt second = bucket.take(0, 2).receipt;

  EXPECT_FALSE(bucket.undo(first));
  EXPECT_EQ(bucket.remaining(0), 4u);
  EXPECT_TRUE(bucket.undo(second));
  EXPECT_EQ(bucket.remaining(0), 6u);
  EXPECT_TRUE(bucket.undo(first));
  EXPECT_EQ(bucket.remaining(0), 10u);
  EXPECT_FALSE(bucket.undo(first));
}

TEST(ExactBucket, UndoAfterALaterChargeWouldHandOutATokenTwice) {
  ExactBucket bucket(1, kSecond, 10);
  const ExactReceipt early = bucket.take(0, 3).receipt;
  ASSERT_TRUE(bucket.take(10 * kSecond, 10).allowed);

  EXPECT_FALSE(bucket.undo(early));
  EXPECT_EQ(bucket.retry_after_ns(10 * kSecond, 1), kSecond);
}

TEST(ExactBucket, UndoOfAHalfRefilledChargeNeverExceedsTheBurst) {
  ExactBucket bucket(1, kSecond, 10);
  const ExactReceipt all = bucket.take(0, 10).receipt;

  EXPECT_TRUE(bucket.undo(all));
  EXPECT_EQ(bucket.remaining(4 * kSecond), 10u);
  EXPECT_FALSE(bucket.peek(4 * kSecond, 11).allowed);
}

TEST(ExactBucket, ALookChangesNothingAndHasNothingToUndo) {
  ExactBucket bucket(1, kSecond, 5, 2);

  const ExactAnswer look = bucket.take(0, 0);

  EXPECT_TRUE(look.allowed);
  EXPECT_FALSE(bucket.undo(look.receipt));
  EXPECT_EQ(bucket.remaining(0), 2u);
}

TEST(ExactBucket, TimeThatGoesBackwardsMintsNothing) {
  ExactBucket bucket(1, kSecond, 5);
  ASSERT_TRUE(bucket.take(10 * kSecond, 5).allowed);

  EXPECT_FALSE(bucket.take(3 * kSecond, 1).allowed);
  EXPECT_EQ(bucket.remaining(3 * kSecond), 0u);
  EXPECT_EQ(bucket.remaining(10 * kSecond), 0u);
  EXPECT_EQ(bucket.remaining(11 * kSecond), 1u);
}

}  // namespace
}  // namespace cutwater::test
