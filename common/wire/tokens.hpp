// SPDX-License-Identifier: Apache-2.0
// A payload as a flat list of its msgpack values, and the writing of single ones. Between msgpack
// and everything else here: decoding looks at tokens, so an ACQUIRE of 64 items costs one
// allocation and no tree.
//
// Tokens stand in the order of the bytes: behind a container come its elements (of a map: key,
// value, key, value), and `next` of the container is behind its last one. All bounds of value.hpp
// are checked while the list is made, each before anything is stored. A token's text points into
// the payload it was made from. Thread safety: values and pure functions.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <cutwater/result.hpp>

#include "wire/fault.hpp"
#include "wire/value.hpp"

namespace cutwater::wire {

struct Token {
  Value::Kind kind = Value::Kind::Nil;
  std::uint32_t next = 0;    ///< index behind this token and all in it
  std::uint64_t number = 0;  ///< Bool, Unsigned, Signed (two's complement); elements of an Array,
                             ///< entries of a Map
  std::string_view text;     ///< String, Binary; of a Foreign: what it is ("a float")

  /// Kind as an error text says it.
  std::string_view kind_text() const noexcept;
};
using Tokens = std::vector<Token>;

/// The tokens of one msgpack value that fills `bytes` exactly. Faults: those of decode_value().
Decoded<Tokens> read_tokens(std::string_view bytes);

/// The value that begins at `at`. A map that no field may hold is one Foreign token, with its
/// elements behind it like those of a map.
Value value_of(const Tokens& tokens, std::size_t at);

/// One value each, in the shortest form. Memory can run out (std::bad_alloc).
void put_nil(std::string& out);
void put_bool(std::string& out, bool flag);
void put_unsigned(std::string& out, std::uint64_t number);
void put_string(std::string& out, std::string_view text);
void put_binary(std::string& out, std::string_view bytes);
void put_array_head(std::string& out, std::size_t count);
/// `depth`: containers around it. InvalidArgument as encode_value().
Result<void> put_value(std::string& out, const Value& value, std::size_t depth);

}  // namespace cutwater::wire
