// SPDX-License-Identifier: Apache-2.0
// Undo by receipt, over every way: a charge of c owns the slice (y - c, y] of the token axis, and
// undo gives back exactly that slice while nobody has charged after it. A receipt is spent once.
#include <type_traits>

#include "vectors/every_way.hpp"

namespace cutwater::test {
namespace {

class Undo : public EveryWay {
 protected:
  /// 10 tokens, one a second.
  void start_ten() { start("api: {rate: 1/s, burst: 10}"); }
  /// One token a second, drained.
  void start_drained() {
    start("api: {rate: 1/s, burst: 1}");
    ASSERT_TRUE(limit().try_acquire("k").allowed());
  }

  Decision take(std::uint64_t cost) { return limit().try_acquire("k", cost); }
  Decision wait(Nanos longest) { return limit().reserve("k", {.max_wait = longest}); }
  std::uint64_t left() { return limit().peek("k", 0).remaining(); }
  Errc refund(Decision& receipt) { return limit().refund(receipt).error().code(); }
};

INSTANTIATE_TEST_SUITE_P(Ways, Undo, ::testing::ValuesIn(every_way()), way_name);

TEST_P(Undo, U1IsTooLateOnceSomebodyChargedThoughAllHasRefilled) {
  ASSERT_NO_FATAL_FAILURE(start_ten());
  Decision receipt = take(3);
  ASSERT_EQ(receipt.remaining(), 7U);
  at(10s);
  const Decision all = take(10);
  EXPECT_TRUE(all.allowed());
  EXPECT_EQ(all.remaining(), 0U);
  EXPECT_EQ(all.reset_after(), 10s);

  EXPECT_EQ(refund(receipt), Errc::TooLate);

  const Decision one = take(1);
  EXPECT_FALSE(one.allowed());
  EXPECT_EQ(one.retry_after(), 1s);
}

TEST_P(Undo, U2APlaceInLineStaysWhenAnotherStandsBehindIt) {
  ASSERT_NO_FATAL_FAILURE(start_drained());
  Decision first = wait(5s);
  ASSERT_EQ(first.starts_in(), 1s);
  ASSERT_EQ(wait(5s).starts_in(), 2s);

  EXPECT_EQ(refund(first), Errc::TooLate);

  const Decision next = wait(5s);
  EXPECT_TRUE(next.allowed());
  EXPECT_EQ(next.starts_in(), 3s);
}

TEST_P(Undo, U3TheLastPlaceInLineIsGivenBack) {
  ASSERT_NO_FATAL_FAILURE(start_drained());
  ASSERT_EQ(wait(5s).starts_in(), 1s);
  Decision last = wait(5s);
  ASSERT_EQ(last.starts_in(), 2s);

  EXPECT_EQ(limit().refund(last).value(), 1U);

  EXPECT_EQ(wait(5s).starts_in(), 2s);
}

TEST_P(Undo, U4GivesBackExactlyOnce) {
  ASSERT_NO_FATAL_FAILURE(start_ten());
  Decision receipt = take(4);
  ASSERT_EQ(receipt.remaining(), 6U);

  EXPECT_EQ(limit().refund(receipt).value(), 4U);

  EXPECT_EQ(left(), 10U);
  EXPECT_EQ(limit().peek("k", 0).reset_after(), 0ns);
  EXPECT_EQ(refund(receipt), Errc::AlreadyUsed);
  EXPECT_EQ(left(), 10U);
}

TEST_P(Undo, U5InReverseOrderAllCount) {
  ASSERT_NO_FATAL_FAILURE(start_ten());
  Decision first = take(4), second = take(2);
  ASSERT_EQ(second.remaining(), 4U);

  EXPECT_EQ(limit().refund(second).value(), 2U);
  EXPECT_EQ(limit().refund(first).value(), 4U);

  EXPECT_EQ(left(), 10U);
}

TEST_P(Undo, U6TheOlderIsTooLateUntilTheNewerIsGivenBack) {
  ASSERT_NO_FATAL_FAILURE(start_ten());
  Decision first = take(4), second = take(2);

  EXPECT_EQ(refund(first), Errc::TooLate);
  EXPECT_EQ(left(), 4U);
  EXPECT_EQ(limit().refund(second).value(), 2U);
  EXPECT_EQ(left(), 6U);

  EXPECT_EQ(limit().refund(first).value(), 4U) << "too late spends no receipt";
  EXPECT_EQ(left(), 10U);
}

TEST_P(Undo, U7ASpentReceiptStaysSpentThoughTheLevelLooksTheSame) {
  static_assert(!std::is_copy_constructible_v<Decision> && !std::is_copy_assignable_v<Decision>);
  ASSERT_NO_FATAL_FAILURE(start_ten());
  Decision first = take(4);
  ASSERT_EQ(limit().refund(first).value(), 4U);
  Decision second = take(4);
  ASSERT_EQ(second.remaining(), 6U);
  ASSERT_EQ(second.data().level, first.data().level) << "not the same slice";

  EXPECT_EQ(refund(first), Errc::AlreadyUsed);
  Decision moved = std::move(second);
  EXPECT_EQ(refund(second), Errc::AlreadyUsed) << "moved from";

  EXPECT_EQ(left(), 6U);
  EXPECT_EQ(limit().refund(std::move(moved)).value(), 4U);
  EXPECT_EQ(left(), 10U);
}

TEST_P(Undo, U8AfterAPartialRefillNothingAboveTheBurst) {
  ASSERT_NO_FATAL_FAILURE(start_ten());
  Decision receipt = take(10);
  at(4s);
  ASSERT_EQ(left(), 4U);

  EXPECT_EQ(limit().refund(receipt).value(), 10U);

  EXPECT_EQ(left(), 10U);
  EXPECT_FALSE(take(11).allowed());
  EXPECT_EQ(take(10).remaining(), 0U);
  EXPECT_EQ(take(1).retry_after(), 1s);
}

TEST_P(Undo, U9AWaitBeyondTheMaximumIsRefusedAtOnce) {
  ASSERT_NO_FATAL_FAILURE(start("api: {rate: 1/s, burst: 1, max-wait: 2s}"));
  ASSERT_TRUE(take(1).allowed());
  EXPECT_EQ(wait(2s).starts_in(), 1s);
  EXPECT_EQ(wait(2s).starts_in(), 2s);

  const Decision third = wait(2s), patient = wait(1h);

  EXPECT_EQ(third.reason(), Reason::Limit);
  EXPECT_EQ(third.retry_after(), 3s);
  EXPECT_EQ(patient.reason(), Reason::Limit) << "the limit's own max-wait counts";
  EXPECT_EQ(patient.retry_after(), 3s);
}

}  // namespace
}  // namespace cutwater::test
