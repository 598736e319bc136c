// SPDX-License-Identifier: Apache-2.0
// Reads msgpack values straight from a payload, in the forms that writers use, and allocates
// nothing. For the two messages that are read a hundred thousand times a second: ACQUIRE
// (acquire_view.hpp) and its answer (client/src/ask/ask_codec.cpp). All others, and all that is
// wrong in these two, is read by fields.hpp, which knows how to complain.
//
//   Scan scan(payload);
//   if (scan.array() == 2 && scan.number() == 7 && scan.done()) ...
//
// Once something is of another kind or cut short the scan has failed: it stays so, and every
// further call gives 0 or nothing. What it accepts, read_tokens() accepts with the same meaning;
// not the other way round. Thread safety: one reader's local.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cutwater::wire {

class Scan {
 public:
  explicit Scan(std::string_view bytes) noexcept
      : at_(reinterpret_cast<const unsigned char*>(bytes.data())), end_(at_ + bytes.size()) {}

  bool failed() const noexcept { return failed_; }
  /// All bytes were taken and everything was as asked.
  bool done() const noexcept { return !failed_ && at_ == end_; }

  /// An unsigned integer.
  std::uint64_t number() noexcept {
    const unsigned head = byte();
    if (head <= kMaxFixNumber) [[likely]]
      return head;
    if (head < 0xcc || head > 0xcf) return fail();
    return big_endian(std::size_t{1} << (head - 0xcc));
  }
  /// The number of elements of an array; they come next.
  std::size_t array() noexcept {
    const unsigned head = byte();
    if ((head & 0xf0U) == 0x90U) [[likely]]
      return head & 0x0fU;
    if (head != 0xdc && head != 0xdd) return fail();
    return big_endian(head == 0xdc ? 2 : 4);
  }
  /// True: a nil, which was taken. False: something else, which was not.
  bool nil() noexcept {
    if (at_ == end_ || *at_ != 0xc0) return false;
    ++at_;
    return true;
  }
  /// A string. Points into the payload.
  std::string_view text() noexcept {
    const unsigned head = byte();
    if ((head & 0xe0U) == 0xa0U) return bytes(head & 0x1fU);
    if (head < 0xd9 || head > 0xdb) return fail(), std::string_view{};
    return bytes(big_endian(std::size_t{1} << (head - 0xd9)));
  }
  /// Binary, or a string read as its bytes. Points into the payload.
  std::string_view binary() noexcept {
    if (at_ == end_ || *at_ < 0xc4 || *at_ > 0xc6) return text();
    const unsigned head = byte();
    return bytes(big_endian(std::size_t{1} << (head - 0xc4)));
  }

 private:
  static constexpr unsigned kMaxFixNumber = 0x7f;

  std::size_t left() const noexcept { return static_cast<std::size_t>(end_ - at_); }
  std::size_t fail() noexcept {
    failed_ = true;
    at_ = end_;
    return 0;
  }
  unsigned byte() noexcept {
    if (at_ == end_) [[unlikely]]
      return fail(), kNothing;
    return *at_++;
  }
  std::uint64_t big_endian(std::size_t size) noexcept {
    if (left() < size) [[unlikely]]
      return fail();
    std::uint64_t number = 0;
    for (std::size_t i = 0; i < size; ++i) number = number << 8 | *at_++;
    return number;
  }
  std::string_view bytes(std::uint64_t size) noexcept {
    if (left() < size) [[unlikely]]
      return fail(), std::string_view{};
    const std::string_view out(reinterpret_cast<const char*>(at_), size);
    at_ += size;
    return out;
  }

  static constexpr unsigned kNothing = 0xc1;  // a head that msgpack never uses

  const unsigned char* at_;
  const unsigned char* end_;
  bool failed_ = false;
};

}  // namespace cutwater::wire
