// SPDX-License-Identifier: Apache-2.0
// L6: a closed breaker's try_enter(), alone and with the outcome; L7: enter and leave of a
// bulkhead, which is a semaphore that survives a kill, against the system's two: a SysV semaphore
// with SEM_UNDO, and a robust mutex, which holds one caller only. M1b: bytes per breaker.
//
// A Call that is dropped without a word is a call cancelled, which counts. The first line of L6 is
// about entering alone, so its Calls are made in a ring and never ended.
// L6f, L6s, L6t, L6u: the long ways, reported only: an outcome that is judged (a failure, a
// slow call), a window over time, and both. Their breakers cannot open, so all calls are granted.
#include <cutwater/client.hpp>

#include <pthread.h>
#include <sys/ipc.h>
#include <sys/sem.h>

#include <array>
#include <memory>
#include <new>

#include "harness.hpp"
#include "reference.hpp"
#include "shm/breaker/layout.hpp"
#include "shm/breaker/publisher.hpp"

namespace cutwater::bench {
namespace {

constexpr std::uint64_t kOperations = 100'000;
constexpr std::uint64_t kSlowOperations = 10'000;  // of what enters the kernel
constexpr std::size_t kRing = 64, kHot = 64, kOrder = 1 << 16;
constexpr std::uint32_t kWindow = 100;

// The first judges failures alone and measures nothing; the second has a bound for slow calls.
const char kYaml[] =
    "breakers:\n"
    "  plain:    { sliding-window-type: COUNT_BASED, sliding-window-size: 100,\n"
    "              slow-call-rate-threshold: off }\n"
    "  timed:    { sliding-window-type: COUNT_BASED, sliding-window-size: 100,\n"
    "              slow-call-rate-threshold: 100, slow-call-duration-threshold: 60s }\n"
    "  failing:  { sliding-window-type: COUNT_BASED, sliding-window-size: 100,\n"
    "              failure-rate-threshold: off, slow-call-rate-threshold: off,\n"
    "              failure-count-threshold: 65535, half-open-decision: all-succeed }\n"
    "  slow:     { sliding-window-type: COUNT_BASED, sliding-window-size: 100,\n"
    "              slow-call-rate-threshold: 100, slow-call-duration-threshold: 1ms }\n"
    "  by-time:  { failure-rate-threshold: off, consecutive-failures: off,\n"
    "              slow-call-rate-threshold: 100, slow-call-duration-threshold: 60s }\n"
    "bulkheads:\n"
    "  places:   { max-concurrent-calls: 10, max-wait-duration: 0 }\n";

class SysvSemaphore {
 public:
  SysvSemaphore() : id_(semget(IPC_PRIVATE, 1, IPC_CREAT | 0600)) {
    if (id_ >= 0) semctl(id_, 0, SETVAL, 10);
  }
  ~SysvSemaphore() {
    if (id_ >= 0) semctl(id_, 0, IPC_RMID);
  }
  SysvSemaphore(const SysvSemaphore&) = delete;
  SysvSemaphore& operator=(const SysvSemaphore&) = delete;
  bool pair() noexcept { return step(-1) && step(1); }

 private:
  bool step(short by) noexcept {
    sembuf one{0, by, SEM_UNDO | IPC_NOWAIT};
    return semop(id_, &one, 1) == 0;
  }
  const int id_;
};

class RobustMutex {
 public:
  RobustMutex() : mutex_(static_cast<pthread_mutex_t*>(shared_pages(sizeof(pthread_mutex_t)))) {
    pthread_mutexattr_t how;
    pthread_mutexattr_init(&how);
    pthread_mutexattr_setpshared(&how, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&how, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(mutex_, &how);
    pthread_mutexattr_destroy(&how);
  }
  bool pair() noexcept {
    return pthread_mutex_lock(mutex_) == 0 && pthread_mutex_unlock(mutex_) == 0;
  }

 private:
  pthread_mutex_t* mutex_;
};

struct Setup {
  Setup()
      : order(uniform_order(kOrder, kHot)),
        gcra(kHot),
        client(Client::in_memory(kYaml).value()),
        breaker(client.breaker("plain").value()),
        timed(client.breaker("timed").value()),
        failing(client.breaker("failing").value()),
        slow(client.breaker("slow").value()),
        by_time(client.breaker("by-time").value()),
        gate(client.bulkhead("places").value()) {}

  /// try_enter() without what its end costs.
  bool enter_only(std::uint64_t i) noexcept {
    return (new (ring[i % kRing].bytes) Entered(breaker.try_enter()))->granted();
  }
  bool given(std::uint64_t) noexcept {
    Entered entered = breaker.try_enter();
    if (!entered) return false;
    entered->succeeded(std::chrono::milliseconds{1});
    return true;
  }
  bool measured(std::uint64_t) noexcept {
    Entered entered = timed.try_enter();
    if (!entered) return false;
    entered->succeeded();
    return true;
  }
  static bool failed(Breaker& of) noexcept {
    Entered entered = of.try_enter();
    if (!entered) return false;
    entered->failed("timeout", std::chrono::milliseconds{1});
    return true;
  }
  static bool succeeded(Breaker& of, Nanos took) noexcept {
    Entered entered = of.try_enter();
    if (!entered) return false;
    entered->succeeded(took);
    return true;
  }
  /// Two of three, as all would open it.
  bool slow_call(std::uint64_t i) noexcept {
    return succeeded(slow, i % 3 == 0 ? Nanos{1000} : Nanos{2'000'000});
  }
  bool place(std::uint64_t) noexcept { return gate.try_enter().granted(); }  // left at the end

