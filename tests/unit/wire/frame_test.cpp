// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "unit/wire/golden.hpp"
#include "wire/frame.hpp"

namespace cutwater::wire {
namespace {

std::vector<Frame> read_all(FrameReader& reader, std::string_view bytes) {
  std::vector<Frame> frames;
  while (true) {
    auto frame = reader.next(bytes);
    if (!frame || !frame.value()) return frames;
    frames.push_back(std::move(*frame.value()));
  }
}

std::string header_with(std::size_t offset, char byte) {
  std::string bytes = frame_of(MessageType::Ping, 7, "");
  bytes[offset] = byte;
  return bytes;
}

Fault fault_of(std::string_view bytes, std::uint32_t max_length = kMaxFrameBeforeWelcome) {
  FrameReader reader(max_length);
  auto frame = reader.next(bytes);
  return frame ? Fault{ErrorCode::Internal, "", "no fault"} : frame.fault();
}

TEST(Frame, WritesTheHeaderLittleEndian) {
  const auto bytes = encode_frame(
      {.version = 1, .type = MessageType::Read, .flags = 2, .request = 0x01020304}, "abc");

  EXPECT_EQ(to_hex(bytes), "43 57 01 28 02 00 00 00 04 03 02 01 03 00 00 00 61 62 63 ");
}

TEST(Frame, ReadsBackWhatItWrote) {
  const FrameHeader header{.version = 1, .type = MessageType::Steer, .flags = 3,
                           .request = 0xffffffff, .length = 5};

  const auto read = decode_header(encode_frame(header, "12345"), 1, 5);

  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, header);
}

TEST(FrameReader, GivesTheSameFramesForEveryCutOfTheStream) {
  const std::string stream = frame_of(MessageType::Ping, 1, "xyz") +
                             frame_of(MessageType::Bye, 2, "") +
                             frame_of(MessageType::Read, 3, std::string(300, 'p'));

  for (std::size_t piece = 1; piece <= stream.size(); ++piece) {
    FrameReader reader;
    std::vector<Frame> frames;
    for (std::size_t at = 0; at < stream.size(); at += piece) {
      for (auto& frame : read_all(reader, std::string_view(stream).substr(at, piece))) {
        frames.push_back(std::move(frame));
      }
    }

    ASSERT_EQ(frames.size(), 3u) << piece;
    EXPECT_EQ(frames[0].payload, "xyz");
    EXPECT_EQ(frames[1].header.type, MessageType::Bye);
    EXPECT_EQ(frames[2].payload.size(), 300u);
    EXPECT_FALSE(reader.inside_frame());
  }
}

TEST(FrameReader, LeavesTheBytesBehindAFrame) {
  FrameReader reader;
  const std::string stream = frame_of(MessageType::Ping, 1, "x") + "rest";
  std::string_view input = stream;

  ASSERT_TRUE(reader.next(input).value().has_value());

  EXPECT_EQ(input, "rest");
}

TEST(FrameReader, SeesAWrongMagicAtItsSecondByte) {
  EXPECT_EQ(fault_of("G").text, "no fault");
  EXPECT_EQ(fault_of("GE").code, ErrorCode::BadFrame);
  EXPECT_EQ(fault_of("GET / HTTP/1.1\r\n").code, ErrorCode::BadFrame);
  EXPECT_EQ(fault_of(header_with(1, 'X')).code, ErrorCode::BadFrame);
}

TEST(FrameReader, RefusesVersionAndReservedBytes) {
  EXPECT_EQ(fault_of(header_with(2, 0)).code, ErrorCode::Version);
  EXPECT_EQ(fault_of(header_with(2, 2)).code, ErrorCode::Version);
  EXPECT_EQ(fault_of(header_with(6, 1)).code, ErrorCode::BadFrame);
  EXPECT_EQ(fault_of(header_with(7, 1)).code, ErrorCode::BadFrame);
}

TEST(FrameReader, TakesExactlyTheBoundAndNotOneByteMore) {
  for (const std::uint32_t bound :
       {kMaxFrameBeforeWelcome, kMaxFrameDefault, kMaxFrameLargest}) {
    FrameReader reader(bound);

    EXPECT_EQ(read_all(reader, frame_of(MessageType::Ping, 1, std::string(bound, 'x'))).size(), 1u);
    EXPECT_EQ(fault_of(frame_of(MessageType::Ping, 1, std::string(bound + 1, 'x')), bound).code,
              ErrorCode::BadFrame);
  }
}

TEST(FrameReader, StaysBrokenAfterAFault) {
  FrameReader reader;
  std::string_view wrong = "nonsense";
  ASSERT_FALSE(reader.next(wrong).ok());
  const std::string right = frame_of(MessageType::Ping, 1, "");
  std::string_view input = right;

  EXPECT_FALSE(reader.next(input).ok());
  EXPECT_EQ(input.size(), right.size());
}

TEST(FrameReader, HoldsNoMoreThanWhatArrived) {
  FrameReader reader(kMaxFrameLargest);
  const std::string frame = frame_of(MessageType::Ping, 1, std::string(kMaxFrameLargest, 'x'));

  (void)read_all(reader, std::string_view(frame).substr(0, 1016));

  EXPECT_TRUE(reader.inside_frame());
  EXPECT_LE(reader.held_bytes(), 2048u);
}

TEST(FrameReader, KnowsThatItIsInsideAFrameBehindABareHeader) {
  FrameReader reader;

  (void)read_all(reader, std::string_view(frame_of(MessageType::Ping, 1, "x")).substr(0, 16));

  EXPECT_TRUE(reader.inside_frame());
}

TEST(FrameReader, AFrameThatIsThereIsNotCopied) {
  const std::string two = encode_frame({.type = MessageType::Ping, .request = 1}, "abc") +
                          encode_frame({.type = MessageType::Ping, .request = 2}, "defghijk");
  for (std::size_t cut = 0; cut <= two.size(); ++cut) {
    FrameReader reader;
    std::vector<std::string> payloads;
    for (std::string_view piece : {std::string_view(two).substr(0, cut),
                                   std::string_view(two).substr(cut)}) {
      const std::string_view whole = piece;
      while (!piece.empty()) {
        const auto frame = reader.next_view(piece);
        ASSERT_TRUE(frame.ok());
        if (!*frame) break;
        const std::string_view payload = (*frame)->payload;
        const bool in_place = payload.data() >= whole.data() &&
                              payload.data() + payload.size() <= whole.data() + whole.size();
        EXPECT_TRUE(in_place || cut != 0);
        payloads.emplace_back(payload);
      }
    }
    EXPECT_EQ(payloads, (std::vector<std::string>{"abc", "defghijk"})) << "cut at " << cut;
    EXPECT_FALSE(reader.inside_frame());
  }
}

}  // namespace
}  // namespace cutwater::wire
