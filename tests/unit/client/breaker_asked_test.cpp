// SPDX-License-Identifier: Apache-2.0
// Breakers over the socket, against a scripted daemon: what is asked, what is reported and how
// often, and what becomes of calls over cuts, restarts and forks.
#include <sys/wait.h>

#include "base/clock.hpp"
#include "src/ask/ask_socket.hpp"
#include "src/ask/asked_calls.hpp"
#include "src/ask/asking.hpp"
#include "unit/client/ask_fixture.hpp"

namespace cutwater::test {
namespace {

using wire::OutcomeKind;

class BreakerAsked : public AskTest {
 protected:
  /// One more ask, so that what was posted is read and sent.
  static void ask_once(Client& client) { (void)client.limit("api").value().try_acquire("k"); }
};

TEST_F(BreakerAsked, EveryWordIsReportedOnceAndSomeAreQuiet) {
  Client client = open(options());
  Breaker fraud = client.breaker("fraud").value();
  fraud.try_enter()->succeeded(5ms);
  fraud.try_enter()->failed("http-503");
  fraud.try_enter()->ignored();
  fraud.try_enter()->open_for(3s, "http-429");
  { auto unsaid = fraud.try_enter(); }
  Call moved;
  {
    auto entered = fraud.try_enter();
    moved = entered.take();
    EXPECT_FALSE(moved.used());
  }
  moved.failed("timeout");
  EXPECT_TRUE(moved.used());

  ASSERT_TRUE(daemon.wait_outcomes(6));

  const auto told = daemon.outcomes();
  ASSERT_EQ(told.size(), 6U);
  EXPECT_EQ(told[0].outcome, OutcomeKind::Succeeded);
  EXPECT_EQ(told[0].ticket, "ticket 1");
  EXPECT_EQ(told[0].duration_ns, 5'000'000U);
  EXPECT_EQ(told[1].outcome, OutcomeKind::Failed);
  EXPECT_EQ(told[1].outcome_class, "http-503");
  EXPECT_NE(told[1].duration_ns, wire::kNever) << "measured here";
  EXPECT_EQ(told[1].open_for_ns, 0U);
  EXPECT_EQ(told[2].outcome, OutcomeKind::Ignored);
  EXPECT_EQ(told[3].open_for_ns, 3'000'000'000U);
  EXPECT_EQ(told[4].outcome, OutcomeKind::Cancelled);
  EXPECT_EQ(told[5].outcome_class, "timeout");
  EXPECT_EQ(daemon.quiet, 6U);
  EXPECT_EQ(client.status().unreported, 0U);
}

// As a program that reads the memory itself: no time is taken where no setting needs it.
TEST_F(BreakerAsked, NoTimeIsTakenWhereNoneIsWantedAndAGivenOneIsTold) {
  daemon.timed = false;
  Client client = open(options());
  Breaker fraud = client.breaker("fraud").value();
  fraud.try_enter()->succeeded();
  fraud.try_enter()->failed("timeout");
  fraud.try_enter()->succeeded(5ms);

  ASSERT_TRUE(daemon.wait_outcomes(3));

  const auto told = daemon.outcomes();
  EXPECT_EQ(told[0].duration_ns, wire::kNever);
  EXPECT_EQ(told[1].duration_ns, wire::kNever);
  EXPECT_EQ(told[2].duration_ns, 5'000'000U);
}

TEST_F(BreakerAsked, ASecondWordIsToldAndAnExceptionThatPassesIsAFailure) {
  Client client = open(options());
  Breaker fraud = client.breaker("fraud").value();
  auto entered = fraud.try_enter();
  entered->succeeded();
  entered->failed();
  EXPECT_THROW((void)fraud.run([]() -> int { throw std::runtime_error("no"); }),
               std::runtime_error);

  ASSERT_TRUE(daemon.wait_outcomes(3));

  const auto told = daemon.outcomes();
  EXPECT_EQ(told[0].ticket, told[1].ticket) << "the daemon counts it as used twice";
  EXPECT_EQ(told[2].outcome_class, "exception");
}

TEST_F(BreakerAsked, ARefusalReadsAsTheMappedOne) {
  Client client = open(options());
  Breaker fraud = client.breaker("fraud").value();
  EXPECT_TRUE(fraud.would_enter());
  EXPECT_EQ(fraud.state(), BreakerStatus::Closed);
  daemon.open = true;

  const auto refused = fraud.try_enter();

  ASSERT_FALSE(refused);
  EXPECT_FALSE(refused.degraded());
  EXPECT_EQ(refused.refusal().reason(), Reason::Open);
  EXPECT_EQ(refused.refusal().state(), BreakerStatus::Open);
  EXPECT_EQ(refused.refusal().retry_after(), 2s);
  EXPECT_FALSE(refused.refusal().is_hint());
  EXPECT_EQ(refused.refusal().text(),
            "breaker 'fraud' is OPEN since 3.2 s (failure rate 60 % of 10 calls), does not permit "
            "calls, retry after 2 s");
  EXPECT_FALSE(fraud.would_enter());
  EXPECT_EQ(fraud.state(), BreakerStatus::Open);
  EXPECT_EQ(fraud.explain(), "as the daemon says");
}

TEST_F(BreakerAsked, AnUnknownNameIsAnErrorWithTheNearest) {
  Client client = open(options());
  const auto unknown = client.breaker("frud");
  EXPECT_EQ(unknown.error().code(), Errc::UnknownName);
  EXPECT_EQ(unknown.error().text(),
            "the daemon has no breaker \"frud\"; the nearest are fraud");
  Breaker fraud = client.breaker("fraud").value();
  daemon.breakers.clear();
  const auto gone = fraud.try_enter();
  EXPECT_EQ(gone.refusal().reason(), Reason::Degraded);
  EXPECT_NE(gone.refusal().text().find("a reload removed it"), std::string::npos)
      << gone.refusal().text();
}

TEST_F(BreakerAsked, TheEndOfAProbeIsRepeatedOverACut) {
  Client client = open(options());
  Breaker fraud = client.breaker("fraud").value();
  daemon.probes = true;
  auto probe = fraud.try_enter();
  ASSERT_TRUE(probe);
  EXPECT_TRUE(probe->is_probe());
  daemon.cut_in = 3;                                 // in the middle of the outcome's frame
  probe->succeeded();
  ask_once(client);

  ASSERT_TRUE(daemon.wait_outcomes(1));

  EXPECT_EQ(daemon.outcomes().size(), 1U);
  EXPECT_EQ(daemon.hellos, 2U);
  EXPECT_EQ(daemon.quiet, 0U) << "what ends a cell is answered";
  ask_once(client);
  EXPECT_EQ(client.status().unreported, 0U);
}

TEST_F(BreakerAsked, AfterARestartTheCallsUnderWayArePresentedOnce) {
  Client client = open(options());
  Breaker fraud = client.breaker("fraud").value();
  daemon.probes = true;
  auto first = fraud.try_enter(), second = fraud.try_enter(), said = fraud.try_enter();
  said->succeeded();
  ask_once(client);
  daemon.stop();
  daemon.start();
  ask_once(client);                                  // finds the new daemon
  const auto third = fraud.try_enter();
  ASSERT_TRUE(third);
  EXPECT_FALSE(third.degraded());
  EXPECT_EQ(daemon.presented, 2U) << "the ended one is nobody's";

  first->failed();
  second->succeeded();
  ask_once(client);

  ASSERT_TRUE(daemon.wait_outcomes(3));
  EXPECT_EQ(daemon.outcomes()[1].ticket, "ticket 1 again");
  EXPECT_EQ(daemon.outcomes()[2].ticket, "ticket 2 again");
  EXPECT_EQ(daemon.presented, 2U);
  EXPECT_EQ(client.status().unreported, 0U);
}

// Whatever a client says first to another daemon, what it holds is presented: it may say no more.
TEST_F(BreakerAsked, AfterARestartAnySingleAskPresents) {
  daemon.probes = true;
  const std::vector<std::pair<const char*, std::function<void(Client&, Breaker&)>>> asks = {
      {"acquire", [](Client& c, Breaker&) { c.limit("api").value().try_acquire("k"); }},
      {"peek", [](Client& c, Breaker&) { c.limit("api").value().peek("k"); }},
      {"resolve", [](Client& c, Breaker&) { static_cast<void>(c.breaker("unknown")); }},
      {"state", [](Client&, Breaker& b) { static_cast<void>(b.state()); }},
      {"would_enter", [](Client&, Breaker& b) { static_cast<void>(b.would_enter()); }},
      {"explain", [](Client&, Breaker& b) { static_cast<void>(b.explain()); }},
  };
  for (const auto& [name, ask] : asks) {
    SCOPED_TRACE(name);
    Client client = open(options());
    ask_once(client);
    Breaker fraud = client.breaker("fraud").value();
    auto held = fraud.try_enter();
    ASSERT_TRUE(held);
    const std::uint64_t before = daemon.presented;
    daemon.stop();
    daemon.start();
    // The first may only find that the connection is gone.
    ask(client, fraud);
    for (int i = 0; i < 3 && daemon.presented == before; ++i) ask(client, fraud);
    EXPECT_EQ(daemon.presented, before + 1);
  }
}

// A thread that is stopped between the report of a place and the end of its ticket, while others
// find another daemon: presented again, the place would be held with nobody left to give it back.
TEST_F(BreakerAsked, WhatWasReportedIsNeverPresentedAgain) {
  const auto in_a_minute = [] { return boottime_ns() + 60'000'000'000; };
  const auto wait = client::Deadline::in(60s);
  client::AskSocket socket("asker", 60s);
  auto link = client::Connection::connect(daemon.path(), wait);
  ASSERT_TRUE(link);
  auto greeting = link->hello(client::hello_for("asker", wire::Want::Ask), wait);
  ASSERT_TRUE(greeting);
  ASSERT_TRUE(socket.adopt(std::move(*link), *greeting));
  client::AskedCalls calls;
  client::AskedCall* const said = calls.add(nullptr, "said", socket.session_number(), true);
  client::AskedCall* const held = calls.add(nullptr, "held", socket.session_number(), true);
  wire::OutcomeReport report;
  report.outcome = OutcomeKind::Succeeded;
  ASSERT_TRUE(calls.report(&socket, *said, report, in_a_minute()));

  daemon.stop();
  daemon.start();
  std::int64_t clock = 0;
  while (client::ask_clock(socket, clock, in_a_minute()) == client::AskEnd::Lost) {}
  calls.present(socket, in_a_minute());

  EXPECT_EQ(daemon.presented, 1U);
  EXPECT_EQ(held->bytes(), "held again");
  EXPECT_EQ(said->bytes(), "said");
  calls.remove(said);
  calls.remove(held);
}

TEST_F(BreakerAsked, AReportAloneFindsTheNewDaemonToo) {
  Client client = open(options());
  Breaker fraud = client.breaker("fraud").value();
  auto call = fraud.try_enter();
  daemon.stop();
  daemon.start();

  call->failed();

  ASSERT_TRUE(daemon.wait_outcomes(1));
  EXPECT_EQ(daemon.outcomes()[0].ticket, "ticket 1 again");
  EXPECT_EQ(client.status().unreported, 0U);
}

TEST_F(BreakerAsked, WhatCannotBeToldIsCounted) {
  Client client = open(options(IfAbsent::Allow, 100ms));
  Breaker fraud = client.breaker("fraud").value();
  auto call = fraud.try_enter();
  auto other = fraud.try_enter();
  daemon.stop();

  call->failed();                                    // finds that it is gone
  EXPECT_EQ(client.status().unreported, 1U);
  other->failed();                                   // knows it

  EXPECT_EQ(client.status().unreported, 2U);
  EXPECT_TRUE(fraud.try_enter().degraded());
}

TEST_F(BreakerAsked, AnAskThatIsGivenUpIsCancelled) {
  Client client = open(options(IfAbsent::Allow, 50ms));
  Breaker fraud = client.breaker("fraud").value();
  daemon.silent = true;
  EXPECT_TRUE(fraud.try_enter().degraded());
  daemon.silent = false;
  ASSERT_TRUE([&] {
    const auto until = std::chrono::steady_clock::now() + 60s;
    while (daemon.cancels == 0 && std::chrono::steady_clock::now() < until) ask_once(client);
    return daemon.cancels == 1U;
  }());
}

TEST_F(BreakerAsked, SoManyEndsAreUnderWayAndMoreWaitForAnAnswer) {
  Client client = open(options(IfAbsent::Allow, 50ms));
  Breaker fraud = client.breaker("fraud").value();
  daemon.probes = true;
  std::vector<Entered> calls;
  for (std::size_t i = 0; i < client::AskSocket::kMostPosted + 2; ++i) {
    calls.push_back(fraud.try_enter());
    ASSERT_FALSE(calls.back().degraded());
  }
  daemon.silent = true;

  for (auto& call : calls) call->succeeded();

  EXPECT_GE(client.status().unreported, 1U) << "one too many, and nobody answers";
  EXPECT_LE(client.status().unreported, 2U);
}

TEST_F(BreakerAsked, AForkedChildEndsNothingOfItsParentAndAsksForItself) {
  Client client = open(options());
  Breaker fraud = client.breaker("fraud").value();
  auto call = fraud.try_enter();
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    call->failed();
    call = Entered{};
    auto own = fraud.try_enter();
    const bool fine = own && !own.degraded();
    own->succeeded();
    _exit(fine ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  ASSERT_TRUE(daemon.wait_outcomes(1));
  EXPECT_EQ(daemon.outcomes()[0].outcome, OutcomeKind::Succeeded);
  call->succeeded();
  ASSERT_TRUE(daemon.wait_outcomes(2));
  EXPECT_EQ(daemon.outcomes()[1].ticket, "ticket 1");
}

}  // namespace
}  // namespace cutwater::test
