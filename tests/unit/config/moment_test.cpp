// SPDX-License-Identifier: Apache-2.0
#include "config/moment.hpp"

#include <gtest/gtest.h>

namespace cutwater::config {
namespace {

std::uint64_t at(std::string_view text) {
  const auto moment = parse_moment(text);
  EXPECT_TRUE(moment) << text;
  return moment ? *moment : 0;
}

std::string wrong(std::string_view text) {
  const auto moment = parse_moment(text);
  return moment ? "accepted" : moment.error().text();
}

TEST(Moment, IsReadByRfc3339) {
  EXPECT_EQ(at("2030-01-01T00:00:00Z"), 1'893'456'000U);
  EXPECT_EQ(at("2030-01-01T02:00:00+02:00"), 1'893'456'000U);
  EXPECT_EQ(at("2029-12-31t18:30:00-05:30"), 1'893'456'000U);
  EXPECT_EQ(at("2028-02-29T23:59:59z"), 1'835'481'599U);
  EXPECT_EQ(at("1970-01-01T00:00:01Z"), 1U);
  EXPECT_EQ(at("2106-02-07T06:28:15Z"), kMaxMoment);
}

TEST(Moment, AFractionIsRoundedUp) {
  EXPECT_EQ(at("2030-01-01T00:00:00.001Z"), 1'893'456'001U);
  EXPECT_EQ(at("2030-01-01T00:00:00.000Z"), 1'893'456'000U);
}

TEST(Moment, NeedsAZone) {
  EXPECT_EQ(wrong("2030-01-01T00:00:00"),
            "\"2030-01-01T00:00:00\" has no zone; write 2030-01-01T00:00:00Z for UTC, or +01:00 "
            "behind it");
  EXPECT_EQ(wrong("2030-01-01T00:00:00.5").find("has no zone") != std::string::npos, true);
}

TEST(Moment, RefusesWhatIsNone) {
  for (const char* text : {"", "2030-01-01", "2030-1-1T00:00:00Z", "2030-02-29T00:00:00Z",
                           "2030-01-01 00:00:00Z", "2030-01-01T24:00:00Z", "2030-01-01T00:60:00Z",
                           "2030-01-01T00:00:60Z", "2030-01-01T00:00:00.Z", "2030-01-01T00:00:00ZZ",
                           "2030-01-01T00:00:00+1:00", "2030-13-01T00:00:00Z", "tomorrow",
                           "1893456000"}) {
    EXPECT_EQ(wrong(text), "\"" + std::string(text) +
                               "\" is no moment; write one such as 2030-01-01T00:00:00Z");
  }
  EXPECT_EQ(wrong("1970-01-01T00:00:00Z"),
            "\"1970-01-01T00:00:00Z\" is not after 1970; write a later moment");
  EXPECT_EQ(wrong("2106-02-07T06:28:16Z"),
            "\"2106-02-07T06:28:16Z\" is above the maximum of 2106-02-07T06:28:15Z; leave it out "
            "for ever");
}

TEST(Moment, IsPrintedAsItIsRead) {
  for (std::uint64_t moment = 1; moment < kMaxMoment; moment += 12'345'677) {
    EXPECT_EQ(at(format_moment(moment)), moment);
  }
  EXPECT_EQ(format_moment(1'893'456'000), "2030-01-01T00:00:00Z");
}

}  // namespace
}  // namespace cutwater::config
