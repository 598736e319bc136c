// SPDX-License-Identifier: Apache-2.0
// Places of bulkheads over the socket: taken, waited for in line without a thread, handed over,
// given back by every way a session can end; and admissions of several parts.
#include "unit/server/asked/places_world.hpp"

namespace cutwater::test {
namespace {

TEST_F(Places, AreHeldUntilTheirOutcomeAndARefusalSaysHowItStands) {
  const wire::Admission held = one.enter(gate());
  ASSERT_TRUE(held.allowed());
  EXPECT_EQ(held.flags, wire::kAnswerHolds);
  EXPECT_LE(held.ticket.size(), wire::kMaxTicket);
  pass(250 * kMsNs);

  const wire::Admission full = two.enter(gate());

  EXPECT_EQ(full.reason, number(Reason::Full));
  EXPECT_EQ(full.part, wire::Part::Bulkhead);
  EXPECT_EQ(full.holding, 1U);
  EXPECT_EQ(full.places, 1U);
  EXPECT_EQ(full.waiting, 0U);
  EXPECT_EQ(full.oldest_ns, 250 * kMsNs);
  EXPECT_EQ(full.flags, wire::kAnswerHint);
  EXPECT_GT(full.retry_after_ns, 0U);
  EXPECT_EQ(one.outcome(done(held.ticket, OutcomeKind::Cancelled)), 0U);
  EXPECT_EQ(one.outcome(done(held.ticket)), code(ItemError::Stale));
  EXPECT_EQ(info().in_use, 0U);
  EXPECT_EQ(count(BulkheadCounter::Stale), 1U);
  EXPECT_TRUE(two.enter(gate()).allowed());
}

TEST_F(Places, WhoHoldsOneMayBeSilent) {
  const auto holding = [&] {
    return served.desk().decider().holders().of({welcome.row_index, welcome.row_generation})
        .holding;
  };
  const std::string ticket = three.enter(gate()).ticket;
  EXPECT_EQ(holding(), 1U);
  EXPECT_EQ(three.enter(gate()).reason, number(Reason::Full));
  EXPECT_EQ(holding(), 1U);
  EXPECT_EQ(three.outcome(done(ticket)), 0U);
  EXPECT_EQ(three.outcome(done(ticket)), code(ItemError::Stale));
  EXPECT_EQ(holding(), 0U);
}

TEST_F(Places, OneHeldForLongComesBackHoweverManyTicketsCameBehindIt) {
  wire::Enter call;
  call.breaker = "b";
  wire::Enter both = gate();
  both.breaker = "b";
  for (const wire::Enter& asked : {gate(), both}) {
    const std::string held = one.enter(asked).ticket;
    for (std::uint32_t i = 0; i < server::TicketBook::kTickets; ++i) one.enter(call);
    ASSERT_EQ(info().in_use, 1U);

    EXPECT_EQ(one.outcome(done(held, OutcomeKind::Failed)), 0U);

    EXPECT_EQ(info().in_use, 0U);
    EXPECT_EQ(breaker().word.state, rule::BreakerState::Closed) << "too old to be evidence";
    const std::string next = two.enter(gate()).ticket;
    EXPECT_EQ(one.outcome(done(held)), code(ItemError::Stale)) << "once";
    EXPECT_EQ(info().in_use, 1U);
    EXPECT_EQ(two.outcome(done(next)), 0U);
  }
  EXPECT_EQ(count(BulkheadCounter::Returned), 4U);
}

TEST_F(Places, AStrangersTicketGivesNothingBack) {
  const std::string ticket = one.enter(gate()).ticket;
  EXPECT_EQ(two.outcome(done(ticket)), code(ItemError::InvalidArgument));
  EXPECT_EQ(info().in_use, 1U);
}

TEST_F(Places, WhoWaitsIsAnsweredWhenAPlaceIsHandedOverInOrder) {
  const std::string held = one.enter(gate()).ticket;
  const std::uint32_t second = wait(two, gate(kLong));
  const std::uint32_t third = wait(three, gate(kLong));
  EXPECT_EQ(info().waiting, 2U);
  pass(40 * kMsNs);
  EXPECT_EQ(one.enter(gate()).waiting, 2U) << "the loop serves others meanwhile";

  EXPECT_EQ(one.outcome(done(held)), 0U);

  const wire::Admission told = answer_of(two, second);
  ASSERT_TRUE(told.allowed());
  EXPECT_EQ(told.waited_ns, 40 * kMsNs);
  EXPECT_EQ(info().waiting, 1U);
  EXPECT_EQ(two.outcome(done(told.ticket)), 0U);
  EXPECT_TRUE(answer_of(three, third).allowed());
  EXPECT_EQ(count(BulkheadCounter::Waited), 2U);
}

TEST_F(Places, AMappedHoldersPlaceIsHandedOverToo) {
  shm::BulkheadCaller mapped{welcome.row_index, welcome.row_generation, {}};
  const shm::BulkheadEntry held = shm::enter_bulkhead(served.view(), ref(), mapped);
  ASSERT_TRUE(held.granted);
  const std::uint32_t waiting = wait(one, gate(kLong));

  shm::leave_bulkhead(served.view(), ref(), mapped, held.place);

  EXPECT_TRUE(answer_of(one, waiting).allowed());
}

TEST_F(Places, WaitsEndAtTheirTimeOrTheCalls) {
  const std::string held = one.enter(gate()).ticket;
  const std::uint32_t patient = wait(two, gate(200 * kMsNs));
  wire::Enter hasty = gate(kLong);
  hasty.call_ns = 100 * kMsNs;
  const std::uint32_t late = wait(three, hasty);
  pass(101 * kMsNs);
  EXPECT_EQ(answer_of(three, late).reason, number(Reason::Expired));
  pass(100 * kMsNs);

  const wire::Admission told = answer_of(two, patient);

  EXPECT_EQ(told.reason, number(Reason::Full));
  EXPECT_GE(told.waited_ns, 200 * kMsNs);
  EXPECT_EQ(info().waiting, 0U);
  EXPECT_EQ(one.outcome(done(held)), 0U);
  EXPECT_TRUE(two.enter(gate()).allowed());
}

TEST_F(Places, ACancelledWaitIsAnsweredAndSwallowsNoPlace) {
  const std::string held = one.enter(gate()).ticket;
  const std::uint32_t second = wait(two, gate(kLong));
  const std::uint32_t third = wait(three, gate(kLong));
  two.send(wire::MessageType::Cancel, second + 1, *wire::encode(wire::Cancel{second}));
  two.set_last_request(second + 1);
  EXPECT_EQ(answer_of(two, second).reason, code(ItemError::Cancelled));
  const auto cancelled = two.receive();
  ASSERT_TRUE(cancelled);
  EXPECT_EQ(wire::decode<wire::CancelAnswer>(cancelled->payload)->returned.code, 0U);
  EXPECT_EQ(info().waiting, 1U);

  EXPECT_EQ(one.outcome(done(held)), 0U);

  EXPECT_TRUE(answer_of(three, third).allowed());
}

TEST_F(Places, OfASessionThatEndsGoToWhoWaits) {
  one.enter(gate());
  const std::uint32_t second = wait(two, gate(kLong));
  one.bye();
  EXPECT_TRUE(answer_of(two, second).allowed()) << "at once on BYE";
  const std::uint32_t third = wait(three, gate(9'000 * kMsNs));

  two.cut();
  served.tick(kGraceNs - 1'000'000'000);
  EXPECT_EQ(info().waiting, 1U);
  served.tick(2 * kGraceNs);

  EXPECT_TRUE(answer_of(three, third).allowed()) << "after the grace";
  EXPECT_EQ(count(BulkheadCounter::Reclaimed), 2U);
}

TEST_F(Places, AWaiterThatIsGoneLeavesTheLine) {
  const std::string held = one.enter(gate()).ticket;
  wait(two, gate(kLong));
  const std::uint32_t third = wait(three, gate(kLong));
  two.cut();
  served.tick(2 * kGraceNs);
  served.desk().look_at_line();
  EXPECT_EQ(info().waiting, 1U);

  EXPECT_EQ(one.outcome(done(held)), 0U);

  EXPECT_TRUE(answer_of(three, third).allowed());
}

// Nobody looks at this line between the death of the row and its next grant.
TEST_F(Places, AFormerWaiterTouchesNothingOfWhoHasItsRowNow) {
  server::Decider decider(served.memory());
  server::Line line(served.memory(), decider);
  line.set_deliver([](const auto&, const auto&, auto) { ADD_FAILURE() << "it is answered"; });
  ServedPeer former(served);
  const wire::Welcome was = former.greet();
  const shm::RowGrant old{was.row_index, was.row_generation};
  one.enter(gate());
  for (const std::uint32_t request : {7U, 8U}) {
    std::unique_ptr<server::WaitingEnter> waits;
    ASSERT_EQ(decider.enter(gate(kLong), decider.holders().of(old), nullptr, waits), nullptr);
    line.add({{}, "its session", request, old, false}, std::move(waits), 0);
  }
  former.bye();
  shm::RowGrant anew;
  for (int i = 0; i < 100 && anew.index != old.index; ++i) {
    ServedPeer peer(served);
    const wire::Welcome given = peer.greet();
    anew = {given.row_index, given.row_generation};
    if (anew.index != old.index) peer.bye();   // else its row stays its own
  }
  ASSERT_EQ(anew.index, old.index);
  const std::uint32_t first = decider.holders().of(anew).tickets.issue();
  const std::uint32_t second = decider.holders().of(anew).tickets.issue();

  EXPECT_FALSE(line.cancel("its session", 7));
  EXPECT_EQ(decider.holders().of(anew).tickets.spend(first), server::TicketBook::Spent::First);
  line.memory_replaced(0);

  EXPECT_EQ(decider.holders().of(anew).tickets.spend(second), server::TicketBook::Spent::First);
  EXPECT_EQ(line.size(), 0U);
  EXPECT_EQ(info().waiting, 0U);
}

TEST_F(Places, WhoTakesASessionOverGetsWhatItWaitedFor) {
  const std::string held = one.enter(gate()).ticket;
  const std::uint32_t asked = wait(three, gate(kLong));
  three.cut();
  EXPECT_EQ(one.outcome(done(held)), 0U);
  served.desk().look_at_line();
  ServedPeer again(served);
  ASSERT_TRUE(again.greet(welcome.session).resumed);
  again.send(wire::MessageType::Enter, asked, *wire::encode(gate(kLong)), wire::kFlagRepeat);

  const wire::Admission told = answer_of(again, asked);

  ASSERT_TRUE(told.allowed());
  EXPECT_EQ(info().in_use, 1U) << "asked once";
  again.set_last_request(asked);
  EXPECT_EQ(again.outcome(done(told.ticket)), 0U);
  EXPECT_EQ(info().in_use, 0U);
}

TEST_F(Places, ASessionMayHaveSoManyInLine) {
  one.enter(gate());
  for (std::size_t i = 0; i < wire::kMaxWaitingEnters; ++i) wait(two, gate(kLong));
  EXPECT_EQ(info().waiting, wire::kMaxWaitingEnters);

  const wire::Admission told = two.enter(gate(kLong));

  EXPECT_EQ(told.reason, number(Reason::Full));
  EXPECT_EQ(told.part, wire::Part::Bulkhead);
  EXPECT_EQ(info().waiting, wire::kMaxWaitingEnters);
  const std::uint32_t other = wait(three, gate(kLong));
  EXPECT_EQ(info().waiting, wire::kMaxWaitingEnters + 1);
  EXPECT_GT(other, 0U);
}

TEST_F(Places, CallAndPlaceMayHaveATicketEach) {
  wire::Enter both = gate();
  both.breaker = "b";
  both.apart = true;
  both.items.push_back({"api", "k", 2, 0});
  const wire::Admission told = one.enter(both);
  ASSERT_TRUE(told.allowed());
  ASSERT_NE(told.place_ticket, "");
  EXPECT_EQ(told.flags, 0U) << "the call of a closed breaker holds nothing";

  EXPECT_EQ(one.outcome(done(told.ticket, OutcomeKind::Failed)), 0U);
  EXPECT_EQ(breaker().word.state, rule::BreakerState::Open);
  EXPECT_EQ(info().in_use, 1U) << "the place is left later";
  EXPECT_EQ(one.outcome(done(told.place_ticket)), 0U);
  EXPECT_EQ(info().in_use, 0U);
  EXPECT_EQ(one.outcome(done(told.place_ticket)), code(ItemError::Stale));
  pass(1'001 * kMsNs);
  const wire::Admission probe = two.enter(both);
  ASSERT_TRUE(probe.allowed());
  EXPECT_EQ(probe.flags, wire::kAnswerHolds);
  EXPECT_EQ(two.ask<wire::CancelAnswer>(wire::Cancel{two.last_request()})->returned,
            (wire::Returned{0, 2}));
  EXPECT_EQ(info().in_use, 0U);
  EXPECT_EQ(breaker().probes_held, 0U);
}

TEST_F(Places, OneInLineGetsNothingOfWhatAnotherWasGrantedMeanwhile) {
  const std::string held = one.enter(gate()).ticket;
  const std::uint32_t waiting = wait(two, gate(kLong));
  wire::Enter other;
  other.breaker = "b";
  other.items.push_back({"api", "k", 1, 0});
  ASSERT_TRUE(three.enter(other).allowed());
  EXPECT_EQ(one.outcome(done(held)), 0U);

  const wire::Admission told = answer_of(two, waiting);

  ASSERT_TRUE(told.allowed());
  EXPECT_EQ(told.state, wire::BreakerWord::None);
  EXPECT_EQ(two.outcome(done(told.ticket)), 0U);
  EXPECT_EQ(info().in_use, 0U);
}

TEST_F(Places, ACallThatCouldNotBeginInTimeIsNoFailure) {
  one.enter(gate());
  wire::Enter both = gate(kLong);
  both.breaker = "b";
  both.call_ns = 100 * kMsNs;
  const std::uint32_t waiting = wait(two, both);
  pass(101 * kMsNs);

  EXPECT_EQ(answer_of(two, waiting).reason, number(Reason::Expired));

  EXPECT_EQ(shm::sum_breaker_counters(served.view(), 0)
                .of(shm::BreakerCounter::ExpiredInQueue), 1U);
  EXPECT_EQ(breaker().word.state, rule::BreakerState::Closed);
}

TEST_F(Places, AllPartsAreTakenOrNone) {
  wire::Enter all = gate();
  all.breaker = "b";
  all.items.push_back({"api", "k", 2, 0});
  const wire::Admission told = one.enter(all);
  ASSERT_TRUE(told.allowed());
  EXPECT_EQ(told.remaining, 3U);
  EXPECT_EQ(told.state, wire::BreakerWord::Closed);
  EXPECT_EQ(told.flags, wire::kAnswerHolds);
  EXPECT_EQ(two.enter(all).part, wire::Part::Bulkhead);
  EXPECT_EQ(tokens_left(two), 3U);
  EXPECT_EQ(one.outcome(done(told.ticket, OutcomeKind::Failed)), 0U);
  EXPECT_EQ(info().in_use, 0U);
  const wire::Admission open = two.enter(all);
  EXPECT_EQ(open.part, wire::Part::Breaker);
  EXPECT_EQ(open.why, "failure rate 100 % of 1 call");
  EXPECT_EQ(tokens_left(two), 3U);
  pass(1'001 * kMsNs);
  all.items[0].cost = 4;
  const wire::Admission limited = two.enter(all);
  EXPECT_EQ(limited.part, wire::Part::Limit);
  EXPECT_EQ(limited.index, 0U);
  EXPECT_EQ(info().in_use, 0U);
  EXPECT_EQ(breaker().probes_held, 0U);
  all.items[0].cost = 1;
  const wire::Admission probe = two.enter(all);
  ASSERT_TRUE(probe.allowed());
  EXPECT_EQ(probe.ticket.size(), wire::kMaxTicket);

  EXPECT_EQ(two.ask<wire::CancelAnswer>(wire::Cancel{two.last_request()})->returned,
            (wire::Returned{0, 1}));

  EXPECT_EQ(info().in_use, 0U);
  EXPECT_EQ(breaker().probes_held, 0U);
  EXPECT_EQ(tokens_left(two), 3U);
}

TEST_F(Places, ABreakerThatOpensEndsTheWait) {
  one.enter(gate());
  wire::Enter both = gate(kLong);
  both.breaker = "b";
  const std::uint32_t waiting = wait(two, both);
  wire::Enter alone;
  alone.breaker = "b";
  EXPECT_EQ(three.outcome(done(three.enter(alone).ticket, OutcomeKind::Failed)), 0U);

  const wire::Admission told = answer_of(two, waiting);

  EXPECT_EQ(told.reason, number(Reason::Open));
  EXPECT_EQ(told.part, wire::Part::Breaker);
  EXPECT_EQ(info().waiting, 0U);
}

TEST_F(Places, ResolveSaysHowManyAndHowItStands) {
  one.enter(gate());
  wire::Resolve names;
  names.names = {{wire::NameKind::Bulkhead, "gate"}, {wire::NameKind::Bulkhead, "gates"}};

  const auto answer = two.ask<wire::ResolveAnswer>(names);

  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->names[0].settings.find("max")->as_unsigned(), 1U);
  EXPECT_EQ(answer->names[0].settings.find("in_use")->as_unsigned(), 1U);
  EXPECT_EQ(answer->names[1].nearest, std::vector<std::string>{"gate"});
}

}  // namespace
}  // namespace cutwater::test
