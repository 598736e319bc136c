// SPDX-License-Identifier: Apache-2.0
#include "config/schema.hpp"
#include "loading.hpp"

namespace cutwater::config {
namespace {

Lines lines(const std::vector<Finding>& findings) {
  Lines out;
  for (const Finding& finding : findings) out.push_back(finding.line());
  return out;
}

Lines reload(std::string_view running, std::string_view next) {
  return lines(reload_errors(config_of(running), config_of(next)));
}

// covers: C130
TEST(Reload, NamesTheKeyThatNeedsARestart) {
  EXPECT_EQ(reload("", "# our shop\ninstance:\n  name: blue\n"),
            Lines{"cutwater.yaml:3:3: instance.name: changed from 'main' to 'blue', which needs a "
                  "restart"});
}

TEST(Reload, AKeyTakenOutIsAChangeToo) {
  EXPECT_EQ(
      reload("instance: { name: blue }", ""),
      Lines{"cutwater.yaml: instance.name: changed from 'blue' to 'main', which needs a restart"});
}

TEST(Reload, EveryKeyThatIsReadAtStart) {
  const std::string next = R"(
instance: { name: x, memory-directory: /m, clock: tsc, lock-memory: true, huge-pages: never,
            state-directory: /var, remember-keys: true }
listen: { unix: { path: /s, mode: "0666", group: 5 } }
capacity: { keys: 1M, limits: 300, processes: 2000, stripes: 64, events: 8192, overrides: 5000,
            breakers: 81, breaker-memory: 1MiB, bulkheads: 81, bulkhead-cells: 5000,
            waiters: 1025, trips: 1025, tops: 65 }
log: { queue: 512 }
)";
  std::size_t fixed = 0;
  for (const Key& key : schema()) fixed += key.reload != Reload::Live;

  const Lines found = reload("", next);

  EXPECT_EQ(found.size(), fixed);
  EXPECT_EQ(
      found.at(10),
      "cutwater.yaml:5:13: capacity.keys: changed from '262144' to '1000000', above the 262144 "
      "reserved at start, which needs a restart");
}

TEST(Reload, BlocksThatTakeMoreThanWasReservedForThemSaySo) {
  EXPECT_EQ(reload("", "breakers: { \"bank-*\": {}, x: {} }"), Lines{}) << "fits as it comes";
  EXPECT_EQ(reload("", "breakers: { \"bank-*\": { max-instances: 100 } }"),
            Lines{"cutwater.yaml: capacity.breakers: the blocks take 101 now, and 80 were reserved "
                  "at start; restart the daemon (nothing is forgotten), or let them take less: a "
                  "pattern takes its max-instances and one"});
}

TEST(Reload, LiveKeysAndOtherSpellingsChangeFreely) {
  EXPECT_EQ(reload("limits: { a: { rate: 1/s } }", R"(
instance: { name: main, initial-after-damage: full }
access: { map: { users: ["*"] } }
log: { level: debug, format: json, target: "file:/l" }
capacity: { keys: 256Ki }
limits: { b: { rate: 5/s } }
)"), Lines{});
}

TEST(Reload, CapacityMayShrinkAndGrowBackInsideTheReserve) {
  const Config running = config_of("capacity: { keys: 4096 }");
  const Config next = config_of("capacity: { keys: 262144 }");

  EXPECT_TRUE(reload_errors(next, running).empty());
  EXPECT_EQ(reload_errors(running, next).size(), 1U);
  EXPECT_TRUE(reload_errors(running, next, Capacity{}).empty());
}

TEST(Reload, WhatCameFromOutsideIsNamed) {
  LoadOptions options;
  options.environment = {{"CUTWATER_INSTANCE__NAME", "blue"}};
  EXPECT_EQ(
      lines(reload_errors(config_of(""), config_of("", options))),
      Lines{"environment CUTWATER_INSTANCE__NAME: instance.name: changed from 'main' to 'blue', "
            "which needs a restart"});
}

}  // namespace
}  // namespace cutwater::config
