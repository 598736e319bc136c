// SPDX-License-Identifier: Apache-2.0
// Client::enter(): a breaker, a bulkhead and limits in one step.
#include <cutwater/enter.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <optional>
#include <thread>

#include "shm/bulkhead/bulkhead.hpp"
#include "unit/client/client_fixture.hpp"

namespace cutwater::test {
namespace {

constexpr char kAll[] =
    "limits:\n"
    "  api: {rate: 10/s, burst: 2}\n"
    "  tenant: {rate: 10/s, burst: 3}\n"
    "breakers:\n"
    "  fraudCheck: {sliding-window-type: COUNT_BASED, sliding-window-size: 2,\n"
    "    minimum-number-of-calls: 2, wait-duration-in-open-state: 15s,\n"
    "    permitted-number-of-calls-in-half-open-state: 1}\n"
    "bulkheads:\n"
    "  fraudCheck: {max-concurrent-calls: 1, max-wait-duration: 1h}\n";

class ClientEnter : public InMemory {
 protected:
  void SetUp() override {
    start(kAll);
    fraud.emplace(client->breaker("fraudCheck").value());
    gate.emplace(client->bulkhead("fraudCheck").value());
    api.emplace(limit("api"));
    tenant.emplace(limit("tenant"));
  }
  Entry enter(Nanos max_wait = 0ns, Nanos deadline = 0ns) {
    return client->enter({.breaker = &*fraud,
                          .bulkhead = &*gate,
                          .limits = {{*api, "alice"}, {*tenant, "acme"}},
                          .max_wait = max_wait,
                          .deadline = deadline});
  }
  void open_breaker() {
    for (int i = 0; i < 2; ++i) fraud->try_enter()->failed("timeout");
    ASSERT_EQ(fraud->state(), BreakerStatus::Open);
  }
  std::uint64_t left(Limit& limit, std::string_view key) { return limit.peek(key, 0).remaining(); }

