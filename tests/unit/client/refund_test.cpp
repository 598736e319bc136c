// SPDX-License-Identifier: Apache-2.0
// Undo by receipt: the rows U1 to U9 of tests/scenarios.txt.
#include "unit/client/client_fixture.hpp"

namespace cutwater::test {
namespace {

using shm::LimitCounter;

class RefundTest : public InMemory {};

constexpr char kTen[] = "limits:\n  api: {rate: 1/s, burst: 10}\n";

// U7: a copy does not compile.
static_assert(!std::is_copy_constructible_v<Decision> && !std::is_copy_assignable_v<Decision>);

TEST_F(RefundTest, U1TooLateOnceSomebodyChargedAfterItEvenWhenAllHasRefilled) {
  start(kTen);
  Limit api = limit();
  Decision first = api.try_acquire("k", 3);
  ASSERT_TRUE(api.try_acquire("k", 3).allowed());
  clock.advance(1h);

  const auto undone = api.refund(first);

  EXPECT_EQ(undone.error().code(), Errc::TooLate);
  EXPECT_TRUE(api.try_acquire("k", 10).allowed());
  EXPECT_FALSE(api.try_acquire("k").allowed());
}

TEST_F(RefundTest, U2APlaceInLineBehindWhichAnotherStandsIsTooLate) {
  start("limits:\n  api: {rate: 1/s, burst: 1}\n");
  Limit api = limit();
  ASSERT_TRUE(api.try_acquire("k").allowed());
  Decision first = api.reserve("k", {.max_wait = 10s});
  Decision second = api.reserve("k", {.max_wait = 10s});
  EXPECT_EQ(first.starts_in(), 1s);
  EXPECT_EQ(second.starts_in(), 2s);

  EXPECT_EQ(api.refund(first).error().code(), Errc::TooLate);

  EXPECT_EQ(api.reserve("k", {.max_wait = 10s}).starts_in(), 3s);
}

TEST_F(RefundTest, U3TheLastPlaceInLineIsGivenBack) {
  start("limits:\n  api: {rate: 1/s, burst: 1}\n");
  Limit api = limit();
  ASSERT_TRUE(api.try_acquire("k").allowed());
  ASSERT_EQ(api.reserve("k", {.max_wait = 10s}).starts_in(), 1s);
  Decision second = api.reserve("k", {.max_wait = 10s});

  EXPECT_EQ(api.refund(second).value(), 1U);

  EXPECT_EQ(api.reserve("k", {.max_wait = 10s}).starts_in(), 2s);
}

TEST_F(RefundTest, U4GivesBackExactlyOnce) {
  start(kTen);
  Limit api = limit();
  Decision d = api.try_acquire("k", 4);

  EXPECT_EQ(api.refund(d).value(), 4U);
  EXPECT_EQ(api.refund(d).error().code(), Errc::AlreadyUsed);
  EXPECT_EQ(api.refund(std::move(d)).error().code(), Errc::AlreadyUsed);

  EXPECT_EQ(api.peek("k").remaining(), 9U);
  EXPECT_EQ(counted(LimitCounter::Undone), 4U);
}

TEST_F(RefundTest, U5ReverseOrderGivesBackAll) {
  start(kTen);
  Limit api = limit();
  Decision first = api.try_acquire("k", 2);
  Decision second = api.try_acquire("k", 3);

  EXPECT_EQ(api.refund(second).value(), 3U);
  EXPECT_EQ(api.refund(first).value(), 2U);

  EXPECT_TRUE(api.try_acquire("k", 10).allowed());
}

TEST_F(RefundTest, U6TheOlderIsTooLateUntilTheNewerIsGivenBack) {
  start(kTen);
  Limit api = limit();
  Decision older = api.try_acquire("k", 2);
  Decision newer = api.try_acquire("k", 3);

  EXPECT_EQ(api.refund(older).error().code(), Errc::TooLate);
  EXPECT_TRUE(api.refund(newer));
  EXPECT_TRUE(api.refund(older));

  EXPECT_EQ(api.peek("k", 0).remaining(), 10U);
}

TEST_F(RefundTest, U7AMovedFromReceiptIsUsed) {
  start(kTen);
  Limit api = limit();
  Decision d = api.try_acquire("k", 3);
  Decision moved = std::move(d);
  ASSERT_TRUE(api.refund(moved));
  ASSERT_TRUE(api.try_acquire("k", 3).allowed());   // the level looks the same again

  EXPECT_EQ(api.refund(d).error().code(), Errc::AlreadyUsed);
  EXPECT_EQ(api.refund(moved).error().code(), Errc::AlreadyUsed);

  EXPECT_EQ(api.peek("k", 0).remaining(), 7U);
}

TEST_F(RefundTest, U8AfterAPartialRefillNeverExceedsTheBurst) {
  start(kTen);
  Limit api = limit();
  Decision d = api.try_acquire("k", 5);
  clock.advance(3s);

  EXPECT_TRUE(api.refund(d));

  EXPECT_TRUE(api.try_acquire("k", 10).allowed());
  EXPECT_FALSE(api.try_acquire("k").allowed());
}

TEST_F(RefundTest, TooLateLeavesTheReceiptGood) {
  start(kTen);
  Limit api = limit();
  Decision first = api.try_acquire("k");
  Decision second = api.try_acquire("k");

  EXPECT_EQ(api.refund(std::move(first)).error().code(), Errc::TooLate);
  EXPECT_TRUE(api.refund(std::move(second)));
  EXPECT_TRUE(api.refund(std::move(first)));
}

TEST_F(RefundTest, WhatChargedNothingIsInvalid) {
  start("limits:\n  api: {rate: 1/s, burst: 1}\n  other: {rate: 1/s, burst: 1}\n");
  Limit api = limit();
  Decision elsewhere = limit("other").try_acquire("k");
  Decision granted = api.try_acquire("k");
  Decision refused = api.try_acquire("k");
  Decision looked = api.peek("j");
  Decision free = api.try_acquire("j", 0);
  Decision nothing;

  EXPECT_EQ(api.refund(elsewhere).error().code(), Errc::InvalidArgument);
  EXPECT_EQ(api.refund(refused).error().code(), Errc::InvalidArgument);
  EXPECT_EQ(api.refund(looked).error().code(), Errc::InvalidArgument);
  EXPECT_EQ(api.refund(free).error().code(), Errc::InvalidArgument);
  EXPECT_EQ(api.refund(nothing).error().code(), Errc::InvalidArgument);
  EXPECT_TRUE(api.refund(granted));
}

}  // namespace
}  // namespace cutwater::test
