// SPDX-License-Identifier: Apache-2.0
// What breakers and bulkheads say when they refuse: in memory, mapped and over the socket the same.
#include "support/daemon_process.hpp"
#include "vectors/every_way.hpp"

namespace cutwater::test {
namespace {

class RefusalText : public EveryWay {
 protected:
  void SetUp() override {
    start_whole(
        "breakers:\n"
        "  \"bank-*\": {max-instances: 1, consecutive-failures: 1,\n"
        "    wait-duration-in-open-state: 2s, enable-randomized-wait: false}\n"
        "bulkheads:\n"
        "  gate: {max-concurrent-calls: 1}\n"
        "  line: {max-concurrent-calls: 1, max-wait-duration: 1s, max-waiting: 0}\n");
  }
};

INSTANTIATE_TEST_SUITE_P(Ways, RefusalText, ::testing::ValuesIn(every_way()), way_name);

TEST_P(RefusalText, ABulkheadWithoutALineSaysSoToWhoWouldHaveWaited) {
  Bulkhead gate = way->client().bulkhead("gate").value();
  const auto held = gate.try_enter();
  ASSERT_TRUE(held);
  const std::string plain =
      "bulkhead 'gate' is full: 1 of 1 place is held; retry after about 1 s";

  const auto waiting = gate.enter(200ms);

  EXPECT_EQ(waiting.refusal().text(),
            "bulkhead 'gate' is full: 1 of 1 place is held; nobody may wait for one: its "
            "max-wait-duration is 0, and the 200 ms asked for do not change that; retry after "
            "about 1 s");
  EXPECT_EQ(waiting.refusal().cut_wait(), 200ms);
  const Entry entry = way->client().enter({.bulkhead = &gate, .max_wait = 200ms});
  EXPECT_EQ(entry.text(), waiting.refusal().text());
  // Who did not ask to wait is told nothing of it.
  EXPECT_EQ(gate.try_enter().refusal().text(), plain);
  EXPECT_EQ(gate.enter().refusal().text(), plain);
  EXPECT_EQ(gate.enter(0ns).refusal().text(), plain);
}

TEST_P(RefusalText, AStateThatIsSharedSaysOfWhichPattern) {
  Breaker own = way->client().breaker("bank-a").value();
  own.try_enter()->succeeded();
  Breaker shared = way->client().breaker("bank-b").value();
  shared.try_enter()->failed("timeout");
  ASSERT_TRUE(eventually([&] { return shared.state() == BreakerStatus::Open; }));

  const std::string text = shared.try_enter().refusal().text();

  EXPECT_EQ(text,
            "breaker 'bank-b' is OPEN since 0 ns (1 failure in a row), does not permit calls, "
            "retry after 2 s; this state is shared by names beyond max-instances of 'bank-*'");
  EXPECT_EQ(way->client().enter({.breaker = &shared}).text(), text);
  EXPECT_TRUE(own.try_enter());
}

}  // namespace
}  // namespace cutwater::test
