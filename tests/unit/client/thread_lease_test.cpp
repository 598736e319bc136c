// SPDX-License-Identifier: Apache-2.0
#include <atomic>
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

TEST_F(ThreadLeaseTest, AResolvedKeyAndItsNameSpendOneLease) {
  start(kLeased);
  Limit api = limit();
  Key key = api.key("k");
  Key copy = key;

  for (int i = 0; i < 9; i += 3) {
    EXPECT_EQ(key.try_acquire().decided_by(), DecidedBy::ThreadLease);
    EXPECT_EQ(api.try_acquire("k").decided_by(), DecidedBy::ThreadLease);
    EXPECT_EQ(copy.try_acquire().decided_by(), DecidedBy::ThreadLease);
  }

  EXPECT_EQ(left("k"), 150U);
  EXPECT_EQ(counted(LimitCounter::Allowed), 9U);
  EXPECT_EQ(counted(LimitCounter::Tokens), 9U);
}

TEST_F(ThreadLeaseTest, AKeySharedByThreadsSpendsEachOnesOwnLease) {
  start(kLeased);
  Key key = limit().key("k");
  std::atomic<std::uint64_t> admitted{0};

  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 400; ++n) admitted += key.try_acquire().allowed() ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  while (key.try_acquire().allowed()) ++admitted;     // what the others gave back at their end

  EXPECT_EQ(admitted.load(), 160U);
  EXPECT_EQ(counted(LimitCounter::Tokens), 160U);
}

TEST_F(ThreadLeaseTest, AKeyStaysGoodWhenLeasesComeAndGo) {
  start(kLeased);
  Key key = limit().key("k");
  ASSERT_EQ(key.try_acquire().decided_by(), DecidedBy::ThreadLease);

  ASSERT_TRUE(client->reload("limits:\n  api: {rate: 10/s, burst: 160}\n"));
  EXPECT_EQ(key.try_acquire().decided_by(), DecidedBy::Private);
  EXPECT_EQ(key.try_acquire().decided_by(), DecidedBy::Private);
  ASSERT_TRUE(client->reload(kLeased));
  EXPECT_EQ(key.try_acquire().decided_by(), DecidedBy::ThreadLease);

  EXPECT_EQ(counted(LimitCounter::Tokens), 4U);
}

TEST_F(ThreadLeaseTest, AnEndedLeaseIsNobodysWhereverAKeyLies) {
  start("capacity: {keys: 1024}\nlimits:\n  api: {rate: 10/s, burst: 160, thread-lease: 10}\n"
        "  plain: {rate: 1/h, burst: 1, on-full: deny}\n");
  Limit plain = limit("plain");
  ASSERT_TRUE(limit().try_acquire("k").allowed());
  detail::give_back_leases(0);
  // A key in each place of the table, also in the first.
  for (int i = 0; i < 10'000; ++i) {
    Key key = plain.key("key " + std::to_string(i));
    const Decision first = key.try_acquire();
    EXPECT_FALSE(first.allowed() && key.try_acquire().allowed()) << i;
  }
  EXPECT_NE(view().slots[0].lo, 0U);
}

std::int64_t reading_of(clockid_t clock) {
  timespec reading;
  clock_gettime(clock, &reading);
  return std::int64_t{reading.tv_sec} * 1'000'000'000 + reading.tv_nsec;
}

TEST(ThreadLeaseOnTheRealClock, StampIsTheCoarseClockRoundedUpByItsTick) {
  auto client = Client::in_memory("limits:\n  api: {rate: 1/s, burst: 1000000, "
                                  "thread-lease: 1000}\n").value();
  Limit api = client.limit("api").value();
  Key key = api.key("k");
  ASSERT_TRUE(api.try_acquire("k", 500'000).allowed());     // in debt: nothing decays
  timespec tick;
  clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
  // In this order at most what the machine has slept.
  const std::int64_t boot = reading_of(CLOCK_BOOTTIME);
  const std::int64_t slept = boot - reading_of(CLOCK_MONOTONIC);
  const std::int64_t epoch = client.core().view().clock.to_boottime(0);

  for (int i = 0; i < 100'000; ++i) {
    const std::int64_t coarse = reading_of(CLOCK_MONOTONIC_COARSE);
    const Decision d = key.try_acquire();
    ASSERT_EQ(d.decided_by(), DecidedBy::ThreadLease);
    // The first of each lease is stamped by the segment's clock itself.
    if (i % 1000 == 0) continue;
    ASSERT_GE(d.stamp().count() + epoch, coarse + slept + tick.tv_nsec) << i;
  }
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
