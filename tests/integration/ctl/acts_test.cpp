// SPDX-License-Identifier: Apache-2.0
// What an operator does by hand and asks about, beside a real daemon.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "scenes.hpp"
#include "tool.hpp"

namespace cutwater::ctl {
namespace {

TEST(Acts, ExplainTellsTheNextDecision) {
  Instance instance(kTwoLimits);
  Client client = instance.client();
  auto tenant = client.limit("tenant").value();
  for (int i = 0; i < 20; ++i) tenant.try_acquire("acme");

  const ProgramRun refused = instance.tool({"limit", "explain", "tenant", "acme"});
  const ProgramRun allowed = instance.tool({"limit", "explain", "tenant", "else"});

  EXPECT_EQ(refused.code, 1);
  EXPECT_TRUE(has(refused.out, "refused by window 2 of 2 (1000/h burst 20): 0 tokens left"))
      << refused.out;
  EXPECT_TRUE(has(refused.out, "come back in 3.6s")) << refused.out;
  EXPECT_EQ(allowed.code, 0);
  EXPECT_TRUE(has(allowed.out, "allowed: ")) << allowed.out;
}

TEST(Acts, BanAndUnbanOfOneKey) {
  Instance instance(kTwoLimits);
  Client client = instance.client();
  auto api = client.limit("api").value();

  const ProgramRun ban =
      instance.tool({"limit", "ban", "api", "mallory", "--for", "10m", "--note", "scraping"});
  EXPECT_EQ(ban.code, 0) << ban.err;
  EXPECT_EQ(api.try_acquire("mallory").reason(), Reason::Banned);
  EXPECT_TRUE(api.try_acquire("alice").allowed());
  const ProgramRun why = instance.tool({"limit", "explain", "api", "mallory"});
  EXPECT_TRUE(has(why.out, "banned for 10m")) << why.out;
  EXPECT_TRUE(has(why.out, "ban until ")) << why.out;
  EXPECT_TRUE(has(why.out, "(act 1 of uid ")) << why.out;
  EXPECT_TRUE(has(why.out, ": scraping)")) << why.out;

  EXPECT_EQ(instance.tool({"limit", "unban", "api", "mallory"}).code, 0);
  EXPECT_TRUE(api.try_acquire("mallory").allowed());
}

TEST(Acts, ABanOfALimitInShadowSaysThatItHasNoEffect) {
  Instance instance("limits: { api: { rate: 10/s, mode: shadow } }\n");

  const ProgramRun ban = instance.tool({"limit", "ban", "api", "mallory", "--for", "10m"});

  EXPECT_EQ(ban.code, 0) << ban.err;
  EXPECT_TRUE(has(ban.out, "ban for 600 s; NO EFFECT now: the limit is in shadow mode")) << ban.out;
  EXPECT_TRUE(instance.client().limit("api")->try_acquire("mallory").allowed());
}

TEST(Acts, WhatAHandLetsThroughIsShownUnderNotProtecting) {
  Instance instance(
      "limits: { api: { rate: 10/s }, file: { rate: 1/s, mode: shadow } }\n"
      "breakers: { a: {}, b: {}, c: {} }\n");
  instance.tool({"limit", "shadow", "api", "on", "--for", "1m"});
  instance.tool({"breaker", "disable", "a"});
  instance.tool({"breaker", "metrics-only", "b", "--for", "1m"});
  instance.tool({"breaker", "force-open", "c"});

  const ProgramRun status = instance.tool({"status"});
  EXPECT_TRUE(has(status.out,
                  "not protecting: breaker DISABLED a, breaker METRICS_ONLY b, "
                  "limit in shadow file, limit in shadow by hand api\n"))
      << status.out;
  EXPECT_EQ(instance.json({"status"})["not_protecting"].size(), 4U);

  EXPECT_EQ(instance.tool({"limit", "shadow", "api", "off"}).code, 0);
  instance.tool({"breaker", "auto", "a"});
  instance.tool({"breaker", "auto", "b"});
  EXPECT_TRUE(has(instance.tool({"status"}).out, "not protecting: limit in shadow file\n"));
}

TEST(Acts, AnActThatBeatsTheFileIsNamedByDoctorAndDiff) {
  const std::string shadow = "limits: { api: { rate: 10/s, mode: shadow } }\n";
  Instance instance(shadow);
  ASSERT_EQ(instance.tool({"limit", "shadow", "api", "off"}).code, 0);

  EXPECT_TRUE(has(instance.tool({"doctor"}).out,
                  "limit api: enforced by act 1, the configuration says mode: shadow"));
  const std::string other = instance.place().path() + "/other.yaml";
  test::write_file(other, "limits: { api: { rate: 20/s, mode: shadow } }\n");
  const ProgramRun diff = instance.tool({"config", "diff", other});
  EXPECT_TRUE(has(diff.out, "limit api: act 1 by hand (enforced) holds against mode: shadow"))
      << diff.out;
  test::write_file(other, "limits: { api: { rate: 20/s } }\n");
  EXPECT_FALSE(has(instance.tool({"config", "diff", other}).out, "by hand"));

  ASSERT_EQ(instance.tool({"limit", "ban", "api", "mallory"}).code, 0);
  EXPECT_FALSE(has(instance.tool({"doctor"}).out, "something else of this key"));
  instance.place().write_config(
      "limits: { api: { rate: 10/s, keys: { mallory: { rate: 1/s } } } }\n");
  ASSERT_EQ(instance.tool({"config", "reload"}).code, 0);
  const std::string doctor = instance.tool({"doctor"}).out;
  EXPECT_TRUE(has(doctor, "limit api: ban by act 2, the configuration says something else"));
  EXPECT_FALSE(has(doctor, "enforced by act 1")) << "the file enforces it now";
}

TEST(Acts, AnActThatBeatsAPatternOfTheFileIsNamedByDoctorAndDiff) {
  const std::string yaml =
      "limits: { api: { rate: 10/s, show-keys: shown, keys: { 'partner:*': { rate: 5/s } } } }\n";
  Instance instance(yaml);
  ASSERT_EQ(instance.tool({"limit", "override", "api", "partner:q", "--unlimited"}).code, 0);
  ASSERT_EQ(instance.tool({"limit", "ban", "api", "elsewhere"}).code, 0);

  const std::string doctor = instance.tool({"doctor"}).out;
  EXPECT_TRUE(has(doctor, "limit api: override by act 1, the configuration has a pattern for this "
                          "key"))
      << doctor;
  EXPECT_FALSE(has(doctor, "by act 2")) << doctor;
  const std::string other = instance.place().path() + "/other.yaml";
  test::write_file(other, yaml);
  const ProgramRun diff = instance.tool({"config", "diff", other});
  EXPECT_TRUE(has(diff.out, "limit api, key partner:q: override by hand (act 1) holds, not what "
                            "the file lists for partner:* (5/s)"))
      << diff.out;
  EXPECT_FALSE(has(diff.out, "elsewhere")) << diff.out;
}

TEST(Acts, WhatTheDaemonRefusesIsRefusedAndNotDamage) {
  Instance instance(
      "limits: { api: { rate: 10/s, keys: { mallory: banned } } }\n"
      "breakers: { 'bank-*': { max-instances: 1 } }\n");
  const ProgramRun unban = instance.tool({"limit", "unban", "api", "mallory"});
  EXPECT_EQ(unban.code, 1) << unban.err;
  EXPECT_TRUE(has(unban.err, "banned by the configuration")) << unban.err;
  ASSERT_EQ(instance.tool({"breaker", "force-open", "bank-a"}).code, 0);
  const ProgramRun full = instance.tool({"breaker", "force-open", "bank-b"});
  EXPECT_EQ(full.code, 1) << full.err;
}

TEST(Acts, CreditDrainAndReset) {
  Instance instance(kTwoLimits);
  Client client = instance.client();
  auto api = client.limit("api").value();
  for (int i = 0; i < 10; ++i) api.try_acquire("alice");

  EXPECT_EQ(instance.tool({"limit", "credit", "api", "alice", "4"}).code, 0);
  EXPECT_EQ(api.peek("alice").remaining(), 3U);  // of 4 one would go
  EXPECT_EQ(instance.tool({"limit", "drain", "api", "alice"}).code, 0);
  EXPECT_FALSE(api.peek("alice").allowed());
  EXPECT_EQ(instance.tool({"limit", "reset", "api", "alice"}).code, 0);
  EXPECT_EQ(api.peek("alice").remaining(), 9U);
}

TEST(Acts, OverrideIsListedAndCanBeUndone) {
  Instance instance(kTwoLimits);
  Client client = instance.client();
  auto api = client.limit("api").value();

  const ProgramRun act =
      instance.tool({"limit", "override", "api", "partner", "--rate", "1/s", "--burst", "2"});
  ASSERT_EQ(act.code, 0) << act.err;
  const auto journal = instance.json({"journal", "list"});
  ASSERT_EQ(journal["journal"].size(), 1U);
  EXPECT_EQ(journal["journal"][0]["limit"], "api");
  EXPECT_EQ(journal["journal"][0]["state"], "stands");
  instance.step_by(200'000'000);  // a change takes effect a moment ahead
  EXPECT_TRUE(api.try_acquire("partner").allowed());
  EXPECT_TRUE(api.try_acquire("partner").allowed());
  EXPECT_FALSE(api.try_acquire("partner").allowed());

  ASSERT_EQ(instance.tool({"limit", "override", "api", "free", "--unlimited"}).code, 0);
  EXPECT_TRUE(has(instance.tool({"journal", "list"}).out, "override unlimited"));
  const auto both = instance.json({"journal", "list"})["journal"];
  EXPECT_EQ(both[1]["unlimited"], true);
  EXPECT_FALSE(both[0].contains("unlimited")) << both.dump();
  ASSERT_EQ(instance.tool({"limit", "override", "api", "free", "--end"}).code, 0);

  const std::string id = std::to_string(journal["journal"][0]["id"].get<std::uint64_t>());
  EXPECT_EQ(instance.tool({"journal", "undo", id}).code, 0);
  const auto after = instance.json({"journal", "list"});
  ASSERT_EQ(after["journal"].size(), 2U) << after.dump();
  EXPECT_EQ(after["journal"][0]["state"], "undone");
}

TEST(Acts, ExplainNamesTheOverrideThatDecidesOfALimitOfSeveralWindows) {
  Instance instance(kTwoLimits);
  Client client = instance.client();
  ASSERT_EQ(instance.tool({"limit", "override", "tenant", "acme", "--rate", "5/s"}).code, 0);
  instance.step_by(200'000'000);  // a change takes effect a moment ahead

  const ProgramRun run = instance.tool({"limit", "explain", "tenant", "acme"});

  EXPECT_TRUE(has(run.out, "allowed: 4 tokens left after this ask of 1\n")) << run.out;
  EXPECT_TRUE(has(run.out, "not by the limit's own numbers: 5/s burst 5\n")) << run.out;
  EXPECT_FALSE(has(run.out, "window 1 of 2")) << run.out;
  instance.daemon().kill();
  EXPECT_TRUE(has(instance.tool({"limit", "explain", "tenant", "acme"}).out, ": 5/s burst 5\n"));
  EXPECT_TRUE(has(instance.tool({"limit", "override", "--help"}).out, "replaces all windows"));
}

TEST(Acts, SayWhatIsMissing) {
  Instance instance(kTwoLimits);

  EXPECT_EQ(instance.tool({"limit", "override", "api", "x"}).code, 2);
  EXPECT_EQ(instance.tool({"limit", "override", "api", "x", "--rate", "10"}).code, 2);
  EXPECT_EQ(instance.tool({"limit", "ban", "nosuch", "x"}).code, 6);
  EXPECT_EQ(instance.tool({"limit", "top", "nosuch"}).code, 6);
  EXPECT_TRUE(has(instance.tool({"limit", "top", "ap"}).err, "did you mean 'api'?"));
  for (const char* verb : {"ban", "unban", "override"}) {
    EXPECT_EQ(instance.tool({"limit", verb, "api", ""}).code, 2) << verb;
  }
  EXPECT_EQ(instance.tool({"limit", "credit", "api", "x", "0"}).code, 2);
  EXPECT_EQ(instance.tool({"journal", "undo", "77"}).code, 6);
}

}  // namespace
}  // namespace cutwater::ctl
