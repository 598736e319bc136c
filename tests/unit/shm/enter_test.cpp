// SPDX-License-Identifier: Apache-2.0
// Admission in one step: what is looked at first, what a refusal leaves behind, and what a wait for
// a place holds meanwhile.
#include <gtest/gtest.h>

#include "stress/enter_world.hpp"

namespace cutwater::test {
namespace {

using rule::BreakerState;
using shm::Ended;
using shm::EnterPart;
using shm::Steer;

constexpr std::int64_t kMs = kMillisecond;

class Enter : public testing::Test {
 protected:
  void make(const EnterSetup& setup = {}) {
    w = std::make_unique<EnterWorld>(setup);
    w->quiet(true);
  }
  std::unique_ptr<EnterCase> begin(std::uint32_t process, const EnterWish& wish = {}) {
    auto one = w->ask(process, wish);
    w->begin(*one);
    return one;
  }
  /// Refused so, with not a byte written.
  void expect_refused(const EnterWish& wish, Reason reason, EnterPart part) {
    const Snapshot before = w->world().save();
    const auto one = begin(3, wish);
    EXPECT_EQ(one->step, shm::EnterStep::Done);
    EXPECT_EQ(one->answer.reason, reason);
    EXPECT_EQ(one->answer.part, part);
    EXPECT_NE(one->answer.retry_after_ns, 0);
    EXPECT_TRUE(w->world().same(before));
  }
  std::uint32_t in_use() const { return w->bulkhead_info().in_use; }
  std::uint32_t held() const { return w->breaker_info().probes_held; }

