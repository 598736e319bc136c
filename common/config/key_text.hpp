// SPDX-License-Identifier: Apache-2.0
// Keys of callers as operators write them: in the file, and to the tool.
//   alice          the bytes of the text
//   hex:616c       bytes
//   partner:*      a pattern: any bytes where the one * stands
//   exact:a*b      the bytes behind exact:, also when they contain * or begin with hex: or exact:
//   [acme, alice]  (YAML) one key of several parts, as key_of("acme", "alice") makes it
// Bounds: 1..kMaxKeyBytes bytes; a pattern rule::kMaxPatternLength. Errors: InvalidConfig, `what is
// wrong; remedy`. Thread safety: pure functions.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <cutwater/result.hpp>

namespace cutwater::config {

struct KeyText {
  std::string bytes;      ///< a pattern with its *
  bool pattern = false;

  friend bool operator==(const KeyText&, const KeyText&) = default;
  friend auto operator<=>(const KeyText&, const KeyText&) = default;
};

Result<KeyText> parse_key(std::string_view text);

/// The key of several parts, each written like a key; none may be a pattern.
Result<KeyText> parse_key(const std::vector<std::string>& parts);

/// One canonical spelling for each key; parse_key() reads it back, as a list when it begins with [.
std::string format_key(const KeyText& key);

/// One spelling for each key in what people read, in printable ASCII; the tool takes it back as it
/// is: `alice`, `[acme, alice]` (two parts or more), `exact:a*b`, `hex:00ff`. Nothing of nothing.
std::string spell_key(std::string_view bytes);

/// The key that spell_key() writes as this list of parts; nothing for any other text.
std::optional<std::string> key_of_list(std::string_view text);

}  // namespace cutwater::config
