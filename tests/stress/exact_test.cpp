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
    // Whole tokens of a sum that is itself rounded down to a unit: where the unit is coarse, the
    // last part of a token may be missing. Never one too many.
    const std::uint64_t coarse = data.f < 20 ? 1 : 0;
    out.remaining += ours.remaining() > theirs.remaining ||
                     ours.remaining() + coarse < theirs.remaining;
    if (theirs.retry_after_ns && !ours.allowed()) {
      // Exact to a nanosecond, or to one unit of the limit's clock where that is coarser.
      const double unit = mean * 2 / std::exp2(static_cast<double>(data.f));
      out.waits += static_cast<double>(abs_difference(
                       ours.retry_after().count(),
                       static_cast<std::int64_t>(*theirs.retry_after_ns))) > std::max(1.0, unit);
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

}  // namespace
}  // namespace cutwater::test
