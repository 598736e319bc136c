// SPDX-License-Identifier: Apache-2.0
// Random input: nothing crashes, throws, or makes a machine send what its peer cannot read.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "support/plain_answers.hpp"
#include "unit/wire/golden.hpp"
#include "wire/session.hpp"

namespace cutwater::wire {
namespace {

constexpr int kFrames = 100'000;

std::string random_bytes(std::mt19937_64& chance, std::size_t size) {
  std::string out(size, '\0');
  for (char& c : out) c = static_cast<char>(chance());
  return out;
}

/// A golden payload with some bytes changed, cut or added.
std::string damaged(std::mt19937_64& chance, std::string payload) {
  for (auto n = chance() % 4; n > 0 && !payload.empty(); --n) {
    payload[chance() % payload.size()] = static_cast<char>(chance());
  }
  if (chance() % 4 == 0) payload.resize(chance() % (payload.size() + 1));
  if (chance() % 8 == 0) payload += random_bytes(chance, chance() % 9);
  return payload;
}

class Garbage : public ::testing::Test {
 protected:
  std::string next_frame() {
    const auto& [type, payload] = messages_[chance_() % messages_.size()];
    const auto sent_type = chance_() % 8 == 0 ? static_cast<MessageType>(chance_() % 256) : type;
    std::string body = chance_() % 4 != 0 ? damaged(chance_, payload)
                                          : random_bytes(chance_, chance_() % 64);
    const std::uint16_t flags = chance_() % 8 == 0 ? static_cast<std::uint16_t>(chance_() % 5) : 0;
    const std::uint64_t back = chance_() % 16 == 0 ? chance_() % 9 : 0;
    ++request_;
    return frame_of(sent_type, static_cast<std::uint32_t>(request_ - std::min(back, request_)),
                    body, flags);
  }

  std::mt19937_64 chance_{20250117};
  std::uint64_t request_ = 0;
  std::vector<std::pair<MessageType, std::string>> messages_ = [] {
    std::vector<std::pair<MessageType, std::string>> out;
    for (const auto& name : golden_names()) {
      const auto type = static_cast<MessageType>(golden(name)[3]);
      if (type == MessageType::Error && name != "error_field") continue;
      out.emplace_back(type, golden_payload(name));
    }
    return out;
  }();
};

ServerSession remembering_session() {
  ServerSession session({}, 0);
  Hello hello = plain_hello();
  hello.features = kFeatureRemember;
  Welcome welcome = plain_welcome();
  welcome.features = kFeatureRemember;
  (void)session.feed(frame_of(hello, 1), {});
  (void)session.welcome(welcome, 0);
  return session;
}

// covers: C119, C121 (random frames of every message)
TEST_F(Garbage, ServerSessionsSurvive100000Frames) {
  ServerSession session = remembering_session();
  int closed = 0;
  int requests = 0;
  for (int i = 0; i < kFrames; ++i) {
    const auto actions = session.feed(next_frame(), {});
    FrameReader reader(kMaxFrameDefault);
    const std::string out = sent(actions);
    std::string_view rest = out;
    while (!rest.empty()) {
      const auto frame = reader.next(rest);
      ASSERT_TRUE(frame.ok() && frame->has_value());
      ASSERT_TRUE(decode_value((*frame)->payload).ok());
    }
    for (const auto& action : actions) {
      if (!is_request(action)) continue;
      requests += static_cast<int>(!answer_plainly(session, action).empty());
    }
    ASSERT_EQ(session.waiting_requests(), 0u);
    if (session.state() != SessionState::Closed) continue;
    ++closed;
    session = remembering_session();
    request_ = 0;
  }
  EXPECT_GT(closed, kFrames / 100);    // both branches were really taken
  EXPECT_GT(requests, kFrames / 1000);
}

TEST_F(Garbage, NewSessionsSurviveRandomStreams) {
  for (int i = 0; i < kFrames / 10; ++i) {
    ServerSession session({}, 0);
    std::string stream = chance_() % 2 == 0 ? golden("hello") : random_bytes(chance_, 100);
    stream[chance_() % stream.size()] = static_cast<char>(chance_());
    const auto actions = session.feed(stream, {});
    ASSERT_LE(all_of<SendBytes>(actions).size(), 1u);
  }
}

TEST_F(Garbage, ClientSessionsSurvive100000Frames) {
  Read read;
  read.what = "limits";
  ClientSession client;
  std::uint32_t request = 0;
  for (int i = 0; i < kFrames; ++i) {
    if (client.state() == SessionState::Closed || client.state() == SessionState::New) {
      client = ClientSession();
      const auto hello = client.hello(plain_hello());
      (void)client.feed(frame_of(plain_welcome(), hello->request));
    }
    const auto out = chance_() % 2 == 0 ? client.read(read)
                                        : client.ask(Peek{{{"api-per-user", "k", 1, 0}}});
    if (out) request = out->request;
    std::string frame = next_frame();
    if (chance_() % 2 == 0) frame[3] = static_cast<char>(frame[3] | 0x80);
    frame.replace(8, 4, encode_frame({.request = request}, "").substr(8, 4));
    (void)client.feed(frame);
  }
  EXPECT_NE(request, 0u);
}

}  // namespace
}  // namespace cutwater::wire
