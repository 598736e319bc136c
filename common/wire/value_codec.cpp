// SPDX-License-Identifier: Apache-2.0
// The only file that sees msgpack-c. Reading uses its visitor, which is not recursive; every bound
// is checked when a container begins, before it or anything in it is stored.
#include <algorithm>
#include <array>
#include <exception>
#include <msgpack.hpp>
#include <new>

#include "wire/tokens.hpp"

namespace cutwater::wire {
namespace {

// ---- reading

class TokenScanner : public msgpack::null_visitor {
 public:
  explicit TokenScanner(std::size_t bytes) { tokens_.reserve(std::min(bytes, kFirstTokens)); }

  bool visit_nil() { return add(Value::Kind::Nil); }
  bool visit_boolean(bool flag) { return add(Value::Kind::Bool, flag); }
  bool visit_positive_integer(std::uint64_t number) {
    return add(Value::Kind::Unsigned, number);
  }
  bool visit_negative_integer(std::int64_t number) {
    return add(Value::Kind::Signed, static_cast<std::uint64_t>(number));
  }
  bool visit_float32(float) { return add(Value::Kind::Foreign, 0, "a float"); }
  bool visit_float64(double) { return add(Value::Kind::Foreign, 0, "a float"); }
  bool visit_str(const char* at, std::uint32_t size) {
    return add(Value::Kind::String, 0, {at, size});
  }
  bool visit_bin(const char* at, std::uint32_t size) {
    return add(Value::Kind::Binary, 0, {at, size});
  }
  bool visit_ext(const char*, std::uint32_t) { return refuse("holds an ext type"); }
  bool start_array(std::uint32_t count) {
    if (count > kMaxArray) return refuse("holds an array of more than 1024 elements");
    return open(Value::Kind::Array, count);
  }
  bool start_map(std::uint32_t count) {
    if (count > kMaxMap) return refuse("holds a map of more than 64 entries");
    return open(Value::Kind::Map, count);
  }
  bool end_array() { return close(); }
  bool end_map() {
    check_keys(tokens_[open_[depth_ - 1]]);
    return close();
  }
  void parse_error(std::size_t, std::size_t) { refuse("is not msgpack"); }
  void insufficient_bytes(std::size_t, std::size_t) { refuse("is cut short"); }

  const char* refused() const noexcept { return refused_; }
  Tokens take() { return std::move(tokens_); }

 private:
  static constexpr std::size_t kFirstTokens = 512;  // most payloads have fewer values

  bool refuse(const char* why) {
    refused_ = why;
    return false;
  }

  bool add(Value::Kind kind, std::uint64_t number = 0, std::string_view text = {}) {
    tokens_.push_back({kind, static_cast<std::uint32_t>(tokens_.size() + 1), number, text});
    return true;
  }

  bool open(Value::Kind kind, std::uint64_t count) {
    if (depth_ == kMaxDepth) return refuse("holds more than 8 levels of arrays and maps");
    open_[depth_++] = static_cast<std::uint32_t>(tokens_.size());
    return add(kind, count);
  }

  bool close() {
    tokens_[open_[--depth_]].next = static_cast<std::uint32_t>(tokens_.size());
    return true;
  }

  // A map that no field may hold becomes a foreign token, so that the complaint can name its place.
  void check_keys(Token& map) {
    std::array<std::string_view, kMaxMap> keys;
    std::size_t at = open_[depth_ - 1] + 1;
    for (std::size_t i = 0; i < map.number; ++i) {
      const char* foreign = nullptr;
      if (tokens_[at].kind != Value::Kind::String) {
        foreign = "a map with a key that is not a string";
      } else if (std::find(keys.begin(), keys.begin() + i, tokens_[at].text) != keys.begin() + i) {
        foreign = "a map with one key twice";
      }
      if (foreign != nullptr) {
        map.kind = Value::Kind::Foreign;
        map.text = foreign;
        return;
      }
      keys[i] = tokens_[at].text;
      at = tokens_[tokens_[at].next].next;  // behind the key and its value
    }
  }

