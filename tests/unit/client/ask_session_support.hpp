// SPDX-License-Identifier: Apache-2.0
// What the tests of AskSession share: calls with a frame of their own, and the daemon's end.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <string>
#include <vector>

#include "src/ask/ask_session.hpp"
#include "wire/ask_message.hpp"

namespace cutwater::client {
/// A call whose answer is one number, and its frame.
struct Asked : Call {
  explicit Asked(std::string payload = "\x91\x01", std::uint32_t wanted_items = 1)
      : bytes(std::string(wire::kHeaderSize, '\0') + payload) {
    frame = &bytes;
    items = wanted_items;
    take = [](Call& call, std::string_view told) {
      static_cast<Asked&>(call).answer = told;
      return told != "wrong";
    };
  }
  std::string bytes, answer;
};

/// The daemon's end: cuts frames, remembers what it executed, as a session that remembers does.
struct Peer {
  std::string in;
  std::vector<std::uint32_t> executed;
  std::vector<wire::FrameHeader> seen;

  /// Answers to all whole frames that came, id + payload echoed.
  std::string take(std::string_view bytes) {
    in += bytes;
    std::string out;
    while (in.size() >= wire::kHeaderSize) {
      const auto header = wire::decode_header(in, wire::kVersion, 1 << 20);
      EXPECT_TRUE(header) << header.fault().text;
      if (!header || in.size() - wire::kHeaderSize < header->length) break;
      const std::string payload = in.substr(wire::kHeaderSize, header->length);
      in.erase(0, wire::kHeaderSize + header->length);
      seen.push_back(*header);
      const bool known = std::ranges::count(executed, header->request) != 0;
      if (!known) executed.push_back(header->request);
      EXPECT_TRUE(!known || (header->flags & wire::kFlagRepeat) != 0);
      out += answer(*header, payload);
    }
    return out;
  }
  static std::string answer(const wire::FrameHeader& header, const std::string& payload) {
    const auto type = static_cast<std::uint8_t>(header.type) | wire::kFromDaemon;
    return wire::encode_frame(
        {.type = static_cast<wire::MessageType>(type), .request = header.request}, payload);
  }
};

inline wire::Welcome welcome(std::uint32_t items = 1024) {
  wire::Welcome out;
  out.credit_items = items;
  return out;
}

inline std::string drain(AskSession& session) {
  std::string out;
  for (std::string_view bytes = session.unsent(); !bytes.empty(); bytes = session.unsent()) {
    out += bytes;
    session.sent(bytes.size());
  }
  return out;
}

inline int finish(AskSession& session) {
  int count = 0;
  while (session.finished() != nullptr) ++count;
  return count;
}

}  // namespace cutwater::client
