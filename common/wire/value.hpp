// SPDX-License-Identifier: Apache-2.0
// Value: a small tree for what people read and write: rows of READ, arguments of STEER.
//
// Bounds, equal for reading and writing, each reached by a test: containers nested 8 deep (the
// payload's own array is the first), 1024 elements in an array, 64 entries in a map. A string's
// announced length is compared with the bytes really there before anything is stored. So decoding
// n bytes takes at most n Tokens and n Values, each twice over, and no recursion follows the peer.
// Integers are written in the shortest form and read in any. There are no floats and no ext types.
// Thread safety: values.
#pragma once
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <cutwater/result.hpp>

#include "wire/fault.hpp"

namespace cutwater::wire {

inline constexpr std::size_t kMaxDepth = 8;
inline constexpr std::size_t kMaxArray = 1024;
inline constexpr std::size_t kMaxMap = 64;

class Value {
 public:
  enum class Kind { Nil, Bool, Unsigned, Signed, String, Binary, Array, Map, Foreign };
  struct Entry;
  using Array = std::vector<Value>;
  using Map = std::vector<Entry>;  ///< in the order written; keys are unique

  Value() noexcept;                // nil; all of these are implicit on purpose
  Value(const char* text);         // NOLINT
  Value(std::string text);         // NOLINT
  Value(std::string_view text);    // NOLINT
  Value(Array elements);           // NOLINT
  Value(Map entries);              // NOLINT
  Value(std::same_as<bool> auto flag) : Value(Flag{flag}) {}  // NOLINT
  template <std::integral T>
    requires(!std::same_as<T, bool>)
  Value(T number)  // NOLINT
      : Value(Number{static_cast<std::uint64_t>(number), std::cmp_less(number, 0)}) {}
  Value(const Value&);
  Value(Value&&) noexcept;
  Value& operator=(const Value&);
  Value& operator=(Value&&) noexcept;
  ~Value();
  static Value binary(std::string bytes);
  static Value array(std::initializer_list<Value> elements);
  static Value map(std::initializer_list<Entry> entries);

  Kind kind() const noexcept { return static_cast<Kind>(content_.index()); }
  bool is_nil() const noexcept { return content_.index() == 0; }
  /// Kind as an error text says it: "nil", "a string", "a float", ...
  std::string_view kind_text() const noexcept;

  /// The content, or nothing when it is of another kind. Signed is used for negative numbers only;
  /// as_signed also gives an unsigned number up to 2^63-1.
  std::optional<bool> as_bool() const noexcept;
  std::optional<std::uint64_t> as_unsigned() const noexcept;
  std::optional<std::int64_t> as_signed() const noexcept;
  const std::string* as_string() const noexcept;
  const std::string* as_binary() const noexcept;
  const Array* as_array() const noexcept;
  const Map* as_map() const noexcept;
  Array* as_array() noexcept;

  /// The entry's value of a map, or nullptr (also when this is no map).
  const Value* find(std::string_view key) const noexcept;
  /// Sets an entry; nil becomes a map first. For building rows. Another kind: no effect.
  void set(std::string key, Value value);

  /// Something that no field may hold, kept so that the complaint can name its place: a float, a
  /// map whose key is not a string, a map with a key twice. Only decoding makes one; it cannot be
  /// encoded. `what` is a literal.
  static Value foreign(const char* what) noexcept;
  struct Found { std::string path; std::string_view what; };
  /// The first foreign value of this tree and its path, such as `.rate` or `[2].x` ("" for this
  /// value itself); nullopt when there is none.
  std::optional<Found> find_foreign() const;

  friend bool operator==(const Value&, const Value&);

 private:
  struct Flag { bool on; };
  struct Number { std::uint64_t bits; bool negative; };
  explicit Value(Flag flag);
  explicit Value(Number number);

  struct Binary { std::string bytes; bool operator==(const Binary&) const = default; };
  struct Foreign { const char* what; bool operator==(const Foreign&) const = default; };

  // Order as in Kind.
  std::variant<std::monostate, bool, std::uint64_t, std::int64_t, std::string, Binary, Array, Map,
               Foreign>
      content_;
};

struct Value::Entry {
  std::string key;
  Value value;
  bool operator==(const Entry&) const = default;
};

/// msgpack bytes of a value. InvalidArgument: a bound above is passed, a key stands twice, or it
/// holds a foreign value.
Result<std::string> encode_value(const Value& value);

/// One msgpack value that fills `bytes` exactly. BadFrame: not msgpack, cut short, bytes behind it,
/// a bound passed, an ext type. Internal: out of memory. Floats and odd maps become foreign values.
Decoded<Value> decode_value(std::string_view bytes);

/// Bytes encode_value would write, computed without writing: for filling a READ answer up to the
/// frame's bound. Bounds are not checked.
std::size_t encoded_size(const Value& value) noexcept;

}  // namespace cutwater::wire
