// SPDX-License-Identifier: Apache-2.0
#include "wire/text.hpp"

#include <cstdint>

namespace cutwater::wire {
namespace {

std::uint8_t byte_at(std::string_view text, std::size_t i) {
  return i < text.size() ? static_cast<std::uint8_t>(text[i]) : std::uint8_t{0};
}

// Bytes of the character at `at`, 0 when it is not well-formed (Unicode 15, table 3-7).
std::size_t character_size(std::string_view text, std::size_t at) {
  const std::uint8_t lead = byte_at(text, at);
  if (lead < 0x80) return 1;
  if (lead < 0xc2 || lead > 0xf4) return 0;
  std::uint8_t low = 0x80;
  std::uint8_t high = 0xbf;
  if (lead == 0xe0) low = 0xa0;   // overlong
  if (lead == 0xed) high = 0x9f;  // surrogates
  if (lead == 0xf0) low = 0x90;   // overlong
  if (lead == 0xf4) high = 0x8f;  // above U+10FFFF
  const std::size_t size = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  for (std::size_t i = 1; i < size; ++i) {
    const std::uint8_t next = byte_at(text, at + i);
    if (next < low || next > high) return 0;
    low = 0x80;
    high = 0xbf;
  }
  return size;
}

}  // namespace

bool is_utf8(std::string_view text) noexcept {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = character_size(text, at);
    if (size == 0) return false;
    at += size;
  }
  return true;
}

std::string fit_text(std::string_view text, std::size_t max_bytes) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = character_size(text, at);
    const std::size_t taken = size == 0 ? 1 : size;
    if (out.size() + taken > max_bytes) break;
    if (size == 0) out.push_back('?');
    else out.append(text.substr(at, size));
    at += taken;
  }
  return out;
}

}  // namespace cutwater::wire
