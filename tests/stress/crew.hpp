// SPDX-License-Identifier: Apache-2.0
// Crew: forked processes over one memory, and what they tell each other in a shared mapping.
#pragma once
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <new>
#include <thread>
#include <vector>

#include <cutwater/decision.hpp>

namespace cutwater::test {

inline constexpr unsigned kWatchdogSeconds = 60;     // of a child that hangs, never an expectation

/// One T that forked children share with us.
template <class T>
class Shared {
 public:
  Shared() {
    void* place =
        mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (place == MAP_FAILED) std::abort();
    value_ = new (place) T;
  }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  ~Shared() { munmap(static_cast<void*>(value_), sizeof(T)); }
  T* operator->() const { return value_; }
  T& operator*() const { return *value_; }

 private:
  T* value_;
};

/// What one process was granted; entries below `count` are whole, also when it is killed.
template <std::size_t kCapacity>
struct GrantLog {
  struct Entry {
    std::uint64_t key;
    std::int64_t from, to, t;
  };
  std::atomic<std::uint64_t> count{0}, asked{0};
  std::atomic<std::int64_t> first{0}, last{0};       ///< stamps of the first and the last answer
  std::atomic<std::uint64_t> outside{0};             ///< slices beyond the burst at their stamp
  Entry entry[kCapacity];

  void add(std::uint64_t key, const DecisionData& d) {
    if (asked.fetch_add(1, std::memory_order_relaxed) == 0) first = d.t;
    last.store(d.t, std::memory_order_relaxed);
    if (d.reason != Reason::Allowed) return;
    const std::uint64_t n = count.load(std::memory_order_relaxed);
    if (n == kCapacity) return;
    if (!d.computed && (d.level - d.cost < d.n || d.level - d.n > d.burst)) ++outside;
    entry[n] = {key, d.level - d.cost, d.level, d.t};
    count.store(n + 1, std::memory_order_release);
  }
};

/// All processes meet here, as often as they like. Who waits turns for a moment, so that those who
/// have a processor go on together, and then sleeps: the processor is for those still to come.
class Meeting {
 public:
  void wait(std::uint32_t crew) {
    const std::uint32_t round = round_.load();
    if (arrived_.fetch_add(1) + 1 == crew) {
      arrived_ = 0;
      ++round_;
      syscall(SYS_futex, &round_, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
      return;
    }
    for (int spins = 0; spins < 2'000; ++spins) {
      if (round_.load() != round) return;
    }
    while (round_.load() == round) {
      syscall(SYS_futex, &round_, FUTEX_WAIT, round, nullptr, nullptr, 0);
    }
  }

 private:
  std::atomic<std::uint32_t> arrived_{0}, round_{0};
  static_assert(sizeof(std::atomic<std::uint32_t>) == sizeof(std::uint32_t));   // a futex
};

/// For a loop that is cut short where others want the machine: `n < most && !patience.over()`. What
/// it did is checked, however much that was.
class Patience {
 public:
  explicit Patience(std::chrono::seconds most) : end_(std::chrono::steady_clock::now() + most) {}
  bool over() const { return std::chrono::steady_clock::now() >= end_; }

 private:
  std::chrono::steady_clock::time_point end_;
};

inline pid_t start_process(const std::function<void()>& work) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(kWatchdogSeconds);
    work();
    _exit(0);
  }
  return child;
}

/// Wait status of a child that has ended.
inline int wait_for(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {}
  return status;
}

/// Runs work(0) .. work(crew - 1) in processes of their own; true when all ended by themselves.
inline bool run_crew(int crew, const std::function<void(int)>& work) {
  std::vector<pid_t> children;
  for (int me = 0; me < crew; ++me) children.push_back(start_process([&] { work(me); }));
  bool fine = true;
  for (const pid_t child : children) fine &= wait_for(child) == 0;
  return fine;
}

/// Runs `work(process, thread)` in `threads` threads of each of `crew` processes; all begin
/// together. True when all ended by themselves.
inline bool run_crowd(std::uint32_t crew, std::uint32_t threads,
                      const std::function<void(std::uint32_t, std::uint32_t)>& work) {
  Shared<Meeting> meeting;
  return run_crew(static_cast<int>(crew), [&](int me) {
    std::vector<std::thread> running;
    for (std::uint32_t t = 0; t < threads; ++t) {
      running.emplace_back([&, t] {
        meeting->wait(crew * threads);
        work(static_cast<std::uint32_t>(me), t);
      });
    }
    for (std::thread& thread : running) thread.join();
  });
}

}  // namespace cutwater::test
