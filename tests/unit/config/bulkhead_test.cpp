// SPDX-License-Identifier: Apache-2.0
// `bulkheads`: presets, bases, and what all of them together need.
#include "loading.hpp"

namespace cutwater::config {
namespace {

constexpr std::uint64_t kSecond = rule::kNanosPerSecond;

TEST(Bulkheads, EveryKeyAndEveryPreset) {
  const Config config = config_of(R"(
bulkheads:
  plain: {}
  mp: { preset: microprofile }
  spring: { preset: spring, maxConcurrentCalls: 7 }
  all: { max-concurrent-calls: 0, max-wait-duration: 2s, max-waiting: 3, max-hold: 1m,
         enabled: false, note: x }
  base: { abstract: true, max-concurrent-calls: 9, max-wait-duration: 1s }
  over: { base-config: base, max-wait-duration: 0 }
)");
  ASSERT_EQ(config.bulkheads.size(), 5U);
  EXPECT_EQ(config.bulkheads[0].max_concurrent, 25U);
  EXPECT_EQ(config.bulkheads[0].max_wait_ns, 0U);
  EXPECT_EQ(config.bulkheads[1].max_concurrent, 10U);
  EXPECT_EQ(config.bulkheads[2].max_concurrent, 7U);
  EXPECT_EQ(config.bulkheads[2].max_wait_ns, rule::kWaitForever);
  EXPECT_EQ(config.bulkheads[3].max_concurrent, 0U);
  EXPECT_EQ(config.bulkheads[3].max_wait_ns, 2 * kSecond);
  EXPECT_EQ(config.bulkheads[3].max_waiting, 3U);
  EXPECT_EQ(config.bulkheads[3].max_hold_ns, 60 * kSecond);
  EXPECT_FALSE(config.bulkheads[3].enabled);
  EXPECT_EQ(config.bulkheads[3].note, "x");
  EXPECT_EQ(config.bulkheads[4].max_concurrent, 9U);
  EXPECT_EQ(config.bulkheads[4].max_wait_ns, 0U);
  for (const auto& one : config.bulkheads) EXPECT_TRUE(rule::check(one)) << one.name;
  EXPECT_EQ(config.find_value("bulkheads.spring.max-wait-duration")->text, "forever");
  EXPECT_EQ(origin_text(config.find_value("bulkheads.spring.max-wait-duration")->place, "f"),
            "preset spring");
  EXPECT_EQ(origin_text(config.find_value("bulkheads.over.max-concurrent-calls")->place, "f"),
            "base-config base, f:8:49");
}

TEST(Bulkheads, AreChecked) {
  EXPECT_EQ(errors_of("bulkheads:\n  a: { preset: spring }\n"),
            Lines{"cutwater.yaml:2:3: bulkheads.a: preset spring needs max-concurrent-calls; write "
                  "it"});
  EXPECT_EQ(
      errors_of("bulkheads:\n  a: { max-concurrent-calls: 4097, max-wait-duration: 2h, "
                "max-waiting: 16384, max-hold: 1us }\n"),
      (Lines{"cutwater.yaml:2:30: bulkheads.a.max-concurrent-calls: 4097 is above the maximum "
             "of 4096",
             "cutwater.yaml:2:55: bulkheads.a.max-wait-duration: 2h is above the maximum of "
             "1h",
             "cutwater.yaml:2:72: bulkheads.a.max-waiting: 16384 is above the maximum of "
             "16383",
             "cutwater.yaml:2:89: bulkheads.a.max-hold: 1us is below the minimum of 1ms"}));
}

TEST(Bulkheads, FitTheirCapacities) {
  std::string text =
      "capacity: { bulkheads: 64, bulkhead-cells: 4096, waiters: 1024 }\nbulkheads:\n";
  const auto block = [](int i) {
    return "  b" + std::to_string(i) + ": { max-concurrent-calls: 64, max-wait-duration: 1s, "
           "max-waiting: 16 }\n";
  };
  for (int i = 0; i < 64; ++i) text += block(i);
  EXPECT_TRUE(load(text).ok());
  EXPECT_EQ(errors_of(text + block(64)),
            (Lines{"cutwater.yaml:2:1: bulkheads: 65 bulkheads do not fit capacity.bulkheads, "
                   "which is 64; set capacity.bulkheads to at least 65",
                   "cutwater.yaml:2:1: bulkheads: 4160 places of bulkheads do not fit "
                   "capacity.bulkhead-cells, which is 4096; set capacity.bulkhead-cells to at "
                   "least 4160",
                   "cutwater.yaml:2:1: bulkheads: 1040 calls in line at bulkheads do not fit "
                   "capacity.waiters, which is 1024; set capacity.waiters to at least 1040"}));
}

TEST(Bulkheads, APatternTakesItsInstancesAndOne) {
  const LoadOutcome outcome = load(
      "bulkheads:\n  \"a-*\": { max-concurrent-calls: 3, max-instances: 5, idle: 1m }\n");
  ASSERT_TRUE(outcome.ok()) << outcome.report();
  const rule::BulkheadSettings& pattern = outcome.config->bulkheads.at(0);
  EXPECT_EQ(pattern.name, "a-*");
  EXPECT_EQ(pattern.max_instances, 5U);
  EXPECT_EQ(pattern.idle_ns, 60'000'000'000U);
  EXPECT_EQ(errors_of("capacity: { bulkheads: 64, bulkhead-cells: 4096 }\n"
                      "bulkheads: { \"a-*\": { max-concurrent-calls: 100 } }"),
            (Lines{"cutwater.yaml:2:1: bulkheads: 65 bulkheads do not fit capacity.bulkheads, "
                   "which is 64: 'a-*' takes 65, its max-instances of 64 and one; set "
                   "capacity.bulkheads to at least 65, or its max-instances to at most 63",
                   "cutwater.yaml:2:1: bulkheads: 6500 places of bulkheads do not fit "
                   "capacity.bulkhead-cells, which is 4096: 'a-*' takes 6500, its max-instances "
                   "of 64 and one, 100 each; set capacity.bulkhead-cells to at least 6500, or its "
                   "max-instances to at most 39"}));
  const Capacity fits = load("bulkheads:\n  \"a-*\": { max-concurrent-calls: 100 }\n"
                             "  \"b-*\": { max-wait-duration: 1s, max-waiting: 20 }\n")
                            .config->capacity;
  EXPECT_EQ(fits.bulkheads, 130U);
  EXPECT_EQ(fits.bulkhead_cells, 65U * 125U);
  EXPECT_EQ(fits.waiters, 65U * 20U);
  EXPECT_EQ(errors_of("bulkheads: { \"a*b*\": {} }"),
            Lines{"cutwater.yaml:1:14: bulkheads.a*b*: a pattern is a name with one * in it, such "
                  "as \"bank-*\": beside the * a letter, digit or one of . _ : -, 63 characters "
                  "at most, the first a letter, a digit or the *"});
}

TEST(Bulkheads, OnlyAPatternHasInstances) {
  EXPECT_EQ(errors_of("bulkheads:\n  a: { max-instances: 5, idle: 1m }\n"),
            (Lines{"cutwater.yaml:2:8: bulkheads.a.max-instances: is about the instances of a "
                   "pattern, and \"a\" is one name; leave it out, or write a pattern such as "
                   "\"a-*\"",
                   "cutwater.yaml:2:26: bulkheads.a.idle: is about the instances of a pattern, "
                   "and \"a\" is one name; leave it out, or write a pattern such as \"a-*\""}));
  EXPECT_TRUE(load("bulkheads:\n  base: { abstract: true, idle: 1m }\n"
                   "  a: { base-config: base }\n  \"a-*\": { base-config: base, "
                   "max-instances: 2 }\n").ok());
}

TEST(Bulkheads, ForeverIsNoted) {
  const LoadOutcome outcome = load("bulkheads: { a: { max-wait-duration: forever } }");
  ASSERT_TRUE(outcome.ok()) << outcome.report();
  ASSERT_EQ(outcome.notes.size(), 1U);
  EXPECT_EQ(outcome.notes[0].line(),
            "cutwater.yaml:1:38: bulkheads.a.max-wait-duration: forever: a call without a deadline "
            "waits as long as no place is free");
}

}  // namespace
}  // namespace cutwater::config
