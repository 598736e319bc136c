// SPDX-License-Identifier: Apache-2.0
// `cutwaterctl breaker force-open` and its like: what they do, the journal, and what comes back.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "shm/breaker/breaker.hpp"
#include "shm/directory.hpp"
#include "shm/segment.hpp"
#include "scenes.hpp"
#include "tool.hpp"

namespace cutwater::ctl {
namespace {

std::string state_of(const Instance& instance, const std::string& breaker) {
  const ProgramRun run = instance.tool({"breaker", "get", breaker, "-o", "json"});
  return parse(run.out)["state"];
}

/// What a program that maps the memory may do beside the daemon.
void close_by_library(const Instance& instance, const std::string& breaker) {
  shm::DirectoryQuery query;
  query.setting = instance.place().memory();
  query.create = false;
  const auto directory = shm::open_directory(query);
  ASSERT_TRUE(directory) << directory.error().text();
  const auto segment = shm::Segment::open_files(directory->fd.get(), shm::Access::Client);
  ASSERT_TRUE(segment) << segment.error().text();
  const shm::View& view = segment->view();
  EXPECT_EQ(shm::steer_breaker(view, shm::find_breaker(view, breaker), shm::Steer::ToClosed, 0, 0),
            shm::Steered::Done);
}

TEST(BreakerActs, ManualStatesHoldForTheirTimeAndAreJournalled) {
  Instance instance(kTwoBreakers);
  Client client = instance.client();
  Breaker fraud = client.breaker("fraud").value();

  const ProgramRun forced = instance.tool(
      {"breaker", "force-open", "fraud", "--for", "10m", "--note", "their maintenance"});
  EXPECT_EQ(forced.code, 0) << forced.err;
  EXPECT_EQ(forced.out,
            "fraud FORCED_OPEN for 600 s\nact 1: `cutwaterctl journal undo 1` ends it\n");
  EXPECT_EQ(fraud.try_enter().refusal().reason(), Reason::Open);
  const auto refused = fraud.try_enter().refusal();
  EXPECT_EQ(refused.retry_after(), std::chrono::minutes(10)) << "exact";
  const ProgramRun why = instance.tool({"breaker", "explain", "fraud"});
  EXPECT_EQ(why.code, 1);
  EXPECT_TRUE(has(why.out, "their maintenance")) << why.out;
  EXPECT_TRUE(has(instance.tool({"breaker", "get", "fraud"}).out, "act 1 of uid")) << why.out;

  EXPECT_EQ(instance.tool({"breaker", "metrics-only", "fraud"}).code, 0);
  EXPECT_EQ(state_of(instance, "fraud"), "METRICS_ONLY");
  fail(fraud, 20);
  EXPECT_EQ(state_of(instance, "fraud"), "METRICS_ONLY");
  EXPECT_EQ(instance.tool({"breaker", "disable", "fraud", "--for", "1h"}).code, 0);
  EXPECT_EQ(state_of(instance, "fraud"), "DISABLED");

  const auto journal = instance.json({"journal", "list"})["journal"];
  ASSERT_EQ(journal.size(), 3U);
  EXPECT_EQ(journal[0]["to"], "FORCED_OPEN");
  EXPECT_EQ(journal[0]["state"], "replaced");
  EXPECT_EQ(journal[1]["state"], "replaced");
  EXPECT_EQ(journal[2]["state"], "stands");
  EXPECT_EQ(journal[2]["breaker"], "fraud");
  EXPECT_TRUE(has(instance.tool({"journal", "list"}).out, "DISABLED      breaker fraud"));

  EXPECT_EQ(instance.tool({"journal", "undo", "3"}).code, 0);
  EXPECT_EQ(state_of(instance, "fraud"), "CLOSED");
  EXPECT_EQ(instance.json({"journal", "list"})["journal"][2]["state"], "undone");
}

TEST(BreakerActs, OfWhatIsSwitchedOffSaysThatItHasNoEffect) {
  Instance instance("breakers: { live: {}, off: {enabled: false} }\n");
  Client client = instance.client();
  const std::string off =
      "; NO EFFECT now: enabled of this breaker is false, every call is granted";
  const std::string all = "; NO EFFECT now: instance.enabled is false, every call is granted";

  const ProgramRun alone = instance.tool({"breaker", "force-open", "off", "--for", "1m"});
  EXPECT_EQ(alone.code, 0) << alone.err;
  EXPECT_TRUE(has(alone.out, "off FORCED_OPEN for 60 s" + off)) << alone.out;
  EXPECT_TRUE(client.breaker("off")->try_enter());
  EXPECT_TRUE(has(instance.tool({"breaker", "reset", "off"}).out, off));
  EXPECT_FALSE(has(instance.tool({"breaker", "force-open", "live"}).out, "NO EFFECT"));

  instance.place().write_config(
      "instance: {enabled: false}\nbreakers: { live: {}, off: {enabled: false} }\n");
  ASSERT_EQ(instance.tool({"config", "reload"}).code, 0);
  for (const char* verb : {"force-open", "disable", "metrics-only", "auto", "reset"}) {
    const ProgramRun run = instance.tool({"breaker", verb, "live"});
    EXPECT_TRUE(has(run.out, all)) << verb << ": " << run.out;
  }
}

TEST(BreakerActs, AutoAndResetEndWhatAHandBegan) {
  Instance instance(kTwoBreakers);
  Client client = instance.client();
  Breaker stock = client.breaker("stock").value();

  instance.tool({"breaker", "force-open", "stock"});
  const ProgramRun back = instance.tool({"breaker", "auto", "stock"});
  EXPECT_EQ(back.out, "stock decides by itself again: the next call is a probe\n");
  EXPECT_EQ(instance.json({"journal", "list"})["journal"][0]["state"], "undone");
  const ProgramRun again = instance.tool({"breaker", "auto", "stock"});
  EXPECT_EQ(again.code, 0);
  EXPECT_EQ(again.out, "stock decides by itself already: it is OPEN\n");

  instance.tool({"breaker", "force-open", "stock"});
  EXPECT_EQ(instance.tool({"breaker", "reset", "stock"}).out,
            "stock is CLOSED, its window empty, no opening counted\n");
  EXPECT_EQ(state_of(instance, "stock"), "CLOSED");
  fail(stock, 4);
  EXPECT_EQ(state_of(instance, "stock"), "OPEN");
  instance.tool({"breaker", "reset", "stock"});
  EXPECT_EQ(state_of(instance, "stock"), "CLOSED");
}

TEST(BreakerActs, AutoAndResetAreJournalledWithTheirNotes) {
  Instance instance(kTwoBreakers);
  instance.tool({"breaker", "force-open", "stock"});
  const auto freed =
      parse(instance.tool({"breaker", "auto", "stock", "--note", "mended", "-o", "json"}).out);
  instance.tool({"breaker", "reset", "stock", "--note", "from the beginning"});
  instance.tool({"breaker", "auto", "stock"});  // changes nothing and says nothing

  EXPECT_EQ(freed["saved"], "saved");
  EXPECT_FALSE(freed.contains("act")) << "nothing stands by it";
  for (const bool restarted : {false, true}) {
    if (restarted) {
      instance.daemon().kill(SIGKILL);
      instance.start_again();
    }
    const auto journal = instance.json({"journal", "list"})["journal"];
    ASSERT_EQ(journal.size(), 3U) << journal.dump();
    EXPECT_EQ(journal[0]["state"], "undone");
    EXPECT_EQ(journal[1]["do"], "auto");
    EXPECT_EQ(journal[1]["state"], "done");
    EXPECT_EQ(journal[1]["note"], "mended");
    EXPECT_EQ(journal[2]["do"], "reset");
    EXPECT_EQ(instance.json({"breaker", "get", "stock"})["act"]["note"], "from the beginning");
  }
  EXPECT_TRUE(has(instance.tool({"journal", "list"}).out, "reset        breaker stock"));
  EXPECT_EQ(instance.tool({"journal", "undo", "3"}).code, 6) << "it does not stand";
}

TEST(BreakerActs, AStateByHandEndsByItsTimeWithoutAnybodysHelp) {
  Instance instance(kTwoBreakers);
  Client client = instance.client();
  Breaker stock = client.breaker("stock").value();
  instance.tool({"breaker", "disable", "stock", "--for", "10s"});

  instance.step_by(10 * kSecond);

  EXPECT_TRUE(has(instance.tool({"breaker", "list"}).out, "DISABLED, CLOSED ready"));
  EXPECT_TRUE(stock.try_enter().granted());
  EXPECT_EQ(state_of(instance, "stock"), "CLOSED");
  EXPECT_TRUE(test::eventually([&] {
    return instance.json({"journal", "list"})["journal"][0]["state"] == "expired";
  }));
}

TEST(BreakerActs, AStateByHandComesBackAfterARebootWithItsEnd) {
  Instance instance(kTwoBreakers);
  instance.tool({"breaker", "force-open", "fraud", "--for", "10m", "--note", "maintenance"});
  instance.tool({"breaker", "disable", "stock"});
  for (const bool reboot : {false, true}) {
    instance.daemon().kill(SIGKILL);
    if (reboot) std::filesystem::remove_all(instance.place().memory());
    instance.start_again();
    ASSERT_TRUE(instance.ready()) << instance.daemon().log();

    const ProgramRun get = instance.tool({"breaker", "get", "fraud", "-o", "json"});
    const auto fraud = parse(get.out);
    EXPECT_EQ(get.code, 1);
    EXPECT_EQ(fraud["state"], "FORCED_OPEN") << "reboot " << reboot;
    EXPECT_EQ(fraud["act"]["note"], "maintenance");
    EXPECT_LE(fraud["expires_ns"], 600 * kSecond);
    EXPECT_GT(fraud["expires_ns"], 0);
    EXPECT_EQ(state_of(instance, "stock"), "DISABLED") << "reboot " << reboot;
  }
  EXPECT_TRUE(has(instance.daemon().log(), "breaker fraud is FORCED_OPEN again, by act 1"));
}

TEST(BreakerActs, WhatAnotherHandEndedIsNotPutBack) {
  Instance instance(kTwoBreakers);
  instance.tool({"breaker", "force-open", "stock"});
  close_by_library(instance, "stock");

  EXPECT_TRUE(test::eventually([&] {
    return instance.json({"journal", "list"})["journal"][0]["state"] == "replaced";
  }));
  instance.daemon().kill(SIGKILL);
  instance.start_again();

  EXPECT_EQ(state_of(instance, "stock"), "CLOSED");
}

TEST(BreakerActs, AnActForABlockThatCameBackIsInForceAgain) {
  Instance instance(kTwoBreakers);
  instance.tool({"breaker", "force-open", "stock"});
  instance.place().write_config("capacity: { keys: 1024 }\nbreakers: { fraud: {} }\n");
  ASSERT_EQ(instance.tool({"config", "reload"}).code, 0);
  EXPECT_EQ(instance.tool({"breaker", "get", "stock"}).code, 6);

  instance.place().write_config(kTwoBreakers);
  ASSERT_EQ(instance.tool({"config", "reload"}).code, 0);

  EXPECT_EQ(state_of(instance, "stock"), "FORCED_OPEN");
}

// A program and the tool are refused in the same words by who may not steer.
TEST(BreakerActs, ALibraryWithoutTheRightIsRefusedAsTheToolIs) {
  if (!test::is_root()) GTEST_SKIP() << "only root can become another user";
  if (!test::others_may_run(tool_program())) GTEST_SKIP() << test::kBuildIsClosed;
  ScratchPlace place;
  const std::string socket = place.path() + "/open.sock";
  place.write_config(kTwoBreakers + "access: { map: { users: [\"*\"] } }\n");
  DaemonProcess daemon(place, {.arguments = {"--set", "listen.unix.path=" + socket, "--set",
                                             "listen.unix.mode=0666"}});
  ASSERT_TRUE(daemon.ready()) << daemon.log();
  const std::string tool = test::as_user(65534, 65534, {}, [&] {
    return run_tool({"--address", "unix:" + socket, "breaker", "reset", "fraud"}).err;
  });
  for (const char* how : {"", "?ask"}) {
    const std::string told = test::as_user(65534, 65534, {}, [&] {
      auto client = Client::open("unix:" + socket + how);
      if (!client) return client.error().text();
      auto fraud = client->breaker("fraud");
      if (!fraud) return fraud.error().text();
      const auto moved = fraud->transition_to(BreakerStatus::Open);
      if (moved || fraud->state() != BreakerStatus::Closed) return std::string("it was moved");
      return std::string(name_of(moved.error().code())) + ": " + moved.error().text();
    });
    EXPECT_TRUE(told.starts_with("not_permitted: ")) << told;
    EXPECT_EQ("cutwaterctl: " + told.substr(15) + "\n", tool);
  }
}

}  // namespace
}  // namespace cutwater::ctl
