// SPDX-License-Identifier: Apache-2.0
// The sentences of `breaker explain`, word by word, for every state and for every setting that has
// something to say.
#include "rule/breaker_explain.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace cutwater::rule {
namespace {

using Words = std::vector<std::string>;

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kNow = 100 * kSecond;

BreakerSettings cutwater_profile() {
  BreakerSettings settings;
  settings.name = "fraud";
  return settings;
}

BreakerStory story(BreakerState state) {
  BreakerStory s;
  s.name = "fraud";
  s.state = state;
  s.now_ns = kNow;
  return s;
}

Words lines(const BreakerSettings& settings, const BreakerStory& s, BreakerAround around = {}) {
  return explain_lines(numbers_of(settings, settings.name), s, around);
}

bool says(const Words& words, const std::string& sentence) {
  return std::find(words.begin(), words.end(), sentence) != words.end();
}

TEST(BreakerExplain, OfAClosedOneSaysWhatOpensItAndWhatFollows) {
  BreakerStory s = story(BreakerState::Closed);
  s.window = {5, 2, 0, 2};

  EXPECT_EQ(lines(cutwater_profile(), s),
            (Words{"CLOSED: 2 of 5 calls failed; rate counts from 10 calls; opens at 5 failures in "
                   "a row, 3 to go",
                   "counted are the calls of the last 10 s in 10 slots",
                   "once it opens it refuses for 5 s, each further opening in a row 2 times as "
                   "long, at most 60 s, drawn within 10 % of it",
                   "half-open it lets 5 calls through; a probe without a deadline of its own has "
                   "failed after 30 s"}));
}

TEST(BreakerExplain, OfResilience4jsDefaults) {
  BreakerSettings settings = preset(BreakerPreset::Resilience4j);
  settings.name = "stock";
  settings.window_calls = 20;
  settings.minimum_calls = 10;
  BreakerStory s = story(BreakerState::Closed);
  s.window = {20, 4, 3, 0};

  EXPECT_EQ(lines(settings, s),
            (Words{"CLOSED: 4 of 20 calls failed; 3 slow; opens at a failure rate of 50 %; opens "
                   "at 100 % slower than 60 s",
                   "counted are the last 20 calls", "once it opens it refuses for 60 s",
                   "half-open it lets 10 calls through; a probe without a deadline of its own has "
                   "failed after 30 s"}));
}

TEST(BreakerExplain, OfAnOpenOneSaysWhyUntilWhenAndHowManyProbesDecide) {
  BreakerStory s = story(BreakerState::Open);
  s.reason = BreakerReason::FailureRate;
  s.trip_permille = 600;
  s.trip_calls = 10;
  s.attempts = 3;
  s.deadline_ns = kNow + 2 * kSecond;

  const Words words = lines(cutwater_profile(), s);

  EXPECT_EQ(words[0], "OPEN: failure rate 60 % of 10 calls; half-open in 2 s; then the rate of 5 "
                      "probes decides");
  EXPECT_EQ(words[1], "the 3rd opening in a row");
  EXPECT_EQ(words[2], "the step to half-open is made by the first call after that");
}

TEST(BreakerExplain, OfAHalfOpenOneCountsItsProbes) {
  BreakerSettings settings = cutwater_profile();
  settings.half_open_max_wait_ns = 20 * kSecond;
  BreakerStory s = story(BreakerState::HalfOpen);
  s.probes = {2, 1, 0};
  s.held = 3;

  const Words words = lines(settings, s);

  EXPECT_EQ(words[0], "HALF_OPEN: 2 of 5 probes are back, 1 failed, 3 out; the rate of 5 probes "
                      "decides");
  EXPECT_EQ(words[1], "half-open it lets 5 calls through; undecided after 20 s it goes to OPEN; a "
                      "probe without a deadline of its own has failed after 30 s");
}

TEST(BreakerExplain, OfStatesByHandSaysUntilWhen) {
  BreakerStory s = story(BreakerState::ForcedOpen);
  EXPECT_EQ(lines(cutwater_profile(), s),
            Words{"FORCED_OPEN: refuses every call until it is changed by hand"});
  s.deadline_ns = kNow + 10 * kSecond;
  EXPECT_EQ(lines(cutwater_profile(), s),
            Words{"FORCED_OPEN: refuses every call for 10 s, then half-open"});
  s.deadline_ns = kNow;
  EXPECT_EQ(lines(cutwater_profile(), s),
            Words{"FORCED_OPEN: its time is over: the next call is a probe"});
  s = story(BreakerState::Disabled);
  EXPECT_EQ(lines(cutwater_profile(), s),
            (Words{"DISABLED: grants every call and records nothing",
                   "until it is changed by hand"}));
  s.deadline_ns = kNow + kSecond;
  EXPECT_TRUE(says(lines(cutwater_profile(), s), "for 1 s more, then CLOSED with an empty window"));
  s = story(BreakerState::MetricsOnly);
  s.deadline_ns = kNow - 1;
  EXPECT_TRUE(says(lines(cutwater_profile(), s),
                   "its time is over: the next call finds it CLOSED with an empty window"));
  s.deadline_ns = 0;
  EXPECT_EQ(lines(cutwater_profile(), s)[0],
            "METRICS_ONLY: 0 of 0 calls failed; rate counts from 10 calls; would open at 5 "
            "failures in a row, 5 to go; grants every call");
}

TEST(BreakerExplain, OfMetricsOnlySaysWhetherItWouldBeOpenAndSinceWhen) {
  BreakerStory s = story(BreakerState::MetricsOnly);
  s.window = {5, 2, 0, 2};
  EXPECT_EQ(lines(cutwater_profile(), s)[1], "would be closed now");

  s.window = {12, 7, 0, 1};
  const Words now = lines(cutwater_profile(), s, {.would_open = BreakerReason::Consecutive,
                                                  .would_open_ns = 3 * kSecond});
  EXPECT_EQ(now[1], "would be open now: failure rate");
  EXPECT_EQ(now[2], "would have opened first 3 s ago: failures in a row");

  s.window = {12, 2, 0, 0};
  const Words then = lines(cutwater_profile(), s, {.would_open = BreakerReason::FailureRate,
                                                   .would_open_ns = 60 * kSecond});
  EXPECT_EQ(then[1], "would have opened first 60 s ago: failure rate") << "and not now";
  EXPECT_FALSE(says(lines(cutwater_profile(), story(BreakerState::Closed)), "would be closed now"));
}

TEST(BreakerExplain, ASwitchedOffOneSaysNothingElse) {
  BreakerSettings settings = cutwater_profile();
  settings.enabled = false;

  EXPECT_EQ(lines(settings, story(BreakerState::Open)),
            Words{"switched off (enabled: false): grants every call and records nothing"});
}

TEST(BreakerExplain, EachSettingThatBearsOnTheNextDecisionIsSaid) {
  const BreakerStory closed = story(BreakerState::Closed);
  BreakerSettings s = cutwater_profile();
  s.evaluate_on = EvaluateOn::Failure;
  EXPECT_TRUE(says(lines(s, closed), "only a failure or a slow call may open it"));
  s = cutwater_profile();
  s.ignored_results = IgnoredResults::Success;
  EXPECT_TRUE(says(lines(s, closed), "ignored outcomes count as successes"));
  s = cutwater_profile();
  s.window_type = WindowType::CountBased;
  s.window_min_span_ns = 1 * kSecond;
  EXPECT_TRUE(says(lines(s, closed), "counted are the last 100 calls, or all of the last 1 s when "
                                     "those are more"));
  s = cutwater_profile();
  s.count_hanging = true;
  s.slow_rate_ppm = 500'000;
  s.slow_duration_ns = 2 * kSecond;
  EXPECT_TRUE(says(lines(s, closed, {.hanging = 4}),
                   "4 calls hang for longer than 2 s and count as slow"));
  s = cutwater_profile();
  s.failure_rate_ppm = kOffPpm;
  s.consecutive_failures = 0;
  EXPECT_TRUE(says(lines(s, closed), "nothing opens it by itself: every threshold is off"));
  s = cutwater_profile();
  s.open_on_retry_after = true;
  EXPECT_TRUE(says(lines(s, closed),
                   "a Retry-After of the dependency opens it at once, for at most 600 s"));
  s = cutwater_profile();
  s.automatic_half_open = true;
  EXPECT_TRUE(says(lines(s, story(BreakerState::Open)),
                   "the daemon makes the step to half-open by itself"));
  s.on_probe_timeout = OnProbeTimeout::Release;
  s.probes = 1;
  EXPECT_TRUE(says(lines(s, story(BreakerState::Open)),
                   "half-open it lets 1 call through; a probe without a deadline of its own is "
                   "given to another after 30 s"));
}

TEST(BreakerExplain, OneSickProcessIsToldApart) {
  const Words words =
      lines(cutwater_profile(), story(BreakerState::Closed), {.users = 8, .users_open = 1});

  EXPECT_TRUE(says(words, "with 8 processes in use, failures of 1 alone open it for that one and "
                          "not for the host"));
  EXPECT_TRUE(says(words, "1 of 8 processes refuse for themselves: their calls fail, those of the "
                          "others do not"));
}

TEST(BreakerExplain, NamesTheStateThatComesAfterOneThatIsOver) {
  BreakerSettings settings = cutwater_profile();
  const BreakerNumbers opens = numbers_of(settings, "a");
  settings.half_open_max_wait_ns = 1 * kSecond;
  settings.after_half_open_wait = AfterHalfOpenWait::Closed;
  const BreakerNumbers closes = numbers_of(settings, "a");

  EXPECT_EQ(state_after(opens, BreakerState::Open), BreakerState::HalfOpen);
  EXPECT_EQ(state_after(opens, BreakerState::ForcedOpen), BreakerState::HalfOpen);
  EXPECT_EQ(state_after(opens, BreakerState::Disabled), BreakerState::Closed);
  EXPECT_EQ(state_after(opens, BreakerState::HalfOpen), BreakerState::Open);
  EXPECT_EQ(state_after(closes, BreakerState::HalfOpen), BreakerState::Closed);
}

}  // namespace
}  // namespace cutwater::rule
