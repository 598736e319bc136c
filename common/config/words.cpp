// SPDX-License-Identifier: Apache-2.0
#include "config/words.hpp"

#include <algorithm>
#include <array>

#include "rule/limit_settings.hpp"

namespace cutwater::config {
namespace {

constexpr std::size_t kMaxChoiceDistance = 2;   // words are short: three edits make any of another

bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
char lower(char c) { return is_upper(c) ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

Error refusal(std::string text) { return Error(Errc::InvalidConfig, std::move(text)); }

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text.substr(0, kMaxQuotedBytes)) {
    const auto byte = static_cast<unsigned char>(c);
    out += byte < 0x20 || byte == 0x7f ? '?' : c;
  }
  if (text.size() > kMaxQuotedBytes) {
    // Do not cut a UTF-8 sequence in two: drop its begun bytes.
    const auto last = [&] { return static_cast<unsigned char>(out.back()); };
    while ((last() & 0xc0) == 0x80) out.pop_back();
    if (last() >= 0xc0) out.pop_back();
    out += "...";
  }
  out += '"';
  return out;
}

std::string shown(std::string_view word) {
  const std::string text = in_quotes(word);
  return text.substr(1, text.size() - 2);
}

std::string kebab(std::string_view key) {
  if (key.empty() || !is_lower(key.front())) return std::string(key);
  const bool camel = std::any_of(key.begin(), key.end(), is_upper);
  const bool snake = key.find('_') != std::string_view::npos;
  const bool dashed = key.find('-') != std::string_view::npos;
  if (camel + snake + dashed > 1) return std::string(key);
  std::string out;
  for (std::size_t i = 0; i < key.size(); ++i) {
    const char c = key[i];
    if (is_upper(c)) {
      if (is_upper(key[i - 1])) return std::string(key);
      out += '-';
      out += lower(c);
    } else {
      out += c == '_' ? '-' : c;
    }
  }
  return out;
}

std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(at);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || at + length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xc0) != 0x80) return 0;
  }
  const unsigned char second = byte(at + 1);
  const bool overlong = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  const bool outside = (first == 0xed && second > 0x9f) || (first == 0xf4 && second > 0x8f);
  return overlong || outside ? 0 : length;
}

std::string listing(std::span<const std::string_view> words) {
  std::string out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) out += i + 1 == words.size() ? " or " : ", ";
    out += words[i];
  }
  return out;
}

std::vector<std::string_view> split_words(std::string_view list) {
  std::vector<std::string_view> words;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(' '), list.size());
    if (end > 0) words.push_back(list.substr(0, end));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return words;
}

Result<std::string> parse_name(std::string_view text) {
  constexpr std::string_view kRemedy = "; begin with a letter or digit, go on with letters, "
                                       "digits and . _ : -, 63 characters at most";
  if (text.empty()) return refusal("an empty name" + std::string(kRemedy));
  if (!rule::is_name(text)) {
    return refusal(in_quotes(text) + " is not a name" + std::string(kRemedy));
  }
  return std::string(text);
}

Result<bool> parse_bool(std::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  return refusal(in_quotes(text) + " is neither true nor false; write true or false");
}

Result<std::size_t> parse_choice(std::string_view text, std::span<const std::string_view> words) {
  const auto found = std::find(words.begin(), words.end(), text);
  if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  std::string what = in_quotes(text) + " is not known here; ";
  const std::string_view near = nearest(text, words);
  if (!near.empty() && edit_distance(text, near) <= kMaxChoiceDistance) {
    return refusal(what + "did you mean '" + std::string(near) + "'?");
  }
  return refusal(what + "write " + listing(words));
}

Result<WhatIf> parse_what_if(std::string_view text) {
  static constexpr std::array<std::string_view, 3> kWords = {"share", "deny", "allow"};
  if (text == "open" || text == "closed" || text == "fail") {
    return refusal(in_quotes(text) + ": for a breaker 'open' means refuse; write allow or deny");
  }
  auto index = parse_choice(text, kWords);
  if (!index) return index.error();
  return static_cast<WhatIf>(*index);
}

}  // namespace cutwater::config
