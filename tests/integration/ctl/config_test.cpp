// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <csignal>
#include <string>

#include <cutwater/breaker.hpp>
#include <cutwater/bulkhead.hpp>

#include "tool.hpp"

namespace cutwater::ctl {
namespace {

ProgramRun check(const ScratchPlace& place, const std::string& yaml) {
  place.write_config(yaml);
  return run_tool({"config", "check", place.config()});
}

TEST(ConfigCheck, SaysWhatAGoodFileReserves) {
  ScratchPlace place;

  const ProgramRun run =
      check(place, "capacity: { keys: 1024 }\nlimits: { api: { rate: 10/s } }\n");

  EXPECT_EQ(run.code, 0) << run.out;
  EXPECT_NE(run.out.find(": good, 1 limits, config "), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("keys"), std::string::npos);
  EXPECT_NE(run.out.find("32768   32.0 KiB"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("in all"), std::string::npos);
}

// covers: C131 (command line)
// A typo is never ignored; all errors in one pass, each with its place and what to write.
TEST(ConfigCheck, NamesEveryErrorWithItsPlaceAndRemedy) {
  ScratchPlace place;

  const ProgramRun run = check(place,
                               "limits:\n"
                               "  api:\n"
                               "    rate: 10/s\n"
                               "    brust: 20\n"
                               "  login:\n"
                               "    rate: \"10\"\n"
                               "  sms: { rate: 0/s }\n"
                               "  sms: { rate: 5/s }\n"
                               "max-wait: 1s\n"
                               "log: { level: [] }\n");

  EXPECT_EQ(run.code, 4);
  const std::string file = place.config();
  for (const std::string& part :
       {file + ":4:5: limits.api.brust: unknown key; did you mean 'burst'?",
        file + ":6:11: limits.login.rate: ", file + ":7:", file + ":8:3: limits.sms: ",
        file + ":9:1: max-wait: ", file + ":10:"}) {
    EXPECT_NE(run.out.find(part), std::string::npos) << part << "\n" << run.out;
  }
  EXPECT_NE(run.out.find("6 errors; a daemon refuses this file"), std::string::npos) << run.out;
  const ProgramRun json = run_tool({"config", "check", file, "-o", "json"});
  EXPECT_EQ(json.code, 4);
  EXPECT_EQ(parse(json.out)["ok"], false);
  EXPECT_EQ(parse(json.out)["errors"].size(), 6U);
}

TEST(ConfigCheck, APatternAsItComesFitsAndOneBeyondAWrittenCapacityDoesNot) {
  ScratchPlace place;
  const ProgramRun fits = check(place,
                                "breakers: { 'bank-*': {}, fraud: {} }\n"
                                "bulkheads: { 'bank-*': {}, fraud: {} }\n");
  const ProgramRun beyond =
      check(place, "capacity: { breakers: 64 }\nbreakers: { 'bank-*': {} }\n");

  EXPECT_EQ(fits.code, 0) << fits.out;
  EXPECT_EQ(beyond.code, 4) << beyond.out;
  EXPECT_NE(beyond.out.find("max-instances"), std::string::npos) << beyond.out;
}

TEST(ConfigCheck, SuggestsTheKeyThatGoesOnAndWhatARateIs) {
  ScratchPlace place;

  const ProgramRun run = check(place,
                               "breakers: { b: { wait-duration: 5s } }\n"
                               "bulkheads: { g: { max-wait: 5s } }\n"
                               "limits: { api: { rate: 5/x } }\n");

  EXPECT_EQ(run.code, 4);
  for (const char* part : {"did you mean 'wait-duration-in-open-state'?",
                           "did you mean 'max-wait-duration'?",
                           "\"5/x\" has no known period; write 5/s, 5/m, 5/h or 5/d"}) {
    EXPECT_NE(run.out.find(part), std::string::npos) << part << "\n" << run.out;
  }
}

TEST(ConfigCheck, SaysTheSameAsTheDaemon) {
  ScratchPlace place;
  const ProgramRun tool = check(place, "limits: { api: { rat: 10/s }, b: { rate: 1/x } }\n");

  const ProgramRun daemon =
      test::run_program({DaemonProcess::program(), "--config", place.config(), "--check-config"});

  EXPECT_EQ(tool.code, 4);
  EXPECT_EQ(daemon.code, 4);
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = tool.out.find('\n', begin)) != std::string::npos;) {
    const std::string line = tool.out.substr(begin, end - begin);
    begin = end + 1;
    if (line.find("errors; ") != std::string::npos) continue;
    EXPECT_NE((daemon.out + daemon.err).find(line), std::string::npos) << line;
  }
}

TEST(ConfigCheck, RefusesAFileThatIsNotThere) {
  const ProgramRun run = run_tool({"config", "check", "/nonexistent/cutwater.yaml"});

  EXPECT_EQ(run.code, 4);
  EXPECT_NE(run.out.find("/nonexistent/cutwater.yaml"), std::string::npos) << run.out;
}

TEST(ConfigReload, TakesOverAGoodFile) {
  Instance instance("limits: { api: { rate: 10/s } }\n");
  instance.place().write_config("limits: { api: { rate: 20/s }, sms: { rate: 1/s } }\n");
  EXPECT_FALSE(instance.tool({"config", "reload", "--dry"}).out.ends_with("\n\n"));

  const ProgramRun run = instance.tool({"config", "reload"});

  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(instance.json({"limit", "list"})["limits"].size(), 2U);
}

TEST(ConfigReload, TheVerdictCountsBreakersAndBulkheadsToo) {
  // Unwatched: else the daemon may take the file over by itself before it is asked to.
  const std::string unwatched = "instance: {watch-file: false}\n";
  Instance instance(unwatched + "breakers: { a: {}, b: {} }\nbulkheads: { c: {} }\n");
  instance.place().write_config(
      unwatched +
      "breakers: { a: {wait-duration-in-open-state: 7s}, d: {} }\nbulkheads: { c: {} }\n");

  const ProgramRun run = instance.tool({"config", "reload"});

  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_NE(run.out.find("breakers: 1 added, 1 changed, 1 removed, 0 unchanged; "
                         "bulkheads: 0 added, 0 changed, 0 removed, 1 unchanged"),
            std::string::npos)
      << run.out;
}

TEST(ConfigReload, WhatProtectsNobodyIsShown) {
  const std::string blocks = "breakers: { a: {}, b: {enabled: false} }\n"
                             "bulkheads: { shut: {max-concurrent-calls: 0} }\n"
                             "limits: { s: {rate: 1/s, mode: shadow} }\n";
  Instance instance(blocks);
  EXPECT_NE(instance.tool({"status"}).out.find("not protecting: breaker b, limit in shadow s\n"),
            std::string::npos)
      << instance.tool({"status"}).out;
  auto client = instance.client();
  Breaker breaker = client.breaker("a").value();
  Bulkhead bulkhead = client.bulkhead("shut").value();
  ASSERT_EQ(instance.tool({"breaker", "force-open", "a"}).code, 0);
  EXPECT_FALSE(breaker.try_enter());
  EXPECT_FALSE(bulkhead.try_enter());

  instance.place().write_config("instance: {enabled: false}\n" + blocks);
  ASSERT_EQ(instance.tool({"config", "reload"}).code, 0);

  EXPECT_NE(instance.tool({"status"}).out.find(
                "not protecting: all breakers and bulkheads: instance.enabled is false"),
            std::string::npos)
      << instance.tool({"status"}).out;
  EXPECT_NE(instance.tool({"doctor"}).out.find("breakers and bulkheads let everything through"),
            std::string::npos);
  EXPECT_TRUE(test::eventually([&] { return static_cast<bool>(breaker.try_enter()); }));
  EXPECT_TRUE(test::eventually([&] { return static_cast<bool>(bulkhead.try_enter()); }));
  instance.place().write_config(blocks);
  ASSERT_EQ(instance.tool({"config", "reload"}).code, 0);
  EXPECT_TRUE(test::eventually([&] { return !breaker.try_enter() && !bulkhead.try_enter(); }));
}

TEST(ManualActs, EndAtAWholeSecondAndASmallerTimeIsRefused) {
  Instance instance("limits: { api: { rate: 10/s } }\n");

  const ProgramRun run = instance.tool({"limit", "ban", "api", "alice", "--for", "1100ms"});

  EXPECT_EQ(run.code, 2);
  EXPECT_NE(run.err.find("--for: an act by hand ends at a whole second; write 2s"),
            std::string::npos)
      << run.err;
}

TEST(ConfigReload, PrintsEveryErrorAndChangesNothing) {
  Instance instance("limits: { api: { rate: 10/s } }\n");
  instance.place().write_config("limits: { api: { rat: 20/s }, sms: { rate: 0/s } }\n");

  const ProgramRun run = instance.tool({"config", "reload"});

  EXPECT_EQ(run.code, 4);
  EXPECT_EQ(run.out, "");
  EXPECT_NE(run.err.find("limits.api.rat"), std::string::npos) << run.err;
  EXPECT_NE(run.err.find("limits.sms.rate"), std::string::npos) << run.err;
  EXPECT_EQ(instance.json({"limit", "list"})["limits"].size(), 1U);
}

TEST(ConfigReload, WhatWasRefusedIsSaidUntilItIsTakenOver) {
  const std::string good = "capacity: { keys: 1024 }\nlimits: { api: { rate: 10/s } }\n";
  const struct { std::string yaml, part, remedy, event; } bad[] = {
      {"limits: { api: [ }\n", ":1:", "config check ", "1:"},
      {"limits:\n  api: { rate: 20/s, brust: 9 }\n", ":2:22: limits.api.brust: unknown key",
       "config check ", "2:22 limits.api.brust: unk"},
      {"limits: { api: { rate: 10/s } }\ncapacity: { keys: 1000000 }\n",
       "capacity.keys: changed from '1024' to '1000000', above the 1024 reserved",
       "restart the daemon", "capacity.keys"},
      {"limits: { api: { rate: 1/s, keys: { mallory: { rat: 1/s } } } }\n", "limits.api.keys", "",
       " limits.api"}};
  Instance instance(good);
  for (const auto& one : bad) {
    instance.place().write_config(one.yaml);
    ASSERT_EQ(instance.tool({"config", "reload"}).code, 4);

    const ProgramRun doctor = instance.tool({"doctor"});
    EXPECT_EQ(doctor.code, 4) << one.yaml;
    for (const std::string& part : {std::string("its last reload was refused: "), one.part,
                                    one.remedy, instance.place().config()}) {
      EXPECT_NE(doctor.out.find(part), std::string::npos) << part << "\n" << doctor.out;
    }
    EXPECT_NE(instance.tool({"status"}).out.find(one.part), std::string::npos) << one.yaml;
    const std::string events = instance.tool({"events"}).out;
    const std::string event = events.substr(events.rfind("config_refused"));
    EXPECT_NE(event.find(one.event), std::string::npos) << event;
    EXPECT_EQ(event.find("mallory"), std::string::npos) << "a caller's key: " << event;
  }

  instance.place().write_config(good);
  ASSERT_EQ(instance.tool({"config", "reload"}).code, 0);

  EXPECT_FALSE(instance.json({"status"}).contains("config_refused"));
  EXPECT_EQ(instance.tool({"doctor"}).out.find("refused"), std::string::npos);
}

TEST(Doctor, LooksAtTheFileThatNobodyWatches) {
  const std::string head = "instance: { watch-file: false }\ncapacity: { keys: 1024 }\n";
  Instance instance(head + "limits: { api: { rate: 10/s } }\n");
  EXPECT_EQ(instance.tool({"doctor"}).out.find("config: "), std::string::npos);

  instance.place().write_config(head + "limits: { api: { rat: 20/s } }\n");
  const ProgramRun broken = instance.tool({"doctor"});
  EXPECT_EQ(broken.code, 4);
  EXPECT_NE(broken.out.find("the next reload or restart will be refused: 2 errors, the first: " +
                            instance.place().config() + ":3:11: limits.api: has no rate"),
            std::string::npos)
      << broken.out;

  instance.place().write_config(head + "limits: { api: { rate: 20/s } }\n");
  EXPECT_NE(instance.tool({"doctor"}).out.find("was changed and is not in force"),
            std::string::npos);
  ASSERT_EQ(instance.tool({"config", "reload"}).code, 0);
  EXPECT_EQ(instance.tool({"doctor"}).out.find("config: "), std::string::npos);
}

TEST(ConfigDiff, NamesActsByHandThatHoldAgainstKeysOfTheFile) {
  Instance instance("limits: { api: { rate: 10/s }, sms: { rate: 1/s } }\n");
  ASSERT_EQ(instance.tool({"limit", "ban", "api", "mallory"}).code, 0);
  ASSERT_EQ(instance.tool({"limit", "override", "api", "alice", "--unlimited"}).code, 0);
  ScratchPlace other;
  other.write_config("limits: { api: { rate: 10/s, keys: { mallory: { rate: 50/s }, alice: "
                     "banned, bob: banned } }, sms: { rate: 1/s } }\n");

  const ProgramRun run = instance.tool({"config", "diff", other.config()});

  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_NE(run.out.find("limit api, key mallory: ban by hand (act 1) holds, not what the file "
                         "lists for it (50/s); `cutwaterctl journal undo 1` ends it\n"),
            std::string::npos)
      << run.out;
  EXPECT_NE(run.out.find("limit api, key alice: override by hand (act 2) holds, not what the file "
                         "lists for it (banned)"),
            std::string::npos)
      << run.out;
  EXPECT_EQ(run.out.find("bob: "), std::string::npos) << run.out;
  ASSERT_EQ(instance.tool({"journal", "undo", "1"}).code, 0);
  EXPECT_EQ(instance.json({"config", "diff", other.config()})["held_by_hand"].size(), 1U);
}

TEST(ConfigReload, NeedsTheDaemon) {
  Instance instance("limits: { api: { rate: 10/s } }\n");
  instance.daemon().kill(SIGKILL);

  EXPECT_EQ(instance.tool({"config", "reload"}).code, 3);
}

}  // namespace
}  // namespace cutwater::ctl
