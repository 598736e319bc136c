// SPDX-License-Identifier: Apache-2.0
#include "wire/message_table.hpp"

#include <algorithm>

namespace cutwater::wire {
namespace {

constexpr FieldRow kHello[] = {
    {"min_version", "u8 1..255", "oldest version the client speaks"},
    {"max_version", "u8 min_version..255", "newest version the client speaks"},
    {"features", "u64 bits", "1 remember answers, 2 events, 4 leases; others are dropped"},
    {"client_name", "str 0..64 bytes", "shown by `clients`; trusted for nothing"},
    {"want", "u8 0..3", "0 ask, 1 map, 2 row only, 3 map read-only"},
    {"layout", "[u16, u16, u64]", "major, minor, bits of the client's memory layout; zeros = none"},
    {"segment", "bin 16 or empty", "segment the client has mapped already"},
    {"clock_ns", "u64 ns", "CLOCK_BOOTTIME just before sending"},
    {"time_ns", "u64", "inode of the time name space; 0 = unknown"},
    {"session", "bin 16 or empty", "session to take over"},
    {"auth", "str", "`peercred`, `mtls` or `hmac`"},
    {"identity", "str: a name, or empty", "only for `hmac`"},
    {"nonce", "bin 32 or empty", "only for `hmac`"},
};
constexpr FieldRow kWelcome[] = {
    {"version", "u8 1..255", "highest common version"},
    {"features", "u64 bits", "those both have; 8 = the segment's clock is stepped"},
    {"instance", "str: a name", "name of the daemon's instance"},
    {"daemon", "bin 16", "this run of the daemon"},
    {"session", "bin 16", "token of this session"},
    {"resumed", "bool", "false although one was offered: the old session is unknown"},
    {"rights", "u8 bits", "1 use, 2 look, 4 steer"},
    {"mode", "u8 0..3", "as `want`, what was given"},
    {"why", "str", "why less was given than wanted, or empty"},
    {"descriptors", "[str, ...0..3]", "three names in modes 1 and 3, else none"},
    {"row", "[u32, u32]", "index and generation in the process table"},
    {"generation", "u64", "of the rules"},
    {"clock_ns", "u64 ns", "the segment's clock at writing"},
    {"credit_items", "u32 1..", "requests that may be unanswered"},
    {"credit_bytes", "u32 1..", "payload bytes that may be unanswered"},
    {"max_frame", "u32 4096..1048576", "payload bytes of one frame, both ways, from now on"},
    {"proof", "bin 32 or empty", "only for `hmac`"},
};
constexpr FieldRow kPing[] = {{"value", "u64", "anything; comes back"}};
constexpr FieldRow kPong[] = {
    {"value", "u64", "as in PING"},
    {"clock_ns", "u64 ns", "the segment's clock"},
};
constexpr FieldRow kRead[] = {
    {"what", "str: a name", "status, clients, limits, limit, config, ..."},
    {"name", "str: a name, or nil", "of what is asked for"},
    {"key", "bin 0..4096 bytes, or nil", "a str is read as its bytes"},
    {"cursor", "bin 0..4160 bytes", "as the last answer gave it; empty = the beginning"},
    {"max_rows", "u32 1..1000", "rows wanted in one answer"},
    {"options", "? map, default empty", "depends on `what`"},
};
constexpr FieldRow kReadAnswer[] = {
    {"rows", "[map, ...0..1000]", "rows may grow keys"},
    {"cursor", "bin 0..4160 bytes", "empty = that was the end"},
};
constexpr FieldRow kSteer[] = {
    {"verb", "str: a name", "config.reload, limit.reset, clock.step"},
    {"name", "str: a name, or nil", "of what is steered"},
    {"key", "bin 0..4096 bytes, or nil", "a str is read as its bytes"},
    {"arguments", "map", "`{dry: bool}`, `{to_ns: u64}`, ..."},
    {"for_ns", "u64 ns", "0 = until undone"},
    {"note", "str 0..256 bytes", "kept with the event"},
};
constexpr FieldRow kSteerAnswer[] = {
    {"code", "u16", "0 done, 4 invalid, 5 not permitted, 6 no such name, 72 no room"},
    {"text", "str 0..32768 bytes", "for the operator"},
    {"generation", "u64", "of the rules after it"},
};
constexpr FieldRow kGoaway[] = {
    {"reason", "u8", "0 shutdown, 1 idle, 2 slow reader, 3 protocol, 4 superseded memory, "
                     "5 rights changed"},
    {"within_ns", "u64 ns", "what is in flight is answered for so long"},
    {"text", "str", "for the log"},
};
constexpr FieldRow kError[] = {
    {"code", "u16", "table of errors"},
    {"field", "str", "path of the wrong field, or empty"},
    {"text", "str", "what was expected and what came"},
    {"closing", "bool", "the daemon closes the connection behind this"},
};
constexpr FieldRow kBusy[] = {{"retry_after_ns", "u64 ns", "the request was not executed at all"}};

using enum MessageType;
constexpr MessageRow kMessages[] = {
    {Hello, "HELLO", "client", "", "WELCOME", true, false, kHello},
    {Auth, "AUTH", "client", "", "WELCOME", false, false, {}},
    {Ping, "PING", "client", "", "PONG", true, false, kPing},
    {Bye, "BYE", "client", "", "BYE_OK", true, false, {}},
    {Resolve, "RESOLVE", "client", "use or look", "RESOLVE", false, true, {}},
    {Acquire, "ACQUIRE", "client", "use", "ACQUIRE", false, true, {}},
    {Peek, "PEEK", "client", "use or look", "PEEK", false, true, {}},
    {Cancel, "CANCEL", "client", "use", "CANCEL", false, true, {}},
    {Refund, "REFUND", "client", "use", "REFUND", false, true, {}},
    {Enter, "ENTER", "client", "use", "ENTER", false, true, {}},
    {Outcome, "OUTCOME", "client", "use", "OUTCOME", false, true, {}},
    {Present, "PRESENT", "client", "use", "PRESENT", false, true, {}},
    {Lease, "LEASE", "client", "use", "LEASE", false, true, {}},
    {Read, "READ", "client", "look", "READ_ANSWER", true, true, kRead},
    {Steer, "STEER", "client", "steer", "STEER_ANSWER", true, true, kSteer},
    {Watch, "WATCH", "client", "look", "WATCH", false, true, {}},
    {Welcome, "WELCOME", "daemon", "", "", true, false, kWelcome},
    {Challenge, "CHALLENGE", "daemon", "", "AUTH", false, false, {}},
    {Pong, "PONG", "daemon", "", "", true, false, kPong},
    {ByeOk, "BYE_OK", "daemon", "", "", true, false, {}},
    {ReadAnswer, "READ_ANSWER", "daemon", "", "", true, false, kReadAnswer},
    {SteerAnswer, "STEER_ANSWER", "daemon", "", "", true, false, kSteerAnswer},
    {Event, "EVENT", "daemon (push)", "", "", false, false, {}},
    {Goaway, "GOAWAY", "daemon (push)", "", "", true, false, kGoaway},
    {Error, "ERROR", "daemon", "", "", true, false, kError},
    {Busy, "BUSY", "daemon", "", "", true, false, kBusy},
};

std::string hex(MessageType type) {
  constexpr std::string_view digits = "0123456789abcdef";
  const auto number = static_cast<std::uint8_t>(type);
  return {'0', 'x', digits[number >> 4], digits[number & 15]};
}

std::string or_dash(std::string_view text) { return std::string(text.empty() ? "-" : text); }

}  // namespace

std::size_t MessageRow::required() const noexcept {
  return static_cast<std::size_t>(
      std::count_if(fields.begin(), fields.end(),
                    [](const FieldRow& field) { return !field.type.starts_with("?"); }));
}

std::span<const MessageRow> message_table() noexcept { return kMessages; }

const MessageRow* find_message(MessageType type) noexcept {
  const auto* row = std::find_if(std::begin(kMessages), std::end(kMessages),
                                 [&](const MessageRow& message) { return message.type == type; });
  return row == std::end(kMessages) ? nullptr : row;
}

std::string describe(MessageType type) {
  const MessageRow* row = find_message(type);
  if (row == nullptr) return "type " + hex(type);
  return std::string(row->name) + " (" + hex(type) + ")";
}

std::string protocol_tables() {
  std::string out =
      "| type | message | sender | right | answer | built |\n|---|---|---|---|---|---|\n";
  for (const MessageRow& row : kMessages) {
    out += "| " + hex(row.type) + " | " + std::string(row.name) + " | " + std::string(row.sender) +
           " | " + or_dash(row.right) + " | " + or_dash(row.answer) + " | " +
           (row.built ? "yes" : "no") + " |\n";
  }
  for (const MessageRow& row : kMessages) {
    if (!row.built) continue;
    out += "\n### " + describe(row.type) + "\n\n";
    if (row.fields.empty()) {
      out += "An empty array.\n";
      continue;
    }
    out += "| # | field | type | meaning |\n|---|---|---|---|\n";
    for (std::size_t i = 0; i < row.fields.size(); ++i) {
      const FieldRow& field = row.fields[i];
      out += "| " + std::to_string(i) + " | " + std::string(field.name) + " | " +
             std::string(field.type) + " | " + std::string(field.meaning) + " |\n";
    }
  }
  return out;
}

}  // namespace cutwater::wire
