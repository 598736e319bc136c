// SPDX-License-Identifier: Apache-2.0
// Random histories of a session: calls, cuts at any byte, repeats, takeovers, answers in any order,
// against the naive model of tests/support/session_world.hpp.
#include <gtest/gtest.h>

#include <iostream>
#include <random>

#include "support/session_world.hpp"

namespace cutwater::test {
namespace {

constexpr int kHistories = 100'000;
constexpr std::size_t kSteps = 40;

void add(SessionWorld::Tally& sum, const SessionWorld::Tally& one) {
  sum.calls += one.calls;
  sum.answered += one.answered;
  sum.busy += one.busy;
  sum.failed += one.failed;
  sum.lost += one.lost;
  sum.late += one.late;
  sum.executed += one.executed;
  sum.cuts += one.cuts;
  sum.resumed += one.resumed;
  sum.stale += one.stale;
  sum.refunded += one.refunded;
}

SessionWorld::Tally play(std::uint64_t seed, std::size_t steps) {
  std::mt19937_64 chance(seed);
  SessionWorld world(
      [&](std::uint32_t below) { return static_cast<std::uint32_t>(chance() % below); });
  EXPECT_EQ(world.run(steps), "") << "seed " << seed;
  return world.tally();
}

// covers: C127 (10^5 histories: no request is executed twice, none is answered with another's)
TEST(SessionHistory, NoRequestIsExecutedTwiceWhateverIsLost) {
  const std::uint64_t seed = std::random_device{}();
  std::cout << "seed " << seed << "\n";
  SessionWorld::Tally sum;

  for (int i = 0; i < kHistories && !HasFailure(); ++i) {
    add(sum, play(seed + static_cast<std::uint64_t>(i), kSteps));
  }

  std::cout << sum.calls << " calls: " << sum.executed << " executed, " << sum.answered
            << " answered (" << sum.stale << " stale), " << sum.busy << " busy, " << sum.failed
            << " failed, " << sum.lost << " lost, " << sum.late << " given up; " << sum.cuts
            << " cuts, " << sum.resumed << " resumed; " << sum.refunded << " receipts spent\n";
  EXPECT_GT(sum.answered, sum.calls / 3);   // every branch was really taken
  EXPECT_GT(sum.resumed, sum.cuts / 2);
  EXPECT_GT(sum.lost, 1000U);
  EXPECT_GT(sum.refunded, 1000U);
  EXPECT_EQ(sum.stale, 0U);                 // what a cut loses is always still remembered
}

TEST(SessionHistory, LongHistoriesForgetAndStayWithinTheirBounds) {
  for (std::uint64_t seed = 1; seed <= 100 && !HasFailure(); ++seed) (void)play(seed, 4000);
}

}  // namespace
}  // namespace cutwater::test
