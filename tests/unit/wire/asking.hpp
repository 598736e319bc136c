// SPDX-License-Identifier: Apache-2.0
// Sessions that are asked, and what they say, for the tests of the daemon's end.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "unit/wire/golden.hpp"
#include "wire/session.hpp"

namespace cutwater::wire {

inline constexpr auto kStale = static_cast<std::uint16_t>(ItemError::Stale);
inline constexpr auto kTooLate = static_cast<std::uint16_t>(ItemError::TooLate);

inline Welcome remembering_welcome() {
  Welcome welcome = plain_welcome();
  welcome.features = kFeatureRemember;
  return welcome;
}

inline Hello remembering_hello() {
  Hello hello = plain_hello();
  hello.features = kFeatureRemember;
  return hello;
}

inline ServerSession remembering_session(Welcome welcome = remembering_welcome(),
                                  AnswerMemory memory = {}) {
  ServerSession session({}, 0);
  (void)session.feed(frame_of(remembering_hello(), 1), {});
  (void)session.welcome(std::move(welcome), 0, std::move(memory));
  return session;
}

inline Acquire acquire(std::size_t items = 1) {
  return {0, 0, std::vector<Item>(items, Item{"a", "k", 1, 0})};
}

inline AcquireAnswer granted(std::size_t items = 1) {
  AcquireAnswer out;
  out.decisions.resize(items);
  return out;
}

inline Read limits() {
  Read out;
  out.what = "limits";
  return out;
}

inline Steer steer(std::string verb) {
  Steer out;
  out.verb = std::move(verb);
  return out;
}

inline Receipts receipts(std::initializer_list<const char*> all) {
  Receipts out;
  for (const char* receipt : all) out.add(receipt);
  return out;
}

/// Types of the frames in some bytes.
inline std::vector<MessageType> types_of(std::string_view bytes) {
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

}  // namespace cutwater::wire
