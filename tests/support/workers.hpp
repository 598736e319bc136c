// SPDX-License-Identifier: Apache-2.0
// Load on a daemon's memory by real processes, for tests that do things to it meanwhile.
// Thread safety: one thread.
#pragma once
#include <csignal>
#include <cstdint>
#include <string>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cutwater/client.hpp>

#include "support/daemon_process.hpp"

namespace cutwater::test {

/// What the workers tell, in memory they share with the test.
struct Tally {
  std::uint64_t asked;
  std::uint64_t admitted;
  std::uint64_t failed;
  std::uint8_t pad[40];
};

/// Processes that ask limit `shared` for key `everybody` as fast as they can, until the end.
class Workers {
 public:
  static constexpr int kCount = 8;

  explicit Workers(const ScratchPlace& place) {
    void* at = ::mmap(nullptr, kCount * sizeof(Tally), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    tally_ = static_cast<Tally*>(at);
    for (int i = 0; i < kCount; ++i) {
      pids_[i] = ::fork();
      if (pids_[i] == 0) work(place.address(), tally_[i]);
    }
  }
  ~Workers() {
    for (const pid_t pid : pids_) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
    ::munmap(tally_, kCount * sizeof(Tally));
  }

  std::uint64_t asked(int i) const { return __atomic_load_n(&tally_[i].asked, __ATOMIC_ACQUIRE); }
  std::uint64_t admitted() const { return sum(&Tally::admitted); }
  std::uint64_t failed() const { return sum(&Tally::failed); }
  /// Each has decided at least once more.
  bool all_go_on() const {
    std::uint64_t before[kCount];
    for (int i = 0; i < kCount; ++i) before[i] = asked(i);
    return eventually([&] {
      for (int i = 0; i < kCount; ++i) {
        if (asked(i) == before[i]) return false;
      }
      return true;
    });
  }

 private:
  [[noreturn]] static void work(const std::string& address, Tally& mine) {
    auto client = Client::open(address);
    if (!client) ::_exit(1);
    auto limit = client->limit("shared");
    if (!limit) ::_exit(2);
    while (true) {
      const Decision decision = limit->try_acquire("everybody");
      if (decision.degraded()) __atomic_fetch_add(&mine.failed, 1, __ATOMIC_RELAXED);
      else if (decision.allowed()) __atomic_fetch_add(&mine.admitted, 1, __ATOMIC_RELAXED);
      __atomic_fetch_add(&mine.asked, 1, __ATOMIC_RELEASE);
      if (mine.asked % 64 == 0) ::usleep(1000);   // leaves the machine to the others
    }
  }
  std::uint64_t sum(std::uint64_t Tally::*field) const {
    std::uint64_t total = 0;
    for (int i = 0; i < kCount; ++i) {
      total += __atomic_load_n(&(tally_[i].*field), __ATOMIC_RELAXED);
    }
    return total;
  }

  Tally* tally_ = nullptr;
  pid_t pids_[kCount] = {};
};

}  // namespace cutwater::test
