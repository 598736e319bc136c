// SPDX-License-Identifier: Apache-2.0
// Writes msgpack values into room that the caller has made, each in its shortest form: the same
// bytes as the put functions of tokens.hpp, without a look at the buffer's end for each of them.
// For the two messages of scan.hpp.
//
//   const std::size_t begin = out.size();
//   out.resize(begin + most);                        // most: at least what is written
//   Fill fill(out.data() + begin);
//   fill.array(2); fill.number(7); ...
//   out.resize(static_cast<std::size_t>(fill.at() - out.data()));
//
// Nothing is checked: the caller knows a bound, by the constants here. Thread safety: one writer's
// local.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace cutwater::wire {

class Fill {
 public:
  static constexpr std::size_t kMaxNumber = 9;  ///< bytes of a number
  static constexpr std::size_t kMaxHead = 5;    ///< bytes in front of an array, text or binary

  explicit Fill(char* at) noexcept : at_(at) {}
  /// Behind what was written.
  char* at() const noexcept { return at_; }

  void number(std::uint64_t number) noexcept {
    if (number <= 0x7f) [[likely]]
      byte(number);
    else if (number <= 0xff)
      byte(0xcc), byte(number);
    else if (number <= 0xffff)
      byte(0xcd), big_endian(number, 2);
    else if (number <= 0xffffffff)
      byte(0xce), big_endian(number, 4);
    else
      byte(0xcf), big_endian(number, 8);
  }
  void array(std::size_t count) noexcept {
    if (count <= 15)
      byte(0x90 | count);
    else if (count <= 0xffff)
      byte(0xdc), big_endian(count, 2);
    else
      byte(0xdd), big_endian(count, 4);
  }
  void nil() noexcept { byte(0xc0); }
  void text(std::string_view text) noexcept {
    if (text.size() <= 31)
      byte(0xa0 | text.size());
    else
      head(0xd9, text.size());
    bytes(text);
  }
  void binary(std::string_view binary) noexcept {
    head(0xc4, binary.size());
    bytes(binary);
  }

 private:
  void byte(std::uint64_t value) noexcept { *at_++ = static_cast<char>(value); }
  void big_endian(std::uint64_t value, unsigned size) noexcept {
    for (unsigned i = size; i-- > 0;) byte(value >> (8 * i));
  }
  void head(unsigned first, std::size_t size) noexcept {
    if (size <= 0xff)
      byte(first), byte(size);
    else if (size <= 0xffff)
      byte(first + 1), big_endian(size, 2);
    else
      byte(first + 2), big_endian(size, 4);
  }
  void bytes(std::string_view all) noexcept {
    if (!all.empty()) std::memcpy(at_, all.data(), all.size());
    at_ += all.size();
  }

  char* at_;
};

}  // namespace cutwater::wire
