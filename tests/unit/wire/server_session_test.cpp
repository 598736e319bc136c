// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "unit/wire/golden.hpp"
#include "wire/session.hpp"

namespace cutwater::wire {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

/// The only frame in some bytes.
Frame only_frame(std::string_view bytes) {
  FrameReader reader(kMaxFrameLargest);
  auto frame = reader.next(bytes);
  EXPECT_TRUE(frame.ok() && frame->has_value() && bytes.empty());
  return frame.ok() && frame->has_value() ? **frame : Frame{};
}

std::string read_frame(std::uint32_t request, std::size_t cursor_bytes = 0) {
  Read read;
  read.what = "limits";
  read.cursor = std::string(cursor_bytes, 'c');
  return frame_of(read, request);
}

std::string steer_frame(std::uint32_t request) {
  Steer steer;
  steer.verb = kVerbConfigReload;
  return frame_of(steer, request);
}

TEST(ServerSession, DeliversHelloAndAnswersWelcome) {
  ServerSession session({}, 0);
  const auto hello = all_of<HelloReceived>(session.feed(golden("hello"), {}));
  ASSERT_EQ(hello.size(), 1u);
  EXPECT_EQ(hello[0].hello.client_name, "billing-worker");
  Welcome welcome = plain_welcome();
  welcome.features = kFeatureRemember | kFeatureEvents | kFeatureSteppedClock;
  welcome.mode = Want::Map;
  welcome.descriptors = {"rules", "state", "stats"};

  const auto actions = session.welcome(welcome, 0);

  ASSERT_EQ(all_of<SendBytes>(actions).size(), 1u);
  EXPECT_TRUE(all_of<SendBytes>(actions)[0].with_descriptors);
  const Frame frame = only_frame(sent(actions));
  EXPECT_EQ(frame.header.request, 1u);
  const auto read = decode<Welcome>(frame.payload);
  EXPECT_EQ(read->features, kFeatureRemember | kFeatureSteppedClock);  // cut to what was offered
  EXPECT_EQ(session.state(), SessionState::Ready);
}

TEST(ServerSession, SendsNoDescriptorsWhenTheClientOnlyAsks) {
  ServerSession session({}, 0);
  (void)session.feed(frame_of(plain_hello(), 1), {});

  const auto actions = session.welcome(plain_welcome(), 0);

  EXPECT_FALSE(all_of<SendBytes>(actions)[0].with_descriptors);
}

TEST(ServerSession, WelcomeAndRefuseDoNothingWithoutAHello) {
  ServerSession fresh({}, 0);
  ServerSession ready = ready_session();

  EXPECT_TRUE(fresh.welcome(plain_welcome(), 0).empty());
  EXPECT_TRUE(fresh.refuse(ErrorCode::NotPermitted, "no").empty());
  EXPECT_TRUE(ready.welcome(plain_welcome(), 0).empty());
  EXPECT_TRUE(ready.refuse(ErrorCode::NotPermitted, "no").empty());
}

TEST(ServerSession, AWelcomeThatBreaksABoundIsAnInternalError) {
  ServerSession session({}, 0);
  (void)session.feed(frame_of(plain_hello(), 1), {});
  Welcome welcome = plain_welcome();
  welcome.daemon = "short";

  const auto actions = session.welcome(welcome, 0);

  EXPECT_EQ(decode<ErrorMessage>(only_frame(sent(actions)).payload)->code, ErrorCode::Internal);
  EXPECT_TRUE(closes(actions));
}

TEST(ServerSession, AHelloWithAWrongFieldMayBeSaidAgain) {
  ServerSession session({}, 0);
  const auto refused = session.feed(frame_of(MessageType::Hello, 1, from_hex("91 00")), {});

  EXPECT_FALSE(closes(refused));
  ASSERT_EQ(all_of<PeerFault>(refused).size(), 1u);
  EXPECT_TRUE(all_of<PeerFault>(refused)[0].before_welcome);
  EXPECT_EQ(all_of<HelloReceived>(session.feed(frame_of(plain_hello(), 2), {})).size(), 1u);
}

TEST(ServerSession, NothingMayFollowAHelloBeforeItsWelcome) {
  ServerSession at_once({}, 0);
  ServerSession later({}, 0);
  (void)later.feed(frame_of(plain_hello(), 1), {});

  const auto behind = at_once.feed(frame_of(plain_hello(), 1) + "C", {});
  const auto second = later.feed(frame_of(plain_hello(), 2), {});

  EXPECT_TRUE(all_of<HelloReceived>(behind).empty());
  EXPECT_TRUE(closes(behind));
  EXPECT_TRUE(closes(second));
  EXPECT_TRUE(later.welcome(plain_welcome(), 0).empty());
}

TEST(ServerSession, DeliversRequestsAndTheirAnswersInAnyOrder) {
  ServerSession session = ready_session();
  const auto actions = session.feed(read_frame(1) + steer_frame(2), {});
  ASSERT_EQ(all_of<ReadRequested>(actions).size(), 1u);
  ASSERT_EQ(all_of<SteerRequested>(actions).size(), 1u);
  EXPECT_EQ(session.waiting_requests(), 2u);

  const Frame steer = only_frame(sent(session.answer(2, SteerAnswer{0, "done", 3})));
  const Frame read = only_frame(sent(session.answer(1, ReadAnswer{})));

  EXPECT_EQ(steer.header.type, MessageType::SteerAnswer);
  EXPECT_EQ(steer.header.request, 2u);
  EXPECT_EQ(read.header.type, MessageType::ReadAnswer);
  EXPECT_EQ(session.waiting_requests(), 0u);
}

TEST(ServerSession, AnswersToNothingAreDropped) {
  ServerSession session = ready_session();
  (void)session.feed(read_frame(1), {});
  (void)session.answer(1, ReadAnswer{});

  EXPECT_TRUE(session.answer(1, ReadAnswer{}).empty());
  EXPECT_TRUE(session.fail(1, {}).empty());
  EXPECT_TRUE(session.busy(2, 0).empty());
}

TEST(ServerSession, AnAnswerThatFitsNoFrameBecomesAnInternalError) {
  ServerSession session = ready_session();
  (void)session.feed(read_frame(1), {});
  ReadAnswer answer;
  answer.rows.assign(2, Value::map({{"text", std::string(kMaxFrameDefault / 2, 'x')}}));

  const Frame frame = only_frame(sent(session.answer(1, answer)));

  EXPECT_EQ(decode<ErrorMessage>(frame.payload)->code, ErrorCode::Internal);
  EXPECT_EQ(session.state(), SessionState::Ready);
  EXPECT_EQ(session.waiting_requests(), 0u);
}

TEST(ServerSession, FailAndBusyAnswerARequest) {
  ServerSession session = ready_session();
  (void)session.feed(read_frame(1) + read_frame(2), {});

  const auto failed = session.fail(1, {ErrorCode::InvalidArgument, "what", "no such thing"});
  const auto busy = session.busy(2, 77);

  EXPECT_EQ(decode<ErrorMessage>(only_frame(sent(failed)).payload)->field, "what");
  EXPECT_FALSE(closes(failed));
  EXPECT_EQ(decode<Busy>(only_frame(sent(busy)).payload)->retry_after_ns, 77u);
  EXPECT_EQ(session.waiting_requests(), 0u);
}

TEST(ServerSession, PongCarriesTheSegmentsClock) {
  ServerSession session = ready_session();

  const auto actions = session.feed(golden("ping"), {.now_ns = 5, .clock_ns = 65536});

  EXPECT_EQ(to_hex(sent(actions)), to_hex(golden("pong")));
}

TEST(ServerSession, ByeIsAnsweredAfterTheLastAnswer) {
  ServerSession session = ready_session();
  EXPECT_TRUE(sent(session.feed(read_frame(1) + golden("bye"), {})).empty());
  EXPECT_EQ(session.state(), SessionState::Draining);

  const auto actions = session.answer(1, ReadAnswer{});

  const std::string bytes = sent(actions);
  EXPECT_EQ(to_hex(bytes.substr(bytes.size() - 17)), to_hex(golden("bye_ok")));
  EXPECT_TRUE(closes(actions));
}

TEST(ServerSession, AQuietByeIsNotAnswered) {
  ServerSession session = ready_session();

  const auto actions = session.feed(frame_of(Bye{}, 4, kFlagQuiet), {});

  EXPECT_TRUE(sent(actions).empty());
  EXPECT_TRUE(closes(actions));
}

TEST(ServerSession, ASecondByeIsNotNow) {
  ServerSession session = ready_session();
  (void)session.feed(read_frame(1) + golden("bye"), {});

  const auto actions = session.feed(golden("bye"), {});

  EXPECT_EQ(decode<ErrorMessage>(only_frame(sent(actions)).payload)->code, ErrorCode::NotNow);
}

TEST(ServerSession, DrainingAnswersWhatIsInFlightAndRefusesTheRest) {
  ServerSession session = ready_session();
  (void)session.feed(read_frame(1), {});

  const auto goaway = session.go_away(GoawayReason::Shutdown, "shutting down", kSecond);
  const auto more = session.feed(read_frame(2), {});
  const auto ping = session.feed(golden("ping"), {});

  EXPECT_EQ(to_hex(sent(goaway)), to_hex(golden("goaway")));
  EXPECT_EQ(only_frame(sent(more)).header.type, MessageType::Busy);
  EXPECT_EQ(only_frame(sent(ping)).header.type, MessageType::Pong);
  EXPECT_EQ(only_frame(sent(session.answer(1, ReadAnswer{}))).header.request, 1u);
  EXPECT_EQ(session.deadline_ns(), 11 * kSecond);
  EXPECT_TRUE(session.tick(11 * kSecond - 1).empty());
  EXPECT_TRUE(closes(session.tick(11 * kSecond)));
}

TEST(ServerSession, GoAwayBeforeWelcomeCloses) {
  ServerSession session({}, 0);

  EXPECT_TRUE(closes(session.go_away(GoawayReason::Shutdown, "shutting down", 0)));
  EXPECT_EQ(session.deadline_ns(), std::nullopt);
}

TEST(ServerSession, OverItsCreditARequestIsBusyAndReadingStopsUntilHalfIsFree) {
  ServerSession session({}, 0);
  (void)session.feed(frame_of(plain_hello(), 1), {});
  Welcome welcome = plain_welcome();
  welcome.credit_items = 4;
  (void)session.welcome(welcome, 0);
  for (std::uint32_t id = 1; id <= 4; ++id) (void)session.feed(read_frame(id), {});
  EXPECT_TRUE(session.wants_input());

  const auto fifth = session.feed(read_frame(5), {});

  EXPECT_EQ(only_frame(sent(fifth)).header.type, MessageType::Busy);
  EXPECT_FALSE(session.wants_input());
  (void)session.answer(1, ReadAnswer{});
  EXPECT_FALSE(session.wants_input());
  (void)session.answer(2, ReadAnswer{});
  EXPECT_TRUE(session.wants_input());
  EXPECT_EQ(all_of<ReadRequested>(session.feed(read_frame(6), {})).size(), 1u);
}

TEST(ServerSession, TheBytesOfItsCreditCountToo) {
  ServerSession session({}, 0);
  (void)session.feed(frame_of(plain_hello(), 1), {});
  Welcome welcome = plain_welcome();
  welcome.credit_bytes = 4000;
  (void)session.welcome(welcome, 0);

  EXPECT_TRUE(sent(session.feed(read_frame(1, 4100), {})).empty());  // alone it may be larger
  EXPECT_EQ(only_frame(sent(session.feed(read_frame(2), {}))).header.type, MessageType::Busy);
}

TEST(ServerSession, WithoutAWelcomeIn2sItCloses) {
  ServerSession silent({}, kSecond);
  ServerSession undecided({}, kSecond);
  (void)undecided.feed(frame_of(plain_hello(), 1), {.now_ns = 2 * kSecond, .clock_ns = 0});

  for (ServerSession* session : {&silent, &undecided}) {
    EXPECT_EQ(session->deadline_ns(), 3 * kSecond);
    EXPECT_TRUE(session->tick(3 * kSecond - 1).empty());
    const auto actions = session->tick(3 * kSecond);
    EXPECT_TRUE(sent(actions).empty());
    EXPECT_TRUE(closes(actions));
  }
}

TEST(ServerSession, IdleFor5minItSaysGoawayAndAPingCountsAsLife) {
  ServerSession session = ready_session();
  EXPECT_EQ(session.deadline_ns(), 300 * kSecond);
  (void)session.feed(golden("ping"), {.now_ns = 100 * kSecond, .clock_ns = 0});

  EXPECT_TRUE(session.tick(400 * kSecond - 1).empty());
  const auto actions = session.tick(400 * kSecond);

  EXPECT_EQ(decode<Goaway>(only_frame(sent(actions)).payload)->reason, GoawayReason::Idle);
  EXPECT_TRUE(closes(actions));
}

TEST(ServerSession, HalfAFrameThenSilenceClosesAfter10s) {
  ServerSession session = ready_session();
  const std::string frame = read_frame(1);
  (void)session.feed(frame.substr(0, 3), {.now_ns = kSecond, .clock_ns = 0});
  // More of the same frame does not move its deadline.
  (void)session.feed(frame.substr(3, 14), {.now_ns = 9 * kSecond, .clock_ns = 0});

  EXPECT_EQ(session.deadline_ns(), 11 * kSecond);
  const auto actions = session.tick(11 * kSecond);

  EXPECT_TRUE(sent(actions).empty());
  EXPECT_TRUE(closes(actions));
}

TEST(ServerSession, TheDeadlineInsideAFrameBeginsWithItsOwnFirstByte) {
  ServerSession session = ready_session();
  const std::string frame = read_frame(1);
  (void)session.feed(frame.substr(0, 3), {.now_ns = kSecond, .clock_ns = 0});

  (void)session.feed(frame.substr(3) + "CW", {.now_ns = 8 * kSecond, .clock_ns = 0});

  EXPECT_EQ(session.deadline_ns(), 18 * kSecond);
}

TEST(ServerSession, WhatWeDidNotReadIsNotHeldAgainstThePeer) {
  ServerSession session = ready_session();
  (void)session.feed(read_frame(1).substr(0, 5), {.now_ns = kSecond, .clock_ns = 0});
  (void)session.unsent(kUnsentPause, kSecond);
  EXPECT_FALSE(session.wants_input());
  (void)session.unsent(kUnsentPause + 1, 2 * kSecond);  // no progress yet
  EXPECT_EQ(session.deadline_ns(), 3 * kSecond);
  (void)session.unsent(kUnsentPause, 20 * kSecond / 8);  // progress

  const auto resumed = session.unsent(0, 4 * kSecond);

  EXPECT_TRUE(resumed.empty());
  EXPECT_TRUE(session.wants_input());
  EXPECT_EQ(session.deadline_ns(), 14 * kSecond);  // ten seconds from here
}

TEST(ServerSession, AClientThatDoesNotTakeItsAnswersIsSentAway) {
  ServerSession full = ready_session();
  ServerSession stalled = ready_session();
  EXPECT_FALSE(closes(full.unsent(kUnsentClose - 1, 0)));
  EXPECT_FALSE(closes(stalled.unsent(10, 0)));

  const auto at_bound = full.unsent(kUnsentClose, 0);
  const auto at_time = stalled.tick(2 * kSecond);

  EXPECT_EQ(decode<Goaway>(only_frame(sent(at_bound)).payload)->reason, GoawayReason::SlowReader);
  EXPECT_TRUE(closes(at_bound));
  EXPECT_EQ(decode<Goaway>(only_frame(sent(at_time)).payload)->reason, GoawayReason::SlowReader);
  EXPECT_TRUE(closes(at_time));
}

TEST(ServerSession, AnEndedSessionDoesNothingMore) {
  ServerSession session = ready_session();
  (void)session.feed(read_frame(1), {});

  session.ended();

  EXPECT_TRUE(session.feed(read_frame(2), {}).empty());
  EXPECT_TRUE(session.answer(1, ReadAnswer{}).empty());
  EXPECT_TRUE(session.got_descriptors().empty());
  EXPECT_TRUE(session.unsent(kUnsentClose, 0).empty());
  EXPECT_TRUE(session.tick(~std::uint64_t{0}).empty());
  EXPECT_EQ(session.deadline_ns(), std::nullopt);
  EXPECT_FALSE(session.wants_input());
}

TEST(ServerSession, TakesTheSameFromBytesInAnyPieces) {
  const std::string stream = read_frame(1) + golden("ping") + steer_frame(2) + read_frame(9);
  ServerSession whole = ready_session();
  const auto expected = whole.feed(stream, {});

  for (std::size_t piece = 1; piece < stream.size(); ++piece) {
    ServerSession session = ready_session();
    std::size_t requests = 0;
    std::string bytes;
    for (std::size_t at = 0; at < stream.size(); at += piece) {
      const auto actions = session.feed(std::string_view(stream).substr(at, piece), {});
      requests += all_of<ReadRequested>(actions).size() + all_of<SteerRequested>(actions).size();
      bytes += sent(actions);
    }
    ASSERT_EQ(requests, 3u);
    ASSERT_EQ(bytes, sent(expected));
  }
}

}  // namespace
}  // namespace cutwater::wire
