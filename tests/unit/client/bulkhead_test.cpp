// SPDX-License-Identifier: Apache-2.0
#include <cutwater/bulkhead.hpp>
#include <cutwater/enter.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <optional>
#include <stdexcept>
#include <thread>

#include "shm/bulkhead/bulkhead.hpp"
#include "unit/client/client_fixture.hpp"

namespace cutwater::test {
namespace {

constexpr char kBulkheads[] =
    "bulkheads:\n"
    "  fraudCheck: {max-concurrent-calls: 2, max-wait-duration: 1h}\n"
    "  plain: {max-concurrent-calls: 1}\n"
    "  off: {max-concurrent-calls: 1, enabled: false}\n"
    "  none: {max-concurrent-calls: 0, max-wait-duration: 1h}\n";

class ClientBulkhead : public InMemory {
 protected:
  void SetUp() override { start(kBulkheads); }
  Bulkhead bulkhead(const std::string& name = "fraudCheck") {
    return client->bulkhead(name).value();
  }
  std::uint64_t counted(shm::BulkheadCounter which, const std::string& name = "fraudCheck") {
    return shm::sum_bulkhead_counters(view(), shm::find_bulkhead(view(), name).index).of(which);
  }
  /// Until that many stand in line; a watchdog of the test program ends what hangs.
  static void wait_for_line(Bulkhead& gate, std::uint32_t waiting) {
    while (gate.use().waiting != waiting) std::this_thread::yield();
  }
};

TEST_F(ClientBulkhead, AsManyAsThereArePlacesThenFull) {
  Bulkhead gate = bulkhead();
  auto first = gate.try_enter(), second = gate.try_enter();
  ASSERT_TRUE(first && second);
  EXPECT_TRUE(first->holds());
  EXPECT_FALSE(gate.would_enter());

  auto refused = gate.try_enter();
  ASSERT_FALSE(refused);
  const BulkheadRefusal& why = refused.refusal();
  EXPECT_EQ(why.reason(), Reason::Full);
  EXPECT_EQ(why.in_use(), 2U);
  EXPECT_EQ(why.limit(), 2U);
  EXPECT_EQ(why.waiting(), 0U);
  EXPECT_TRUE(why.is_hint());
  EXPECT_GT(why.retry_after(), 0ns);
  EXPECT_EQ(why.bulkhead_name(), "fraudCheck");
  EXPECT_NE(why.text().find("bulkhead 'fraudCheck' is full: 2 of 2 places are held"),
            std::string::npos) << why.text();

  first->leave();
  EXPECT_FALSE(first->holds());
  EXPECT_TRUE(gate.would_enter());
  EXPECT_EQ(gate.use().in_use, 1U);
  EXPECT_TRUE(gate.try_enter());
}

TEST_F(ClientBulkhead, AnUnknownNameListsTheNearest) {
  auto unknown = client->bulkhead("fraudChek");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code(), Errc::UnknownName);
  const std::string text = unknown.error().text();
  EXPECT_NE(text.find("has no bulkhead \"fraudChek\"; the nearest are fraudCheck"),
            std::string::npos) << text;
}

TEST_F(ClientBulkhead, APlaceMovesAndIsGivenBackOnce) {
  Bulkhead gate = bulkhead("plain");
  {
    auto placed = gate.try_enter();
    Place moved = placed.take();
    EXPECT_FALSE(placed->holds());
    placed->leave();                                 // an empty one has nothing to give back
    EXPECT_EQ(gate.use().in_use, 1U);
    Place last;
    last = std::move(moved);
    EXPECT_TRUE(last.holds());
  }
  EXPECT_EQ(gate.use().in_use, 0U);
  EXPECT_EQ(counted(shm::BulkheadCounter::Stale, "plain"), 0U);
}

TEST_F(ClientBulkhead, C085_GivenBackTwiceIsCountedAndChangesNothing) {
  Bulkhead gate = bulkhead("plain");
  auto placed = gate.try_enter();
  placed->leave();
  auto other = gate.try_enter();
  ASSERT_TRUE(other);
  placed->leave();
  EXPECT_EQ(gate.use().in_use, 1U);
  EXPECT_TRUE(other->holds());
  EXPECT_EQ(counted(shm::BulkheadCounter::Stale, "plain"), 1U);
}

TEST_F(ClientBulkhead, RunHoldsThePlaceWhileTheFunctionRuns) {
  Bulkhead gate = bulkhead("plain");
  auto ran = gate.run([&] { return static_cast<int>(gate.use().in_use); });
  ASSERT_TRUE(ran);
  EXPECT_EQ(*ran, 1);
  EXPECT_EQ(gate.use().in_use, 0U);
  EXPECT_THROW((void)gate.run([]() -> int { throw std::runtime_error("broken"); }),
               std::runtime_error);
  EXPECT_EQ(gate.use().in_use, 0U);

  auto holder = gate.try_enter();
  bool called = false;
  auto refused = gate.run([&] { called = true; });
  EXPECT_FALSE(refused);
  EXPECT_FALSE(called);
  EXPECT_EQ(refused.refusal().reason(), Reason::Full);
  EXPECT_EQ(gate.run([] { return 1; }).or_else([] { return 2; }), 2);
}

TEST_F(ClientBulkhead, SwitchedOffLetsEverybodyThrough) {
  Bulkhead gate = bulkhead("off");
  auto first = gate.try_enter(), second = gate.try_enter();
  EXPECT_TRUE(first && second);
  EXPECT_FALSE(first->holds()) << "nothing is held";
}

TEST_F(ClientBulkhead, NoPlacesRefuseEverybodyAtOnce) {
  auto refused = bulkhead("none").enter();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.refusal().reason(), Reason::Full);
  EXPECT_EQ(refused.refusal().limit(), 0U);
}

