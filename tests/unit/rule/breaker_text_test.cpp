// SPDX-License-Identifier: Apache-2.0
#include "rule/breaker_text.hpp"

#include <gtest/gtest.h>

namespace cutwater::rule {
namespace {

constexpr std::int64_t kMs = 1'000'000;

BreakerNumbers cutwater_profile() {
  BreakerSettings settings;
  settings.name = "fraudCheck";
  return numbers_of(settings, settings.name);
}

BreakerStory story() {
  BreakerStory s;
  s.name = "fraudCheck";
  s.now_ns = 10'000 * kMs;
  return s;
}

TEST(BreakerText, ARefusalSaysSinceWhenWhyAndUntilWhen) {
  BreakerStory s = story();
  s.state = BreakerState::Open;
  s.reason = BreakerReason::FailureRate;
  s.since_ns = 6'800 * kMs;
  s.trip_permille = 600;
  s.trip_calls = 10;

  EXPECT_EQ(refusal_text(cutwater_profile(), s, 11'800 * kMs, false),
            "breaker 'fraudCheck' is OPEN since 3.2 s (failure rate 60 % of 10 calls), does not "
            "permit calls, retry after 11.8 s");
}

TEST(BreakerText, AFlappingBreakerNamesTheSettingsToLookAt) {
  BreakerStory s = story();
  EXPECT_EQ(explain_text(cutwater_profile(), s).find("flapping"), std::string::npos);
  s.flapping = true;
  const std::string text = explain_text(cutwater_profile(), s);
  EXPECT_NE(text.find("; flapping: it opened four times or more within ten minutes, look at "
                      "wait-duration-in-open-state, permitted-number-of-calls"),
            std::string::npos) << text;
}

TEST(BreakerText, AnEstimateAndAForcedStateSaySo) {
  BreakerStory s = story();
  s.state = BreakerState::HalfOpen;
  s.held = 3;
  s.probes = {2, 0, 0};
  EXPECT_EQ(refusal_text(cutwater_profile(), s, 250 * kMs, true),
            "breaker 'fraudCheck' is HALF_OPEN (3 of 5 probes out, 2 back), does not permit more "
            "calls now, retry after about 250 ms");
  s.state = BreakerState::ForcedOpen;
  s.reason = BreakerReason::ByHand;
  EXPECT_EQ(refusal_text(cutwater_profile(), s, -1, false),
            "breaker 'fraudCheck' is FORCED_OPEN (by hand), does not permit calls, until it is "
            "changed by hand");
}

TEST(BreakerText, ARampSaysThatSomeCallsPassAndWhenAllDo) {
  BreakerSettings settings;
  settings.name = "fraudCheck";
  settings.ramp_ns = 3'000 * kMs;
  const BreakerNumbers numbers = numbers_of(settings, settings.name);
  BreakerStory s = story();
  s.state = BreakerState::Closed;
  s.ramping = true;
  s.deadline_ns = s.now_ns + 2'500 * kMs;

  EXPECT_EQ(refusal_text(numbers, s, 2'500 * kMs, true),
            "breaker 'fraudCheck' is CLOSED (ramping up after half-open: 25 % of the calls pass), "
            "does not permit this call, permits all after about 2.5 s");
  const std::string why = cause_text(numbers, s);
  const ToldRefusal told{.name = "fraudCheck",
                         .state = BreakerState::Closed,
                         .why = why,
                         .some = true};
  EXPECT_EQ(refusal_text(told, 2'500 * kMs, true), refusal_text(numbers, s, 2'500 * kMs, true))
      << "told over a socket it is the same";
  s.deadline_ns = s.now_ns;
  EXPECT_EQ(cause_text(numbers, s), "ramping up after half-open") << "it is over meanwhile";
}

TEST(BreakerText, ExplainCountsDownToTheNextDecision) {
  BreakerStory s = story();
  s.window = {5, 2, 0, 2};
  EXPECT_EQ(explain_text(cutwater_profile(), s),
            "CLOSED: 2 of 5 calls failed; rate counts from 10 calls; opens at 5 failures in a row, "
            "3 to go");
  s.window = {20, 2, 0, 0};
  EXPECT_EQ(explain_text(cutwater_profile(), s),
            "CLOSED: 2 of 20 calls failed; opens at a failure rate of 50 %; opens at 5 failures in "
            "a row, 5 to go");
}

TEST(BreakerText, ExplainOfTheOtherStates) {
  BreakerStory s = story();
  s.state = BreakerState::Open;
  s.reason = BreakerReason::Consecutive;
  s.deadline_ns = s.now_ns + 1'500 * kMs;
  EXPECT_EQ(explain_text(cutwater_profile(), s),
            "OPEN: 5 failures in a row; half-open in 1.5 s; then the rate of 5 probes decides");
  s.deadline_ns = s.now_ns;
  EXPECT_NE(explain_text(cutwater_profile(), s).find("ready for HALF_OPEN"), std::string::npos);
  s.state = BreakerState::HalfOpen;
  s.probes = {2, 1, 0};
  s.held = 3;
  EXPECT_EQ(explain_text(cutwater_profile(), s),
            "HALF_OPEN: 2 of 5 probes are back, 1 failed, 3 out; the rate of 5 probes decides");
  s.state = BreakerState::Disabled;
  EXPECT_EQ(explain_text(cutwater_profile(), s), "DISABLED: grants every call and records nothing");
}

TEST(BreakerText, DurationsAndRatios) {
  EXPECT_EQ(duration_text(1), "1 ns");
  EXPECT_EQ(duration_text(1'500), "1.5 us");
  EXPECT_EQ(duration_text(60'000 * kMs), "60 s");
  EXPECT_EQ(duration_text(1'999'999'999), "1.99 s");
  EXPECT_EQ(duration_text(-5), "0 ns");
  EXPECT_EQ(wait_text(4'955'929'621), "4.96 s");
  EXPECT_EQ(wait_text(1'999'999'999), "2 s");
  EXPECT_EQ(wait_text(11'800 * kMs), "11.8 s");
  EXPECT_EQ(wait_text(999'999'999), "1 s");
  EXPECT_EQ(duration_text(97'410'080'110 * kMs), "1127.43 d");
  EXPECT_EQ(wait_text(97'410'080'110 * kMs), "1127.44 d");
  EXPECT_EQ(wait_text(INT64_MAX), duration_text(INT64_MAX)) << "no overflow";
  EXPECT_EQ(wait_text(2'000'000'001), "2 s");
  EXPECT_EQ(wait_text(1), "1 ns");
  EXPECT_EQ(percent_text(333'333), "33.3333 %");
  EXPECT_EQ(percent_text(5'000), "0.5 %");
}

}  // namespace
}  // namespace cutwater::rule
