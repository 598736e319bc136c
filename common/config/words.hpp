// SPDX-License-Identifier: Apache-2.0
// Words of the configuration: the one spelling of a key, nearest names for "did you mean", and the
// small closed vocabularies (names, booleans, choices, what-if). Every parser here takes the text
// of a scalar and gives its meaning, or an InvalidConfig error of the form `what is wrong; remedy`,
// without place or path: the reader adds those. Thread safety: pure functions.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <cutwater/result.hpp>

#include "base/nearest.hpp"

namespace cutwater::config {

using cutwater::edit_distance;
using cutwater::kMaxEditDistance;
using cutwater::nearest;

/// Bytes of an offending text that a message repeats; the rest becomes "...".
inline constexpr std::size_t kMaxQuotedBytes = 60;

/// An InvalidConfig error.
Error refusal(std::string text);

/// The text in double quotes, cut at kMaxQuotedBytes; control characters become '?'.
std::string in_quotes(std::string_view text);

/// The same without the quotes: a word of the text as one level of a path.
std::string shown(std::string_view word);

/// max-wait for `max-wait`, `max_wait` and `maxWait`: one spelling for the same words. Anything
/// that is in none of the three styles comes back as it is, so that it stays unknown.
std::string kebab(std::string_view key);

/// Length of the UTF-8 sequence at `at`, or 0 when there is none.
std::size_t utf8_length(std::string_view text, std::size_t at);

/// "a, b or c".
std::string listing(std::span<const std::string_view> words);

/// The words of a space-separated list.
std::vector<std::string_view> split_words(std::string_view list);

/// `[A-Za-z0-9][A-Za-z0-9._:-]{0,62}`.
Result<std::string> parse_name(std::string_view text);

/// true or false, and nothing else: yes, on and 1 are refused.
Result<bool> parse_bool(std::string_view text);

/// One of `words`, in exactly that spelling; returns its index.
Result<std::size_t> parse_choice(std::string_view text, std::span<const std::string_view> words);

/// The one vocabulary of every `on-...` key about limits. The numbers are those of rule::OnFull.
enum class WhatIf : unsigned char { Share = 0, Deny = 1, Allow = 2 };
Result<WhatIf> parse_what_if(std::string_view text);

}  // namespace cutwater::config
