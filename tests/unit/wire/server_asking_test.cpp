// SPDX-License-Identifier: Apache-2.0
// The daemon's end while it is asked: rights, credit, repeats, undoing, waiting, watches.
#include <gtest/gtest.h>

#include "unit/wire/golden.hpp"
#include "wire/session.hpp"

namespace cutwater::wire {
namespace {

constexpr auto kStale = static_cast<std::uint16_t>(ItemError::Stale);
constexpr auto kTooLate = static_cast<std::uint16_t>(ItemError::TooLate);

Welcome remembering_welcome() {
  Welcome welcome = plain_welcome();
  welcome.features = kFeatureRemember;
  return welcome;
}

Hello remembering_hello() {
  Hello hello = plain_hello();
  hello.features = kFeatureRemember;
  return hello;
}

ServerSession remembering_session(Welcome welcome = remembering_welcome(),
                                  AnswerMemory memory = {}) {
  ServerSession session({}, 0);
  (void)session.feed(frame_of(remembering_hello(), 1), {});
  (void)session.welcome(std::move(welcome), 0, std::move(memory));
  return session;
}

Acquire acquire(std::size_t items = 1) {
  return {0, 0, std::vector<Item>(items, Item{"a", "k", 1, 0})};
}

AcquireAnswer granted(std::size_t items = 1) {
  AcquireAnswer out;
  out.decisions.resize(items);
  return out;
}

Read limits() {
  Read out;
  out.what = "limits";
  return out;
}

Steer steer(std::string verb) {
  Steer out;
  out.verb = std::move(verb);
  return out;
}

Receipts receipts(std::initializer_list<const char*> all) {
  Receipts out;
  for (const char* receipt : all) out.add(receipt);
  return out;
}

/// Types of the frames in some bytes.
std::vector<MessageType> types_of(std::string_view bytes) {
  FrameReader reader(kMaxFrameLargest);
  std::vector<MessageType> out;
  while (!bytes.empty()) {
    auto frame = reader.next(bytes);
    if (!frame || !frame->has_value()) break;
    out.push_back((*frame)->header.type);
  }
  return out;
}
using Types = std::vector<MessageType>;

template <class Message>
Message only(std::string_view bytes) {
  EXPECT_EQ(types_of(bytes), Types{Message::kType});
  const auto message = decode<Message>(bytes.substr(kHeaderSize));
  EXPECT_TRUE(message.ok());
  return message.ok() ? *message : Message{};
}

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
TEST(ServerAsking, ARepeatGetsTheSameAnswerAndIsNotExecuted) {
  ServerSession session = remembering_session();
  (void)session.feed(frame_of(acquire(2), 2), {});
  const std::string answer = sent(session.answer(2, granted(2)));

  const auto again = session.feed(frame_of(acquire(2), 2, kFlagRepeat), {});

  EXPECT_EQ(to_hex(sent(again)), to_hex(answer));
  EXPECT_TRUE(all_of<AcquireRequested>(again).empty());
  EXPECT_EQ(session.waiting_requests(), 0u);
}

TEST(ServerAsking, ARepeatThatNeverArrivedIsExecutedNow) {
  ServerSession session = remembering_session();

  EXPECT_EQ(all_of<AcquireRequested>(session.feed(frame_of(acquire(), 5, kFlagRepeat), {})).size(),
            1u);
  // One answered BUSY was not executed either.
  (void)session.busy(5, 1);
  EXPECT_EQ(all_of<AcquireRequested>(session.feed(frame_of(acquire(), 5, kFlagRepeat), {})).size(),
            1u);
  (void)session.fail(5, {ErrorCode::Internal, "", "x"});
  EXPECT_EQ(all_of<AcquireRequested>(session.feed(frame_of(acquire(), 5, kFlagRepeat), {})).size(),
            1u);
}

TEST(ServerAsking, ARepeatOfWhatStillRunsIsAnsweredOnce) {
  ServerSession session = remembering_session();
  (void)session.feed(frame_of(acquire(), 2), {});

  const auto again = session.feed(frame_of(acquire(), 2, kFlagRepeat), {});

  EXPECT_TRUE(again.empty());
  EXPECT_EQ(types_of(sent(session.answer(2, granted()))), Types{MessageType::AcquireAnswer});
}

TEST(ServerAsking, AForgottenRepeatIsStaleInEveryKindOfAnswer) {
  ServerSession session = remembering_session();
  std::uint32_t id = 2;
  const Steer ban = steer("limit.ban");
  for (const auto& frame :
       {frame_of(acquire(2), 2), frame_of(Enter{}, 3), frame_of(Cancel{1}, 4),
        frame_of(Refund{{{1, 0, {}}, {1, 1, {}}}}, 5),
        frame_of(Outcome{{OutcomeReport{}}}, 6), frame_of(Present{{"t"}}, 7), frame_of(ban, 8)}) {
    EXPECT_FALSE(session.feed(frame, {}).empty());
    ++id;
  }
  (void)session.answer(2, granted(2));
  (void)session.answer(3, EnterAnswer{});
  (void)session.answer(4, CancelAnswer{});
  (void)session.answer(5, RefundAnswer{{{}, {}}});
  (void)session.answer(6, OutcomeAnswer{{0}});
  (void)session.answer(7, PresentAnswer{{"u"}});
  (void)session.answer(8, SteerAnswer{});
  for (std::uint32_t more = id; more < id + 4; ++more) {
    (void)session.feed(frame_of(acquire(256), more), {});
    (void)session.answer(more, granted(256));
  }
  const auto repeat = [&](const auto& message, std::uint32_t request) {
    const auto actions = session.feed(frame_of(message, request, kFlagRepeat), {});
    EXPECT_EQ(actions.size(), 1u);  // nothing is executed
    return sent(actions);
  };

  const auto decisions = only<AcquireAnswer>(repeat(acquire(2), 2)).decisions;
  ASSERT_EQ(decisions.size(), 2u);
  EXPECT_EQ(decisions[0].reason, kStale);
  EXPECT_EQ(decisions[1].reason, kStale);
  EXPECT_EQ(only<EnterAnswer>(repeat(Enter{}, 3)).admission.reason, kStale);
  EXPECT_EQ(only<CancelAnswer>(repeat(Cancel{1}, 4)).returned.code, kStale);
  EXPECT_EQ(only<RefundAnswer>(repeat(Refund{{{1, 0, {}}, {1, 1, {}}}}, 5)).items,
            (std::vector<Returned>{{kStale, 0}, {kStale, 0}}));
  EXPECT_EQ(only<OutcomeAnswer>(repeat(Outcome{{OutcomeReport{}}}, 6)).codes,
            std::vector<std::uint16_t>{kStale});
  EXPECT_EQ(only<PresentAnswer>(repeat(Present{{"t"}}, 7)).tickets, std::vector<std::string>{""});
  EXPECT_EQ(only<SteerAnswer>(repeat(ban, 8)).code, kStale);
}

TEST(ServerAsking, LooksAreNotRememberedAndLookedAgain) {
  ServerSession session = remembering_session();
  const Read read = limits();
  (void)session.feed(frame_of(read, 2), {});
  (void)session.answer(2, ReadAnswer{});

  EXPECT_EQ(all_of<ReadRequested>(session.feed(frame_of(read, 2, kFlagRepeat), {})).size(), 1u);
}

// BUSY says that nothing was done, so it is never said of what was.
TEST(ServerAsking, WhatWasExecutedIsNeverBusy) {
  Welcome welcome = remembering_welcome();
  welcome.credit_items = 1;
  ServerSession session = remembering_session(welcome);
  (void)session.feed(frame_of(acquire(), 2), {});
  (void)session.answer(2, granted());
  (void)session.feed(frame_of(acquire(), 3), {});  // takes all the credit

  EXPECT_EQ(types_of(sent(session.feed(frame_of(acquire(), 2, kFlagRepeat), {}))),
            Types{MessageType::AcquireAnswer});
  (void)session.go_away(GoawayReason::Shutdown, "", 0);
  EXPECT_EQ(types_of(sent(session.feed(frame_of(acquire(), 2, kFlagRepeat), {}))),
            Types{MessageType::AcquireAnswer});
}

TEST(ServerAsking, AnotherConnectionTakesTheSessionOver) {
  ServerSession old = remembering_session();
  (void)old.feed(frame_of(acquire(), 2) + frame_of(Enter{}, 3) +
                     frame_of(limits(), 4), {});
  const std::string first = sent(old.answer(2, granted(), receipts({"r"})));
  old.ended();
  AnswerMemory memory = old.take_memory();
  EXPECT_EQ(memory.running(), 1u);  // ENTER waits still; the look is forgotten
  Welcome welcome = remembering_welcome();
  welcome.resumed = true;
  ServerSession session = remembering_session(welcome, std::move(memory));

  EXPECT_EQ(to_hex(sent(session.feed(frame_of(acquire(), 2, kFlagRepeat), {}))), to_hex(first));
  EXPECT_TRUE(session.feed(frame_of(Enter{}, 3, kFlagRepeat), {}).empty());
  EXPECT_EQ(types_of(sent(session.answer(3, EnterAnswer{}))), Types{MessageType::EnterAnswer});
  EXPECT_EQ(all_of<ReadRequested>(
                session.feed(frame_of(limits(), 4, kFlagRepeat), {})).size(), 1u);
  EXPECT_EQ(only<ErrorMessage>(sent(session.feed(frame_of(acquire(), 4), {}))).code,
            ErrorCode::NotNow);  // ids go on where they were
  EXPECT_EQ(session.take_for(Cancel{2}).receipts, std::vector<std::string>{"r"});
}

TEST(ServerAsking, WhatIsAnsweredBetweenTwoConnectionsIsRemembered) {
  ServerSession old = remembering_session();
  (void)old.feed(frame_of(Enter{}, 2) + frame_of(Enter{}, 3), {});
  old.ended();
  EXPECT_TRUE(old.answer(2, EnterAnswer{}, receipts({"a"})).empty());  // to nobody
  AnswerMemory memory = old.take_memory();
  EXPECT_TRUE(remember_answer(memory, 3, EnterAnswer{}, {1, receipts({"b"})}));
  Welcome welcome = remembering_welcome();
  welcome.resumed = true;
  ServerSession session = remembering_session(welcome, std::move(memory));

  for (const std::uint32_t id : {2u, 3u}) {
    const auto again = session.feed(frame_of(Enter{}, id, kFlagRepeat), {});
    EXPECT_EQ(types_of(sent(again)), Types{MessageType::EnterAnswer});
    EXPECT_EQ(again.size(), 1u);
  }
}

TEST(ServerAsking, WithoutTheFeatureNothingIsRemembered) {
  ServerSession session = ready_session();
  EXPECT_FALSE(session.remembers());
  (void)session.feed(frame_of(acquire(), 2), {});
  (void)session.answer(2, granted(), receipts({"r"}));

  EXPECT_EQ(session.take_for(Cancel{2}).state, CancelTarget::State::Unknown);
  EXPECT_EQ(session.take_for(9, Refund{{{2, 0, {}}}})[0].code,
            static_cast<std::uint16_t>(ItemError::NotRemembered));
}

TEST(ServerAsking, CancelEndsWhatWaitsAndUndoesWhatIsAnswered) {
  ServerSession session = remembering_session();
  (void)session.feed(frame_of(Enter{}, 2) + frame_of(acquire(2), 3), {});
  EXPECT_EQ(session.take_for(Cancel{2}).state, CancelTarget::State::Running);

  (void)session.answer(3, granted(2), receipts({"r0", "r1"}));
  const auto target = session.take_for(Cancel{3});

  EXPECT_EQ(target.state, CancelTarget::State::Answered);
  EXPECT_EQ(target.receipts, (std::vector<std::string>{"r0", "r1"}));
  EXPECT_TRUE(session.take_for(Cancel{3}).receipts.empty());
  EXPECT_EQ(session.take_for(Cancel{99}).state, CancelTarget::State::Unknown);
}

// covers: U4 (a receipt is spent once) and U6 (too late does not spend it), over the socket
TEST(ServerAsking, ARefundThatCameTooLateMayBeTriedAgain) {
  ServerSession session = remembering_session();
  (void)session.feed(frame_of(acquire(2), 2), {});
  (void)session.answer(2, granted(2), receipts({"r0", "r1"}));
  const Refund both{{{2, 0, {}}, {2, 1, 3}, {2, 0, {}}}};
  (void)session.feed(frame_of(both, 3), {});

  auto taken = session.take_for(3, both);
  EXPECT_EQ(taken[0], (TakenReceipt{0, "r0", {}}));
  EXPECT_EQ(taken[1], (TakenReceipt{0, "r1", 3}));
  EXPECT_EQ(taken[2].code, kStale);
  (void)session.answer(3, RefundAnswer{{{0, 1}, {kTooLate, 0}, {kStale, 0}}});
  (void)session.feed(frame_of(both, 4), {});
  taken = session.take_for(4, both);

  EXPECT_EQ(taken[0].code, kStale);
  EXPECT_EQ(taken[1], (TakenReceipt{0, "r1", 3}));
}

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

TEST(ServerAsking, AnAnswerTooLongForAFrameGoesOutWithoutItsTexts) {
  Welcome welcome = plain_welcome();
  welcome.max_frame = kMaxFrameBeforeWelcome;
  ServerSession session = remembering_session(welcome);
  (void)session.feed(frame_of(acquire(85), 2) + frame_of(steer("x"), 3), {});
  AcquireAnswer answer;
  answer.decisions.assign(85, DecisionAnswer::error(ItemError::UnknownName, std::string(200, 't')));

  const auto decisions = only<AcquireAnswer>(sent(session.answer(2, answer))).decisions;
  EXPECT_EQ(decisions.size(), 85u);
  EXPECT_EQ(decisions[84].text, "");
  EXPECT_EQ(decisions[84].reason, static_cast<std::uint16_t>(ItemError::UnknownName));
  const auto steered =
      only<SteerAnswer>(sent(session.answer(3, SteerAnswer{4, std::string(9000, 't'), 1})));
  EXPECT_EQ(steered.code, 4);
  EXPECT_GT(steered.text.size(), 4000u);
}

TEST(ServerAsking, AnAnswerThatCannotBeWrittenIsTheSameErrorAgain) {
  ServerSession session = remembering_session();
  (void)session.feed(frame_of(Present{{"t"}}, 2), {});
  const std::string error =
      sent(session.answer(2, PresentAnswer{{std::string(kMaxTicket + 1, 't')}}));
  EXPECT_EQ(only<ErrorMessage>(error).code, ErrorCode::Internal);

  const auto again = session.feed(frame_of(Present{{"t"}}, 2, kFlagRepeat), {});

  EXPECT_EQ(sent(again), error);
  EXPECT_TRUE(all_of<PresentRequested>(again).empty());
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
