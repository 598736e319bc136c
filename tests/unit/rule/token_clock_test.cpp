// SPDX-License-Identifier: Apache-2.0
// The token clock against exact rationals: spec memory T1, cases C001, C002, C005, C021.
#include "rule/token_clock.hpp"

#include <gtest/gtest.h>

#include <random>

namespace cutwater::rule {
namespace {

using Wide = unsigned __int128;

constexpr std::uint64_t kDay = 86'400'000'000'000;

TokenRule make_rule(Rate rate, std::uint64_t burst, std::int64_t base_t = 0) {
  TokenRule rule;
  const int f = fraction_bits(rate, burst, 0);
  EXPECT_GE(f, 0);
  rule.f = static_cast<std::uint8_t>(f);
  EXPECT_TRUE(set_slope(rule.after, rate, static_cast<unsigned>(f)));
  rule.after.base_t = base_t;
  rule.after.burst = static_cast<Units>(burst << f);
  rule.after.reach = rule.after.burst;
  rule.before = rule.after;
  rule.valid_from = base_t;
  return rule;
}

// Exact: smallest t with t * count / period >= tokens.
std::int64_t exact_due(Rate rate, std::uint64_t tokens) {
  return static_cast<std::int64_t>((Wide{tokens} * rate.period_ns + rate.count - 1) / rate.count);
}

struct Scale {
  Rate rate;
  std::uint64_t burst;
  int f;
};

TEST(TokenClock, ScaleLeavesRoomForTheHorizonAndTheBurst) {
  for (const Scale& s :
       {Scale{{10'000'000, 1'000'000'000}, 1, 9}, Scale{{10, 1'000'000'000}, 10, 29},
        Scale{{1, kDay}, 1'000'000'000, 31}, Scale{{1, kDay}, 1, 40}}) {
    EXPECT_EQ(fraction_bits(s.rate, s.burst, 0), s.f)
        << s.rate.count << " per " << s.rate.period_ns;
  }
}

TEST(TokenClock, RefusesARateOfZero) {
  Piece piece;

  EXPECT_LT(fraction_bits({0, 1}, 1, 0), 0);
  EXPECT_FALSE(set_slope(piece, {0, 1}, 10));
  EXPECT_FALSE(set_slope(piece, {1, 0}, 10));
}

// C001: due exactly at the first nanosecond at or after the due time, refused one nanosecond
// before.
TEST(TokenClock, C001DueTimesAreExactForRandomRatesIncludingPrimes) {
  std::mt19937_64 random(1);
  const std::uint64_t primes[] = {2, 3, 7, 13, 9973, 65537, 999983, 9999991};
  int checked = 0;
  for (int i = 0; i < 10'000; ++i) {
    const std::uint64_t count = i % 2 == 0 ? primes[random() % 8] : 1 + random() % 1'000'000;
    const std::uint64_t period = std::max<std::uint64_t>(count * 100, 1'000 + random() % kDay);
    const Rate rate{count, period};
    const TokenRule rule = make_rule(rate, 1);
    const Units unit_ns = static_cast<Units>(((Wide{period} / count) >> rule.f) + 1);
    const std::int64_t due = time_when(rule.after, Units{1} << rule.f);

    EXPECT_EQ(units_at(rule.after, due) >= (Units{1} << rule.f), true);
    EXPECT_LT(units_at(rule.after, due - 1), Units{1} << rule.f);
    EXPECT_LE(std::abs(due - exact_due(rate, 1)), std::max<std::int64_t>(0, unit_ns - 1))
        << count << " per " << period;
    ++checked;
  }
  EXPECT_EQ(checked, 10'000);
}

TEST(TokenClock, C001TheThreeNamedRates) {
  for (const auto& [rate, due] : {std::pair{Rate{1, 3600ULL * 1'000'000'000}, 3600'000'000'000LL},
                                  std::pair{Rate{10, 13'000'000'000}, 1'300'000'000LL},
                                  std::pair{Rate{1, 3'000'000'000}, 3'000'000'000LL}}) {
    const TokenRule rule = make_rule(rate, 1);

    EXPECT_EQ(time_when(rule.after, Units{1} << rule.f), due);
    EXPECT_LT(units_at(rule.after, due - 1), Units{1} << rule.f);
  }
}

// T1: a due time inverts the clock exactly, also for rates up to 10M/s, over both pieces, over the
// whole horizon.
TEST(TokenClock, DueTimeInvertsTheClockInAHundredThousandCases) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 100'000; ++i) {
    const std::uint64_t count = 1 + random() % 10'000'000;
    const std::uint64_t period = std::max<std::uint64_t>(count * 100, 1ULL << (10 + random() % 48));
    TokenRule rule = make_rule({count, period}, 1 + random() % 1'000'000);
    const auto split = static_cast<std::int64_t>(random() % (1ULL << 58));
    const auto now = static_cast<std::int64_t>(random() % (1ULL << 58));
    // A second piece from `split` on, with another rate that fits the same scale.
    Piece next = rule.after;
    if (set_slope(next, {1 + count / 2, period}, rule.f)) {
      next.base_t = split;
      next.base_n = units_at(rule.after, split);
      rule.after = next;
    }
    const Units ahead =
        static_cast<Units>(random() % static_cast<std::uint64_t>(rule.after.burst + 1));
    const Units want = units_at(rule.piece_at(now), now) + ahead;
    const std::int64_t due = due_time(rule, now, want);
    if (due == kNeverNs) continue;

    ASSERT_GE(units_at(rule.piece_at(due), due), want);
    if (due > now) {
      ASSERT_LT(units_at(rule.piece_at(due - 1), due - 1), want) << i;
    }
  }
}

// C005, C021: no overflow after long idle times and for long periods; UBSan builds trap otherwise.
TEST(TokenClock, C005LongIdleTimesNeverOverflow) {
  for (const Rate rate :
       {Rate{500'000, 1'000'000'000}, Rate{10'000'000, 1'000'000'000}, Rate{1, 3650 * kDay}}) {
    const TokenRule rule = make_rule(rate, 1'000'000'000);
    for (const std::int64_t idle : {std::int64_t{1}, std::int64_t{43'200'000'000'000},
                                    400 * static_cast<std::int64_t>(kDay), kClockHorizonNs}) {
      EXPECT_GE(units_at(rule.after, idle), 0);
      EXPECT_LT(units_at(rule.after, idle), Units{1} << 62);
    }
  }
}

TEST(TokenClock, BackwardTimeIsNoTime) {
  const TokenRule rule = make_rule({10, 1'000'000'000}, 10, 5'000);

  EXPECT_EQ(units_at(rule.after, 4'000), units_at(rule.after, 5'000));
}

TEST(TokenClock, BeyondTheHorizonIsNever) {
  const TokenRule rule = make_rule({1, 3660 * kDay}, 1'000'000'000);

  EXPECT_EQ(time_when(rule.after, rule.after.burst), kNeverNs);
  Piece still = rule.after;
  still.mult = 0;
  EXPECT_EQ(time_when(still, 1), kNeverNs);
}

}  // namespace
}  // namespace cutwater::rule
