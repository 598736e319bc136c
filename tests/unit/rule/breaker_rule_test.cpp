// SPDX-License-Identifier: Apache-2.0
#include "rule/breaker_rule.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace cutwater::rule {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

BreakerNumbers made(const std::function<void(BreakerSettings&)>& change = {}) {
  BreakerSettings settings = preset(BreakerPreset::Resilience4j);
  settings.name = "fraudCheck";
  settings.window_calls = settings.minimum_calls = 10;
  settings.slow_rate_ppm = kOffPpm;
  if (change) change(settings);
  EXPECT_TRUE(check(settings)) << check(settings).error().text();
  return numbers_of(settings, settings.name);
}

constexpr BreakerOutcome kFailure{true, false}, kSuccess{};

TEST(BreakerRule, OpensAtTheThresholdAndNotOneBelow) {
  const BreakerNumbers n = made();
  EXPECT_EQ(reason_to_open(n, {10, 5, 0, 1}, kFailure), BreakerReason::FailureRate);
  EXPECT_EQ(reason_to_open(n, {10, 4, 0, 1}, kFailure), BreakerReason::None);
  EXPECT_EQ(reason_to_open(n, {9, 9, 0, 9}, kFailure), BreakerReason::None);   // below the minimum
}

TEST(BreakerRule, ComparesRatiosAsIntegers) {
  const BreakerNumbers seven = made([](auto& s) {
    s.window_calls = s.minimum_calls = 100;
    s.failure_rate_ppm = 70'000;
  });
  EXPECT_EQ(reason_to_open(seven, {100, 7, 0, 0}, kSuccess), BreakerReason::FailureRate);
  EXPECT_EQ(reason_to_open(seven, {100, 6, 0, 0}, kSuccess), BreakerReason::None);
  const BreakerNumbers third = made([](auto& s) {
    s.window_calls = s.minimum_calls = 3;
    s.failure_rate_ppm = 333'333;
  });
  EXPECT_EQ(reason_to_open(third, {3, 1, 0, 0}, kSuccess), BreakerReason::FailureRate);
}

TEST(BreakerRule, EachThresholdOpensAloneAndNamesItself) {
  const BreakerNumbers slow = made([](auto& s) {
    s.failure_rate_ppm = kOffPpm;
    s.slow_rate_ppm = 500'000;
  });
  EXPECT_EQ(reason_to_open(slow, {10, 10, 4, 10}, kFailure), BreakerReason::None);
  EXPECT_EQ(reason_to_open(slow, {10, 0, 5, 0}, kSuccess), BreakerReason::SlowRate);
  const BreakerNumbers count = made([](auto& s) { s.failure_count = 3; });
  EXPECT_EQ(reason_to_open(count, {3, 2, 0, 2}, kFailure), BreakerReason::None);
  EXPECT_EQ(reason_to_open(count, {3, 3, 0, 3}, kFailure), BreakerReason::FailureCount);
  const BreakerNumbers row = made([](auto& s) { s.consecutive_failures = 3; });
  EXPECT_EQ(reason_to_open(row, {5, 4, 0, 2}, kFailure), BreakerReason::None);
  EXPECT_EQ(reason_to_open(row, {5, 4, 0, 3}, kFailure), BreakerReason::Consecutive);
}

TEST(BreakerRule, TheFirstThatHoldsGivesTheReason) {
  const BreakerNumbers n = made([](auto& s) {
    s.slow_rate_ppm = 500'000;
    s.failure_count = s.consecutive_failures = 5;
  });
  EXPECT_EQ(reason_to_open(n, {10, 5, 5, 5}, kFailure), BreakerReason::FailureRate);
  EXPECT_EQ(reason_to_open(n, {12, 5, 6, 5}, kFailure), BreakerReason::SlowRate);
  EXPECT_EQ(reason_to_open(n, {12, 5, 5, 5}, kFailure), BreakerReason::FailureCount);
}

TEST(BreakerRule, EvaluateOnFailureLetsOnlyAFailureOrASlowCallOpen) {
  const BreakerNumbers n = made([](auto& s) { s.evaluate_on = EvaluateOn::Failure; });
  EXPECT_EQ(reason_to_open(n, {10, 9, 0, 0}, kSuccess), BreakerReason::None);
  EXPECT_EQ(reason_to_open(n, {10, 9, 0, 0}, {false, true}), BreakerReason::FailureRate);
  EXPECT_EQ(reason_to_open(n, {10, 9, 0, 1}, kFailure), BreakerReason::FailureRate);
}

