// SPDX-License-Identifier: Apache-2.0
#include "harness.hpp"

#include <algorithm>
#include <ctime>

namespace cutwater::bench {
namespace {

double now_ns(clockid_t clock) {
  timespec reading;
  clock_gettime(clock, &reading);
  return static_cast<double>(reading.tv_sec) * 1e9 + static_cast<double>(reading.tv_nsec);
}

}  // namespace

double median(std::vector<double> values) {
  std::erase_if(values, [](double value) { return value < 0; });
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double ratio_of(const Times& a, const Times& b) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < a.cpu.size() && i < b.cpu.size(); ++i) {
    if (a.cpu[i] > 0 && b.cpu[i] > 0) ratios.push_back(a.cpu[i] / b.cpu[i]);
  }
  return median(ratios);
}

std::vector<Times> Rounds::run(const std::vector<Case>& cases) const {
  std::vector<Times> times;
  for (const Case& c : cases) {
    times.push_back({c.name, {}, {}});
    if (c.before) c.before();
    c.run(c.operations);
    if (c.after) c.after();
  }
  for (int round = 0; round < rounds_; ++round) {
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const Case& c = cases[i];
      if (c.before) c.before();
      const double wall = now_ns(CLOCK_MONOTONIC), cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);
      c.run(c.operations);
      const double cpu_took = now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
      const double wall_took = now_ns(CLOCK_MONOTONIC) - wall;
      const bool counts = !c.after || c.after();
      const auto n = static_cast<double>(c.operations);
      times[i].cpu.push_back(counts ? cpu_took / n : -1);
      times[i].wall.push_back(counts ? wall_took / n : -1);
    }
  }
  return times;
}

}  // namespace cutwater::bench
