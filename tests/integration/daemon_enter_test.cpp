// SPDX-License-Identifier: Apache-2.0
// One admission over the socket beside the same over mapped memory; what a caller that gave up was
// granted; and holders that say nothing while daemons come and go, or are forked.
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>
#include <thread>
#include <vector>

#include "integration/place_fixture.hpp"

namespace cutwater::test {
namespace {

class DaemonEnter : public DaemonPlace {
 protected:
  struct Parts {
    explicit Parts(Client& of)
        : client(of),
          gate(of.bulkhead("gate").value()),
          fraud(of.breaker("fraud").value()),
          api(of.limit("api").value()) {}
    Entry enter(std::uint64_t cost = 1, std::optional<Nanos> wait = Nanos{0},
                Nanos deadline = Nanos{0}) {
      return client.enter({.breaker = &fraud, .bulkhead = &gate, .limits = {{api, "k", cost}},
                           .max_wait = wait, .deadline = deadline});
    }
    Client& client;
    Bulkhead gate;
    Breaker fraud;
    Limit api;
  };
  static void expect_same(Entry& mapped, Entry& asked) {
    ASSERT_FALSE(mapped.granted());
    EXPECT_EQ(mapped.text(), asked.text());
    EXPECT_EQ(mapped.reason(), asked.reason());
    EXPECT_EQ(mapped.refused_by(), asked.refused_by());
    EXPECT_EQ(mapped.refused_name(), asked.refused_name());
    EXPECT_EQ(mapped.retry_after(), asked.retry_after());
    EXPECT_EQ(mapped.is_hint(), asked.is_hint());
    EXPECT_EQ(mapped.degraded(), asked.degraded());
    EXPECT_EQ(mapped.waited(), asked.waited());
    EXPECT_EQ(mapped.breaker_refusal().state(), asked.breaker_refusal().state());
    EXPECT_EQ(mapped.bulkhead_refusal().in_use(), asked.bulkhead_refusal().in_use());
  }
};

TEST_F(DaemonEnter, EachRefusalReadsAsTheMappedOneAndIsOneRoundTrip) {
  start({.arguments = {"--clock=stepped"}});
  auto near = mapping(), far = asking();
  Parts mapped(near), asked(far);
  const auto both = [&](std::uint64_t cost, Nanos deadline = Nanos{0}) {
    Entry one = mapped.enter(cost, Nanos{0}, deadline);
    const std::uint64_t before = far.status().asked;
    Entry other = asked.enter(cost, Nanos{0}, deadline);
    EXPECT_EQ(far.status().asked, before + 1);
    expect_same(one, other);
  };
  both(6);                                           // over the burst: never
  EXPECT_EQ(asked.enter(6).retry_after(), kNever);
  {
    Entry granted = asked.enter(2);
    ASSERT_TRUE(granted) << granted.text();
    EXPECT_EQ(granted.limits().remaining(), 3U);
    EXPECT_TRUE(granted.place().holds());
    both(1);                                         // full
    granted.call().succeeded();
    EXPECT_EQ(mapped.gate.use().in_use, 1U) << "the place is left by itself";
  }
  EXPECT_TRUE(held_by_nobody(mapped.gate));
  both(4);                                           // limit: 3 are left
  EXPECT_EQ(mapped.api.peek("k", 0).remaining(), 3U) << "no refusal took a token";
  asked.enter(1).call().failed("timeout");
  EXPECT_TRUE(held_by_nobody(mapped.gate));
  EXPECT_TRUE(eventually([&] { return !mapped.fraud.would_enter(); }));
  both(1);                                           // open
  EXPECT_EQ(far.status().unreported, 0U);
}

TEST_F(DaemonEnter, ACallMayOutliveItsPlaceAndThePlaceItsCall) {
  start();
  auto far = asking();
  Parts asked(far);
  Entry entry = asked.enter();
  ASSERT_TRUE(entry) << entry.text();
  Call call = std::move(entry.call());
  entry.place().leave();
  EXPECT_TRUE(held_by_nobody(asked.gate));

  call.failed("timeout");

  EXPECT_TRUE(eventually([&] { return asked.fraud.state() != BreakerStatus::Closed; }));
  EXPECT_EQ(far.status().unreported, 0U);
}

TEST_F(DaemonEnter, GivingUpGivesEverythingBack) {
  start();
  auto far = asking();
  Parts asked(far);
  Entry entry = asked.enter(3);
  ASSERT_TRUE(entry);

  entry.give_up();

  EXPECT_TRUE(held_by_nobody(asked.gate));
  EXPECT_EQ(asked.api.peek("k", 0).remaining(), 5U);
  EXPECT_EQ(asked.fraud.state(), BreakerStatus::Closed);
}

TEST_F(DaemonEnter, AWaitEndsByMaxWaitByTheDeadlineOrWithAPlace) {
  start();
  auto near = mapping(), far = asking();
  Parts mapped(near), asked(far);
  {
    auto held = mapped.gate.try_enter();
    Entry full = asked.enter(1, 20ms);
    EXPECT_EQ(full.reason(), Reason::Full) << full.text();
    EXPECT_GE(full.waited(), 20ms);
    Entry late = asked.enter(1, {}, 20ms);
    EXPECT_EQ(late.reason(), Reason::Expired) << late.text();
    EXPECT_EQ(asked.api.peek("k", 0).remaining(), 5U);
    std::thread waiter([&] {
      Entry entry = asked.enter(1, {});
      EXPECT_TRUE(entry) << entry.text();
    });
    EXPECT_TRUE(eventually([&] { return mapped.gate.use().waiting == 1; }));
    held->leave();
    waiter.join();
  }
  EXPECT_TRUE(held_by_nobody(mapped.gate));
}

// The daemon stands still, and what it grants when it goes on nobody waits for any more.
TEST_F(DaemonEnter, WhatIsGrantedToOneThatGaveUpGoesBack) {
  start();
  ClientOptions options = quiet();
  options.ask_timeout = 50ms;
  options.if_absent = IfAbsent::Deny;
  Client far = Client::open(place.address() + "?ask", options).value();
  auto near = mapping();
  Parts asked(far), mapped(near);
  daemon->signal(SIGSTOP);

  Entry given_up = asked.enter(2);

  EXPECT_EQ(given_up.reason(), Reason::Degraded) << given_up.text();
  EXPECT_EQ(given_up.refused_by(), EnterPart::Breaker);
  EXPECT_TRUE(given_up.degraded());
  daemon->signal(SIGCONT);
  EXPECT_TRUE(eventually([&] { return !asked.enter(0).degraded(); })) << "it answers again";
  EXPECT_TRUE(held_by_nobody(mapped.gate));
  EXPECT_TRUE(eventually([&] { return mapped.api.peek("k", 0).remaining() == 5; }));
}

TEST_F(DaemonEnter, WithoutADaemonItIsAnsweredByIfAbsent) {
  start();
  ClientOptions options = quiet();
  options.if_absent = IfAbsent::Allow;
  Client allows = Client::open(place.address() + "?ask", options).value();
  options.if_absent = IfAbsent::InProcess;
  options.in_process = std::string(kPlaceConfig);
  Client own = Client::open(place.address() + "?ask", options).value();
  Parts open(allows), alone(own);
  daemon->kill(SIGKILL);

  Entry allowed = open.enter(9);
  Entry first = alone.enter(5), full = alone.enter();

  EXPECT_TRUE(allowed.granted());
  EXPECT_TRUE(allowed.degraded());
  EXPECT_FALSE(allowed.place().holds());
  EXPECT_TRUE(first.granted()) << first.text();
  EXPECT_TRUE(first.degraded());
  EXPECT_TRUE(first.place().holds());
  EXPECT_EQ(full.refused_by(), EnterPart::Bulkhead) << "decided here, by all its parts";
  EXPECT_EQ(own.status().degraded, 2U);
}

// ---- what the end of a call tells ---------------------------------------------------------------

struct Soft : std::runtime_error { using std::runtime_error::runtime_error; };
struct Hard : Soft { using Soft::Soft; };

TEST_F(DaemonEnter, ARetryAfterAndAllNamesOfAnExceptionAreToldOverTheSocketToo) {
  place.write_config(
      "breakers:\n"
      "  waits: {sliding-window-type: COUNT_BASED, sliding-window-size: 10,\n"
      "    minimum-number-of-calls: 10, open-on-retry-after: true}\n"
      "  picks: {sliding-window-type: COUNT_BASED, sliding-window-size: 10,\n"
      "    minimum-number-of-calls: 10, record: [told-soft, exception], ignore: [told-hard]}\n");
  start({.arguments = {"--clock=stepped"}});
  ASSERT_TRUE(outcomes().add("told-soft", [](const std::exception& e) {
    return dynamic_cast<const Soft*>(&e) != nullptr;
  }));
  ASSERT_TRUE(outcomes().add("told-hard", [](const std::exception& e) {
    return dynamic_cast<const Hard*>(&e) != nullptr;
  }));
  auto near = mapping(), far = asking();
  const auto throws = [](Breaker& breaker, const auto& thrown) {
    auto call = breaker.try_enter();
    try {
      throw thrown;
    } catch (const std::exception&) {
      call->failed_by_exception();
    }
  };
  Breaker watched = near.breaker("picks").value();
  for (Client* client : {&near, &far}) {
    SCOPED_TRACE(client == &near ? "mapped" : "over the socket");
    Breaker picks = client->breaker("picks").value();
    throws(picks, Hard("ignored, though it was added last"));
    throws(picks, Soft("recorded"));
    const std::string failed = client == &near ? "1 of 1 call failed" : "2 of 2 calls failed";
    EXPECT_TRUE(eventually([&] {
      return watched.explain().find(failed) != std::string::npos;
    })) << watched.explain();
  }
  Breaker waits = far.breaker("waits").value(), seen = near.breaker("waits").value();
  waits.try_enter()->failed("connect", {}, 30s);     // none of those whose word is believed
  waits.try_enter()->failed("http-503", {}, 30s);
  EXPECT_TRUE(eventually([&] { return seen.state() == BreakerStatus::Open; }));
  const auto refused = seen.try_enter();
  EXPECT_EQ(refused.refusal().retry_after(), 30s + 1ns) << "the edge is open";
}

// ---- the bound of what is kept for a successor --------------------------------------------------

TEST_F(DaemonEnter, SoManyReturnsAreKeptUntilADaemonAnswersTheNextIsLostAndCounted) {
  const auto configured = [](int keys) {
    return "capacity: { keys: " + std::to_string(keys) +
           ", bulkhead-cells: 8192 }\nbulkheads:\n  many: {max-concurrent-calls: 4096}\n"
           "  one: {max-concurrent-calls: 1}\n";
  };
  place.write_config(configured(1024));
  start();
  auto near = mapping();
  Bulkhead many = near.bulkhead("many").value(), one = near.bulkhead("one").value();
  std::vector<Place> held;
  for (int i = 0; i < 4096; ++i) held.push_back(many.try_enter().take());
  auto last = one.try_enter();
  ASSERT_TRUE(last && held.back().holds());
  ASSERT_EQ(daemon->stop(), 0);
  place.write_config(configured(4096));
  start();
  daemon->kill(SIGKILL);                             // the memory was moved, nobody answers

  held.clear();
  EXPECT_EQ(near.status().unreported, 0U);
  last->leave();

  EXPECT_EQ(near.status().unreported, 1U);
  start();
  EXPECT_TRUE(eventually([&] { return many.use().limit == 4096; })) << "any ask attaches";
  EXPECT_TRUE(held_by_nobody(many));
  EXPECT_EQ(one.use().in_use, 1U) << "until the process ends";
}

// ---- holders that say nothing -------------------------------------------------------------------

TEST_F(DaemonEnter, ASilentHolderKeepsItsPlaceOverARestartAndItsDeathGivesItBack) {
  start();
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    auto far = asking();
    auto held = gate_of(far).try_enter();
    const char word = held ? 'y' : 'n';
    if (write(ready[1], &word, 1) != 1) _exit(1);
    for (;;) pause();
  }
  char word = 'n';
  ASSERT_EQ(read(ready[0], &word, 1), 1);
  ASSERT_EQ(word, 'y');
  daemon->kill(SIGKILL);
  start();
  ASSERT_TRUE(daemon->stop() == 0);                  // and an orderly one
  start();
  auto near = mapping();
  Bulkhead gate = gate_of(near);
  EXPECT_EQ(gate.use().in_use, 1U);

  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);

