// SPDX-License-Identifier: Apache-2.0
// Breakers without mapped memory: what each choice answers, how it says so, and the way back.
#include <cstdlib>

#include "unit/client/ask_fixture.hpp"

namespace cutwater::test {
namespace {

constexpr char kOwn[] =
    "breakers:\n"
    "  fraud: {sliding-window-type: COUNT_BASED, sliding-window-size: 2,\n"
    "    minimum-number-of-calls: 2, wait-duration-in-open-state: 1h}\n";

class BreakerAbsent : public AskTest {
 protected:
  Client absent(IfAbsent choice) { return AskTest::absent(choice, kOwn); }
  /// Every call is granted whatever is reported, and says that nobody counts it.
  static void expect_granting(Breaker breaker) {
    for (int i = 0; i < 50; ++i) {
      auto call = breaker.try_enter();
      ASSERT_TRUE(call) << call.refusal().text();
      EXPECT_TRUE(call.degraded());
      call->failed("connect");
    }
    EXPECT_TRUE(breaker.would_enter());
    EXPECT_TRUE(breaker.run([] { return 7; }).ok());
    EXPECT_EQ(breaker.state(), BreakerStatus::Disabled);
  }
  static void expect_refusing(Breaker breaker) {
    auto refused = breaker.try_enter();
    ASSERT_FALSE(refused);
    EXPECT_TRUE(refused.degraded());
    EXPECT_EQ(refused.refusal().reason(), Reason::Degraded);
    EXPECT_TRUE(refused.refusal().is_hint());
    EXPECT_GE(refused.refusal().retry_after(), 100ms);
    EXPECT_FALSE(breaker.would_enter());
    EXPECT_FALSE(breaker.run([] { return 7; }).ok());
    EXPECT_EQ(breaker.state(), BreakerStatus::ForcedOpen);
  }
  /// Opens by its own two failures and refuses exactly; marked all the way.
  static void expect_in_process(Breaker breaker) {
    for (int i = 0; i < 2; ++i) {
      auto call = breaker.try_enter();
      ASSERT_TRUE(call) << call.refusal().text();
      EXPECT_TRUE(call.degraded());
      call->failed("connect");
    }
    auto refused = breaker.try_enter();
    ASSERT_FALSE(refused);
    EXPECT_TRUE(refused.degraded());
    EXPECT_EQ(refused.refusal().reason(), Reason::Open);
    EXPECT_FALSE(refused.refusal().is_hint());
    EXPECT_EQ(breaker.state(), BreakerStatus::Open);
  }
};

TEST_F(BreakerAbsent, SwitchedOffGrantsAndCountsNothing) {
  setenv("CUTWATER_ENABLED", "false", 1);
  for (const IfAbsent choice : {IfAbsent::Fail, IfAbsent::Deny, IfAbsent::Allow}) {
    Client client = absent(choice);
    Breaker breaker = client.breaker("fraud").value();
    expect_granting(breaker);
    EXPECT_EQ(breaker.explain(),
              "every call is granted and nothing is recorded: CUTWATER_ENABLED=false");
    EXPECT_EQ(client.status().degraded, 0U);
  }
  unsetenv("CUTWATER_ENABLED");
}

TEST_F(BreakerAbsent, AllowGrantsDegradedAndCounted) {
  Client client = absent(IfAbsent::Allow);
  Breaker breaker = client.breaker("fraud").value();
  expect_granting(breaker);
  EXPECT_EQ(client.status().degraded, 51U);
  EXPECT_EQ(breaker.explain(),
            "if_absent: allow, every call is granted and nothing is recorded: no daemon answers "
            "and no memory is mapped; start the daemon");
}

TEST_F(BreakerAbsent, DenyRefusesWithAHint) {
  Client client = absent(IfAbsent::Deny);
  Breaker breaker = client.breaker("fraud").value();
  expect_refusing(breaker);
  EXPECT_EQ(client.status().degraded, 2U);
  EXPECT_EQ(breaker.try_enter().refusal().text(),
            "breaker 'fraud' cannot be asked; if_absent: deny, every call is refused: no daemon "
            "answers and no memory is mapped; start the daemon");
}

TEST_F(BreakerAbsent, InProcessAsksItsOwnAndRefusesWhatItDoesNotName) {
  Client client = absent(IfAbsent::InProcess);
  expect_in_process(client.breaker("fraud").value());
  EXPECT_EQ(client.status().degraded, 3U);
  Breaker other = client.breaker("other").value();
  expect_refusing(other);
  EXPECT_NE(other.explain().find("whose configuration has no such breaker"), std::string::npos)
      << other.explain();
}

TEST_F(BreakerAbsent, NoNameIsNoName) {
  Client client = absent(IfAbsent::Allow);
  EXPECT_EQ(client.breaker("not a name").error().code(), Errc::UnknownName);
  EXPECT_EQ(client.breaker(std::string(64, 'x')).error().code(), Errc::UnknownName);
}

TEST_F(BreakerAbsent, OfADaemonThatDoesNotAnswerEachChoiceAnswers) {
  for (const IfAbsent choice : {IfAbsent::Allow, IfAbsent::Deny, IfAbsent::InProcess}) {
    ClientOptions wanted = options(choice, 20ms);
    if (choice == IfAbsent::InProcess) wanted.in_process = kOwn;
    Client client = open(wanted);
    Breaker breaker = client.breaker("fraud").value();
    EXPECT_FALSE(breaker.try_enter().degraded());
    daemon.silent = true;
    if (choice == IfAbsent::Allow) expect_granting(breaker);
    if (choice == IfAbsent::Deny) expect_refusing(breaker);
    if (choice == IfAbsent::InProcess) expect_in_process(breaker);
    EXPECT_GE(client.status().degraded, 1U);
    daemon.silent = false;
  }
}

}  // namespace
}  // namespace cutwater::test
