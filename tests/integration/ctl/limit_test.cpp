// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <csignal>
#include <string>

#include "tool.hpp"

namespace cutwater::ctl {
namespace {

const std::string kYaml =
    "capacity: { keys: 1024 }\n"
    "limits:\n"
    "  slow: { rate: 1/5s, burst: 1, note: a call each 5 s }\n"
    "  sms:  { rate: 100/m, burst: 20, on-full: deny }\n";

TEST(LimitList, IsATable) {
  Instance instance(kYaml);

  const ProgramRun run = instance.tool({"limit", "list"});

  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.out,
            "LIMIT   RATE  BURST  ON-FULL  MAX-WAIT  MODE\n"
            "slow    1/5s      1  share          1h  enforce\n"
            "sms    100/m     20  deny           1h  enforce\n");
}

TEST(LimitGet, ShowsSettingsAndCounters) {
  Instance instance(kYaml);
  Client client = instance.client();
  client.limit("sms").value().try_acquire("+49", 3);

  EXPECT_EQ(instance.tool({"limit", "get", "sms"}).out,
            "limit         sms\n"
            "rate          100/m\n"
            "burst         20\n"
            "on-full       deny\n"
            "mode          enforce\n"
            "overrides     no\n"
            "patterns      0\n"
            "show-keys     hashed\n"
            "max-wait      1h\n"
            "max-waiting   1024\n"
            "thread-lease  off\n"
            "initial       full\n"
            "allowed       1\n"
            "refused       0\n"
            "tokens        3\n"
            "no place      0\n"
            "degraded      0\n"
            "undone        0\n"
            "waited        0\n");
  EXPECT_EQ(instance.json({"limit", "get", "slow"})["note"], "a call each 5 s");
}

TEST(Limit, NamesTheNearestWithAndWithoutADaemon) {
  Instance instance(kYaml);

  for (const bool alive : {true, false}) {
    if (!alive) instance.daemon().kill(SIGKILL);
    for (const char* verb : {"get", "peek"}) {
      std::vector<std::string> arguments = {"limit", verb, "slwo"};
      if (verb == std::string("peek")) arguments.emplace_back("alice");
      const ProgramRun run = instance.tool(arguments);
      EXPECT_EQ(run.code, 6) << run.err;
      EXPECT_EQ(run.out, "");
      EXPECT_NE(run.err.find("no limit 'slwo'; did you mean 'slow'?"), std::string::npos);
    }
  }
}

// covers: C088 (command line)
// The exact field, and a text that never says less.
TEST(LimitPeek, TellsTheWaitExactlyAndRoundsItUp) {
  Instance instance(kYaml);
  Client client = instance.client();
  ASSERT_TRUE(client.limit("slow").value().try_acquire("alice").allowed());
  const auto refused = [&](std::uint64_t wait_ns, const std::string& text) {
    const ProgramRun table = instance.tool({"limit", "peek", "slow", "alice"});
    const ProgramRun json = instance.tool({"limit", "peek", "slow", "alice", "-o", "json"});
    EXPECT_EQ(table.code, 1);
    EXPECT_EQ(json.code, 1);
    EXPECT_NE(table.out.find("retry-after  " + text + "\n"), std::string::npos) << table.out;
    EXPECT_EQ(parse(json.out)["retry_after_ns"], wait_ns);
    EXPECT_EQ(parse(json.out)["reason"], "limit");
    EXPECT_EQ(parse(json.out)["allowed"], false);
  };

  refused(5'000'000'000, "5s");
  instance.step_by(400'000'000);
  refused(4'600'000'000, "4.6s");
  instance.step_by(3'600'000'000);
  refused(1'000'000'000, "1s");
  instance.step_by(600'000'000);
  refused(400'000'000, "400ms");
  instance.step_by(399'999'999);
  refused(1, "1ns");
  instance.step_by(1);
  EXPECT_EQ(instance.tool({"limit", "peek", "slow", "alice"}).code, 0);
}

TEST(LimitPeek, TellsTheSameFromTheDaemonAndFromTheMemory) {
  Instance instance(kYaml);
  Client client = instance.client();
  client.limit("sms").value().try_acquire("alice", 7);

  auto asked = instance.json({"limit", "peek", "sms", "alice", "--cost", "13"});
  instance.daemon().kill(SIGKILL);
  auto read = instance.json({"limit", "peek", "sms", "alice", "--cost", "13"});

  EXPECT_EQ(asked["remaining"], 0);
  for (auto* document : {&asked, &read}) {
    for (const char* key : {"source", "daemon", "remark", "instance"}) document->erase(key);
  }
  EXPECT_EQ(asked, read);
}

TEST(LimitPeek, SaysNeverForACostAboveTheBurst) {
  Instance instance(kYaml);

  const ProgramRun run = instance.tool({"limit", "peek", "sms", "alice", "--cost", "21"});

  EXPECT_EQ(run.code, 1);
  EXPECT_NE(run.out.find("refused: never"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("retry-after  never"), std::string::npos) << run.out;
}

// covers: C037 (command line)
// Any bytes are a key, and are printed escaped.
TEST(LimitPeek, TakesHostileKeys) {
  Instance instance(kYaml);
  Client client = instance.client();
  auto slow = client.limit("slow").value();
  using namespace std::string_literals;
  ASSERT_TRUE(slow.try_acquire("\0b"s).allowed());

  EXPECT_EQ(instance.tool({"limit", "peek", "slow", "hex:0062"}).code, 1);
  EXPECT_EQ(instance.tool({"limit", "peek", "slow", "hex:0063"}).code, 0);
  EXPECT_EQ(instance.tool({"limit", "peek", "slow", "hex:00"}).code, 0);
  EXPECT_EQ(instance.tool({"limit", "peek", "slow", ""}).code, 0);
  const ProgramRun run = instance.tool({"limit", "peek", "slow", "hex:0d0a1b5b324aff"});
  EXPECT_EQ(run.code, 0);
  EXPECT_NE(run.out.find("key          hex:0d0a1b5b324aff\n"), std::string::npos) << run.out;
  EXPECT_EQ(instance.json({"limit", "peek", "slow", "hex:ff00"})["key"], "hex:ff00");
  EXPECT_EQ(instance.tool({"limit", "peek", "slow", std::string(4096, 'k')}).code, 0);
  EXPECT_EQ(instance.tool({"limit", "peek", "slow", std::string(4097, 'k')}).code, 2);
}

TEST(LimitReset, FillsTheBucketOfOneKey) {
  Instance instance(kYaml);
  Client client = instance.client();
  auto slow = client.limit("slow").value();
  for (const char* key : {"alice", "bob"}) ASSERT_TRUE(slow.try_acquire(key).allowed());

  const ProgramRun run = instance.tool({"limit", "reset", "slow", "alice"});

  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_TRUE(slow.try_acquire("alice").allowed());
  EXPECT_FALSE(slow.try_acquire("bob").allowed());
}

TEST(LimitReset, NeedsTheDaemonAndAnExistingLimit) {
  Instance instance(kYaml);

  const ProgramRun unknown = instance.tool({"limit", "reset", "slwo", "alice"});
  instance.daemon().kill(SIGKILL);
  const ProgramRun dead = instance.tool({"limit", "reset", "slow", "alice"});

  EXPECT_EQ(unknown.code, 6);
  EXPECT_NE(unknown.err.find("did you mean 'slow'?"), std::string::npos) << unknown.err;
  EXPECT_EQ(dead.code, 3);
  EXPECT_EQ(dead.out, "");
}

}  // namespace
}  // namespace cutwater::ctl
