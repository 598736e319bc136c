// SPDX-License-Identifier: Apache-2.0
// Threads of one process over one mapping, everything at once: a hot key, first sights of keys,
// reloads, leases, undos, looks, threads that come and go. Totals against a naive model (one count
// per key). One mapping, so that a ThreadSanitizer build sees every race.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <cutwater/client.hpp>

#include "shm/counters.hpp"
#include "src/core.hpp"

namespace cutwater::test {
namespace {

using namespace std::chrono_literals;

constexpr int kThreads = 4;
constexpr std::uint64_t kHot = 20'000;
constexpr int kKeys = 2000;

/// Nothing refills: the clock stands. `round` changes what a reload may change.
std::string yaml(int round) {
  return "capacity: {keys: 16384, limits: 16, processes: 16, stripes: 4, events: 1024}\n"
         "limits:\n"
         "  hot: {rate: 1/d, burst: " + std::to_string(kHot) +
         ", max-waiting: " + std::to_string(1 + round % 7) + "}\n"
         "  once: {rate: 1/d, burst: 1}\n"
         "  leased: {rate: 1/d, burst: 5000, thread-lease: " + std::to_string(10 + round % 3) +
         "}\n"
         "  other: {rate: 1/s, burst: " + std::to_string(1 + round % 5) + "}\n";
}

/// What all threads together were granted.
struct Granted {
  std::atomic<std::uint64_t> hot{0}, leased{0}, degraded{0}, wrong{0};
  std::array<std::atomic<int>, kKeys> once{};
};

/// Until the hot key is spent and every other key was asked for.
void hammer(Client& client, Granted& granted, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Limit hot = client.limit("hot").value(), once = client.limit("once").value();
  Limit leased = client.limit("leased").value();
  Key handle = hot.key("k");
  const int first = static_cast<int>(random() % kKeys);
  for (int i = 0; i < kKeys; ++i) {
    const int key = (first + i) % kKeys;
    if (once.try_acquire("key " + std::to_string(key)).allowed()) ++granted.once[key];
    for (int j = 0; j < 6; ++j) {
      Decision d = j % 2 == 0 ? hot.try_acquire("k") : handle.try_acquire();
      if (d.degraded()) ++granted.degraded;
      if (!d.allowed()) continue;
      ++granted.hot;
      if (random() % 16 == 0 && hot.refund(d)) --granted.hot;
    }
    if (leased.try_acquire("k").allowed()) ++granted.leased;
    if (handle.peek().remaining() > kHot) ++granted.wrong;
  }
}

TEST(OneMapping, ThreadsOverReloadsGrantEachTokenOnce) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  SteppedClock clock;
  Client client = Client::in_memory(yaml(0), clock).value();
  Granted granted;
  std::atomic<int> running{kThreads};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      hammer(client, granted, seed + t);
      // Threads that come and go: stripes and leases change hands.
      for (int i = 0; i < 20; ++i) {
        std::thread([&] {
          if (client.limit("leased")->try_acquire("k").allowed()) ++granted.leased;
        }).join();
      }
      --running;
    });
  }
  std::string refused;
  int rounds = 0;
  while (running > 0 && refused.empty()) {
    const auto done = client.reload(yaml(++rounds));
    if (!done) refused = done.error().text();
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(refused, "");

  Limit hot = client.limit("hot").value();
  while (hot.try_acquire("k").allowed()) ++granted.hot;

  EXPECT_EQ(granted.hot, kHot) << "rounds " << rounds;
  EXPECT_LE(granted.leased, 5000U);
  EXPECT_EQ(granted.degraded, 0U);
  EXPECT_EQ(granted.wrong, 0U);
  for (int key = 0; key < kKeys; ++key) EXPECT_EQ(granted.once[key], 1) << key;
  const shm::View& view = client.core().view();
  const auto counted = shm::sum_counters(view, shm::find_limit(view, "once").index);
  EXPECT_EQ(counted[static_cast<int>(shm::LimitCounter::Allowed)], std::uint64_t{kKeys});
}

}  // namespace
}  // namespace cutwater::test
