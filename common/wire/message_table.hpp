// SPDX-License-Identifier: Apache-2.0
// The protocol as a table: every message, who sends it, its right and its fields in their order.
// Field names in faults come from here, the sessions look types up here, and the tables of
// common/PROTOCOL.md are protocol_tables() word for word (a test compares them).
// Thread safety: constants.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "wire/frame.hpp"

namespace cutwater::wire {

struct FieldRow {
  std::string_view name;
  std::string_view type;     ///< msgpack type and range; a `?` in front = optional tail
  std::string_view meaning;
};

struct MessageRow {
  MessageType type;
  std::string_view name;
  std::string_view sender;  ///< client, daemon, daemon (push)
  std::string_view right;   ///< use, look, steer, or "" for none
  std::string_view answer;  ///< name of the answering message, or ""
  bool built;               ///< false: known, but answered with ERROR 3 unsupported by this build
  bool counted;             ///< its request ids must grow
  std::span<const FieldRow> fields;

  /// Fields that must be there.
  std::size_t required() const noexcept;
};

/// All messages of version 1, by type.
std::span<const MessageRow> message_table() noexcept;

/// The row of a type, or nullptr for a number that version 1 does not know.
const MessageRow* find_message(MessageType type) noexcept;

/// Bits of Welcome::rights of which a request needs one; 0 = none.
std::uint8_t right_bits(const MessageRow& row) noexcept;

/// "READ (0x28)", or "type 0x7f" for an unknown one.
std::string describe(MessageType type);

/// The tables of PROTOCOL.md: one of all messages, then one of fields for each built message.
std::string protocol_tables();

}  // namespace cutwater::wire
