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
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double ratio_of(const Times& a, const Times& b) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < a.cpu.size() && i < b.cpu.size(); ++i) {
    if (b.cpu[i] > 0) ratios.push_back(a.cpu[i] / b.cpu[i]);
  }
  return median(ratios);
}

std::vector<Times> Rounds::run(const std::vector<Case>& cases) const {
  std::vector<Times> times;
  for (const Case& c : cases) {
    times.push_back({c.name, {}, {}});
    c.run(c.operations);
  }
  for (int round = 0; round < rounds_; ++round) {
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const double wall = now_ns(CLOCK_MONOTONIC), cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);
      cases[i].run(cases[i].operations);
      const auto n = static_cast<double>(cases[i].operations);
      times[i].cpu.push_back((now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu) / n);
      times[i].wall.push_back((now_ns(CLOCK_MONOTONIC) - wall) / n);
    }
  }
  return times;
}

}  // namespace cutwater::bench
