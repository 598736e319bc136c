// SPDX-License-Identifier: Apache-2.0
#include "wire/message_table.hpp"

#include <algorithm>
#include <array>

#include "wire/message.hpp"

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
constexpr FieldRow kResolve[] = {
    {"names", "[[kind, name], ...1..64]",
     "kind u8: 0 limit, 1 breaker, 2 bulkhead, 3 guard; name also a pattern's"},
};
constexpr FieldRow kResolveAnswer[] = {
    {"names", "[[code, settings or nearest], ...0..64]",
     "code u16: 0 and a map of settings, or an item error and at most 8 nearest names or patterns"},
};
constexpr FieldRow kAcquire[] = {
    {"ttl_ns", "u64 ns", "not begun this long after receipt: `expired`; 0 = no limit"},
    {"max_wait_ns", "u64 ns", "how long a place in line may be away"},
    {"items", "[item, ...1..256]", "each decided alone"},
};
constexpr FieldRow kDecisions[] = {
    {"decisions", "[decision or item error, ...0..256]", "one for each item, in their order"},
};
constexpr FieldRow kPeek[] = {{"items", "[item, ...1..256]", "as in ACQUIRE; nothing is written"}};
constexpr FieldRow kCancel[] = {{"request", "u32", "undone as far as can be"}};
constexpr FieldRow kCancelAnswer[] = {
    {"code", "u16", "0, or an item error"},
    {"tokens", "u64", "given back"},
};
constexpr FieldRow kRefund[] = {
    {"items", "[[request, item, n?], ...1..256]",
     "request u32, item u8: its index there, n u64 1..1000000000: default the whole charge"},
};
constexpr FieldRow kRefundAnswer[] = {
    {"items", "[[code, tokens], ...0..256]", "code u16: 0, or an item error; tokens u64"},
};
constexpr FieldRow kEnter[] = {
    {"ttl_ns", "u64 ns", "as in ACQUIRE"},
    {"max_wait_ns", "u64 ns", "for tokens and for a place"},
    {"items", "[item, ...0..8]", "all or none"},
    {"bulkhead", "str: a name or a pattern's, or nil", "a place in it"},
    {"breaker", "str: a name or a pattern's, or nil", "its permission"},
    {"call_ns", "? u64 ns, default 0", "how long the call may take, 0 = unknown: life of a probe"},
    {"apart", "? bool, default false", "of breaker and bulkhead: the place gets its own ticket"},
};
constexpr FieldRow kEnterAnswer[] = {
    {"admission", "admission or item error", "one answer for all parts"},
};
constexpr FieldRow kOutcome[] = {
    {"reports",
     "[[ticket, outcome, duration_ns?, open_for_ns?, class?, retry_after_ns?, others?], ...1..256]",
     "ticket bin 0..48; outcome u8: 0 succeeded, 1 failed, 2 ignored, 3 cancelled, 4 timed out; "
     "duration_ns u64, default never = not measured; open_for_ns u64, default 0; class str 0..64 "
     "bytes; retry_after_ns u64, default never = none came; others 0..15 further names, the last "
     "the built-in one"},
};
constexpr FieldRow kOutcomeAnswer[] = {
    {"codes", "[u16, ...0..256]", "0 recorded, 67 not a ticket of this session, 68 stale"},
};
constexpr FieldRow kPresent[] = {{"tickets", "[bin 0..48, ...1..256]", "of a former connection"}};
constexpr FieldRow kPresentAnswer[] = {
    {"tickets", "[bin 0..48, ...0..256]", "the new ones in their order; empty = gone"},
};
constexpr FieldRow kWatch[] = {
    {"kinds", "u32 bits 0..511",
     "1 transition, 2 trip, 4 manual, 8 config, 16 client, 32 permit, 64 overflow, 128 degraded, "
     "256 cluster; 0 ends all watches"},
    {"pattern", "str 0..64 bytes", "names: `*` stands for any bytes; empty = all"},
    {"from_seq", "u64", "first event wanted; 0 = from now"},
    {"max_pending", "u32 1..4096", "unsent events kept; beyond, those of one name are coalesced"},
};
constexpr FieldRow kWatchAnswer[] = {
    {"watch", "u32", "EVENTs carry it; 0: all watches ended"},
    {"next_seq", "u64", "of the next event"},
};
constexpr FieldRow kEvent[] = {
    {"watch", "u32", "as answered"},
    {"events", "[[seq, clock_ns, kind, name, epoch, data], ...0..256]",
     "seq u64, clock_ns u64, kind u32: one bit of WATCH, name str (a name or a pattern's) or "
     "empty, epoch u64, data map"},
    {"missed", "u64", "events before these that were coalesced or dropped"},
};
constexpr FieldRow kRead[] = {
    {"what", "str: a name", "status, clients, limits, limit, config, ..."},
    {"name", "str: a name or a pattern's, or nil", "of what is asked for"},
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
    {"name", "str: a name or a pattern's, or nil", "of what is steered"},
    {"key", "bin 0..4096 bytes, or nil", "a str is read as its bytes"},
    {"arguments", "map", "`{dry: bool}`, `{to_ns: u64}`, ..."},
    {"for_ns", "u64 ns", "0 = until undone"},
    {"note", "str 0..256 bytes", "kept with the event"},
};
constexpr FieldRow kSteerAnswer[] = {
    {"code", "u16", "0 done, 4 invalid, 5 not permitted, 6 no such name, 72 no room"},
    {"text", "str 0..32768 bytes", "for the operator"},
    {"generation", "u64", "of the rules after it"},
    {"act", "? u64, default 0", "of the journal, for journal.undo; 0 = nothing stands by it"},
    {"saved", "? u8, default 0", "0 nothing to save, 1 on the disk, 2 in force and not there yet, "
                                 "3 in force and not saved"},
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
    {Resolve, "RESOLVE", "client", "use or look", "RESOLVE_ANSWER", true, true, kResolve},
    {Acquire, "ACQUIRE", "client", "use", "ACQUIRE_ANSWER", true, true, kAcquire},
    {Peek, "PEEK", "client", "use or look", "PEEK_ANSWER", true, true, kPeek},
    {Cancel, "CANCEL", "client", "use", "CANCEL_ANSWER", true, true, kCancel},
    {Refund, "REFUND", "client", "use", "REFUND_ANSWER", true, true, kRefund},
    {Enter, "ENTER", "client", "use", "ENTER_ANSWER", true, true, kEnter},
    {Outcome, "OUTCOME", "client", "use", "OUTCOME_ANSWER", true, true, kOutcome},
    {Present, "PRESENT", "client", "use", "PRESENT_ANSWER", true, true, kPresent},
    {Lease, "LEASE", "client", "use", "LEASE_ANSWER", false, true, {}},
    {Read, "READ", "client", "look", "READ_ANSWER", true, true, kRead},
    {Steer, "STEER", "client", "steer", "STEER_ANSWER", true, true, kSteer},
    {Watch, "WATCH", "client", "look", "WATCH_ANSWER", true, true, kWatch},
    {Welcome, "WELCOME", "daemon", "", "", true, false, kWelcome},
    {Challenge, "CHALLENGE", "daemon", "", "AUTH", false, false, {}},
    {Pong, "PONG", "daemon", "", "", true, false, kPong},
    {ByeOk, "BYE_OK", "daemon", "", "", true, false, {}},
    {ResolveAnswer, "RESOLVE_ANSWER", "daemon", "", "", true, false, kResolveAnswer},
    {AcquireAnswer, "ACQUIRE_ANSWER", "daemon", "", "", true, false, kDecisions},
    {PeekAnswer, "PEEK_ANSWER", "daemon", "", "", true, false, kDecisions},
    {CancelAnswer, "CANCEL_ANSWER", "daemon", "", "", true, false, kCancelAnswer},
    {RefundAnswer, "REFUND_ANSWER", "daemon", "", "", true, false, kRefundAnswer},
    {EnterAnswer, "ENTER_ANSWER", "daemon", "", "", true, false, kEnterAnswer},
    {OutcomeAnswer, "OUTCOME_ANSWER", "daemon", "", "", true, false, kOutcomeAnswer},
    {PresentAnswer, "PRESENT_ANSWER", "daemon", "", "", true, false, kPresentAnswer},
    {LeaseAnswer, "LEASE_ANSWER", "daemon", "", "", false, false, {}},
    {ReadAnswer, "READ_ANSWER", "daemon", "", "", true, false, kReadAnswer},
    {SteerAnswer, "STEER_ANSWER", "daemon", "", "", true, false, kSteerAnswer},
    {WatchAnswer, "WATCH_ANSWER", "daemon", "", "", true, false, kWatchAnswer},
    {Event, "EVENT", "daemon (push)", "", "", true, false, kEvent},
    {Goaway, "GOAWAY", "daemon (push)", "", "", true, false, kGoaway},
    {Error, "ERROR", "daemon", "", "", true, false, kError},
    {Busy, "BUSY", "daemon", "", "", true, false, kBusy},
};

