// SPDX-License-Identifier: Apache-2.0
// Random input: nothing crashes, throws, or makes a machine send what its peer cannot read.
#include <gtest/gtest.h>

#include <random>

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
    const auto& payload = payloads_[chance_() % payloads_.size()];
    const auto type = static_cast<MessageType>(
        chance_() % 3 == 0 ? chance_() % 256 : static_cast<std::uint64_t>(0x28 + chance_() % 2));
    std::string body = chance_() % 2 == 0 ? damaged(chance_, payload)
                                          : random_bytes(chance_, chance_() % 64);
    return frame_of(type, static_cast<std::uint32_t>(++request_), body);
  }

  std::mt19937_64 chance_{20250117};
  std::uint64_t request_ = 0;
  std::vector<std::string> payloads_ = [] {
    std::vector<std::string> out;
    for (const auto& name : golden_names()) out.push_back(golden_payload(name));
    return out;
  }();
};

// covers: C119 (random frames)
TEST_F(Garbage, ServerSessionsSurvive100000Frames) {
  ServerSession session = ready_session();
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
    for (const auto& read : all_of<ReadRequested>(actions)) {
      requests += static_cast<int>(!session.answer(read.request, ReadAnswer{}).empty());
    }
    for (const auto& steer : all_of<SteerRequested>(actions)) {
      requests += static_cast<int>(!session.answer(steer.request, SteerAnswer{}).empty());
    }
    if (session.state() != SessionState::Closed) continue;
    ++closed;
    session = ready_session();
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
    if (auto out = client.read(read)) request = out->request;
    std::string frame = next_frame();
    frame[3] = static_cast<char>(chance_() % 2 == 0 ? 0xa8 : frame[3] | 0x80);
    frame.replace(8, 4, encode_frame({.request = request}, "").substr(8, 4));
    (void)client.feed(frame);
  }
  EXPECT_NE(request, 0u);
}

}  // namespace
}  // namespace cutwater::wire