  EXPECT_TRUE(held_by_nobody(gate));
  close(ready[0]);
  close(ready[1]);
}

TEST_F(DaemonEnter, AForkedChildHoldsByARowOfItsOwn) {
  start();
  auto near = mapping();
  Parts parent(near);
  auto held = near.bulkhead("pair").value().try_enter();
  ASSERT_TRUE(held);
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    Entry entry = parent.enter();
    auto own = near.bulkhead("pair").value().try_enter();
    const char word = entry && own && !own.degraded() ? 'y' : 'n';
    if (write(ready[1], &word, 1) != 1) _exit(1);
    for (;;) pause();
  }
  char word = 'n';
  ASSERT_EQ(read(ready[0], &word, 1), 1);
  EXPECT_EQ(word, 'y');
  Bulkhead pair = near.bulkhead("pair").value();
  EXPECT_EQ(parent.gate.use().in_use, 1U);
  EXPECT_EQ(pair.use().in_use, 2U);

  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);

  EXPECT_TRUE(held_by_nobody(parent.gate));
  EXPECT_TRUE(eventually([&] { return pair.use().in_use == 1; })) << "its parent's stays";
  held->leave();
  EXPECT_TRUE(held_by_nobody(pair));
  close(ready[0]);
  close(ready[1]);
}

TEST_F(DaemonEnter, AForkedChildTakesAProbeThatItsDeathGivesBack) {
  start();
  auto near = mapping();
  Parts parent(near);
  parent.fraud.try_enter()->failed();
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    Call probe;
    const bool fine = eventually([&] {
      auto entered = parent.fraud.try_enter();
      if (entered) probe = entered.take();
      return !probe.used() && probe.is_probe();
    });
    const char word = fine ? 'y' : 'n';
    if (write(ready[1], &word, 1) != 1) _exit(1);
    for (;;) pause();
  }
  char word = 'n';
  ASSERT_EQ(read(ready[0], &word, 1), 1);
  EXPECT_EQ(word, 'y');
  EXPECT_FALSE(parent.fraud.would_enter()) << "its only probe is out, for ten minutes";

  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);

  EXPECT_TRUE(eventually([&] { return parent.fraud.would_enter(); }));
  close(ready[0]);
  close(ready[1]);
}

}  // namespace
}  // namespace cutwater::test