  std::unique_ptr<EnterWorld> w;
};

TEST_F(Enter, S50_AFullBulkheadTakesNoProbe) {
  make();
  w->make_half_open();
  const auto holder = begin(1, {.breaker = false, .cost = {0, 0}});
  ASSERT_TRUE(holder->granted());

  expect_refused({}, Reason::Full, EnterPart::Bulkhead);
  EXPECT_EQ(held(), 0U);
  EXPECT_EQ(w->tokens(0), 2U);

  w->finish(*holder);
  const auto probe = begin(0);
  ASSERT_TRUE(probe->granted());
  EXPECT_EQ(probe->answer.call.kind, shm::CallKind::Probe);
  EXPECT_EQ(held(), 1U);
  EXPECT_EQ(in_use(), 1U);
}

TEST_F(Enter, TheFirstThatWouldRefuseAnswersAndNothingIsWritten) {
  make();
  const auto holder = begin(0, {.breaker = false, .cost = {0, 3}});
  ASSERT_TRUE(holder->granted());
  w->steer(Steer::ToOpen, 500 * kMs);

  expect_refused({}, Reason::Open, EnterPart::Breaker);
  expect_refused({.breaker = false}, Reason::Full, EnterPart::Bulkhead);
  expect_refused({.breaker = false, .bulkhead = false}, Reason::Limit, EnterPart::Limit);
  // In line as well: the limit is asked before anybody joins, an open breaker before that.
  expect_refused({.max_wait_ns = -1}, Reason::Open, EnterPart::Breaker);
  expect_refused({.breaker = false, .max_wait_ns = -1}, Reason::Limit, EnterPart::Limit);
  expect_refused({.breaker = false, .cost = {3, 0}}, Reason::Full, EnterPart::Bulkhead);
  w->finish(*holder);
  expect_refused({.breaker = false, .cost = {3, 0}}, Reason::Never, EnterPart::Limit);

  const auto open = begin(1);
  EXPECT_EQ(open->answer.retry_after_ns, 500 * kMs + 1);
  EXPECT_FALSE(open->answer.hint);
  const auto limit = begin(1, {.breaker = false});
  EXPECT_EQ(limit->answer.retry_after_ns, 10 * kMs);
  EXPECT_FALSE(limit->answer.hint);
  EXPECT_EQ(limit->answer.limits.decisive, 1U);
}

TEST_F(Enter, EveryPartMayBeLeftOut) {
  make();
  const auto none = begin(0, {.breaker = false, .bulkhead = false, .cost = {0, 0}});
  EXPECT_TRUE(none->granted());
  const auto limits = begin(0, {.breaker = false, .bulkhead = false});
  EXPECT_TRUE(limits->granted());
  EXPECT_EQ(w->tokens(0), 1U);
  const auto call = begin(0, {.bulkhead = false, .cost = {0, 0}});
  EXPECT_TRUE(call->granted());
  EXPECT_EQ(call->answer.call.kind, shm::CallKind::Window);
  EXPECT_EQ(in_use(), 0U);
}

TEST_F(Enter, ADeadlineThatPassedIsNobodysFault) {
  make();
  expect_refused({.deadline_ns = w->now()}, Reason::Expired, EnterPart::None);
  w->steer(Steer::ToOpen, 500 * kMs);
  expect_refused({.deadline_ns = w->now()}, Reason::Open, EnterPart::Breaker);
}

TEST_F(Enter, TooManyLimitsAreABadAsk) {
  make();
  auto one = w->ask(0);
  std::vector<shm::AdmitAsk> many(shm::kMaxAdmitItems + 1, one->asks[0]);
  one->entering.ask.limits = many;
  w->begin(*one);
  EXPECT_EQ(one->answer.reason, Reason::InvalidArgument);
  EXPECT_EQ(one->answer.retry_after_ns, -1);
  EXPECT_EQ(in_use(), 0U);
}

TEST_F(Enter, WhoHasNoRowHoldsNothing) {
  make();
  auto one = w->ask(0);
  shm::EnterCaller nobody = w->caller(0);
  nobody.breaker.row = nobody.breaker.generation = 0;
  EXPECT_EQ(begin_enter(w->view(), nobody, one->entering, one->answer), shm::EnterStep::Done);
  EXPECT_EQ(one->answer.reason, Reason::Degraded);
  EXPECT_EQ(one->answer.part, EnterPart::Bulkhead);
  EXPECT_EQ(w->tokens(0), 2U);
}

// ---- in line ------------------------------------------------------------------------------------

TEST_F(Enter, WhoWaitsHoldsNothingElse) {
  make();
  w->make_half_open();
  const auto holder = begin(1, {.breaker = false, .cost = {0, 0}});

  const auto waiter = begin(0, {.max_wait_ns = 50 * kMs});
  ASSERT_TRUE(waiter->waits());
  EXPECT_EQ(held(), 0U);
  EXPECT_EQ(w->tokens(0), 2U);
  EXPECT_EQ(w->bulkhead_info().waiting, 1U);
  w->resume(*waiter);
  ASSERT_TRUE(waiter->waits());

  w->pass(5 * kMs);
  w->finish(*holder);
  w->resume(*waiter);
  ASSERT_TRUE(waiter->granted());
  EXPECT_EQ(waiter->answer.waited_ns, 5 * kMs);
  EXPECT_EQ(waiter->answer.call.kind, shm::CallKind::Probe);
  EXPECT_EQ(w->tokens(0), 1U);
  EXPECT_EQ(in_use(), 1U);
}

TEST_F(Enter, TheWaitEndsFullOrExpired) {
  for (const bool by_deadline : {false, true}) {
    make();
    const auto holder = begin(1, {.breaker = false, .cost = {0, 0}});
    const auto waiter = begin(0, {.max_wait_ns = by_deadline ? 50 * kMs : 20 * kMs,
                                  .deadline_ns = w->now() + (by_deadline ? 20 * kMs : 50 * kMs)});
    ASSERT_TRUE(waiter->waits());
    w->pass(19 * kMs);
    w->resume(*waiter);
    ASSERT_TRUE(waiter->waits());
    w->pass(1 * kMs + 5'000);                        // deadlines in line are kept in 4096 ns
    w->resume(*waiter);

    EXPECT_EQ(waiter->step, shm::EnterStep::Done);
    EXPECT_EQ(waiter->answer.reason, by_deadline ? Reason::Expired : Reason::Full);
    EXPECT_EQ(waiter->answer.part, EnterPart::Bulkhead);
    EXPECT_GE(waiter->answer.waited_ns, 20 * kMs);
    EXPECT_EQ(waiter->answer.bulkhead.in_use, 1U);
    EXPECT_EQ(w->tokens(0), 2U);
    w->finish(*holder);
    EXPECT_EQ(in_use(), 0U) << "nothing was swallowed";
  }
}

TEST_F(Enter, ABreakerThatOpensEndsTheWait) {
  make();
  const auto holder = begin(1, {.breaker = false, .cost = {0, 0}});
  const auto waiter = begin(0, {.max_wait_ns = -1});
  ASSERT_TRUE(waiter->waits());
  w->steer(Steer::ToOpen, 500 * kMs);
  w->resume(*waiter);

  EXPECT_EQ(waiter->step, shm::EnterStep::Done);
  EXPECT_EQ(waiter->answer.reason, Reason::Open);
  EXPECT_EQ(waiter->answer.part, EnterPart::Breaker);
  EXPECT_EQ(w->bulkhead_info().waiting, 0U);
  EXPECT_EQ(w->tokens(0), 2U);
  w->finish(*holder);
  EXPECT_EQ(in_use(), 0U);
}

TEST_F(Enter, K6_WhoOpensTheBreakerWakesTheLineOfItsName) {
  for (const std::string gate : {"b", "g"}) {
    EnterSetup setup;
    setup.gate = gate;
    make(setup);
    const auto holder = begin(1, {.breaker = false, .cost = {0, 0}});
    const auto waiter = begin(0, {.max_wait_ns = -1});
    ASSERT_TRUE(waiter->waits());
    const std::uint32_t* const word =
        shm::line_futex(w->view(), w->bulkhead(), waiter->entering.line);
    ASSERT_NE(word, nullptr);
    EXPECT_EQ(*word, waiter->entering.seen.seen);
    w->steer(Steer::ToOpen, 500 * kMs);
    EXPECT_EQ(*word != waiter->entering.seen.seen, gate == "b");
    w->resume(*waiter);
    EXPECT_EQ(waiter->answer.reason, Reason::Open);
  }
}

TEST_F(Enter, WhoGotAPlaceTooLateIsLookedAtAgain) {
  make();
  const auto holder = begin(1, {.breaker = false, .cost = {0, 0}});
  const auto waiter = begin(0, {.max_wait_ns = -1, .deadline_ns = w->now() + 20 * kMs});
  ASSERT_TRUE(waiter->waits());
  w->finish(*holder);                                // handed over in time ...
  w->pass(30 * kMs);                                 // ... and found too late
  w->resume(*waiter);

  EXPECT_EQ(waiter->step, shm::EnterStep::Done);
  EXPECT_EQ(waiter->answer.reason, Reason::Expired);
  EXPECT_EQ(waiter->answer.part, EnterPart::Bulkhead);
  EXPECT_EQ(in_use(), 0U);
  EXPECT_EQ(w->tokens(0), 2U);
}

TEST_F(Enter, ALimitThatWasSpentMeanwhileGivesThePlaceBack) {
  make();
  const auto holder = begin(1, {.breaker = false, .cost = {0, 0}});
  const auto waiter = begin(0, {.max_wait_ns = -1});
  const auto next = begin(2, {.breaker = false, .cost = {0, 0}, .max_wait_ns = -1});
  ASSERT_TRUE(waiter->waits() && next->waits());
  w->world().drain("one", key(0));
  w->finish(*holder);
  w->resume(*waiter);

  EXPECT_EQ(waiter->answer.reason, Reason::Limit);
  EXPECT_EQ(waiter->answer.part, EnterPart::Limit);
  EXPECT_EQ(w->tokens(1), 3U) << "all or none";
  w->resume(*next);
  EXPECT_TRUE(next->granted()) << "the place went to the next in line";
}

TEST_F(Enter, WhoIsGoneLeavesTheLine) {
  make();
  const auto holder = begin(1, {.breaker = false, .cost = {0, 0}});
  const auto gone = begin(0, {.max_wait_ns = -1});
  const auto next = begin(2, {.max_wait_ns = -1});
  ASSERT_TRUE(gone->waits() && next->waits());
  w->finish(*holder);                                // to `gone`, who is not there any more
  shm::abandon_enter(w->view(), w->caller(0), gone->entering);
  shm::abandon_enter(w->view(), w->caller(0), gone->entering);
  w->resume(*next);

  EXPECT_TRUE(next->granted());
  w->finish(*next);
  EXPECT_EQ(in_use(), 0U);
}

TEST_F(Enter, AFullLineIsFull) {
  make({.max_waiting = 1});
  const auto holder = begin(1, {.breaker = false, .cost = {0, 0}});
  const auto waiter = begin(0, {.max_wait_ns = -1});
  ASSERT_TRUE(waiter->waits());
  const auto refused = begin(2, {.max_wait_ns = -1});
  EXPECT_EQ(refused->step, shm::EnterStep::Done);
  EXPECT_EQ(refused->answer.reason, Reason::Full);
  EXPECT_EQ(w->bulkhead_info().waiting, 1U);
}

// ---- giving back --------------------------------------------------------------------------------

TEST_F(Enter, ACallThatIsNotMadeGivesEverythingBack) {
  make();
  w->make_half_open();
  const auto one = begin(0);
  ASSERT_TRUE(one->granted());
  EXPECT_EQ(held() + in_use(), 2U);

  shm::undo_enter(w->view(), w->caller(0), one->entering.ask, one->answer);
  EXPECT_EQ(held() + in_use(), 0U);
  EXPECT_EQ(w->tokens(0), 2U);
  EXPECT_EQ(w->tokens(1), 3U);
  EXPECT_EQ(w->breaker_info().word.state, BreakerState::HalfOpen);
}

TEST_F(Enter, WhatIsCountedIsWhatWasDecided) {
  make();
  w->quiet(false);
  const auto holder = begin(0);
  ASSERT_TRUE(holder->granted());
  begin(1);                                          // full
  w->finish(*holder);
  begin(1, {.breaker = false, .bulkhead = false, .cost = {2, 1}});   // "one" has 1 left
  w->steer(Steer::ToOpen, 500 * kMs);
  begin(1);                                          // open

  const auto of = [&](const char* name, shm::LimitCounter counter) {
    const auto sums = shm::sum_counters(w->view(), w->world().ref(name).index);
    return sums[static_cast<std::size_t>(counter)];
  };
  EXPECT_EQ(of("one", shm::LimitCounter::Allowed), 1U);
  EXPECT_EQ(of("one", shm::LimitCounter::Refused), 1U);
  EXPECT_EQ(of("two", shm::LimitCounter::Allowed), 1U);
  EXPECT_EQ(of("two", shm::LimitCounter::Refused), 0U);
  const auto gate = shm::sum_bulkhead_counters(w->view(), w->bulkhead().index);
  EXPECT_EQ(gate.of(shm::BulkheadCounter::Granted), 1U);
  EXPECT_EQ(gate.of(shm::BulkheadCounter::RefusedFull), 1U);
  const auto breaker = shm::sum_breaker_counters(w->view(), w->breaker().index);
  EXPECT_EQ(breaker.of(shm::BreakerCounter::RefusedOpen), 1U);
}

}  // namespace
}  // namespace cutwater::test
