// SPDX-License-Identifier: Apache-2.0
#include "ctl/breaker_text.hpp"

#include <gtest/gtest.h>

namespace cutwater::ctl {
namespace {

using wire::Value;

constexpr std::uint64_t kSecond = 1'000'000'000;

TEST(BreakerTable, ShowsTheStateAsTheNextCallerFindsIt) {
  const Rows rows = {
      Value::map({{"breaker", "bank-a"},
                  {"state", "CLOSED"},
                  {"allowed", true},
                  {"enabled", true},
                  {"since_ns", 90 * kSecond},
                  {"failure_permille", 125U},
                  {"slow_permille", 0U},
                  {"calls", 80U},
                  {"users", 8U},
                  {"users_open", 1U},
                  {"epoch", 9U}}),
      Value::map({{"breaker", "fraud"},
                  {"state", "HALF_OPEN"},
                  {"allowed", false},
                  {"enabled", true},
                  {"probes", 5U},
                  {"probes_held", 3U},
                  {"probes_spent", 2U},
                  {"epoch", 4U},
                  {"retry_after_ns", 30 * kSecond}}),
      Value::map({{"breaker", "old"},
                  {"state", "OPEN"},
                  {"ready", true},
                  {"next", "HALF_OPEN"},
                  {"allowed", true},
                  {"enabled", true},
                  {"epoch", 2U}}),
      Value::map({{"breaker", "shut"},
                  {"state", "FORCED_OPEN"},
                  {"allowed", false},
                  {"enabled", true},
                  {"epoch", 2U},
                  {"retry_after_ns", ~std::uint64_t{0}}}),
      Value::map({{"breaker", "slow"},
                  {"state", "CLOSED"},
                  {"ramping", true},
                  {"allowed", true},
                  {"enabled", true},
                  {"epoch", 3U}}),
      Value::map({{"breaker", "unused"}, {"state", "CLOSED"}, {"allowed", true}, {"enabled", false},
                  {"epoch", 1U}})};

  EXPECT_EQ(breaker_table(rows).text(false),
            "BREAKER  STATE                  SINCE  FAILURE   SLOW  CALLS  PROBES       USERS  "
            "EPOCH  RETRY\n"
            "bank-a   CLOSED                 1m30s   12.5 %  0.0 %     80       -  8 (1 open)  "
            "    9      -\n"
            "fraud    HALF_OPEN                  -        -      -      0   2+3/5           0  "
            "    4    30s\n"
            "old      OPEN, HALF_OPEN ready      -        -      -      0       -           0  "
            "    2      -\n"
            "shut     FORCED_OPEN                -        -      -      0       -           0  "
            "    2  never\n"
            "slow     CLOSED, ramping            -        -      -      0       -           0  "
            "    3      -\n"
            "unused   CLOSED (switched off)      -        -      -      0       -           0  "
            "    1      -\n");
  EXPECT_EQ(breaker_tone(rows[0]), Tone::Good);
  EXPECT_EQ(breaker_tone(rows[1]), Tone::Bad);
  EXPECT_EQ(breaker_tone(rows[2]), Tone::Warn);
  EXPECT_EQ(breaker_tone(rows[4]), Tone::Warn);
  EXPECT_EQ(breaker_tone(rows[5]), Tone::Warn);
}

TEST(BreakerWords, SayWhenToComeBack) {
  EXPECT_EQ(retry_text(Value::map({{"retry_after_ns", 3 * kSecond}})), "come back in 3s");
  EXPECT_EQ(retry_text(Value::map({{"retry_after_ns", 3 * kSecond}, {"hint", true}})),
            "come back in about 3s");
  EXPECT_EQ(retry_text(Value::map({{"retry_after_ns", ~std::uint64_t{0}}})),
            "only a change by hand helps");
}

TEST(BreakerWords, SayWhichActAndItsNote) {
  Value act = Value::map({{"id", 7U},
                          {"to", "FORCED_OPEN"},
                          {"state", "stands"},
                          {"until_s", 1893456000U},
                          {"who", "uid 0"},
                          {"note", "their maintenance"}});
  EXPECT_EQ(act_words(act),
            "FORCED_OPEN until 2030-01-01T00:00:00Z (act 7 of uid 0: their maintenance)");
  act.set("until_s", 0U);
  act.set("note", "");
  EXPECT_EQ(act_words(act), "FORCED_OPEN until undone (act 7 of uid 0)");
  act.set("state", "expired");
  act.set("ended_s", 1893456000U);
  EXPECT_EQ(act_words(act), "FORCED_OPEN, expired 2030-01-01T00:00:00Z (act 7 of uid 0)");
  EXPECT_EQ(act_words(Value::map({{"do", "ban"}, {"state", "configuration"}, {"note", "abuse"}})),
            "ban until undone (by the configuration: abuse)");
}

TEST(BreakerWords, SayWhatAWindowSpansAndHowSureThatIs) {
  const auto row = [](Value settings) {
    Value out = Value::map({{"window_span_ns", 10 * kSecond}});
    out.set("settings", std::move(settings));
    return out;
  };
  EXPECT_EQ(span_text(row(Value::map({{"sliding-window-type", "TIME_BASED"},
                                      {"sliding-window-slots", 10U}}))),
            "9s to 10s");
  EXPECT_EQ(span_text(row(Value::map({{"sliding-window-type", "TIME_BASED"},
                                      {"sliding-window-slots", 1U}}))),
            "up to 10s");
  EXPECT_EQ(span_text(row(Value::map({{"sliding-window-type", "COUNT_BASED"}}))),
            "about 10s (by the outcomes of the last minute)");
  EXPECT_EQ(span_text(Value::map({{"breaker", "fraud"}})), "") << "nobody knows";
}

TEST(BreakerWords, SayWhetherItWouldBeOpen) {
  const auto text = [](Value would) {
    Value row;
    row.set("would_open", std::move(would));
    return would_open_text(row);
  };
  EXPECT_EQ(text(Value(Value::Map{})), "not now");
  EXPECT_EQ(text(Value::map({{"now", "failure_rate"},
                             {"first", "consecutive"},
                             {"first_ns", 12 * kSecond}})),
            "now: failure_rate; first 12s ago: consecutive");
  EXPECT_EQ(would_open_text(Value::map({{"state", "CLOSED"}})), "");
}

TEST(TripText, SaysWhyWhoAndUnderWhichSettings) {
  Value::Array processes;
  processes.push_back(Value::map({{"pid", 4711U}, {"row", 3U}, {"failures", 4U}, {"slow", 1U}}));
  processes.push_back(Value::map({{"pid", 4711U}, {"row", 5U}, {"failures", 1U}, {"slow", 0U}}));
  processes.push_back(Value::map({{"pid", 0U}, {"row", 0U}, {"failures", 2U}, {"slow", 0U}}));
  Value trip = Value::map({{"breaker", "fraud"},
                           {"unix_ms", 1893456000123U},
                           {"ago_ns", 3 * kSecond},
                           {"reason", "failure_rate"},
                           {"wait_ns", 10 * kSecond},
                           {"attempts", 2U},
                           {"calls", 10U},
                           {"failures", 6U},
                           {"slow", 1U},
                           {"run", 3U},
                           {"classes", Value::map({{"timeout", 5U}, {"http-5xx", 1U}})},
                           {"durations", Value::map({{"calls", 120U},
                                                     {"p50_ns", 3'000'000U},
                                                     {"p99_ns", 20'000'000U},
                                                     {"max_ns", 31'000'000U},
                                                     {"span_ns", 60 * kSecond}})},
                           {"settings", Value::map({{"sliding-window-size", 10U},
                                                    {"failure-rate-threshold", "50%"},
                                                    {"failure-count-threshold", "off"},
                                                    {"probe-timeout", "30s"}})}});
  trip.set("processes", std::move(processes));

  EXPECT_EQ(trip_text(trip),
            "fraud opened 2030-01-01T00:00:00.123Z, 3s ago: failure rate, for 10s, opening 2 in a "
            "row\n"
            "  window     10 calls, 6 failed, 1 slow, 3 failures in a row\n"
            "  classes    timeout 5, http-5xx 1\n"
            "  processes  pid 4711: 5 failed, 1 slow; callers without a row: 2 failed\n"
            "  durations  120 calls, p50 <= 3ms, p99 <= 20ms, max <= 31ms, of the last 1m\n"
            "  settings   sliding-window-size: 10, failure-rate-threshold: 50%\n");
}

}  // namespace
}  // namespace cutwater::ctl
