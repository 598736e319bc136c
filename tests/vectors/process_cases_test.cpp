// SPDX-License-Identifier: Apache-2.0
// Several processes on one host share one limit: forked children of an in-memory client, and
// processes that each attach to the daemon. The clock moves only when all of them have been
// refused, so the sums are exact.
#include <algorithm>
#include <string>

#include "vectors/every_way.hpp"
#include "vectors/workers.hpp"

namespace cutwater::test {
namespace {

class ProcessCases : public EveryWay {
 protected:
  /// Asks as often as it is told; how many were admitted.
  Workers::Work asker() {
    Limit api = way->client_of_child().limit("api").value();
    return [api](std::uint64_t calls) mutable {
      std::uint64_t admitted = 0;
      for (; calls > 0; --calls) admitted += api.try_acquire("k").allowed() ? 1 : 0;
      return admitted;
    };
  }

  /// Asks until refused; how many were admitted.
  Workers::Work flooder() {
    Limit api = way->client_of_child().limit("api").value();
    return [api](std::uint64_t) mutable {
      std::uint64_t admitted = 0;
      while (api.try_acquire("k").allowed()) ++admitted;
      return admitted;
    };
  }

  std::uint64_t flooded(Workers& workers, Nanos step, int steps) {
    std::uint64_t admitted = workers.all(0);
    for (int i = 1; i <= steps; ++i) {
      at(step * i);
      admitted += workers.all(0);
    }
    return admitted;
  }
};

INSTANTIATE_TEST_SUITE_P(Ways, ProcessCases, ::testing::ValuesIn(every_way()), way_name);

TEST_P(ProcessCases, C115EightProcessesShareFiveAMinute) {
  ASSERT_NO_FATAL_FAILURE(start("api: {rate: 5 per min, burst: 5}"));
  Workers workers(8, [this] { return asker(); });
  std::uint64_t admitted = 0;
  for (int request = 0; request < 100; ++request) {
    workers.tell(request % 8, 1);
    admitted += workers.answer(request % 8);
  }
  EXPECT_EQ(admitted, 5U);
  at(12s - 1ns);
  EXPECT_EQ(workers.all(10), 0U);
  at(12s);
  EXPECT_EQ(workers.all(10), 1U) << "and the refill once";
}

TEST_P(ProcessCases, S66TwoProcessesOnOneKeyAsFastAsTheyCan) {
  ASSERT_NO_FATAL_FAILURE(start("api: {rate: 1000/s, burst: 1000}"));
  Workers workers(2, [this] { return flooder(); });

  const std::uint64_t admitted = flooded(workers, 20ms, 500);

  EXPECT_EQ(admitted, 1000U + 1000 * 10) << "ten seconds: no token more, and none is lost";
}

TEST_P(ProcessCases, C007FastLimitsAreExactInSeveralProcesses) {
  struct Fast { std::uint64_t rate, burst; };
  constexpr Fast kFast[] = {{2000, 1}, {1500, 21}, {8000, 2}, {6000, 6000}, {1'000'000, 10}};
  for (const Fast& fast : kFast) {
    const std::string rate = std::to_string(fast.rate), burst = std::to_string(fast.burst);
    ASSERT_NO_FATAL_FAILURE(start("api: {rate: " + rate + "/s, burst: " + burst + "}"));
    Workers workers(4, [this] { return flooder(); });
    const Nanos step{static_cast<std::int64_t>(fast.burst * 500'000'000 / fast.rate)};
    const int steps = static_cast<int>(std::min<std::int64_t>(10s / step, 400));

    const std::uint64_t admitted = flooded(workers, step, steps);

    const auto window = static_cast<std::uint64_t>((step * steps).count());
    EXPECT_EQ(admitted, fast.burst + fast.rate * window / 1'000'000'000) << rate << " " << burst;
  }
}

}  // namespace
}  // namespace cutwater::test
