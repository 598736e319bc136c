// SPDX-License-Identifier: Apache-2.0
#include "unit/wire/golden.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace cutwater::wire {
namespace {

// Big-endian, as msgpack writes.
void put(std::string& out, std::uint64_t value, int bytes) {
  for (int i = bytes - 1; i >= 0; --i) out.push_back(static_cast<char>(value >> (8 * i)));
}

void put_string(std::string& out, std::string_view text, char head) {
  out.push_back(head);
  put(out, text.size(), 4);
  out.append(text);
}

}  // namespace

std::string from_hex(std::string_view hex) {
  std::string out;
  std::string digits;
  for (const char c : hex) {
    if (std::isxdigit(static_cast<unsigned char>(c)) == 0) continue;
    digits.push_back(c);
    if (digits.size() < 2) continue;
    out.push_back(static_cast<char>(std::stoi(digits, nullptr, 16)));
    digits.clear();
  }
  return out;
}

std::string to_hex(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out += {digits[byte >> 4], digits[byte & 15], ' '};
  }
  return out;
}

std::string golden(std::string_view name) {
  std::ifstream file(std::string(CUTWATER_GOLDEN "/") + std::string(name) + ".hex");
  if (!file) throw std::runtime_error("no golden file " + std::string(name));
  return from_hex(std::string(std::istreambuf_iterator<char>(file), {}));
}

std::string golden_payload(std::string_view name) { return golden(name).substr(kHeaderSize); }

std::vector<std::string> golden_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(CUTWATER_GOLDEN)) {
    if (entry.path().extension() == ".hex") names.push_back(entry.path().stem());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string widest(const Value& value) {
  std::string out;
  switch (value.kind()) {
    case Value::Kind::Unsigned:
      out.push_back('\xcf');
      put(out, *value.as_unsigned(), 8);
      break;
    case Value::Kind::Signed:
      out.push_back('\xd3');
      put(out, static_cast<std::uint64_t>(*value.as_signed()), 8);
      break;
    case Value::Kind::String: put_string(out, *value.as_string(), '\xdb'); break;
    case Value::Kind::Binary: put_string(out, *value.as_binary(), '\xc6'); break;
    case Value::Kind::Array:
      out.push_back('\xdd');
      put(out, value.as_array()->size(), 4);
      for (const Value& element : *value.as_array()) out += widest(element);
      break;
    case Value::Kind::Map:
      out.push_back('\xdf');
      put(out, value.as_map()->size(), 4);
      for (const auto& entry : *value.as_map()) {
        put_string(out, entry.key, '\xdb');
        out += widest(entry.value);
      }
      break;
    default: out = encode_value(value).value();
  }
  return out;
}

std::string frame_of(MessageType type, std::uint32_t request, std::string_view payload,
                     std::uint16_t flags) {
  return encode_frame({.type = type, .flags = flags, .request = request}, payload);
}

Hello plain_hello() {
  Hello hello;
  hello.client_name = "tester";
  hello.want = Want::Ask;
  return hello;
}

Welcome plain_welcome() {
  Welcome welcome;
  welcome.instance = "main";
  welcome.daemon = std::string(kIdSize, 'd');
  welcome.session = std::string(kIdSize, 's');
  welcome.rights = kRightUse | kRightLook | kRightSteer;
  return welcome;
}

std::string sent(const ServerActions& actions) {
  std::string out;
  for (const auto& send : all_of<SendBytes>(actions)) out += send.bytes;
  return out;
}

bool closes(const ServerActions& actions) {
  return !actions.empty() && std::holds_alternative<CloseConnection>(actions.back());
}

bool closes(const ClientActions& actions) {
  return !actions.empty() && std::holds_alternative<CloseConnection>(actions.back());
}

ServerSession ready_session(std::uint8_t rights, ServerSettings settings) {
  ServerSession session(settings, 0);
  (void)session.feed(frame_of(plain_hello(), 1), {});
  Welcome welcome = plain_welcome();
  welcome.rights = rights;
  (void)session.welcome(welcome, 0);
  return session;
}

}  // namespace cutwater::wire
