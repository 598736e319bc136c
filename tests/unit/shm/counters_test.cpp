// SPDX-License-Identifier: Apache-2.0
// Stripes: one writer each, sums that never fall, given back by
// thread exit and by the reap of a row.
#include "shm/counters.hpp"

#include "shm/process_table.hpp"
#include "shm/stripe_life.hpp"
#include "shm/verify.hpp"

#include <sys/wait.h>

#include <csignal>
#include <thread>

#include "unit/shm/memory_support.hpp"

namespace cutwater::shm {
namespace {

constexpr std::uint64_t kRounds = 20'000;

constexpr StripeOwnerWord owner(std::uint32_t row, std::uint32_t generation, std::uint64_t thread) {
  return {std::uint64_t{row} << 32 | generation, thread};
}

class CountersTest : public testing::Test {
 protected:
  CountersTest() : segment_(Segment::create_private(test::small_options())) {}
  const View& view() const { return segment_->view(); }
  std::uint64_t allowed(std::uint32_t limit) const { return sum_counters(view(), limit)[0]; }

  Result<Segment> segment_;   // two stripes besides the shared one
};

TEST_F(CountersTest, EachCounterOfEachLimitHasItsOwnPlace) {
  const StripeHandle stripe = claim_stripe(view(), owner(2, 1, 1));
  for (std::uint32_t limit = 0; limit < view().limit_count; ++limit) {
    for (std::uint32_t i = 0; i < kLimitCounters; ++i) {
      stripe.add(limit, static_cast<LimitCounter>(i), 100 * limit + i + 1);
    }
  }

  for (std::uint32_t limit = 0; limit < view().limit_count; ++limit) {
    for (std::uint32_t i = 0; i < kLimitCounters; ++i) {
      EXPECT_EQ(sum_counters(view(), limit)[i], 100 * limit + i + 1);
    }
  }
}

TEST_F(CountersTest, TwoThreadsNeverGetOneStripe) {
  const StripeHandle a = claim_stripe(view(), owner(2, 1, 1));
  const StripeHandle b = claim_stripe(view(), owner(2, 1, 2));

  EXPECT_FALSE(a.shared);
  EXPECT_FALSE(b.shared);
  EXPECT_NE(a.counters, b.counters);
  EXPECT_EQ(stripes_in_use(view()), 2U);
}

TEST_F(CountersTest, WhoComesTooLateSharesStripeZero) {
  (void)claim_stripe(view(), owner(2, 1, 1));
  (void)claim_stripe(view(), owner(2, 1, 2));

  const StripeHandle late = claim_stripe(view(), owner(3, 1, 1));

  EXPECT_TRUE(late.shared);
  EXPECT_EQ(late.counters, shared_stripe(view()).counters);
  EXPECT_EQ(stripes_in_use(view()), 2U);
}

TEST_F(CountersTest, WithoutARowThereIsNoStripe) {
  EXPECT_TRUE(claim_stripe(view(), {0, 5}).shared);
  EXPECT_EQ(stripes_in_use(view()), 0U);
}

TEST_F(CountersTest, ManyThreadsOnTheSharedStripeLoseNothing) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      const StripeHandle stripe = shared_stripe(view());
      for (std::uint64_t n = 0; n < kRounds; ++n) stripe.add(1, LimitCounter::Allowed, 1);
    });
  }
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(allowed(1), 4 * kRounds);
}

