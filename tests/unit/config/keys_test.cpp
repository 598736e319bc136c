// SPDX-License-Identifier: Apache-2.0
// `keys` of a limit: what single keys and patterns get instead.
#include "config/words.hpp"
#include "loading.hpp"

namespace cutwater::config {
namespace {

using rule::LimitKind;
using rule::OverrideSettings;

constexpr std::uint64_t kSecond = rule::kNanosPerSecond;

/// Errors of a limit whose `keys` are these lines, the first of which is line 4.
Lines key_errors(const std::string& lines) {
  return errors_of("limits:\n  a:\n    rate: 10/s\n    keys:\n" + lines);
}

TEST(Keys, EachKindOfKeyAndOfValue) {
  const Config config = config_of(R"(
limits:
  a:
    rate: 10/s
    keys:
      "partner:*": { rate: 100/s, burst: 200 }
      monitor: unlimited
      root: { unlimited: true, note: "nobody limits root" }
      mallory: { banned: true, until: 2030-01-01T00:00:00Z, note: "scraping" }
      eve: banned
      hex:00ff: { spacing: 1s }
      exact:a*: { calendar: { count: 5, per: day, zone: UTC } }
      [acme, alice]: { windows: [5/s, 100/h] }
)");
  const auto& overrides = config.limits[0].overrides;
  ASSERT_EQ(overrides.size(), 8U);
  EXPECT_EQ(overrides[0], (OverrideSettings{.key = "partner:*", .pattern = true,
                                            .windows = {rule::rate_window(100, kSecond, 200)}}));
  EXPECT_EQ(overrides[1], (OverrideSettings{.key = "monitor", .kind = LimitKind::Unlimited}));
  EXPECT_EQ(overrides[2], (OverrideSettings{.key = "root", .kind = LimitKind::Unlimited,
                                            .note = "nobody limits root"}));
  EXPECT_EQ(overrides[3], (OverrideSettings{.key = "mallory", .kind = LimitKind::Blocked,
                                            .until_unix_s = 1'893'456'000, .note = "scraping"}));
  EXPECT_EQ(overrides[4], (OverrideSettings{.key = "eve", .kind = LimitKind::Blocked}));
  EXPECT_EQ(overrides[5], (OverrideSettings{.key = std::string("\0\xff", 2),
                                            .windows = {rule::rate_window(1, kSecond, 1)}}));
  EXPECT_EQ(overrides[6],
            (OverrideSettings{.key = "a*", .windows = {rule::calendar_window(
                                               5, rule::CalendarUnit::Day, "UTC")}}));
  EXPECT_EQ(overrides[7].key, std::string("\0\4acme\0\5alice", 13));
  EXPECT_EQ(overrides[7].windows.size(), 2U);
  EXPECT_TRUE(rule::check(config.limits[0]));
  EXPECT_EQ(config.find_value("limits.a.keys.partner:*.rate")->text, "100/s");
  EXPECT_EQ(config.find_value("limits.a.keys.mallory.until")->text, "2030-01-01T00:00:00Z");
  EXPECT_EQ(config.find_value("limits.a.keys.monitor.unlimited")->text, "true");
  EXPECT_EQ(config.find_value("limits.a.keys.hex:00ff.spacing")->text, "1s");
  EXPECT_EQ(config.find_value("limits.a.keys.[acme, alice].windows[1].rate")->text, "100/h");
}

TEST(Keys, TwoSpellingsOfOneMeaningHaveOneHash) {
  const auto hash = [](const std::string& keys) {
    return config_of("limits: { a: { rate: 1/s, keys: { " + keys + " } } }").hash;
  };
  EXPECT_EQ(hash("x: unlimited"), hash("hex:78: { unlimited: true }"));
  EXPECT_EQ(hash("x: banned"), hash("exact:x: { banned: true }"));
  EXPECT_EQ(hash("[a, b]: banned"), hash("hex:000161000162: banned"));
  EXPECT_NE(hash("x: banned"), hash("y: banned"));
  EXPECT_NE(hash("x: banned"), hash("x: unlimited"));
}

TEST(Keys, AreCheckedOneByOne) {
  EXPECT_EQ(
      key_errors("      \"*\": unlimited\n"
                 "      a*b*: unlimited\n"
                 "      hex:6: unlimited\n"
                 "      '': unlimited\n"
                 "      one: 100/s\n"
                 "      two:\n"
                 "      three: [1/s]\n"
                 "      four: { note: x }\n"
                 "      five: { rate: 1/s, banned: true }\n"
                 "      six: { rat: 1/s, banned: true }\n"
                 "      [a, [b]]: banned\n"
                 "      [a, b*]: banned\n"),
      (Lines{
          "cutwater.yaml:5:7: limits.a.keys: \"*\" is every key; write its rate at the limit "
          "itself, or \"exact:*\" for the key *",
          "cutwater.yaml:6:7: limits.a.keys: \"a*b*\" has 2 stars; write one, or exact: in front "
          "of a key that contains them",
          "cutwater.yaml:7:7: limits.a.keys: \"hex:6\" is no key in hex; write two digits for "
          "each byte, or exact: in front of a key that begins with hex:",
          "cutwater.yaml:8:7: limits.a.keys: an empty key; write at least one byte",
          "cutwater.yaml:9:12: limits.a.keys.one: \"100/s\" is not known here; write unlimited, "
          "banned or { rate: 10/s }",
          "cutwater.yaml:10:7: limits.a.keys.two: has no value; write unlimited, banned or { "
          "rate: 10/s }",
          "cutwater.yaml:11:14: limits.a.keys.three: a list is not accepted here; write "
          "unlimited, banned or { rate: 10/s }",
          "cutwater.yaml:12:7: limits.a.keys.four: says nothing; write { rate: 10/s }, "
          "unlimited or banned",
          "cutwater.yaml:13:15: limits.a.keys.five.rate: 'banned' (13:26) also says what this "
          "key gets; keep one",
          "cutwater.yaml:14:14: limits.a.keys.six.rat: unknown key; did you mean 'rate'?",
          "cutwater.yaml:15:7: limits.a.keys: a key is wanted here; write one word, or a list "
          "of parts",
          "cutwater.yaml:16:7: limits.a.keys: \"b*\" is a pattern, which cannot be a part of a "
          "key; write exact: in front of a part that contains *"}));
  EXPECT_EQ(errors_of("limits: { a: { rate: 1/s, keys: [x] } }"),
            Lines{"cutwater.yaml:1:33: limits.a.keys: a map of keys is wanted; write KEY: { rate: "
                  "100/s }"});
}

TEST(Keys, OneKeyIsWrittenOnceHoweverItIsSpelt) {
  EXPECT_EQ(key_errors("      x: banned\n      hex:78: unlimited\n      exact:x*: banned\n"
                       "      x*: banned\n"),
            Lines{"cutwater.yaml:6:7: limits.a.keys.x: defined twice, first at 5:7"});
}

TEST(Keys, UntilEndsABanOfOneKey) {
  EXPECT_EQ(
      key_errors("      x: { rate: 1/s, until: 2030-01-01T00:00:00Z }\n"
                 "      y*: { banned: true, until: 2030-01-01T00:00:00Z }\n"
                 "      z: { banned: true, until: 2030-01-01 }\n"),
      (Lines{
          "cutwater.yaml:5:23: limits.a.keys.x.until: is the end of a ban; take it out, or write "
          "banned: true",
          "cutwater.yaml:6:27: limits.a.keys.y*.until: a pattern is banned for ever or not at "
          "all; take it out, or ban single keys",
          "cutwater.yaml:7:33: limits.a.keys.z.until: \"2030-01-01\" is no moment; write one "
          "such as 2030-01-01T00:00:00Z"}));
}

TEST(Keys, AtMostSixteenPatterns) {
  std::string keys;
  for (std::size_t i = 0; i < rule::kMaxPatterns; ++i) {
    keys += "      p" + std::to_string(i) + "*: unlimited\n";
  }
  EXPECT_TRUE(load("limits:\n  a:\n    rate: 10/s\n    keys:\n" + keys).ok());
  EXPECT_EQ(key_errors(keys + "      q*: unlimited\n      r*: unlimited\n"),
            Lines{"cutwater.yaml:21:7: limits.a.keys: more than 16 patterns; write some as keys, "
                  "or make a limit of their own"});
}

TEST(Keys, FitTheirCapacity) {
  std::string text = "capacity: { overrides: 2 }\nlimits:\n  a: { rate: 1/s, keys: { x: banned, ";
  EXPECT_TRUE(load(text + "y: banned } }\n").ok());
  EXPECT_EQ(errors_of(text + "y: banned } }\n  b: { rate: 1/s, keys: { x: banned } }\n"),
            Lines{"cutwater.yaml:2:1: limits: 3 keys with an override do not fit "
                  "capacity.overrides, which is 2; set capacity.overrides to at least 3"});
}

TEST(Keys, PatternsFitTheirCapacity) {
  const auto text = [](const std::string& overrides) {
    return "capacity: { overrides: " + overrides + " }\nlimits:\n  a: { rate: 1/s, keys: { x*: "
           "banned, y*: banned } }\n";
  };
  EXPECT_TRUE(load(text("2")).ok());
  EXPECT_EQ(errors_of(text("1")),
            Lines{"cutwater.yaml:2:1: limits: 2 key patterns do not fit capacity.overrides, which "
                  "is 1; set capacity.overrides to at least 2"});
  std::string many = "capacity: { overrides: 271 }\nlimits:\n";
  for (const char* limit : {"a", "b"}) {
    many += "  " + std::string(limit) + ": { rate: 1/s, keys: {";
    for (int i = 0; i < (limit[0] == 'a' ? 16 : 1); ++i) {
      many += " p" + std::to_string(i) + "*: banned,";
    }
    many += " } }\n";
  }
  EXPECT_EQ(errors_of(many),
            Lines{"cutwater.yaml:2:1: limits: 17 key patterns do not fit capacity.overrides, which "
                  "is 271; set capacity.overrides to at least 272"});
}

TEST(Keys, WindowsFitTheRulesOfTheirLimits) {
  const auto text = [](int limits, const std::string& keys) {
    return "capacity: { limits: " + std::to_string(limits) +
           " }\nlimits:\n  a: { windows: [1/s, 2/m, 3/h], keys: { " + keys + " } }\n";
  };
  EXPECT_TRUE(load(text(1, "x: { rate: 9/s }, y: { rate: 9/s }, z: banned")).ok());
  EXPECT_EQ(errors_of(text(1, "x: { rate: 9/s }, y: { rate: 8/s }")),
            Lines{"cutwater.yaml:2:1: limits: 5 windows of limits and keys do not fit: there is "
                  "room for 4 for each of capacity.limits, which is 1; set capacity.limits to "
                  "at least 2"});
}

TEST(Keys, AtMostSixtyFourCalendars) {
  std::string text = "limits:\n";
  const std::vector<std::string> units = {"minute", "hour", "day", "week", "month", "year"};
  for (int i = 0; i < 65; ++i) {
    text += "  l" + std::to_string(i) + ": { calendar: { count: 1, per: " +
            units[static_cast<std::size_t>(i) % 6] + ", zone: Etc/GMT+" + std::to_string(i / 6) +
            " } }\n";
  }
  EXPECT_EQ(errors_of(text),
            Lines{"cutwater.yaml:1:1: limits: 65 different calendars, unit and zone, are above the "
                  "maximum of 64; let limits share one"});
}

TEST(Keys, LongOnesAreCutInErrorsAndWholeAmongTheValues) {
  const std::string key(kMaxQuotedBytes, 'k');
  const Config config = config_of("limits:\n  a:\n    rate: 1/s\n    keys:\n      ? " + key +
                                  "1\n      : banned\n      ? " + key + "2\n      : banned\n");
  EXPECT_NE(config.find_value("limits.a.keys." + key + "1.banned"), nullptr);
  EXPECT_NE(config.find_value("limits.a.keys." + key + "2.banned"), nullptr);
}

}  // namespace
}  // namespace cutwater::config
