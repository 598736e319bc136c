// SPDX-License-Identifier: Apache-2.0
#include "base/clock.hpp"

#include <fstream>
#include <string>
#include <thread>

#include <gtest/gtest.h>

namespace cutwater {
namespace {

// A reading of the counter lies between two readings of the clock, give or take what it may be off
// between two calibrations.
constexpr std::int64_t kDriftNs = 1'000'000;
constexpr int kReadings = 200'000;

void read_many() {
  std::int64_t last = 0;
  for (int i = 0; i < kReadings; ++i) {
    const std::int64_t before = boottime_ns();
    const std::int64_t reading = tsc_boottime_ns();
    const std::int64_t after = boottime_ns();
    ASSERT_GE(reading, last);
    ASSERT_GE(reading, before - kDriftNs);
    ASSERT_LE(reading, after + kDriftNs);
    last = reading;
  }
}

TEST(TscClock, FollowsBoottimeAndNeverFallsWithinAThread) { read_many(); }

TEST(TscClock, EachThreadCalibratesForItself) {
  std::thread a(read_many), b(read_many);
  a.join();
  b.join();
}

TEST(TscClock, IsNotUsableWhereTheKernelDistrustsTheCounter) {
  std::ifstream file("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  std::string source;
  std::getline(file, source);

  if (source != "tsc") {
    EXPECT_FALSE(tsc_usable());
  }
  EXPECT_EQ(tsc_usable(), tsc_usable());
}

TEST(SegmentClock, CountsFromItsEpoch) {
  const std::int64_t epoch = boottime_ns() - 5'000;
  const SegmentClock clock = SegmentClock::boottime(epoch);

  const std::int64_t t = clock.now();

  EXPECT_GE(t, 5'000);
  EXPECT_EQ(clock.to_boottime(t), t + epoch);
  EXPECT_FALSE(clock.is_stepped());
}

TEST(SegmentClock, ByCounterAgreesWithByClock) {
  const std::int64_t epoch = boottime_ns() - 1'000'000'000;
  const SegmentClock by_counter = SegmentClock::tsc(epoch),
                     by_clock = SegmentClock::boottime(epoch);

  const std::int64_t before = by_clock.now();
  const std::int64_t reading = by_counter.now();
  const std::int64_t after = by_clock.now();

  EXPECT_GE(reading, before - kDriftNs);
  EXPECT_LE(reading, after + kDriftNs);
}

TEST(SegmentClock, SteppedShowsItsWord) {
  std::int64_t word = 42;
  const SegmentClock clock = SegmentClock::stepped(&word);

  EXPECT_TRUE(clock.is_stepped());
  EXPECT_EQ(clock.now(), 42);
  word = 43;
  EXPECT_EQ(clock.now(), 43);
}

}  // namespace
}  // namespace cutwater
