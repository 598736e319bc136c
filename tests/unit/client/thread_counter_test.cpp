// SPDX-License-Identifier: Apache-2.0
#include <barrier>
#include <thread>

#include "src/thread_counter.hpp"
#include "unit/client/client_fixture.hpp"

namespace cutwater::test {
namespace {

using shm::LimitCounter;

class ThreadCounterTest : public InMemory {};

TEST_F(ThreadCounterTest, AThreadHoldsOneStripeAndReleasesItWhenItEnds) {
  start("limits:\n  api: {rate: 1/s, burst: 1}\n");
  Limit api = limit();
  const std::uint32_t before = shm::stripes_in_use(view());
  std::uint32_t during = 0;

  std::thread([&] {
    for (int i = 0; i < 10; ++i) api.try_acquire("k");
    during = shm::stripes_in_use(view());
  }).join();

  EXPECT_EQ(during, before + 1);
  EXPECT_EQ(shm::stripes_in_use(view()), before);
  EXPECT_EQ(counted(LimitCounter::Allowed) + counted(LimitCounter::Refused), 10U);
}

TEST_F(ThreadCounterTest, ThreadsWithoutAFreeStripeShareOneAndLoseNothing) {
  start("capacity: {stripes: 2}\nlimits:\n  api: {rate: 1/s, burst: 1}\n");
  Limit api = limit();
  constexpr int kThreads = 4, kAsks = 20'000;
  std::barrier together(kThreads);

  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      together.arrive_and_wait();
      for (int n = 0; n < kAsks; ++n) api.try_acquire("k");
    });
  }
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(counted(LimitCounter::Allowed) + counted(LimitCounter::Refused),
            std::uint64_t{kThreads} * kAsks);
}

TEST_F(ThreadCounterTest, OneThreadCountsAtMoreClientsThanItRemembers) {
  constexpr int kClients = detail::kThreadClients + 3;
  std::vector<Client> clients;
  for (int i = 0; i < kClients; ++i) {
    clients.push_back(make_client("capacity: {keys: 1024}\nlimits:\n  api: {rate: 1/s}\n", clock));
  }

  std::thread([&] {
    for (int round = 0; round < 5; ++round) {
      for (Client& each : clients) each.limit("api").value().try_acquire("k");
    }
  }).join();

  for (Client& each : clients) {
    const auto sums = shm::sum_counters(each.core().view(), 0);
    EXPECT_EQ(sums[0] + sums[1], 5U);
    EXPECT_EQ(shm::stripes_in_use(each.core().view()), 0U);
  }
}

TEST_F(ThreadCounterTest, ThreadThatOutlivesItsClientEndsInPeace) {
  start("limits:\n  api: {rate: 1/s, burst: 1}\n");
  std::barrier asked(2), gone(2);

  std::thread thread([&] {
    limit().try_acquire("k");
    asked.arrive_and_wait();
    gone.arrive_and_wait();
  });
  asked.arrive_and_wait();
  client.reset();
  start("limits:\n  api: {rate: 1/s, burst: 1}\n");   // perhaps where the old one was
  const std::uint32_t stripes = shm::stripes_in_use(view());
  gone.arrive_and_wait();
  thread.join();

  EXPECT_EQ(shm::stripes_in_use(view()), stripes);
  EXPECT_TRUE(limit().try_acquire("k").allowed());
}

}  // namespace
}  // namespace cutwater::test
