// SPDX-License-Identifier: Apache-2.0
// Tickets of breakers over the socket: whose they are, that each ends once, and what becomes of
// them when a connection is cut, a session ends, or the daemon starts anew.
#include <gtest/gtest.h>

#include "stress/breaker_world.hpp"
#include "unit/server/asked/served.hpp"

namespace cutwater::test {
namespace {

using rule::BreakerState;
using shm::BreakerCounter;
using wire::ItemError;
using wire::OutcomeKind;
using wire::OutcomeReport;

constexpr std::uint64_t kGraceNs = 5'000'000'000;
constexpr std::uint64_t kMsNs = 1'000'000;

std::uint16_t code(ItemError error) { return static_cast<std::uint16_t>(error); }

config::Config config_with(const rule::BreakerSettings& settings) {
  config::Config out = small_config(16);
  out.breakers = {settings};
  out.limits = {five_an_hour()};
  return out;
}

class Tickets : public testing::Test {
 protected:
  explicit Tickets(const rule::BreakerSettings& settings = count_breaker({1, 1, 1}))
      : served(config_with(settings), true) {}

  shm::BreakerInfo info() {
    shm::BreakerInfo out;
    shm::read_breaker(served.view(), ref().index, out);
    return out;
  }
  BreakerState state() { return info().word.state; }
  shm::BreakerRef ref() { return shm::find_breaker(served.view(), "b"); }
  std::uint64_t count(BreakerCounter counter) {
    return shm::sum_breaker_counters(served.view(), ref().index).of(counter);
  }
  void pass(std::uint64_t ns) {
    shm::step_clock(served.view(), served.view().clock.now() + static_cast<std::int64_t>(ns));
  }
  static wire::Enter breaker() {
    wire::Enter out;
    out.breaker = "b";
    return out;
  }
  static OutcomeReport report(const std::string& ticket, OutcomeKind how) {
    OutcomeReport out;
    out.ticket = ticket;
    out.outcome = how;
    return out;
  }
  /// The only probe of a breaker that opened and is due.
  std::string take_probe(ServedPeer& peer) {
    if (state() == BreakerState::Closed) {
      peer.outcome(report(peer.enter(breaker()).ticket, OutcomeKind::Failed));
    }
    pass(1'001 * kMsNs);
    const wire::Admission told = peer.enter(breaker());
    EXPECT_TRUE(told.allowed());
    EXPECT_NE(told.flags & wire::kAnswerHolds, 0);
    return told.ticket;
  }
  std::uint64_t tokens_left(ServedPeer& peer) {
    wire::Peek look;
    look.items.push_back({"api", "k", 0, 0});
    const auto answer = peer.ask<wire::PeekAnswer>(look);
    return answer ? answer->decisions.at(0).remaining : 999;
  }

  Served served;
};

TEST_F(Tickets, EndOnceAndBelongToTheirSession) {
  ServedPeer peer(served), other(served);
  peer.greet();
  other.greet();
  const std::string ticket = peer.enter(breaker()).ticket;
  ASSERT_FALSE(ticket.empty());

  EXPECT_EQ(other.outcome(report(ticket, OutcomeKind::Failed)), code(ItemError::InvalidArgument));
  EXPECT_EQ(peer.outcome(report("made up", OutcomeKind::Failed)),
            code(ItemError::InvalidArgument));
  EXPECT_EQ(state(), BreakerState::Closed);
  EXPECT_EQ(peer.outcome(report(ticket, OutcomeKind::Succeeded)), 0U);
  EXPECT_EQ(peer.outcome(report(ticket, OutcomeKind::Failed)), code(ItemError::Stale));

  EXPECT_EQ(state(), BreakerState::Closed);
  EXPECT_EQ(count(BreakerCounter::Success), 1U);
  EXPECT_EQ(count(BreakerCounter::Failure), 0U);
  EXPECT_EQ(count(BreakerCounter::UsedTwice), 1U);
}

TEST_F(Tickets, MoreThanASessionMayHaveUnderWayForgetsTheOldest) {
  ServedPeer peer(served);
  peer.greet();
  const std::string first = peer.enter(breaker()).ticket;
  for (std::uint32_t i = 0; i < server::TicketBook::kTickets; ++i) peer.enter(breaker());

  EXPECT_EQ(peer.outcome(report(first, OutcomeKind::Failed)), code(ItemError::Stale));
  EXPECT_EQ(state(), BreakerState::Closed);
}

TEST_F(Tickets, ARefusalSaysStateAgeReasonAndWhenToComeBack) {
  ServedPeer peer(served);
  peer.greet();
  peer.outcome(report(peer.enter(breaker()).ticket, OutcomeKind::Failed));
  pass(200 * kMsNs);

  const wire::Admission told = peer.enter(breaker());

  EXPECT_EQ(told.reason, static_cast<std::uint16_t>(Reason::Open));
  EXPECT_EQ(told.part, wire::Part::Breaker);
  EXPECT_EQ(told.state, wire::BreakerWord::Open);
  EXPECT_EQ(told.since_ns, 200 * kMsNs);
  EXPECT_EQ(told.why, "failure rate 100 % of 1 call");
  EXPECT_EQ(told.retry_after_ns, 800 * kMsNs + 1);
  EXPECT_EQ(told.flags, 0U);
  EXPECT_TRUE(told.ticket.empty());
  take_probe(peer);
  const wire::Admission probing = peer.enter(breaker());
  EXPECT_EQ(probing.reason, static_cast<std::uint16_t>(Reason::Probing));
  EXPECT_EQ(probing.flags, wire::kAnswerHint);
  EXPECT_EQ(probing.state, wire::BreakerWord::HalfOpen);
}

TEST_F(Tickets, AProbeIsHeldAsLongAsTheCallMayTake) {
  ServedPeer peer(served);
  peer.greet();
  peer.outcome(report(peer.enter(breaker()).ticket, OutcomeKind::Failed));
  pass(1'001 * kMsNs);
  wire::Enter asked = breaker();
  asked.call_ns = 250 * kMsNs;

  const wire::Admission told = peer.enter(asked);

  ASSERT_TRUE(told.allowed());
  EXPECT_EQ(told.deadline_ns / 1'000, 250'000U);
  pass(251 * kMsNs);
  EXPECT_EQ(peer.enter(breaker()).reason, static_cast<std::uint16_t>(Reason::Open));
  EXPECT_EQ(peer.outcome(report(told.ticket, OutcomeKind::Succeeded)), code(ItemError::Stale));
}

TEST_F(Tickets, ClassesAreJudgedByTheSettingsAndADependencyMayAskForTime) {
  ServedPeer peer(served);
  peer.greet();
  OutcomeReport mild = report(peer.enter(breaker()).ticket, OutcomeKind::Failed);
  mild.outcome_class = "http-404";
  EXPECT_EQ(peer.outcome(mild), 0U);
  EXPECT_EQ(count(BreakerCounter::Ignored), 1U);
  EXPECT_EQ(state(), BreakerState::Closed);
  OutcomeReport busy = report(peer.enter(breaker()).ticket, OutcomeKind::Failed);
  busy.open_for_ns = 3'000 * kMsNs;
  EXPECT_EQ(peer.outcome(busy), 0U);
  EXPECT_EQ(peer.enter(breaker()).retry_after_ns, 3'000 * kMsNs + 1);
  pass(3'001 * kMsNs);
  const std::string probe = peer.enter(breaker()).ticket;
  EXPECT_EQ(peer.outcome(report(probe, OutcomeKind::TimedOut)), 0U);
  EXPECT_EQ(state(), BreakerState::Open);
  const auto timeouts = static_cast<BreakerCounter>(
      static_cast<std::size_t>(BreakerCounter::FirstClass) + rule::class_counter("timeout"));
  EXPECT_EQ(count(timeouts), 1U);
}

TEST_F(Tickets, CancelGivesAProbeBackOnce) {
  ServedPeer peer(served);
  peer.greet();
  take_probe(peer);
  const std::uint32_t entered = peer.last_request();
  wire::Refund refund;
  refund.items = {{entered, 0, std::nullopt}, {entered, 1, std::nullopt}};
  const auto refunded = peer.ask<wire::RefundAnswer>(refund);
  ASSERT_TRUE(refunded);
  EXPECT_EQ(refunded->items[1].code, code(ItemError::NotRemembered));
  EXPECT_EQ(info().probes_held, 1U) << "REFUND gives tokens back and nothing else";

  EXPECT_EQ(peer.ask<wire::CancelAnswer>(wire::Cancel{entered})->returned.code, 0U);

  EXPECT_EQ(info().probes_held, 0U);
  EXPECT_EQ(count(BreakerCounter::Cancelled), 1U);
  EXPECT_TRUE(peer.enter(breaker()).allowed());
  peer.ask<wire::CancelAnswer>(wire::Cancel{entered});
  EXPECT_EQ(info().probes_held, 1U) << "the second cancel is of nothing";
}

TEST_F(Tickets, LimitsAndABreakerAreTakenTogetherOrNotAtAll) {
  ServedPeer peer(served), other(served);
  peer.greet();
  other.greet();
  wire::Enter both = breaker();
  both.items.push_back({"api", "k", 2, 0});
  const wire::Admission told = peer.enter(both);
  ASSERT_TRUE(told.allowed());
  EXPECT_EQ(told.remaining, 3U);
  EXPECT_EQ(peer.outcome(report(told.ticket, OutcomeKind::Failed)), 0U);

  const wire::Admission open = peer.enter(both);
  EXPECT_EQ(open.part, wire::Part::Breaker);
  EXPECT_EQ(tokens_left(peer), 3U);
  pass(1'001 * kMsNs);
  both.items[0].cost = 4;
  const wire::Admission limited = peer.enter(both);
  EXPECT_EQ(limited.part, wire::Part::Limit);
  EXPECT_EQ(info().probes_held, 0U);
  both.items[0].cost = 1;
  const wire::Admission probe = peer.enter(both);
  ASSERT_TRUE(probe.allowed());
  EXPECT_EQ(tokens_left(peer), 2U);
  const std::uint32_t entered = peer.last_request() - 1;
  EXPECT_EQ(other.enter(both).reason, static_cast<std::uint16_t>(Reason::Probing));
  EXPECT_EQ(tokens_left(peer), 2U);

  EXPECT_EQ(peer.ask<wire::CancelAnswer>(wire::Cancel{entered})->returned,
            (wire::Returned{0, 1}));

  EXPECT_EQ(tokens_left(peer), 3U);
  EXPECT_EQ(info().probes_held, 0U);
}

TEST_F(Tickets, ACutSessionKeepsItsProbeForTheGraceAndThenItGoesBack) {
  ServedPeer other(served);
  other.greet();
  ServedPeer peer(served);
  peer.greet();
  take_probe(peer);
  peer.cut();
  served.tick(kGraceNs - 1'000'000'000);
  EXPECT_EQ(info().probes_held, 1U);

  served.tick(2 * kGraceNs);

  EXPECT_EQ(info().probes_held, 0U);
  EXPECT_EQ(count(BreakerCounter::ProbesReclaimed), 1U);
  EXPECT_TRUE(other.enter(breaker()).allowed());
}

TEST_F(Tickets, WhoTakesASessionOverEndsItsCalls) {
  ServedPeer peer(served);
  const wire::Welcome welcome = peer.greet();
  const std::string probe = take_probe(peer);
  peer.cut();
  ServedPeer again(served);
  const wire::Welcome resumed = again.greet(welcome.session);
  ASSERT_TRUE(resumed.resumed);
  again.set_last_request(peer.last_request());
  EXPECT_EQ(resumed.row_index, welcome.row_index);
  served.tick(2 * kGraceNs);

  EXPECT_EQ(again.outcome(report(probe, OutcomeKind::Succeeded)), 0U);

  EXPECT_EQ(state(), BreakerState::Closed);
}

TEST_F(Tickets, ASessionThatCannotComeBackGivesBackAtItsEnd) {
  ServedPeer peer(served);
  EXPECT_EQ(peer.greet({}, 0).row_index, 0U);
  take_probe(peer);
  EXPECT_EQ(info().probes_held, 1U);

  peer.cut();

  EXPECT_EQ(info().probes_held, 0U);
  EXPECT_EQ(count(BreakerCounter::ProbesReclaimed), 1U);
}

TEST_F(Tickets, ARestartKeepsProbesAndTheirSessionsPresentThem) {
  std::string probe, late;
  {
    ServedPeer peer(served);
    peer.greet();
    late = peer.enter(breaker()).ticket;
    probe = take_probe(peer);
    served.stop();
  }
  served.start();
  served.tick();
  EXPECT_EQ(info().probes_held, 1U);
  ServedPeer again(served);
  again.greet();
  EXPECT_EQ(again.outcome(report(probe, OutcomeKind::Failed)), code(ItemError::InvalidArgument));
  EXPECT_EQ(again.enter(breaker()).reason, static_cast<std::uint16_t>(Reason::Probing));

  const auto answer = again.ask<wire::PresentAnswer>(wire::Present{{probe, "?", late, probe}});

  ASSERT_TRUE(answer);
  ASSERT_EQ(answer->tickets.size(), 4U);
  EXPECT_NE(answer->tickets[0], "");
  EXPECT_EQ(answer->tickets[1], "");
  EXPECT_EQ(answer->tickets[3], "") << "a ticket passes on once";
  served.tick(2 * kGraceNs);
  EXPECT_EQ(info().probes_held, 1U);
  EXPECT_EQ(again.outcome(report(answer->tickets[2], OutcomeKind::Failed)),
            code(ItemError::Stale)) << "of an epoch that is over";
  EXPECT_EQ(again.outcome(report(answer->tickets[0], OutcomeKind::Succeeded)), 0U);
  EXPECT_EQ(state(), BreakerState::Closed);
}

TEST_F(Tickets, WhatItsClientDoesNotPresentGoesBackAfterTheGrace) {
  ServedPeer peer(served);
  const std::string session = peer.greet().session;
  const std::string probe = take_probe(peer);
  served.stop();
  served.start();
  ServedPeer back(served);
  back.greet(session);
  served.tick(kGraceNs - 1'000'000'000);
  EXPECT_EQ(info().probes_held, 1U);

  served.tick(2 * kGraceNs);

  EXPECT_EQ(info().probes_held, 0U);
  ServedPeer again(served);
  again.greet();
  EXPECT_EQ(again.ask<wire::PresentAnswer>(wire::Present{{probe}})->tickets[0], "");
  EXPECT_TRUE(again.enter(breaker()).allowed());
}

TEST_F(Tickets, OfALivingSessionCannotBePresentedByAnother) {
  ServedPeer peer(served), thief(served);
  peer.greet();
  thief.greet();
  const std::string probe = take_probe(peer);

  EXPECT_EQ(thief.ask<wire::PresentAnswer>(wire::Present{{probe}})->tickets[0], "");
  EXPECT_EQ(peer.ask<wire::PresentAnswer>(wire::Present{{probe}})->tickets[0], probe);
  EXPECT_EQ(peer.outcome(report(probe, OutcomeKind::Succeeded)), 0U);
}

TEST_F(Tickets, ResolveSaysSettingsAndStateOrTheNearestName) {
  ServedPeer peer(served);
  peer.greet();
  wire::Resolve names;
  names.names = {{wire::NameKind::Breaker, "b"}, {wire::NameKind::Breaker, "bb"},
                 {wire::NameKind::Bulkhead, "b"}, {wire::NameKind::Guard, "b"}};

  const auto answer = peer.ask<wire::ResolveAnswer>(names);

  ASSERT_TRUE(answer);
  const wire::Resolved& known = answer->names[0];
  EXPECT_EQ(known.code, 0U);
  EXPECT_EQ(known.settings.find("window_calls")->as_unsigned(), 1U);
  EXPECT_EQ(known.settings.find("probes")->as_unsigned(), 1U);
  EXPECT_EQ(known.settings.find("state")->as_unsigned(), 1U);
  EXPECT_EQ(known.settings.find("would")->as_unsigned(), 0U);
  EXPECT_EQ(known.settings.find("explain")->as_string()->substr(0, 7), "CLOSED:");
  EXPECT_EQ(answer->names[1].nearest, std::vector<std::string>{"b"});
  EXPECT_NE(answer->names[2].code, 0U);
  EXPECT_NE(answer->names[3].code, 0U);
}

TEST_F(Tickets, AnUnknownBreakerIsToldWithTheNearestName) {
  ServedPeer peer(served);
  peer.greet();
  wire::Enter asked;
  asked.breaker = "bb";

  const wire::Admission told = peer.enter(asked);

  EXPECT_EQ(told.reason, code(ItemError::UnknownName));
  EXPECT_NE(told.text.find("did you mean 'b'?"), std::string::npos) << told.text;
}

}  // namespace
}  // namespace cutwater::test
