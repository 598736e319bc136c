// SPDX-License-Identifier: Apache-2.0
// `limit keys`: names of keys that mapped processes and the daemon inserted, as show-keys allows;
// of a dead daemon's memory too, and across a start with the setting switched.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tool.hpp"

namespace cutwater::ctl {
namespace {

std::string yaml(bool remember) {
  return "instance: { remember-keys: " + std::string(remember ? "true" : "false") +
         " }\n"
         "capacity: { keys: 1024 }\n"
         "limits:\n"
         "  api: { rate: 1/h, burst: 3, show-keys: shown }\n"
         "  hashed: { rate: 1/h, burst: 3 }\n";
}

std::set<std::string> keys_in(const nlohmann::json& document) {
  std::set<std::string> out;
  for (const auto& row : document["keys"]) out.insert(row["key"].get<std::string>());
  return out;
}

TEST(Keys, NamesOfWhatProcessesAndTheDaemonInserted) {
  Instance instance(yaml(true));
  Client mapped = instance.client();
  auto asks = Client::open(instance.place().address() + "?ask");
  ASSERT_TRUE(asks) << asks.error().text();
  for (int i = 0; i < 3; ++i) mapped.limit("api")->try_acquire("mapped");
  asks->limit("api")->try_acquire("asked");
  mapped.limit("api")->try_acquire(std::string(40, 'x'));
  mapped.limit("api")->try_acquire(std::string("a\0\x1b[31m", 7));
  mapped.limit("hashed")->try_acquire("secret");

  const ProgramRun run = instance.tool({"limit", "keys", "api"});

  EXPECT_EQ(run.code, 0) << run.err;
  for (const char* part : {"mapped ", "asked ", "4 of 4 in debt, of which 1 would be refused",
                           "hex:61001b5b33316d", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx... ",
                           "only the beginning of a longer key is kept"}) {
    EXPECT_TRUE(has(run.out, part)) << part << '\n' << run.out;
  }
  EXPECT_EQ(instance.json({"limit", "peek", "api", "hex:61001b5b33316d"})["remaining"], 1);
  EXPECT_FALSE(has(run.out, std::string(32, 'x')));
  EXPECT_FALSE(has(run.out, "without a name"));
  const auto first = instance.json({"limit", "keys", "api", "--refused-first", "--most", "1"});
  EXPECT_EQ(first["found"], 4);
  EXPECT_EQ(first["refused"], 1);
  ASSERT_EQ(first["keys"].size(), 1U);
  EXPECT_EQ(first["keys"][0]["key"], "mapped");
  EXPECT_EQ(first["keys"][0]["retry_after_ns"], 3600'000'000'000U);

  const ProgramRun hashed = instance.tool({"limit", "keys", "hashed"});
  EXPECT_TRUE(has(hashed.out, "1 without a name: show-keys of this limit is hashed")) << hashed.out;
  EXPECT_FALSE(has(hashed.out, "secret"));
  EXPECT_FALSE(has(memory_bytes(instance.place()), "secret")) << "kept though nobody may see it";
  EXPECT_EQ(instance.tool({"limit", "keys", "ap"}).code, 6);
  EXPECT_EQ(instance.tool({"limit", "keys", "api", "--most", "0"}).code, 2);
  EXPECT_EQ(instance.tool({"limit", "keys", "api", "--most", "10001"}).code, 2);
  EXPECT_FALSE(has(instance.daemon().log(), "mapped")) << "a key in the log";

  instance.daemon().kill();
  EXPECT_EQ(keys_in(instance.json({"limit", "keys", "api"})), keys_in(instance.json(
                                                                  {"limit", "keys", "api"})));
  EXPECT_TRUE(keys_in(instance.json({"limit", "keys", "api"})).contains("asked"));
  EXPECT_EQ(instance.tool({"limit", "keys", "ap"}).code, 6);
}

TEST(Keys, OfPartsAreGivenBackAsEveryListShowsThem) {
  Instance instance(yaml(true));
  const std::string acme("\0\4acme\0\5alice", 13);
  const std::string list = "[acme, alice]";
  Client mapped = instance.client();
  auto api = mapped.limit("api").value();
  for (int i = 0; i < 20; ++i) api.try_acquire(acme);
  EXPECT_EQ(instance.json({"limit", "keys", "api"})["keys"][0]["key"], list);
  EXPECT_TRUE(has(instance.tool({"limit", "keys", "api"}).out, list));
  const ProgramRun explain = instance.tool({"limit", "explain", "api", list});
  EXPECT_TRUE(has(explain.out, "api, key [acme, alice]\n  refused")) << explain.out;
  EXPECT_EQ(instance.tool({"limit", "peek", "api", "exact:[acme, alice]"}).code, 0) << "another";
  ASSERT_EQ(instance.tool({"limit", "ban", "api", list}).code, 0);
  EXPECT_EQ(api.try_acquire(acme).reason(), Reason::Banned);
  EXPECT_EQ(instance.json({"journal", "list"})["journal"][0]["key"], list);

  auto asks = Client::open(instance.place().address() + "?ask");
  ASSERT_TRUE(asks) << asks.error().text();
  const std::string wide = std::string(40, 'w');
  asks->limit("api")->try_acquire(acme);
  asks->limit("api")->try_acquire(wide);
  const ProgramRun top = instance.tool({"limit", "top", "api"});
  EXPECT_TRUE(has(top.out, list)) << top.out;
  EXPECT_TRUE(has(top.out, std::string(27, 'w') + "... ")) << top.out;
  EXPECT_TRUE(has(top.out, "a sketch: processes")) << top.out;
  EXPECT_EQ(instance.json({"limit", "top", "api"})["estimate"], true);
}

TEST(Keys, OneInDebtShowsWhatItOwes) {
  Instance instance(
      "limits: { api: { rate: 1/s, burst: 10, max-debt: 1000, show-keys: shown } }\n");
  Client client = instance.client();
  ASSERT_EQ(client.limit("api")->charge("alice", 410).charged(), 410U);
  client.limit("api")->try_acquire("bob");
  const auto keys = instance.json({"limit", "keys", "api"})["keys"];
  ASSERT_EQ(keys.size(), 2U);
  EXPECT_EQ(keys[0]["owes"], 400);
  EXPECT_EQ(keys[1]["owes"], 0);
  EXPECT_TRUE(has(instance.tool({"limit", "keys", "api"}).out, " -400 "));
  const ProgramRun explain = instance.tool({"limit", "explain", "api", "alice"});
  EXPECT_TRUE(has(explain.out, "0 tokens left, owes about 400, 1 asked for")) << explain.out;
}

TEST(Keys, SwitchedAtAStartEveryKeyKeepsWhatItOwes) {
  Instance instance(yaml(false));
  instance.client().limit("api")->try_acquire("early");
  const ProgramRun before = instance.tool({"limit", "keys", "api"});
  EXPECT_TRUE(has(before.out, "1 without a name: names are kept from a start with "
                              "instance.remember-keys: true on")) << before.out;

  int starts = 0;
  for (const bool remember : {true, false, true}) {
    const std::string late = "late-" + std::to_string(++starts);
    instance.daemon().stop();
    instance.place().write_config(yaml(remember));
    instance.start_again();
    ASSERT_TRUE(instance.ready()) << instance.daemon().log();
    EXPECT_TRUE(has(instance.daemon().log(),
                    "instance.remember-keys was " + std::string(remember ? "false" : "true") +
                        " there and is " + (remember ? "true" : "false") + " here"))
        << instance.daemon().log();
    instance.client().limit("api")->try_acquire(late);
    const auto found = instance.json({"limit", "keys", "api"});
    EXPECT_EQ(found["found"], 1 + starts);
    EXPECT_EQ(found["unnamed"], remember ? starts : starts + 1);
    EXPECT_EQ(keys_in(found).contains(late), remember);
  }
}

}  // namespace
}  // namespace cutwater::ctl
