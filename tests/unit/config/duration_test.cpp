// SPDX-License-Identifier: Apache-2.0
#include "config/duration.hpp"

#include <gtest/gtest.h>

#include <random>

#include "rule/limit_settings.hpp"

namespace cutwater::config {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

TEST(Duration, UnitsAndSums) {
  EXPECT_EQ(*parse_duration("0"), 0U);
  EXPECT_EQ(*parse_duration("0s"), 0U);
  EXPECT_EQ(*parse_duration("1ns"), 1U);
  EXPECT_EQ(*parse_duration("7us"), 7'000U);
  EXPECT_EQ(*parse_duration("100ms"), kSecond / 10);
  EXPECT_EQ(*parse_duration("15s"), 15 * kSecond);
  EXPECT_EQ(*parse_duration("2m"), 120 * kSecond);
  EXPECT_EQ(*parse_duration("2h"), 7200 * kSecond);
  EXPECT_EQ(*parse_duration("1d"), 86400 * kSecond);
  EXPECT_EQ(*parse_duration("1m30s"), 90 * kSecond);
  EXPECT_EQ(*parse_duration("1d2h3m4s5ms"), (86400 + 7200 + 180 + 4) * kSecond + 5'000'000);
}

TEST(Duration, DecimalsAreExact) {
  EXPECT_EQ(*parse_duration("1.5s"), 1'500'000'000U);
  EXPECT_EQ(*parse_duration("0.1s"), 100'000'000U);
  EXPECT_EQ(*parse_duration("0.000000001s"), 1U);
  EXPECT_EQ(*parse_duration("1.1d"), 95040 * kSecond);
  EXPECT_EQ(parse_duration("1.5ns").error().text(),
            "\"1.5ns\" is finer than 1ns; write whole nanoseconds");
  EXPECT_FALSE(parse_duration("0.0000000001s").ok());
}

TEST(Duration, Iso8601) {
  EXPECT_EQ(*parse_duration("PT15S"), 15 * kSecond);
  EXPECT_EQ(*parse_duration("P1D"), 86400 * kSecond);
  EXPECT_EQ(*parse_duration("P1DT2H30M0.5S"), (86400 + 9000) * kSecond + kSecond / 2);
  for (const char* text : {"P", "PT", "P1DT", "P1M", "P1Y", "P1H", "PT1D", "pt15s", "PT15"}) {
    EXPECT_FALSE(parse_duration(text).ok()) << text;
  }
}

TEST(Duration, ABareNumberHasNoUnit) {
  EXPECT_EQ(parse_duration("15").error().text(), "15 what? write 15s");
  EXPECT_EQ(parse_duration("1.5").error().text(), "1.5 what? write 1.5s");
}

TEST(Duration, RefusesOtherForms) {
  for (const char* text : {"", "s", "1x", "1 s", "1s1s", "1s1m", "1ms1s", "1s ", "1.s", ".5s",
                           "1s2", "one", "1M", "1S", "+1s"}) {
    EXPECT_FALSE(parse_duration(text).ok()) << text;
  }
  EXPECT_EQ(parse_duration("-1s").error().text(),
            "\"-1s\" is negative; write 0 or a duration such as 15s");
}

TEST(Duration, UpTo3660Days) {
  EXPECT_EQ(*parse_duration("3660d"), rule::kMaxPeriodNs);
  for (const char* text : {"3661d", "3660d1ns", "99999999999999999999999d", "87841h",
                           "18446744073709551615s"}) {
    const auto found = parse_duration(text);
    ASSERT_FALSE(found.ok()) << text;
    EXPECT_NE(found.error().text().find("is above the maximum of 3660d"), std::string::npos)
        << text;
  }
}

TEST(Duration, WhatIsPrintedIsReadBack) {
  EXPECT_EQ(format_duration(0), "0");
  EXPECT_EQ(format_duration(3600 * kSecond), "1h");
  EXPECT_EQ(format_duration(90 * kSecond), "1m30s");
  EXPECT_EQ(format_duration(1'500'000'000), "1s500ms");
  std::mt19937_64 random(20240601);
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t ns = random() % (rule::kMaxPeriodNs + 1) >> (random() % 59);
    const auto again = parse_duration(format_duration(ns));
    ASSERT_TRUE(again.ok()) << ns;
    ASSERT_EQ(*again, ns);
  }
}

}  // namespace
}  // namespace cutwater::config
