// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <thread>

#include "unit/client/client_fixture.hpp"

namespace cutwater::test {
namespace {

using shm::LimitCounter;

class WaitTest : public InMemory {
 protected:
  /// Blocks until `state` says so many callers are asleep.
  void until_waiting(std::uint64_t callers) {
    detail::LimitState* state = *client->core().limit("api");
    while ((state->waiting.load() & 0xffff'ffff) != callers) std::this_thread::yield();
  }
};

TEST_F(WaitTest, WithoutAWaitItIsTryAcquire) {
  start("limits:\n  api: {rate: 1/s, burst: 1}\n");
  Limit api = limit();

  EXPECT_TRUE(api.acquire("k").allowed());
  EXPECT_EQ(api.acquire("k").reason(), Reason::Limit);
  EXPECT_EQ(api.acquire("k", {.max_wait = -1s}).reason(), Reason::Limit);
  EXPECT_EQ(api.acquire("k", {.cost = 0, .max_wait = 1s}).remaining(), 0U);
}

TEST_F(WaitTest, RefusesAtOnceWhatWouldBeginTooLate) {   // U9, C092
  start("limits:\n  api: {rate: 1/s, burst: 1}\n");
  Limit api = limit();
  ASSERT_TRUE(api.try_acquire("k").allowed());
  ASSERT_EQ(api.reserve("k", {.max_wait = 2s}).starts_in(), 1s);
  ASSERT_EQ(api.reserve("k", {.max_wait = 2s}).starts_in(), 2s);

  const Decision refused = api.acquire("k", {.max_wait = 2s});

  EXPECT_EQ(refused.reason(), Reason::Limit);
  EXPECT_EQ(refused.retry_after(), 3s);
}

TEST_F(WaitTest, FittingWaitBeginsExactlyWhenSaid) {
  start("limits:\n  api: {rate: 1/s, burst: 1}\n");
  Limit api = limit();
  ASSERT_TRUE(api.try_acquire("k").allowed());
  std::atomic<bool> returned{false};
  Decision answer;

  std::thread waiter([&] {
    answer = api.acquire("k", {.max_wait = 1s});
    returned = true;
  });
  until_waiting(1);
  clock.advance(1s - 1ns);
  EXPECT_FALSE(returned);
  clock.advance(1ns);
  waiter.join();

  EXPECT_TRUE(answer.allowed());
  EXPECT_EQ(answer.starts_in(), 1s);
  EXPECT_EQ(counted(LimitCounter::Waited), 1U);
  EXPECT_EQ(counted(LimitCounter::Allowed), 2U);
}

TEST_F(WaitTest, SleepersPerProcessAreBoundedAndTheNextIsToldFull) {
  start("limits:\n  api: {rate: 1/s, burst: 1, max-waiting: 2}\n");
  Limit api = limit();
  ASSERT_TRUE(api.try_acquire("k").allowed());
  std::thread one([&] { api.acquire("k", {.max_wait = 10s}); });
  std::thread two([&] { api.acquire("k", {.max_wait = 10s}); });
  until_waiting(2);

  const Decision third = api.acquire("k", {.max_wait = 10s});

  EXPECT_EQ(third.reason(), Reason::Full);
  EXPECT_TRUE(third.is_hint());
  EXPECT_GT(third.retry_after(), 0ns);
  clock.advance(2s);
  one.join();
  two.join();
  EXPECT_EQ(api.peek("k").retry_after(), 1s) << "the refused one took no place in line";
}

TEST_F(WaitTest, WaitIsBoundedByTheLimitsMaxWait) {
  start("limits:\n  api: {rate: 1/s, burst: 1, max-wait: 1s}\n");
  Limit api = limit();
  ASSERT_TRUE(api.try_acquire("k").allowed());

  EXPECT_EQ(api.reserve("k", {.max_wait = 10s}).starts_in(), 1s);
  EXPECT_EQ(api.reserve("k", {.max_wait = 10s}).reason(), Reason::Limit);
}

TEST_F(WaitTest, CostAboveTheBurstIsNeverHoweverLongOneWaits) {   // S57
  start("limits:\n  api: {rate: 10/s, burst: 10}\n");

  EXPECT_EQ(limit().acquire("k", {.cost = 25, .max_wait = 1h}).reason(), Reason::Never);
}

TEST_F(WaitTest, PlacesInLineBeyondAnEmptyBucket) {   // S55
  start("limits:\n  api: {rate: 10/s, burst: 10}\n");
  Limit api = limit();

  const Decision first = api.reserve("k", {.cost = 10, .max_wait = 1s});
  const Decision second = api.reserve("k", {.cost = 4, .max_wait = 1s});

  EXPECT_EQ(first.starts_in(), 0ns);
  EXPECT_EQ(second.starts_in(), 400ms);
  EXPECT_EQ(api.try_acquire("k").retry_after(), 500ms);
}

TEST(RealClockWait, SleepsOnBoottimeNotBeforeItsStart) {
  auto client = Client::in_memory("limits:\n  api: {rate: 100/s, burst: 1}\n").value();
  Limit api = client.limit("api").value();
  ASSERT_TRUE(api.try_acquire("k").allowed());

  const Decision d = api.acquire("k", {.max_wait = 10s});

  EXPECT_TRUE(d.allowed());
  EXPECT_GE(client.now(), d.stamp() + d.starts_in());
}

}  // namespace
}  // namespace cutwater::test
