// SPDX-License-Identifier: Apache-2.0
// The limiter in shared memory against exact rational arithmetic (tests/support/exact_limiter.hpp):
// 4 million decisions over rates from one a day to 10 million a second, no difference.
#include <gtest/gtest.h>

#include <cmath>

#include "stress/world.hpp"
#include "support/exact_limiter.hpp"

namespace cutwater::test {
namespace {

constexpr std::int64_t kDay = 24 * kHour;
constexpr std::int64_t kLatest = shm::kHorizonNs / 10 * 9;

struct Line {
  const char* name;
  Rate rate;
  std::uint64_t burst;
};
constexpr Line kLines[] = {
    {"1/day, burst 1", {1, kDay}, 1},
    {"1/day, burst 1e9", {1, kDay}, 1'000'000'000},
    {"10/s, burst 10", {10, kSecond}, 10},
    {"3/s, burst 5", {3, kSecond}, 5},
    {"100/min, burst 100", {100, 60 * kSecond}, 100},
    {"9973/s, burst 100", {9'973, kSecond}, 100},
    {"700k/s, burst 1000", {700'000, kSecond}, 1'000},
    {"7M/s, burst 1000", {7'000'000, kSecond}, 1'000},
    {"9999991/s, burst 1e9", {9'999'991, kSecond}, 1'000'000'000},
    {"10M/s, burst 1", {10'000'000, kSecond}, 1},
};
constexpr std::uint64_t kEvents = 500'000;       // of a line, where the horizon allows them

struct Differences {
  std::uint64_t events = 0, admitted = 0, decisions = 0, remaining = 0, waits = 0;
};

std::int64_t abs_difference(std::int64_t a, std::int64_t b) { return a > b ? a - b : b - a; }

// Asks both at the same stamps, at twice the rate.
Differences compare(const Line& line, std::uint64_t seed) {
  World world({limit("api", line.rate, line.burst)});
  const shm::LimitRef api = world.ref("api");
  const std::int64_t start = world.now();        // the rule's clock started there
  ExactBucket exact(line.rate.count, static_cast<std::uint64_t>(line.rate.period_ns), line.burst);
  Chance chance(seed);
  Differences out;
  std::uint64_t hint = shm::kNoSlot;
  const double mean =
      static_cast<double>(line.rate.period_ns) / static_cast<double>(line.rate.count) / 2;
  double passed = static_cast<double>(kDay) * 365;
  std::uint64_t preload = line.burst >= 1'000'000 ? 999 : 0;
  for (std::uint64_t i = 0; i < kEvents; ++i) {
    if (preload == 0) passed += mean * 2 * static_cast<double>(chance() >> 11) * 0x1p-53;
    const auto elapsed = static_cast<std::int64_t>(passed);
    if (start + elapsed > kLatest) break;
    std::uint64_t cost = line.burst > 4 ? 1 + chance.below(3) : 1;
    if (preload > 0) {                           // the large bursts: empty them first
      cost = line.burst / 1'000;
      --preload;
    }
    DecisionData data;
    // As step_clock() without its wake-up of nobody.
    __atomic_store_n(&world.view().state_control->stepped_ns, start + elapsed, __ATOMIC_RELEASE);
    charge(world.view(), {api, key(7), cost, 0}, hint, data);
    const Decision ours{data};
    const ExactAnswer theirs = exact.take(static_cast<std::uint64_t>(elapsed), cost);
    ++out.events;
    out.admitted += theirs.allowed;
    out.decisions += ours.allowed() != theirs.allowed;
    // Whole tokens of a sum known to one unit of the limit's clock. Where a unit is a coarse part
    // of a token (2^-9 for 10M/s and a burst of 1e9), a sum next to a whole one may count as it.
    const std::uint64_t unit = data.f < 20 ? 1 : 0;
    out.remaining += ours.remaining() > theirs.remaining + unit ||
                     ours.remaining() + unit < theirs.remaining;
    if (theirs.retry_after_ns && !ours.allowed()) {
      // Exact to a nanosecond, or to one unit of the limit's clock where that is coarser.
      const double unit_ns = mean * 2 / std::exp2(static_cast<double>(data.f));
      out.waits += static_cast<double>(abs_difference(
                       ours.retry_after().count(),
                       static_cast<std::int64_t>(*theirs.retry_after_ns))) > std::max(1.0, unit_ns);
    }
  }
  return out;
}

// covers: C001, C002, C005, C007, C021 (4M decisions against rationals)
TEST(Exact, FourMillionDecisionsDoNotDiffer) {
  std::uint64_t events = 0;
  for (const Line& line : kLines) {
    const Differences found = compare(line, 7);
    std::printf("%-22s %7lu decisions, %7lu admitted; different: %lu decisions, %lu remaining, "
                "%lu waits\n",
                line.name, static_cast<unsigned long>(found.events),
                static_cast<unsigned long>(found.admitted),
                static_cast<unsigned long>(found.decisions),
                static_cast<unsigned long>(found.remaining),
                static_cast<unsigned long>(found.waits));
    EXPECT_EQ(found.decisions, 0U) << line.name;
    EXPECT_EQ(found.remaining, 0U) << line.name;
    EXPECT_EQ(found.waits, 0U) << line.name;
    events += found.events;
  }
  EXPECT_GE(events, 4'000'000U);
}

// Where a token takes whole nanoseconds the wait is the oracle's to the nanosecond: a rate that was
// rounded down would let everybody who waits exactly that long come too early.
TEST(Exact, AWaitOfWholeNanosecondsIsNotOneLonger) {
  // All with a unit below a nanosecond: slower ones are exact to their unit (3.3 ns at 1/hour).
  constexpr Line kWhole[] = {{"1/s", {1, kSecond}, 3},
                             {"10/s", {10, kSecond}, 10},
                             {"100/min", {100, 60 * kSecond}, 7},
                             {"1000/s", {1'000, kSecond}, 20},
                             {"10/min", {10, 60 * kSecond}, 2}};
  std::uint64_t refused = 0;
  for (const Line& line : kWhole) {
    World world({limit("api", line.rate, line.burst)});
    const std::int64_t start = world.now();
    ExactBucket exact(line.rate.count, static_cast<std::uint64_t>(line.rate.period_ns), line.burst);
    const auto token = static_cast<std::uint64_t>(line.rate.period_ns) / line.rate.count;
    Chance chance(11);
    for (int i = 0; i < 50'000; ++i) {
      // First at the very moment at which the limit's clock starts: from there all is whole, and
      // the last unit decides.
      if (i >= 50) world.pass(static_cast<std::int64_t>(chance.below(token)));
      const std::uint64_t cost = 1 + chance.below(line.burst);
      const auto elapsed = static_cast<std::uint64_t>(world.now() - start);
      const Decision ours{world.take("api", key(7), cost)};
      const ExactAnswer theirs = exact.take(elapsed, cost);
      ASSERT_EQ(ours.allowed(), theirs.allowed) << line.name << ", decision " << i;
      ASSERT_EQ(static_cast<std::uint64_t>(ours.retry_after().count()), *theirs.retry_after_ns)
          << line.name << ", decision " << i;
      ASSERT_EQ(static_cast<std::uint64_t>(ours.reset_after().count()), theirs.reset_after_ns)
          << line.name << ", decision " << i;
      refused += !theirs.allowed;
    }
  }
  EXPECT_GE(refused, 100'000U);
}

}  // namespace
}  // namespace cutwater::test