// ---- waiting ------------------------------------------------------------------------------------

TEST_F(ClientBulkhead, K2_WithoutAWaitNobodyJoinsTheLine) {
  Bulkhead gate = bulkhead("plain");
  auto holder = gate.try_enter();
  auto refused = gate.enter(1h);                     // the bulkhead allows none
  EXPECT_FALSE(refused);
  EXPECT_EQ(refused.refusal().waited(), 0ns);
  EXPECT_FALSE(bulkhead().enter({.max_wait = 0ns, .deadline = 1s}).refusal().waited() > 0ns);
}

TEST_F(ClientBulkhead, AWaiterGetsThePlaceThatIsGivenBack) {
  Bulkhead gate = bulkhead();
  auto first = gate.try_enter(), second = gate.try_enter();
  std::optional<bool> got;
  std::thread waiter([&] {
    auto placed = gate.enter();
    got = placed.granted() && placed->holds() && gate.use().in_use == 2;
  });
  wait_for_line(gate, 1);
  EXPECT_FALSE(gate.try_enter()) << "a newcomer does not pass those in line";
  second->leave();
  waiter.join();

  EXPECT_TRUE(got.value());
  EXPECT_EQ(gate.use().in_use, 1U);
  EXPECT_EQ(gate.use().waiting, 0U);
}

TEST_F(ClientBulkhead, K4_TheWaitEndsByItsLengthOrByTheDeadline) {
  Bulkhead gate = bulkhead();
  auto first = gate.try_enter(), second = gate.try_enter();
  for (const bool by_deadline : {false, true}) {
    std::optional<BulkheadRefusal> refusal;
    std::thread waiter([&] {
      auto placed = gate.enter({.max_wait = by_deadline ? 10s : 1s,
                                .deadline = by_deadline ? 1s : 10s});
      if (!placed) refusal = placed.refusal();
    });
    wait_for_line(gate, 1);
    clock.advance(1s + 1ms);
    waiter.join();

    ASSERT_TRUE(refusal);
    EXPECT_EQ(refusal->reason(), by_deadline ? Reason::Expired : Reason::Full);
    EXPECT_GE(refusal->waited(), 1s);
    EXPECT_NE(refusal->text().find("after 1 s in line"), std::string::npos) << refusal->text();
  }
  EXPECT_EQ(gate.use().waiting, 0U);
  EXPECT_EQ(gate.use().in_use, 2U);
}

