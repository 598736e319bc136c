// SPDX-License-Identifier: Apache-2.0
// Prefork servers (C066, C067): children go on in the inherited memory with the objects they have,
// and nothing a child does at its end hurts the parent.
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <thread>

#include "src/thread_counter.hpp"
#include "unit/client/client_fixture.hpp"

namespace cutwater::test {
namespace {

using shm::LimitCounter;

class ForkTest : public InMemory {
 protected:
  /// Counts of `which` on the stripe of this thread alone.
  std::uint64_t counted_here(LimitCounter which) {
    detail::LimitState* state = *client->core().limit("api");
    const shm::StripeHandle stripe = detail::counter_for(*state).stripe;
    return reinterpret_cast<const shm::LimitCounters*>(stripe.counters)[0]
        .value[static_cast<std::size_t>(which)];
  }
};

pid_t raw_clone() {
  return static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, 0));
}

int wait_for(pid_t pid) {
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return status;
}

TEST_F(ForkTest, ChildrenShareTheBucketsAndLoseNoCount) {   // C066
  start("limits:\n  api: {rate: 1/d, burst: 1000}\n");
  Limit api = limit();
  Key hot = api.key("hot");
  ASSERT_TRUE(hot.try_acquire().allowed());
  constexpr int kChildren = 8, kAsks = 100'000;

  std::vector<pid_t> children;
  for (int i = 0; i < kChildren; ++i) {
    const pid_t pid = fork();
    if (pid == 0) {
      for (int n = 0; n < kAsks / 2; ++n) hot.try_acquire();
      for (int n = 0; n < kAsks / 2; ++n) api.try_acquire("hot");
      _exit(0);
    }
    children.push_back(pid);
  }
  for (int n = 0; n < kAsks; ++n) hot.try_acquire();        // the parent meanwhile
  for (const pid_t pid : children) EXPECT_EQ(wait_for(pid), 0);

  EXPECT_EQ(counted(LimitCounter::Allowed), 1000U);
  EXPECT_EQ(counted(LimitCounter::Tokens), 1000U);
  EXPECT_EQ(counted(LimitCounter::Refused), std::uint64_t{kChildren + 1} * kAsks + 1 - 1000);
}

TEST_F(ForkTest, ChildNeverWritesToItsParentsStripe) {   // guard ForkDropsRow
  start("limits:\n  api: {rate: 1/d, burst: 1}\n");
  Limit api = limit();
  ASSERT_TRUE(api.try_acquire("k").allowed());
  api.try_acquire("k");
  ASSERT_EQ(counted_here(LimitCounter::Refused), 1U);

  for (const bool raw : {false, true}) {
    const pid_t pid = raw ? raw_clone() : fork();
    if (pid == 0) {
      for (int n = 0; n < 100; ++n) api.try_acquire("k");
      _exit(0);
    }
    EXPECT_EQ(wait_for(pid), 0);
  }

  EXPECT_EQ(counted_here(LimitCounter::Refused), 1U);
  EXPECT_EQ(counted(LimitCounter::Refused), 201U);
}

TEST_F(ForkTest, ThreadsOfAChildDecideAndEndInPeace) {
  start("limits:\n  api: {rate: 1/d, burst: 100}\n");
  Limit api = limit();
  ASSERT_TRUE(api.try_acquire("k").allowed());
  const std::uint32_t stripes = shm::stripes_in_use(view());

  const pid_t pid = fork();
  if (pid == 0) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&] { for (int n = 0; n < 11; ++n) api.try_acquire("k"); });
    }
    for (std::thread& thread : threads) thread.join();
    _exit(0);
  }
  EXPECT_EQ(wait_for(pid), 0);

  EXPECT_EQ(shm::stripes_in_use(view()), stripes);
  EXPECT_EQ(counted(LimitCounter::Allowed), 34U);
}

