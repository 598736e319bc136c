// SPDX-License-Identifier: Apache-2.0
#include "wire/frame.hpp"

#include <algorithm>
#include <utility>

namespace cutwater::wire {
namespace {

constexpr std::size_t kMagicSize = 2;

template <class T>
char* put(char* at, T value) noexcept {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    *at++ = static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i));
  }
  return at;
}

template <class T>
T get(std::string_view bytes, std::size_t offset) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    value |= std::uint64_t{static_cast<unsigned char>(bytes[offset + i])} << (8 * i);
  }
  return static_cast<T>(value);
}

Fault wrong_magic() {
  return {ErrorCode::BadFrame, "", "the bytes do not begin a frame (43 57 expected)"};
}

}  // namespace

std::string_view name_of(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::BadFrame: return "bad_frame";
    case ErrorCode::Version: return "version";
    case ErrorCode::Unsupported: return "unsupported";
    case ErrorCode::InvalidArgument: return "invalid_argument";
    case ErrorCode::NotNow: return "not_now";
    case ErrorCode::NotPermitted: return "not_permitted";
    case ErrorCode::Internal: return "internal";
    case ErrorCode::TooMany: return "too_many";
  }
  return "unknown";
}

void put_header(char* at, const FrameHeader& header) noexcept {
  at = put<std::uint16_t>(at, kMagic);
  at = put<std::uint8_t>(at, header.version);
  at = put<std::uint8_t>(at, static_cast<std::uint8_t>(header.type));
  at = put<std::uint16_t>(at, header.flags);
  at = put<std::uint16_t>(at, 0);
  at = put<std::uint32_t>(at, header.request);
  put<std::uint32_t>(at, header.length);
}

std::string encode_frame(const FrameHeader& header, std::string_view payload) {
  std::string out;
  out.reserve(kHeaderSize + payload.size());
  out.resize(kHeaderSize);
  FrameHeader whole = header;
  whole.length = static_cast<std::uint32_t>(payload.size());
  put_header(out.data(), whole);
  out.append(payload);
  return out;
}

Decoded<FrameHeader> decode_header(std::string_view bytes, std::uint8_t version,
                                   std::uint32_t max_length) {
  if (bytes.size() < kHeaderSize || get<std::uint16_t>(bytes, 0) != kMagic) return wrong_magic();
  FrameHeader header{.version = get<std::uint8_t>(bytes, 2),
                     .type = static_cast<MessageType>(get<std::uint8_t>(bytes, 3)),
                     .flags = get<std::uint16_t>(bytes, 4),
                     .request = get<std::uint32_t>(bytes, 8),
                     .length = get<std::uint32_t>(bytes, 12)};
  // The version comes before what a later version might use in another way.
  if (header.version != version) {
    return Fault{ErrorCode::Version, "",
                 "frame version " + std::to_string(header.version) + ", but this session uses " +
                     std::to_string(version)};
  }
  if (get<std::uint16_t>(bytes, 6) != 0) {
    return Fault{ErrorCode::BadFrame, "", "the reserved bytes of the header are not 0"};
  }
  if (header.length > max_length) {
    return Fault{ErrorCode::BadFrame, "",
                 "a payload of " + std::to_string(header.length) + " bytes, at most " +
                     std::to_string(max_length) + " are taken here"};
  }
  return header;
}

Decoded<std::optional<Frame>> FrameReader::next(std::string_view& input) {
  auto view = next_view(input);
  if (!view) return view.fault();
  if (!*view) return std::optional<Frame>{};
  return std::optional<Frame>(Frame{(*view)->header, std::string((*view)->payload)});
}

Decoded<std::optional<FrameView>> FrameReader::next_view(std::string_view& input) {
  if (broken_) return *broken_;
  if (!whole_.empty()) whole_ = {};
  if (!header_) {
    if (auto fault = take_header(input)) {
      broken_ = *fault;
      buffer_ = {};
      return *fault;
    }
    if (!header_) return std::optional<FrameView>{};
  }
  const std::size_t missing = header_->length - buffer_.size();
  FrameView frame{*header_, input.substr(0, missing)};
  input.remove_prefix(frame.payload.size());
  if (frame.payload.size() < missing || !buffer_.empty()) {
    // append() doubles with what arrives, never with what was announced.
    buffer_.append(frame.payload);
    if (buffer_.size() < header_->length) return std::optional<FrameView>{};
    whole_ = std::exchange(buffer_, {});
    frame.payload = whole_;
  }
  header_.reset();
  return std::optional<FrameView>(frame);
}

// Collects the header in buffer_, when it is not there at once, and empties it for the payload.
std::optional<Fault> FrameReader::take_header(std::string_view& input) {
  if (buffer_.empty() && input.size() >= kHeaderSize) {
    auto fault = accept_header(input.substr(0, kHeaderSize));
    input.remove_prefix(kHeaderSize);
    return fault;
  }
  const std::size_t taken = std::min(kHeaderSize - buffer_.size(), input.size());
  buffer_.append(input.substr(0, taken));
  input.remove_prefix(taken);
  const bool magic_whole = buffer_.size() >= kMagicSize;
  if (magic_whole && get<std::uint16_t>(buffer_, 0) != kMagic) return wrong_magic();
  if (buffer_.size() < kHeaderSize) return std::nullopt;
  auto fault = accept_header(buffer_);
  buffer_.clear();
  return fault;
}

std::optional<Fault> FrameReader::accept_header(std::string_view bytes) {
  auto header = decode_header(bytes, version_, max_length_);
  if (!header) return header.fault();
  header_ = *header;
  return std::nullopt;
}

}  // namespace cutwater::wire