TEST_F(ClientBulkhead, K4_ADeadlineBeyondAllTimeIsNoneAndNotOver) {
  Bulkhead gate = bulkhead();
  for (const Nanos deadline : {kNever, kNever - 1ns}) {
    auto first = gate.enter({.max_wait = kNever, .deadline = deadline});
    ASSERT_TRUE(first) << first.refusal().text();
    auto second = gate.enter({.max_wait = 0ns, .deadline = deadline});
    ASSERT_TRUE(second) << second.refusal().text();

    std::optional<BulkheadRefusal> refusal;
    std::thread waiter([&] {
      auto placed = gate.enter({.max_wait = 1s, .deadline = deadline});
      if (!placed) refusal = placed.refusal();
    });
    wait_for_line(gate, 1);
    clock.advance(1s + 1ms);
    waiter.join();

    ASSERT_TRUE(refusal);
    EXPECT_EQ(refusal->reason(), Reason::Full);
  }
}

TEST_F(ClientBulkhead, S68_TenCallersTwoAtATimeInTheOrderTheyCame) {
  Bulkhead gate = bulkhead();
  std::vector<int> order;
  std::mutex lock;
  std::vector<std::thread> callers;
  std::vector<Place> running;
  for (int i = 0; i < 2; ++i) running.push_back(gate.try_enter().take());
  for (int i = 2; i < 10; ++i) {
    callers.emplace_back([&, i] {
      auto placed = gate.enter();
      ASSERT_TRUE(placed);
      const std::lock_guard held(lock);
      order.push_back(i);
      running.push_back(placed.take());
    });
    wait_for_line(gate, static_cast<std::uint32_t>(i - 1));
  }
  const Nanos begun = clock.now();
  for (std::size_t round = 1; round <= 5; ++round) {
    clock.advance(200ms);                            // the two that run take so long
    for (std::size_t one = 0; one < 2; ++one) {
      Place done;
      {
        const std::lock_guard held(lock);
        done = std::move(running.front());
        running.erase(running.begin());
      }
      done.leave();
      const std::size_t in = std::min<std::size_t>(8, 2 * (round - 1) + one + 1);
      for (;;) {
        const std::lock_guard held(lock);
        if (order.size() == in) break;
      }
      EXPECT_LE(gate.use().in_use, 2U);
    }
  }
  for (std::thread& caller : callers) caller.join();

  EXPECT_EQ(order, (std::vector<int>{2, 3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(clock.now() - begun, 1000ms);
  EXPECT_EQ(gate.use().in_use, 0U);
}

TEST_F(ClientBulkhead, S69_WithoutAWaitTwoRunAndEightAreRefused) {
  Bulkhead gate = bulkhead();
  std::vector<Place> running;
  int refused = 0;
  for (int i = 0; i < 10; ++i) {
    auto placed = gate.try_enter();
    if (placed) running.push_back(placed.take());
    else ++refused;
  }
  EXPECT_EQ(running.size(), 2U);
  EXPECT_EQ(refused, 8);
}

TEST_F(ClientBulkhead, S73_AShrinkReturnsAtOnceAndNobodyEntersWhileTooManyRun) {
  ASSERT_TRUE(client->reload("bulkheads: { fraudCheck: { max-concurrent-calls: 5 } }"));
  Bulkhead gate = bulkhead();
  std::vector<Place> running;
  for (int i = 0; i < 5; ++i) running.push_back(gate.try_enter().take());
  ASSERT_TRUE(client->reload("bulkheads: { fraudCheck: { max-concurrent-calls: 2 } }"));
  EXPECT_EQ(gate.use().over, 3U);
  for (int i = 0; i < 4; ++i) {
    EXPECT_FALSE(gate.try_enter()) << i;
    running.pop_back();
  }
  EXPECT_TRUE(gate.try_enter());
}

TEST_F(ClientBulkhead, ARefusalTellsTheMedianHoldOfTheLastMinute) {
  Bulkhead gate = bulkhead("plain");
  const auto hold = [&](std::chrono::milliseconds time) {
    auto placed = gate.try_enter();
    ASSERT_TRUE(placed);
    clock.advance(time);
  };
  for (const int ms : {10, 20, 20, 30, 500}) hold(std::chrono::milliseconds{ms});
  clock.advance(std::chrono::seconds{11});
  std::vector<Place> all;
  for (std::uint32_t i = 0; i < gate.use().limit; ++i) all.push_back(gate.try_enter().take());

  const auto full = gate.try_enter();

  EXPECT_EQ(full.refusal().reason(), Reason::Full);
  EXPECT_GE(full.refusal().retry_after(), std::chrono::milliseconds{20});
  EXPECT_LE(full.refusal().retry_after(), std::chrono::microseconds{22'500});
}

// ---- forks and reloads --------------------------------------------------------------------------

TEST_F(ClientBulkhead, MaxHoldIsTakenBackBySomebodyWhoAsks) {
  ASSERT_TRUE(client->reload("bulkheads: {fraudCheck: {max-concurrent-calls: 1, max-hold: 2s}}"));
  Bulkhead gate = bulkhead();
  Placed stuck = gate.try_enter();
  ASSERT_TRUE(stuck);
  clock.advance(2s);
  EXPECT_FALSE(gate.try_enter());
  EXPECT_EQ(gate.use().in_use, 1U);
  clock.advance(1ns);
  EXPECT_TRUE(gate.would_enter());
  EXPECT_EQ(gate.use().in_use, 0U);
  EXPECT_EQ(counted(shm::BulkheadCounter::Revoked), 1U);
  Placed next = gate.try_enter();
  ASSERT_TRUE(next);

  EXPECT_TRUE(stuck->holds()) << "it knows when it gives it back";
  stuck->leave();
  EXPECT_FALSE(stuck->holds());
  EXPECT_EQ(counted(shm::BulkheadCounter::Stale), 1U);
  EXPECT_EQ(gate.use().in_use, 1U) << "the next one's";

  clock.advance(3s);
  EXPECT_TRUE(client->enter({.bulkhead = &gate}));
}

TEST_F(ClientBulkhead, MaxHoldLetsInWhoWaits) {
  ASSERT_TRUE(client->reload("bulkheads:\n  fraudCheck: {max-concurrent-calls: 1, max-hold: 2s, "
                             "max-wait-duration: 1h}\n"));
  Bulkhead gate = bulkhead();
  Placed stuck = gate.try_enter();
  std::thread second([&] { EXPECT_TRUE(gate.enter()); });
  wait_for_line(gate, 1);
  clock.advance(2s + 1ns);
  second.join();
  EXPECT_EQ(counted(shm::BulkheadCounter::Revoked), 1U);
}

TEST_F(ClientBulkhead, WhatAChildInheritedIsItsParents) {
  Bulkhead gate = bulkhead("plain");
  auto placed = gate.try_enter();
  const pid_t child = fork();
  if (child == 0) {
    const bool inert = !placed->holds();
    placed->leave();
    auto own = gate.try_enter();
    const bool told = !gate.would_enter() && !own && own.degraded() &&
                      own.refusal().reason() == Reason::Degraded &&
                      own.refusal().text().find("open a client in the child") != std::string::npos;
    _exit(inert && told ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(gate.use().in_use, 1U);
  EXPECT_EQ(counted(shm::BulkheadCounter::Stale, "plain"), 0U);
}

TEST_F(ClientBulkhead, OneThatAReloadRemovedSaysSoUntilItIsBack) {
  Bulkhead gate = bulkhead("plain");
  ASSERT_TRUE(client->reload("bulkheads: {}"));
  auto refused = gate.try_enter();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.refusal().reason(), Reason::Degraded);
  EXPECT_NE(refused.refusal().text().find("add it under bulkheads:"), std::string::npos)
      << refused.refusal().text();
  ASSERT_TRUE(client->reload(kBulkheads));
  EXPECT_TRUE(gate.try_enter());
}

TEST_F(ClientBulkhead, APlaceMayEndOnAnotherThread) {
  Bulkhead gate = bulkhead("plain");
  auto placed = gate.try_enter();
  std::thread([place = placed.take()]() mutable { place.leave(); }).join();
  EXPECT_EQ(gate.use().in_use, 0U);
}

}  // namespace
}  // namespace cutwater::test
