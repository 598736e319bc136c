// SPDX-License-Identifier: Apache-2.0
#include "rule/breaker_settings.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace cutwater::rule {
namespace {

BreakerSettings named() {
  BreakerSettings settings;
  settings.name = "fraudCheck";
  return settings;
}

TEST(BreakerSettings, EveryPresetIsValidOnceWhatItRequiresIsWritten) {
  for (int number = 0; number <= 7; ++number) {
    const auto which = static_cast<BreakerPreset>(number);
    BreakerSettings settings = preset(which);
    settings.name = "x";
    EXPECT_EQ(check(settings).ok(), required_keys(which).empty()) << name_of(which);
    if (which == BreakerPreset::Semian) {
      settings.failure_count = 3;
      settings.window_span_ns = 10'000'000'000;
      settings.open_wait_ns = 5'000'000'000;
      settings.probes = 2;
    }
    if (which == BreakerPreset::Sentinel) {
      settings.failure_rate_ppm = sentinel_rate_ppm(500'000);
      settings.open_wait_ns = 5'000'000'000;
    }
    EXPECT_TRUE(check(settings)) << name_of(which) << ": " << check(settings).error().text();
    BreakerPreset again{};
    EXPECT_TRUE(preset_named(name_of(which), again));
    EXPECT_EQ(again, which);
  }
}

TEST(BreakerSettings, PresetsSayWhatTheirPeersSay) {
  const BreakerSettings peer = preset(BreakerPreset::Resilience4j);
  EXPECT_EQ(peer.window_type, WindowType::CountBased);
  EXPECT_EQ(peer.window_calls, 100u);
  EXPECT_EQ(peer.minimum_calls, 100u);
  EXPECT_EQ(peer.failure_rate_ppm, 500'000u);
  EXPECT_EQ(peer.slow_rate_ppm, kPpm);
  EXPECT_EQ(peer.open_wait_ns, 60'000'000'000u);
  EXPECT_EQ(peer.open_edge, OpenEdge::Exclusive);
  EXPECT_EQ(peer.probes, 10u);
  EXPECT_FALSE(peer.backoff);
  EXPECT_EQ(preset(BreakerPreset::Microprofile).ignored_results, IgnoredResults::Success);
  EXPECT_EQ(preset(BreakerPreset::Microprofile).minimum_calls, 20u);
  EXPECT_EQ(preset(BreakerPreset::Polly).failure_rate_ppm, 100'000u);
  EXPECT_EQ(preset(BreakerPreset::Polly).evaluate_on, EvaluateOn::Failure);
  EXPECT_EQ(preset(BreakerPreset::Gobreaker).consecutive_failures, 6u);
  EXPECT_EQ(preset(BreakerPreset::Hystrix).minimum_calls, 20u);
  EXPECT_EQ(sentinel_rate_ppm(500'000), 500'001u);
  EXPECT_EQ(sentinel_rate_ppm(kPpm), kPpm);
  EXPECT_EQ(default_slots(BreakerPreset::Resilience4j, 30'000'000'000), 30u);
  EXPECT_EQ(default_slots(BreakerPreset::Resilience4j, 86'400'000'000'000), kMaxSlots);
  EXPECT_EQ(default_slots(BreakerPreset::Cutwater, 30'000'000'000), 10u);
}

TEST(BreakerSettings, EachFieldOutsideItsRangeIsRefusedByName) {
  struct Case { const char* field; std::function<void(BreakerSettings&)> spoil; };
  const auto count = [](BreakerSettings& s) { s.window_type = WindowType::CountBased; };
  const Case cases[] = {
      {"named", [](auto& s) { s.name = "-x"; }},
      {"named", [](auto& s) { s.name = "*"; }},
      {"named", [](auto& s) { s.name = "a*b*"; }},
      {"window_calls", [&](auto& s) { count(s); s.window_calls = kMaxCountWindow + 1; }},
      {"window_calls", [&](auto& s) { count(s); s.window_calls = 0; }},
      {"window_span_ns", [](auto& s) { s.window_span_ns = kMinTimeWindowNs - 1; }},
      {"window_slots", [](auto& s) { s.window_slots = kMaxSlots + 1; }},
      {"window_min_span_ns", [&](auto& s) { count(s); s.window_min_span_ns = 1; }},
      {"sliding-window-min-span", [](auto& s) { s.window_min_span_ns = 1'000'000'000; }},
      {"minimum_calls", [](auto& s) { s.minimum_calls = 0; }},
      {"failure_rate_ppm", [](auto& s) { s.failure_rate_ppm = kPpm + 1; }},
      {"slow_rate_ppm", [](auto& s) { s.slow_rate_ppm = kPpm + 1; }},
      {"slow_duration_ns", [](auto& s) { s.slow_duration_ns = 0; }},
      {"failure_count", [](auto& s) { s.failure_count = kMaxFailureCount + 1; }},
      {"consecutive_failures", [](auto& s) { s.consecutive_failures = kMaxConsecutive + 1; }},
      {"open_wait_ns", [](auto& s) { s.open_wait_ns = kMinOpenWaitNs - 1; }},
      {"backoff_ppm", [](auto& s) { s.backoff_ppm = kPpm - 1; }},
      {"max_open_wait_ns", [](auto& s) { s.max_open_wait_ns = kMaxOpenWaitNs + 1; }},
      {"randomized_ppm", [](auto& s) { s.randomized_ppm = kPpm + 1; }},
      {"max_open_for_ns", [](auto& s) { s.max_open_for_ns = 0; }},
      {"probes", [](auto& s) { s.probes = kMaxProbes + 1; }},
      {"half-open-decision", [](auto& s) { s.half_open_rule = HalfOpenRule::RateOver; }},
      {"half-open-decision",
       [](auto& s) { s.half_open_rule = HalfOpenRule::Successes; s.half_open_value = 6; }},
      {"half_open_value", [](auto& s) { s.half_open_value = 1; }},
      {"half-open-decision", [](auto& s) { s.failure_rate_ppm = kOffPpm; }},
      {"half_open_max_wait_ns", [](auto& s) { s.half_open_max_wait_ns = 1; }},
      {"probe_timeout_ns", [](auto& s) { s.probe_timeout_ns = kMaxProbeTimeoutNs + 1; }},
      {"record", [](auto& s) { s.record.assign(kMaxClasses + 1, "x"); }},
      {"ignore", [](auto& s) { s.ignore.assign(kMaxClasses + 1, "x"); }},
      {"count-hanging-calls", [](auto& s) { s.count_hanging = true; }},
      {"min_processes", [](auto& s) { s.min_processes = kMaxMinProcesses + 1; }},
      {"ramp-after-close", [](auto& s) { s.ramp_percent = {50, 25}; }},
      {"ramp-after-close", [](auto& s) { s.ramp_percent = {50, 101}; }},
      {"ramp-after-close", [](auto& s) { s.ramp_percent = {}; }},
      {"ramp_ns", [](auto& s) { s.ramp_ns = kMaxRampNs + 1; }},
      {"max_instances", [](auto& s) { s.max_instances = kMaxInstances + 1; }},
      {"note", [](auto& s) { s.note.assign(257, 'x'); }},
      {"every threshold is off", [](auto& s) {
         s.half_open_rule = HalfOpenRule::AllSucceed;
         s.failure_rate_ppm = kOffPpm;
         s.consecutive_failures = 0;
       }},
  };
  for (const Case& c : cases) {
    BreakerSettings settings = named();
    ASSERT_TRUE(check(settings));

    c.spoil(settings);

    ASSERT_FALSE(check(settings)) << c.field;
    EXPECT_NE(check(settings).error().text().find(c.field), std::string::npos)
        << check(settings).error().text();
  }
}

TEST(BreakerSettings, SlotsAreFewerWhenTheyWouldBeUnderAHundredMilliseconds) {
  BreakerSettings settings = named();
  settings.window_span_ns = 250'000'000;
  EXPECT_EQ(effective_slots(settings), 2u);
  settings.window_span_ns = kMinTimeWindowNs;
  EXPECT_EQ(effective_slots(settings), 1u);
  settings.window_span_ns = 10'000'000'000;
  EXPECT_EQ(effective_slots(settings), 10u);
}

TEST(BreakerSettings, ACountWindowCutsTheMinimum) {
  BreakerSettings settings = named();
  settings.window_calls = 4;
  EXPECT_EQ(effective_minimum(settings), 10u);
  settings.window_type = WindowType::CountBased;
  EXPECT_EQ(effective_minimum(settings), 4u);
}

TEST(BreakerSettings, StatesHaveOneWordInEitherSpelling) {
  for (std::uint8_t number = 0; number < kBreakerStates; ++number) {
    BreakerState state{};
    ASSERT_TRUE(state_named(name_of(static_cast<BreakerState>(number)), state));
    EXPECT_EQ(static_cast<std::uint8_t>(state), number);
  }
  BreakerState state{};
  EXPECT_TRUE(state_named("half-open", state));
  EXPECT_EQ(state, BreakerState::HalfOpen);
  EXPECT_FALSE(state_named("AJAR", state));
}

TEST(BreakerSettings, ARateOfZeroIsAllowedAndRemarkedUpon) {
  BreakerSettings settings = named();
  settings.failure_rate_ppm = 0;
  EXPECT_TRUE(check(settings));
  EXPECT_NE(remark(settings).find("also when nothing failed"), std::string::npos);
  EXPECT_TRUE(remark(named()).empty());
}

}  // namespace
}  // namespace cutwater::rule
