// SPDX-License-Identifier: Apache-2.0
// Eight processes of four threads each over one breaker: one trip, one half-open, exact sums.
#include <set>

#include "stress/breaker_world.hpp"
#include "stress/crew.hpp"

namespace cutwater::test {
namespace {

using rule::BreakerState;
using shm::BreakerCounter;
using shm::Ended;
using shm::EventKind;

constexpr std::uint32_t kProcesses = 8;
constexpr std::uint32_t kThreads = 4;

struct Told {
  std::atomic<std::uint64_t> granted{0}, refused{0}, counted{0}, stale{0}, failures{0};
};

/// Runs `work(process, thread)` in all threads of all processes at once.
void crowd(const std::function<void(std::uint32_t, std::uint32_t)>& work) {
  EXPECT_TRUE(run_crowd(kProcesses, kThreads, work));
}

WorldOptions many_events() {
  WorldOptions options;
  options.events = 4096;
  return options;
}

// covers: S46
TEST(BreakerProcesses, AtTheOpenDeadlineExactlyPOfAllAreGranted) {
  rule::BreakerSettings settings = count_breaker({1, 1, 5});
  for (int round = 0; round < 20; ++round) {
    BreakerWorld w(settings, kProcesses, many_events());
    w.run("F");
    w.pass(1'001 * kMillisecond);
    Shared<Told> told;
    crowd([&](std::uint32_t p, std::uint32_t) {
      for (int i = 0; i < 50; ++i) {
        const shm::BreakerEntry entry = w.enter(p);
        ++(entry.granted ? told->granted : told->refused);
      }
    });

    EXPECT_EQ(told->granted, 5U);
    EXPECT_EQ(told->refused, kProcesses * kThreads * 50U - 5U);
    std::uint64_t to_half_open = 0;
    for (const shm::Event& event : w.events(EventKind::BreakerMoved)) {
      to_half_open += event.to == static_cast<int>(BreakerState::HalfOpen);
    }
    EXPECT_EQ(to_half_open, 1U);
    EXPECT_EQ(w.info().probes_held, 5U);
  }
}

// covers: S47
TEST(BreakerProcesses, ThirtyTwoThreadsPastTheThresholdOpenOnceAndLoseNoOutcome) {
  for (const bool time : {false, true}) {
    rule::BreakerSettings settings = count_breaker({100, 100, 1});
    settings.failure_rate_ppm = rule::kPpm;
    if (time) settings.window_type = rule::WindowType::TimeBased;
    for (int round = 0; round < 10; ++round) {
      BreakerWorld w(settings, kProcesses, many_events());
      Shared<Told> told;
      crowd([&](std::uint32_t p, std::uint32_t) {
        for (int i = 0; i < 10; ++i) {
          const shm::BreakerEntry entry = w.enter(p);
          if (!entry.granted) {
            ++told->refused;
            continue;
          }
          ++told->granted;
          ++(w.finish(entry, Ended::Failure, p) == shm::Recorded::Counted ? told->counted
                                                                          : told->stale);
        }
      });

      EXPECT_EQ(w.state(), BreakerState::Open);
      EXPECT_EQ(w.events(EventKind::BreakerMoved).size(), 1U);
      EXPECT_GE(told->counted, 100U);
      EXPECT_EQ(told->granted, told->counted + told->stale);
      EXPECT_EQ(w.count(BreakerCounter::Failure) + w.count(BreakerCounter::Stale), told->granted);
      EXPECT_EQ(told->granted + told->refused, kProcesses * kThreads * 10U);
    }
  }
}

TEST(BreakerProcesses, SumsAreExactWhenNothingOpens) {
  for (const bool time : {false, true}) {
    rule::BreakerSettings settings = count_breaker({60'000, 60'000, 1});
    settings.failure_rate_ppm = rule::kPpm;
    if (time) settings.window_type = rule::WindowType::TimeBased;
    BreakerWorld w(settings, kProcesses, many_events());
    crowd([&](std::uint32_t p, std::uint32_t t) {
      Chance chance(1 + p * kThreads + t);
      for (int i = 0; i < 1'000; ++i) {
        const shm::BreakerEntry entry = w.enter(p);
        w.finish(entry, (p + t + static_cast<std::uint32_t>(i)) % 2 == 0 ? Ended::Failure
                                                                         : Ended::Success, p);
      }
    });

    EXPECT_EQ(w.info().window.calls, 32'000U);
    EXPECT_EQ(w.info().window.failures, 16'000U);
    EXPECT_EQ(w.count(BreakerCounter::Failure), 16'000U);
    EXPECT_EQ(w.count(BreakerCounter::Success), 16'000U);
  }
}

TEST(BreakerProcesses, CallsInFlightAreGivenBackAndCountOnce) {
  rule::BreakerSettings settings = count_breaker({60'000, 60'000, 1});
  settings.slow_rate_ppm = rule::kPpm;
  settings.slow_duration_ns = 2'000'000;
  settings.count_hanging = true;
  BreakerWorld w(settings, kProcesses, many_events());
  Shared<Told> told;
  crowd([&](std::uint32_t p, std::uint32_t t) {
    for (int i = 0; i < 500; ++i) {
      const shm::BreakerEntry entry = w.enter(p);
      if (t == 0) w.pass(kMillisecond / 4);
      if (i % 50 == 0) w.tick();
      ++(w.finish(entry, i % 8 == 0 ? Ended::Cancelled : Ended::Success, p) ==
                 shm::Recorded::Counted
             ? told->counted
             : told->stale);
    }
  });

  EXPECT_EQ(w.state(), BreakerState::Closed);
  EXPECT_EQ(w.info().hanging, 0U);
  EXPECT_EQ(w.info().window.calls, told->counted);
  EXPECT_EQ(w.info().window.slow, w.count(BreakerCounter::SlowSuccess));
  EXPECT_EQ(w.count(BreakerCounter::Success) + w.count(BreakerCounter::Cancelled), 16'000U);
  EXPECT_EQ(w.count(BreakerCounter::Untracked), 0U);
  EXPECT_EQ(w.count(BreakerCounter::HangingReclaimed), 0U);
}

// covers: C072
TEST(BreakerProcesses, EveryHalfOpenEpochGrantsItsProbesAndNoMore) {
  rule::BreakerSettings settings = count_breaker({1, 1, 5});
  settings.half_open_rule = rule::HalfOpenRule::AllSucceed;
  settings.open_wait_ns = 1'000'000;
  BreakerWorld w(settings, kProcesses, many_events());
  w.run("F");
  struct Grants { std::atomic<std::uint32_t> of_epoch[4096]{}; };
  Shared<Grants> grants;
  crowd([&](std::uint32_t p, std::uint32_t t) {
    Chance chance(100 + p * kThreads + t);
    for (int i = 0; i < 400; ++i) {
      const shm::BreakerEntry entry = w.enter(p);
      if (entry.granted && entry.call.kind == shm::CallKind::Probe) {
        const std::uint32_t before = grants->of_epoch[entry.call.epoch % 4096].fetch_add(1);
        const bool ignored = chance.one_in(10);
        if (ignored) grants->of_epoch[entry.call.epoch % 4096].fetch_sub(1);
        EXPECT_LT(before, 5U + kProcesses * kThreads);
        w.finish(entry, ignored ? Ended::Ignored : chance.one_in(3) ? Ended::Failure
                                                                    : Ended::Success, p);
      } else if (entry.granted) {
        w.finish(entry, Ended::Failure, p);
      } else if (p == 0 && t == 0) {
        shm::step_clock(w.view(), w.view().clock.now() + 300'000);
      }
    }
  });
  std::uint32_t epochs = 0;
  for (const auto& granted : grants->of_epoch) {
    EXPECT_LE(granted, 5U);
    epochs += granted > 0;
  }
  EXPECT_GT(epochs, 10U);
  std::set<std::uint32_t> seen;
  for (const shm::Event& event : w.events(EventKind::BreakerMoved)) {
    EXPECT_TRUE(seen.insert(event.epoch).second);
  }
  w.tick();
  EXPECT_EQ(w.events(EventKind::BreakerMoved).size() + 1, w.info().word.epoch);
}

}  // namespace
}  // namespace cutwater::test
