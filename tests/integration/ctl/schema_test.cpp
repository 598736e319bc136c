// SPDX-License-Identifier: Apache-2.0
// The fields of what -o json prints about breakers, bulkheads and acts: scripts rely on them. A new
// field is added here; one that is missing or renamed breaks somebody's script.
#include <gtest/gtest.h>
#include <unistd.h>

#include <set>
#include <string>

#include <cutwater/breaker.hpp>
#include <cutwater/bulkhead.hpp>

#include "tool.hpp"

namespace cutwater::ctl {
namespace {

using Fields = std::set<std::string>;

const std::string kYaml =
    "capacity: { keys: 1024 }\n"
    "breakers: { fraud: { note: card checks, ignore: [http-404] } }\n"
    "bulkheads: { fraud: { max-concurrent-calls: 2, note: card checks } }\n";

Fields fields_of(const nlohmann::json& row) {
  Fields out;
  for (const auto& entry : row.items()) out.insert(entry.key());
  return out;
}

TEST(Schema, OfOneBreakerOpenAndByHand) {
  Instance instance(kYaml);
  Client client = instance.client();
  Breaker fraud = client.breaker("fraud").value();
  for (int i = 0; i < 5; ++i) fraud.try_enter()->failed("timeout", std::chrono::milliseconds(3));
  const Fields every = {
      "allowed", "answer", "attempts", "breaker", "calls", "classes", "counters", "daemon",
      "durations", "enabled", "epoch", "explain", "failures", "flapping", "hanging", "hint",
      "ignore", "instance", "measured", "note", "probes", "probes_held", "probes_spent",
      "processes", "ramping", "ready", "reason", "retry_after_ns", "run", "settings", "since_ns",
      "slow", "source", "state", "time_in_state_ns", "transitions", "users", "users_open",
      "window", "window_span_ns"};

  const auto open = parse(instance.tool({"breaker", "get", "fraud", "-o", "json"}).out);
  EXPECT_EQ(fields_of(open), every);
  EXPECT_EQ(fields_of(open["durations"]),
            (Fields{"calls", "max_ns", "mean_ns", "p50_ns", "p99_ns"}));
  EXPECT_EQ(fields_of(open["transitions"][0]), (Fields{"count", "from", "reason", "to"}));

  const ProgramRun text = instance.tool({"breaker", "get", "fraud"});
  EXPECT_NE(text.out.find("1 process: pid " + std::to_string(::getpid())), std::string::npos);
  EXPECT_EQ(text.out.find("FOR ITSELF"), std::string::npos) << "nothing is counted for one alone";

  instance.tool({"breaker", "metrics-only", "fraud", "--for", "1h"});
  Fields by_hand = every;
  by_hand.insert({"act", "expires_ns", "would_open"});
  const auto metrics = instance.json({"breaker", "get", "fraud"});
  EXPECT_EQ(fields_of(metrics), by_hand);
  EXPECT_EQ(fields_of(metrics["act"]), (Fields{"at_s", "breaker", "do", "id", "note", "saved",
                                               "state", "to", "until_s", "who"}));
}

TEST(Schema, OfOneBulkhead) {
  Instance instance(kYaml);
  Client client = instance.client();
  Bulkhead gate = client.bulkhead("fraud").value();
  auto place = gate.try_enter();
  instance.step_by(1'000'000'000);

  EXPECT_EQ(fields_of(instance.json({"bulkhead", "get", "fraud"})),
            (Fields{"allowed", "answer", "bulkhead", "counters", "daemon", "enabled", "explain",
                    "hint", "holders", "in_use", "instance", "limit", "max_hold_ns", "max_wait_ns",
                    "max_waiting", "note", "oldest_ns", "oldest_pid", "oldest_row", "over",
                    "retry_after_ns", "source", "waiting"}));
}

TEST(Schema, OfATrip) {
  Instance instance(kYaml);
  Client client = instance.client();
  Breaker fraud = client.breaker("fraud").value();
  for (int i = 0; i < 5; ++i) fraud.try_enter()->failed("timeout", std::chrono::milliseconds(3));

  const auto why = instance.json({"breaker", "why", "fraud"});
  EXPECT_EQ(fields_of(why), (Fields{"breaker", "daemon", "instance", "source", "trips"}));
  const auto& trip = why["trips"][0];
  EXPECT_EQ(fields_of(trip),
            (Fields{"ago_ns", "attempts", "breaker", "calls", "classes", "durations", "epoch",
                    "failures", "from", "hanging", "looked_at", "number", "processes", "reason",
                    "run", "settings", "slow", "unix_ms", "wait_ns"}));
  EXPECT_EQ(fields_of(trip["processes"][0]), (Fields{"failures", "pid", "row", "slow"}));
}

TEST(Schema, OfActsAndTheirAnswers) {
  Instance instance(kYaml);
  const Fields answer = {"act", "done", "generation", "saved", "text"};
  const auto forced = parse(instance.tool({"breaker", "force-open", "fraud", "-o", "json"}).out);
  const auto undone = parse(instance.tool({"journal", "undo", "1", "-o", "json"}).out);
  const auto reset = parse(instance.tool({"breaker", "reset", "fraud", "-o", "json"}).out);
  const auto refused = parse(instance.tool({"breaker", "reset", "frud", "-o", "json"}).out);

  EXPECT_EQ(fields_of(forced), answer);
  EXPECT_EQ(fields_of(undone), (Fields{"done", "generation", "saved", "text"}));
  EXPECT_EQ(fields_of(reset), (Fields{"done", "generation", "saved", "text"}));
  EXPECT_EQ(fields_of(refused["error"]), (Fields{"code", "exit", "text"}));
  const auto journal = instance.json({"journal", "list"});
  EXPECT_EQ(fields_of(journal), (Fields{"daemon", "instance", "journal", "source"}));
  EXPECT_EQ(fields_of(journal["journal"][0]),
            (Fields{"at_s", "breaker", "do", "ended_by", "ended_s", "id", "note", "saved", "state",
                    "to", "until_s", "who"}));
  EXPECT_EQ(fields_of(journal["journal"][1]),
            (Fields{"at_s", "breaker", "do", "ended_by", "ended_s", "id", "note", "saved", "state",
                    "until_s", "who"}));
}

TEST(Schema, OfEventsAndOfDoctor) {
  Instance instance(kYaml);
  instance.tool({"breaker", "force-open", "fraud"});
  const auto events = instance.json({"events"});
  EXPECT_EQ(fields_of(events), (Fields{"daemon", "events", "instance", "lost", "source"}));
  for (const auto& event : events["events"]) {
    if (event["kind"] != "breaker_moved") continue;
    EXPECT_EQ(fields_of(event), (Fields{"breaker", "clock_ns", "epoch", "from", "kind", "number",
                                        "object", "reason", "row", "text", "to", "unix_ms",
                                        "words"}));
  }
  const auto doctor = parse(instance.tool({"doctor", "-o", "json"}).out);
  EXPECT_EQ(fields_of(doctor), (Fields{"daemon", "findings", "ok"}));
  ASSERT_FALSE(doctor["findings"].empty());
  EXPECT_EQ(fields_of(doctor["findings"][0]), (Fields{"about", "bad", "remedy", "text"}));
}

}  // namespace
}  // namespace cutwater::ctl
