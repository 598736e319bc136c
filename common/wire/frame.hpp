// SPDX-License-Identifier: Apache-2.0
// The frame: 16 bytes of header, little-endian, then `length` bytes of msgpack payload.
//
//   offset 0  magic u16     0x5743, the bytes 43 57 ("CW")
//          2  version u8    1 up to and including WELCOME, afterwards the version agreed
//          3  type u8       MessageType; bit 7 set = sent by the daemon
//          4  flags u16     kFlagQuiet, kFlagRepeat; the others are 0
//          6  reserved u16  0
//          8  request u32   chosen by the client, growing; answers carry it; pushes carry 0
//         12  length u32    payload bytes, checked against the bound before anything is stored
//
// Bytes are held in std::string (as a container of octets), because that is what sockets, keys and
// msgpack hand over without a cast. Nothing here does I/O, throws, or knows what a payload means.
// Thread safety: values; a FrameReader belongs to one connection and one thread at a time.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "wire/fault.hpp"

namespace cutwater::wire {

inline constexpr std::size_t kHeaderSize = 16;
inline constexpr std::uint16_t kMagic = 0x5743;
inline constexpr std::uint8_t kVersion = 1;  ///< newest version spoken here; also the oldest

/// Bounds of `length` in bytes. An operator's `max-frame` lies in 4 KiB .. 1 MiB.
inline constexpr std::uint32_t kMaxFrameBeforeWelcome = 4U << 10;
inline constexpr std::uint32_t kMaxFrameDefault = 64U << 10;
inline constexpr std::uint32_t kMaxFrameLargest = 1U << 20;

inline constexpr std::uint16_t kFlagQuiet = 1;   ///< no answer but an ERROR (OUTCOME, BYE)
inline constexpr std::uint16_t kFlagRepeat = 2;  ///< sent before under this request id
inline constexpr std::uint16_t kKnownFlags = kFlagQuiet | kFlagRepeat;
inline constexpr std::uint8_t kFromDaemon = 0x80;

/// Every type of protocol version 1. Which of them this build answers is in message_table.hpp.
enum class MessageType : std::uint8_t {
  Hello = 0x01, Auth = 0x02, Ping = 0x04, Bye = 0x05, Resolve = 0x08,
  Acquire = 0x10, Peek = 0x11, Cancel = 0x12, Refund = 0x13,
  Enter = 0x18, Outcome = 0x19, Present = 0x1a, Lease = 0x20,
  Read = 0x28, Steer = 0x29, Watch = 0x2a,
  Welcome = 0x81, Challenge = 0x82, Pong = 0x84, ByeOk = 0x85,
  ResolveAnswer = 0x88, AcquireAnswer = 0x90, PeekAnswer = 0x91, CancelAnswer = 0x92,
  RefundAnswer = 0x93, EnterAnswer = 0x98, OutcomeAnswer = 0x99, PresentAnswer = 0x9a,
  LeaseAnswer = 0xa0, ReadAnswer = 0xa8, SteerAnswer = 0xa9, WatchAnswer = 0xaa,
  Event = 0xe0, Goaway = 0xe1, Error = 0xf0, Busy = 0xf1,
};

struct FrameHeader {
  std::uint8_t version = kVersion;
  MessageType type = MessageType::Error;
  std::uint16_t flags = 0;
  std::uint32_t request = 0;
  std::uint32_t length = 0;  ///< payload bytes that follow

  friend bool operator==(const FrameHeader&, const FrameHeader&) = default;
};

struct Frame {
  FrameHeader header;
  std::string payload;
};

/// A frame whose payload lies elsewhere.
struct FrameView {
  FrameHeader header;
  std::string_view payload;
};

/// The bytes of one frame. `header.length` is ignored: the length written is the payload's.
/// The caller keeps the payload at or below the receiver's bound (the sessions do).
std::string encode_frame(const FrameHeader& header, std::string_view payload);

/// The kHeaderSize bytes of a header, its length as it is, to where there is room for them.
void put_header(char* at, const FrameHeader& header) noexcept;

/// Reads a header from exactly kHeaderSize bytes or more. Fails with BadFrame (magic, reserved,
/// length over `max_length`) or Version (version other than `version`, looked at behind the magic).
Decoded<FrameHeader> decode_header(std::string_view bytes, std::uint8_t version,
                                   std::uint32_t max_length);

/// Cuts a stream of bytes into frames. Holds at most one frame (16 + bound bytes), and never more
/// than what really arrived: an announced length allocates nothing. It is empty between frames.
///
///   while (true) {
///     auto frame = reader.next(bytes);        // takes what it needs from the front of `bytes`
///     if (!frame) return fail(frame.fault()); // the stream is lost: say so once, close
///     if (!*frame) break;                     // all bytes taken, the frame is not whole yet
///     handle(std::move(**frame));
///   }
class FrameReader {
 public:
  explicit FrameReader(std::uint32_t max_length = kMaxFrameBeforeWelcome) noexcept
      : max_length_(max_length) {}

  /// Applies to headers read from now on.
  void set_max_length(std::uint32_t bytes) noexcept { max_length_ = bytes; }
  void set_version(std::uint8_t version) noexcept { version_ = version; }

  /// Takes bytes from the front of `input` until one frame is whole (returned) or `input` is empty
  /// (nullopt). A wrong magic is seen at its second byte, the rest of the header at its last.
  /// After a fault every further call gives the same fault and takes nothing.
  Decoded<std::optional<Frame>> next(std::string_view& input);
  /// The same without a copy of what is whole in `input`: the payload lies in `input` or in here,
  /// until the next call.
  Decoded<std::optional<FrameView>> next_view(std::string_view& input);

  /// True while a frame has begun and is not whole: the 10 s deadline runs.
  bool inside_frame() const noexcept { return header_.has_value() || !buffer_.empty(); }
  /// Bytes held now, for the bound's test.
  std::size_t held_bytes() const noexcept { return buffer_.capacity() + whole_.capacity(); }

 private:
  std::optional<Fault> take_header(std::string_view& input);
  std::optional<Fault> accept_header(std::string_view bytes);

  std::uint32_t max_length_;
  std::uint8_t version_ = kVersion;
  std::string whole_;                  // payload of the last frame, when it came in pieces
  std::string buffer_;                 // the header, afterwards the payload, as far as it arrived
  std::optional<FrameHeader> header_;  // set when the header is whole and was accepted
  std::optional<Fault> broken_;
};

}  // namespace cutwater::wire
