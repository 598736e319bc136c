// SPDX-License-Identifier: Apache-2.0
#include <barrier>
#include <map>
#include <thread>

#include "src/thread_lease.hpp"
#include "unit/client/client_fixture.hpp"

namespace cutwater::test {
namespace {

using shm::LimitCounter;

class ThreadLeaseTest : public InMemory {
 protected:
  /// Tokens a look from outside finds left in the bucket.
  std::uint64_t left(const std::string& key) { return limit().peek(key, 0).remaining(); }
};

constexpr char kLeased[] = "limits:\n  api: {rate: 10/s, burst: 160, thread-lease: 10}\n";

TEST_F(ThreadLeaseTest, ChargesOnceAndSpendsWithoutTheBucket) {
  start(kLeased);
  Limit api = limit();

  for (int i = 0; i < 10; ++i) {
    const Decision d = api.try_acquire("k");
    EXPECT_TRUE(d.allowed());
    EXPECT_EQ(d.decided_by(), DecidedBy::ThreadLease);
    EXPECT_EQ(left("k"), 150U);
  }
  EXPECT_TRUE(api.try_acquire("k").allowed());

  EXPECT_EQ(left("k"), 140U);
  EXPECT_EQ(counted(LimitCounter::Allowed), 11U);
  EXPECT_EQ(counted(LimitCounter::Tokens), 11U);
}

TEST_F(ThreadLeaseTest, NeverAdmitsMoreThanTheBucketHolds) {
  start(kLeased);
  Limit api = limit();
  std::uint64_t admitted = 0;

  for (int i = 0; i < 400; ++i) admitted += api.try_acquire("k").allowed() ? 1 : 0;

  EXPECT_EQ(admitted, 160U) << "and never less: the last tokens go one by one";
}

TEST_F(ThreadLeaseTest, DecaysAsTheBucketFills) {   // guard LeaseDecays
  start(kLeased);
  Limit api = limit();
  ASSERT_TRUE(api.try_acquire("k").allowed());        // holds 9 more of (N, N + 10]

  clock.advance(1h);
  std::uint64_t admitted = 0;
  for (int i = 0; i < 400; ++i) admitted += api.try_acquire("k").allowed() ? 1 : 0;

  EXPECT_EQ(admitted, 160U);
}

TEST_F(ThreadLeaseTest, ThreadsTogetherStayWithinBurstAndRate) {
  start(kLeased);
  constexpr int kThreads = 4, kRounds = 50;
  std::atomic<std::uint64_t> admitted{0};
  std::barrier step(kThreads, [&]() noexcept { clock.advance(100ms); });

  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      Limit api = limit();
      for (int round = 0; round < kRounds; ++round) {
        for (int n = 0; n < 20; ++n) admitted += api.try_acquire("k").allowed() ? 1 : 0;
        step.arrive_and_wait();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  // The last reading used lies before the last step: 49 * 0.1 s, 10/s.
  EXPECT_LE(admitted.load(), 160U + 49U);
  EXPECT_GE(admitted.load(), 160U);
}

TEST_F(ThreadLeaseTest, RestIsGivenBackWhenTheThreadEnds) {
  start(kLeased);

  std::thread([&] { EXPECT_TRUE(limit().try_acquire("k", 3).allowed()); }).join();

  EXPECT_EQ(left("k"), 157U);
}

TEST_F(ThreadLeaseTest, RestOfATooSmallLeaseIsGivenBack) {
  start(kLeased);
  Limit api = limit();
  ASSERT_TRUE(api.try_acquire("k", 7).allowed());     // 3 left in the lease

  ASSERT_TRUE(api.try_acquire("k", 5).allowed());

  EXPECT_EQ(left("k"), 160U - 7 - 10);
}

TEST_F(ThreadLeaseTest, CostAboveTheLeaseIsChargedByItself) {
  start(kLeased);
  Limit api = limit();

  const Decision d = api.try_acquire("k", 11);

  EXPECT_EQ(d.decided_by(), DecidedBy::Private);
  EXPECT_EQ(left("k"), 149U);
}

TEST_F(ThreadLeaseTest, EndsWithAReload) {
  start(kLeased);
  Limit api = limit();
  ASSERT_TRUE(api.try_acquire("k").allowed());

  ASSERT_TRUE(client->reload("limits:\n  api: {rate: 10/s, burst: 160}\n"));
  const Decision d = api.try_acquire("k");

  EXPECT_EQ(d.decided_by(), DecidedBy::Private);
}

TEST_F(ThreadLeaseTest, BeginsWithAReload) {
  start("limits:\n  api: {rate: 10/s, burst: 160}\n");
  Limit api = limit();
  EXPECT_EQ(api.try_acquire("k").decided_by(), DecidedBy::Private);

  ASSERT_TRUE(client->reload(kLeased));

  EXPECT_EQ(api.try_acquire("k").decided_by(), DecidedBy::ThreadLease);
}

TEST_F(ThreadLeaseTest, RefundGoesBackIntoTheLeaseInReverseOrder) {
  start(kLeased);
  Limit api = limit();
  Decision first = api.try_acquire("k", 2);
  Decision second = api.try_acquire("k", 3);

  EXPECT_EQ(api.refund(first).error().code(), Errc::TooLate);
  EXPECT_EQ(api.refund(second).value(), 3U);
  EXPECT_EQ(api.refund(first).value(), 2U);
  EXPECT_EQ(api.refund(first).error().code(), Errc::AlreadyUsed);

  std::uint64_t admitted = 0;
  for (int i = 0; i < 400; ++i) admitted += api.try_acquire("k").allowed() ? 1 : 0;
  EXPECT_EQ(admitted, 160U);
}

TEST_F(ThreadLeaseTest, RefundByAnotherThreadIsTooLate) {
  start(kLeased);
  Limit api = limit();
  Decision d;
  std::thread([&] { d = api.try_acquire("k", 2); }).join();

  EXPECT_EQ(api.refund(d).error().code(), Errc::TooLate);
}

TEST_F(ThreadLeaseTest, MoreKeysThanLeasesTakeTurns) {
  start(kLeased);
  Limit api = limit();
  constexpr int kKeys = detail::kThreadLeases * 3;
  std::map<int, std::uint64_t> admitted;

  for (int round = 0; round < 300; ++round) {
    for (int k = 0; k < kKeys; ++k) {
      admitted[k] += api.try_acquire("key" + std::to_string(k)).allowed() ? 1 : 0;
    }
  }

  for (const auto& [key, tokens] : admitted) EXPECT_EQ(tokens, 160U) << key;
}

TEST_F(ThreadLeaseTest, LeasesOfAClosedClientAreForgotten) {
  start(kLeased);
  ASSERT_TRUE(limit().try_acquire("k").allowed());
  client.reset();
  start(kLeased);

  EXPECT_TRUE(limit().try_acquire("k").allowed());
  EXPECT_EQ(left("k"), 150U);
}

}  // namespace
}  // namespace cutwater::test
