// SPDX-License-Identifier: Apache-2.0
// What breakers and bulkheads say when they refuse: in memory, mapped and over the socket the same.
#include <thread>

#include <cutwater/http.hpp>

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
        "  line: {max-concurrent-calls: 1, max-wait-duration: 1s, max-waiting: 0}\n"
        "  short: {max-concurrent-calls: 1, max-wait-duration: 2s}\n"
        "  \"bank-*\": {max-concurrent-calls: 1, max-instances: 1}\n"
        "limits:\n"
        "  api: {rate: 1 per 5s, burst: 10}\n"
        "  dark: {rate: 1/s, burst: 1, mode: shadow}\n");
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

TEST_P(RefusalText, AWaitThatTheSettingCutSaysSo) {
  Bulkhead gate = way->client().bulkhead("short").value();
  const auto held = gate.try_enter();
  ASSERT_TRUE(held);
  std::string text;
  Nanos cut{0};
  std::thread waiter([&] {
    const auto placed = gate.enter(5s);
    text = placed.refusal().text();
    cut = placed.refusal().cut_wait();
  });
  EXPECT_TRUE(eventually([&] { return gate.use().waiting == 1; }));
  way->at(2s);
  waiter.join();

  EXPECT_EQ(text,
            "bulkhead 'short' is full after 2 s in line: 1 of 1 place is held, the oldest for 2 s; "
            "its max-wait-duration ended the wait, 5 s were asked for; retry after about 1 s");
  EXPECT_EQ(cut, 5s);
}

TEST_P(RefusalText, PlacesThatAreSharedSayOfWhichPattern) {
  Bulkhead own = way->client().bulkhead("bank-a").value();
  const auto kept = own.try_enter();
  Bulkhead shared = way->client().bulkhead("bank-b").value();
  const auto held = shared.try_enter();
  ASSERT_TRUE(held);

  const std::string text = shared.try_enter().refusal().text();

  EXPECT_EQ(text,
            "bulkhead 'bank-b' is full: 1 of 1 place is held; these places are shared by names "
            "beyond max-instances of 'bank-*'; retry after about 1 s");
  EXPECT_EQ(way->client().enter({.bulkhead = &shared}).text(), text);
  EXPECT_EQ(own.try_enter().refusal().text(),
            "bulkhead 'bank-a' is full: 1 of 1 place is held; retry after about 1 s");
}

// Its own breaker and places, which names beyond max-instances share.
TEST_P(RefusalText, APatternCanBeAskedByItsOwnName) {
  auto breaker = way->client().breaker("bank-*");
  auto bulkhead = way->client().bulkhead("bank-*");
  ASSERT_TRUE(breaker) << breaker.error().text();
  ASSERT_TRUE(bulkhead) << bulkhead.error().text();

  EXPECT_EQ(breaker->name(), "bank-*");
  EXPECT_EQ(breaker->state(), BreakerStatus::Closed);
  EXPECT_TRUE(breaker->try_enter());
  const auto held = bulkhead->try_enter();
  EXPECT_TRUE(held);
  EXPECT_EQ(bulkhead->try_enter().refusal().text(),
            "bulkhead 'bank-*' is full: 1 of 1 place is held; retry after about 1 s");
  EXPECT_FALSE(way->client().breaker("other-*"));
}

TEST_P(RefusalText, OpenPastItsEndIsShownAsHalfOpen) {
  Breaker breaker = way->client().breaker("bank-a").value();
  breaker.try_enter()->failed("timeout");
  EXPECT_TRUE(eventually([&] { return breaker.state() == BreakerStatus::Open; }));

  way->at(2s);

  EXPECT_EQ(breaker.state(), BreakerStatus::HalfOpen);
  EXPECT_TRUE(breaker.would_enter());
}

// What a kept refusal says is of the moment it refused in.
TEST_P(RefusalText, ARefusalThatIsReadLaterSaysWhatItWas) {
  Breaker breaker = way->client().breaker("bank-a").value();
  breaker.try_enter()->failed("timeout");
  EXPECT_TRUE(eventually([&] { return breaker.state() == BreakerStatus::Open; }));
  const auto open = breaker.try_enter();
  way->at(2s);
  std::vector<Entered> probes;
  while (true) {
    probes.push_back(breaker.try_enter());
    if (!probes.back()) break;
    ASSERT_LT(probes.size(), 100U);
  }
  const BreakerRefusal probing = probes.back().refusal();
  const std::string was_open = open.refusal().text(), was_probing = probing.text();
  EXPECT_NE(was_probing.find(" probes out, 0 back)"), std::string::npos) << was_probing;

  for (Entered& probe : probes) {
    if (probe) probe->succeeded();
  }
  EXPECT_TRUE(eventually([&] { return breaker.state() == BreakerStatus::Closed; }));
  way->at(3s);

  EXPECT_EQ(open.refusal().text(), was_open);
  EXPECT_EQ(was_open,
            "breaker 'bank-a' is OPEN since 0 ns (1 failure in a row), does not permit calls, "
            "retry after 2 s");
  EXPECT_EQ(probing.text(), was_probing);
}

TEST_P(RefusalText, EveryHttpAnswerOfAPlainLimitShowsItsPolicy) {
  Limit api = way->limit("api"), dark = way->limit("dark");
  const auto policy = [](const HttpAnswer& answer) {
    for (const HttpField& field : answer.fields) {
      if (field.name == "RateLimit-Policy") return field.value;
    }
    return std::string();
  };
  const std::string told = "\"api\";q=10;w=50", of_dark = "\"dark\";q=1;w=1";
  EXPECT_EQ(policy(http_answer(api.try_acquire("k"))), told);
  EXPECT_EQ(policy(http_answer(way->client().acquire_all({{api, "k", 1}}))), told);
  EXPECT_EQ(policy(http_answer(way->client().acquire_all({{api, "k", 10}}))), told);
  EXPECT_EQ(policy(http_answer(way->client().enter({.limits = {{api, "k", 1}}}))), told);
  EXPECT_EQ(policy(http_answer(api.charge("k", 1))), told);
  EXPECT_EQ(policy(http_answer(dark.try_acquire("k"))), of_dark);
  EXPECT_EQ(policy(http_answer(dark.try_acquire("k"))), of_dark) << "it would have been refused";
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
