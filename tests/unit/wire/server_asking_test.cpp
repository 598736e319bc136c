// SPDX-License-Identifier: Apache-2.0
// The daemon's end while it is asked: rights, credit, waiting, watches.
#include "unit/wire/asking.hpp"

namespace cutwater::wire {
namespace {

/// One message of each request, with the right it needs.
std::vector<std::pair<std::string, std::uint8_t>> requests(std::uint32_t id) {
  const auto of = [&](const auto& message, std::uint8_t rights) {
    return std::pair(frame_of(message, id), rights);
  };
  const std::vector<Item> items{{"a", "k", 1, 0}};
  return {of(Resolve{{{NameKind::Limit, "a"}}}, kRightUse | kRightLook),
          of(Acquire{0, 0, items}, kRightUse),
          of(Peek{items}, kRightUse | kRightLook),
          of(Cancel{1}, kRightUse),
          of(Refund{{{1, 0, {}}}}, kRightUse),
          of(Enter{}, kRightUse),
          of(Outcome{{OutcomeReport{}}}, kRightUse),
          of(Present{{""}}, kRightUse),
          of(limits(), kRightLook),
          of(steer("x"), kRightSteer),
          of(Watch{1, "", 0, 1}, kRightLook)};
}

// covers: C140 (rights on the socket: each request needs its own)
TEST(ServerAsking, EveryRequestNeedsItsRight) {
  for (int rights = 0; rights < 8; ++rights) {
    for (const auto& [frame, needed] : requests(2)) {
      ServerSession session = ready_session(static_cast<std::uint8_t>(rights));

      const auto actions = session.feed(frame, {});

      const bool allowed = (needed & rights) != 0;
      EXPECT_EQ(session.waiting_requests(), allowed ? 1u : 0u);
      if (!allowed) {
        EXPECT_EQ(only<ErrorMessage>(sent(actions)).code, ErrorCode::NotPermitted);
      }
    }
  }
}

TEST(ServerAsking, DrainingTakesWhatEndsThingsAndIsBusyForTheRest) {
  for (const auto& [frame, rights] : requests(2)) {
    ServerSession session = ready_session();
    (void)session.go_away(GoawayReason::Shutdown, "", 0);
    const auto type = static_cast<MessageType>(frame[3]);

    const auto actions = session.feed(frame, {});

    const bool ends = type == MessageType::Outcome || type == MessageType::Cancel ||
                      type == MessageType::Refund;
    EXPECT_EQ(session.waiting_requests(), ends ? 1u : 0u);
    EXPECT_EQ(types_of(sent(actions)), ends ? Types{} : Types{MessageType::Busy});
  }
}

TEST(ServerAsking, CreditCountsItems) {
  Welcome welcome = plain_welcome();
  welcome.credit_items = 10;
  ServerSession session({}, 0);
  (void)session.feed(frame_of(plain_hello(), 1), {});
  (void)session.welcome(welcome, 0);
  (void)session.feed(frame_of(acquire(6), 2), {});
  (void)session.feed(frame_of(acquire(4), 3), {});
  EXPECT_TRUE(session.wants_input());

  const auto over = session.feed(frame_of(acquire(1), 4), {});

  EXPECT_EQ(types_of(sent(over)), Types{MessageType::Busy});
  EXPECT_FALSE(session.wants_input());
  (void)session.answer(3, granted(4));
  EXPECT_FALSE(session.wants_input());  // 6 of 10 still wait
  (void)session.answer(2, granted(6));
  EXPECT_TRUE(session.wants_input());
  // More than all of it goes through when nothing else waits.
  EXPECT_EQ(all_of<AcquireRequested>(session.feed(frame_of(acquire(11), 5), {})).size(), 1u);
}

TEST(ServerAsking, ATimeToLiveRunsFromReceipt) {
  ServerSession session = ready_session();
  Acquire ask = acquire(2);
  ask.ttl_ns = 50;

  const auto soon = session.feed(frame_of(ask, 2), {.now_ns = 1000, .clock_ns = 0});
  const auto ever = session.feed(frame_of(acquire(), 3), {.now_ns = 1000, .clock_ns = 0});
  ask.ttl_ns = kNever;
  const auto far = session.feed(frame_of(ask, 4), {.now_ns = 1000, .clock_ns = 0});

  EXPECT_EQ(all_of<AcquireRequested>(soon)[0].begin_by_ns, 1050u);
  EXPECT_EQ(all_of<AcquireRequested>(ever)[0].begin_by_ns, kNever);
  EXPECT_EQ(all_of<AcquireRequested>(far)[0].begin_by_ns, kNever);
  const AcquireAnswer expired = expired_answer(ask);
  ASSERT_EQ(expired.decisions.size(), 2u);
  EXPECT_EQ(expired.decisions[1].reason, kReasonExpired);
  EXPECT_EQ(expired_answer(Enter{}).admission.reason, kReasonExpired);
}

// covers: C127 (a repeat gets the same answer and is not executed)
// BUSY says that nothing was done, so it is never said of what was.
// covers: U4 (a receipt is spent once) and U6 (too late does not spend it), over the socket
TEST(ServerAsking, AQuietOutcomeIsAnsweredOnlyByAnError) {
  ServerSession session = remembering_session();
  const Outcome outcome{{OutcomeReport{}}};
  (void)session.feed(frame_of(outcome, 2, kFlagQuiet), {});
  EXPECT_TRUE(session.answer(2, OutcomeAnswer{{0}}).empty());
  (void)session.feed(frame_of(outcome, 3, kFlagQuiet), {});
  EXPECT_EQ(types_of(sent(session.fail(3, {ErrorCode::Internal, "", "x"}))),
            Types{MessageType::Error});
  EXPECT_EQ(session.waiting_requests(), 0u);
  (void)session.feed(frame_of(outcome, 4), {});
  EXPECT_EQ(types_of(sent(session.answer(4, OutcomeAnswer{{0}}))),
            Types{MessageType::OutcomeAnswer});
}

TEST(ServerAsking, AtMost256EntersWait) {
  ServerSession session = ready_session();
  for (std::uint32_t id = 2; id < 2 + kMaxWaitingEnters; ++id) {
    (void)session.feed(frame_of(Enter{}, id), {});
    EXPECT_TRUE(session.park(id));
    EXPECT_TRUE(session.park(id));  // the same one
  }
  (void)session.feed(frame_of(Enter{}, 1000), {});

  EXPECT_FALSE(session.park(1000));
  (void)session.answer(2, EnterAnswer{});
  EXPECT_TRUE(session.park(1000));
  EXPECT_FALSE(session.park(4711));
}

TEST(ServerAsking, TicketsPresentedMustFitTheirAnswer) {
  Welcome welcome = plain_welcome();
  welcome.max_frame = kMaxFrameBeforeWelcome;
  ServerSession session = remembering_session(welcome);

  const auto over = session.feed(frame_of(Present{std::vector<std::string>(82, "t")}, 2), {});
  EXPECT_EQ(only<ErrorMessage>(sent(over)).field, "tickets");
  (void)session.feed(frame_of(Present{std::vector<std::string>(81, "t")}, 3), {});
  const PresentAnswer longest{std::vector<std::string>(81, std::string(kMaxTicket, 'u'))};
  EXPECT_EQ(only<PresentAnswer>(sent(session.answer(3, longest))), longest);
}

TEST(ServerAsking, AnAnswerTooLongForAFrameGoesOutWithoutItsTexts) {
  Welcome welcome = plain_welcome();
  welcome.max_frame = kMaxFrameBeforeWelcome;
  ServerSession session = remembering_session(welcome);
  (void)session.feed(frame_of(acquire(56), 2) + frame_of(steer("x"), 3), {});
  AcquireAnswer answer;
  answer.decisions.assign(56, DecisionAnswer::error(ItemError::UnknownName, std::string(200, 't')));

  const auto decisions = only<AcquireAnswer>(sent(session.answer(2, answer))).decisions;
  EXPECT_EQ(decisions.size(), 56u);
  EXPECT_EQ(decisions[55].text, "");
  EXPECT_EQ(decisions[55].reason, static_cast<std::uint16_t>(ItemError::UnknownName));
  const auto steered =
      only<SteerAnswer>(sent(session.answer(3, SteerAnswer{4, std::string(9000, 't'), 1})));
  EXPECT_EQ(steered.code, 4);
  EXPECT_GT(steered.text.size(), 4000u);
}

SharedEvent trip(std::uint64_t seq, std::string name = "a") {
  EventRow row;
  row.seq = seq;
  row.kind = kEventTrip;
  row.name = std::move(name);
  return std::make_shared<const EventRow>(std::move(row));
}

TEST(ServerAsking, WatchesGetTheirEventsAndEndTogether) {
  ServerSession session = ready_session();
  const auto asked = all_of<WatchRequested>(session.feed(frame_of(Watch{2, "", 0, 9}, 2), {}));
  ASSERT_EQ(asked.size(), 1u);
  EXPECT_EQ(asked[0].watch, 1u);
  (void)session.answer(2, WatchAnswer{1, 10});

  const Event event = only<Event>(sent(session.event(trip(10))));
  EXPECT_EQ(event.watch, 1u);
  EXPECT_EQ(event.events.size(), 1u);
  EXPECT_EQ(only<Event>(sent(session.event_for(1, trip(11)))).events[0].seq, 11u);
  EXPECT_TRUE(session.event_for(7, trip(12)).empty());

  const auto ended = all_of<WatchRequested>(session.feed(frame_of(Watch{0, "", 0, 1}, 3), {}));
  EXPECT_EQ(ended[0].watch, 0u);
  EXPECT_TRUE(session.event(trip(13)).empty());
}

TEST(ServerAsking, AWatchThatFailsIsNone) {
  ServerSession session = ready_session();
  (void)session.feed(frame_of(Watch{2, "", 0, 9}, 2), {});
  (void)session.fail(2, {ErrorCode::Internal, "", "x"});

  EXPECT_TRUE(session.event(trip(10)).empty());
}

// covers: C124 (a watcher that never reads: nothing piles up, then it is sent away)
TEST(ServerAsking, EventsWaitWhileTheClientDoesNotRead) {
  ServerSession session = ready_session();
  (void)session.feed(frame_of(Watch{2, "", 0, 4}, 2), {});
  (void)session.answer(2, WatchAnswer{1, 1});
  (void)session.unsent(kUnsentHoldEvents, 0);
  for (std::uint64_t seq = 1; seq <= 100; ++seq) {
    EXPECT_TRUE(session.event(trip(seq)).empty());
  }

  const Event event = only<Event>(sent(session.unsent(0, 1)));

  EXPECT_EQ(event.events.size(), 4u);
  EXPECT_EQ(event.events[3].seq, 100u);
  EXPECT_EQ(event.missed, 96u);
  (void)session.unsent(kUnsentHoldEvents, 5);
  EXPECT_EQ(types_of(sent(session.tick(5 + ServerSettings{}.stalled_ns))),
            Types{MessageType::Goaway});
}

}  // namespace
}  // namespace cutwater::wire
