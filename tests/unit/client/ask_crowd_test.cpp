// SPDX-License-Identifier: Apache-2.0
// Many threads and processes over one asking client.
#include <sys/wait.h>

#include "unit/client/ask_fixture.hpp"

namespace cutwater::test {
namespace {

// A fork of a process under a sanitizer copies its shadow memory too.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kForks = 40;
#else
constexpr int kForks = 2000;
#endif

class AskCrowdTest : public AskTest {};

TEST_F(AskCrowdTest, ThreadsShareOneConnectionAndEachGetsItsOwnAnswers) {   // C122
  Client client = open(options());
  Limit api = client.limit("api").value();
  constexpr int kThreads = 8, kAsks = 1500;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const std::string key = "thread " + std::to_string(t);
      for (std::uint64_t i = 0; i < kAsks; ++i) {
        if (api.try_acquire(key).remaining() != daemon.tokens - i - 1) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(daemon.executed_in_all(), std::uint64_t{kThreads} * kAsks);
  EXPECT_EQ(daemon.hellos, 1U);
  EXPECT_EQ(daemon.faults, 0U);
}

TEST_F(AskCrowdTest, ThreadsOverCutsStillAskEverythingOnce) {   // C127
  Client client = open(options());
  Limit api = client.limit("api").value();
  constexpr int kThreads = 6, kAsks = 500;
  std::atomic<bool> over{false};
  std::thread cutter([&] {
    // Beyond a greeting: one that is cut three times in a row loses its session.
    for (long byte = 1; !over; std::this_thread::yield()) {
      if (daemon.cut_in >= 0 || daemon.cut_out >= 0) continue;
      byte = byte * 7 % 997 + 1;
      (byte % 2 == 0 ? daemon.cut_in : daemon.cut_out) = 200 + byte;
    }
    daemon.cut_in = daemon.cut_out = -1;
  });
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const std::string key = "thread " + std::to_string(t);
      for (std::uint64_t i = 0; i < kAsks; ++i) {
        const Decision d = api.try_acquire(key);
        if (d.degraded() || d.remaining() != daemon.tokens - i - 1) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  over = true;
  cutter.join();

  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(daemon.executed_in_all(), std::uint64_t{kThreads} * kAsks);
  EXPECT_EQ(daemon.faults, 0U);
}

TEST_F(AskCrowdTest, AForkedChildOpensASessionOfItsOwn) {   // C066
  Client client = open(options());
  Limit api = client.limit("api").value();
  ASSERT_TRUE(api.try_acquire("parent").allowed());
  std::vector<pid_t> children;
  for (int c = 0; c < 8; ++c) {
    const pid_t pid = fork();
    if (pid == 0) {
      const std::string key = "child " + std::to_string(c);
      bool good = true;
      for (std::uint64_t i = 0; i < 500; ++i) {
        good = good && api.try_acquire(key).remaining() == daemon.tokens - i - 1;
      }
      _exit(good ? 0 : 1);
    }
    children.push_back(pid);
  }
  bool good = true;
  for (std::uint64_t i = 1; i < 500; ++i) {
    good = good && api.try_acquire("parent").remaining() == daemon.tokens - i - 1;
  }
  for (const pid_t pid : children) {
    int status = -1;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
  }

  EXPECT_TRUE(good);
  EXPECT_EQ(daemon.hellos, 9U);
  EXPECT_EQ(daemon.executed_in_all(), 9U * 500);
  EXPECT_EQ(daemon.faults, 0U);
}

TEST_F(AskCrowdTest, ThousandsOfForksLeaveTheParentsConnectionAlone) {   // C067
  Client client = open(options());
  Limit api = client.limit("api").value();
  for (int i = 0; i < kForks; ++i) {
    const pid_t pid = fork();
    if (pid == 0) {
      if (i % 4 == 0) api.try_acquire("child");
      if (i % 4 == 1) { Client inherited = std::move(client); }
      if (i % 2 == 0) _exit(0);
      exit(0);
    }
    ASSERT_TRUE(api.try_acquire("parent").allowed());
    int status = -1;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_EQ(status, 0);
  }

  EXPECT_EQ(daemon.executed("api", "parent"), std::uint64_t{kForks});
  EXPECT_EQ(daemon.executed("api", "child"), std::uint64_t{kForks} / 4);
  EXPECT_EQ(client.status().attached, 1U);
}

}  // namespace
}  // namespace cutwater::test
