// SPDX-License-Identifier: Apache-2.0
// How much passes over a time: keys that are asked all the while, fast limits, pauses.
#include <string>
#include <vector>

#include "vectors/every_way.hpp"

namespace cutwater::test {
namespace {

class FlowCases : public EveryWay {
 protected:
  bool in_memory() const { return GetParam().name == std::string_view("InMemory"); }

  /// Asks once each `step` until `end`; how many were admitted.
  std::uint64_t asked_each(Nanos step, Nanos end) {
    std::uint64_t admitted = 0;
    Key key = limit().key("k");
    for (Nanos t = step; t <= end; t += step) {
      at(t);
      admitted += key.try_acquire().allowed() ? 1 : 0;
    }
    return admitted;
  }

  /// Asks until refused at each `step`, from now to `end`; how many were admitted.
  std::uint64_t flooded(Nanos step, Nanos end) {
    std::uint64_t admitted = 0;
    Key key = limit().key("k");
    for (Nanos t{0}; t <= end; t += step) {
      at(t);
      while (key.try_acquire().allowed()) ++admitted;
    }
    return admitted;
  }

  int admitted_of(int calls) {
    int admitted = 0;
    for (int i = 0; i < calls; ++i) admitted += limit().try_acquire("k").allowed() ? 1 : 0;
    return admitted;
  }
};

INSTANTIATE_TEST_SUITE_P(Ways, FlowCases, ::testing::ValuesIn(every_way()), way_name);

TEST_P(FlowCases, C002TheRemainderIsCarriedAt3000ASecond) {
  ASSERT_NO_FATAL_FAILURE(start("api: {rate: 3000/s, burst: 3000}"));
  ASSERT_TRUE(limit().try_acquire("k", 3000).allowed());
  const auto seconds = in_memory() ? 10 : 1;      // each step of a daemon's clock is a message

  const std::uint64_t admitted = asked_each(150us, 1s * seconds);

  EXPECT_NEAR(static_cast<double>(admitted), 3000.0 * seconds, 1.0);
}

TEST_P(FlowCases, C002TheRemainderIsCarriedAt7ASecond) {
  ASSERT_NO_FATAL_FAILURE(start("api: {rate: 7/s, burst: 7}"));
  ASSERT_TRUE(limit().try_acquire("k", 7).allowed());
  const auto seconds = in_memory() ? 60 : 6;

  const std::uint64_t admitted = asked_each(1ms, 1s * seconds);

  EXPECT_NEAR(static_cast<double>(admitted), 7.0 * seconds, 1.0);
}

TEST_P(FlowCases, C007FastLimitsAreExact) {
  struct Fast { std::uint64_t rate, burst; };
  constexpr Fast kFast[] = {{2000, 1}, {1500, 21}, {8000, 2}, {6000, 6000}, {1'000'000, 10}};
  constexpr std::int64_t kMostSteps = 4'000;      // of a daemon's clock
  for (const Fast& fast : kFast) {
    const std::string rate = std::to_string(fast.rate), burst = std::to_string(fast.burst);
    ASSERT_NO_FATAL_FAILURE(start("api: {rate: " + rate + "/s, burst: " + burst + "}"));
    // Half the burst refills in a step, so that none is lost at the brim.
    const Nanos step{static_cast<std::int64_t>(fast.burst * 500'000'000 / fast.rate)};
    const std::int64_t steps = 10s / step;
    const Nanos window = step * (in_memory() ? steps : std::min(steps, kMostSteps));

    const std::uint64_t admitted = flooded(step, window);

    const auto refilled = static_cast<unsigned __int128>(fast.rate) *
                          static_cast<std::uint64_t>(window.count()) / 1'000'000'000;
    EXPECT_EQ(admitted, fast.burst + static_cast<std::uint64_t>(refilled)) << rate << " " << burst;
  }
}

TEST_P(FlowCases, C015OneBurstAfterAPauseThenTheRate) {
  struct Paused { int burst; Nanos pause; };
  for (const Paused& paused : {Paused{1, 30s}, Paused{10, 30s}, Paused{2, 4s}}) {
    const std::string burst = std::to_string(paused.burst);
    ASSERT_NO_FATAL_FAILURE(start("api: {rate: 1/s, burst: " + burst + "}"));
    for (int second = 0; second < 20; ++second) {           // steady use
      at(1s * second);
      ASSERT_EQ(admitted_of(1), 1);
    }
    const Nanos later = 19s + paused.pause;
    at(later);
    EXPECT_EQ(admitted_of(20), paused.burst);
    for (int second = 1; second <= 20; ++second) {
      at(later + 1s * second - 1ns);
      EXPECT_EQ(admitted_of(5), 0) << second;
      at(later + 1s * second);
      EXPECT_EQ(admitted_of(5), 1) << second;
    }
  }
}

}  // namespace
}  // namespace cutwater::test
