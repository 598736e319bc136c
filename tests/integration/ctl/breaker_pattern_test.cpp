// SPDX-License-Identifier: Apache-2.0
// `cutwaterctl breaker ...` of a pattern's own breaker, which answers when its instances are used
// up.
#include <gtest/gtest.h>

#include <csignal>
#include <string>

#include <cutwater/breaker.hpp>

#include "tool.hpp"

namespace cutwater::ctl {
namespace {

const std::string kYaml =
    "capacity: { keys: 1024 }\n"
    "breakers:\n"
    "  \"bank-*\": { max-instances: 1, sliding-window-type: COUNT_BASED, sliding-window-size: 4,\n"
    "    minimum-number-of-calls: 4 }\n";

TEST(BreakerPattern, ItsOwnBreakerIsReadByItsName) {
  Instance instance(kYaml);
  Client client = instance.client();
  Breaker first = client.breaker("bank-a").value();
  Breaker rest = client.breaker("bank-zz").value();
  for (int i = 0; i < 4; ++i) rest.try_enter()->failed("timeout");

  const ProgramRun got = instance.tool({"breaker", "get", "bank-*"});
  EXPECT_EQ(got.code, 1) << got.out << got.err;
  EXPECT_TRUE(has(got.out, "bank-*")) << got.out;
  EXPECT_TRUE(has(got.out, "OPEN")) << got.out;
  const ProgramRun explained = instance.tool({"breaker", "explain", "bank-*"});
  EXPECT_EQ(explained.code, 1) << explained.err;
  EXPECT_TRUE(has(explained.out, "OPEN: failure rate 100 % of 4 calls")) << explained.out;
  const auto why = instance.json({"breaker", "why", "bank-*"});
  ASSERT_EQ(why["trips"].size(), 1U);
  EXPECT_EQ(why["trips"][0]["breaker"], "bank-*");
  EXPECT_TRUE(first.try_enter());
  EXPECT_EQ(instance.tool({"breaker", "get", "bank-a"}).code, 0);

  // The same without the daemon.
  instance.daemon().kill(SIGKILL);
  EXPECT_EQ(instance.tool({"breaker", "get", "bank-*"}).code, 1);
}

TEST(BreakerPattern, ItsOwnBreakerIsSteeredByItsName) {
  Instance instance(kYaml);
  Client client = instance.client();
  Breaker first = client.breaker("bank-a").value();
  Breaker rest = client.breaker("bank-zz").value();
  const auto state = [&] {
    return parse(instance.tool({"breaker", "get", "bank-*", "-o", "json"}).out)["state"];
  };

  const ProgramRun forced =
      instance.tool({"breaker", "force-open", "bank-*", "--for", "1h", "--note", "bank is down"});
  EXPECT_EQ(forced.code, 0) << forced.err;
  EXPECT_EQ(state(), "FORCED_OPEN");
  EXPECT_TRUE(has(rest.try_enter().refusal().text(),
                  "; this state is shared by names beyond max-instances of 'bank-*'"));
  EXPECT_TRUE(first.try_enter());
  EXPECT_TRUE(has(instance.tool({"journal", "list"}).out, "breaker bank-*"));
  EXPECT_EQ(instance.tool({"breaker", "disable", "bank-*", "--for", "1h"}).code, 0);
  EXPECT_EQ(state(), "DISABLED");

  // The act stands for the next daemon too.
  instance.daemon().kill(SIGKILL);
  instance.start_again();
  ASSERT_TRUE(instance.ready()) << instance.daemon().log();
  EXPECT_EQ(state(), "DISABLED");
  EXPECT_EQ(instance.tool({"breaker", "reset", "bank-*"}).code, 0);
  EXPECT_EQ(state(), "CLOSED");
}

TEST(BreakerPattern, AnActOnANameNobodyUsedMakesItsBreakerAndComesBackWithIt) {
  Instance instance(kYaml);
  const auto state = [&] {
    return parse(instance.tool({"breaker", "get", "bank-x", "-o", "json"}).out)["state"];
  };

  const ProgramRun forced = instance.tool({"breaker", "force-open", "bank-x", "--for", "1d"});
  EXPECT_EQ(forced.code, 0) << forced.err;
  EXPECT_EQ(state(), "FORCED_OPEN");
  Client client = instance.client();
  EXPECT_FALSE(client.breaker("bank-x").value().try_enter());
  // There is room for one: the next name shares the pattern's own, and is no breaker to act on.
  const ProgramRun beyond = instance.tool({"breaker", "force-open", "bank-y"});
  EXPECT_NE(beyond.code, 0);
  EXPECT_TRUE(has(beyond.err, "'bank-y' has no breaker of its own: all max-instances of 'bank-*' "
                              "are in use, and the rest share one; raise max-instances, or steer "
                              "'bank-*' for all names that share it")) << beyond.err;
  EXPECT_TRUE(client.breaker("bank-y").value().try_enter());

  // The pattern goes, daemons come and go, and it comes back: so does what was said by hand.
  instance.place().write_config("capacity: { keys: 1024 }\n");
  instance.daemon().kill(SIGKILL);
  instance.start_again();
  ASSERT_TRUE(instance.ready()) << instance.daemon().log();
  EXPECT_EQ(instance.tool({"breaker", "get", "bank-x"}).code, 6);
  instance.place().write_config(kYaml);
  instance.daemon().kill(SIGKILL);
  instance.start_again();
  ASSERT_TRUE(instance.ready()) << instance.daemon().log();
  EXPECT_EQ(state(), "FORCED_OPEN");
  EXPECT_EQ(instance.tool({"breaker", "auto", "bank-x"}).code, 0);
}

TEST(BreakerPattern, ANameWithoutAnInstanceSaysWhoAnswersForIt) {
  Instance instance(kYaml);
  const std::string words =
      "no instance 'bank-zz': its first caller makes it, and once the max-instances are used up "
      "'bank-*' answers for it";
  for (const char* verb : {"get", "explain", "why"}) {
    const ProgramRun run = instance.tool({"breaker", verb, "bank-zz"});
    EXPECT_EQ(run.code, 6) << verb;
    EXPECT_TRUE(has(run.err, words)) << verb << ": " << run.err;
  }
  ASSERT_EQ(instance.tool({"breaker", "force-open", "bank-a"}).code, 0) << "makes the only one";
  const ProgramRun full = instance.tool({"breaker", "get", "bank-zz"});
  EXPECT_EQ(full.code, 6);
  EXPECT_TRUE(has(full.err, "the max-instances of 'bank-*' are used up, so calls by this name "
                            "share 'bank-*'; look at it by `cutwaterctl breaker get 'bank-*'`"))
      << full.err;
  const ProgramRun other = instance.tool({"breaker", "get", "shop-*"});
  EXPECT_EQ(other.code, 6) << other.err;
  EXPECT_TRUE(has(other.err, "no breaker 'shop-*'; there are bank-*")) << other.err;
  const ProgramRun form = instance.tool({"breaker", "reset", "a*b*"});
  EXPECT_EQ(form.code, 2) << form.err;
  EXPECT_TRUE(has(form.err, "or a pattern, which has one * more")) << form.err;
}

}  // namespace
}  // namespace cutwater::ctl
