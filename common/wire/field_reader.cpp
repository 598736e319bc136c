// SPDX-License-Identifier: Apache-2.0
#include "wire/field_reader.hpp"

#include "wire/message.hpp"
#include "wire/text.hpp"

namespace cutwater::wire {
namespace {

constexpr std::string_view kNameForm = "a name ([A-Za-z0-9][A-Za-z0-9._:-]{0,62})";

std::string element(const std::string& path, std::size_t index) {
  return path + "[" + std::to_string(index) + "]";
}

/// What came, as a fault says it: numbers as they are, everything else by its kind or size, so that
/// no caller's key reaches a log.
std::string shown(const Value& value) {
  if (const auto number = value.as_unsigned()) return std::to_string(*number);
  if (const auto number = value.as_signed()) return std::to_string(*number);
  const std::string* text = value.as_string();
  const std::string* bytes = text != nullptr ? text : value.as_binary();
  if (bytes == nullptr) return std::string(value.kind_text());
  return std::string(value.kind_text()) + " of " + std::to_string(bytes->size()) + " bytes";
}

std::string range(std::uint64_t lo, std::uint64_t hi) {
  return std::to_string(lo) + " .. " + std::to_string(hi);
}

std::string bytes_text(std::string_view what, std::size_t max_bytes) {
  return std::string(what) + " of 0 .. " + std::to_string(max_bytes) + " bytes";
}

}  // namespace

bool is_name(std::string_view text) noexcept {
  const auto is_alnum = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
  };
  if (text.empty() || text.size() > kMaxName || !is_alnum(text[0])) return false;
  for (const char c : text) {
    if (!is_alnum(c) && c != '.' && c != '_' && c != ':' && c != '-') return false;
  }
  return true;
}

FieldReader::FieldReader(MessageType type, std::string_view payload) : row_(find_message(type)) {
  auto root = decode_value(payload);
  if (!root) {
    fault_ = root.fault();
    return;
  }
  root_ = std::move(*root);
  fields_ = std::as_const(root_).as_array();
  if (fields_ == nullptr) {
    fault_ = Fault{ErrorCode::InvalidArgument, "",
                   "the payload must be an array, got " + shown(root_)};
  } else if (fields_->size() < row_->required()) {
    const std::string missing(row_->fields[fields_->size()].name);
    fault_ = Fault{ErrorCode::InvalidArgument, missing, missing + " is missing"};
  }
}

const Value* FieldReader::next() {
  path_ = row_->fields[index_].name;
  const std::size_t at = index_++;
  if (fault_ || at >= fields_->size()) return nullptr;
  return &(*fields_)[at];
}

void FieldReader::wrong(const std::string& path, std::string_view must_be,
                        const std::string& got) {
  if (fault_) return;
  const std::size_t dot = path.rfind('.');
  const std::string last = dot == std::string::npos ? path : path.substr(dot + 1);
  fault_ = Fault{ErrorCode::InvalidArgument, path,
                 last + " must be " + std::string(must_be) + ", got " + got};
}

void FieldReader::refuse(std::string_view must_be, const std::string& got) {
  wrong(path_, must_be, got);
}

std::uint64_t FieldReader::take_number(const Value& value, const std::string& path,
                                       std::uint64_t lo, std::uint64_t hi) {
  const auto number = value.as_unsigned();
  if (number && *number >= lo && *number <= hi) return *number;
  wrong(path, range(lo, hi), shown(value));
  return lo;
}

std::uint64_t FieldReader::number(std::uint64_t lo, std::uint64_t hi) {
  const Value* value = next();
  return value == nullptr ? lo : take_number(*value, path_, lo, hi);
}

bool FieldReader::flag() {
  const Value* value = next();
  if (value == nullptr) return false;
  const auto flag = value->as_bool();
  if (!flag) wrong(path_, "a bool", shown(*value));
  return flag.value_or(false);
}

std::string FieldReader::text(std::size_t max_bytes) {
  const Value* value = next();
  if (value == nullptr) return {};
  const std::string* text = value->as_string();
  if (text == nullptr || text->size() > max_bytes) {
    wrong(path_, bytes_text("a string", max_bytes), shown(*value));
    return {};
  }
  if (!is_utf8(*text)) {
    wrong(path_, "UTF-8", "other bytes");
    return {};
  }
  return *text;
}

