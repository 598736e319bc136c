// SPDX-License-Identifier: Apache-2.0
// `breakers`: presets, bases, peers' words, and what contradicts what.
#include "loading.hpp"

namespace cutwater::config {
namespace {

using rule::BreakerPreset;
using rule::BreakerSettings;

constexpr std::uint64_t kSecond = rule::kNanosPerSecond;

BreakerSettings breaker(const std::string& block) {
  const Config config = config_of("breakers: { x: " + block + " }");
  EXPECT_EQ(config.breakers.size(), 1U);
  return config.breakers.empty() ? BreakerSettings{} : config.breakers[0];
}

Lines breaker_errors(const std::string& block) {
  return errors_of("breakers:\n  x: " + block + "\n");
}

std::string note_of(const std::string& block) {
  const LoadOutcome outcome = load("breakers:\n  x: " + block + "\n");
  EXPECT_TRUE(outcome.ok()) << outcome.report();
  return outcome.notes.empty() ? "" : outcome.notes[0].line();
}

BreakerSettings named(BreakerPreset preset) {
  BreakerSettings settings = rule::preset(preset);
  settings.name = "x";
  return settings;
}

TEST(Breakers, WithoutAWindowKeyAreOurProfileAndWithOneResilience4js) {
  EXPECT_EQ(breaker("{}"), named(BreakerPreset::Cutwater));
  EXPECT_EQ(breaker("{ failure-rate-threshold: 50, consecutive-failures: 5 }"),
            named(BreakerPreset::Cutwater));
  EXPECT_EQ(breaker("{ sliding-window-type: COUNT_BASED }"), named(BreakerPreset::Resilience4j));
  BreakerSettings wanted = named(BreakerPreset::Resilience4j);
  wanted.minimum_calls = 7;
  EXPECT_EQ(breaker("{ minimumNumberOfCalls: 7 }"), wanted);
  EXPECT_EQ(breaker("{ preset: cutwater, sliding-window-size: 10s }"),
            named(BreakerPreset::Cutwater));
}

TEST(Breakers, APastedResilience4jBlock) {
  const BreakerSettings settings = breaker(R"({
    slidingWindowType: COUNT_BASED, slidingWindowSize: 20, minimumNumberOfCalls: 10,
    failureRateThreshold: 50, slowCallRateThreshold: 33.3333, slowCallDurationThreshold: 2s,
    waitDurationInOpenState: PT15S, permittedNumberOfCallsInHalfOpenState: 5,
    maxWaitDurationInHalfOpenState: 0, transitionToStateAfterWaitDuration: CLOSED,
    enableExponentialBackoff: true, exponentialBackoffMultiplier: 1.5,
    exponentialMaxWaitDurationInOpenState: 1m, enableRandomizedWait: true,
    randomizedWaitFactor: 0.5, automaticTransitionFromOpenToHalfOpenEnabled: true,
    initialState: METRICS_ONLY, ignoreExceptions: [http-4xx], recordExceptions: [timeout, x.Y] })");
  EXPECT_EQ(settings.window_calls, 20U);
  EXPECT_EQ(settings.minimum_calls, 10U);
  EXPECT_EQ(settings.failure_rate_ppm, 500'000U);
  EXPECT_EQ(settings.slow_rate_ppm, 333'333U);
  EXPECT_EQ(settings.slow_duration_ns, 2 * kSecond);
  EXPECT_EQ(settings.open_wait_ns, 15 * kSecond);
  EXPECT_EQ(settings.probes, 5U);
  EXPECT_EQ(settings.half_open_max_wait_ns, 0U);
  EXPECT_EQ(settings.after_half_open_wait, rule::AfterHalfOpenWait::Closed);
  EXPECT_TRUE(settings.backoff);
  EXPECT_EQ(settings.backoff_ppm, 1'500'000U);
  EXPECT_EQ(settings.max_open_wait_ns, 60 * kSecond);
  EXPECT_TRUE(settings.randomized);
  EXPECT_EQ(settings.randomized_ppm, 500'000U);
  EXPECT_TRUE(settings.automatic_half_open);
  EXPECT_EQ(settings.initial_state, rule::BreakerState::MetricsOnly);
  EXPECT_EQ(settings.ignore, std::vector<std::string>{"http-4xx"});
  EXPECT_EQ(settings.record, (std::vector<std::string>{"timeout", "x.Y"}));
  EXPECT_TRUE(settings.record_given);
  EXPECT_EQ(settings.open_edge, rule::OpenEdge::Exclusive);
}

TEST(Breakers, EveryOwnKey) {
  const BreakerSettings settings = breaker(R"({
    sliding-window-slots: 20, failure-count-threshold: 9, consecutive-failures: off,
    evaluate-on: failure, open-edge: exclusive, half-open-decision: { rate-over: 3 },
    probe-timeout: 2s, on-probe-timeout: release, ignored-results: success,
    late-results: show-in-open, min-processes: 3, open-on-retry-after: true, max-open-for: 20m,
    ramp-after-close: { steps: [10, 50, 100], over: 9s }, slow-call-rate-threshold: 80,
    count-hanging-calls: false, enabled: false, note: "the fraud check" })");
  EXPECT_EQ(settings.window_slots, 20U);
  EXPECT_EQ(settings.failure_count, 9U);
  EXPECT_EQ(settings.consecutive_failures, 0U);
  EXPECT_EQ(settings.evaluate_on, rule::EvaluateOn::Failure);
  EXPECT_EQ(settings.half_open_rule, rule::HalfOpenRule::RateOver);
  EXPECT_EQ(settings.half_open_value, 3U);
  EXPECT_EQ(settings.probe_timeout_ns, 2 * kSecond);
  EXPECT_EQ(settings.on_probe_timeout, rule::OnProbeTimeout::Release);
  EXPECT_EQ(settings.ignored_results, rule::IgnoredResults::Success);
  EXPECT_EQ(settings.late_results, rule::LateResults::ShowInOpen);
  EXPECT_EQ(settings.min_processes, 3U);
  EXPECT_TRUE(settings.open_on_retry_after);
  EXPECT_EQ(settings.max_open_for_ns, 1200 * kSecond);
  EXPECT_EQ(settings.ramp, rule::Ramp::On);
  EXPECT_EQ(settings.ramp_percent, (std::array<std::uint8_t, 8>{10, 50, 100}));
  EXPECT_EQ(settings.ramp_ns, 9 * kSecond);
  EXPECT_FALSE(settings.count_hanging);
  EXPECT_FALSE(settings.enabled);
  EXPECT_EQ(breaker("{ min-processes: off }").min_processes, rule::kMinProcessesOff);
  EXPECT_EQ(breaker("{ min-processes: auto }").min_processes, rule::kMinProcessesAuto);
  EXPECT_EQ(breaker("{ half-open-decision: { successes: 2 } }").half_open_value, 2U);
  EXPECT_EQ(breaker("{ ramp-after-close: off }").ramp, rule::Ramp::Off);
}

TEST(Breakers, WindowsOfTimeTakeBareSeconds) {
  const BreakerSettings r4j =
      breaker("{ sliding-window-type: TIME_BASED, sliding-window-size: 30 }");
  EXPECT_EQ(r4j.window_span_ns, 30 * kSecond);
  EXPECT_EQ(r4j.window_slots, 30U);   // one a second under resilience4j
  EXPECT_EQ(breaker("{ preset: cutwater, sliding-window-size: 1m }").window_slots, 10U);
  EXPECT_EQ(breaker_errors("{ sliding-window-size: 10s }"),
            Lines{"cutwater.yaml:2:29: breakers.x.sliding-window-size: 10s is a time, and a "
                  "COUNT_BASED window has calls; write 100, or sliding-window-type: TIME_BASED"});
  EXPECT_EQ(breaker_errors("{ sliding-window-size: 65536 }"),
            Lines{"cutwater.yaml:2:29: breakers.x.sliding-window-size: 65536 is above the maximum "
                  "of 65535"});
  EXPECT_EQ(breaker_errors("{ sliding-window-type: TIME_BASED, sliding-window-size: 86401 }"),
            Lines{"cutwater.yaml:2:62: breakers.x.sliding-window-size: 86401 s are above the "
                  "maximum of 1d"});
}

TEST(Breakers, PeersPresetsTakeTheirOwnWords) {
  BreakerSettings mp = named(BreakerPreset::Microprofile);
  mp.window_calls = mp.minimum_calls = 4;
  mp.failure_rate_ppm = 750'000;
  mp.open_wait_ns = kSecond;
  mp.probes = 2;
  EXPECT_EQ(breaker("{ preset: microprofile, requestVolumeThreshold: 4, failureRatio: 0.75, "
                    "delay: 1s, successThreshold: 2 }"), mp);
  const BreakerSettings semian = breaker("{ preset: semian, error-threshold: 3, "
      "error-threshold-timeout: 10s, error-timeout: 5s, success-threshold: 2 }");
  EXPECT_EQ(semian.failure_count, 3U);
  EXPECT_EQ(semian.window_span_ns, 10 * kSecond);
  EXPECT_EQ(semian.open_wait_ns, 5 * kSecond);
  EXPECT_EQ(semian.probes, 2U);
  const BreakerSettings sentinel =
      breaker("{ preset: sentinel, failure-rate-threshold: 50, time-window: 7s }");
  EXPECT_EQ(sentinel.failure_rate_ppm, 500'001U);
  EXPECT_EQ(sentinel.open_wait_ns, 7 * kSecond);
  for (const char* preset : {"polly", "gobreaker", "hystrix"}) {
    BreakerPreset which{};
    ASSERT_TRUE(rule::preset_named(preset, which));
    EXPECT_EQ(breaker("{ preset: " + std::string(preset) + " }"), named(which));
  }
}

TEST(Breakers, APeersWordElsewhereIsRefusedWithOurs) {
  EXPECT_EQ(breaker_errors("{ failure-ratio: 0.5 }"),
            Lines{"cutwater.yaml:2:8: breakers.x.failure-ratio: is a word of preset microprofile; "
                  "write preset: microprofile, or failure-rate-threshold"});
  EXPECT_EQ(breaker_errors("{ preset: microprofile, delay: 1s, wait-duration-in-open-state: 2s }"),
            Lines{"cutwater.yaml:2:30: breakers.x.delay: 'wait-duration-in-open-state' (2:41) says "
                  "the same; keep one"});
  EXPECT_EQ(breaker_errors("{ preset: sentinel, time-window: 1s }"),
            Lines{"cutwater.yaml:2:3: breakers.x: preset sentinel needs failure-rate-threshold; "
                  "write it"});
  EXPECT_EQ(breaker_errors("{ record: [a], record-exceptions: [b] }").at(0),
            "cutwater.yaml:2:21: breakers.x.record-exceptions: 'record' (2:8) says the same; keep "
            "one");
}

TEST(Breakers, AClassThatOnlyLooksLikeOneOfOursIsRefused) {
  EXPECT_EQ(breaker_errors("{ record: [timout, http-50x, errno:ECONREFUSED], "
                           "ignore: [Connect, grpc:unavailable] }"),
            (Lines{"cutwater.yaml:2:17: breakers.x.record[0]: \"timout\" is no class; did you mean "
                   "'timeout'? A class of a program's own needs a name farther from ours",
                   "cutwater.yaml:2:25: breakers.x.record[1]: \"http-50x\" is no class: write "
                   "http-400 .. http-599, http-4xx or http-5xx",
                   "cutwater.yaml:2:35: breakers.x.record[2]: \"errno:ECONREFUSED\" is no name of "
                   "an errno; did you mean 'errno:ECONNREFUSED'?",
                   "cutwater.yaml:2:64: breakers.x.ignore[0]: \"Connect\" is no class; did you "
                   "mean 'connect'? A class of a program's own needs a name farther from ours",
                   "cutwater.yaml:2:73: breakers.x.ignore[1]: \"grpc:unavailable\" is no status "
                   "of gRPC; did you mean 'grpc:UNAVAILABLE'?"}));
  EXPECT_EQ(breaker("{ record: [timeout, http-503, http-5xx, errno:EIO, grpc:ABORTED, dns, "
                    "org.bank.Busy, invalid-upi, rest] }").record.size(), 9U);
}

TEST(Breakers, OneClassStandsInOneList) {
  EXPECT_EQ(breaker_errors("{ record: [timeout, dns], ignore-exceptions: [local, dns] }"),
            Lines{"cutwater.yaml:2:59: breakers.x.ignore-exceptions[1]: \"dns\" is recorded as "
                  "well (2:26), and ignore would win; keep it in one list"});
}

TEST(Breakers, OnlyAPatternHasInstances) {
  EXPECT_EQ(breaker_errors("{ max-instances: 5 }"),
            Lines{"cutwater.yaml:2:8: breakers.x.max-instances: is about the instances of a "
                  "pattern, and \"x\" is one name; leave it out, or write a pattern such as "
                  "\"x-*\""});
  EXPECT_EQ(breaker_errors("{ idle: 5m }").size(), 1U);
}

TEST(Breakers, TheExamplesOfRefusals) {
  std::string text(25, '\n');
  text += "breakers:\n  fraudCheck:\n";
  EXPECT_EQ(errors_of(text.substr(1) + "    failure-rate-threshold: 0.5\n"),
            Lines{"cutwater.yaml:27:29: breakers.fraudCheck.failure-rate-threshold: 0.5; for half "
                  "of the calls write 50, for half a percent 0.5%"});
  std::string other(25, '\n');
  other += "breakers:\n  x:\n    failure-rate-threshold: off\n    slow-call-rate-threshold: off\n"
           "    consecutive-failures: 3\n    half-open-decision: rate\n";
  EXPECT_EQ(errors_of(other),
            Lines{"cutwater.yaml:31:5: breakers.x.half-open-decision: 'rate' needs a rate "
                  "threshold, and both are off; set failure-rate-threshold or write all-succeed"});
}

TEST(Breakers, ContradictionsAndRanges) {
  EXPECT_EQ(breaker_errors("{ failure-rate-threshold: off, consecutive-failures: off, "
                           "half-open-decision: all-succeed }"),
            Lines{"cutwater.yaml:2:3: breakers.x: nothing can open it: every threshold is off; set "
                  "one, or write initial-state: METRICS_ONLY to measure only"});
  EXPECT_EQ(breaker_errors("{ half-open-decision: { successes: 6 } }"),
            Lines{"cutwater.yaml:2:3: breakers.x: half-open-decision asks for 6 of 5 probes; the "
                  "number must be 1..permitted-number-of-calls-in-half-open-state"});
  EXPECT_EQ(
      breaker_errors("{ half-open-decision: { success: 1 }, ramp-after-close: { steps: [50, 25], "
                     "over: 5 }, initial-state: SHUT, evaluate-on: failures, ignore: http-4xx, "
                     "exponential-backoff-multiplier: 0.5, randomized-wait-factor: 50 }"),
      (Lines{"cutwater.yaml:2:30: breakers.x.half-open-decision: \"success\" is not known here; "
             "write rate, all-succeed, { rate-over: M } or { successes: k }",
             "cutwater.yaml:2:71: breakers.x.ramp-after-close.steps: the steps do not rise; write "
             "{ steps: [25, 50, 100], over: 5s }",
             "cutwater.yaml:2:87: breakers.x.ramp-after-close.over: 5 what? write 5s",
             "cutwater.yaml:2:107: breakers.x.initial-state: \"SHUT\" is no state; write CLOSED, "
             "OPEN, HALF_OPEN, FORCED_OPEN, DISABLED or METRICS_ONLY",
             "cutwater.yaml:2:126: breakers.x.evaluate-on: \"failures\" is not known here; did you "
             "mean 'failure'?",
             "cutwater.yaml:2:144: breakers.x.ignore: a list is wanted; write [http-4xx]",
             "cutwater.yaml:2:186: breakers.x.exponential-backoff-multiplier: 0.5 is below the "
             "minimum of 1",
             "cutwater.yaml:2:215: breakers.x.randomized-wait-factor: 50 is above the maximum of "
             "1; for 50 % write 0.5"}));
}

TEST(Breakers, ABaseComesFirstAndAnAbstractOneMakesNone) {
  const Config config = config_of(R"(
breakers:
  far:   { abstract: true, base-config: all, wait-duration-in-open-state: 30s, note: "far ones" }
  all:   { abstract: true, preset: microprofile, delay: 9s, failure-ratio: 0.25 }
  bank:  { base-config: far, failure-rate-threshold: 10 }
  stock: { base-config: all, request-volume-threshold: 8 }
)");
  ASSERT_EQ(config.breakers.size(), 2U);
  const BreakerSettings& bank = config.breakers[0];
  EXPECT_EQ(bank.name, "bank");
  EXPECT_EQ(bank.open_wait_ns, 30 * kSecond);      // far over all
  EXPECT_EQ(bank.failure_rate_ppm, 100'000U);      // its own over all
  EXPECT_EQ(bank.window_calls, 20U);               // the preset of all
  EXPECT_TRUE(bank.note.empty());
  EXPECT_EQ(config.breakers[1].open_wait_ns, 9 * kSecond);
  EXPECT_EQ(config.breakers[1].window_calls, 8U);
  const auto origin = [&](std::string_view path) {
    return origin_text(config.find_value(path)->place, config.file_name);
  };
  EXPECT_EQ(origin("breakers.bank.failure-rate-threshold"), "cutwater.yaml:5:54");
  EXPECT_EQ(origin("breakers.bank.wait-duration-in-open-state"),
            "base-config far, cutwater.yaml:3:75");
  EXPECT_EQ(origin("breakers.stock.wait-duration-in-open-state"),
            "base-config all, cutwater.yaml:4:57");
  EXPECT_EQ(origin("breakers.bank.sliding-window-size"), "preset microprofile");
  EXPECT_EQ(origin("breakers.stock.sliding-window-size"), "cutwater.yaml:6:56");
  EXPECT_NE(show(config).find("breakers.stock.sliding-window-size: 8  # cutwater.yaml:6:56\n"),
            std::string::npos);
}

TEST(Breakers, AChainOfBasesHasAnEndAndNoCircle) {
  EXPECT_EQ(errors_of("breakers:\n  a: { base-config: b }\n  b: { base-config: a }\n"),
            (Lines{"cutwater.yaml:2:21: breakers.a.base-config: leads back to itself by way of "
                   "\"b\"; take one of them out",
                   "cutwater.yaml:3:21: breakers.b.base-config: leads back to itself by way of "
                   "\"a\"; take one of them out"}));
  EXPECT_EQ(errors_of("breakers:\n  a: { base-config: b }\n  b: { base-config: a }\n"
                      "  c: { base-config: a }\n").size(), 2U);
  EXPECT_EQ(errors_of("breakers:\n  a: { base-config: shard }\n  shared: { abstract: true }\n"),
            Lines{"cutwater.yaml:2:21: breakers.a.base-config: there is no block \"shard\" in this "
                  "section; did you mean 'shared'?"});
  std::string chain = "breakers:\n  b0: { abstract: true }\n";
  for (int i = 1; i <= 8; ++i) {
    chain += "  b" + std::to_string(i) + ": { base-config: b" + std::to_string(i - 1) + " }\n";
  }
  EXPECT_TRUE(load(chain).ok());
  EXPECT_EQ(errors_of(chain + "  b9: { base-config: b8 }\n").size(), 1U);
}

TEST(Breakers, APatternIsOneBlockForManyNames) {
  const Config config = config_of(
      "breakers:\n  \"bank-*\": { max-instances: 20, min-processes: 2 }\n  x: {}\n");
  ASSERT_EQ(config.breakers.size(), 2U);
  EXPECT_EQ(config.breakers[0].name, "bank-*");
  EXPECT_EQ(config.breakers[0].max_instances, 20U);
  EXPECT_EQ(errors_of("capacity: { breakers: 64 }\n"
                      "breakers:\n  \"bank-*\": {}\n"),   // 64 places and its own
            Lines{"cutwater.yaml:2:1: breakers: 65 breakers do not fit capacity.breakers, which is "
                  "64: 'bank-*' takes 65, its max-instances of 64 and one; set capacity.breakers "
                  "to at least 65, or its max-instances to at most 63"});
  EXPECT_TRUE(load("capacity: { breakers: 64 }\n"
                   "breakers:\n  \"bank-*\": { max-instances: 63 }\n").ok());
  EXPECT_TRUE(load("capacity: { breakers: 65 }\nbreakers:\n  \"bank-*\": {}\n").ok());
  EXPECT_EQ(errors_of("capacity: { breakers: 64 }\n"
                      "breakers:\n  \"a-*\": { max-instances: 70 }\n  x: {}\n"
                      "  \"bank-*\": { max-instances: 80 }\n"),
            Lines{"cutwater.yaml:2:1: breakers: 153 breakers do not fit capacity.breakers, which "
                  "is 64: 'bank-*' takes 81, its max-instances of 80 and one; set "
                  "capacity.breakers to at least 153, or smaller max-instances and fewer "
                  "breakers"});
}

TEST(Breakers, PatternsThatCannotBeToldApartAreAnErrorWithItsPlace) {
  EXPECT_EQ(errors_of("breakers:\n  \"bank-*\": { max-instances: 2 }\n"
                      "  \"*k-one\": { max-instances: 2 }\n"),
            Lines{"cutwater.yaml:3:3: breakers.*k-one: matches the same names as 'bank-*' (2:3), "
                  "and neither is longer; make one longer"});
  for (const std::string name : {"*", "a*b*", "-*"}) {
    EXPECT_EQ(errors_of("breakers:\n  \"" + name + "\": {}\n"),
              Lines{"cutwater.yaml:2:3: breakers." + name +
                    ": a pattern is a name with one * in it, such as \"bank-*\": beside the * a "
                    "letter, digit or one of . _ : -, 63 characters at most, the first a letter, a "
                    "digit or the *"});
  }
}

TEST(Breakers, HangingCallsNeedTheSlowThreshold) {
  EXPECT_TRUE(breaker("{ slow-call-rate-threshold: 80, count-hanging-calls: true }").count_hanging);
  EXPECT_EQ(breaker_errors("{ count-hanging-calls: true }"),
            Lines{"cutwater.yaml:2:3: breakers.x: count-hanging-calls counts calls beyond "
                  "slow-call-duration-threshold as slow, and slow-call-rate-threshold is off; set "
                  "one or leave it out"});
}

TEST(Breakers, NotesSayWhatIsUnusual) {
  EXPECT_EQ(note_of("{ sliding-window-size: 20, minimum-number-of-calls: 50 }"),
            "cutwater.yaml:2:58: breakers.x.minimum-number-of-calls: 50 is above the window of 20 "
            "calls; cut to it");
  EXPECT_EQ(note_of("{ failure-rate-threshold: 0 }"),
            "cutwater.yaml:2:3: breakers.x: failure-rate-threshold 0 opens it as soon as "
            "minimum-number-of-calls is reached, also when nothing failed");
  for (const char* none : {"{}", "{ min-processes: off }", "{ min-processes: auto }",
                           "{ min-processes: 3 }", "{ open-on-retry-after: true }",
                           "{ open-on-retry-after: false }", "{ count-hanging-calls: false }"}) {
    EXPECT_EQ(note_of(none), "") << none;
  }
}

TEST(Breakers, CanBeSetFromOutside) {
  LoadOptions options;
  options.environment = {{"CUTWATER_BREAKERS__FRAUDCHECK__FAILURE_RATE_THRESHOLD", "10"}};
  options.settings = {{"breakers.bank.minimum-number-of-calls", "5"}};
  const Config config = config_of("breakers:\n  fraudCheck: {}\n  bank: {}\n", options);
  EXPECT_EQ(config.breakers[0].failure_rate_ppm, 100'000U);
  EXPECT_EQ(config.breakers[1].minimum_calls, 5U);
}

TEST(Enabled, OfTheInstanceSwitchesEveryBreakerAndBulkheadOff) {
  const std::string blocks = "breakers: {a: {}, b: {enabled: false}}\nbulkheads: {c: {}}\n";
  for (const std::string off : {"false", "[fallback]", "[]"}) {
    const Config config = config_of("instance: {enabled: " + off + "}\n" + blocks);
    EXPECT_FALSE(config.instance.enabled || config.breakers.at(0).enabled ||
                 config.breakers.at(1).enabled || config.bulkheads.at(0).enabled)
        << off;
    EXPECT_EQ(config.find_value("breakers.a.enabled")->text, "true") << "as it is written";
  }
  const Config on = config_of(blocks);
  EXPECT_TRUE(on.instance.enabled && on.breakers.at(0).enabled && on.bulkheads.at(0).enabled);
  EXPECT_NE(on.hash, config_of("instance: {enabled: false}\n" + blocks).hash);

  EXPECT_EQ(errors_of("instance: {enabled: [fallback, fallback]}\n"),
            Lines{"cutwater.yaml:1:32: instance.enabled[1]: stands here twice; take one out"});
  EXPECT_EQ(errors_of("instance: {enabled: [limits]}\n"),
            Lines{"cutwater.yaml:1:22: instance.enabled[0]: only fallback can stay on by itself; "
                  "write true, false or [fallback]"});
}

TEST(Breakers, AKeyThatIsLikeNoneGetsTheNearestAndWhereToSeeAll) {
  const Lines errors = breaker_errors("{threshold-of-failing: 50}");
  ASSERT_EQ(errors.size(), 1U);
  EXPECT_NE(errors[0].find("unknown key; the nearest here are "), std::string::npos) << errors[0];
  EXPECT_NE(errors[0].find("cutwaterd --help-config, under breakers.NAME"), std::string::npos)
      << errors[0];
  EXPECT_LT(errors[0].size(), 300U);
}

}  // namespace
}  // namespace cutwater::config
