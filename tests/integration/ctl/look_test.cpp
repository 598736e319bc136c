// SPDX-License-Identifier: Apache-2.0
// C137: with a daemon that runs, is stopped, is dead, and with no memory at all, the tool says what
// it read from where, never waits for long, never lies with an empty list, and never writes a byte.
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "ctl/look.hpp"
#include "tool.hpp"

namespace cutwater::ctl {
namespace {

const std::string kYaml =
    "capacity: { keys: 1024 }\n"
    "limits:\n"
    "  api: { rate: 10/s, burst: 10, note: for the tests }\n"
    "  login: { rate: 5/m }\n";

/// Every command that only looks.
const std::vector<std::vector<std::string>> kLooks = {{"status"},
                                                      {"clients"},
                                                      {"limit", "list"},
                                                      {"limit", "get", "api"},
                                                      {"limit", "peek", "api", "alice"},
                                                      {"events"},
                                                      {"verify"}};

TEST(Status, OfARunningDaemon) {
  Instance instance(kYaml);
  Client client = instance.client();
  auto api = client.limit("api").value();
  for (int i = 0; i < 12; ++i) api.try_acquire("alice");

  const ProgramRun run = instance.tool({"status"});

  EXPECT_EQ(run.code, 0);
  EXPECT_EQ(run.err, "");
  EXPECT_TRUE(has(run.out, "daemon      running, pid " + std::to_string(instance.daemon().pid())));
  EXPECT_TRUE(has(run.out, "instance    main, "));
  EXPECT_FALSE(has(run.out, "\x1b")) << "colours although the output is no terminal";
  const auto json = instance.json({"status"});
  EXPECT_EQ(json["source"], "daemon");
  EXPECT_EQ(json["daemon"], "running");
  EXPECT_EQ(json["clock"], "stepped");
  EXPECT_EQ(json["slots"], 2048);
  EXPECT_EQ(json["clients"], 1);
  EXPECT_TRUE(json["advice"].empty());
  EXPECT_EQ(json["counters"][0]["limit"], "api");
  EXPECT_EQ(json["counters"][0]["allowed"], 10);
  EXPECT_EQ(json["counters"][0]["refused"], 2);
}

// covers: C037 (command line)
TEST(Clients, ListsAttachedProcessesWithTheirNamesEscaped) {
  Instance instance(kYaml);
  ClientOptions options;
  options.name = "evil\x1b[2Jname";
  const auto client = Client::open(instance.place().address(), options);
  ASSERT_TRUE(client.ok()) << client.error().text();

  const ProgramRun run = instance.tool({"clients"});

  EXPECT_EQ(run.code, 0);
  EXPECT_TRUE(has(run.out, std::to_string(::getpid()))) << run.out;
  EXPECT_TRUE(has(run.out, "evil")) << run.out;
  EXPECT_FALSE(has(run.out, "\x1b")) << run.out;
}

// covers: C137 (command line)
TEST(Look, ReadsTheMemoryOfADeadDaemon) {
  Instance instance(kYaml);
  Client client = instance.client();
  auto api = client.limit("api").value();
  for (int i = 0; i < 12; ++i) api.try_acquire("alice");
  instance.daemon().kill(SIGKILL);

  for (const auto& look : kLooks) {
    const ProgramRun run = instance.tool(look);
    SCOPED_TRACE(look.back());
    EXPECT_EQ(run.code, look[1 % look.size()] == "peek" ? 1 : 0) << run.err;
    EXPECT_TRUE(has(run.err + run.out, "daemon not running")) << run.err;
  }
  const auto json = instance.json({"status"});
  EXPECT_EQ(json["source"], "memory");
  EXPECT_EQ(json["daemon"], "not running");
  EXPECT_EQ(json["in_debt"], 1);
  EXPECT_EQ(json["clients"], 1);
  EXPECT_EQ(json["counters"][0]["allowed"], 10);
  EXPECT_EQ(json["advice"].size(), 1U);
  EXPECT_EQ(instance.json({"limit", "list"})["limits"].size(), 2U);
}

// covers: C137 (command line)
TEST(Look, SaysThatAStoppedDaemonDoesNotAnswer) {
  Instance instance(kYaml);
  instance.daemon().signal(SIGSTOP);

  for (const auto& look : kLooks) {
    std::vector<std::string> arguments = {"--timeout", "50ms"};
    arguments.insert(arguments.end(), look.begin(), look.end());
    const ProgramRun run = instance.tool(arguments);
    SCOPED_TRACE(look.back());
    EXPECT_EQ(run.code, 0) << run.err;
    if (look.front() != "verify") {
      EXPECT_TRUE(has(run.err, "daemon does not answer")) << run.err;
    }
  }
  const auto json = instance.json({"--timeout", "50ms", "status"});
  EXPECT_EQ(json["daemon"], "does not answer");
  EXPECT_EQ(json["source"], "memory");
  instance.daemon().signal(SIGCONT);
}

// covers: C137 (command line)
// Stopped after it has greeted: each question has its own deadline, and the memory answers instead.
TEST(Look, LeavesADaemonThatStopsBetweenTwoQuestions) {
  Instance instance(kYaml);
  Settings settings;
  settings.address = instance.place().address();
  settings.timeout = std::chrono::milliseconds{50};
  auto look = Look::open(settings);
  ASSERT_TRUE(look.ok()) << look.error().text();
  ASSERT_STREQ(look->source(), "daemon");

  instance.daemon().signal(SIGSTOP);
  const auto limits = look->read("limits");
  const auto limit = look->read_limit("api", "alice");
  instance.daemon().signal(SIGCONT);

  ASSERT_TRUE(limits.ok()) << limits.error().text();
  EXPECT_EQ(limits->size(), 2U);
  EXPECT_STREQ(look->source(), "memory");
  EXPECT_EQ(look->daemon(), "does not answer");
  EXPECT_TRUE(limit.ok());
}

// covers: C137 (command line)
// The memory is byte for byte what it was, also its statistics and events.
TEST(Look, NeverChangesAByte) {
  Instance instance(kYaml);
  Client client = instance.client();
  auto api = client.limit("api").value();
  for (int i = 0; i < 12; ++i) api.try_acquire("alice");
  instance.daemon().kill(SIGKILL);
  const std::string before = memory_bytes(instance.place());

  for (const auto& look : kLooks) instance.tool(look);
  instance.tool({"limit", "peek", "api", "new-key"});
  instance.tool({"limit", "get", "nothing"});

  EXPECT_TRUE(memory_bytes(instance.place()) == before);
}

// covers: C137 (command line)
TEST(Look, FailsWithoutDaemonAndMemory) {
  Instance instance(kYaml);
  instance.daemon().kill(SIGKILL);
  for (const char* file : {"rules", "state", "stats"}) {
    std::filesystem::remove(instance.place().memory() + "/" + file);
  }

  for (const auto& look : kLooks) {
    const ProgramRun run = instance.tool(look);
    SCOPED_TRACE(look.back());
    EXPECT_EQ(run.code, 3) << run.err;
    EXPECT_EQ(run.out, "");
    EXPECT_TRUE(has(run.err, "no memory in " + instance.place().memory())) << run.err;
  }
}

TEST(Look, ReadsANamedMemoryWithoutAsking) {
  Instance instance(kYaml);
  const std::string memory = instance.place().memory();

  const ProgramRun alive = run_tool({"--memory", memory, "status", "-o", "json"});
  instance.daemon().kill(SIGKILL);
  const ProgramRun dead = run_tool({"--memory", memory, "status", "-o", "json"});

  EXPECT_EQ(alive.code, 0);
  EXPECT_EQ(parse(alive.out)["source"], "memory");
  EXPECT_EQ(parse(alive.out)["daemon"], "running");
  EXPECT_EQ(dead.code, 0);
  EXPECT_EQ(parse(dead.out)["daemon"], "not running");
}

// covers: C137 (command line)
TEST(Look, TellsAnotherUserThatTheMemoryIsNotHis) {
  if (!test::is_root()) GTEST_SKIP() << "only root can become another user";
  if (!test::others_may_run(tool_program())) GTEST_SKIP() << test::kBuildIsClosed;
  Instance instance(kYaml);
  instance.daemon().kill(SIGKILL);
  const std::string memory = instance.place().memory();

  const std::string answer = test::as_user(65534, 65534, {}, [&] {
    const ProgramRun run = run_tool({"--memory", memory, "limit", "list"});
    return std::to_string(run.code) + "|" + run.out + "|" + run.err;
  });

  EXPECT_TRUE(answer.starts_with("5||cutwaterctl: ")) << answer;
  EXPECT_TRUE(has(answer, "only root and the daemon's user may read a memory")) << answer;
}

// covers: C137 (command line)
// What the daemon refuses is an answer: the memory is not tried behind its back.
TEST(Look, TellsAnotherUserWhatTheDaemonDoesNotPermit) {
  if (!test::is_root()) GTEST_SKIP() << "only root can become another user";
  if (!test::others_may_run(tool_program())) GTEST_SKIP() << test::kBuildIsClosed;
  ScratchPlace place;
  const std::string socket = place.path() + "/open.sock";
  const std::vector<std::string> arguments = {"--set", "listen.unix.path=" + socket, "--set",
                                              "listen.unix.mode=0666"};
  const auto as_nobody = [&](const std::vector<std::string>& command) {
    return test::as_user(65534, 65534, {}, [&] {
      std::vector<std::string> all = {"--address", "unix:" + socket};
      all.insert(all.end(), command.begin(), command.end());
      const ProgramRun run = run_tool(all);
      return std::to_string(run.code) + "|" + run.out + "|" + run.err;
    });
  };

  place.write_config(kYaml);
  {
    DaemonProcess daemon(place, {.arguments = arguments});
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    for (const char* look : {"status", "clients", "events"}) {
      const std::string answer = as_nobody({look});
      EXPECT_TRUE(answer.starts_with("5||cutwaterctl: ")) << look << ": " << answer;
    }
  }
  place.write_config(kYaml + "access: { map: { users: [\"*\"] } }\n");
  DaemonProcess daemon(place, {.arguments = arguments});
  ASSERT_TRUE(daemon.ready()) << daemon.log();
  EXPECT_TRUE(as_nobody({"limit", "list"}).starts_with("0|LIMIT")) << as_nobody({"limit", "list"});
  for (const std::vector<std::string>& steer :
       {std::vector<std::string>{"config", "reload"}, {"limit", "reset", "api", "alice"}}) {
    const std::string answer = as_nobody(steer);
    EXPECT_TRUE(answer.starts_with("5||cutwaterctl: ")) << answer;
  }
}

// covers: C042 (command line)
// A full table is visible, with what to do.
TEST(Status, AdvisesWhenKeysFindNoPlace) {
  Instance instance("capacity: { keys: 1024 }\nlimits: { api: { rate: 1/d, burst: 1 } }\n");
  Client client = instance.client();
  auto api = client.limit("api").value();
  std::uint64_t overflowed = 0;
  for (int i = 0; i < 6000; ++i)
    overflowed += api.try_acquire("key" + std::to_string(i)).overflow();
  ASSERT_GT(overflowed, 0U);

  const ProgramRun run = instance.tool({"status"});
  instance.daemon().kill(SIGKILL);  // the memory knows the fill at once
  const auto json = instance.json({"status"});

  EXPECT_EQ(run.code, 0);
  EXPECT_TRUE(has(run.out, "raise capacity.keys (now 1024) and restart the daemon")) << run.out;
  EXPECT_EQ(json["no_place"], overflowed);
  // From the first key without a place on, new keys start with the shared bucket's debt and are
  // refused; a refusal takes no place. That happens at about 0.8 of the slots, hardly below 0.6.
  EXPECT_GT(json["fill_permille"], 500);
  EXPECT_GT(json["in_debt"], 1024);
  EXPECT_EQ(json["counters"][0]["no_place"], overflowed);
}

}  // namespace
}  // namespace cutwater::ctl