  Tokens tokens_;
  std::array<std::uint32_t, kMaxDepth> open_{};  // tokens of the containers around the next value
  std::size_t depth_ = 0;
  const char* refused_ = nullptr;
};

// ---- writing

/// What msgpack::packer writes to.
struct StringSink {
  std::string* bytes;
  void write(const char* from, std::size_t size) { bytes->append(from, size); }
};
struct Packer : private StringSink, public msgpack::packer<StringSink> {
  explicit Packer(std::string& out)
      : StringSink{&out}, msgpack::packer<StringSink>(static_cast<StringSink&>(*this)) {}
};

Error too_much(const char* what) { return {Errc::InvalidArgument, what}; }

Result<void> pack(Packer& packer, const Value& value, std::size_t depth);

Result<void> pack_array(Packer& packer, const Value::Array& elements, std::size_t depth) {
  if (depth == kMaxDepth) return too_much("more than 8 levels of arrays and maps");
  if (elements.size() > kMaxArray) return too_much("an array of more than 1024 elements");
  packer.pack_array(static_cast<std::uint32_t>(elements.size()));
  for (const Value& element : elements) {
    if (auto done = pack(packer, element, depth + 1); !done) return done;
  }
  return {};
}

void pack_string(Packer& packer, std::string_view text) {
  packer.pack_str(static_cast<std::uint32_t>(text.size()));
  packer.pack_str_body(text.data(), static_cast<std::uint32_t>(text.size()));
}

void pack_binary(Packer& packer, std::string_view bytes) {
  packer.pack_bin(static_cast<std::uint32_t>(bytes.size()));
  packer.pack_bin_body(bytes.data(), static_cast<std::uint32_t>(bytes.size()));
}

Result<void> pack_map(Packer& packer, const Value::Map& entries, std::size_t depth) {
  if (depth == kMaxDepth) return too_much("more than 8 levels of arrays and maps");
  if (entries.size() > kMaxMap) return too_much("a map of more than 64 entries");
  packer.pack_map(static_cast<std::uint32_t>(entries.size()));
  for (auto entry = entries.begin(); entry != entries.end(); ++entry) {
    for (auto other = entries.begin(); other != entry; ++other) {
      if (other->key == entry->key) return too_much("a map with one key twice");
    }
    pack_string(packer, entry->key);
    if (auto done = pack(packer, entry->value, depth + 1); !done) return done;
  }
  return {};
}

// `depth`: containers around this value. Recursion ends at kMaxDepth.
Result<void> pack(Packer& packer, const Value& value, std::size_t depth) {
  switch (value.kind()) {
    case Value::Kind::Nil: packer.pack_nil(); return {};
    case Value::Kind::Bool:
      if (*value.as_bool()) packer.pack_true();
      else packer.pack_false();
      return {};
    case Value::Kind::Unsigned: packer.pack_uint64(*value.as_unsigned()); return {};
    case Value::Kind::Signed: packer.pack_int64(*value.as_signed()); return {};
    case Value::Kind::String: pack_string(packer, *value.as_string()); return {};
    case Value::Kind::Binary: pack_binary(packer, *value.as_binary()); return {};
    case Value::Kind::Array: return pack_array(packer, *value.as_array(), depth);
    case Value::Kind::Map: return pack_map(packer, *value.as_map(), depth);
    case Value::Kind::Foreign: break;
  }
  return too_much("a value that no message may hold");
}

// ---- sizes

constexpr std::size_t kFix = 1;

std::size_t head_size(std::size_t size, std::size_t fix_max, bool has_8_bit) {
  if (size <= fix_max) return kFix;
  if (has_8_bit && size <= 0xff) return 2;
  return size <= 0xffff ? 3 : 5;
}

std::size_t string_size(std::size_t size) { return head_size(size, 31, true) + size; }

std::size_t unsigned_size(std::uint64_t number) {
  if (number <= 0x7f) return kFix;
  if (number <= 0xff) return 2;
  if (number <= 0xffff) return 3;
  return number <= 0xffffffff ? 5 : 9;
}

std::size_t negative_size(std::int64_t number) {
  if (number >= -32) return kFix;
  if (std::in_range<std::int8_t>(number)) return 2;
  if (std::in_range<std::int16_t>(number)) return 3;
  return std::in_range<std::int32_t>(number) ? 5 : 9;
}

}  // namespace

Result<std::string> encode_value(const Value& value) {
  try {
    std::string out;
    Packer packer(out);
    if (auto done = pack(packer, value, 0); !done) return done.error();
    return out;
  } catch (const std::exception&) {
    return Error(Errc::NoMemory, "no memory to write a message");
  }
}

Decoded<Tokens> read_tokens(std::string_view bytes) {
  try {
    TokenScanner scanner(bytes.size());
    std::size_t read = 0;
    const bool whole = msgpack::parse(bytes.data(), bytes.size(), read, scanner);
    if (scanner.refused() != nullptr) {
      return Fault{ErrorCode::BadFrame, "", std::string("the payload ") + scanner.refused()};
    }
    if (!whole || read != bytes.size()) {
      return Fault{ErrorCode::BadFrame, "", "the payload goes on behind its msgpack value"};
    }
    return scanner.take();
  } catch (const std::bad_alloc&) {
    return Fault{ErrorCode::Internal, "", "out of memory"};
  } catch (const std::exception&) {
    // msgpack-c throws on an ext size that overflows; nothing of ours does.
    return Fault{ErrorCode::BadFrame, "", "the payload is not msgpack"};
  }
}

// Recursion is bounded: tokens are at most kMaxDepth deep.
Value value_of(const Tokens& tokens, std::size_t at) {
  const Token& token = tokens[at];
  switch (token.kind) {
    case Value::Kind::Nil: return {};
    case Value::Kind::Bool: return token.number != 0;
    case Value::Kind::Unsigned: return token.number;
    case Value::Kind::Signed: return static_cast<std::int64_t>(token.number);
    case Value::Kind::String: return token.text;
    case Value::Kind::Binary: return Value::binary(std::string(token.text));
    case Value::Kind::Array: {
      Value::Array elements;
      elements.reserve(token.number);
      for (std::size_t i = at + 1; i < token.next; i = tokens[i].next) {
        elements.push_back(value_of(tokens, i));
      }
      return elements;
    }
    case Value::Kind::Map: {
      Value::Map entries;
      entries.reserve(token.number);
      for (std::size_t i = at + 1; i < token.next; i = tokens[i + 1].next) {
        entries.push_back({std::string(tokens[i].text), value_of(tokens, i + 1)});
      }
      return entries;
    }
    case Value::Kind::Foreign: return Value::foreign(token.text.data());
  }
  return {};
}

Decoded<Value> decode_value(std::string_view bytes) {
  try {
    const auto tokens = read_tokens(bytes);
    if (!tokens) return tokens.fault();
    return value_of(*tokens, 0);
  } catch (const std::exception&) {
    return Fault{ErrorCode::Internal, "", "out of memory"};
  }
}

void put_nil(std::string& out) { Packer(out).pack_nil(); }

void put_bool(std::string& out, bool flag) {
  Packer packer(out);
  if (flag) packer.pack_true();
  else packer.pack_false();
}

void put_unsigned(std::string& out, std::uint64_t number) {
  constexpr std::uint64_t kFixMax = 127;
  if (number <= kFixMax) out.push_back(static_cast<char>(number));  // most numbers of a batch
  else Packer(out).pack_uint64(number);
}

void put_string(std::string& out, std::string_view text) {
  Packer packer(out);
  pack_string(packer, text);
}

void put_binary(std::string& out, std::string_view bytes) {
  Packer packer(out);
  pack_binary(packer, bytes);
}

void put_array_head(std::string& out, std::size_t count) {
  Packer(out).pack_array(static_cast<std::uint32_t>(count));
}

Result<void> put_value(std::string& out, const Value& value, std::size_t depth) {
  Packer packer(out);
  return pack(packer, value, depth);
}

std::size_t encoded_size(const Value& value) noexcept {
  switch (value.kind()) {
    case Value::Kind::Nil:
    case Value::Kind::Bool:
    case Value::Kind::Foreign: return kFix;
    case Value::Kind::Unsigned: return unsigned_size(*value.as_unsigned());
    case Value::Kind::Signed: return negative_size(*value.as_signed());
    case Value::Kind::String: return string_size(value.as_string()->size());
    case Value::Kind::Binary: {
      const std::size_t size = value.as_binary()->size();
      return (size <= 0xff ? 2 : size <= 0xffff ? 3 : 5) + size;
    }
    case Value::Kind::Array: {
      std::size_t size = head_size(value.as_array()->size(), 15, false);
      for (const Value& element : *value.as_array()) size += encoded_size(element);
      return size;
    }
    case Value::Kind::Map: {
      std::size_t size = head_size(value.as_map()->size(), 15, false);
      for (const Value::Entry& entry : *value.as_map()) {
        size += string_size(entry.key.size()) + encoded_size(entry.value);
      }
      return size;
    }
  }
  return 0;
}

}  // namespace cutwater::wire
