// SPDX-License-Identifier: Apache-2.0
// The bench harness: cases run in interleaved rounds, so that whatever else the machine does falls
// on all of them alike, and figures are ratios of medians from one run.
//
// A case does `n` operations per call. Wall time and CPU time of the process are taken around each
// call; a figure is the median over the rounds. A ratio compares two cases round by round and takes
// the median of those, which is steadier than the ratio of medians on a noisy machine.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace cutwater::bench {

/// One line of output: `id` is its row in the README's table of figures.
struct Figure {
  std::string id;
  std::string name;
  double ns = 0;        ///< wall time of one operation, median
  double cpu_ns = 0;    ///< CPU time of one operation, median
  double ratio = 0;     ///< against `to`; 0 = no comparison
  std::string to;
  double must = 0;      ///< bound of the ratio, 0 = none
  bool at_least = false;   ///< the bound is a lower one
  double gate = 0;         ///< what --gate holds where the bound is not reached; 0 = the bound
};

struct Case {
  std::string name;
  std::uint64_t operations;                    ///< of one call
  std::function<void(std::uint64_t)> run;
  std::function<void()> before = nullptr;      ///< outside the timing; may be empty
  std::function<bool()> after = nullptr;  ///< outside the timing; false: the round does not count
};

/// Times of one case in every round, ns per operation; a round that does not count is below 0.
struct Times {
  std::string name;
  std::vector<double> wall, cpu;
};

double median(std::vector<double> values);

/// Median over the rounds of times(a) / times(b), by CPU time.
double ratio_of(const Times& a, const Times& b);

class Rounds {
 public:
  explicit Rounds(int rounds) : rounds_(rounds) {}
  /// Runs every case once to warm up, then all of them in each round, in order.
  std::vector<Times> run(const std::vector<Case>& cases) const;

 private:
  int rounds_;
};

/// Keeps the compiler from dropping a result nobody reads.
template <class T>
inline void keep(const T& value) {
  asm volatile("" : : "r,m"(value) : "memory");
}

/// A small fast generator; seeds are fixed so that every run asks the same keys.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15ULL + 1) {}
  std::uint64_t operator()() noexcept {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_;
  }

 private:
  std::uint64_t state_;
};

/// Settings of a run.
struct Plan {
  bool quick = false;            ///< within 40 s on two cores
  int rounds() const { return quick ? 9 : 25; }
};

// The figures, by file.
std::vector<Figure> limit_figures(const Plan& plan);        // L1 L2 L3
std::vector<Figure> table_figures(const Plan& plan);        // L4 L9
std::vector<Figure> contention_figures(const Plan& plan);   // L5
std::vector<Figure> resource_figures(const Plan& plan);     // L8 M1
std::vector<Figure> breaker_figures(const Plan& plan);      // L6 L7 M1b
std::vector<Figure> round_trip_figures(const Plan& plan);   // R1 R3

}  // namespace cutwater::bench
