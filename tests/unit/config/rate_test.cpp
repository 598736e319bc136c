// SPDX-License-Identifier: Apache-2.0
#include "config/rate.hpp"

#include <gtest/gtest.h>

#include "rule/limit_settings.hpp"

namespace cutwater::config {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kDay = 86'400 * kSecond;
constexpr std::string_view kZero =
    "0 is neither unlimited nor blocked; write 'unlimited: true' or 'blocked: true'";

Rate read(std::string_view text) {
  const auto rate = parse_rate(text);
  EXPECT_TRUE(rate.ok()) << text << ": " << rate.error().text();
  return rate.ok() ? *rate : Rate{};
}

std::string refused(std::string_view text) {
  const auto rate = parse_rate(text);
  EXPECT_FALSE(rate.ok()) << text;
  return rate.error().text();
}

TEST(Rate, EverySpelling) {
  EXPECT_EQ(read("10/s"), (Rate{10, kSecond}));
  EXPECT_EQ(read("100/m"), (Rate{100, 60 * kSecond}));
  EXPECT_EQ(read("100 per minute"), (Rate{100, 60 * kSecond}));
  EXPECT_EQ(read("1000/15m"), (Rate{1000, 900 * kSecond}));
  EXPECT_EQ(read("10r/s"), (Rate{10, kSecond}));
  EXPECT_EQ(read("10 / s"), (Rate{10, kSecond}));
  EXPECT_EQ(read("10 per 13 s"), (Rate{10, 13 * kSecond}));
  EXPECT_EQ(read("10 per 13s"), (Rate{10, 13 * kSecond}));
  EXPECT_EQ(read("10 per 13 seconds"), (Rate{10, 13 * kSecond}));
  EXPECT_EQ(read("1 per hour"), (Rate{1, 3600 * kSecond}));
  EXPECT_EQ(read("1/PT1H30M"), (Rate{1, 5400 * kSecond}));
  EXPECT_EQ(read("1M/h"), (Rate{1'000'000, 3600 * kSecond}));
  EXPECT_EQ(read("10/1m30s"), (Rate{10, 90 * kSecond}));
}

TEST(Rate, InTwoParts) {
  EXPECT_EQ(*parse_rate("100", "1m"), (Rate{100, 60 * kSecond}));
  EXPECT_EQ(*parse_rate("100", "minute"), (Rate{100, 60 * kSecond}));
  EXPECT_FALSE(parse_rate("100", "60").ok());
  EXPECT_EQ(parse_rate("0", "1m").error().text(), kZero);
}

// covers: C021
TEST(Rate, LongPeriodsAreExact) {
  EXPECT_EQ(read("5 per 365 d"), (Rate{5, 365 * kDay}));
  EXPECT_EQ(read("50000000 per 30d"), (Rate{50'000'000, 30 * kDay}));
  EXPECT_EQ(read("1 per 25 d"), (Rate{1, 25 * kDay}));
  EXPECT_EQ(read("1 per 50 d"), (Rate{1, 50 * kDay}));
  EXPECT_EQ(read("1 per 3660d"), (Rate{1, rule::kMaxPeriodNs}));
  EXPECT_EQ(refused("1 per 3661d"), "\"3661d\" is above the maximum of 3660d");
}

// covers: C008
TEST(Rate, ZeroIsNeitherUnlimitedNorBlocked) {
  for (const char* text : {"0", "0/s", "0 per minute", "000/d", "0r/s"}) {
    EXPECT_EQ(refused(text), kZero) << text;
  }
}

TEST(Rate, ABareNumberHasNoPeriod) {
  EXPECT_EQ(refused("10"), "\"10\" has no period; write 10/s, 10/m, 10/h or 10/d");
}

TEST(Rate, BoundsAreNamed) {
  EXPECT_EQ(read("10000000/s"), (Rate{10'000'000, kSecond}));
  EXPECT_EQ(read("10/us"), (Rate{10, 1000}));
  EXPECT_EQ(refused("20000000/s"), "20000000/s is above the maximum of 10000000/s");
  EXPECT_EQ(refused("10000001/s"), "10000001/s is above the maximum of 10000000/s");
  EXPECT_EQ(refused("11/us"), "11/us is above the maximum of 10000000/s");
  EXPECT_EQ(read("1000000000/d").count, rule::kMaxRateCount);
  EXPECT_EQ(refused("1000000001/d"),
            "\"1000000001/d\" has a count above the maximum of 1000000000; write a shorter period");
  EXPECT_EQ(refused("1/999ns"),
            "\"1/999ns\" has a period below the minimum of 1us; write a longer one");
  EXPECT_EQ(refused("1/0"), "a period of 0 is no rate; write a period such as 1s");
}

TEST(Rate, RefusesOtherForms) {
  for (const char* text :
       {"", "/", "/s", "10/", "10/x", "ten/s", "10/60", "10 s", "10 per", "1.5/s", "-5/s", "10/s/s",
        "r/s", "10 per per s", "unlimited", "10 pers", "99999999999999999999/s"}) {
    EXPECT_FALSE(parse_rate(text).ok()) << text;
  }
  EXPECT_EQ(refused("-5/s"), "\"-5\" is negative; write a rate such as 10/s");
  EXPECT_EQ(refused("-5"), "\"-5\" is negative; write a rate such as 10/s");
  EXPECT_EQ(refused("10/60"), "60 what? write 60s");
  EXPECT_EQ(refused("10 per month"),
            "\"month\" has no fixed length in seconds; write days, such as 7d or 30d");
  EXPECT_EQ(refused("fast"),
            "\"fast\" is not a rate; write 10/s, 100/m, 1000/15m or 100 per minute");
}

TEST(Rate, WhatIsPrintedIsReadBack) {
  for (const char* text : {"10/s", "100/m", "1000/15m", "1/3660d", "7/1m30s", "5/365d", "3/11ms"}) {
    EXPECT_EQ(format_rate(read(text)), text);
  }
  EXPECT_EQ(format_rate(read("100 per 60 s")), "100/m");
}

}  // namespace
}  // namespace cutwater::config
