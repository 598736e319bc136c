// SPDX-License-Identifier: Apache-2.0
#include "config/decimal.hpp"

#include <gtest/gtest.h>

namespace cutwater::config {
namespace {

std::string percent(std::string_view text) {
  const auto ppm = parse_percent(text);
  return ppm ? std::to_string(*ppm) : ppm.error().text();
}

std::string ratio(std::string_view text) {
  const auto ppm = parse_decimal(text, 0, 1'000'000);
  return ppm ? std::to_string(*ppm) : ppm.error().text();
}

TEST(Percent, IsReadAsADecimal) {
  EXPECT_EQ(percent("50"), "500000");
  EXPECT_EQ(percent("50%"), "500000");
  EXPECT_EQ(percent("33.3333"), "333333");
  EXPECT_EQ(percent("0.5%"), "5000");
  EXPECT_EQ(percent("0.0001 %"), "1");
  EXPECT_EQ(percent("1.50000"), "15000");
  EXPECT_EQ(percent("0"), "0");
  EXPECT_EQ(percent("0.0"), "0");
  EXPECT_EQ(percent("100"), "1000000");
}

TEST(Percent, RefusalsAskWhatWasMeant) {
  EXPECT_EQ(percent("0.5"), "0.5; for half of the calls write 50, for half a percent 0.5%");
  EXPECT_EQ(percent("0.25"),
            "0.25; for 25 in a hundred of the calls write 25, for less than one percent 0.25%");
  EXPECT_EQ(percent("101"), "101 is above the maximum of 100 %");
  EXPECT_EQ(percent("100.0001"), "100.0001 is above the maximum of 100 %");
  EXPECT_EQ(percent("99999999999999999999"), "99999999999999999999 is above the maximum of 100 %");
  EXPECT_EQ(percent("33.33333"), "\"33.33333\" has more than four places; write 33.3333");
  for (const char* text : {"", "%", "-1", "1.", ".5", "1e1", "half", "1.2.3"}) {
    EXPECT_EQ(percent(text), "\"" + std::string(text) +
                                 "\" is no percentage; write 50, 33.3333 or 0.5%");
  }
}

TEST(Decimal, IsReadAsOne) {
  EXPECT_EQ(ratio("0.5"), "500000");
  EXPECT_EQ(ratio("1"), "1000000");
  EXPECT_EQ(ratio("0.333333"), "333333");
  EXPECT_EQ(ratio("50"), "50 is above the maximum of 1; for 50 % write 0.5");
  EXPECT_EQ(ratio("0.5%"), "\"0.5%\" is no decimal; write one such as 0.5");
  EXPECT_EQ(ratio("0.1234567"), "\"0.1234567\" has more than six places; write one such as "
                                "0.333333");
  EXPECT_EQ(parse_decimal("0.9", 1'000'000, 10'000'000).error().text(),
            "0.9 is below the minimum of 1");
  EXPECT_EQ(parse_decimal("10.5", 1'000'000, 10'000'000).error().text(),
            "10.5 is above the maximum of 10");
}

TEST(Decimal, IsPrintedAsItIsRead) {
  for (std::uint64_t ppm = 0; ppm <= 1'000'000; ppm += 37) {
    EXPECT_EQ(*parse_percent(format_percent(ppm)), ppm);
    EXPECT_EQ(*parse_decimal(format_decimal(ppm), 0, 1'000'000), ppm);
  }
  EXPECT_EQ(format_percent(500'000), "50%");
  EXPECT_EQ(format_decimal(1'500'000), "1.5");
}

}  // namespace
}  // namespace cutwater::config
