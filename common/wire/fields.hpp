// SPDX-License-Identifier: Apache-2.0
// One description of a message's fields serves both directions:
//
//   template <class Io, class M>
//   void fields(Io& io, M& m) {               // M: Acquire when reading, const Acquire else
//     io.number("ttl_ns", m.ttl_ns);
//     io.list("items", m.items, kOneToMaxItems, [](Io& in, auto& item) { ... });
//   }
//
// FieldReader takes values in their order, FieldWriter puts them; both check the same ranges and
// remember the first field that is wrong by its path (`items[3].cost`), after which every further
// call does nothing. So what reading refuses is never written. Paths are put together only for a
// fault. Field "" stands for the element of a list itself (`names[3]`).
//
//   number(f, v, lo, hi)   an unsigned integer or enum; the default range is that of its type
//   answer_bits(f, v, known)  bits of an answer: unknown ones are dropped in reading
//   flag(f, v)             bool
//   text(f, v, most)       UTF-8 of at most `most` bytes
//   told(f, v, most)       a text for people: any length in reading, cut in writing
//   cut_text(f, v, most)   the same, but reading takes at most `most` bytes
//   name, name_or_empty, name_or_nil    is_name()
//   subject_or_nil, subject_or_empty  is_name() or is_pattern_name()
//   key(f, v)              binary, or a str read as its bytes; at most kMaxKey
//   item_key(f, v)         the same, but reading takes any length: the item gets its own error
//   binary(f, v, most), id(f, v, form)
//   map(f, v)              a map without foreign values
//   tuple(f, body)         an array by position; an unknown tail of it is ignored
//   list(f, v, count, each)  an array of `count` elements; each(io, element) describes one
//   more(written)          is there an optional tail? `written`: the writer's answer
//   slot(v)                of an optional number that is there
// Thread safety: one coder's local.
#pragma once
#include <array>
#include <concepts>
#include <cstdint>
#include <exception>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "wire/fault.hpp"
#include "wire/message.hpp"
#include "wire/tokens.hpp"

namespace cutwater::wire {

template <class T>
concept FieldNumber = std::unsigned_integral<T> || std::is_enum_v<T>;

template <FieldNumber T>
constexpr std::uint64_t most_of() noexcept {
  if constexpr (std::is_enum_v<T>) return most_of<std::underlying_type_t<T>>();
  else return std::numeric_limits<T>::max();
}

inline constexpr std::string_view kNameForm = "a name ([A-Za-z0-9][A-Za-z0-9._:-]{0,62})";
inline constexpr std::string_view kSubjectForm =
    "a name ([A-Za-z0-9][A-Za-z0-9._:-]{0,62}) or a pattern, which has one * more";

struct Span { std::size_t least, most; };
struct IdForm { std::size_t size; bool or_empty; };

/// Where in the message we are, and the first fault.
class FieldPlace {
 public:
  FieldPlace(const FieldPlace&) = delete;
  FieldPlace& operator=(const FieldPlace&) = delete;

  const std::optional<Fault>& fault() const noexcept { return fault_; }
  /// "<field> must be <must_be>, got <got>".
  void refuse(std::string_view field, std::string_view must_be, std::string_view got);

 protected:
  FieldPlace() = default;

  void enter(std::string_view name) noexcept { steps_[depth_++] = {name, 0, false}; }
  void enter_list(std::string_view name) noexcept { steps_[depth_++] = {name, 0, true}; }
  void at_element(std::size_t index) noexcept { steps_[depth_ - 1].index = index; }
  void leave() noexcept { --depth_; }
  void missing(std::string_view field);
  std::string path(std::string_view field) const;

  std::optional<Fault> fault_;

 private:
  struct Step { std::string_view name; std::size_t index; bool indexed; };
  std::array<Step, 2 * kMaxDepth> steps_{};
  std::size_t depth_ = 0;
};

class FieldReader : public FieldPlace {
 public:
  explicit FieldReader(std::string_view payload);

  template <FieldNumber T>
  void number(std::string_view field, T& value, std::uint64_t lo = 0,
              std::uint64_t hi = most_of<T>()) {
    value = static_cast<T>(take_number(field, lo, hi));
  }
  template <FieldNumber T>
  void answer_bits(std::string_view field, T& value, std::uint64_t known) {
    value = static_cast<T>(take_number(field, 0, kNever) & known);
  }
  void flag(std::string_view field, bool& value);
  void text(std::string_view field, std::string& value, std::size_t most);
  void told(std::string_view field, std::string& value, std::size_t most);
  void cut_text(std::string_view field, std::string& value, std::size_t most) {
    text(field, value, most);
  }
  void name(std::string_view field, std::string& value);
  void name_or_empty(std::string_view field, std::string& value);
  void subject_or_empty(std::string_view field, std::string& value);
  void name_or_nil(std::string_view field, std::optional<std::string>& value);
  void subject_or_nil(std::string_view field, std::optional<std::string>& value);
  void key(std::string_view field, std::string& value);
  void key_or_nil(std::string_view field, std::optional<std::string>& value);
  void item_key(std::string_view field, std::string& value);
  void binary(std::string_view field, std::string& value, std::size_t most);
  void id(std::string_view field, std::string& value, IdForm form);
  void map(std::string_view field, Value& value);
  bool more(bool) const noexcept { return !fault_ && at_ < end_; }
  /// Where an optional number is put.
  template <class T>
  static T& slot(std::optional<T>& value) { return value.emplace(); }

