// SPDX-License-Identifier: Apache-2.0
#include "wire/value.hpp"

#include <algorithm>

#include "wire/tokens.hpp"

namespace cutwater::wire {
namespace {

std::string_view text_of(Value::Kind kind) noexcept {
  switch (kind) {
    case Value::Kind::Nil: return "nil";
    case Value::Kind::Bool: return "a bool";
    case Value::Kind::Unsigned: return "an integer";
    case Value::Kind::Signed: return "a negative integer";
    case Value::Kind::String: return "a string";
    case Value::Kind::Binary: return "binary";
    case Value::Kind::Array: return "an array";
    case Value::Kind::Map: return "a map";
    case Value::Kind::Foreign: break;
  }
  return "nothing";
}

}  // namespace


Value::Value() noexcept = default;
Value::Value(const char* text) : content_(std::string(text)) {}
Value::Value(std::string text) : content_(std::move(text)) {}
Value::Value(std::string_view text) : content_(std::string(text)) {}
Value::Value(Array elements) : content_(std::move(elements)) {}
Value::Value(Map entries) : content_(std::move(entries)) {}
Value::Value(Flag flag) : content_(flag.on) {}
Value::Value(Number number) {
  if (number.negative) {
    content_ = static_cast<std::int64_t>(number.bits);
  } else {
    content_ = number.bits;
  }
}
Value::Value(const Value&) = default;
Value::Value(Value&&) noexcept = default;
Value& Value::operator=(const Value&) = default;
Value& Value::operator=(Value&&) noexcept = default;
Value::~Value() = default;

Value Value::binary(std::string bytes) {
  Value value;
  value.content_ = Binary{std::move(bytes)};
  return value;
}

Value Value::array(std::initializer_list<Value> elements) { return Array(elements); }

Value Value::map(std::initializer_list<Entry> entries) { return Map(entries); }

Value Value::foreign(const char* what) noexcept {
  Value value;
  value.content_ = Foreign{what};
  return value;
}

std::string_view Token::kind_text() const noexcept {
  return kind == Value::Kind::Foreign ? text : text_of(kind);
}

std::string_view Value::kind_text() const noexcept {
  const auto* foreign = std::get_if<Foreign>(&content_);
  return foreign != nullptr ? foreign->what : text_of(kind());
}

std::optional<bool> Value::as_bool() const noexcept {
  const auto* flag = std::get_if<bool>(&content_);
  return flag != nullptr ? std::optional(*flag) : std::nullopt;
}

std::optional<std::uint64_t> Value::as_unsigned() const noexcept {
  const auto* number = std::get_if<std::uint64_t>(&content_);
  return number != nullptr ? std::optional(*number) : std::nullopt;
}

std::optional<std::int64_t> Value::as_signed() const noexcept {
  if (const auto* number = std::get_if<std::int64_t>(&content_)) return *number;
  const auto number = as_unsigned();
  if (!number || !std::in_range<std::int64_t>(*number)) return std::nullopt;
  return static_cast<std::int64_t>(*number);
}

const std::string* Value::as_string() const noexcept { return std::get_if<std::string>(&content_); }

const std::string* Value::as_binary() const noexcept {
  const auto* binary = std::get_if<Binary>(&content_);
  return binary != nullptr ? &binary->bytes : nullptr;
}

const Value::Array* Value::as_array() const noexcept { return std::get_if<Array>(&content_); }
Value::Array* Value::as_array() noexcept { return std::get_if<Array>(&content_); }
const Value::Map* Value::as_map() const noexcept { return std::get_if<Map>(&content_); }

const Value* Value::find(std::string_view key) const noexcept {
  const Map* entries = as_map();
  if (entries == nullptr) return nullptr;
  const auto at = std::find_if(entries->begin(), entries->end(),
                               [&](const Entry& entry) { return entry.key == key; });
  return at == entries->end() ? nullptr : &at->value;
}

void Value::set(std::string key, Value value) {
  if (is_nil()) content_ = Map{};
  auto* entries = std::get_if<Map>(&content_);
  if (entries == nullptr) return;
  for (Entry& entry : *entries) {
    if (entry.key == key) {
      entry.value = std::move(value);
      return;
    }
  }
  entries->push_back({std::move(key), std::move(value)});
}

// Recursion is bounded: a decoded tree is at most kMaxDepth deep.
std::optional<Value::Found> Value::find_foreign() const {
  if (kind() == Kind::Foreign) return Found{"", kind_text()};
  if (const Array* elements = as_array()) {
    for (std::size_t i = 0; i < elements->size(); ++i) {
      if (auto found = (*elements)[i].find_foreign()) {
        return Found{"[" + std::to_string(i) + "]" + found->path, found->what};
      }
    }
  }
  if (const Map* entries = as_map()) {
    for (const Entry& entry : *entries) {
      if (auto found = entry.value.find_foreign()) {
        return Found{"." + entry.key + found->path, found->what};
      }
    }
  }
  return std::nullopt;
}

bool operator==(const Value& a, const Value& b) { return a.content_ == b.content_; }

}  // namespace cutwater::wire
