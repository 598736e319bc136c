// SPDX-License-Identifier: Apache-2.0
// The machine of asking without a socket: order, credit, what is given up, what breaks it.
#include "unit/client/ask_session_support.hpp"

namespace cutwater::client {
namespace {

TEST(AskSession, SendsInOrderWithGrowingIdsAndTheHeaderOfTheProtocol) {
  AskSession session;
  session.connected(welcome(), false);
  Asked first, second("\x91\x02");
  session.enqueue(first);
  session.enqueue(second);

  const std::string bytes = drain(session);

  EXPECT_EQ(bytes, wire::encode_frame({.type = wire::MessageType::Acquire, .request = 2},
                                      "\x91\x01") +
                       wire::encode_frame({.type = wire::MessageType::Acquire, .request = 3},
                                          "\x91\x02"));
  Peer peer;
  const std::string answers = peer.take(bytes);
  EXPECT_EQ(session.feed(answers), answers.size());
  EXPECT_EQ(first.answer, "\x91\x01");
  EXPECT_EQ(second.end, AskEnd::Answered);
  EXPECT_EQ(finish(session), 2);
  EXPECT_EQ(session.first(), nullptr);
}

TEST(AskSession, CreditHoldsBackAndAnAnswerLetsGo) {
  AskSession session;
  session.connected(welcome(3), false);
  std::deque<Asked> calls;
  for (int i = 0; i < 4; ++i) session.enqueue(calls.emplace_back("\x91\x01", 2));

  Peer peer;
  const std::string answers = peer.take(drain(session));

  EXPECT_EQ(peer.seen.size(), 1U) << "two of three items are out, two more do not fit";
  session.feed(answers);
  peer.take(drain(session));
  EXPECT_EQ(peer.seen.size(), 2U);
}

TEST(AskSession, OneAskOverTheWholeCreditGoesOutAlone) {
  AskSession session;
  wire::Welcome greeting = welcome(3);
  greeting.credit_bytes = 1;
  session.connected(greeting, false);
  Asked large("\x91\x01", 200), next;
  session.enqueue(large);
  session.enqueue(next);
  Peer peer;

  const std::string answers = peer.take(drain(session));

  EXPECT_EQ(peer.seen.size(), 1U);
  session.feed(answers);
  peer.take(drain(session));
  EXPECT_EQ(peer.seen.size(), 2U);
}

TEST(AskSession, AFrameOverTheDaemonsBoundFailsAtOnce) {
  AskSession session;
  wire::Welcome greeting = welcome();
  greeting.max_frame = 4096;
  session.connected(greeting, false);
  Asked large(std::string(4097, 'x'));

  session.enqueue(large);

  EXPECT_EQ(large.end, AskEnd::Failed);
  EXPECT_EQ(finish(session), 1);
  EXPECT_TRUE(session.unsent().empty());
}

TEST(AskSession, FailAllTellsSentFromUnsent) {
  AskSession session;
  session.connected(welcome(1), false);
  Asked sent, unsent;
  session.enqueue(sent);
  session.enqueue(unsent);
  drain(session);
  session.disconnected();

  session.fail_all();

  EXPECT_EQ(sent.end, AskEnd::Lost);
  EXPECT_EQ(unsent.end, AskEnd::Unsent);
  EXPECT_EQ(finish(session), 2);
}

TEST(AskSession, WhatIsGivenUpHalfSentIsSentToItsEnd) {
  AskSession session;
  session.connected(welcome(), false);
  Peer peer;
  {
    Asked given_up;
    session.enqueue(given_up);
    peer.take(session.unsent().substr(0, 5));
    session.sent(5);
    session.abandon(given_up);
    EXPECT_EQ(given_up.end, AskEnd::Late);
  }
  Asked next;
  session.enqueue(next);

  session.feed(peer.take(drain(session)));

  EXPECT_EQ(peer.seen.size(), 2U) << "the stream stays whole";
  EXPECT_EQ(next.end, AskEnd::Answered) << "and the late answer is dropped";
  EXPECT_FALSE(session.is_broken());
}

TEST(AskSession, WhatIsGivenUpUnsentLeavesNoTrace) {
  AskSession session;
  session.connected(welcome(), false);
  {
    Asked given_up;
    session.enqueue(given_up);
    (void)session.unsent();
    session.abandon(given_up);
  }
  Asked next;
  session.enqueue(next);
  Peer peer;

  session.feed(peer.take(drain(session)));

  EXPECT_EQ(peer.seen.size(), 1U);
  EXPECT_EQ(next.end, AskEnd::Answered);
}

TEST(AskSession, TooManyGivenUpBreakTheConnectionOff) {
  AskSession session;
  session.connected(welcome(), false);
  for (std::size_t i = 0; i <= AskSession::kMostAbandoned; ++i) {
    EXPECT_FALSE(session.is_broken());
    Asked call;
    session.enqueue(call);
    drain(session);
    session.abandon(call);
  }
  EXPECT_TRUE(session.is_broken());
}

TEST(AskSession, GoawayLetsFinishAndSendsNothingNew) {
  AskSession session;
  session.connected(welcome(), false);
  Asked sent, held;
  session.enqueue(sent);
  Peer peer;
  const std::string answers = peer.take(drain(session));
  session.feed(wire::encode_frame({.type = wire::MessageType::Goaway},
                                  *wire::encode(wire::Goaway{})));
  session.enqueue(held);

  EXPECT_TRUE(session.unsent().empty());
  EXPECT_FALSE(session.drained());
  session.feed(answers);
  EXPECT_TRUE(session.drained());
  EXPECT_EQ(sent.end, AskEnd::Answered);
  session.disconnected();
  session.connected(welcome(), true);
  session.feed(peer.take(drain(session)));
  EXPECT_EQ(held.end, AskEnd::Answered);
}

TEST(AskSession, ErrorAndBusyEndTheirOwnCallAlone) {
  AskSession session;
  session.connected(welcome(), false);
  Asked failed, busy, good;
  for (Asked* call : {&failed, &busy, &good}) session.enqueue(*call);
  drain(session);
  wire::ErrorMessage error;
  error.code = wire::ErrorCode::NotPermitted;
  error.text = "needs the right to use limits";

  session.feed(wire::encode_frame({.type = wire::MessageType::Error, .request = 2},
                                  *wire::encode(error)));
  session.feed(wire::encode_frame({.type = wire::MessageType::Busy, .request = 3},
                                  *wire::encode(wire::Busy{77})));

  EXPECT_EQ(failed.end, AskEnd::Failed);
  EXPECT_EQ(failed.error_code, wire::ErrorCode::NotPermitted);
  EXPECT_STREQ(failed.error_text, "needs the right to use limits");
  EXPECT_EQ(busy.end, AskEnd::Busy);
  EXPECT_EQ(busy.retry_after_ns, 77U);
  EXPECT_EQ(good.end, AskEnd::Pending);
  EXPECT_FALSE(session.is_broken());
}

TEST(AskSession, WhatTheProtocolDoesNotAllowBreaksTheStream) {
  const std::string frames[] = {
      std::string(16, 'x'),
      wire::encode_frame({.type = wire::MessageType::AcquireAnswer, .request = 9}, "\x90"),
      wire::encode_frame({.type = wire::MessageType::PeekAnswer, .request = 2}, "\x90"),
      wire::encode_frame({.type = wire::MessageType::AcquireAnswer, .request = 2}, "wrong"),
      wire::encode_frame({.type = wire::MessageType::Error, .request = 0},
                         *wire::encode(wire::ErrorMessage{wire::ErrorCode::BadFrame, "", "x",
                                                          true})),
      wire::encode_frame({.type = wire::MessageType::Error, .request = 2}, "\xc1"),
      wire::encode_frame({.type = wire::MessageType::Busy, .request = 2}, "\xc1"),
  };
  for (const std::string& frame : frames) {
    AskSession session;
    session.connected(welcome(), false);
    Asked call;
    session.enqueue(call);
    drain(session);

    session.feed(frame);

    EXPECT_TRUE(session.is_broken());
    EXPECT_FALSE(session.why().empty());
    session.disconnected();
    session.fail_all();
    EXPECT_NE(call.end, AskEnd::Answered);
  }
}

TEST(AskSession, PushesNobodyAskedForAreLetBe) {
  AskSession session;
  session.connected(welcome(), false);

  session.feed(wire::encode_frame({.type = wire::MessageType::Event}, "\x90"));

  EXPECT_FALSE(session.is_broken());
}

}  // namespace
}  // namespace cutwater::client
