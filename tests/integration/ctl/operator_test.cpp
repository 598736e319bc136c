// SPDX-License-Identifier: Apache-2.0
// What an operator asks about the settings and the host, beside a real daemon.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "scenes.hpp"
#include "tool.hpp"

namespace cutwater::ctl {
namespace {

TEST(ConfigShow, NamesEverySettingsOrigin) {
  Instance instance(kTwoLimits);

  const ProgramRun run = instance.tool({"config", "show"});

  EXPECT_EQ(run.code, 0);
  EXPECT_TRUE(has(run.out, "limits.api.burst")) << run.out;
  EXPECT_TRUE(has(run.out, "default")) << run.out;
}

TEST(ConfigDiff, SaysWhatAFileWouldChange) {
  Instance instance(kTwoLimits);
  const std::string other = instance.place().path() + "/other.yaml";
  std::string yaml = kTwoLimits;
  yaml.replace(yaml.find("burst: 10"), 9, "burst: 5");
  Client client = instance.client();
  for (const char* key : {"alice", "bob"}) client.limit("api")->try_acquire(key);
  test::write_file(other, yaml);

  const ProgramRun run = instance.tool({"config", "diff", other});
  const auto json = instance.json({"config", "diff", other});

  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_TRUE(has(run.out, "limits.api.burst")) << run.out;
  bool found = false;
  for (const auto& change : json["changes"]) {
    if (change["path"] != "limits.api.burst") continue;
    found = true;
    EXPECT_EQ(change["now"], "10");
    EXPECT_EQ(change["then"], "5");
  }
  EXPECT_TRUE(found) << run.out;
  ASSERT_EQ(json["limits"].size(), 1U) << run.out;
  EXPECT_EQ(json["limits"][0]["limit"], "api");
  EXPECT_EQ(json["limits"][0]["keys_in_debt"], 2) << run.out;
}

TEST(ConfigDiff, OfTheDaemonsOwnFileSaysWhatAReloadRefuses) {
  Instance instance("instance: { watch-file: false }\n" + kTwoLimits);
  const std::string file = instance.place().config();
  const struct { std::string yaml, part; } refused[] = {
      {"instance: { watch-file: false, name: other }\n" + kTwoLimits,
       "instance.name: changed from 'main' to 'other', which needs a restart"},
      {"capacity: { keys: 4096 }\n", "above the 1024 reserved at start, which needs a restart"},
      {"capacity: { keys: 1024 }\nbreakers: { 'bank-*': { max-instances: 63, "
       "sliding-window-type: COUNT_BASED, sliding-window-size: 10000 } }\n",
       "capacity.breaker-memory"}};
  for (const auto& one : refused) {
    test::write_file(file, one.yaml);
    const ProgramRun diff = instance.tool({"config", "diff", file});
    EXPECT_EQ(diff.code, 4) << diff.out << diff.err;
    EXPECT_TRUE(has(diff.out, one.part)) << diff.out;
    EXPECT_EQ(instance.tool({"config", "reload"}).code, 4) << one.yaml;
    EXPECT_EQ(instance.tool({"config", "reload", "--dry"}).code, 4) << one.yaml;
  }

  test::write_file(file,
                   "instance: { watch-file: false }\n" + kTwoLimits + "  more: { rate: 1/s }\n");
  EXPECT_EQ(instance.tool({"config", "diff", file}).code, 0);
  EXPECT_EQ(instance.tool({"config", "reload"}).code, 0);
}

TEST(ConfigDiff, SaysWhatItsLettersMean) {
  Instance instance(kTwoLimits);
  const std::string other = instance.place().path() + "/other.yaml";
  test::write_file(other,
                   "capacity: { keys: 1024, limits: 128 }\nlimits: { api: { rate: 1/s } }\n");

  const ProgramRun run = instance.tool({"config", "diff", other});

  EXPECT_EQ(run.code, 0) << run.out;
  EXPECT_TRUE(has(run.out, "\n(L: live, taken over by a reload; C: capacity, taken over by a "
                           "reload up to what was reserved at start)\n"))
      << run.out;
}

TEST(Doctor, LooksAtAHealthyInstanceAndAtADeadOne) {
  Instance instance(kTwoLimits);
  const ProgramRun alive = instance.tool({"doctor"});
  EXPECT_TRUE(has(alive.out, "were never asked: api, tenant")) << alive.out;

  instance.daemon().kill();
  const ProgramRun dead = instance.tool({"doctor"});
  EXPECT_EQ(dead.code, 4);
  EXPECT_TRUE(has(dead.out, "the daemon is not running")) << dead.out;
}

TEST(Completion, WorksInBash) {
  const std::string line =
      "source <(" + tool_program() +
      " completion bash); COMP_WORDS=(cutwaterctl limit ex); COMP_CWORD=2; _cutwaterctl; "
      "echo \"${COMPREPLY[@]}\"";

  const ProgramRun run = test::run_program({"/bin/bash", "-c", line});

  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.out, "explain\n");
}

TEST(Errors, AreDocumentsForScripts) {
  Instance instance(kTwoLimits);

  const ProgramRun run = instance.tool({"limit", "get", "apo", "-o", "json"});

  EXPECT_EQ(run.code, 6);
  const auto document = parse(run.out);
  EXPECT_EQ(document["error"]["code"], "unknown_name");
  EXPECT_EQ(document["error"]["exit"], 6);
  EXPECT_TRUE(has(run.err, "did you mean 'api'?"));
}

}  // namespace
}  // namespace cutwater::ctl
