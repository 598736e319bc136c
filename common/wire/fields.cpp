// SPDX-License-Identifier: Apache-2.0
#include "wire/fields.hpp"

#include <array>

#include "wire/text.hpp"

namespace cutwater::wire {
namespace {

constexpr std::string_view kHoldable =
    "nil, a bool, an integer, a string, binary, an array or a map";
constexpr std::size_t kFixArray = 15;  // longest array whose head is one byte

std::string range(std::uint64_t lo, std::uint64_t hi) {
  return std::to_string(lo) + " .. " + std::to_string(hi);
}

std::string bytes_text(std::string_view what, std::size_t most) {
  return std::string(what) + " of 0 .. " + std::to_string(most) + " bytes";
}

std::string id_text(IdForm form) {
  return "binary of " + std::to_string(form.size) + (form.or_empty ? " or 0 bytes" : " bytes");
}

bool has_form(std::string_view bytes, IdForm form) {
  return bytes.size() == form.size || (form.or_empty && bytes.empty());
}

std::string sized(std::string_view kind, std::size_t size) {
  return std::string(kind) + " of " + std::to_string(size) + " bytes";
}

/// What came, as a fault says it: numbers as they are, everything else by its kind or size, so that
/// no caller's key reaches a log.
std::string shown(const Token& token) {
  switch (token.kind) {
    case Value::Kind::Unsigned: return std::to_string(token.number);
    case Value::Kind::Signed: return std::to_string(static_cast<std::int64_t>(token.number));
    case Value::Kind::String:
    case Value::Kind::Binary: return sized(token.kind_text(), token.text.size());
    default: return std::string(token.kind_text());
  }
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

bool is_pattern_name(std::string_view text) noexcept {
  const std::size_t star = text.find('*');
  if (star == std::string_view::npos || text.size() < 2 || text.size() > kMaxName) return false;
  std::array<char, kMaxName> plain{};
  text.copy(plain.data(), text.size());
  plain[star] = 'x';
  return is_name({plain.data(), text.size()});
}

// ---- place --------------------------------------------------------------------------------------

std::string FieldPlace::path(std::string_view field) const {
  std::string out;
  for (std::size_t i = 0; i < depth_; ++i) {
    if (!out.empty()) out += '.';
    out += steps_[i].name;
    if (steps_[i].indexed) out += "[" + std::to_string(steps_[i].index) + "]";
  }
  if (!out.empty() && !field.empty()) out += '.';
  out += field;
  return out;
}

void FieldPlace::refuse(std::string_view field, std::string_view must_be, std::string_view got) {
  if (fault_) return;
  std::string where = path(field);
  const std::size_t dot = where.rfind('.');
  const std::string last = dot == std::string::npos ? where : where.substr(dot + 1);
  fault_ = Fault{ErrorCode::InvalidArgument, std::move(where),
                 last + " must be " + std::string(must_be) + ", got " + std::string(got)};
}

void FieldPlace::missing(std::string_view field) {
  if (fault_) return;
  fault_ = Fault{ErrorCode::InvalidArgument, path(field), std::string(field) + " is missing"};
}

// ---- reading ------------------------------------------------------------------------------------

FieldReader::FieldReader(std::string_view payload) {
  auto tokens = read_tokens(payload);
  if (!tokens) {
    fault_ = tokens.fault();
    return;
  }
  tokens_ = std::move(*tokens);
  if (tokens_[0].kind != Value::Kind::Array) {
    fault_ = Fault{ErrorCode::InvalidArgument, "",
                   "the payload must be an array, got " + shown(tokens_[0])};
    return;
  }
  at_ = 1;
  end_ = tokens_.size();
}

const Token* FieldReader::next(std::string_view field) {
  if (fault_) return nullptr;
  if (at_ >= end_) {
    missing(field);
    return nullptr;
  }
  const Token& token = tokens_[at_];
  at_ = token.next;
  return &token;
}

std::uint64_t FieldReader::take_number(std::string_view field, std::uint64_t lo,
                                       std::uint64_t hi) {
  const Token* token = next(field);
  if (token == nullptr) return lo;
  if (token->kind == Value::Kind::Unsigned && token->number >= lo && token->number <= hi) {
    return token->number;
  }
  refuse(field, range(lo, hi), shown(*token));
  return lo;
}

void FieldReader::flag(std::string_view field, bool& value) {
  const Token* token = next(field);
  if (token == nullptr) return;
  if (token->kind != Value::Kind::Bool) return refuse(field, "a bool", shown(*token));
  value = token->number != 0;
}

void FieldReader::text(std::string_view field, std::string& value, std::size_t most) {
  const Token* token = next(field);
  if (token == nullptr) return;
  if (token->kind != Value::Kind::String || token->text.size() > most) {
    return refuse(field, bytes_text("a string", most), shown(*token));
  }
  if (!is_utf8(token->text)) return refuse(field, "UTF-8", "other bytes");
  value = token->text;
}

void FieldReader::told(std::string_view field, std::string& value, std::size_t) {
  text(field, value, kMaxFrameLargest);  // bounded by the frame it came in
}

void FieldReader::take_name(const Token& token, std::string_view field, std::string& value,
                            bool or_empty) {
  const bool text = token.kind == Value::Kind::String;
  if (text && (is_name(token.text) || (or_empty && token.text.empty()))) value = token.text;
  else refuse(field, kNameForm, text ? "another string" : shown(token));
}

void FieldReader::name(std::string_view field, std::string& value) {
  if (const Token* token = next(field)) take_name(*token, field, value, false);
}

void FieldReader::name_or_empty(std::string_view field, std::string& value) {
  if (const Token* token = next(field)) take_name(*token, field, value, true);
}

void FieldReader::name_or_nil(std::string_view field, std::optional<std::string>& value) {
  const Token* token = next(field);
  value.reset();
  if (token == nullptr || token->kind == Value::Kind::Nil) return;
  take_name(*token, field, value.emplace(), false);
}

void FieldReader::subject_or_nil(std::string_view field, std::optional<std::string>& value) {
  const Token* token = next(field);
  value.reset();
  if (token == nullptr || token->kind == Value::Kind::Nil) return;
  const bool text = token->kind == Value::Kind::String;
  if (text && (is_name(token->text) || is_pattern_name(token->text))) value = token->text;
  else refuse(field, kSubjectForm, text ? "another string" : shown(*token));
}

void FieldReader::subject_or_empty(std::string_view field, std::string& value) {
  const Token* token = next(field);
  if (token == nullptr) return;
  const bool text = token->kind == Value::Kind::String;
  if (text && is_pattern_name(token->text)) value = token->text;
  else take_name(*token, field, value, true);
}

std::optional<std::string_view> FieldReader::take_bytes(std::string_view field, std::size_t most,
                                                        std::string_view or_nil) {
  const Token* token = next(field);
  if (token == nullptr) return std::nullopt;
  if (!or_nil.empty() && token->kind == Value::Kind::Nil) return std::nullopt;
  const bool bytes = token->kind == Value::Kind::Binary || token->kind == Value::Kind::String;
  if (bytes && token->text.size() <= most) return token->text;
  refuse(field, bytes_text("binary", most) + std::string(or_nil), shown(*token));
  return std::nullopt;
}

void FieldReader::key(std::string_view field, std::string& value) {
  if (const auto bytes = take_bytes(field, kMaxKey, "")) value = *bytes;
}

void FieldReader::item_key(std::string_view field, std::string& value) {
  if (const auto bytes = take_bytes(field, kMaxFrameLargest, "")) value = *bytes;
}

void FieldReader::key_or_nil(std::string_view field, std::optional<std::string>& value) {
  value.reset();
  if (const auto bytes = take_bytes(field, kMaxKey, " or nil")) value = std::string(*bytes);
}

void FieldReader::binary(std::string_view field, std::string& value, std::size_t most) {
  const Token* token = next(field);
  if (token == nullptr) return;
  if (token->kind == Value::Kind::Binary && token->text.size() <= most) value = token->text;
  else refuse(field, bytes_text("binary", most), shown(*token));
}

void FieldReader::id(std::string_view field, std::string& value, IdForm form) {
  const Token* token = next(field);
  if (token == nullptr) return;
  if (token->kind == Value::Kind::Binary && has_form(token->text, form)) value = token->text;
  else refuse(field, id_text(form), shown(*token));
}

void FieldReader::map(std::string_view field, Value& value) {
  const std::size_t at = at_;
  const Token* token = next(field);
  if (token == nullptr) return;
  if (token->kind != Value::Kind::Map) return refuse(field, "a map", shown(*token));
  Value read = value_of(tokens_, at);
  if (const auto found = read.find_foreign()) {
    return refuse(std::string(field) + found->path, kHoldable, found->what);
  }
  value = std::move(read);
}

std::optional<std::size_t> FieldReader::open(std::string_view field, Span count) {
  const std::size_t at = at_;
  const Token* token = next(field);
  if (token == nullptr) return std::nullopt;
  if (token->kind != Value::Kind::Array) {
    refuse(field, "an array", shown(*token));
    return std::nullopt;
  }
  if (token->number < count.least || token->number > count.most) {
    refuse(field, "an array of " + range(count.least, count.most) + " elements",
           std::to_string(token->number));
    return std::nullopt;
  }
  at_ = at + 1;
  end_ = token->next;
  return token->number;
}

// ---- writing ------------------------------------------------------------------------------------

void FieldWriter::begin() {
  ++open_;
  elements_[open_] = 0;
  head_[open_] = out_.size();
  put_array_head(out_, 0);  // end() knows the number
}

void FieldWriter::end() {
  std::string head;
  put_array_head(head, elements_[open_]);
  if (elements_[open_] <= kFixArray) out_[head_[open_]] = head[0];
  else out_.replace(head_[open_], 1, head);
  --open_;
}

Result<std::string> FieldWriter::take() {
  if (fault_) return Error(Errc::InvalidArgument, fault_->field + ": " + fault_->text);
  end();
  return std::move(out_);
}

bool FieldWriter::open_list(std::string_view field, std::size_t size, Span count) {
  if (fault_) return false;
  if (size < count.least || size > count.most) {
    refuse(field, "an array of " + range(count.least, count.most) + " elements",
           std::to_string(size));
    return false;
  }
  ++elements_[open_];
  ++open_;
  elements_[open_] = 0;
  put_array_head(out_, size);
  return true;
}

void FieldWriter::put_number(std::string_view field, std::uint64_t value, std::uint64_t lo,
                             std::uint64_t hi) {
  if (fault_) return;
  if (value < lo || value > hi) return refuse(field, range(lo, hi), std::to_string(value));
  ++elements_[open_];
  put_unsigned(out_, value);
}

void FieldWriter::flag(std::string_view, bool value) {
  if (fault_) return;
  ++elements_[open_];
  put_bool(out_, value);
}

void FieldWriter::text(std::string_view field, std::string_view value, std::size_t most) {
  if (fault_) return;
  if (value.size() > most) {
    return refuse(field, bytes_text("a string", most), sized("a string", value.size()));
  }
  if (!is_utf8(value)) return refuse(field, "UTF-8", "other bytes");
  ++elements_[open_];
  put_string(out_, value);
}

void FieldWriter::told(std::string_view, std::string_view value, std::size_t most) {
  if (fault_) return;
  ++elements_[open_];
  put_string(out_, fit_text(value, most));
}

void FieldWriter::name(std::string_view field, std::string_view value) {
  if (fault_) return;
  if (!is_name(value)) return refuse(field, kNameForm, "another string");
  ++elements_[open_];
  put_string(out_, value);
}

void FieldWriter::name_or_empty(std::string_view field, std::string_view value) {
  if (value.empty()) text(field, value, 0);
  else name(field, value);
}

void FieldWriter::name_or_nil(std::string_view field, const std::optional<std::string>& value) {
  if (value) return name(field, *value);
  if (fault_) return;
  ++elements_[open_];
  put_nil(out_);
}

void FieldWriter::subject_or_empty(std::string_view field, std::string_view value) {
  if (!is_pattern_name(value)) return name_or_empty(field, value);
  if (fault_) return;
  ++elements_[open_];
  put_string(out_, value);
}

void FieldWriter::subject_or_nil(std::string_view field, const std::optional<std::string>& value) {
  if (!value || is_name(*value)) return name_or_nil(field, value);
  if (is_pattern_name(*value)) return subject_or_empty(field, *value);
  if (!fault_) refuse(field, kSubjectForm, "another string");
}

void FieldWriter::key(std::string_view field, std::string_view value) {
  binary(field, value, kMaxKey);
}

void FieldWriter::key_or_nil(std::string_view field, const std::optional<std::string>& value) {
  if (value) return key(field, *value);
  if (fault_) return;
  ++elements_[open_];
  put_nil(out_);
}

void FieldWriter::binary(std::string_view field, std::string_view value, std::size_t most) {
  if (fault_) return;
  if (value.size() > most) {
    return refuse(field, bytes_text("binary", most), sized("binary", value.size()));
  }
  ++elements_[open_];
  put_binary(out_, value);
}

void FieldWriter::id(std::string_view field, std::string_view value, IdForm form) {
  if (fault_) return;
  if (!has_form(value, form)) return refuse(field, id_text(form), sized("binary", value.size()));
  ++elements_[open_];
  put_binary(out_, value);
}

void FieldWriter::map(std::string_view field, const Value& value) {
  if (fault_) return;
  if (value.as_map() == nullptr) return refuse(field, "a map", value.kind_text());
  ++elements_[open_];
  if (const auto done = put_value(out_, value, open_); !done) {
    refuse(field, kHoldable, done.error().text());
  }
}

}  // namespace cutwater::wire
