// SPDX-License-Identifier: Apache-2.0
// The only file that sees msgpack-c. Reading uses its visitor, which is not recursive; every bound
// is checked when a container begins, before it or anything in it is stored.
#include <exception>
#include <msgpack.hpp>
#include <new>

#include "wire/value.hpp"

namespace cutwater::wire {
namespace {

// ---- reading

class TreeBuilder : public msgpack::null_visitor {
 public:
  bool visit_nil() { return add(Value()); }
  bool visit_boolean(bool flag) { return add(Value(flag)); }
  bool visit_positive_integer(std::uint64_t number) { return add(Value(number)); }
  bool visit_negative_integer(std::int64_t number) { return add(Value(number)); }
  bool visit_float32(float) { return add(Value::foreign("a float")); }
  bool visit_float64(double) { return add(Value::foreign("a float")); }
  bool visit_str(const char* at, std::uint32_t size) {
    return add(Value(std::string_view(at, size)));
  }
  bool visit_bin(const char* at, std::uint32_t size) {
    return add(Value::binary(std::string(std::string_view(at, size))));
  }
  bool visit_ext(const char*, std::uint32_t) { return refuse("holds an ext type"); }
  bool start_array(std::uint32_t count) {
    if (count > kMaxArray) return refuse("holds an array of more than 1024 elements");
    return open(Value(Value::Array{}));
  }
  bool start_map(std::uint32_t count) {
    if (count > kMaxMap) return refuse("holds a map of more than 64 entries");
    return open(Value(Value::Map{}));
  }
  bool end_array() { return close(); }
  bool end_map() { return close(); }
  void parse_error(std::size_t, std::size_t) { refuse("is not msgpack"); }
  void insufficient_bytes(std::size_t, std::size_t) { refuse("is cut short"); }

  const char* refused() const noexcept { return refused_; }
  Value take_root() { return std::move(root_); }

 private:
  struct Open {
    Value::Array elements;
    Value::Map entries;
    bool is_map = false;
    std::optional<std::string> key;  // of the entry whose value comes next
    bool key_is_next = true;
    const char* foreign = nullptr;   // why this map is one that no field may hold
  };

  bool refuse(const char* why) {
    refused_ = why;
    return false;
  }

  bool open(Value container) {
    if (stack_.size() == kMaxDepth) return refuse("holds more than 8 levels of arrays and maps");
    stack_.emplace_back().is_map = container.as_map() != nullptr;
    return true;
  }

  bool close() {
    Open done = std::move(stack_.back());
    stack_.pop_back();
    if (done.foreign != nullptr) return add(Value::foreign(done.foreign));
    if (done.is_map) return add(Value(std::move(done.entries)));
    return add(Value(std::move(done.elements)));
  }

  bool add(Value value) {
    if (stack_.empty()) {
      root_ = std::move(value);
    } else if (Open& top = stack_.back(); !top.is_map) {
      top.elements.push_back(std::move(value));
    } else if (top.key_is_next) {
      top.key_is_next = false;
      take_key(top, value);
    } else {
      top.key_is_next = true;
      if (top.key) top.entries.push_back({std::move(*top.key), std::move(value)});
    }
    return true;
  }

  static void take_key(Open& top, const Value& value) {
    top.key.reset();
    const std::string* key = value.as_string();
    if (key == nullptr) {
      top.foreign = "a map with a key that is not a string";
      return;
    }
    for (const Value::Entry& entry : top.entries) {
      if (entry.key == *key) {
        top.foreign = "a map with one key twice";
        return;
      }
    }
    top.key = *key;
  }

  std::vector<Open> stack_;
  Value root_;
  const char* refused_ = nullptr;
};

// ---- writing

/// What msgpack::packer writes to.
struct StringSink {
  std::string* out;
  void write(const char* bytes, std::size_t size) { out->append(bytes, size); }
};
using Packer = msgpack::packer<StringSink>;

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
    case Value::Kind::Binary: {
      const std::string& bytes = *value.as_binary();
      packer.pack_bin(static_cast<std::uint32_t>(bytes.size()));
      packer.pack_bin_body(bytes.data(), static_cast<std::uint32_t>(bytes.size()));
      return {};
    }
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
    StringSink sink{&out};
    Packer packer(sink);
    if (auto done = pack(packer, value, 0); !done) return done.error();
    return out;
  } catch (const std::exception&) {
    return Error(Errc::NoMemory, "no memory to write a message");
  }
}

Decoded<Value> decode_value(std::string_view bytes) {
  try {
    TreeBuilder tree;
    std::size_t read = 0;
    const bool whole = msgpack::parse(bytes.data(), bytes.size(), read, tree);
    if (tree.refused() != nullptr) {
      return Fault{ErrorCode::BadFrame, "", std::string("the payload ") + tree.refused()};
    }
    if (!whole || read != bytes.size()) {
      return Fault{ErrorCode::BadFrame, "", "the payload goes on behind its msgpack value"};
    }
    return tree.take_root();
  } catch (const std::bad_alloc&) {
    return Fault{ErrorCode::Internal, "", "out of memory"};
  } catch (const std::exception&) {
    // msgpack-c throws on an ext size that overflows; nothing of ours does.
    return Fault{ErrorCode::BadFrame, "", "the payload is not msgpack"};
  }
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
