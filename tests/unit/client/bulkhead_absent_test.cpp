// SPDX-License-Identifier: Apache-2.0
// Bulkheads without mapped memory: what each choice answers, and how it says so.
#include <cstdlib>

#include "unit/client/ask_fixture.hpp"

namespace cutwater::test {
namespace {

constexpr char kOwn[] =
    "limits: { api: { rate: 1/h, burst: 2 } }\n"
    "breakers: { fraud: {} }\n"
    "bulkheads: { fraud: { max-concurrent-calls: 1 } }\n";

class BulkheadAbsent : public AskTest {
 protected:
  Client absent(IfAbsent choice) { return AskTest::absent(choice, kOwn); }
  static void expect_granting(Bulkhead gate) {
    for (int i = 0; i < 20; ++i) {
      auto place = gate.enter();
      ASSERT_TRUE(place) << place.refusal().text();
      EXPECT_TRUE(place.degraded());
      EXPECT_FALSE(place->holds());
      place->leave();
    }
    EXPECT_TRUE(gate.would_enter());
    EXPECT_EQ(gate.use().limit, 0U);
    EXPECT_EQ(gate.run([] { return 7; }).or_else([] { return 0; }), 7);
  }
};

TEST_F(BulkheadAbsent, SwitchedOffGrantsAndHoldsNothing) {
  setenv("CUTWATER_ENABLED", "false", 1);
  Client client = absent(IfAbsent::Deny);
  expect_granting(client.bulkhead("fraud").value());
  EXPECT_EQ(client.status().degraded, 0U);
  unsetenv("CUTWATER_ENABLED");
}

TEST_F(BulkheadAbsent, AllowGrantsDegradedAndCounted) {
  Client client = absent(IfAbsent::Allow);
  expect_granting(client.bulkhead("fraud").value());
  EXPECT_EQ(client.status().degraded, 21U);
}

TEST_F(BulkheadAbsent, DenyRefusesWithAHint) {
  Client client = absent(IfAbsent::Deny);
  Bulkhead gate = client.bulkhead("fraud").value();
  auto refused = gate.try_enter();
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.degraded());
  EXPECT_EQ(refused.refusal().reason(), Reason::Degraded);
  EXPECT_GE(refused.refusal().retry_after(), 100ms);
  EXPECT_EQ(refused.refusal().text(),
            "bulkhead 'fraud' cannot be asked; if_absent: deny, every call is refused: no daemon "
            "answers and no memory is mapped; start the daemon");
  EXPECT_FALSE(gate.would_enter());
  EXPECT_EQ(client.bulkhead("not a name").error().code(), Errc::UnknownName);
}

TEST_F(BulkheadAbsent, InProcessHoldsForThisProcessAlone) {
  Client client = absent(IfAbsent::InProcess);
  Bulkhead gate = client.bulkhead("fraud").value();
  auto place = gate.try_enter();
  ASSERT_TRUE(place);
  EXPECT_TRUE(place.degraded());
  EXPECT_TRUE(place->holds());
  EXPECT_EQ(gate.try_enter().refusal().reason(), Reason::Full);
  place->leave();
  EXPECT_TRUE(gate.try_enter());
}

TEST_F(BulkheadAbsent, AnAdmissionOfAllPartsIsAnsweredByTheSameChoice) {
  {
    Client client = absent(IfAbsent::Allow);
    Breaker breaker = client.breaker("fraud").value();
    Bulkhead gate = client.bulkhead("fraud").value();
    Limit api = client.limit("api").value();
    Entry e =
        client.enter({.breaker = &breaker, .bulkhead = &gate, .limits = {{api, "alice"}}});
    EXPECT_TRUE(e);
    EXPECT_TRUE(e.degraded());
  }
  {
    Client client = absent(IfAbsent::Deny);
    Breaker breaker = client.breaker("fraud").value();
    Bulkhead gate = client.bulkhead("fraud").value();
    Entry e = client.enter({.breaker = &breaker, .bulkhead = &gate});
    EXPECT_EQ(e.reason(), Reason::Degraded);
    EXPECT_EQ(e.refused_by(), EnterPart::Breaker);
    EXPECT_TRUE(e.degraded());
  }
  Client client = absent(IfAbsent::InProcess);
  Breaker breaker = client.breaker("fraud").value();
  Bulkhead gate = client.bulkhead("fraud").value();
  Limit api = client.limit("api").value();
  {
    Entry e =
        client.enter({.breaker = &breaker, .bulkhead = &gate, .limits = {{api, "alice"}}});
    ASSERT_TRUE(e) << e.text();
    EXPECT_TRUE(e.degraded());
    EXPECT_TRUE(e.place().holds());
    EXPECT_EQ(client.enter({.bulkhead = &gate, .limits = {{api, "alice"}}}).reason(), Reason::Full);
    e.give_up();
  }
  Entry e = client.enter({.bulkhead = &gate, .limits = {{api, "alice", 2}}});
  EXPECT_TRUE(e) << "what was not used is back: " << e.text();
}

}  // namespace
}  // namespace cutwater::test
