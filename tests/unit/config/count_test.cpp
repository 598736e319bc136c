// SPDX-License-Identifier: Apache-2.0
#include "config/count.hpp"

#include <gtest/gtest.h>

#include <string>

namespace cutwater::config {
namespace {

TEST(Count, DecimalAndBinarySuffixes) {
  EXPECT_EQ(*parse_count("0"), 0U);
  EXPECT_EQ(*parse_count("4096"), 4096U);
  EXPECT_EQ(*parse_count("1k"), 1000U);
  EXPECT_EQ(*parse_count("1M"), 1'000'000U);
  EXPECT_EQ(*parse_count("64Ki"), 65536U);
  EXPECT_EQ(*parse_count("1Mi"), 1U << 20);
  EXPECT_EQ(*parse_count("1Gi"), 1U << 30);
  EXPECT_EQ(*parse_count("18446744073709551615"), 18446744073709551615U);
}

TEST(Count, RefusesWhatIsNoWholeNumber) {
  for (const char* text : {"", "x", "1.5", "1.5M", "1m", "1K", "1_000", "1,000", " 1", "1 ", "0x10",
                           "1e3", "-1", "+1", "18446744073709551616", "18446744073709551615k"}) {
    EXPECT_FALSE(parse_count(text).ok()) << text;
  }
  EXPECT_EQ(parse_count("-5").error().text(),
            "\"-5\" is negative; write a whole number such as 4096, 64Ki or 1M");
  EXPECT_EQ(parse_count("1.5").error().text(),
            "\"1.5\" is not a whole number; write a whole number such as 4096, 64Ki or 1M");
}

TEST(Size, ShortFormsAreBinary) {
  EXPECT_EQ(*parse_size("64MiB"), 64U << 20);
  EXPECT_EQ(*parse_size("64m"), 64U << 20);
  EXPECT_EQ(*parse_size("1GiB"), 1U << 30);
  EXPECT_EQ(*parse_size("64k"), 65536U);
  EXPECT_EQ(*parse_size("100"), 100U);
  EXPECT_EQ(*parse_size("100B"), 100U);
  for (const char* text : {"64M", "64MB", "64 MiB", "", "-1k", "1.5GiB"}) {
    EXPECT_FALSE(parse_size(text).ok()) << text;
  }
}

TEST(Mode, IsOctal) {
  EXPECT_EQ(*parse_mode("0660"), 0660U);
  EXPECT_EQ(*parse_mode("660"), 0660U);
  EXPECT_EQ(*parse_mode("0o777"), 0777U);
  EXPECT_EQ(*parse_mode("0"), 0U);
  for (const char* text : {"", "0o", "0888", "1777", "rw", "-660", "00660"}) {
    EXPECT_FALSE(parse_mode(text).ok()) << text;
  }
}

}  // namespace
}  // namespace cutwater::config
