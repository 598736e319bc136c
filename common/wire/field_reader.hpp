// SPDX-License-Identifier: Apache-2.0
// Takes the fields of one payload in their order and remembers the first thing that is wrong.
// After a fault every further take gives a default, so a decoder reads straight down and asks once,
// at the end. Names of fields come from the message table.
// Thread safety: one decoder's local.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "wire/fault.hpp"
#include "wire/message_table.hpp"
#include "wire/value.hpp"

namespace cutwater::wire {

class FieldReader {
 public:
  FieldReader(MessageType type, std::string_view payload);
  FieldReader(const FieldReader&) = delete;
  FieldReader& operator=(const FieldReader&) = delete;

  /// An integer in lo..hi. Every taker below works on the next field.
  std::uint64_t number(std::uint64_t lo, std::uint64_t hi);
  template <class T>
  T number(std::uint64_t lo = 0) {
    return static_cast<T>(number(lo, std::uint64_t{static_cast<T>(~T{0})}));
  }
  bool flag();
  /// UTF-8 of at most `max_bytes`.
  std::string text(std::size_t max_bytes);
  std::string name();
  std::string name_or_empty();
  std::optional<std::string> name_or_nil();
  /// Binary, or a str read as its bytes, or nil; at most kMaxKey bytes.
  std::optional<std::string> key_or_nil();
  /// Binary of exactly `size` bytes; with `or_empty` also none.
  std::string id(std::size_t size, bool or_empty);
  /// Binary of at most `max_bytes`.
  std::string binary(std::size_t max_bytes);
  /// An array of at least `least` and at most `most` elements, nullptr on a fault. Elements are
  /// taken with element_number() and element_name().
  const Value::Array* array(std::size_t least, std::size_t most);
  std::uint64_t element_number(std::size_t index, std::uint64_t hi);
  std::string element_name(std::size_t index);
  /// A map without foreign values; an empty one when the field is an optional tail left out.
  Value map();
  /// An array of at most `most` maps without foreign values.
  std::vector<Value> maps(std::size_t most);

  /// Records a fault of the field taken last (a rule over several fields): "<field> must be ...".
  void refuse(std::string_view must_be, const std::string& got);

  /// The message when nothing was wrong, else the first fault.
  template <class Message>
  Decoded<Message> result(Message message) const {
    if (fault_) return *fault_;
    return message;
  }

 private:
  const Value* next();
  void wrong(const std::string& path, std::string_view must_be, const std::string& got);
  bool refuse_foreign(const Value& value, const std::string& path);
  std::uint64_t take_number(const Value& value, const std::string& path, std::uint64_t lo,
                            std::uint64_t hi);
  std::string take_name(const Value& value, const std::string& path, bool or_empty);

  const MessageRow* row_;
  Value root_;
  const Value::Array* fields_ = nullptr;
  std::size_t index_ = 0;  // of the next field
  std::string path_;       // of the field taken last
  std::optional<Fault> fault_;
};

}  // namespace cutwater::wire
