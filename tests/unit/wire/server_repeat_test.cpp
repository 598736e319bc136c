// SPDX-License-Identifier: Apache-2.0
// What a session remembers: repeats, takeovers, what is undone.
#include "unit/wire/asking.hpp"

namespace cutwater::wire {
namespace {

TEST(ServerRepeat, ARepeatGetsTheSameAnswerAndIsNotExecuted) {
  ServerSession session = remembering_session();
  (void)session.feed(frame_of(acquire(2), 2), {});
  const std::string answer = sent(session.answer(2, granted(2)));

  const auto again = session.feed(frame_of(acquire(2), 2, kFlagRepeat), {});

  EXPECT_EQ(to_hex(sent(again)), to_hex(answer));
  EXPECT_TRUE(all_of<AcquireRequested>(again).empty());
  EXPECT_EQ(session.waiting_requests(), 0u);
}

TEST(ServerRepeat, ARepeatThatNeverArrivedIsExecutedNow) {
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

TEST(ServerRepeat, ARepeatOfWhatStillRunsIsAnsweredOnce) {
  ServerSession session = remembering_session();
  (void)session.feed(frame_of(acquire(), 2), {});

  const auto again = session.feed(frame_of(acquire(), 2, kFlagRepeat), {});

  EXPECT_TRUE(again.empty());
  EXPECT_EQ(types_of(sent(session.answer(2, granted()))), Types{MessageType::AcquireAnswer});
}

TEST(ServerRepeat, AForgottenRepeatIsStaleInEveryKindOfAnswer) {
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

TEST(ServerRepeat, LooksAreNotRememberedAndLookedAgain) {
  ServerSession session = remembering_session();
  const Read read = limits();
  (void)session.feed(frame_of(read, 2), {});
  (void)session.answer(2, ReadAnswer{});

  EXPECT_EQ(all_of<ReadRequested>(session.feed(frame_of(read, 2, kFlagRepeat), {})).size(), 1u);
}

TEST(ServerRepeat, WhatWasExecutedIsNeverBusy) {
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

TEST(ServerRepeat, AnotherConnectionTakesTheSessionOver) {
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

TEST(ServerRepeat, WhatIsAnsweredBetweenTwoConnectionsIsRemembered) {
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

TEST(ServerRepeat, WithoutTheFeatureNothingIsRemembered) {
  ServerSession session = ready_session();
  EXPECT_FALSE(session.remembers());
  (void)session.feed(frame_of(acquire(), 2), {});
  (void)session.answer(2, granted(), receipts({"r"}));

  EXPECT_EQ(session.take_for(Cancel{2}).state, CancelTarget::State::Unknown);
  EXPECT_EQ(session.take_for(9, Refund{{{2, 0, {}}}})[0].code,
            static_cast<std::uint16_t>(ItemError::NotRemembered));
}

TEST(ServerRepeat, CancelEndsWhatWaitsAndUndoesWhatIsAnswered) {
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

TEST(ServerRepeat, ARefundThatCameTooLateMayBeTriedAgain) {
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

TEST(ServerRepeat, ACutMakesNoRoomForMoreThatWaits) {
  Welcome welcome = remembering_welcome();
  welcome.resumed = true;
  ServerSession old = remembering_session();
  for (std::uint32_t id = 2; id < 2 + kMaxWaitingEnters; ++id) {
    (void)old.feed(frame_of(Enter{}, id), {});
    ASSERT_TRUE(old.park(id));
  }
  ServerSession session = remembering_session(welcome, old.take_memory());
  (void)session.feed(frame_of(Enter{}, 1000), {});
  EXPECT_FALSE(session.park(1000));
  (void)session.answer(2, EnterAnswer{});
  EXPECT_TRUE(session.park(1000));

  // Nor does it give the credit anew without end.
  welcome.credit_items = kMaxWaitingEnters;
  ServerSession third = remembering_session(welcome, session.take_memory());
  EXPECT_EQ(types_of(sent(third.feed(frame_of(acquire(), 1001), {}))), Types{MessageType::Busy});
  EXPECT_TRUE(third.wants_input());
  (void)third.answer(3, EnterAnswer{});
  EXPECT_EQ(all_of<AcquireRequested>(third.feed(frame_of(acquire(), 1002), {})).size(), 1u);
}

TEST(ServerRepeat, OnlyASessionThatRemembersIsTakenOver) {
  ServerSession session({}, 0);
  (void)session.feed(frame_of(plain_hello(), 1), {});
  Welcome welcome = remembering_welcome();
  welcome.resumed = true;

  EXPECT_FALSE(only<Welcome>(sent(session.welcome(welcome, 0))).resumed);
}

TEST(ServerRepeat, AnAnswerThatCannotBeWrittenIsTheSameErrorAgain) {
  ServerSession session = remembering_session();
  (void)session.feed(frame_of(Present{{"t"}}, 2), {});
  const std::string error =
      sent(session.answer(2, PresentAnswer{{std::string(kMaxTicket + 1, 't')}}));
  EXPECT_EQ(only<ErrorMessage>(error).code, ErrorCode::Internal);

  const auto again = session.feed(frame_of(Present{{"t"}}, 2, kFlagRepeat), {});

  EXPECT_EQ(sent(again), error);
  EXPECT_TRUE(all_of<PresentRequested>(again).empty());
}

}  // namespace
}  // namespace cutwater::wire
