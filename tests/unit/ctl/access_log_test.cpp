// SPDX-License-Identifier: Apache-2.0
#include "ctl/access_log.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <cutwater/units.hpp>

namespace cutwater::ctl {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
const std::string kLine =
    "198.51.100.7 - alice [17/May/2015:10:05:03 +0000] \"GET /a HTTP/1.1\" 200 1234";

/// An access log out of a text, `portion` bytes at a time.
AccessLog log_of(std::string text, std::size_t portion = 100'000) {
  return AccessLog([text = std::move(text), at = std::size_t{0}, portion](
                       char* place, std::size_t size) mutable {
    const std::size_t count = text.copy(place, std::min(size, portion), at);
    at += count;
    return count;
  });
}

std::int64_t stamp_of(const std::string& stamp) {
  LogEntry entry;
  const char* fault = parse_log_line("c - - [" + stamp + "] \"GET / HTTP/1.1\" 200 -", entry);
  return fault == nullptr ? entry.stamp_ns / kSecond : -1;
}

TEST(ParseLogLine, ReadsCommonFormat) {
  LogEntry entry;

  ASSERT_EQ(parse_log_line(kLine, entry), nullptr);

  EXPECT_EQ(entry.client, "198.51.100.7");
  EXPECT_EQ(entry.stamp_ns, 1'431'857'103 * kSecond);
}

TEST(ParseLogLine, ReadsCombinedFormatAndFieldsBehindIt) {
  LogEntry entry;

  const std::string line = kLine + " \"http://x/\" \"agent [x] \\\"y\\\"\" 0.004";

  ASSERT_EQ(parse_log_line(line, entry), nullptr);

  EXPECT_EQ(entry.client, "198.51.100.7");
}

TEST(ParseLogLine, TurnsZonesIntoOneTime) {
  EXPECT_EQ(stamp_of("17/May/2015:10:05:03 +0000"), 1'431'857'103);
  EXPECT_EQ(stamp_of("17/May/2015:12:05:03 +0200"), 1'431'857'103);
  EXPECT_EQ(stamp_of("17/May/2015:06:35:03 -0330"), 1'431'857'103);
  EXPECT_EQ(stamp_of("18/May/2015:00:05:03 +1400"), 1'431'857'103);
}

TEST(ParseLogLine, KnowsTheCalendar) {
  EXPECT_EQ(stamp_of("01/Jan/1970:00:00:00 +0000"), 0);
  EXPECT_EQ(stamp_of("29/Feb/2016:00:00:00 +0000"), 1'456'704'000);
  EXPECT_EQ(stamp_of("29/Feb/2000:00:00:00 +0000"), 951'782'400);
  EXPECT_EQ(stamp_of("31/Dec/2199:23:59:59 +0000"), 7'258'118'399);
  EXPECT_EQ(stamp_of("30/Jun/2015:23:59:60 +0000"), stamp_of("01/Jul/2015:00:00:00 +0000"));
}

TEST(ParseLogLine, RefusesWhatIsNoTime) {
  for (const char* stamp :
       {"29/Feb/2015:00:00:00 +0000", "29/Feb/2100:00:00:00 +0000", "00/May/2015:10:05:03 +0000",
        "32/May/2015:10:05:03 +0000", "17/Mai/2015:10:05:03 +0000", "17/may/2015:10:05:03 +0000",
        "17/May/2015:24:05:03 +0000", "17/May/2015:10:60:03 +0000", "17/May/2015:10:05:61 +0000",
        "17/May/2015:10:05:03 +1500", "17/May/2015:10:05:03 +0060", "17/May/2015:10:05:03 00000",
        "17/May/2015:10:05:03", "17/May/2201:10:05:03 +0000", "17/May/1969:10:05:03 +0000",
        "01/Jan/1970:00:00:00 +0100", "17-May-2015:10:05:03 +0000", "1x/May/2015:10:05:03 +0000"}) {
    EXPECT_EQ(stamp_of(stamp), -1) << stamp;
  }
}

TEST(ParseLogLine, TakesTheFirstTimeBeforeTheRequest) {
  LogEntry entry;

  EXPECT_EQ(parse_log_line("h [x] u [17/May/2015:10:05:03 +0000] \"GET /\" 200 0", entry), nullptr);
  EXPECT_NE(parse_log_line("h - - \"GET [17/May/2015:10:05:03 +0000] /\" 200 0", entry), nullptr);
}

TEST(ParseLogLine, TakesQuotesInsideTheRequest) {
  LogEntry entry;

  EXPECT_EQ(
      parse_log_line("h - - [17/May/2015:10:05:03 +0000] \"GET /a\\\"b \"c\" x\" 200 0", entry),
      nullptr);
  EXPECT_EQ(parse_log_line("h - - [17/May/2015:10:05:03 +0000] \"-\" 408 -", entry), nullptr);
}

TEST(ParseLogLine, SaysWhyALineCannotBeRead) {
  LogEntry entry;
  const auto fault = [&](const std::string& line) {
    const char* text = parse_log_line(line, entry);
    return std::string(text == nullptr ? "" : text);
  };

  EXPECT_EQ(fault(""), "empty line");
  EXPECT_EQ(fault("word"), "one field only");
  EXPECT_EQ(fault(" - - [x]"), "no client in the first field");
  EXPECT_EQ(fault("h - -"), "no [time]");
  EXPECT_EQ(fault("h - - [yesterday] \"GET /\" 200 1"),
            "time is not like [17/May/2015:10:05:03 +0000]");
  EXPECT_EQ(fault("h - - [17/May/2015:10:05:03 +0000]"), "no quoted request behind the time");
  EXPECT_EQ(fault("h - - [17/May/2015:10:05:03 +0000] \"GET /"), "no status behind the request");
  EXPECT_EQ(fault("h - - [17/May/2015:10:05:03 +0000] \"GET /\" 200"), "no size behind the status");
  EXPECT_EQ(fault(std::string(kMaxKeyBytes + 1, 'c') + kLine), "client longer than 4096 bytes");
}

TEST(AccessLog, ReadsTheSameInAnyPortions) {
  const std::string text = kLine + "\n" + kLine + "\r\n\nx\n" + kLine;
  for (const std::size_t portion : {1U, 2U, 7U, 80U, 1000U}) {
    AccessLog log = log_of(text, portion);
    LogEntry entry;
    int read = 0;
    while (log.next(entry)) ++read;

    EXPECT_EQ(read, 3) << portion;
    EXPECT_EQ(log.lines(), 5U);
    EXPECT_EQ(log.skipped(), 2U);
    EXPECT_EQ(log.bytes(), text.size());
  }
}

TEST(AccessLog, KeepsTheFirstThreeFaultsAndGoesOn) {
  AccessLog log = log_of("bad\n" + kLine + "\nbad one\n\nworse\n" + kLine + "\n");
  LogEntry entry;
  int read = 0;
  while (log.next(entry)) ++read;

  EXPECT_EQ(read, 2);
  EXPECT_EQ(log.skipped(), 4U);
  ASSERT_EQ(log.faults().size(), kShownLogFaults);
  EXPECT_EQ(log.faults()[0].line, 1U);
  EXPECT_EQ(log.faults()[1].line, 3U);
  EXPECT_EQ(log.faults()[1].reason, "no [time]");
  EXPECT_EQ(log.faults()[2].line, 4U);
}

TEST(AccessLog, ReadsALineOfTheLongestLength) {
  const std::string longest = kLine + " " + std::string(kMaxLogLine - kLine.size() - 1, 'x');
  AccessLog log = log_of(longest + "\n" + longest + "x\n" + kLine);
  LogEntry entry;

  ASSERT_TRUE(log.next(entry));
  EXPECT_EQ(log.lines(), 1U);
  ASSERT_TRUE(log.next(entry));
  EXPECT_EQ(log.lines(), 3U);
  EXPECT_FALSE(log.next(entry));
  ASSERT_EQ(log.faults().size(), 1U);
  EXPECT_EQ(log.faults()[0].line, 2U);
  EXPECT_EQ(log.faults()[0].reason, "longer than 65536 bytes");
}

TEST(AccessLog, PassesOverAHugeLineInBoundedMemory) {
  AccessLog log = log_of(
      std::string(10 * kMaxLogLine, 'x') + "\n" + kLine + "\n" + std::string(3 * kMaxLogLine, 'y'),
      1000);
  LogEntry entry;

  ASSERT_TRUE(log.next(entry));
  EXPECT_EQ(entry.client, "198.51.100.7");
  EXPECT_FALSE(log.next(entry));
  EXPECT_EQ(log.lines(), 3U);
  EXPECT_EQ(log.skipped(), 2U);
}

TEST(AccessLog, TakesClientsOfAnyBytes) {
  const std::string client("a\0\xff\\", 4);
  AccessLog log = log_of(client + kLine.substr(kLine.find(' ')));
  LogEntry entry;

  ASSERT_TRUE(log.next(entry));
  EXPECT_EQ(entry.client, client);
}

TEST(AccessLog, SaysWhichFileCannotBeRead) {
  EXPECT_EQ(AccessLog::open("/nonexistent/access.log").error().code(), Errc::InvalidArgument);
  EXPECT_EQ(AccessLog::open("/").error().text(), "/: Is a directory");
}

}  // namespace
}  // namespace cutwater::ctl
