// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "unit/wire/golden.hpp"
#include "wire/session.hpp"

namespace cutwater::wire {
namespace {

Read plain_read() {
  Read read;
  read.what = "limits";
  return read;
}

/// A client that was welcomed.
ClientSession ready_client(Welcome welcome = plain_welcome()) {
  ClientSession client;
  const auto hello = client.hello(plain_hello());
  (void)client.feed(frame_of(welcome, hello->request));
  return client;
}

TEST(ClientSession, SaysHelloOnceAndFirst) {
  ClientSession client;
  Hello hello = plain_hello();

  EXPECT_FALSE(client.read(plain_read()).ok());
  const auto first = client.hello(hello);

  ASSERT_TRUE(first.ok());
  EXPECT_EQ(to_hex(first->bytes), to_hex(frame_of(hello, first->request)));
  EXPECT_EQ(client.hello(hello).error().code(), Errc::Protocol);
}

TEST(ClientSession, AHelloThatBreaksABoundIsNotSent) {
  ClientSession client;
  Hello hello = plain_hello();
  hello.client_name = std::string(65, 'x');

  EXPECT_EQ(client.hello(hello).error().code(), Errc::InvalidArgument);
  EXPECT_TRUE(client.hello(plain_hello()).ok());
}

TEST(ClientSession, IsReadyAfterWelcome) {
  ClientSession client;
  const auto hello = client.hello(plain_hello());

  const auto actions = client.feed(frame_of(plain_welcome(), hello->request));

  ASSERT_EQ(all_of<Welcomed>(actions).size(), 1u);
  EXPECT_EQ(all_of<Welcomed>(actions)[0].welcome, plain_welcome());
  EXPECT_EQ(client.state(), SessionState::Ready);
  EXPECT_EQ(client.waiting_requests(), 0u);
}

TEST(ClientSession, ReportsARefusedHelloAndCloses) {
  ClientSession client;
  (void)client.hello(plain_hello());

  const auto actions = client.feed(golden("error_refused"));

  ASSERT_EQ(all_of<RequestFailed>(actions).size(), 1u);
  EXPECT_EQ(all_of<RequestFailed>(actions)[0].error.code, ErrorCode::NotPermitted);
  EXPECT_TRUE(closes(actions));
}

TEST(ClientSession, AVersionItDoesNotSpeakEndsTheSession) {
  ClientSession client;
  const auto hello = client.hello(plain_hello());
  Welcome welcome = plain_welcome();
  welcome.version = 2;

  EXPECT_TRUE(closes(client.feed(frame_of(welcome, hello->request))));
}

TEST(ClientSession, MatchesAnswersToRequestsInAnyOrder) {
  ClientSession client = ready_client();
  Steer steer;
  steer.verb = kVerbConfigReload;
  const auto read = client.read(plain_read());
  const auto steered = client.steer(steer);
  const auto ping = client.ping(9);
  EXPECT_LT(read->request, steered->request);

  const auto actions = client.feed(frame_of(Pong{9, 4}, ping->request) +
                                   frame_of(SteerAnswer{0, "done", 2}, steered->request) +
                                   frame_of(ReadAnswer{}, read->request));

  ASSERT_EQ(actions.size(), 3u);
  EXPECT_EQ(std::get<Ponged>(actions[0]).pong, (Pong{9, 4}));
  EXPECT_EQ(std::get<SteerAnswered>(actions[1]).answer.text, "done");
  EXPECT_EQ(std::get<ReadAnswered>(actions[2]).request, read->request);
  EXPECT_EQ(client.waiting_requests(), 0u);
}

TEST(ClientSession, AnErrorToARequestLeavesTheOthers) {
  ClientSession client = ready_client();
  const auto first = client.read(plain_read());
  const auto second = client.read(plain_read());
  const ErrorMessage error{ErrorCode::InvalidArgument, "what", "unknown", false};

  const auto actions = client.feed(frame_of(error, first->request) +
                                   frame_of(Busy{5}, second->request));

  ASSERT_EQ(actions.size(), 2u);
  EXPECT_EQ(std::get<RequestFailed>(actions[0]).error, error);
  EXPECT_EQ(std::get<RequestBusy>(actions[1]).retry_after_ns, 5u);
  EXPECT_EQ(client.state(), SessionState::Ready);
}

TEST(ClientSession, AClosingErrorEndsTheSession) {
  ClientSession client = ready_client();

  const auto actions = client.feed(golden("error_descriptors"));

  EXPECT_EQ(all_of<RequestFailed>(actions)[0].request, 0u);
  EXPECT_TRUE(closes(actions));
  EXPECT_FALSE(client.read(plain_read()).ok());
}

TEST(ClientSession, AnAnswerToNothingOrOfAnotherTypeEndsTheSession) {
  ClientSession nothing = ready_client();
  ClientSession other = ready_client();
  ClientSession error = ready_client();
  const auto read = other.read(plain_read());

  EXPECT_TRUE(closes(nothing.feed(frame_of(ReadAnswer{}, 77))));
  EXPECT_TRUE(closes(other.feed(frame_of(SteerAnswer{}, read->request))));
  EXPECT_TRUE(closes(error.feed(golden("error_field"))));
}

TEST(ClientSession, GarbageEndsTheSession) {
  ClientSession magic = ready_client();
  ClientSession payload = ready_client();
  const auto read = payload.read(plain_read());

  EXPECT_TRUE(closes(magic.feed("HTTP/1.1 400 Bad Request\r\n")));
  EXPECT_TRUE(closes(payload.feed(frame_of(MessageType::ReadAnswer, read->request, "\xc1"))));
}

TEST(ClientSession, AfterGoawayOnlyPingAndByeGoOut) {
  ClientSession client = ready_client();
  const auto read = client.read(plain_read());

  const auto actions = client.feed(golden("goaway"));

  EXPECT_EQ(all_of<GoawayReceived>(actions)[0].goaway.text, "shutting down");
  EXPECT_EQ(client.read(plain_read()).error().code(), Errc::Protocol);
  EXPECT_EQ(client.feed(frame_of(ReadAnswer{}, read->request)).size(), 1u);
  EXPECT_TRUE(client.ping(1).ok());
  EXPECT_TRUE(client.bye().ok());
}

TEST(ClientSession, ByeOkEndsTheSession) {
  ClientSession client = ready_client();
  const auto bye = client.bye();

  const auto actions = client.feed(frame_of(ByeOk{}, bye->request));

  EXPECT_EQ(all_of<ByeAnswered>(actions).size(), 1u);
  EXPECT_TRUE(closes(actions));
}

TEST(ClientSession, APushItDoesNotKnowIsIgnored) {
  ClientSession client = ready_client();

  EXPECT_TRUE(client.feed(frame_of(static_cast<MessageType>(0xe7), 0, "\x90")).empty());
  EXPECT_EQ(client.state(), SessionState::Ready);
}

TEST(ClientSession, HoldsBackWhatIsOverTheCredit) {
  Welcome welcome = plain_welcome();
  welcome.credit_items = 2;
  ClientSession client = ready_client(welcome);
  const auto first = client.read(plain_read());
  (void)client.read(plain_read());

  EXPECT_EQ(client.read(plain_read()).error().code(), Errc::Busy);
  (void)client.feed(frame_of(ReadAnswer{}, first->request));
  EXPECT_TRUE(client.read(plain_read()).ok());
}

TEST(ClientSession, ARequestThatFitsNoFrameIsNotSent) {
  Welcome welcome = plain_welcome();
  welcome.max_frame = kMaxFrameBeforeWelcome;
  ClientSession client = ready_client(welcome);
  Read read = plain_read();
  read.key = std::string(kMaxKey, 'k');

  EXPECT_EQ(client.read(read).error().code(), Errc::InvalidArgument);
  EXPECT_EQ(client.waiting_requests(), 0u);
}

TEST(ClientSession, SpeaksWithTheServersEnd) {
  ServerSession server({}, 0);
  ClientSession client;
  (void)server.feed(client.hello(plain_hello())->bytes, {});
  (void)client.feed(sent(server.welcome(plain_welcome(), 0)));
  const auto read = client.read(plain_read());
  ReadAnswer answer;
  answer.rows = {Value::map({{"name", "a"}})};

  const auto asked = server.feed(read->bytes, {});
  ASSERT_EQ(all_of<ReadRequested>(asked).size(), 1u);
  EXPECT_EQ(all_of<ReadRequested>(asked)[0].message, plain_read());
  const auto got = client.feed(sent(server.answer(read->request, answer)));
  const auto ended = client.feed(sent(server.feed(client.bye()->bytes, {})));

  EXPECT_EQ(all_of<ReadAnswered>(got)[0].answer, answer);
  EXPECT_TRUE(closes(ended));
  EXPECT_EQ(server.state(), SessionState::Closed);
}

TEST(ClientSession, MatchesTheAnswerOfEveryRequest) {
  ClientSession client = ready_client();
  const auto answers = [&](const auto& message, const auto& answer) {
    using Answer = std::decay_t<decltype(answer)>;
    const auto asked = client.ask(message);
    ASSERT_TRUE(asked.ok()) << asked.error().text();
    const auto got = all_of<Answered<Answer>>(client.feed(frame_of(answer, asked->request)));
    ASSERT_EQ(got.size(), 1u);
    EXPECT_EQ(got[0].request, asked->request);
    EXPECT_EQ(got[0].answer, answer);
  };
  const std::vector<Item> items(2, {"a", "k", 1, 0});

  answers(Resolve{{{NameKind::Limit, "a"}}}, ResolveAnswer{{Resolved{}}});
  answers(Acquire{0, 0, items}, AcquireAnswer{{{}, {}}});
  answers(Peek{items}, PeekAnswer{{{}, {}}});
  answers(Cancel{1}, CancelAnswer{{0, 1}});
  answers(Refund{{{1, 0, {}}}}, RefundAnswer{{{0, 1}}});
  answers(Enter{0, 0, items, {}, {}}, EnterAnswer{});
  answers(Outcome{{OutcomeReport{}}}, OutcomeAnswer{{0}});
  answers(Present{{"t"}}, PresentAnswer{{"u"}});
  answers(plain_read(), ReadAnswer{});
  answers(Watch{1, "", 0, 1}, WatchAnswer{1, 2});
  EXPECT_EQ(client.waiting_requests(), 0u);
}

TEST(ClientSession, ABatchMustBeAnsweredInFull) {
  ClientSession client = ready_client();
  const auto asked = client.ask(Peek{{{"a", "k", 1, 0}, {"a", "l", 1, 0}}});

  const auto actions = client.feed(frame_of(PeekAnswer{{DecisionAnswer{}}}, asked->request));

  EXPECT_TRUE(closes(actions));
}

TEST(ClientSession, CreditCountsItemsAndPingTakesNone) {
  Welcome welcome = plain_welcome();
  welcome.credit_items = 3;
  ClientSession client = ready_client(welcome);
  const Peek two{{{"a", "k", 1, 0}, {"a", "l", 1, 0}}};
  EXPECT_TRUE(client.ask(two).ok());
  EXPECT_EQ(client.ask(two).error().code(), Errc::Busy);
  EXPECT_TRUE(client.ask(Cancel{1}).ok());
  EXPECT_EQ(client.ask(Cancel{1}).error().code(), Errc::Busy);
  EXPECT_TRUE(client.ping(1).ok());
}

TEST(ClientSession, AfterGoawayWhatEndsThingsStillGoesOut) {
  ClientSession client = ready_client();
  (void)client.feed(golden("goaway"));

  EXPECT_TRUE(client.ask(Outcome{{OutcomeReport{}}}).ok());
  EXPECT_TRUE(client.ask(Cancel{1}).ok());
  EXPECT_TRUE(client.ask(Refund{{{1, 0, {}}}}).ok());
  EXPECT_EQ(client.ask(Acquire{0, 0, {{"a", "k", 1, 0}}}).error().code(), Errc::Protocol);
}

TEST(ClientSession, EventsAreDelivered) {
  ClientSession client = ready_client();

  const auto events = all_of<EventReceived>(client.feed(golden("event")));

  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].event.missed, 3u);
  EXPECT_TRUE(closes(client.feed(frame_of(MessageType::Event, 0, "\x90"))));
}

}  // namespace
}  // namespace cutwater::wire
