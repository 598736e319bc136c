// SPDX-License-Identifier: Apache-2.0
// Golden files and byte helpers for the tests of wire/.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "wire/session.hpp"
#include "wire/value.hpp"

namespace cutwater::wire {

/// Bytes of golden/NAME.hex.
std::string golden(std::string_view name);
/// Its payload, without the header.
std::string golden_payload(std::string_view name);
/// Names of all golden files, sorted.
std::vector<std::string> golden_names();

/// Bytes from "43 57 01".
std::string from_hex(std::string_view hex);
std::string to_hex(std::string_view bytes);

/// The same value with every integer, length and count in its widest msgpack form.
std::string widest(const Value& value);

/// A frame with any payload.
std::string frame_of(MessageType type, std::uint32_t request, std::string_view payload,
                     std::uint16_t flags = 0);
template <class Message>
std::string frame_of(const Message& message, std::uint32_t request, std::uint16_t flags = 0) {
  return frame_of(Message::kType, request, encode(message).value(), flags);
}

/// A HELLO that is right, and a WELCOME with all rights.
Hello plain_hello();
Welcome plain_welcome();

/// What a machine sent, put together, and what it asks for.
template <class Wanted, class Action>
std::vector<Wanted> all_of(const std::vector<Action>& actions) {
  std::vector<Wanted> out;
  for (const auto& action : actions) {
    if (const auto* wanted = std::get_if<Wanted>(&action)) out.push_back(*wanted);
  }
  return out;
}
std::string sent(const ServerActions& actions);
bool closes(const ServerActions& actions);
bool closes(const ClientActions& actions);

/// A session that is READY with these rights.
ServerSession ready_session(std::uint8_t rights = 7, ServerSettings settings = {});

}  // namespace cutwater::wire
