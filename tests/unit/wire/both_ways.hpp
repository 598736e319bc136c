// SPDX-License-Identifier: Apache-2.0
// One golden file against one message: in both directions, in the widest forms, with a tail.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "unit/wire/golden.hpp"

namespace cutwater::wire {

inline std::string sequence(int first, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out.push_back(static_cast<char>(first + i));
  return out;
}

/// The payload with one more field at its end, as a newer peer would send it.
inline std::string with_tail(std::string_view payload, Value tail) {
  Value root = decode_value(payload).value();
  root.as_array()->push_back(std::move(tail));
  return encode_value(root).value();
}

template <class Message>
void both_ways(const std::string& name, std::uint32_t request, const Message& message) {
  SCOPED_TRACE(name);
  const std::string payload = golden_payload(name);

  EXPECT_EQ(to_hex(frame_of(message, request)), to_hex(golden(name)));
  const auto read = decode<Message>(payload);
  ASSERT_TRUE(read.ok()) << read.fault().text;
  EXPECT_EQ(*read, message);

  const auto wide = decode<Message>(widest(decode_value(payload).value()));
  ASSERT_TRUE(wide.ok()) << wide.fault().text;
  EXPECT_EQ(*wide, message);
}

/// `known`: fields of the message that the golden file leaves out at its end.
template <class Message>
void takes_a_tail(const std::string& name, Value::Array known = {}) {
  SCOPED_TRACE(name);
  std::string payload = golden_payload(name);
  for (Value& field : known) payload = with_tail(payload, std::move(field));
  const auto plain = decode<Message>(payload);
  const auto longer = decode<Message>(
      with_tail(with_tail(payload, 7), Value::map({{"new", Value::array({1})}})));
  ASSERT_TRUE(plain.ok()) << plain.fault().text;
  ASSERT_TRUE(longer.ok()) << longer.fault().text;
  EXPECT_EQ(*longer, *plain);
}

}  // namespace cutwater::wire
