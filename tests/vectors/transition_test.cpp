// SPDX-License-Identifier: Apache-2.0
// Breaker::transition_to(): in memory, mapped and over the socket the same words, states and waits.
#include "support/daemon_process.hpp"
#include "vectors/every_way.hpp"

namespace cutwater::test {
namespace {

class Transition : public EveryWay {
 protected:
  void SetUp() override {
    start_whole(
        "breakers:\n"
        "  fraud: {sliding-window-type: COUNT_BASED, sliding-window-size: 4,\n"
        "    minimum-number-of-calls: 1, wait-duration-in-open-state: 1s,\n"
        "    permitted-number-of-calls-in-half-open-state: 2}\n"
        "  grows: {wait-duration-in-open-state: 1s, enable-randomized-wait: false}\n"
        "  off: {enabled: false}\n"
        "  \"bank-*\": {max-instances: 1}\n");
  }
  Breaker breaker(std::string_view name = "fraud") { return way->client().breaker(name).value(); }
  /// What came of it: the answer, or the code and the text of the error.
  static std::string told(const Result<std::string>& answer) {
    if (answer) return *answer;
    return std::string(name_of(answer.error().code())) + ": " + answer.error().text();
  }
  std::string move(BreakerStatus to, std::optional<Nanos> wait = {},
                   std::string_view name = "fraud") {
    return told(breaker(name).transition_to(to, wait));
  }
};

INSTANTIATE_TEST_SUITE_P(Ways, Transition, ::testing::ValuesIn(every_way()), way_name);

// covers: S29 (in memory, mapped, socket)
TEST_P(Transition, S29OpenByHandRestartsTheWaitWithOneOpeningMore) {
  Breaker fraud = breaker();
  fraud.try_enter()->failed();
  // Over the socket it is told, not waited for.
  ASSERT_TRUE(eventually([&] { return fraud.state() == BreakerStatus::Open; }));
  at(900ms);

  EXPECT_EQ(move(BreakerStatus::Open), "fraud is OPEN, retry after 1 s (2 openings in a row)");

  at(1500ms);
  EXPECT_EQ(fraud.try_enter().refusal().reason(), Reason::Open);
  at(1901ms);
  EXPECT_TRUE(fraud.try_enter());
  EXPECT_EQ(fraud.state(), BreakerStatus::HalfOpen);
}

TEST_P(Transition, AWaitThatIsGivenHoldsAndCountsNoOpening) {
  Breaker grows = breaker("grows");
  EXPECT_EQ(move(BreakerStatus::Open, {}, "grows"),
            "grows is OPEN, retry after 1 s (1 opening in a row)");
  EXPECT_EQ(move(BreakerStatus::Open, {}, "grows"),
            "grows is OPEN, retry after 2 s (2 openings in a row)");

  EXPECT_EQ(move(BreakerStatus::Open, 250ms, "grows"),
            "grows is OPEN, retry after 250 ms (2 openings in a row)");

  EXPECT_EQ(grows.try_enter().refusal().retry_after(), 250ms);
  EXPECT_EQ(grows.try_enter().refusal().text(),
            "breaker 'grows' is OPEN since 0 ns (by hand), does not permit calls, retry after "
            "250 ms");
  at(250ms);
  EXPECT_TRUE(grows.try_enter());
  EXPECT_EQ(move(BreakerStatus::Open, {}, "grows"),
            "grows is OPEN, retry after 4 s (3 openings in a row)");
}

// covers: S39 (in memory, mapped, socket)
TEST_P(Transition, S39HalfOpenComesBehindOpenOnly) {
  Breaker fraud = breaker();

  EXPECT_EQ(move(BreakerStatus::HalfOpen),
            "invalid_argument: breaker 'fraud' is CLOSED: HALF_OPEN comes only behind OPEN or "
            "FORCED_OPEN; open it first, or leave it as it is");
  EXPECT_EQ(fraud.state(), BreakerStatus::Closed);

  EXPECT_TRUE(fraud.transition_to(BreakerStatus::Open, 1h));
  EXPECT_EQ(move(BreakerStatus::HalfOpen), "fraud is HALF_OPEN: the next calls are probes");
  EXPECT_EQ(move(BreakerStatus::HalfOpen), "fraud is HALF_OPEN already");
  auto probe = fraud.try_enter();
  ASSERT_TRUE(probe);
  EXPECT_TRUE(probe->is_probe());
  EXPECT_EQ(move(BreakerStatus::Closed), "fraud is CLOSED, its window empty, no opening counted");
  probe->failed();                                   // of an epoch that is over
  EXPECT_EQ(fraud.state(), BreakerStatus::Closed);
  EXPECT_TRUE(fraud.try_enter());
}

TEST_P(Transition, WhatDoesNotExistSaysSoAndChangesNothing) {
  EXPECT_EQ(move(BreakerStatus::ForcedOpen),
            "invalid_argument: a breaker goes by hand to OPEN, HALF_OPEN or CLOSED, not to "
            "FORCED_OPEN; that is an act of the operator: `cutwaterctl breaker force-open`, "
            "`disable`, `metrics-only`");
  EXPECT_EQ(move(BreakerStatus::Closed, 1s),
            "invalid_argument: CLOSED takes no wait: it holds at once; leave the wait out");
  EXPECT_EQ(move(BreakerStatus::Open, 0ns),
            "invalid_argument: the wait of OPEN must be 1 ns .. 3660 d, not 0 ns; left out it is "
            "the configured one");
  EXPECT_EQ(breaker().transition_to(BreakerStatus::Open, kNever).error().code(),
            Errc::InvalidArgument);
  EXPECT_EQ(breaker().transition_to(static_cast<BreakerStatus>(77)).error().code(),
            Errc::InvalidArgument);
  EXPECT_EQ(breaker().state(), BreakerStatus::Closed);
}

TEST_P(Transition, NamesThatHaveNoBreakerOfTheirOwnOrAreGoneAreNotMoved) {
  Breaker own = breaker("bank-a"), shared = breaker("bank-b");
  own.try_enter()->cancelled();
  shared.try_enter()->cancelled();

  EXPECT_EQ(told(own.transition_to(BreakerStatus::Open, 1s)),
            "bank-a is OPEN, retry after 1 s (0 openings in a row)");
  EXPECT_EQ(told(shared.transition_to(BreakerStatus::Open)),
            "busy: 'bank-b' has no breaker of its own: all max-instances of 'bank-*' are in use, "
            "and the rest share one; raise max-instances, or steer 'bank-*' for all names that "
            "share it");
  EXPECT_TRUE(shared.try_enter());

  Breaker fraud = breaker();
  ASSERT_TRUE(way->reload("breakers: {other: {}}\n"));
  EXPECT_EQ(told(fraud.transition_to(BreakerStatus::Closed)),
            "unknown_name: breaker 'fraud' is not in the configuration (any more)");
}

TEST_P(Transition, SwitchedOffItSaysThatItHasNoEffect) {
  Breaker off = breaker("off");

  EXPECT_EQ(told(off.transition_to(BreakerStatus::Open, 1s)),
            "off is OPEN, retry after 1 s (0 openings in a row); NO EFFECT now: the breaker is "
            "switched off (its own `enabled`, or instance.enabled), every call is granted; set it "
            "to true and reload");

  EXPECT_TRUE(off.try_enter());
}

}  // namespace
}  // namespace cutwater::test
