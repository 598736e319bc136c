// SPDX-License-Identifier: Apache-2.0
#include "base/fork_page.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <set>
#include <thread>
#include <vector>

namespace cutwater::test {
namespace {

/// fork(), or clone() behind the C library's back, which runs no pthread_atfork handler.
enum class Way { Fork, RawClone };

pid_t split(Way way) {
  if (way == Way::Fork) return fork();
  return static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, 0));
}

/// Runs `child` in a child; its value comes back as an exit code.
template <class Child>
int exit_code_of(Way way, Child child) {
  const pid_t pid = split(way);
  if (pid == 0) _exit(child());
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

class ForkPageTest : public ::testing::TestWithParam<Way> {};

TEST_P(ForkPageTest, ChildHasAnotherLife) {
  const std::uint64_t mine = process_life();

  const int other = exit_code_of(GetParam(), [&] { return process_life() != mine ? 1 : 0; });

  EXPECT_EQ(other, 1);
  EXPECT_EQ(process_life(), mine);
}

TEST_P(ForkPageTest, GrandchildHasNoAncestorsLife) {
  const std::uint64_t mine = process_life();

  const int good = exit_code_of(GetParam(), [&] {
    const std::uint64_t child = process_life();
    return exit_code_of(GetParam(), [&] {
      return process_life() != child && process_life() != mine ? 1 : 0;
    });
  });

  EXPECT_EQ(good, 1);
}

TEST_P(ForkPageTest, ChildDrawsItsNoncesAnew) {
  // Guard InsertClaimNonce: a parent and a child that count on from one number would make equal
  // claims. A new start equals the parent's next number once in 16.7 million times.
  const std::uint32_t before = next_claim_nonce();

  int followed = 0;
  for (int i = 0; i < 8; ++i) {
    followed += exit_code_of(GetParam(), [&] {
      return next_claim_nonce() == ((before + 1) & 0xffffff) ? 1 : 0;
    });
  }

  EXPECT_LT(followed, 2);
  EXPECT_EQ(next_claim_nonce(), (before + 1) & 0xffffff);
}

INSTANTIATE_TEST_SUITE_P(Ways, ForkPageTest, ::testing::Values(Way::Fork, Way::RawClone),
                         [](const auto& way) {
                           return way.param == Way::Fork ? "Fork" : "RawClone";
                         });

TEST(ClaimNonce, ThreadsNeverGetTheSameOne) {
  constexpr int kThreads = 4, kEach = 20'000;
  std::vector<std::vector<std::uint32_t>> drawn(kThreads);

  std::vector<std::thread> threads;
  for (auto& mine : drawn) {
    threads.emplace_back([&mine] {
      for (int i = 0; i < kEach; ++i) mine.push_back(next_claim_nonce());
    });
  }
  for (std::thread& thread : threads) thread.join();

  std::set<std::uint32_t> all;
  for (const auto& mine : drawn) all.insert(mine.begin(), mine.end());
  EXPECT_EQ(all.size(), std::size_t{kThreads} * kEach);
  EXPECT_LE(*all.rbegin(), 0xffffffU);
}

}  // namespace
}  // namespace cutwater::test
