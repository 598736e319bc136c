// SPDX-License-Identifier: Apache-2.0
#include "rule/breaker_users.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace cutwater::rule {
namespace {

using Users = std::vector<UserCounts>;

UserCounts user(std::uint64_t calls, std::uint64_t failures, std::uint64_t slow = 0,
                std::uint64_t order = 0) {
  return {calls, failures, slow, order, true};
}

BreakerNumbers numbers(std::uint32_t min_processes = kMinProcessesAuto,
                       std::uint32_t failure_ppm = 500'000) {
  BreakerSettings s = preset(BreakerPreset::Resilience4j);
  s.name = std::string("b");
  s.minimum_calls = 10;
  s.window_calls = 20;
  s.failure_rate_ppm = failure_ppm;
  s.slow_rate_ppm = 800'000;
  s.min_processes = min_processes;
  return numbers_of(s, s.name);
}

UsersVerdict judge(const BreakerNumbers& n, const Users& users,
                   BreakerReason reason = BreakerReason::FailureRate) {
  return judge_users(n, reason, users);
}

TEST(BreakerUsers, FewerThanThreeAreTheHostsMatter) {
  EXPECT_TRUE(judge(numbers(), {user(10, 10), user(90, 0)}).host);
  EXPECT_TRUE(judge(numbers(2), {user(10, 10), user(90, 0)}).host);

  EXPECT_FALSE(judge(numbers(), {user(10, 10), user(90, 0), user(0, 0)}).host);
}

TEST(BreakerUsers, MinProcessesOffLeavesNobodyOut) {
  EXPECT_TRUE(judge(numbers(kMinProcessesOff), {user(10, 10), user(90, 0), user(90, 0)}).host);
}

TEST(BreakerUsers, TheOneWithTheMostFailuresOpensForItself) {
  const UsersVerdict verdict = judge(numbers(), {user(9, 1), user(10, 10), user(9, 0)});

  EXPECT_FALSE(verdict.host);
  EXPECT_EQ(verdict.alone, 0b010U);
}

TEST(BreakerUsers, OfTwoAlikeTheLowerRowIsLeftOut) {
  const Users users{user(10, 1, 0, 9), user(10, 1, 0, 4), user(10, 0, 0, 2)};

  EXPECT_EQ(judge(numbers(), users).alone, 0b010U);
}

TEST(BreakerUsers, TheRestMustHaveCalled) {
  EXPECT_TRUE(judge(numbers(), {user(10, 10), user(0, 0), user(0, 0)}).host);
}

TEST(BreakerUsers, TheRestIsHealthyBelowHalfOfTheThreshold) {
  EXPECT_FALSE(judge(numbers(), {user(13, 13), user(50, 12), user(50, 12)}).host);   // 24 %
  EXPECT_TRUE(judge(numbers(), {user(13, 13), user(50, 13), user(50, 12)}).host);    // 25 %
  EXPECT_TRUE(judge(numbers(kMinProcessesAuto, 100'000), {user(9, 9), user(20, 1), user(0, 0)})
                  .host);                                                            // 5 % of 10 %
}

TEST(BreakerUsers, WithTheThresholdOffItIsAQuarter) {
  const BreakerNumbers off = numbers(kMinProcessesAuto, kOffPpm);

  EXPECT_FALSE(judge(off, {user(9, 30), user(100, 24), user(0, 0)}, BreakerReason::Consecutive)
                   .host);
  EXPECT_TRUE(judge(off, {user(9, 30), user(100, 25), user(0, 0)}, BreakerReason::Consecutive)
                  .host);
}

TEST(BreakerUsers, AThresholdOfNothingKnowsNoHealthyRest) {
  EXPECT_TRUE(judge(numbers(kMinProcessesAuto, 0), {user(9, 9), user(9, 0), user(9, 0)}).host);
}

TEST(BreakerUsers, SlowCallsAreComparedBySlowCalls) {
  const Users users{user(10, 5, 0), user(10, 0, 10), user(10, 0, 3)};

  const UsersVerdict verdict = judge(numbers(), users, BreakerReason::SlowRate);

  EXPECT_EQ(verdict.alone, 0b010U);                  // rest: 3 of 20, half of the threshold is 40 %
}

TEST(BreakerUsers, ANumberLeavesOutOneLess) {
  const Users users{user(10, 10), user(10, 10), user(50, 0), user(50, 0)};

  EXPECT_FALSE(judge(numbers(2), users).host);       // 10 of 110 fail among the rest
  EXPECT_EQ(judge(numbers(3), users).alone, 0b011U);
  EXPECT_EQ(judge(numbers(64), users).alone, 0b011U);   // who failed nothing opens nothing
}

TEST(BreakerUsers, ProcessesThatAllFailAreNeverTakenForOneSickOne) {
  for (std::size_t count = 3; count <= kMaxBreakerUsers; ++count) {
    EXPECT_TRUE(judge(numbers(), Users(count, user(4, 4))).host) << count;
    EXPECT_TRUE(judge(numbers(64), Users(count, user(4, 4))).host) << count;
  }
}

TEST(BreakerUsers, ARunIsAtLeastFiveAndNeverBeyondWhatIsCounted) {
  BreakerNumbers n = numbers();
  EXPECT_EQ(own_run(n), 10U);
  n.minimum = 1;
  EXPECT_EQ(own_run(n), kMinOwnRun);
  n.minimum = 0x8000'0000;
  EXPECT_EQ(own_run(n), kMaxOwnRun);
}

}  // namespace
}  // namespace cutwater::rule
