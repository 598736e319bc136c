// SPDX-License-Identifier: Apache-2.0
#include "config/key_text.hpp"

#include <algorithm>

#include "base/composite_key.hpp"
#include "config/words.hpp"
#include "rule/limit_settings.hpp"

namespace cutwater::config {
namespace {

constexpr std::string_view kHex = "hex:";
constexpr std::string_view kExact = "exact:";
constexpr std::string_view kDigits = "0123456789abcdef";

int digit(char c) {
  if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
  const std::size_t at = kDigits.find(c);
  return at == std::string_view::npos ? -1 : static_cast<int>(at);
}

Result<std::string> parse_hex(std::string_view text) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    const int high = digit(text[i]);
    const int low = digit(text[i + 1]);
    if (high < 0 || low < 0) break;
    bytes += static_cast<char>(high * 16 + low);
  }
  if (bytes.empty() || bytes.size() * 2 != text.size()) {
    return refusal(in_quotes(std::string(kHex) + std::string(text)) +
                   " is no key in hex; write two digits for each byte, or exact: in front of a key "
                   "that begins with hex:");
  }
  return bytes;
}

std::string hex_of(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

/// UTF-8 without control characters: what can be written as it is.
bool is_plain(std::string_view bytes) {
  for (std::size_t i = 0; i < bytes.size();) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    const std::size_t length = utf8_length(bytes, i);
    if (length == 0 || byte < 0x20 || byte == 0x7f) return false;
    i += length;
  }
  return !bytes.empty();
}

bool needs_exact(std::string_view bytes) {
  return bytes.find('*') != std::string_view::npos || bytes.starts_with(kHex) ||
         bytes.starts_with(kExact) || bytes.starts_with('[');
}

}  // namespace

Result<KeyText> parse_key(std::string_view text) {
  KeyText key;
  if (text.starts_with(kHex)) {
    auto bytes = parse_hex(text.substr(kHex.size()));
    if (!bytes) return bytes.error();
    key.bytes = std::move(*bytes);
  } else if (text.starts_with(kExact)) {
    key.bytes = std::string(text.substr(kExact.size()));
  } else {
    key.bytes = std::string(text);
    const auto stars = std::count(text.begin(), text.end(), '*');
    key.pattern = stars > 0;
    if (stars > 1) {
      return refusal(in_quotes(text) + " has " + std::to_string(stars) +
                     " stars; write one, or exact: in front of a key that contains them");
    }
    if (text == "*") {
      return refusal("\"*\" is every key; write its rate at the limit itself, or \"exact:*\" for "
                     "the key *");
    }
  }
  if (key.bytes.empty()) return refusal("an empty key; write at least one byte");
  if (key.bytes.size() > kMaxKeyBytes) {
    return refusal("a key of " + std::to_string(key.bytes.size()) +
                   " bytes is above the maximum of " + std::to_string(kMaxKeyBytes));
  }
  if (key.pattern && key.bytes.size() > rule::kMaxPatternLength) {
    return refusal("a pattern of " + std::to_string(key.bytes.size()) +
                   " bytes is above the maximum of " + std::to_string(rule::kMaxPatternLength));
  }
  return key;
}

Result<KeyText> parse_key(const std::vector<std::string>& parts) {
  std::vector<std::string> bytes;
  for (const std::string& part : parts) {
    if (part.empty()) {
      bytes.emplace_back();
      continue;
    }
    auto key = parse_key(part);
    if (!key) return key.error();
    if (key->pattern) {
      return refusal(in_quotes(part) + " is a pattern, which cannot be a part of a key; write "
                                       "exact: in front of a part that contains *");
    }
    bytes.push_back(std::move(key->bytes));
  }
  const std::vector<std::string_view> views(bytes.begin(), bytes.end());
  auto key = composite_key(views);
  if (!key) {
    return refusal("a key has 1.." + std::to_string(kMaxKeyParts) + " parts and at most " +
                   std::to_string(kMaxKeyBytes) + " bytes; write fewer or shorter ones");
  }
  return KeyText{.bytes = std::move(*key), .pattern = false};
}

namespace {

/// `[acme, alice]`; empty where a part could not be told from its neighbours in a list.
std::string list_of(const std::vector<std::string_view>& parts) {
  const auto simple = [](std::string_view part) {
    return is_plain(part) && !needs_exact(part) &&
           part.find_first_of(",]\"'") == std::string_view::npos && part.front() != ' ' &&
           part.back() != ' ';
  };
  if (parts.empty() || !std::all_of(parts.begin(), parts.end(), simple)) return {};
  std::string list;
  for (const std::string_view part : parts) {
    list += (list.empty() ? "[" : ", ") + std::string(part);
  }
  return list + "]";
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
}

}  // namespace

std::string spell_key(std::string_view bytes) {
  if (bytes.empty()) return {};
  const auto parts = parts_of(bytes);
  if (std::string list = parts.size() < 2 ? "" : list_of(parts); !list.empty() && is_ascii(list)) {
    return list;
  }
  if (!is_ascii(bytes)) return std::string(kHex) + hex_of(bytes);
  return (needs_exact(bytes) ? std::string(kExact) : std::string()) + std::string(bytes);
}

std::optional<std::string> key_of_list(std::string_view text) {
  constexpr std::string_view kBetween = ", ";
  if (!text.starts_with('[') || !text.ends_with(']')) return std::nullopt;
  std::string_view rest = text.substr(1, text.size() - 2);
  std::vector<std::string_view> parts;
  for (std::size_t at = rest.find(kBetween); at != std::string_view::npos;
       at = rest.find(kBetween)) {
    parts.push_back(rest.substr(0, at));
    rest.remove_prefix(at + kBetween.size());
  }
  parts.push_back(rest);
  auto key = composite_key(parts);
  if (!key || spell_key(*key) != text) return std::nullopt;
  return key;
}

std::string format_key(const KeyText& key) {
  if (key.pattern) return key.bytes;
  if (std::string list = list_of(parts_of(key.bytes)); !list.empty()) return list;
  if (!is_plain(key.bytes)) return std::string(kHex) + hex_of(key.bytes);
  return needs_exact(key.bytes) ? std::string(kExact) + key.bytes : key.bytes;
}

}  // namespace cutwater::config
