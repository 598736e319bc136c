// SPDX-License-Identifier: Apache-2.0
// What each bad input gets: exactly the bytes of its golden file, and whether the session stays.
#include <gtest/gtest.h>

#include <set>

#include "unit/wire/golden.hpp"
#include "wire/session.hpp"

namespace cutwater::wire {
namespace {

ServerSession new_session() { return ServerSession({}, 0); }

/// Feeds the bytes at once and byte by byte, and compares with golden/NAME.hex.
void expect_error(const std::string& name, const ServerSession& before, std::string_view bytes) {
  SCOPED_TRACE(name);
  const bool closing = decode<ErrorMessage>(golden_payload(name))->closing;
  ServerSession at_once = before;
  ServerSession in_bytes = before;

  const auto actions = at_once.feed(bytes, {});
  ServerActions collected;
  for (const char byte : bytes) {
    for (auto& action : in_bytes.feed(std::string_view(&byte, 1), {})) {
      collected.push_back(std::move(action));
    }
  }

  for (const auto& got : {actions, collected}) {
    EXPECT_EQ(to_hex(sent(got)), to_hex(golden(name))) << sent(got);
    EXPECT_EQ(closes(got), closing);
    EXPECT_EQ(all_of<PeerFault>(got).size(), 1u);
    EXPECT_TRUE(all_of<ReadRequested>(got).empty());
    EXPECT_TRUE(all_of<SteerRequested>(got).empty());
  }
  EXPECT_EQ(at_once.state() == SessionState::Closed, closing);
  if (closing) {
    EXPECT_TRUE(at_once.feed(golden("ping"), {}).empty());  // said once
  } else {
    EXPECT_FALSE(sent(at_once.feed(golden("ping"), {})).empty());  // the session lives
  }
}

std::string with_byte(std::string bytes, std::size_t at, char byte) {
  bytes[at] = byte;
  return bytes;
}

/// A READ of request 2 whose field 4 (max_rows) is this raw msgpack.
std::string read_with_rows(std::string_view raw) {
  return frame_of(MessageType::Read, 2,
                  from_hex("95 a6") + "limits" + from_hex("c0 c0 c4 00") + from_hex(raw));
}

/// A STEER of request 2 whose arguments are this raw msgpack.
std::string steer_with(std::string_view raw) {
  return frame_of(MessageType::Steer, 2,
                  from_hex("96 a1 78 c0 c0") + from_hex(raw) + from_hex("00 a0"));
}

std::string read_of(std::string_view raw) {
  return frame_of(MessageType::Read, 2, from_hex(raw));
}

/// An ACQUIRE of request 2 with this many items, or one whose second item is this raw msgpack.
std::string acquire_of(std::size_t items) {
  Value::Array all(items, Value::array({"a", Value::binary("k")}));
  return frame_of(MessageType::Acquire, 2, encode_value(Value::array({0, 0, all})).value());
}
std::string acquire_with(std::string_view raw) {
  return frame_of(MessageType::Acquire, 2,
                  from_hex("93 00 00 92 92 a1 61 c4 01 6b") + from_hex(raw));
}
std::string message_of(MessageType type, const Value& payload) {
  return frame_of(type, 2, encode_value(payload).value());
}

TEST(ServerErrors, BadFramesOfTheHeader) {
  expect_error("error_magic", new_session(), "GET / HTTP/1.1\r\n\r\n");
  expect_error("error_reserved", new_session(), with_byte(golden("hello"), 7, 1));
  expect_error("error_length", new_session(),
               from_hex("43 57 01 01 00 00 00 00 01 00 00 00 ff ff ff ff"));
  expect_error("error_frame_version", ready_session(), with_byte(golden("ping"), 2, 2));
}

// covers: C119 (through the session, at once and byte by byte)
TEST(ServerErrors, BadPayloads) {
  expect_error("error_msgpack", ready_session(), read_of("95 a6 6c"));
  expect_error("error_behind", ready_session(), read_of("90 c0"));
  expect_error("error_deep", ready_session(), read_of("91 91 91 91 91 91 91 91 91 c0"));
  expect_error("error_deep", ready_session(),
               frame_of(MessageType::Read, 2, std::string(10000, '\x91')));
  expect_error("error_array", ready_session(), read_of("dd ff 00 00 00"));
  expect_error("error_map", ready_session(), read_of("df ff ff ff ff"));
  expect_error("error_ext", ready_session(), read_of("91 d4 01 00"));
}

TEST(ServerErrors, Versions) {
  Hello hello = plain_hello();
  hello.min_version = 2;
  hello.max_version = 9;

  expect_error("error_no_version", new_session(), frame_of(hello, 1));
}

TEST(ServerErrors, UnsupportedTypes) {
  expect_error("error_not_built", ready_session(),
               frame_of(MessageType::Lease, 7, golden_payload("acquire")));
  expect_error("error_unknown", ready_session(),
               frame_of(static_cast<MessageType>(0x7f), 2, from_hex("90")));
  expect_error("error_daemons", ready_session(), frame_of(MessageType::Welcome, 2, from_hex("90")));
}

TEST(ServerErrors, InvalidArguments) {
  const std::string long_key = from_hex("c5 10 01") + std::string(4097, 'k');
  expect_error("error_not_array", ready_session(), read_of("80"));
  expect_error("error_missing", ready_session(),
               frame_of(MessageType::Steer, 2, from_hex("95 a1 78 c0 c0 80 00")));
  expect_error("error_type", ready_session(), read_with_rows("a1 33"));
  expect_error("error_float", ready_session(), read_with_rows("cb 3f f8 00 00 00 00 00 00"));
  expect_error("error_negative", ready_session(), read_with_rows("ff"));
  expect_error("error_nil", ready_session(), steer_with("c0"));
  expect_error("error_key", ready_session(),
               frame_of(MessageType::Read, 2,
                        from_hex("95 a1 78 c0") + long_key + from_hex("c4 00 01")));
  expect_error("error_twice", ready_session(), steer_with("82 a1 61 01 a1 61 02"));
  expect_error("error_flags", ready_session(),
               frame_of(MessageType::Read, 2, golden_payload("read"), 0x8000));
}

TEST(ServerErrors, NotNow) {
  ServerSession five = ready_session();
  (void)five.feed(golden("read"), {});  // request 5
  expect_error("error_before", new_session(),
               frame_of(MessageType::Read, 2, golden_payload("read")));
  expect_error("error_again", ready_session(), frame_of(plain_hello(), 2));
  expect_error("error_order", five, golden("read"));
  expect_error("error_repeat", five,
               frame_of(MessageType::Read, 5, golden_payload("read"), kFlagRepeat));
}

TEST(ServerErrors, MissingRights) {
  expect_error("error_look", ready_session(kRightUse | kRightSteer),
               frame_of(MessageType::Read, 2, golden_payload("read")));
  expect_error("error_steer", ready_session(kRightUse | kRightLook),
               frame_of(MessageType::Steer, 2, golden_payload("steer_reload")));
  expect_error("error_use", ready_session(kRightLook | kRightSteer), acquire_of(1));
  expect_error("error_use_or_look", ready_session(kRightSteer),
               frame_of(MessageType::Peek, 2, golden_payload("peek")));
}

TEST(ServerErrors, InvalidArgumentsOfAsking) {
  Welcome small = plain_welcome();
  small.max_frame = kMaxFrameBeforeWelcome;
  ServerSession with_small = new_session();
  (void)with_small.feed(frame_of(plain_hello(), 1), {});
  (void)with_small.welcome(small, 0);

  expect_error("error_cost", ready_session(), acquire_with("93 c0 c4 01 6b ce 3b 9a ca 01"));
  expect_error("error_item_flags", ready_session(), acquire_with("94 c0 c4 01 6b 01 02"));
  expect_error("error_first_item", ready_session(),
               message_of(MessageType::Peek,
                          Value::array({Value::Array{Value::array({Value(), "k"})}})));
  expect_error("error_items", ready_session(), acquire_of(kMaxItems + 1));
  expect_error("error_items_frame", with_small, acquire_of(86));
  EXPECT_FALSE(with_small.feed(acquire_of(56), {}).empty());
  expect_error("error_enter_items", ready_session(),
               message_of(MessageType::Enter,
                          Value::array({0, 0, Value::Array(9, Value::array({"a", "k"})), Value(),
                                        Value()})));
  expect_error("error_resolve", ready_session(),
               message_of(MessageType::Resolve,
                          Value::array({Value::Array(65, Value::array({0, "a"}))})));
  expect_error("error_kind", ready_session(),
               message_of(MessageType::Resolve,
                          Value::array({Value::Array{Value::array({4, "a"})}})));
}

TEST(ServerErrors, InvalidArgumentsOfOutcomesAndWatches) {
  const auto outcome = [](Value ticket, Value kind) {
    return message_of(MessageType::Outcome,
                      Value::array({Value::Array{Value::array(
                          {std::move(ticket), 0, 0, 0, std::move(kind)})}}));
  };
  const auto watch = [](int kinds, std::size_t pattern, int pending) {
    return message_of(MessageType::Watch,
                      Value::array({kinds, std::string(pattern, 'p'), 0, pending}));
  };
  ServerSession four = ready_session();
  for (std::uint32_t id = 2; id < 2 + kMaxWatches; ++id) {
    (void)four.feed(frame_of(Watch{1, "", 0, 1}, id), {});
  }

  expect_error("error_ticket", ready_session(),
               outcome(Value::binary(std::string(kMaxTicket + 1, 't')), ""));
  expect_error("error_class", ready_session(),
               outcome(Value::binary(""), std::string(kMaxClass + 1, 'c')));
  expect_error("error_kinds", ready_session(), watch(512, 0, 1));
  expect_error("error_pending", ready_session(), watch(1, 0, 4097));
  expect_error("error_pattern", ready_session(), watch(1, kMaxPattern + 1, 1));
  expect_error("error_watches", four, frame_of(Watch{1, "", 0, 1}, 6));
}

TEST(ServerErrors, ARepeatOfAnotherRequest) {
  ServerSession session = new_session();
  Hello hello = plain_hello();
  hello.features = kFeatureRemember;
  Welcome welcome = plain_welcome();
  welcome.features = kFeatureRemember;
  (void)session.feed(frame_of(hello, 1), {});
  (void)session.welcome(welcome, 0);
  (void)session.feed(acquire_of(1), {});
  (void)session.answer(2, AcquireAnswer{{DecisionAnswer{}}});

  expect_error("error_was", session,
               frame_of(MessageType::Peek, 2, golden_payload("peek"), kFlagRepeat));
}

TEST(ServerErrors, WhatTheApplicationRefuses) {
  for (const auto& [name, code, text] :
       {std::tuple("error_refused", ErrorCode::NotPermitted, "uid 1001 is not in access.use"),
        std::tuple("error_too_many", ErrorCode::TooMany, "1024 sessions are open")}) {
    ServerSession session = new_session();
    (void)session.feed(frame_of(plain_hello(), 1), {});

    const auto actions = session.refuse(code, text);

    EXPECT_EQ(to_hex(sent(actions)), to_hex(golden(name)));
    EXPECT_TRUE(closes(actions));
  }
}

TEST(ServerErrors, DescriptorsFromAClientEndTheSession) {
  for (ServerSession session : {new_session(), ready_session()}) {
    const auto actions = session.got_descriptors();

    EXPECT_EQ(to_hex(sent(actions)), to_hex(golden("error_descriptors")));
    EXPECT_TRUE(closes(actions));
  }
}

TEST(ServerErrors, AnInternalErrorIsNotThePeersFault) {
  ServerSession session = ready_session();
  (void)session.feed(frame_of(MessageType::Read, 2, golden_payload("read")), {});
  ReadAnswer answer;
  answer.rows.assign(3, Value::map({{"t", std::string(30000, 'x')}}));

  const auto actions = session.answer(2, answer);

  EXPECT_EQ(to_hex(sent(actions)), to_hex(golden("error_internal")));
  EXPECT_TRUE(all_of<PeerFault>(actions).empty());
}

TEST(ServerErrors, ARequestIdOf0IsNeverLargerThanTheLast) {
  ServerSession session = ready_session();

  const auto actions = session.feed(frame_of(MessageType::Read, 0, golden_payload("read")), {});

  EXPECT_EQ(decode<ErrorMessage>(sent(actions).substr(kHeaderSize))->code, ErrorCode::NotNow);
}

TEST(ServerErrors, AFrameOver4KiBIsRefusedBeforeWelcomeAndTakenAfter) {
  const std::string large = frame_of(MessageType::Ping, 2,
                                     from_hex("92 00 c5 10 00") + std::string(4096, 'x'));
  ServerSession before = new_session();
  ServerSession after = ready_session();

  EXPECT_TRUE(closes(before.feed(large, {})));
  EXPECT_FALSE(closes(after.feed(large, {})));
}

TEST(ServerErrors, AnOpenSessionTakesMaxFrameAndNotOneByteMore) {
  const auto ping_of = [](std::size_t payload) {  // value, and a tail that fills the frame
    std::string tail = from_hex("92 00 c6");
    for (int shift = 24; shift >= 0; shift -= 8) {
      tail.push_back(static_cast<char>((payload - 7) >> shift));
    }
    return frame_of(MessageType::Ping, 2, tail + std::string(payload - 7, 'x'));
  };
  ServerSession most = ready_session();
  ServerSession over = ready_session();

  EXPECT_FALSE(closes(most.feed(ping_of(kMaxFrameDefault), {})));
  EXPECT_TRUE(closes(over.feed(ping_of(kMaxFrameDefault + 1), {})));
}

}  // namespace
}  // namespace cutwater::wire