  template <class Body>
  void tuple(std::string_view field, Body body) {
    const std::size_t outer_end = end_;
    if (!open(field, {0, kMaxArray})) return;
    const std::size_t behind = end_;
    if (!field.empty()) enter(field);
    body(*this);
    if (!field.empty()) leave();
    at_ = behind;
    end_ = outer_end;
  }

  template <class T, class Each>
  void list(std::string_view field, std::vector<T>& values, Span count, Each each) {
    const std::size_t outer_end = end_;
    const auto elements = open(field, count);
    if (!elements) return;
    values.resize(*elements);
    enter_list(field);
    for (std::size_t i = 0; i < *elements && !fault_; ++i) {
      at_element(i);
      each(*this, values[i]);
    }
    leave();
    at_ = end_;
    end_ = outer_end;
  }

 private:
  const Token* next(std::string_view field);
  std::uint64_t take_number(std::string_view field, std::uint64_t lo, std::uint64_t hi);
  std::optional<std::string_view> take_bytes(std::string_view field, std::size_t most,
                                             std::string_view or_nil);
  void take_name(const Token& token, std::string_view field, std::string& value, bool or_empty);
  /// Goes into an array: the number of its elements.
  std::optional<std::size_t> open(std::string_view field, Span count);

  Tokens tokens_;
  std::size_t at_ = 0;   // of the next token
  std::size_t end_ = 0;  // behind the array we are in
};

class FieldWriter : public FieldPlace {
 public:
  FieldWriter() {
    out_.reserve(kFirstBytes);
    begin();
  }

  template <FieldNumber T>
  void number(std::string_view field, T value, std::uint64_t lo = 0,
              std::uint64_t hi = most_of<T>()) {
    put_number(field, static_cast<std::uint64_t>(value), lo, hi);
  }
  template <FieldNumber T>
  void answer_bits(std::string_view field, T value, std::uint64_t known) {
    put_number(field, static_cast<std::uint64_t>(value) & known, 0, kNever);
  }
  void flag(std::string_view field, bool value);
  void text(std::string_view field, std::string_view value, std::size_t most);
  void told(std::string_view field, std::string_view value, std::size_t most);
  void cut_text(std::string_view field, std::string_view value, std::size_t most) {
    told(field, value, most);
  }
  void name(std::string_view field, std::string_view value);
  void name_or_empty(std::string_view field, std::string_view value);
  void subject_or_empty(std::string_view field, std::string_view value);
  void name_or_nil(std::string_view field, const std::optional<std::string>& value);
  void subject_or_nil(std::string_view field, const std::optional<std::string>& value);
  void key(std::string_view field, std::string_view value);
  void key_or_nil(std::string_view field, const std::optional<std::string>& value);
  void item_key(std::string_view field, std::string_view value) { key(field, value); }
  void binary(std::string_view field, std::string_view value, std::size_t most);
  void id(std::string_view field, std::string_view value, IdForm form);
  void map(std::string_view field, const Value& value);
  bool more(bool written) const noexcept { return !fault_ && written; }
  template <class T>
  static T slot(const std::optional<T>& value) { return *value; }

  template <class Body>
  void tuple(std::string_view field, Body body) {
    if (fault_) return;
    ++elements_[open_];
    if (!field.empty()) enter(field);
    begin();
    body(*this);
    end();
    if (!field.empty()) leave();
  }

  template <class T, class Each>
  void list(std::string_view field, const std::vector<T>& values, Span count, Each each) {
    if (!open_list(field, values.size(), count)) return;
    enter_list(field);
    for (std::size_t i = 0; i < values.size() && !fault_; ++i) {
      at_element(i);
      each(*this, values[i]);
    }
    leave();
    --open_;
  }

  /// The payload, or the fault as an error. Once.
  Result<std::string> take();

 private:
  void begin();
  void end();
  bool open_list(std::string_view field, std::size_t size, Span count);
  void put_number(std::string_view field, std::uint64_t value, std::uint64_t lo, std::uint64_t hi);

  static constexpr std::size_t kFirstBytes = 240;  // most messages have fewer

  std::string out_;
  std::size_t open_ = 0;                                 // arrays around the next field
  std::array<std::size_t, kMaxDepth + 1> elements_{};    // of each of them, so far
  std::array<std::size_t, kMaxDepth + 1> head_{};        // place of each one's head
};

/// decode() and encode() of a message, by its description; memory may run out in either.
template <class Message, class Describe>
Decoded<Message> read_message(std::string_view payload, Describe describe) {
  try {
    FieldReader in(payload);
    Message message;
    describe(in, message);
    if (in.fault()) return *in.fault();
    return message;
  } catch (const std::exception&) {
    return Fault{ErrorCode::Internal, "", "out of memory"};
  }
}

template <class Message, class Describe>
Result<std::string> write_message(const Message& message, Describe describe) {
  try {
    FieldWriter out;
    describe(out, message);
    return out.take();
  } catch (const std::exception&) {
    return Error(Errc::NoMemory, "no memory to write a message");
  }
}

}  // namespace cutwater::wire