std::string FieldReader::take_name(const Value& value, const std::string& path, bool or_empty) {
  const std::string* text = value.as_string();
  const bool fits = text != nullptr && (is_name(*text) || (or_empty && text->empty()));
  if (fits) return *text;
  wrong(path, kNameForm, text != nullptr ? "another string" : shown(value));
  return {};
}

std::string FieldReader::name() {
  const Value* value = next();
  return value == nullptr ? std::string() : take_name(*value, path_, false);
}

std::string FieldReader::name_or_empty() {
  const Value* value = next();
  return value == nullptr ? std::string() : take_name(*value, path_, true);
}

std::optional<std::string> FieldReader::name_or_nil() {
  const Value* value = next();
  if (value == nullptr || value->is_nil()) return std::nullopt;
  return take_name(*value, path_, false);
}

std::optional<std::string> FieldReader::key_or_nil() {
  const Value* value = next();
  if (value == nullptr || value->is_nil()) return std::nullopt;
  const std::string* binary = value->as_binary();
  const std::string* bytes = binary != nullptr ? binary : value->as_string();
  if (bytes != nullptr && bytes->size() <= kMaxKey) return *bytes;
  wrong(path_, bytes_text("binary", kMaxKey) + " or nil", shown(*value));
  return std::nullopt;
}

std::string FieldReader::id(std::size_t size, bool or_empty) {
  const Value* value = next();
  if (value == nullptr) return {};
  const std::string* bytes = value->as_binary();
  if (bytes != nullptr && (bytes->size() == size || (or_empty && bytes->empty()))) return *bytes;
  wrong(path_, "binary of " + std::to_string(size) + (or_empty ? " or 0 bytes" : " bytes"),
        shown(*value));
  return {};
}

std::string FieldReader::binary(std::size_t max_bytes) {
  const Value* value = next();
  if (value == nullptr) return {};
  const std::string* bytes = value->as_binary();
  if (bytes != nullptr && bytes->size() <= max_bytes) return *bytes;
  wrong(path_, bytes_text("binary", max_bytes), shown(*value));
  return {};
}

const Value::Array* FieldReader::array(std::size_t least, std::size_t most) {
  const Value* value = next();
  if (value == nullptr) return nullptr;
  const Value::Array* elements = value->as_array();
  if (elements == nullptr) {
    wrong(path_, "an array", shown(*value));
  } else if (elements->size() < least || elements->size() > most) {
    wrong(path_, "an array of " + range(least, most) + " elements",
          std::to_string(elements->size()));
  } else {
    return elements;
  }
  return nullptr;
}

std::uint64_t FieldReader::element_number(std::size_t index, std::uint64_t hi) {
  if (fault_) return 0;
  const Value& value = (*(*fields_)[index_ - 1].as_array())[index];
  return take_number(value, element(path_, index), 0, hi);
}

std::string FieldReader::element_name(std::size_t index) {
  if (fault_) return {};
  const Value& value = (*(*fields_)[index_ - 1].as_array())[index];
  return take_name(value, element(path_, index), false);
}

bool FieldReader::refuse_foreign(const Value& value, const std::string& path) {
  const auto below = value.find_foreign();
  if (!below) return false;
  wrong(path + below->path, "nil, a bool, an integer, a string, binary, an array or a map",
        std::string(below->what));
  return true;
}

Value FieldReader::map() {
  const Value* value = next();
  if (value == nullptr) return Value(Value::Map{});
  if (value->as_map() == nullptr) {
    wrong(path_, "a map", shown(*value));
  } else if (!refuse_foreign(*value, path_)) {
    return *value;
  }
  return Value(Value::Map{});
}

std::vector<Value> FieldReader::maps(std::size_t most) {
  std::vector<Value> out;
  const Value::Array* elements = array(0, most);
  if (elements == nullptr) return out;
  for (std::size_t i = 0; i < elements->size() && !fault_; ++i) {
    const Value& value = (*elements)[i];
    const std::string path = element(path_, i);
    if (value.as_map() == nullptr) {
      wrong(path, "a map", shown(value));
    } else if (!refuse_foreign(value, path)) {
      out.push_back(value);
    }
  }
  return out;
}

}  // namespace cutwater::wire
