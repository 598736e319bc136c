// SPDX-License-Identifier: Apache-2.0
#include "made_log.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <random>
#include <vector>

namespace cutwater::quickstart {
namespace {

constexpr std::time_t kStart = 1'767'604'203;  // 2026-01-05 09:10:03 UTC, a Monday morning
constexpr double kRequestsPerSecond = 3.0;
constexpr std::uint64_t kBurstPercent = 2;  // of the steps are the begin of a burst
constexpr std::uint64_t kLatePercent = 5;   // of the lines are stamped earlier

/// Numbers from a seed, the same with every standard library.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t below(std::uint64_t bound) { return engine_() % bound; }
  double unit() { return static_cast<double>(engine_() >> 11) * 0x1.0p-53; }

 private:
  std::mt19937_64 engine_;
};

/// Client k with a weight of 1 / (k + 1).
class Zipf {
 public:
  explicit Zipf(std::uint32_t clients) {
    double sum = 0;
    for (std::uint32_t k = 0; k < clients; ++k) sums_.push_back(sum += 1.0 / (k + 1));
  }
  std::uint32_t draw(Dice& dice) const {
    const auto found = std::lower_bound(sums_.begin(), sums_.end(), dice.unit() * sums_.back());
    return static_cast<std::uint32_t>(found - sums_.begin());
  }

 private:
  std::vector<double> sums_;
};

std::string line_of(std::uint32_t client, std::time_t second, Dice& dice) {
  std::tm parts{};
  ::gmtime_r(&second, &parts);
  char stamp[40], line[200];
  std::strftime(stamp, sizeof stamp, "%d/%b/%Y:%H:%M:%S +0000", &parts);
  const auto size = static_cast<unsigned>(200 + dice.below(60'000));
  std::snprintf(
      line, sizeof line, "198.18.%u.%u - - [%s] \"GET /item/%u HTTP/1.1\" 200 %u \"-\" \"made\"\n",
      client / 250, client % 250 + 1, stamp, static_cast<unsigned>(dice.below(500)), size);
  return line;
}

}  // namespace

std::string make_log(const MadeLogAsk& ask) {
  Dice dice(ask.seed);
  const Zipf zipf(ask.clients);
  std::string text;
  double now = 0;
  std::uint32_t left = ask.requests;
  const auto write = [&](std::uint32_t client) {
    const std::uint64_t late = dice.below(100) < kLatePercent ? 1 + dice.below(4) : 0;
    const auto second = static_cast<std::time_t>(now) - static_cast<std::time_t>(late);
    text += line_of(client, kStart + second, dice);
    --left;
  };
  while (left > 0) {
    now += -std::log(1.0 - dice.unit()) / kRequestsPerSecond;
    const std::uint32_t client = zipf.draw(dice);
    if (dice.below(100) >= kBurstPercent) {
      write(client);
      continue;
    }
    for (std::uint64_t i = 20 + dice.below(60); i > 0 && left > 0; --i) {
      now += dice.unit() / 20;
      write(client);
    }
  }
  return text;
}

}  // namespace cutwater::quickstart
