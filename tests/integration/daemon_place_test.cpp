// SPDX-License-Identifier: Apache-2.0
// Places of a real daemon, held over the socket: they read and count as mapped ones, wait in line
// with them, and come back when their process is killed; a restart of the daemon frees none.
#include <sys/wait.h>

#include <chrono>
#include <random>
#include <thread>

#include "integration/place_fixture.hpp"
#include "support/raw_peer.hpp"

namespace cutwater::test {
namespace {

TEST_F(DaemonPlace, ARefusalReadsAsTheMappedOne) {
  start({.arguments = {"--clock=stepped"}});
  auto near = mapping(), far = asking();
  Bulkhead mapped = gate_of(near), asked = gate_of(far);
  EXPECT_EQ(far.bulkhead("gates").error().code(), Errc::UnknownName);
  auto held = asked.try_enter();
  ASSERT_TRUE(held);
  EXPECT_FALSE(held.degraded());
  EXPECT_TRUE(held->holds());
  EXPECT_EQ(mapped.use().in_use, 1U);
  EXPECT_EQ(asked.use().in_use, 1U);
  EXPECT_EQ(asked.use().limit, 1U);
  EXPECT_FALSE(asked.would_enter());

  const auto one = mapped.try_enter(), other = asked.try_enter();

  ASSERT_FALSE(one);
  ASSERT_FALSE(other);
  EXPECT_FALSE(other.degraded());
  EXPECT_EQ(one.refusal().text(), other.refusal().text());
  EXPECT_EQ(one.refusal().reason(), other.refusal().reason());
  EXPECT_EQ(one.refusal().limit(), other.refusal().limit());
  EXPECT_EQ(one.refusal().retry_after(), other.refusal().retry_after());
  held->leave();
  held->leave();
  EXPECT_FALSE(held->holds());
  EXPECT_TRUE(eventually([&] { return mapped.would_enter(); }));
  { auto again = asked.try_enter(); EXPECT_TRUE(again); }
  EXPECT_TRUE(held_by_nobody(mapped));
  EXPECT_EQ(far.status().unreported, 0U);
}

TEST_F(DaemonPlace, MappedAndAskedWaitersHandOverToEachOther) {
  start();
  auto near = mapping(), far = asking();
  Bulkhead mapped = gate_of(near), asked = gate_of(far);
  const auto wait_behind = [](Bulkhead& holder, Bulkhead& waiter) {
    auto held = holder.try_enter();
    ASSERT_TRUE(held) << held.refusal().text();
    std::thread thread([&] {
      auto waited = waiter.enter();
      EXPECT_TRUE(waited) << waited.refusal().text();
    });
    EXPECT_TRUE(eventually([&] { return holder.use().waiting == 1; }));
    held->leave();
    thread.join();
    EXPECT_TRUE(held_by_nobody(holder));
  };
  wait_behind(mapped, asked);
  wait_behind(asked, mapped);
  wait_behind(asked, asked);
  auto held = mapped.try_enter();
  const auto full = asked.enter({.max_wait = 20ms});
  EXPECT_EQ(full.refusal().reason(), Reason::Full);
  EXPECT_GE(full.refusal().waited(), 20ms);
  const auto late = asked.enter({.deadline = 20ms});
  EXPECT_EQ(late.refusal().reason(), Reason::Expired);
}

TEST_F(DaemonPlace, OfManyThreadsNeverMoreThanOneIsIn) {
  start();
  auto near = mapping(), far = asking();
  std::atomic<int> inside{0}, over{0}, done{0};
  const auto work = [&](Client& client) {
    Bulkhead gate = gate_of(client);
    for (int i = 0; i < 100; ++i) {
      auto held = gate.enter();
      if (!held) { ADD_FAILURE() << held.refusal().text(); return; }
      if (++inside != 1) ++over;
      --inside;
      ++done;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(work, std::ref(i % 2 == 0 ? near : far));
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(over, 0);
  EXPECT_EQ(done, 400);
  Bulkhead gate = gate_of(near);
  EXPECT_TRUE(held_by_nobody(gate));
}

TEST_F(DaemonPlace, OfAKilledProcessPlaceAndProbeComeBack) {
  start();
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    auto client = asking();
    Bulkhead gate = gate_of(client);
    Breaker fraud = client.breaker("fraud").value();
    fraud.try_enter()->failed();
    Call probe;
    const bool fine = eventually([&] {
      auto entered = fraud.try_enter();
      if (!entered || !entered->is_probe()) return false;
      probe = entered.take();
      return true;
    });
    auto held = gate.try_enter();
    const char word = fine && held ? 'y' : 'n';
    if (write(ready[1], &word, 1) != 1) _exit(1);
    for (;;) pause();
  }
  char word = 'n';
  ASSERT_EQ(read(ready[0], &word, 1), 1);
  ASSERT_EQ(word, 'y');
  auto near = mapping();
  Bulkhead gate = gate_of(near);
  Breaker fraud = near.breaker("fraud").value();
  EXPECT_EQ(gate.use().in_use, 1U);
  EXPECT_FALSE(fraud.would_enter());

  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);

  EXPECT_TRUE(held_by_nobody(gate));
  EXPECT_TRUE(eventually([&] { return fraud.would_enter(); }));
  close(ready[0]);
  close(ready[1]);
}

TEST_F(DaemonPlace, ARestartOfTheDaemonFreesNothingThatRuns) {
  start();
  auto far = asking();
  Bulkhead asked = gate_of(far);
  auto held = asked.try_enter();
  ASSERT_TRUE(held);
  daemon->kill(SIGKILL);
  start();
  auto near = mapping();
  Bulkhead mapped = gate_of(near);
  EXPECT_FALSE(mapped.try_enter()) << "kept for the grace";
  EXPECT_TRUE(eventually([&] { return !asked.try_enter().degraded(); }));
  EXPECT_FALSE(mapped.try_enter()) << "presented";

  held->leave();

  EXPECT_TRUE(held_by_nobody(mapped));
  EXPECT_EQ(far.status().unreported, 0U);
}

// Where nothing is presented the grace gives both places back at once: one alone is free only when
// the end of one came and the other was presented.
TEST_F(DaemonPlace, AnEndIsTheFirstThatANewDaemonHears) {
  start();
  auto holder = asking(), caller = asking();
  Bulkhead pair = holder.bulkhead("pair").value();
  auto one = pair.try_enter(), other = pair.try_enter();
  ASSERT_TRUE(one && other);
  auto call = caller.breaker("fraud").value().try_enter();
  ASSERT_TRUE(call);
  daemon->kill(SIGKILL);
  start();
  auto near = mapping();
  Bulkhead mapped = near.bulkhead("pair").value();
  Breaker fraud = near.breaker("fraud").value();
  ASSERT_EQ(mapped.use().in_use, 2U);
  ASSERT_EQ(fraud.state(), BreakerStatus::Closed);

  one->leave();
  call->failed("timeout");

  EXPECT_TRUE(eventually([&] { return mapped.use().in_use == 1; }));
  EXPECT_TRUE(eventually([&] { return fraud.state() != BreakerStatus::Closed; }));
  { auto next = mapped.try_enter(); EXPECT_TRUE(next); }
  EXPECT_EQ(mapped.use().in_use, 1U) << "the other one was presented";
  other->leave();
  EXPECT_TRUE(held_by_nobody(mapped));
  EXPECT_EQ(holder.status().unreported, 0U);
  EXPECT_EQ(caller.status().unreported, 0U);
}

/// A place and a probe that were taken before the daemon's memory got another capacity.
struct Taken {
  Place place;
  Call probe;
};
Taken take_both(Client& client) {
  Taken out;
  Bulkhead gate = client.bulkhead("gate").value();
  Breaker fraud = client.breaker("fraud").value();
  fraud.try_enter()->failed();
  EXPECT_TRUE(eventually([&] {
    auto entered = fraud.try_enter();
    if (!entered || !entered->is_probe()) return false;
    out.probe = entered.take();
    return true;
  }));
  auto held = gate.try_enter();
  EXPECT_TRUE(held);
  out.place = held.take();
  return out;
}

TEST_F(DaemonPlace, WhatWasTakenBeforeTheMemoryMovedIsGivenBackInItsSuccessor) {
  for (const bool asks : {false, true}) {
    SCOPED_TRACE(asks ? "over the socket" : "mapped");
    place.write_config(std::string("capacity: { keys: 1024 }\n") + kPlaceConfig);
    start();
    {
      auto client = asks ? asking() : mapping();
      Taken taken = take_both(client);
      ASSERT_EQ(daemon->stop(), 0);
      place.write_config(std::string("capacity: { keys: 4096 }\n") + kPlaceConfig);
      start();
      ASSERT_TRUE(daemon->wait_log("moved into one of another size")) << daemon->log();
      auto late = mapping();
      Bulkhead gate = gate_of(late);
      Breaker fraud = late.breaker("fraud").value();
      EXPECT_EQ(gate.use().in_use, 1U);
      EXPECT_EQ(fraud.state(), BreakerStatus::HalfOpen);
      EXPECT_FALSE(fraud.would_enter()) << "its only probe is out";

      // A session that only asks presents what it holds with its first end, too.
      taken.place.leave();
      taken.probe.succeeded();

      EXPECT_TRUE(held_by_nobody(gate));
      EXPECT_TRUE(eventually([&] { return fraud.state() == BreakerStatus::Closed; }));
      EXPECT_EQ(client.status().unreported, 0U);
    }
    ASSERT_EQ(daemon->stop(), 0);
  }
}

// From the mark on until the next daemon answers nobody can attach to the successor.
TEST_F(DaemonPlace, WhatIsGivenBackWhileNoDaemonAnswersIsGivenBackWhenOneDoes) {
  place.write_config(std::string("capacity: { keys: 1024 }\n") + kPlaceConfig);
  start();
  auto client = mapping();
  Bulkhead gate = gate_of(client);
  Taken taken = take_both(client);
  ASSERT_EQ(daemon->stop(), 0);
  place.write_config(std::string("capacity: { keys: 4096 }\n") + kPlaceConfig);
  start();
  daemon->kill(SIGKILL);                             // the memory was moved, nobody answers

  taken.place.leave();
  taken.probe.succeeded();

  start();
  auto late = mapping();
  Bulkhead same = gate_of(late);
  Breaker fraud = late.breaker("fraud").value();
  EXPECT_EQ(same.use().in_use, 1U) << "not told yet";
  EXPECT_TRUE(eventually([&] { return gate.use().limit == 1; })) << "any ask attaches";
  EXPECT_TRUE(held_by_nobody(same));
  EXPECT_EQ(fraud.state(), BreakerStatus::Closed);
  EXPECT_EQ(client.status().unreported, 0U);
}

TEST_F(DaemonPlace, OneAdmissionOverTheSocketTakesAllOrNone) {
  start();
  auto far = asking();
  Bulkhead gate = gate_of(far);
  Breaker fraud = far.breaker("fraud").value();
  Limit api = far.limit("api").value();
  {
    auto entry = far.enter({.breaker = &fraud, .bulkhead = &gate, .limits = {{api, "k", 2}}});
    ASSERT_TRUE(entry) << entry.text();
    EXPECT_FALSE(entry.degraded());
    const auto full = far.enter({.breaker = &fraud, .bulkhead = &gate, .limits = {{api, "k"}},
                                 .max_wait = 0ms});
    EXPECT_EQ(full.refused_by(), EnterPart::Bulkhead) << full.text();
    EXPECT_EQ(api.peek("k", 0).remaining(), 3U);
    entry.call().succeeded();
  }
  EXPECT_TRUE(held_by_nobody(gate));
  const auto limited = far.enter({.breaker = &fraud, .bulkhead = &gate, .limits = {{api, "k", 4}}});
  EXPECT_EQ(limited.refused_by(), EnterPart::Limit);
  EXPECT_TRUE(held_by_nobody(gate));
}

TEST_F(DaemonPlace, AForkedChildGivesNothingOfItsParentBack) {
  start();
  auto far = asking();
  Bulkhead gate = gate_of(far);
  auto held = gate.try_enter();
  ASSERT_TRUE(held);
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    held->leave();
    held = Placed{};
    _exit(gate.use().in_use == 1 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(gate.use().in_use, 1U);
}

/// Frames of random bytes and of messages with one byte changed: each is answered by an ERROR or by
/// a plain answer, and nobody else is harmed.
TEST_F(DaemonPlace, AThousandBadFramesHarmNobodyElse) {
  start();
  auto far = asking();
  Bulkhead gate = gate_of(far);
  auto held = gate.try_enter();
  ASSERT_TRUE(held);
  const unsigned seed = 20'261'130;
  SCOPED_TRACE(seed);
  std::mt19937 chance(seed);
  wire::Enter enter;
  enter.bulkhead = "gate";
  enter.breaker = "fraud";
  wire::OutcomeReport report;
  report.ticket = std::string(48, 't');
  report.outcome_class = "timeout";
  const std::string good[] = {*wire::encode(enter), *wire::encode(wire::Outcome{{report}}),
                              *wire::encode(wire::Present{{report.ticket}}),
                              *wire::encode(wire::Cancel{1})};
  const wire::MessageType types[] = {wire::MessageType::Enter, wire::MessageType::Outcome,
                                     wire::MessageType::Present, wire::MessageType::Cancel};
  std::optional<RawPeer> peer;
  std::uint32_t request = 1;
  for (int i = 0; i < 1'000; ++i) {
    if (!peer) {
      peer.emplace(place.socket());
      wire::Hello hello = RawPeer::hello(wire::Want::Ask);
      hello.features = wire::kFeatureRemember;
      if (!peer->greet(hello)) {                     // too many failed ones of this uid a minute
        peer.reset();
        continue;
      }
      request = 1;
    }
    const std::size_t kind = chance() % 4;
    std::string payload = good[kind];
    payload[chance() % payload.size()] = static_cast<char>(chance());
    if (chance() % 8 == 0) payload.assign(chance() % 64, static_cast<char>(chance()));
    if (!peer->send_frame(types[kind], ++request, payload) || !peer->receive()) peer.reset();
  }
  EXPECT_EQ(gate.use().in_use, 1U) << "its holder still holds it";
  held->leave();
  EXPECT_TRUE(held_by_nobody(gate));
  EXPECT_TRUE(daemon->running());
}

/// Stopped in line until its wait and its patience are over; the daemon answered meanwhile.
TEST_F(DaemonPlace, AWaiterThatWasStoppedIsToldWhatHappenedMeanwhile) {
  start();
  auto near = mapping();
  Bulkhead gate = gate_of(near);
  auto held = gate.try_enter();
  ASSERT_TRUE(held);
  int told[2];
  ASSERT_EQ(pipe(told), 0);
  const pid_t waiter = fork();
  if (waiter == 0) {
    alarm(60);
    ClientOptions options = quiet();
    options.ask_timeout = 100ms;
    auto client = Client::open(place.address() + "?ask", options).value();
    const std::string text = gate_of(client).enter({.max_wait = 300ms}).refusal().text();
    _exit(write(told[1], text.data(), text.size()) > 0 ? 0 : 1);
  }
  close(told[1]);
  EXPECT_TRUE(eventually([&] { return gate.use().waiting == 1; }));
  kill(waiter, SIGSTOP);
  const auto stopped = std::chrono::steady_clock::now();
  EXPECT_TRUE(eventually([&] { return gate.use().waiting == 0; }));
  EXPECT_TRUE(eventually([&] { return std::chrono::steady_clock::now() - stopped > 500ms; }));
  kill(waiter, SIGCONT);

  char text[512] = {};
  EXPECT_GT(read(told[0], text, sizeof text - 1), 0);
  waitpid(waiter, nullptr, 0);
  EXPECT_NE(std::string_view(text).find("bulkhead 'gate' is full after "), std::string_view::npos)
      << text;
  close(told[0]);
}

}  // namespace
}  // namespace cutwater::test