TEST_F(ForkTest, ChildHasNoneOfItsParentsLeases) {
  start("limits:\n  api: {rate: 1/d, burst: 160, thread-lease: 10}\n");
  Limit api = limit();
  ASSERT_EQ(api.try_acquire("k").decided_by(), DecidedBy::ThreadLease);    // 9 left

  const pid_t pid = fork();
  if (pid == 0) {
    int admitted = 0;
    for (int n = 0; n < 500; ++n) admitted += api.try_acquire("k").allowed() ? 1 : 0;
    _exit(admitted);                                                       // 150 at most
  }
  const int status = wait_for(pid);
  int admitted = 1;
  for (int n = 0; n < 500; ++n) admitted += api.try_acquire("k").allowed() ? 1 : 0;

  EXPECT_EQ(WEXITSTATUS(status), 150);
  EXPECT_EQ(admitted, 10);
}

TEST_F(ForkTest, SleepersOfTheParentDoNotCountInTheChild) {
  start("limits:\n  api: {rate: 1/s, burst: 1, max-waiting: 1}\n");
  Limit api = limit();
  detail::LimitState* state = *client->core().limit("api");
  ASSERT_TRUE(api.try_acquire("k").allowed());
  std::thread sleeper([&] { api.acquire("k", {.max_wait = 10s}); });
  while ((state->waiting.load() & 0xffff'ffff) != 1) std::this_thread::yield();

  const pid_t pid = fork();
  if (pid == 0) {
    clock.advance(1ns);                     // seen by everybody: the memory is shared
    const Decision d = api.acquire("other key", {.max_wait = 1s});
    const Decision e = api.reserve("k", {.max_wait = 10s});
    _exit(d.allowed() && e.starts_in() == 2s - 1ns ? 7 : 0);
  }
  EXPECT_EQ(WEXITSTATUS(wait_for(pid)), 7);

  clock.advance(1s);
  sleeper.join();
  EXPECT_EQ(clock.now(), 1s + 1ns);
}

TEST_F(ForkTest, AHundredChildrenEndingInEveryWayLeaveTheParentAlone) {   // C067
  start("limits:\n  api: {rate: 1/d, burst: 1000}\n");
  Limit api = limit();
  ASSERT_TRUE(api.try_acquire("k").allowed());

  for (int i = 0; i < 100; ++i) {
    const pid_t pid = fork();
    if (pid == 0) {
      api.try_acquire("k");
      switch (i % 5) {
        case 0: _exit(0);
        case 1: client.reset(); _exit(0);             // destructor of what it inherited
        case 2: kill(getpid(), SIGKILL); break;
        case 3: std::quick_exit(0);
        default: {
          const bool refused = !client->reload("limits:\n  api: {rate: 5/d}\n").ok();
          _exit(refused ? 0 : 1);
        }
      }
    }
    const int status = wait_for(pid);
    if (i % 5 == 2) EXPECT_EQ(WTERMSIG(status), SIGKILL);
    else EXPECT_EQ(status, 0) << i;
  }

  EXPECT_EQ(counted(LimitCounter::Allowed), 101U);
  EXPECT_EQ(api.try_acquire("k").remaining(), 1000U - 102);
  EXPECT_TRUE(client->reload("limits:\n  api: {rate: 1/d, burst: 1000}\n"));
  EXPECT_EQ(client->core().row().index, shm::kDaemonRow);
}

// ThreadSanitizer ends a child that starts threads after a fork of several threads.
#if !defined(__SANITIZE_THREAD__)
TEST_F(ForkTest, ForkInTheMiddleOfOpeningClientsNeverHangsTheChild) {
  start("capacity: {keys: 1024}\nlimits:\n  api: {rate: 1/d, burst: 1000}\n");
  std::atomic<bool> stop{false};
  std::thread opener([&] {
    while (!stop) make_client("capacity: {keys: 1024}\nlimits:\n  api: {rate: 1/d}\n", clock);
  });

  for (int i = 0; i < 50; ++i) {
    const pid_t pid = fork();
    if (pid == 0) {
      std::thread([&] { limit().try_acquire("k"); }).join();
      client.reset();                       // takes the lock that the opener may hold
      _exit(0);
    }
    EXPECT_EQ(wait_for(pid), 0);
  }
  stop = true;
  opener.join();
}
#endif

}  // namespace
}  // namespace cutwater::test