TEST(BreakerRule, ARateOfZeroOpensAtTheMinimumAndOffNever) {
  const BreakerNumbers zero = made([](auto& s) { s.failure_rate_ppm = 0; });
  EXPECT_EQ(reason_to_open(zero, {9, 0, 0, 0}, kSuccess), BreakerReason::None);
  EXPECT_EQ(reason_to_open(zero, {10, 0, 0, 0}, kSuccess), BreakerReason::FailureRate);
  const BreakerNumbers off = made([](auto& s) {
    s.failure_rate_ppm = kOffPpm;
    s.half_open_rule = HalfOpenRule::AllSucceed;
    s.consecutive_failures = 100;
  });
  EXPECT_EQ(reason_to_open(off, {99, 99, 0, 99}, kFailure), BreakerReason::None);
}

TEST(BreakerRule, WaitsGrowToTheirMaximumAndSaturate) {
  const BreakerNumbers fixed = made();
  EXPECT_EQ(open_wait(fixed, 1, 2), 60'000'000'000u);
  EXPECT_EQ(open_wait(fixed, 255, 2), 60'000'000'000u);
  const BreakerNumbers grows = made([](auto& s) {
    s.open_wait_ns = 1'000'000'000;
    s.backoff = true;
    s.backoff_ppm = 2 * kPpm;
  });
  EXPECT_EQ(open_wait(grows, 1, 2), 1'000'000'000u);
  EXPECT_EQ(open_wait(grows, 4, 2), 8'000'000'000u);
  EXPECT_EQ(open_wait(grows, 255, 2), kMaxOpenWaitNs);
  const BreakerNumbers capped = made([](auto& s) {
    s.open_wait_ns = 1'000'000'000;
    s.backoff = true;
    s.backoff_ppm = 1'500'000;
    s.max_open_wait_ns = 2'000'000'000;
  });
  EXPECT_EQ(open_wait(capped, 2, 2), 1'500'000'000u);
  EXPECT_EQ(open_wait(capped, 3, 2), 2'000'000'000u);
}

TEST(BreakerRule, JitterIsDrawnBetweenItsBoundsTheSameInEveryProcess) {
  const BreakerNumbers n = made([](auto& s) {
    s.open_wait_ns = 1'000'000'000;
    s.randomized = true;
    s.randomized_ppm = 500'000;
    s.backoff = true;
    s.backoff_ppm = kPpm;
    s.max_open_wait_ns = 1'200'000'000;
  });
  std::uint64_t low = ~0ULL, high = 0;
  for (std::uint32_t epoch = 1; epoch <= 10'000; ++epoch) {
    const std::uint64_t wait = open_wait(n, 1, epoch);
    EXPECT_EQ(wait, open_wait(n, 1, epoch));
    low = std::min(low, wait);
    high = std::max(high, wait);
  }
  EXPECT_GE(low, 500'000'000u);
  EXPECT_LE(low, 501'000'000u);
  EXPECT_LE(high, 1'200'000'000u);
  EXPECT_GE(high, 1'199'000'000u);
  BreakerNumbers other = n;
  other.name_hash = name_hash("another");
  EXPECT_NE(open_wait(n, 1, 7), open_wait(other, 1, 7));
}

TEST(BreakerRule, TheEdgeOfOpenIsInclusiveOrOneNanosecondLater) {
  EXPECT_TRUE(is_over(OpenEdge::Inclusive, 100, 100));
  EXPECT_FALSE(is_over(OpenEdge::Exclusive, 100, 100));
  EXPECT_EQ(until_over(OpenEdge::Inclusive, 100, 60), 40);
  EXPECT_EQ(until_over(OpenEdge::Exclusive, 100, 60), 41);
  EXPECT_EQ(until_over(OpenEdge::Exclusive, 100, 100), 1);
  EXPECT_EQ(until_over(OpenEdge::Exclusive, 100, 101), 0);
}

TEST(BreakerRule, HalfOpenByRateWaitsForAllProbes) {
  const BreakerNumbers n = made([](auto& s) { s.probes = 4; });
  EXPECT_EQ(decide_half_open(n, {3, 3, 0}).verdict, HalfOpenVerdict::NotYet);
  EXPECT_EQ(decide_half_open(n, {4, 2, 0}).verdict, HalfOpenVerdict::Open);
  EXPECT_EQ(decide_half_open(n, {4, 1, 0}).verdict, HalfOpenVerdict::Close);
}

TEST(BreakerRule, HalfOpenDecisionsDiffer) {
  const auto with = [](HalfOpenRule rule, std::uint32_t value) {
    return made([&](auto& s) {
      s.probes = 5;
      s.half_open_rule = rule;
      s.half_open_value = value;
    });
  };
  const BreakerNumbers some = with(HalfOpenRule::RateOver, 3);
  EXPECT_EQ(decide_half_open(some, {2, 2, 0}).verdict, HalfOpenVerdict::NotYet);
  EXPECT_EQ(decide_half_open(some, {3, 1, 0}).verdict, HalfOpenVerdict::Close);
  EXPECT_EQ(decide_half_open(some, {3, 2, 0}).verdict, HalfOpenVerdict::Open);
  const BreakerNumbers all = with(HalfOpenRule::AllSucceed, 0);
  EXPECT_EQ(decide_half_open(all, {1, 1, 0}).verdict, HalfOpenVerdict::Open);
  EXPECT_EQ(decide_half_open(all, {4, 0, 0}).verdict, HalfOpenVerdict::NotYet);
  EXPECT_EQ(decide_half_open(all, {5, 0, 0}).verdict, HalfOpenVerdict::Close);
  const BreakerNumbers three = with(HalfOpenRule::Successes, 3);
  EXPECT_EQ(decide_half_open(three, {3, 1, 0}).verdict, HalfOpenVerdict::NotYet);
  EXPECT_EQ(decide_half_open(three, {4, 1, 0}).verdict, HalfOpenVerdict::Close);
  EXPECT_EQ(decide_half_open(three, {3, 3, 0}).verdict, HalfOpenVerdict::Open);
}

TEST(BreakerRule, ASlowProbeCountsWhereSlowCallsDo) {
  const BreakerNumbers n = made([](auto& s) {
    s.probes = 2;
    s.slow_rate_ppm = kPpm;
  });
  EXPECT_EQ(decide_half_open(n, {2, 0, 1}).verdict, HalfOpenVerdict::Close);
  EXPECT_EQ(decide_half_open(n, {2, 0, 2}).reason, BreakerReason::SlowRate);
}

TEST(BreakerRule, ARampLetsItsShareThrough) {
  const BreakerNumbers n = made([](auto& s) {
    s.ramp = Ramp::On;
    s.ramp_ns = 4 * kSecond;
    s.ramp_percent = {25, 50, 100};
  });
  EXPECT_EQ(ramp_share(n, 4 * kSecond, 0), 25u);
  EXPECT_EQ(ramp_share(n, 4 * kSecond, 1'333'333'333), 25u);
  EXPECT_EQ(ramp_share(n, 4 * kSecond, 1'333'333'334), 50u);
  EXPECT_EQ(ramp_share(n, 4 * kSecond, 3 * kSecond), 100u);
  EXPECT_EQ(ramp_share(n, 4 * kSecond, 9 * kSecond), 100u);
  int admitted = 0;
  for (std::uint64_t j = 1; j <= 100; ++j) admitted += ramp_admits(j, 25);
  EXPECT_EQ(admitted, 25);
  EXPECT_TRUE(ramp_admits(1, 25));
  EXPECT_FALSE(ramp_admits(2, 25));
}

TEST(BreakerRule, HowManyUsersAVerdictNeeds) {
  const auto with = [](std::uint32_t n) { return made([&](auto& s) { s.min_processes = n; }); };
  EXPECT_EQ(needed_users(with(kMinProcessesAuto), 2), 1u);
  EXPECT_EQ(needed_users(with(kMinProcessesAuto), 3), 2u);
  EXPECT_EQ(needed_users(with(kMinProcessesOff), 64), 1u);
  EXPECT_EQ(needed_users(with(4), 64), 4u);
  EXPECT_EQ(needed_users(with(4), 2), 2u);
  EXPECT_EQ(needed_users(with(4), 0), 1u);
}

TEST(BreakerRule, ReadersAreShownWhatTheNextCallerFinds) {
  const BreakerNumbers n = made();
  EXPECT_FALSE(effective_state(n, BreakerState::Open, 100, 100).ready);   // exclusive edge
  EXPECT_TRUE(effective_state(n, BreakerState::Open, 100, 101).ready);
  EXPECT_FALSE(effective_state(n, BreakerState::ForcedOpen, 0, 1'000'000).ready);
  EXPECT_TRUE(effective_state(n, BreakerState::ForcedOpen, 100, 100).ready);
  EXPECT_FALSE(effective_state(n, BreakerState::Closed, 100, 200).ready);
}

}  // namespace
}  // namespace cutwater::rule