constexpr std::uint8_t bits_of(std::string_view right) {
  std::uint8_t bits = 0;
  if (right.find("use") != std::string_view::npos) bits |= kRightUse;
  if (right.find("look") != std::string_view::npos) bits |= kRightLook;
  if (right.find("steer") != std::string_view::npos) bits |= kRightSteer;
  return bits;
}

/// By type: its row, and the bits of its right. Every frame is looked up here.
struct Types {
  static constexpr std::uint8_t kNone = 255;
  std::array<std::uint8_t, 256> row{}, rights{};
};
constexpr Types kTypes = [] {
  Types out;
  out.row.fill(Types::kNone);
  for (std::size_t i = 0; i < std::size(kMessages); ++i) {
    out.row[static_cast<std::uint8_t>(kMessages[i].type)] = static_cast<std::uint8_t>(i);
    out.rights[static_cast<std::uint8_t>(kMessages[i].type)] = bits_of(kMessages[i].right);
  }
  return out;
}();

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
  const std::uint8_t at = kTypes.row[static_cast<std::uint8_t>(type)];
  return at == Types::kNone ? nullptr : &kMessages[at];
}

std::uint8_t right_bits(const MessageRow& row) noexcept {
  return kTypes.rights[static_cast<std::uint8_t>(row.type)];
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
