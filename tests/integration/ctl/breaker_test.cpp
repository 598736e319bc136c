// SPDX-License-Identifier: Apache-2.0
// `cutwaterctl breaker ...` beside a real daemon, a dead one, and the next one.
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "scenes.hpp"
#include "tool.hpp"

namespace cutwater::ctl {
namespace {

TEST(BreakerCommand, ListShowsEveryStateAndWhenToComeBack) {
  Instance instance(kTwoBreakers);
  Client client = instance.client();
  Breaker stock = client.breaker("stock").value();

  const ProgramRun closed = instance.tool({"breaker", "list"});
  EXPECT_EQ(closed.code, 0);
  EXPECT_EQ(closed.out,
            "BREAKER  STATE   SINCE  FAILURE  SLOW  CALLS  PROBES  USERS  EPOCH  RETRY\n"
            "fraud    CLOSED      0        -     -      0       -      0      1      -\n"
            "stock    CLOSED      0        -     -      0       -      1      1      -\n");

  fail(stock, 4);
  instance.step_by(5 * kSecond);
  const auto open = instance.json({"breaker", "list"})["breakers"][1];
  EXPECT_EQ(open["breaker"], "stock");
  EXPECT_EQ(open["state"], "OPEN");
  EXPECT_EQ(open["reason"], "failure_rate");
  EXPECT_EQ(open["since_ns"], 5 * kSecond);
  EXPECT_EQ(open["retry_after_ns"], 10 * kSecond + 1) << "its edge is exclusive";
  EXPECT_EQ(open["failure_permille"], 1000);
  EXPECT_EQ(open["allowed"], false);

  instance.step_by(11 * kSecond);
  const ProgramRun ready = instance.tool({"breaker", "list"});
  EXPECT_TRUE(has(ready.out, "OPEN, HALF_OPEN ready")) << ready.out;
  auto first = stock.try_enter();
  const auto half = instance.json({"breaker", "list"})["breakers"][1];
  EXPECT_EQ(half["state"], "HALF_OPEN");
  EXPECT_EQ(half["probes_held"], 1);
  EXPECT_TRUE(has(instance.tool({"breaker", "list"}).out, "0+1/2"));
}

TEST(BreakerCommand, GetAndExplainExitWithOneWhileCallersAreRefused) {
  Instance instance(kTwoBreakers);
  Client client = instance.client();
  Breaker stock = client.breaker("stock").value();
  Breaker fraud = client.breaker("fraud").value();
  fail(fraud, 2);
  for (int i = 0; i < 3; ++i) fraud.try_enter()->succeeded();
  fail(fraud, 2);

  const ProgramRun closed = instance.tool({"breaker", "explain", "fraud"});
  EXPECT_EQ(closed.code, 0);
  EXPECT_TRUE(has(closed.out, "CLOSED: 4 of 7 calls failed; rate counts from 10 calls; opens at 5 "
                              "failures in a row, 3 to go"))
      << closed.out;
  EXPECT_EQ(instance.tool({"breaker", "get", "fraud"}).code, 0);

  fail(stock, 4);
  const ProgramRun open = instance.tool({"breaker", "explain", "stock"});
  EXPECT_EQ(open.code, 1);
  EXPECT_TRUE(has(open.out, "OPEN: failure rate 100 % of 4 calls; half-open in 15 s; then the rate "
                            "of 2 probes decides"))
      << open.out;
  EXPECT_EQ(instance.tool({"breaker", "get", "stock"}).code, 1);
  instance.step_by(16 * kSecond);
  EXPECT_EQ(instance.tool({"breaker", "get", "stock"}).code, 0) << "the next call is a probe";
  auto one = stock.try_enter();
  auto two = stock.try_enter();
  const ProgramRun probing = instance.tool({"breaker", "get", "stock"});
  EXPECT_EQ(probing.code, 1);
  EXPECT_TRUE(has(probing.out, "refused: probing, come back in about 30s")) << probing.out;
}

TEST(BreakerCommand, GetShowsSettingsCountersClassesAndDurations) {
  Instance instance(kTwoBreakers);
  Client client = instance.client();
  Breaker fraud = client.breaker("fraud").value();
  for (int i = 1; i <= 100; ++i) {
    fraud.try_enter()->succeeded(std::chrono::milliseconds(i));
  }
  fail(fraud, 3);
  auto ignored = fraud.try_enter();
  ignored->ignored();

  const ProgramRun run = instance.tool({"breaker", "get", "fraud"});
  const auto json = instance.json({"breaker", "get", "fraud"});

  EXPECT_TRUE(has(run.out, "note      card checks")) << run.out;
  EXPECT_TRUE(has(run.out, "failed: timeout  3")) << run.out;
  EXPECT_TRUE(has(run.out, "sliding-window-size                                  10s")) << run.out;
  EXPECT_EQ(json["counters"]["success"], 100);
  EXPECT_EQ(json["counters"]["failure"], 3);
  EXPECT_EQ(json["counters"]["ignored"], 1);
  EXPECT_EQ(json["classes"]["timeout"], 3);
  EXPECT_EQ(json["window_span_ns"], 10 * kSecond);
  EXPECT_EQ(json["settings"]["consecutive-failures"], 5);
  EXPECT_TRUE(has(run.out, "measured")) << run.out;
  EXPECT_EQ(json["measured"], false) << "these were given";
  const auto& durations = json["durations"];
  EXPECT_EQ(durations["calls"], 100);
  EXPECT_GE(durations["p50_ns"], 45'000'000);
  EXPECT_LE(durations["p50_ns"], 60'000'000);
  EXPECT_GE(durations["p99_ns"], 95'000'000);
  EXPECT_GE(durations["max_ns"], durations["p99_ns"]);
}

TEST(BreakerCommand, MetricsOnlySaysWhetherItWouldBeOpenAndSinceWhen) {
  Instance instance(kTwoBreakers);
  Client client = instance.client();
  Breaker stock = client.breaker("stock").value();
  instance.tool({"breaker", "metrics-only", "stock"});
  EXPECT_TRUE(has(instance.tool({"breaker", "explain", "stock"}).out, "would be closed now"));
  EXPECT_TRUE(has(instance.tool({"breaker", "get", "stock"}).out, "would open  not now"));
  fail(stock, 4);
  instance.step_by(12 * kSecond);

  const ProgramRun explain = instance.tool({"breaker", "explain", "stock"});
  const auto would = instance.json({"breaker", "get", "stock"})["would_open"];

  EXPECT_EQ(explain.code, 0) << "it grants every call";
  EXPECT_TRUE(has(explain.out, "would be open now: failure rate")) << explain.out;
  EXPECT_TRUE(has(explain.out, "would have opened first 12 s ago: failure rate")) << explain.out;
  EXPECT_EQ(would["now"], "failure_rate");
  EXPECT_EQ(would["first"], "failure_rate");
  EXPECT_EQ(would["first_ns"], 12 * kSecond);
  for (int i = 0; i < 4; ++i) stock.try_enter()->succeeded();
  EXPECT_FALSE(instance.json({"breaker", "get", "stock"})["would_open"].contains("now"));
  instance.tool({"breaker", "metrics-only", "stock"});  // another visit
  instance.tool({"breaker", "reset", "stock"});
  EXPECT_FALSE(instance.json({"breaker", "get", "stock"}).contains("would_open"));
}

TEST(BreakerCommand, WhyNamesClassesProcessesAndSettingsOfTheLastTrips) {
  Instance instance(kTwoBreakers);
  Client client = instance.client();
  Breaker stock = client.breaker("stock").value();
  EXPECT_EQ(instance.tool({"breaker", "why", "stock"}).out,
            "stock has not opened by itself since the memory was made\n");
  stock.try_enter()->succeeded();
  fail(stock, 3);

  const ProgramRun run = instance.tool({"breaker", "why", "stock"});
  const auto trips = instance.json({"breaker", "why", "stock"})["trips"];

  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_TRUE(has(run.out, "stock opened 1970-01-01T00:00:0")) << run.out;
  EXPECT_TRUE(has(run.out, "failure rate, for 15s")) << run.out;
  EXPECT_TRUE(has(run.out, "4 calls, 3 failed")) << run.out;
  EXPECT_TRUE(has(run.out, "timeout 3")) << run.out;
  EXPECT_TRUE(has(run.out, "pid " + std::to_string(::getpid()) + ": 3 failed")) << run.out;
  EXPECT_TRUE(has(run.out, "sliding-window-size: 4")) << run.out;
  ASSERT_EQ(trips.size(), 1U);
  EXPECT_EQ(trips[0]["classes"]["timeout"], 3);
  EXPECT_EQ(trips[0]["settings"]["sliding-window-size"], 4);
  EXPECT_EQ(instance.json({"breaker", "why"})["trips"].size(), 1U) << "of all";
  EXPECT_EQ(instance.tool({"breaker", "why", "stok"}).code, 6);
  EXPECT_EQ(instance.tool({"breaker", "why", "stock", "-n", "101"}).code, 2);

  for (int i = 0; i < 3; ++i) {
    instance.tool({"breaker", "reset", "stock"});
    fail(stock, 4);
  }
  const auto two = instance.json({"breaker", "why", "stock", "-n", "2"})["trips"];
  ASSERT_EQ(two.size(), 2U);
  EXPECT_GT(two[0]["number"], two[1]["number"]) << "newest first";
  instance.daemon().kill(SIGKILL);
  auto of_memory = instance.json({"breaker", "why", "stock", "-n", "2"})["trips"];
  EXPECT_EQ(of_memory, two);
}

TEST(BreakerCommand, StatusShowsWhatIsNotClosed) {
  Instance instance(kTwoBreakers);
  Client client = instance.client();
  Breaker stock = client.breaker("stock").value();
  EXPECT_FALSE(has(instance.tool({"status"}).out, "breaker "));
  fail(stock, 4);

  const ProgramRun run = instance.tool({"status"});
  const auto json = instance.json({"status"});

  EXPECT_TRUE(has(run.out, "breaker     stock OPEN, 0 ago, failure rate, come back in 15"));
  ASSERT_EQ(json["breakers_not_closed"].size(), 1U);
  EXPECT_EQ(json["breakers_not_closed"][0]["breaker"], "stock");
  EXPECT_TRUE(json["bulkheads_full"].empty());
}

TEST(BreakerCommand, EventsTellEachTransitionInWords) {
  Instance instance(kTwoBreakers);
  Client client = instance.client();
  Breaker stock = client.breaker("stock").value();
  fail(stock, 4);
  instance.step_by(16 * kSecond);
  for (int i = 0; i < 2; ++i) stock.try_enter()->succeeded();
  instance.tool({"breaker", "force-open", "stock"});

  const ProgramRun run = instance.tool({"events"});
  std::vector<std::string> moves;
  const auto all = instance.json({"events"});
  for (const auto& event : all["events"]) {
    if (event["kind"] == "breaker_moved") moves.push_back(event["words"]);
  }

  EXPECT_EQ(moves, (std::vector<std::string>{
                       "stock CLOSED -> OPEN: failure rate",
                       "stock OPEN -> HALF_OPEN: the wait was over",
                       "stock HALF_OPEN -> CLOSED: probes succeeded",
                       "stock CLOSED -> FORCED_OPEN: by hand"}));
  EXPECT_TRUE(has(run.out, "1970-01-01T00:00:")) << "a stepped clock is its own calendar";
  EXPECT_TRUE(has(run.out, "stock CLOSED -> OPEN: failure rate")) << run.out;
}

TEST(BreakerCommand, OfADeadDaemonTheMemoryIsReadAndNothingIsChanged) {
  Instance instance(kTwoBreakers);
  Client client = instance.client();
  Breaker stock = client.breaker("stock").value();
  fail(stock, 4);
  const auto asked = instance.json({"breaker", "list"});
  instance.daemon().kill(SIGKILL);
  const std::string before = memory_bytes(instance.place());

  const auto read = instance.json({"breaker", "list"});
  const ProgramRun get = instance.tool({"breaker", "get", "stock"});
  const ProgramRun words = instance.tool({"breaker", "explain", "stock"});
  const ProgramRun act = instance.tool({"breaker", "force-open", "stock"});

  EXPECT_EQ(read["source"], "memory");
  EXPECT_EQ(read["breakers"], asked["breakers"]);
  EXPECT_EQ(get.code, 1);
  EXPECT_TRUE(has(get.err, "daemon not running")) << get.err;
  EXPECT_EQ(words.code, 1);
  EXPECT_EQ(act.code, 3);
  EXPECT_EQ(memory_bytes(instance.place()), before);
}

TEST(BreakerCommand, UnknownNamesAreSixWithTheNearest) {
  Instance instance(kTwoBreakers);
  for (const bool dead : {false, true}) {
    if (dead) instance.daemon().kill(SIGKILL);
    for (const char* verb : {"get", "explain"}) {
      const ProgramRun run = instance.tool({"breaker", verb, "frau"});
      EXPECT_EQ(run.code, 6) << verb;
      EXPECT_TRUE(has(run.err, "no breaker 'frau'; did you mean 'fraud'?")) << run.err;
    }
    if (dead) break;
    for (const char* verb : {"force-open", "disable", "metrics-only", "auto", "reset"}) {
      const ProgramRun run = instance.tool({"breaker", verb, "frau"});
      EXPECT_EQ(run.code, 6) << verb;
      EXPECT_TRUE(has(run.err, "did you mean 'fraud'?")) << run.err;
    }
  }
}

}  // namespace
}  // namespace cutwater::ctl