// T22: threads come and go, more of them than stripes; the sum is what they counted.
TEST_F(CountersTest, TheSumIsWhatWasCountedThroughThreadExits) {
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (std::uint64_t life = 0; life < 50; ++life) {
        const StripeOwnerWord self = owner(2, 1, 1 + i * 50 + life);
        const StripeHandle stripe = claim_stripe(view(), self);
        for (std::uint64_t n = 0; n < kRounds / 50; ++n) stripe.add(2, LimitCounter::Allowed, 1);
        release_stripe(view(), self);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(allowed(2), 4 * kRounds);
  EXPECT_EQ(stripes_in_use(view()), 0U);
}

TEST_F(CountersTest, ANewOwnerGoesOnFromWhatItFinds) {
  const StripeHandle first = claim_stripe(view(), owner(2, 1, 1));
  first.add(0, LimitCounter::Allowed, 40);
  release_stripe(view(), owner(2, 1, 1));

  const StripeHandle second = claim_stripe(view(), owner(3, 1, 1));
  second.add(0, LimitCounter::Allowed, 2);

  EXPECT_EQ(second.counters, first.counters);
  EXPECT_EQ(allowed(0), 42U);
}

TEST_F(CountersTest, OnlyTheOwnerGivesAStripeBack) {
  (void)claim_stripe(view(), owner(2, 1, 1));

  release_stripe(view(), owner(2, 1, 2));
  release_stripe(view(), owner(2, 2, 1));
  release_stripe(view(), {});

  EXPECT_EQ(stripes_in_use(view()), 1U);
}

TEST_F(CountersTest, TheReapOfARowFreesItsStripesOnly) {
  (void)claim_stripe(view(), owner(2, 7, 1));
  (void)claim_stripe(view(), owner(3, 7, 1));

  EXPECT_EQ(release_stripes_of(view(), 2, 6), 0U);   // an older life of the row
  EXPECT_EQ(release_stripes_of(view(), 2, 7), 1U);
  EXPECT_EQ(stripes_in_use(view()), 1U);
  EXPECT_EQ(release_stripes_of(view(), 3, 7), 1U);
}

TEST_F(CountersTest, AKilledProcessLosesNothingItHadCounted) {
  const pid_t child = fork();
  if (child == 0) {
    const StripeHandle stripe = claim_stripe(view(), owner(2, 1, 1));
    for (std::uint64_t n = 0; n < kRounds; ++n) stripe.add(3, LimitCounter::Allowed, 1);
    raise(SIGKILL);
  }
  ASSERT_EQ(waitpid(child, nullptr, 0), child);

  EXPECT_EQ(allowed(3), kRounds);
  EXPECT_EQ(stripes_in_use(view()), 1U);
  EXPECT_EQ(release_stripes_of(view(), 2, 1), 1U);
  EXPECT_EQ(allowed(3), kRounds);
}

TEST_F(CountersTest, ALimitOutOfRangeCountsNothing) {
  EXPECT_EQ(sum_counters(view(), view().limit_count)[0], 0U);
}

/// Rows 2 and 3 live, generation 1.
class StripeLife : public CountersTest {
 protected:
  StripeLife() : rows_(view(), true) {
    for (int i = 0; i < 2; ++i) grants_.push_back(*rows_.grant({.pid = 4711, .name = "test"}));
  }
  StripeOwnerWord owner_of(RowGrant row, std::uint64_t thread = 1) const {
    return owner(row.index, row.generation, thread);
  }
  void end(RowGrant row) {
    rows_.mark_dead(row);
    release_stripes_of(view(), row.index, row.generation);
    rows_.free(row);
  }
  RowTable rows_;
  std::vector<RowGrant> grants_;
};

TEST_F(StripeLife, AClaimForALifeThatIsOverIsGivenBack) {
  EXPECT_FALSE(claim_living_stripe(view(), owner_of(grants_[0])).shared);
  EXPECT_EQ(stripes_in_use(view()), 1U);
  end(grants_[0]);
  EXPECT_EQ(stripes_in_use(view()), 0U);

  EXPECT_TRUE(claim_living_stripe(view(), owner_of(grants_[0], 2)).shared);

  EXPECT_EQ(stripes_in_use(view()), 0U);
  EXPECT_TRUE(verify(view()).findings.empty());
}

TEST_F(StripeLife, AClaimForADeadRowIsGivenBackThoughItsReaperHasLooked) {
  rows_.mark_dead(grants_[0]);
  release_stripes_of(view(), grants_[0].index, grants_[0].generation);

  EXPECT_TRUE(claim_living_stripe(view(), owner_of(grants_[0])).shared);

  EXPECT_EQ(stripes_in_use(view()), 0U);
}

TEST_F(StripeLife, WhatAKilledClaimLeftIsFoundAndOnlyThat) {
  end(grants_[0]);
  claim_stripe(view(), owner_of(grants_[0])).add(0, LimitCounter::Allowed, 3);   // killed here
  ASSERT_FALSE(claim_living_stripe(view(), owner_of(grants_[1])).shared);
  EXPECT_EQ(verify(view()).findings_total, 1U);

  EXPECT_EQ(release_stripes_of_the_over(view()), 1U);
  EXPECT_EQ(release_stripes_of_the_over(view()), 0U);

  EXPECT_EQ(stripes_in_use(view()), 1U);
  EXPECT_EQ(allowed(0), 3U) << "what was counted stays";
  rows_.mark_dead(grants_[1]);
  EXPECT_EQ(release_stripes_of_the_over(view()), 0U) << "a DEAD row's are its reaper's";
  EXPECT_TRUE(verify(view()).findings.empty());
}

}  // namespace
}  // namespace cutwater::shm