  std::optional<Breaker> fraud;
  std::optional<Bulkhead> gate;
  std::optional<Limit> api, tenant;
};

TEST_F(ClientEnter, OneAnswerForAll) {
  {
    Entry e = enter();
    ASSERT_TRUE(e) << e.text();
    EXPECT_EQ(e.refused_by(), EnterPart::None);
    EXPECT_EQ(e.retry_after(), 0ns);
    EXPECT_EQ(e.text(), "");
    EXPECT_FALSE(e.degraded());
    EXPECT_TRUE(e.place().holds());
    EXPECT_EQ(e.limits().remaining(), 1U);
    EXPECT_EQ(e.limits().each().size(), 2U);
    e.call().succeeded();
  }
  EXPECT_EQ(gate->use().in_use, 0U);
  EXPECT_EQ(left(*api, "alice"), 1U);
  EXPECT_EQ(left(*tenant, "acme"), 2U);
}

TEST_F(ClientEnter, ADeadlineBeyondAllTimeIsNoneAndNotOver) {
  for (const Nanos deadline : {kNever, kNever - 1ns}) {
    Entry e = enter(0ns, deadline);
    ASSERT_TRUE(e) << e.text();
    e.call().succeeded();
  }
}

TEST_F(ClientEnter, AProbeWithADeadlineBeyondAllTimeIsHeldAsLongAsAnyMay) {
  for (const bool alone : {true, false}) {
    open_breaker();
    clock.advance(15s + 1ns);
    Entered one = alone ? fraud->try_enter(kNever) : Entered{};
    Entry several = alone ? Entry{} : enter(0ns, kNever);
    ASSERT_TRUE(alone ? one.granted() : several.granted()) << several.text();

    clock.advance(9min);
    EXPECT_FALSE(fraud->try_enter());
    EXPECT_EQ(fraud->state(), BreakerStatus::HalfOpen);
    clock.advance(1min + 1us);
    EXPECT_FALSE(fraud->try_enter());
    EXPECT_EQ(fraud->state(), BreakerStatus::Open);
    clock.advance(15s + 1ns);
    fraud->try_enter()->succeeded();
    ASSERT_EQ(fraud->state(), BreakerStatus::Closed);
  }
}

/// Overwrites the stack below the caller, where temporaries of ended statements were.
[[gnu::noinline]] void use_the_stack() {
  volatile unsigned char room[4096];
  for (volatile unsigned char& byte : room) byte = 0x5a;
}

TEST_F(ClientEnter, AnAskMayBeAVariable) {
  EnterAsk ask{.breaker = &*fraud, .limits = {{*api, "alice"}, {*tenant, "acme", 2}}};
  use_the_stack();
  EnterAsk copy;
  {
    const EnterAsk gone = ask;
    copy = gone;
  }
  copy = *&copy;
  use_the_stack();
  for (const EnterAsk* one : {&ask, &copy}) {
    ASSERT_EQ(one->limits.asks().size(), 2U);
    EXPECT_EQ(one->limits.asks()[0].key, "alice");
    EXPECT_EQ(one->limits.asks()[1].limit.name(), "tenant");
    EXPECT_EQ(one->limits.asks()[1].cost, 2U);
  }
  Entry e = client->enter(ask);
  ASSERT_TRUE(e) << e.text();
  EXPECT_EQ(left(*api, "alice"), 1U);
  EXPECT_EQ(left(*tenant, "acme"), 1U);
  e.call().succeeded();
  EXPECT_EQ(client->enter(copy).refused_name(), "tenant");
  ask.limits = {{*api, "alice"}};
  use_the_stack();
  EXPECT_TRUE(client->enter(ask));
  EXPECT_EQ(left(*api, "alice"), 0U);
}

TEST_F(ClientEnter, TheFirstPartThatRefusesIsNamed) {
  auto holder = gate->try_enter();
  Entry full = enter();
  ASSERT_FALSE(full);
  EXPECT_EQ(full.reason(), Reason::Full);
  EXPECT_EQ(full.refused_by(), EnterPart::Bulkhead);
  EXPECT_EQ(full.refused_name(), "fraudCheck");
  EXPECT_TRUE(full.is_hint());
  EXPECT_NE(full.text().find("bulkhead 'fraudCheck' is full: 1 of 1 place is held"),
            std::string::npos) << full.text();
  EXPECT_EQ(full.bulkhead_refusal().in_use(), 1U);

  open_breaker();
  Entry open = enter();
  EXPECT_EQ(open.reason(), Reason::Open);
  EXPECT_EQ(open.refused_by(), EnterPart::Breaker);
  EXPECT_EQ(open.retry_after(), 15s + 1ns);
  EXPECT_FALSE(open.is_hint());
  EXPECT_NE(open.text().find("breaker 'fraudCheck' is OPEN"), std::string::npos) << open.text();

  Entry limit = client->enter({.limits = {{*tenant, "acme"}, {*api, "alice", 3}}});
  EXPECT_EQ(limit.reason(), Reason::Never);
  EXPECT_EQ(limit.refused_by(), EnterPart::Limit);
  EXPECT_EQ(limit.refused_name(), "api");
  EXPECT_EQ(limit.retry_after(), kNever);
  EXPECT_EQ(left(*tenant, "acme"), 3U);
  api->try_acquire("alice", 2);
  Entry spent = client->enter({.limits = {{*api, "alice"}}});
  EXPECT_EQ(spent.text(), "limit 'api' has not enough tokens left; retry after 100 ms");
  EXPECT_FALSE(spent.is_hint());
}

TEST_F(ClientEnter, S50_ARefusalLeavesNothingBehind) {
  open_breaker();
  clock.advance(15s + 1ns);                          // half-open, one probe
  auto holder = gate->try_enter();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(enter().reason(), Reason::Full);
  EXPECT_EQ(left(*api, "alice"), 2U);
  holder->leave();
  Entry probe = enter();
  ASSERT_TRUE(probe);
  EXPECT_TRUE(probe.call().is_probe());
  EXPECT_EQ(enter().reason(), Reason::Probing);
  EXPECT_EQ(left(*api, "alice"), 1U);
  probe.call().succeeded();
  EXPECT_EQ(fraud->state(), BreakerStatus::Closed);
}

TEST_F(ClientEnter, WhatIsNotUsedGoesBack) {
  open_breaker();
  clock.advance(15s + 1ns);
  Entry e = enter();
  ASSERT_TRUE(e);
  e.give_up();
  EXPECT_TRUE(e.call().used());
  EXPECT_FALSE(e.place().holds());
  EXPECT_EQ(left(*api, "alice"), 2U);
  EXPECT_EQ(left(*tenant, "acme"), 3U);
  EXPECT_EQ(gate->use().in_use, 0U);
  EXPECT_TRUE(enter().call().is_probe()) << "the probe is free again";
}

TEST_F(ClientEnter, BadAsksTakeNothing) {
  std::vector<LimitAsk> many(9, LimitAsk{*api, "alice"});
  Entry e = client->enter({.breaker = &*fraud, .bulkhead = &*gate, .limits = many});
  EXPECT_EQ(e.reason(), Reason::InvalidArgument);
  EXPECT_EQ(e.retry_after(), kNever);
  EXPECT_NE(e.text(), "");
  Entry longer = client->enter(
      {.bulkhead = &*gate, .limits = {{*api, std::string(kMaxKeyBytes + 1, 'k')}}});
  EXPECT_EQ(longer.reason(), Reason::KeyTooLong);
  EXPECT_EQ(longer.refused_by(), EnterPart::Limit);
  EXPECT_EQ(gate->use().in_use, 0U);
  EXPECT_TRUE(client->enter({}));
}

TEST_F(ClientEnter, K6_ABreakerThatOpensEndsTheWait) {
  auto holder = gate->try_enter();
  std::optional<Reason> reason;
  Nanos waited{0};
  std::thread waiter([&] {
    Entry e = enter(1h);
    reason = e.reason();
    waited = e.waited();
  });
  while (gate->use().waiting != 1) std::this_thread::yield();
  open_breaker();
  waiter.join();

  EXPECT_EQ(reason, Reason::Open);
  EXPECT_GT(waited, 0ns);
  EXPECT_EQ(gate->use().waiting, 0U);
  EXPECT_EQ(left(*api, "alice"), 2U);
}

TEST_F(ClientEnter, ADeadlineThatPassesEndsTheWait) {
  auto holder = gate->try_enter();
  std::optional<Reason> reason;
  std::thread waiter([&] { reason = enter(1h, 1s).reason(); });
  while (gate->use().waiting != 1) std::this_thread::yield();
  clock.advance(1s + 1ms);
  waiter.join();

  EXPECT_EQ(reason, Reason::Expired);
  EXPECT_EQ(left(*api, "alice"), 2U);
}

TEST_F(ClientEnter, NobodyWaitsOnInAMemoryThatWasSuperseded) {
  auto holder = gate->try_enter();
  std::optional<Reason> by_entry, by_gate;
  std::thread waiter([&] { by_entry = enter(1h).reason(); });
  std::thread other([&] { by_gate = gate->enter().refusal().reason(); });
  while (gate->use().waiting != 2) std::this_thread::yield();
  std::uint64_t* const current = &view().rules_control->current;
  __atomic_fetch_or(current, shm::kCurrentSupersededBit, __ATOMIC_SEQ_CST);
  waiter.join();
  other.join();

  EXPECT_EQ(by_entry, Reason::Degraded) << "there is no next one for a private memory";
  EXPECT_EQ(by_gate, Reason::Degraded);
  __atomic_fetch_and(current, ~shm::kCurrentSupersededBit, __ATOMIC_SEQ_CST);
  EXPECT_EQ(left(*api, "alice"), 2U);
}

TEST_F(ClientEnter, AnEntryInheritedOverAForkIsItsParents) {
  Entry e = enter();
  ASSERT_TRUE(e);
  const pid_t child = fork();
  if (child == 0) {
    e.call().failed();
    e.place().leave();
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(gate->use().in_use, 1U);
  e.call().succeeded();
  EXPECT_EQ(fraud->explain().find("CLOSED: 0 of 1 call failed"), 0U) << fraud->explain();
}

TEST_F(ClientEnter, AChildHearsWhyItMayHoldNothing) {
  const pid_t child = fork();
  if (child == 0) {
    const Entry own = enter();
    _exit(own.text().find("open a client in the child") != std::string::npos ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(ClientEnter, APartThatAReloadRemovedIsNamed) {
  ASSERT_TRUE(client->reload("limits: { api: { rate: 10/s, burst: 2 }, tenant: { rate: 10/s } }"));
  Entry e = enter();
  EXPECT_EQ(e.reason(), Reason::Degraded);
  EXPECT_EQ(e.refused_by(), EnterPart::Breaker);
  EXPECT_TRUE(e.degraded());
  EXPECT_TRUE(e.is_hint());
  EXPECT_EQ(left(*api, "alice"), 2U);
}

TEST_F(ClientEnter, PartsOfSeveralClientsAreAskedOneByOne) {
  Client other = make_client(kAll, clock);
  Bulkhead far = other.bulkhead("fraudCheck").value();
  auto holder = far.try_enter();
  const EnterAsk both{.breaker = &*fraud, .bulkhead = &far, .max_wait = 0ns};
  EXPECT_EQ(client->enter(both).reason(), Reason::Full);
  holder->leave();
  open_breaker();
  EXPECT_EQ(client->enter(both).reason(), Reason::Open);
  clock.advance(15s + 1ns);
  Entry e = client->enter({.breaker = &*fraud, .bulkhead = &far, .limits = {{*api, "alice"}}});
  ASSERT_TRUE(e);
  EXPECT_TRUE(e.call().is_probe());
  EXPECT_EQ(far.use().in_use, 1U);
  api->try_acquire("alice", 1);
  e.give_up();
  Entry spent = client->enter({.bulkhead = &far, .limits = {{*api, "alice", 2}}});
  EXPECT_EQ(spent.reason(), Reason::Limit);
  EXPECT_EQ(far.use().in_use, 0U);
}

}  // namespace
}  // namespace cutwater::test