  std::vector<std::uint32_t> order;
  GcraArray gcra;
  Client client;
  Breaker breaker, timed, failing, slow, by_time;
  Bulkhead gate;
  SysvSemaphore semaphore;
  RobustMutex mutex;
  struct Slot {
    alignas(Entered) char bytes[sizeof(Entered)];
  };
  std::array<Slot, kRing> ring;
};

template <class Ask>
Case make_case(const char* name, std::uint64_t operations, Ask ask) {
  return {name, operations, [ask](std::uint64_t n) {
            std::uint64_t granted = 0;
            for (std::uint64_t i = 0; i < n; ++i) granted += ask(i) ? 1 : 0;
            if (granted != n) std::fprintf(stderr, "cutwater-bench: a call was refused\n");
            keep(granted);
          }};
}

}  // namespace

std::vector<Figure> breaker_figures(const Plan& plan) {
  auto s = std::make_shared<Setup>();
  const std::vector<Case> cases = {
      make_case("gcra_array", kOperations,
                [s](std::uint64_t i) { return s->gcra.take(s->order[i % kOrder]); }),
      make_case("enter", kOperations, [s](std::uint64_t i) { return s->enter_only(i); }),
      make_case("enter, duration given", kOperations, [s](std::uint64_t i) { return s->given(i); }),
      make_case("enter, measured", kOperations, [s](std::uint64_t i) { return s->measured(i); }),
      make_case("failure", kOperations, [s](std::uint64_t) { return s->failed(s->failing); }),
      make_case("slow call", kOperations, [s](std::uint64_t i) { return s->slow_call(i); }),
      make_case("TIME window", kOperations,
                [s](std::uint64_t) { return s->succeeded(s->by_time, Nanos{1000}); }),
      make_case("failure, TIME window", kOperations,
                [s](std::uint64_t) { return s->failed(s->by_time); }),
      make_case("bulkhead", kOperations, [s](std::uint64_t i) { return s->place(i); }),
      make_case("SysV", kSlowOperations, [s](std::uint64_t) { return s->semaphore.pair(); }),
      make_case("robust", kOperations, [s](std::uint64_t) { return s->mutex.pair(); }),
  };
  enum {
    kGcra, kEnter, kGiven, kMeasured, kFailure, kSlow, kTime, kBoth, kPlace, kSysv, kRobust
  };
  const std::vector<Times> t = Rounds(plan.rounds()).run(cases);
  const auto figure = [&](const char* id, const char* name, int of, int to, const char* to_name,
                          double must, double gate, bool at_least = false) {
    return Figure{id,
                  name,
                  median(t[of].wall),
                  median(t[of].cpu),
                  ratio_of(t[of], t[to]),
                  to_name,
                  must,
                  at_least,
                  gate};
  };
  rule::BreakerSettings settings;
  settings.name = "plain";
  settings.window_type = rule::WindowType::CountBased;
  settings.window_calls = kWindow;
  const double bytes =
      static_cast<double>(shm::breaker_memory_needed({settings}) + sizeof(shm::BreakerHead));
  // Gates hold what is reached where the bound is not: bench/README.md.
  return {
      figure("L6", "breaker try_enter, closed", kEnter, kGcra, "gcra_array", 0.15, 0.17),
      figure("L6g", "and its outcome, duration given", kGiven, kGcra, "gcra_array", 1.2, 1.2),
      figure("L6m", "and its outcome, duration measured", kMeasured, kGcra, "gcra_array", 2.2, 2.7),
      figure("L6f", "and a failure, duration given", kFailure, kGcra, "gcra_array", 0, 0),
      figure("L6s", "and a slow call (2 of 3)", kSlow, kGcra, "gcra_array", 0, 0),
      figure("L6t", "TIME window, a success, duration given", kTime, kGcra, "gcra_array", 0, 0),
      figure("L6u", "TIME window, a failure, duration given", kBoth, kGcra, "gcra_array", 0, 0),
      figure("L7", "bulkhead enter and leave", kPlace, kGcra, "gcra_array", 0.9, 1.1),
      figure("L7s", "SysV semaphore pair, SEM_UNDO", kSysv, kPlace, "a bulkhead's", 12, 12, true),
      figure("L7r", "robust mutex pair (one caller only)", kRobust, kPlace, "a bulkhead's", 0, 0),
      Figure{"M1b", "bytes per breaker, window of 100", 0, 0, bytes, "", 4608, false},
  };
}

}  // namespace cutwater::bench
