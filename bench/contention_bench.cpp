// SPDX-License-Identifier: Apache-2.0
// L5: two processes on one hot key, against gcra_array with two processes; and with a thread lease,
// against gcra_array of one process alone. The second process runs the same case all the while.
#include <cutwater/client.hpp>

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <memory>

#include "harness.hpp"
#include "reference.hpp"

namespace cutwater::bench {
namespace {

constexpr std::uint64_t kOperations = 30'000;
constexpr std::uint64_t kSlice = 200;
constexpr int kIdle = -1;

const char kYaml[] =
    "limits:\n"
    "  hot:    { rate: 1/s, burst: 1000000000 }\n"
    "  leased: { rate: 1/s, burst: 1000000000, thread-lease: 1024 }\n";

// What the two processes share besides what they measure.
struct Signals {
  std::atomic<int> which{kIdle};          // the case the second process shall run
  std::atomic<std::uint64_t> done{0};     // operations it has done
};

void pin(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  sched_setaffinity(0, sizeof set, &set);
}

pid_t start_second(Signals& signals, const std::vector<std::function<void()>>& slices) {
  const pid_t child = fork();
  if (child != 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  pin(1);
  for (;;) {
    const int which = signals.which.load();
    if (which == kIdle) {
      usleep(50);
      continue;
    }
    slices[static_cast<std::size_t>(which)]();
    signals.done.fetch_add(kSlice);
  }
}

// A case timed while the second process is really at it. A round in which that one did less than
// half as much does not count: it had no core.
Case beside(const char* name, Signals& signals, int which, std::function<void()> slice) {
  auto started = std::make_shared<std::uint64_t>(0);
  return {name, kOperations,
          [slice](std::uint64_t n) {
            for (std::uint64_t i = 0; i < n; i += kSlice) slice();
          },
          [&signals, which, started] {
            if (which == kIdle) return;
            const std::uint64_t before = signals.done.load();
            signals.which.store(which);
            while (signals.done.load() < before + 4 * kSlice) sched_yield();
            *started = signals.done.load();
          },
          [&signals, which, started] {
            signals.which.store(kIdle);
            return which == kIdle || signals.done.load() - *started >= kOperations / 2;
          }};
}

template <class Ask>
std::function<void()> slice_of(Ask ask) {
  return [ask] {
    std::uint64_t allowed = 0;
    for (std::uint64_t i = 0; i < kSlice; ++i) allowed += ask() ? 1 : 0;
    keep(allowed);
  };
}

}  // namespace

std::vector<Figure> contention_figures(const Plan& plan) {
  auto& signals = *new (shared_pages(sizeof(Signals))) Signals;
  GcraArray gcra(64);
  Client client = Client::in_memory(kYaml).value();
  Limit hot = client.limit("hot").value(), leased = client.limit("leased").value();
  keep(hot.try_acquire("k", 1'000'000).allowed());
  keep(leased.try_acquire("k", 1'000'000).allowed());
  Key leased_key = leased.key("k");  // who opts in to a lease has a very hot key at hand
  const std::vector<std::function<void()>> slices = {
      slice_of([&] { return gcra.take(0); }),
      slice_of([&] { return hot.try_acquire("k").allowed(); }),
      slice_of([&] { return leased_key.try_acquire().allowed(); }),
  };
  const pid_t second = start_second(signals, slices);
  if (second < 0) return {};
  cpu_set_t before;
  sched_getaffinity(0, sizeof before, &before);
  pin(0);
  const std::vector<Case> cases = {
      beside("gcra_array, one process", signals, kIdle, slices[0]),
      beside("gcra_array, two processes", signals, 0, slices[0]),
      beside("hot key, two processes", signals, 1, slices[1]),
      beside("thread lease, two processes", signals, 2, slices[2]),
  };
  const std::vector<Times> t = Rounds(plan.rounds()).run(cases);
  sched_setaffinity(0, sizeof before, &before);
  kill(second, SIGKILL);
  waitpid(second, nullptr, 0);
  const auto figure = [&](const char* id, int of, int to, double must) {
    return Figure{
        id,         t[of].name, median(t[of].wall), median(t[of].cpu), ratio_of(t[of], t[to]),
        t[to].name, must};
  };
  return {figure("", 0, 0, 0), figure("", 1, 0, 0), figure("L5", 2, 1, 1.3),
          figure("L5t", 3, 0, 0.3)};
}

}  // namespace cutwater::bench
