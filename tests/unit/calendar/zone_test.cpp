// SPDX-License-Identifier: Apache-2.0
#include "calendar/zone.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>

namespace cutwater::calendar {
namespace {

/// A TZif file of version 2 with these 64-bit changes; `kinds` index `offsets`.
std::string file_of(const std::vector<std::int64_t>& changes, const std::vector<int>& kinds,
                    const std::vector<std::int32_t>& offsets, const std::string& footer) {
  std::string out;
  const auto put = [&](std::int64_t value, int width) {
    for (int i = width - 1; i >= 0; --i) out += static_cast<char>(value >> (8 * i) & 0xff);
  };
  const auto head = [&](std::size_t times, std::size_t types, std::size_t chars) {
    out += "TZif2";
    out += std::string(15, '\0');
    for (const std::size_t count : {std::size_t{0}, std::size_t{0}, std::size_t{0}, times, types,
                                    chars}) {
      put(static_cast<std::int64_t>(count), 4);
    }
  };
  head(0, 1, 1);
  out += std::string(7, '\0');
  head(changes.size(), offsets.size(), 4);
  for (const std::int64_t change : changes) put(change, 8);
  for (const int kind : kinds) put(kind, 1);
  for (const std::int32_t offset : offsets) {
    put(offset, 4);
    put(0, 2);
  }
  out += std::string("ABC\0", 4);
  return out + "\n" + footer + "\n";
}

TEST(Zone, UtcNeedsNoFile) {
  const auto zone = Zone::load("UTC", "/nowhere");

  ASSERT_TRUE(zone);
  EXPECT_EQ(zone->name(), "UTC");
  EXPECT_EQ(zone->offset_s(1'782'000'000), 0);
}

TEST(Zone, KnowsSummerFromTheFileAndFromTheRuleBehindIt) {
  const auto zone = Zone::load("Europe/Berlin");

  ASSERT_TRUE(zone) << zone.error().text();
  EXPECT_EQ(zone->offset_s(1'782'000'000), 7200);           // June 2026
  EXPECT_EQ(zone->offset_s(1'768'000'000), 3600);           // January 2026
  EXPECT_EQ(zone->offset_s(100'018'886'400), 7200);         // June 5139
  EXPECT_EQ(zone->offset_s(1'774'745'999), 3600);           // 2026-03-29T00:59:59Z
  EXPECT_EQ(zone->offset_s(1'774'746'000), 7200);
  EXPECT_EQ(zone->offset_s(-1), 3600);
}

TEST(Zone, OneThatIsNotThereIsRefusedWithTheNearestName) {
  const auto text = [](std::string_view name) { return Zone::load(name).error().text(); };

  EXPECT_EQ(text("Europe/Berln"),
            "there is no time zone 'Europe/Berln' on this host; did you mean 'Europe/Berlin'?");
  EXPECT_EQ(text("berlin"),
            "there is no time zone 'berlin' on this host; did you mean 'Europe/Berlin'?");
  EXPECT_EQ(text("Europe"), "there is no time zone 'Europe' on this host; write a name such as "
                            "Europe/Berlin, or UTC (/usr/share/zoneinfo has them all, from the "
                            "package tzdata)");
  EXPECT_EQ(Zone::load("Europe/Berlin", "/nowhere").error().text(),
            "there is no time zone 'Europe/Berlin' on this host; install the package tzdata");
}

TEST(Zone, ANameThatLeavesTheDirectoryIsNone) {
  EXPECT_EQ(Zone::load("")->name(), "UTC");
  for (const std::string name : {"/etc/passwd", "../etc/passwd", "Europe/../UTC", "Europe//X",
                                 "Europe/", ".hidden", "a b", "UTC\n"}) {
    const auto zone = Zone::load(name);
    ASSERT_FALSE(zone) << name;
    EXPECT_EQ(zone.error().code(), Errc::InvalidArgument) << name;
  }
  EXPECT_FALSE(is_zone_name(std::string(kMaxZoneName + 1, 'a')));
  EXPECT_TRUE(is_zone_name(std::string(kMaxZoneName, 'a')));
  EXPECT_TRUE(is_zone_name("Etc/GMT+12"));
}

TEST(Zone, AFileThatIsNoneIsDamaged) {
  const std::string good = file_of({100, 200}, {0, 1}, {0, 3600}, "AAA0");
  ASSERT_TRUE(Zone::parse("x", good));
  const auto text = [](const std::string& bytes) { return Zone::parse("x", bytes).error().text(); };
  const auto end = std::string("; reinstall the package tzdata");

  EXPECT_EQ(text(""), "the file of time zone 'x' is no TZif file" + end);
  std::string old = good;
  old[4] = '\0';
  EXPECT_EQ(text(old), "the file of time zone 'x' is of version 1, with 32-bit times only" + end);
  EXPECT_EQ(text(file_of({200, 100}, {0, 1}, {0, 3600}, "AAA0")),
            "the file of time zone 'x' has times out of order" + end);
  EXPECT_EQ(text(file_of({100}, {2}, {0, 3600}, "AAA0")),
            "the file of time zone 'x' has times out of order" + end);
  EXPECT_EQ(text(file_of({100}, {0}, {kMaxOffset + 1}, "AAA0")),
            "the file of time zone 'x' has times out of order" + end);
  EXPECT_EQ(text(file_of({}, {}, {0}, "nonsense")),
            "the file of time zone 'x' ends with a rule that cannot be read" + end);
  for (std::size_t cut = 0; cut < good.size(); ++cut) {
    EXPECT_FALSE(Zone::parse("x", good.substr(0, cut))) << cut;
  }
}

TEST(Zone, TooManyChangesOrTooLargeAFileIsRefused) {
  std::vector<std::int64_t> changes;
  for (std::size_t i = 0; i <= kMaxTransitions; ++i) changes.push_back(static_cast<int>(i));
  const std::vector<int> kinds(changes.size(), 0);
  EXPECT_EQ(Zone::parse("x", file_of(changes, kinds, {0}, "")).error().text(),
            "the file of time zone 'x' has counts out of range; reinstall the package tzdata");

  const auto directory = std::filesystem::temp_directory_path() /
                         ("cutwater-zone-" + std::to_string(::testing::UnitTest::GetInstance()
                                                                ->random_seed()) +
                          std::to_string(reinterpret_cast<std::uintptr_t>(&changes)));
  std::filesystem::create_directories(directory);
  std::ofstream(directory / "Big") << std::string(kMaxZoneFileBytes + 1, 'x');
  EXPECT_EQ(Zone::load("Big", directory).error().text(),
            "the file of time zone 'Big' is larger than 65536 bytes; reinstall the package tzdata");
  std::filesystem::remove_all(directory);
}

TEST(Zone, OneWithLeapSecondsIsRefused) {
  const auto zone = Zone::load("right/Europe/Berlin");

  ASSERT_FALSE(zone);
  EXPECT_NE(zone.error().text().find("right/"), std::string::npos) << zone.error().text();
}

TEST(Zone, EveryZoneOfTheSystemCanBeRead) {
  const auto names = zone_names();

  EXPECT_GT(names.size(), 400u);
  std::size_t read = 0;
  for (const std::string& name : names) read += Zone::load(name) ? 1 : 0;
  EXPECT_GE(read + 10, names.size());   // some names are tables and lists, not zones
}

TEST(Zone, AnyBytesAreSafe) {
  const std::string good = file_of({100, 200, 300}, {0, 1, 0}, {0, 3600},
                                   "CET-1CEST,M3.5.0,M10.5.0/3");
  std::mt19937_64 random(20260601);
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = good;
    for (int change = 0; change < 3; ++change) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    const auto zone = Zone::parse("x", bytes);
    if (zone) zone->stretch_at(static_cast<std::int64_t>(random() >> 24));
  }
}

TEST(ZoneRule, ReadsWhatPosixAllows) {
  EXPECT_TRUE(parse_rule("UTC0"));
  EXPECT_TRUE(parse_rule("<-03>3"));
  EXPECT_TRUE(parse_rule("IST-2IDT,M3.4.4/26,M10.5.0"));
  EXPECT_TRUE(parse_rule("<-02>2<-01>,M3.5.0/-1,M10.5.0/0"));
  EXPECT_TRUE(parse_rule("NST3:30NDT,J60/0:01,300/0:00:01"));
  for (const char* wrong : {"", "A0", "UTC", "<-03", "UTC25", "UTC0UTD", "UTC0UTD,M13.1.0,M1.1.0",
                            "UTC0UTD,M3.6.0,M1.1.0", "UTC0UTD,M3.1.0", "UTC0 ", "UTC0UTD,J0,J1",
                            "UTC0UTD,M3.1.7,J1", "UTC0UTD,366,J1", "UTC0UTD,0/168,J1"}) {
    EXPECT_FALSE(parse_rule(wrong)) << wrong;
  }
}

TEST(ZoneRule, DaylightSavingAllTheYearIsOneOffset) {
  const auto rule = parse_rule("ABC3EDT4,0/0,J365/23");

  ASSERT_TRUE(rule);
  for (std::int64_t at = 1'700'000'000; at < 1'900'000'000; at += 86'400) {
    EXPECT_EQ(rule->stretch_at(at).offset_s, -4 * 3600) << at;
  }
}

}  // namespace
}  // namespace cutwater::calendar
