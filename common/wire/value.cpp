// SPDX-License-Identifier: Apache-2.0
#include "wire/value.hpp"

#include <algorithm>

namespace cutwater::wire {

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

std::string_view Value::kind_text() const noexcept {
  switch (kind()) {
    case Kind::Nil: return "nil";
    case Kind::Bool: return "a bool";
    case Kind::Unsigned: return "an integer";
    case Kind::Signed: return "a negative integer";
    case Kind::String: return "a string";
    case Kind::Binary: return "binary";
    case Kind::Array: return "an array";
    case Kind::Map: return "a map";
    case Kind::Foreign: return std::get_if<Foreign>(&content_)->what;
  }
  return "nothing";
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
