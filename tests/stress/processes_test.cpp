// SPDX-License-Identifier: Apache-2.0
// T4, C004, C060: unrelated processes on one memory, by the real clock. What each was given is
// merged afterwards; the checks look at stamps and slices, never at how long something took.
#include <gtest/gtest.h>

#include <algorithm>

#include "stress/crew.hpp"
#include "stress/ledger.hpp"
#include "stress/world.hpp"

namespace cutwater::test {
namespace {

constexpr int kMostProcesses = 16;

// ---- one key, many processes -------------------------------------------------------------------

constexpr std::size_t kLogged = 65'536;
struct Overload {
  Meeting meeting;
  GrantLog<kLogged> log[kMostProcesses];
};

struct Delivered {
  std::uint64_t given = 0, asked = 0;
  double possible = 0, worst = 0;      ///< worst: tokens of the fullest window beyond its bound
};

// All windows at once: with V = tokens so far - rate * t, a window's bound is V(end) - V(begin).
Delivered overload(Rate rate, std::uint64_t burst, int crew, std::int64_t lasts_ns) {
  World world({limit("api", rate, burst)}, {.clock = shm::ClockKind::Boottime});
  Shared<Overload> shared;
  const shm::LimitRef api = world.ref("api");
  EXPECT_TRUE(run_crew(crew, [&](int me) {
    std::uint64_t hint = shm::kNoSlot;
    shared->meeting.wait(static_cast<std::uint32_t>(crew));
    for (const std::int64_t end = world.now() + lasts_ns; world.now() < end;) {
      DecisionData d;
      charge(world.view(), {api, key(7), 1, 0}, hint, d);
      shared->log[me].add(7, d);
      if (d.reason != Reason::Allowed) sched_yield();
    }
  }));
  std::vector<std::int64_t> stamps;
  std::vector<Slice> slices;
  std::int64_t first = INT64_MAX, last = 0;
  Delivered out;
  for (int me = 0; me < crew; ++me) {
    const auto& log = shared->log[me];
    first = std::min(first, log.first.load());
    last = std::max(last, log.last.load());
    out.asked += log.asked;
    for (std::uint64_t i = 0; i < log.count; ++i) {
      stamps.push_back(log.entry[i].t);
      slices.push_back({7, log.entry[i].from, log.entry[i].to});
    }
  }
  std::sort(stamps.begin(), stamps.end());
  std::sort(slices.begin(), slices.end());
  for (std::size_t i = 1; i < slices.size(); ++i) EXPECT_LE(slices[i - 1].to, slices[i].from);
  const double per_ns = static_cast<double>(rate.count) / static_cast<double>(rate.period_ns);
  double lowest = 0;
  for (std::size_t i = 0; i < stamps.size(); ++i) {
    const double begins = static_cast<double>(i) - per_ns * static_cast<double>(stamps[i] - first);
    lowest = i == 0 ? begins : std::min(lowest, begins);
    out.worst = std::max(out.worst, begins + 1 - lowest - static_cast<double>(burst));
  }
  out.given = stamps.size();
  out.possible = static_cast<double>(burst) + per_ns * static_cast<double>(last - first);
  return out;
}

void expect_bound_and_delivery(const char* name, const Delivered& found) {
  std::printf("%-34s asked %8lu, given %6lu of %.1f possible, fullest window %+.6f\n", name,
              static_cast<unsigned long>(found.asked), static_cast<unsigned long>(found.given),
              found.possible, found.worst);
  EXPECT_LE(found.worst, 1e-6) << "a window holds more than burst + rate * its length";
  EXPECT_GE(static_cast<double>(found.given), 0.995 * (found.possible - 1));
}

// covers: C004, C027 (8 processes, free clock)
TEST(Processes, C004UnderOverloadEveryWindowKeepsItsBoundAndAllIsDelivered) {
  expect_bound_and_delivery("8 processes on 100/s, burst 100",
                            overload({100, kSecond}, 100, 8, 6 * kSecond));
}

// covers: S66 (free clock)
TEST(Processes, S66TwoProcessesAsFastAsTheyCan) {
  expect_bound_and_delivery("2 processes on 1000/s, burst 1000",
                            overload({1'000, kSecond}, 1'000, 2, 4 * kSecond));
}

// covers: C060
TEST(Processes, C060ContentionIsNoRefusal) {
  constexpr std::uint64_t kAsks = 20'000;
  struct Counts {
    Meeting meeting;
    std::atomic<std::uint64_t> refused{0};
  };
  for (const int crew : {1, 2, 4, 8, 16}) {
    World world({limit("api", {1, kHour}, 1'000'000'000)}, {.clock = shm::ClockKind::Boottime});
    Shared<Counts> shared;
    const shm::LimitRef api = world.ref("api");
    ASSERT_TRUE(run_crew(crew, [&](int) {
      std::uint64_t hint = shm::kNoSlot;
      shared->meeting.wait(static_cast<std::uint32_t>(crew));
      for (std::uint64_t i = 0; i < kAsks; ++i) {
        DecisionData d;
        charge(world.view(), {api, key(7), 1, 0}, hint, d);
        if (d.reason != Reason::Allowed) ++shared->refused;
      }
    }));
    EXPECT_EQ(shared->refused, 0U) << crew << " processes";
    EXPECT_EQ(world.view().stats_control->contention, 0U);
    EXPECT_EQ(world.members_of(key(7)), 1U);
    const std::uint64_t left = Decision{world.peek(api, key(7), 0)}.remaining();
    EXPECT_EQ(1'000'000'000 - left, kAsks * static_cast<std::uint64_t>(crew));
  }
}

// ---- first sight of one key by several at once -------------------------------------------------

struct Race {
  Meeting meeting;
  std::atomic<std::uint32_t> admitted{0}, no_place{0}, over{0};
  std::uint64_t keys = 0, wrong = 0, twice = 0, without_place = 0;
};

constexpr std::uint64_t kFewestKeys = 100;
constexpr std::chrono::seconds kRaceAtMost{12};

// Each key is met at a barrier by all, between newcomers of other keys; burst 1, a token a day. At
// most `keys`; fewer where the machine has others to serve, as each meeting waits for them.
void race(int crew, std::uint64_t keys, std::uint64_t seed) {
  auto api = limit("api", {1, 24 * kHour}, 1);
  api.on_full = rule::OnFull::Deny;
  World world({api, limit("churn", {1'000'000, kSecond}, 1)},
              {.clock = shm::ClockKind::Boottime});
  Shared<Race> shared;
  const auto everybody = static_cast<std::uint32_t>(crew);
  const shm::LimitRef tested = world.ref("api"), churn = world.ref("churn");
  ASSERT_TRUE(run_crew(crew, [&](int me) {
    Chance chance(seed * 100 + static_cast<std::uint64_t>(me));
    const Patience patience(kRaceAtMost);
    for (std::uint64_t n = 0; n < keys && shared->over == 0; ++n) {
      for (std::uint64_t i = chance.below(4); i > 0; --i) world.take(churn, key(chance()));
      shared->meeting.wait(everybody);
      const DecisionData d = world.take(tested, key(n));
      if (d.reason == Reason::Allowed) ++shared->admitted;
      if (d.reason == Reason::Degraded) ++shared->no_place;
      shared->meeting.wait(everybody);
      if (me == 0) {
        ++shared->keys;
        shared->twice += world.members_of(key(n)) > 1;
        if (shared->no_place != 0) {
          ++shared->without_place;
        } else {
          shared->wrong += shared->admitted != 1;
        }
        shared->admitted = shared->no_place = 0;
        shared->over = n + 1 >= kFewestKeys && patience.over() ? 1 : 0;
        for (std::uint64_t i = 0; i < world.view().slot_count; ++i) {
          Word16 word = load16(world.view().slots + i);
          if (shm::rule_of(word.lo) == shm::kFirstRuleId) cas16(world.view().slots + i, word, {});
        }
      }
      shared->meeting.wait(everybody);
    }
  }));
  EXPECT_EQ(shared->wrong, 0U) << "keys that were not admitted exactly once";
  EXPECT_EQ(shared->twice, 0U) << "keys with two entries";
  EXPECT_GE(shared->keys, kFewestKeys);
  EXPECT_LT(shared->without_place, shared->keys / 10);
  std::printf("%d processes, %lu of %lu keys: %lu not once, %lu with two entries, %lu without "
              "place\n", crew, static_cast<unsigned long>(shared->keys),
              static_cast<unsigned long>(keys),
              static_cast<unsigned long>(shared->wrong), static_cast<unsigned long>(shared->twice),
              static_cast<unsigned long>(shared->without_place));
}

TEST(InsertRace, TwoProcesses) { race(2, 100'000, 1); }
TEST(InsertRace, ThreeProcesses) { race(3, 10'000, 2); }
TEST(InsertRace, FourProcesses) { race(4, 10'000, 3); }

}  // namespace
}  // namespace cutwater::test
