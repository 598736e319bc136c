// SPDX-License-Identifier: Apache-2.0
#include "config/diff.hpp"

#include "config/words_of_change.hpp"
#include "loading.hpp"

namespace cutwater::config {
namespace {

using rule::OnChange;

constexpr std::uint64_t kSecond = rule::kNanosPerSecond;

Diff diff_of(std::string_view before, std::string_view after, const KeysInDebt& debt = {}) {
  const Config running = config_of(before);
  return diff(running, config_of(after), running.capacity, debt);
}

Lines words(const std::string& before, const std::string& after) {
  const Diff found = diff_of("limits: { a: " + before + " }", "limits: { a: " + after + " }");
  return found.limits.empty() ? Lines{} : found.limits.at(0).words;
}

// covers: C128
TEST(Diff, CaseC128SaysWhatALoweredRateMeansBeforeItHappens) {
  const auto before = rule::rate_window(100, 60 * kSecond, 100);
  const auto after = rule::rate_window(2, 60 * kSecond, 2);
  const Effect kept = effect_of(before, after, OnChange::KeepUsed, 50);
  EXPECT_EQ(kept.level, -48);
  EXPECT_EQ(kept.first_token_ns, 1470 * kSecond);
  EXPECT_EQ(effect_of(before, after, OnChange::AsIs, 50).level, 2);
  EXPECT_EQ(effect_of(before, after, OnChange::Proportional, 50).level, 1);
  EXPECT_EQ(effect_of(before, after, OnChange::Reset, 50).level, 2);

  EXPECT_EQ(
      words("{ rate: 100/m }", "{ rate: 2/m }"),
      (Lines{"100/m, burst 100 becomes 2/m, burst 2",
             "keep-used: a key that had used 50 of 100 is at level -48: first token after 24m30s; "
             "one that had used all 100 is at level -98: first token after 49m30s"}));
}

TEST(Diff, TheFourMeaningsOfOnChange) {
  const auto second = [](const std::string& on_change, const std::string& rate) {
    return words("{ rate: 100/m }", "{ rate: " + rate + ", on-change: " + on_change + " }").at(1);
  };
  EXPECT_EQ(
      second("keep-used", "20/m"),
      "keep-used: a key that had used 50 of 100 is at level -30: first token after 1m33s; one "
      "that had used all 100 is at level -80: first token after 4m3s");
  EXPECT_EQ(
      second("keep-used", "200/m"),
      "keep-used: a key that had used 50 of 100 is at level 150; one that had used all 100 is "
      "at level 100");
  EXPECT_EQ(second("as-is", "2/m"), "as-is: the tokens a key has left stay, at most 2");
  EXPECT_EQ(second("as-is", "200/m"), "as-is: the tokens a key has left stay and grow to 200");
  EXPECT_EQ(second("proportional", "2/m"),
            "proportional: a key that had used 50 of 100 is at level 1; one that had used all 100 "
            "is at level 0: first token after 30s");
  EXPECT_EQ(second("reset", "2/m"), "reset: every key is full again");
  EXPECT_EQ(words("{ rate: 100/m }", "{ rate: 100/h }").at(1),
            "keep-used: the tokens a key has until then stay; then they come at the new rate");
}

TEST(Diff, RaisedLimitsByTheTable) {
  const auto before = rule::rate_window(10, kSecond, 10);
  const auto after = rule::rate_window(20, kSecond, 20);
  EXPECT_EQ(effect_of(before, after, OnChange::KeepUsed, 8).level, 12);
  EXPECT_EQ(effect_of(before, after, OnChange::AsIs, 8).level, 2);
  EXPECT_EQ(effect_of(before, after, OnChange::Proportional, 8).level, 4);
  EXPECT_EQ(effect_of(before, after, OnChange::Reset, 8).level, 20);
}

TEST(Diff, OfACalendarCountsEdges) {
  EXPECT_EQ(
      words("{ calendar: { count: 100, per: day } }", "{ calendar: { count: 20, per: day } }"),
      (Lines{"100 per day of UTC becomes 20 per day of UTC",
             "keep-used: a key that had used 50 of 100 is at level -30: first token after 2 "
             "edges; one that had used all 100 is at level -80: first token after 5 edges"}));
}

TEST(Diff, KindsWindowsModesAndKeys) {
  EXPECT_EQ(words("{ rate: 1/s }", "{ unlimited: true }"),
            Lines{"is not limited any more: everything passes and is counted"});
  EXPECT_EQ(words("{ rate: 1/s }", "{ blocked: true }"),
            Lines{"is blocked from then on: everything is refused as banned"});
  EXPECT_EQ(words("{ blocked: true }", "{ rate: 1/s, initial: empty }"),
            Lines{"is limited from then on: every key starts empty and fills from then on"});
  EXPECT_EQ(words("{ windows: [1/s, 9/h] }", "{ windows: [1/s, 9/h, 20/d] }"),
            Lines{"window 3: 20/d, burst 20 is new and starts full"});
  EXPECT_EQ(words("{ windows: [1/s, 9/h] }", "{ rate: 1/s }"),
            Lines{"window 2: 9/h, burst 9 is gone, with what was used of it"});
  EXPECT_EQ(words("{ rate: 1/s }", "{ rate: 1/s, mode: shadow }"),
            Lines{"refuses nobody any more, and counts what it would refuse"});
  EXPECT_EQ(words("{ rate: 1/s, mode: shadow }", "{ rate: 1/s }"),
            Lines{"refuses from then on: it was in shadow before"});
  EXPECT_EQ(words("{ rate: 1/s, keys: { x: banned, y: banned, z: banned } }",
                  "{ rate: 1/s, keys: { x: unlimited, y: banned, v: banned, w: banned } }"),
            Lines{"keys of their own: 2 new, 1 changed, 1 gone; each keeps what it used"});
  EXPECT_EQ(words("{ rate: 1/s }", "{ rate: 60/m, note: x, max-wait: 1s }"),
            (Lines{"1/s, burst 1 becomes 60/m, burst 60",
                   "keep-used: one that had used all 1 is at level 59"}));
  EXPECT_EQ(words("{ rate: 1/s }", "{ rate: 1/s, note: x, max-wait: 1s }"), Lines{});
}

TEST(Diff, NamesEveryValueWithOldAndNewAndOrigins) {
  const Diff found = diff_of(
      "limits:\n  a: { rate: 1/s }\n  b: { rate: 2/s }\nlog: { level: debug }\n",
      "instance: { name: blue }\nlimits:\n  a: { rate: 1/s, burst: 5 }\n  c: { rate: 3/s }\n",
      [](std::string_view name) -> std::optional<std::uint64_t> {
        if (name == "a") return 7;
        if (name == "b") return 1;
        return std::nullopt;
      });

  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found.changes.front().path, "instance.name");
  EXPECT_EQ(found.changes.front().reload, 'S');
  EXPECT_EQ(found.changes.front().before, "main");
  EXPECT_EQ(found.changes.front().before_origin, "default");
  EXPECT_EQ(found.changes.front().after_origin, "cutwater.yaml:1:19");
  EXPECT_NE(found.hash_before, found.hash_after);
  const std::string text = found.text();
  const auto has = [&](const std::string& line) {
    EXPECT_NE(("\n" + text).find("\n" + line + "\n"), std::string::npos) << line << "\n" << text;
  };
  has("S  instance.name: main -> blue  # cutwater.yaml:1:19");
  has("L  limits.a.burst: 1 -> 5  # cutwater.yaml:3:26");
  has("L  limits.c.rate: (not there) -> 3/s  # cutwater.yaml:4:14");
  EXPECT_NE(text.find("   limits.c: and "), std::string::npos) << text;
  EXPECT_EQ(text.find("limits.c.on-full"), std::string::npos) << "nobody wrote it";
  has("L  limits.b.rate: 2/s -> (gone)  # was cutwater.yaml:3:14");
  has("L  log.level: debug -> info  # default");
  has("limit a, 7 keys in debt:");
  has("limit b, 1 key in debt:");
  has("  is gone with what was used of it: put back, it starts anew");
  has("  is new: 3/s, burst 3, every key starts full");
  has("cutwater.yaml:1:13: instance.name: changed from 'main' to 'blue', which needs a restart");
  EXPECT_TRUE(text.ends_with("a reload is refused as a whole; restart to take this over\n"));
}

TEST(Diff, OfOneMeaningIsEmptyHoweverItIsWritten) {
  const Diff found = diff_of("limits: { a: { rate: 60/m, burst: 60 } }",
                             "log: { level: info }\nlimits: { a: { rate: 60 per minute } }");
  EXPECT_TRUE(found.empty());
  EXPECT_TRUE(found.limits.empty());
  EXPECT_EQ(found.hash_before, found.hash_after);
  EXPECT_EQ(found.text(), "no change\n");
  EXPECT_TRUE(diff_of("", "log: { level: warn }").text().ends_with("a reload takes this over\n"));
}

TEST(Diff, ACapacityGrowsInsideItsReserveOnly) {
  const Config running = config_of("capacity: { keys: 2048 }");
  const Config next = config_of("capacity: { keys: 4096 }");
  Capacity reserved = running.capacity;
  EXPECT_EQ(diff(running, next, reserved).changes.at(0).reload, 'C');
  EXPECT_EQ(diff(running, next, reserved).refused.size(), 1U);
  reserved.keys = 8192;
  EXPECT_TRUE(diff(running, next, reserved).refused.empty());
}

}  // namespace
}  // namespace cutwater::config
