// SPDX-License-Identifier: Apache-2.0
// The messages of this build as plain structs, and their way to payload bytes and back.
// common/PROTOCOL.md shows every field with its position, type and range; both come from one table.
//
// A payload is one msgpack array by position. decode() checks every field and names the first wrong
// one by its path (Fault::field); a missing optional tail takes its default; an unknown tail, put
// there by a newer peer, is checked to be msgpack and then ignored.
// encode() never writes what decode() would refuse: it fails with InvalidArgument and the field's
// name instead. Only texts for people are cut (at a character) when they are too long.
// All *_ns are nanoseconds; times are readings of the segment's clock. kNever means "never".
// Thread safety: values and pure functions. No exception leaves.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <cutwater/result.hpp>

#include "wire/fault.hpp"
#include "wire/frame.hpp"
#include "wire/value.hpp"

namespace cutwater::wire {

inline constexpr std::uint64_t kNever = ~std::uint64_t{0};

/// Bounds in bytes unless said otherwise.
inline constexpr std::size_t kMaxKey = 4096;
inline constexpr std::size_t kMaxName = 63;
inline constexpr std::size_t kMaxClientName = 64;
inline constexpr std::size_t kMaxNote = 256;
inline constexpr std::size_t kMaxText = 32U << 10;      ///< text of a STEER answer; longer is cut
inline constexpr std::size_t kMaxErrorText = 1024;      ///< text of ERROR, GOAWAY, WELCOME; is cut
inline constexpr std::size_t kMaxField = 256;           ///< `field` of an ERROR; longer is cut
inline constexpr std::size_t kMaxCursor = kMaxKey + 64;  ///< a cursor may hold a key
inline constexpr std::size_t kMaxRows = 1000;           ///< rows in one READ answer
inline constexpr std::size_t kMaxDescriptors = 3;
inline constexpr std::size_t kIdSize = 16;              ///< segment, session, daemon
inline constexpr std::size_t kProofSize = 32;           ///< nonce, proof

/// Bits of Hello::features and Welcome::features. Unknown bits are dropped by WELCOME.
inline constexpr std::uint64_t kFeatureRemember = 1;
inline constexpr std::uint64_t kFeatureEvents = 2;
inline constexpr std::uint64_t kFeatureLeases = 4;
inline constexpr std::uint64_t kFeatureSteppedClock = 8;  ///< WELCOME only: its creator moves it

/// Bits of Welcome::rights.
inline constexpr std::uint8_t kRightUse = 1;
inline constexpr std::uint8_t kRightLook = 2;
inline constexpr std::uint8_t kRightSteer = 4;

/// What a client wants of a session (Hello::want), and what it was given (Welcome::mode).
enum class Want : std::uint8_t {
  Ask = 0,      ///< decisions over the socket
  Map = 1,      ///< descriptors and a row
  Row = 2,      ///< a row only: the memory is mapped already (forked child, daemon restart)
  MapRead = 3,  ///< descriptors, all read-only (exporters, command line)
};

struct Layout {
  std::uint16_t major = 0;  ///< 0.0 with no bits: the library maps no memory
  std::uint16_t minor = 0;
  std::uint64_t bits = 0;
  bool operator==(const Layout&) const = default;
};

struct Hello {
  static constexpr MessageType kType = MessageType::Hello;
  std::uint8_t min_version = kVersion;
  std::uint8_t max_version = kVersion;
  std::uint64_t features = 0;
  std::string client_name;         ///< <= kMaxClientName bytes of UTF-8; shown, never trusted
  Want want = Want::Ask;
  Layout layout;                   ///< the memory layout the library was built with
  std::string segment;             ///< kIdSize bytes of the segment mapped already, or empty
  std::uint64_t clock_ns = 0;      ///< CLOCK_BOOTTIME just before sending
  std::uint64_t time_ns = 0;       ///< inode of the time name space; 0 = unknown
  std::string session;             ///< kIdSize bytes of a session to take over, or empty
  std::string auth = "peercred";   ///< peercred, mtls or hmac
  std::string identity;            ///< hmac only: a name, or empty
  std::string nonce;               ///< hmac only: kProofSize bytes, or empty
  bool operator==(const Hello&) const = default;
};

struct Welcome {
  static constexpr MessageType kType = MessageType::Welcome;
  std::uint8_t version = kVersion;
  std::uint64_t features = 0;
  std::string instance;                  ///< name of the daemon's instance
  std::string daemon;                    ///< kIdSize bytes, new with every start of the daemon
  std::string session;                   ///< kIdSize bytes
  bool resumed = false;
  std::uint8_t rights = 0;
  Want mode = Want::Ask;
  std::string why;                       ///< why less was given than wanted, or ""
  std::vector<std::string> descriptors;  ///< three names in modes Map, MapRead; else {}
  std::uint32_t row_index = 0;
  std::uint32_t row_generation = 0;
  std::uint64_t generation = 0;          ///< of the rules
  std::uint64_t clock_ns = 0;            ///< the segment's clock at writing
  std::uint32_t credit_items = 1024;     ///< >= 1
  std::uint32_t credit_bytes = 256U << 10;
  std::uint32_t max_frame = kMaxFrameDefault;  ///< kMaxFrameBeforeWelcome .. kMaxFrameLargest
  std::string proof;                     ///< kProofSize bytes (hmac), or empty
  bool operator==(const Welcome&) const = default;
};

struct Ping {
  static constexpr MessageType kType = MessageType::Ping;
  std::uint64_t value = 0;  ///< anything; comes back
  bool operator==(const Ping&) const = default;
};

struct Pong {
  static constexpr MessageType kType = MessageType::Pong;
  std::uint64_t value = 0;
  std::uint64_t clock_ns = 0;
  bool operator==(const Pong&) const = default;
};

struct Bye {
  static constexpr MessageType kType = MessageType::Bye;
  bool operator==(const Bye&) const = default;
};

struct ByeOk {
  static constexpr MessageType kType = MessageType::ByeOk;
  bool operator==(const ByeOk&) const = default;
};

struct ErrorMessage {
  static constexpr MessageType kType = MessageType::Error;
  ErrorCode code = ErrorCode::Internal;  ///< an unknown number is kept as it is
  std::string field;
  std::string text;
  bool closing = false;                  ///< the daemon closes the connection behind this
  bool operator==(const ErrorMessage&) const = default;
};

enum class GoawayReason : std::uint8_t {
  Shutdown = 0, Idle = 1, SlowReader = 2, Protocol = 3, SupersededMemory = 4, RightsChanged = 5,
};

struct Goaway {
  static constexpr MessageType kType = MessageType::Goaway;
  GoawayReason reason = GoawayReason::Shutdown;  ///< an unknown number is kept as it is
  std::uint64_t within_ns = 0;                   ///< what is in flight is answered for so long
  std::string text;
  bool operator==(const Goaway&) const = default;
};

struct Busy {
  static constexpr MessageType kType = MessageType::Busy;
  std::uint64_t retry_after_ns = 0;
  bool operator==(const Busy&) const = default;
};

/// READ `what`: status, clients, limits, limit, overrides, journal, config, counters, ... Which
/// words are known is the daemon's to say.
struct Read {
  static constexpr MessageType kType = MessageType::Read;
  std::string what;                 ///< a name
  std::optional<std::string> name;  ///< a name
  std::optional<std::string> key;   ///< any bytes, 0..kMaxKey
  std::string cursor;               ///< as the last answer gave it; empty = from the beginning
  std::uint32_t max_rows = 1000;    ///< 1..kMaxRows
  Value options = Value(Value::Map{});  ///< a map; may be left out
  bool operator==(const Read&) const = default;
};

struct ReadAnswer {
  static constexpr MessageType kType = MessageType::ReadAnswer;
  std::vector<Value> rows;  ///< maps, at most kMaxRows; together with the cursor within one frame
  std::string cursor;       ///< empty = that was the end
  bool operator==(const ReadAnswer&) const = default;
};

/// Verbs this build's daemon carries out; others are known to the protocol and come later.
inline constexpr std::string_view kVerbConfigReload = "config.reload";  ///< {dry: bool}
inline constexpr std::string_view kVerbLimitReset = "limit.reset";      ///< name and key
inline constexpr std::string_view kVerbClockStep = "clock.step";        ///< {to_ns: u64}
inline constexpr std::string_view kVerbLimitDrain = "limit.drain";      ///< name and key
inline constexpr std::string_view kVerbLimitCredit = "limit.credit";    ///< name, key, {n: u64}
inline constexpr std::string_view kVerbLimitBan = "limit.ban";          ///< name, key, for_ns, note
inline constexpr std::string_view kVerbLimitUnban = "limit.unban";      ///< name and key
/// name, key, for_ns, note, {rate_count, rate_period_ns, burst: u64}; or {unlimited: true}, or {}
/// to end it.
inline constexpr std::string_view kVerbLimitOverride = "limit.override";
inline constexpr std::string_view kVerbLimitShadow = "limit.shadow";    ///< name, {on: bool}
inline constexpr std::string_view kVerbLogLevel = "log.level";          ///< {level: text}
inline constexpr std::string_view kVerbJournalUndo = "journal.undo";    ///< {id: u64}

struct Steer {
  static constexpr MessageType kType = MessageType::Steer;
  std::string verb;                 ///< a name
  std::optional<std::string> name;  ///< a name
  std::optional<std::string> key;   ///< any bytes, 0..kMaxKey
  Value arguments = Value(Value::Map{});  ///< a map
  std::uint64_t for_ns = 0;         ///< 0 = until undone
  std::string note;                 ///< <= kMaxNote bytes of UTF-8
  bool operator==(const Steer&) const = default;
};

/// SteerAnswer::code. The same numbers as the command line's exit codes where they overlap.
inline constexpr std::uint16_t kSteerDone = 0;
inline constexpr std::uint16_t kSteerInvalid = 4;
inline constexpr std::uint16_t kSteerNotPermitted = 5;
inline constexpr std::uint16_t kSteerNoSuchName = 6;
inline constexpr std::uint16_t kSteerNoRoom = 72;

/// SteerAnswer::saved: whether what was done by hand would come back after a reboot.
inline constexpr std::uint8_t kSteerNothingToSave = 0;
inline constexpr std::uint8_t kSteerSaved = 1;
inline constexpr std::uint8_t kSteerSavePending = 2;  ///< in force; the disk has not answered yet
inline constexpr std::uint8_t kSteerNotSaved = 3;     ///< in force; the text says why

struct SteerAnswer {
  static constexpr MessageType kType = MessageType::SteerAnswer;
  std::uint16_t code = kSteerDone;
  std::string text;              ///< <= kMaxText bytes; longer is cut
  std::uint64_t generation = 0;  ///< of the rules after it
  std::uint64_t act = 0;         ///< of the journal, for journal.undo; 0: nothing stands by it
  std::uint8_t saved = kSteerNothingToSave;
  bool operator==(const SteerAnswer&) const = default;
};

/// Payload bytes of a message.
Result<std::string> encode(const Hello& message);
Result<std::string> encode(const Welcome& message);
Result<std::string> encode(const Ping& message);
Result<std::string> encode(const Pong& message);
Result<std::string> encode(const Bye& message);
Result<std::string> encode(const ByeOk& message);
Result<std::string> encode(const ErrorMessage& message);
Result<std::string> encode(const Goaway& message);
Result<std::string> encode(const Busy& message);
Result<std::string> encode(const Read& message);
Result<std::string> encode(const ReadAnswer& message);
Result<std::string> encode(const Steer& message);
Result<std::string> encode(const SteerAnswer& message);

/// The message in a payload: `auto hello = decode<Hello>(frame.payload);`. It exists for the
/// structs above. Faults: BadFrame, InvalidArgument, Internal.
template <class Message>
Decoded<Message> decode(std::string_view payload);
template <> Decoded<Hello> decode<Hello>(std::string_view payload);
template <> Decoded<Welcome> decode<Welcome>(std::string_view payload);
template <> Decoded<Ping> decode<Ping>(std::string_view payload);
template <> Decoded<Pong> decode<Pong>(std::string_view payload);
template <> Decoded<Bye> decode<Bye>(std::string_view payload);
template <> Decoded<ByeOk> decode<ByeOk>(std::string_view payload);
template <> Decoded<ErrorMessage> decode<ErrorMessage>(std::string_view payload);
template <> Decoded<Goaway> decode<Goaway>(std::string_view payload);
template <> Decoded<Busy> decode<Busy>(std::string_view payload);
template <> Decoded<Read> decode<Read>(std::string_view payload);
template <> Decoded<ReadAnswer> decode<ReadAnswer>(std::string_view payload);
template <> Decoded<Steer> decode<Steer>(std::string_view payload);
template <> Decoded<SteerAnswer> decode<SteerAnswer>(std::string_view payload);

/// True for `[A-Za-z0-9][A-Za-z0-9._:-]{0,62}`: names of limits, instances, verbs.
bool is_name(std::string_view text) noexcept;
/// True for a name with exactly one '*' among its characters, 2 to 63 bytes: a pattern block, and
/// the breaker of its own that answers when its instances are used up.
bool is_pattern_name(std::string_view text) noexcept;

}  // namespace cutwater::wire
