// SPDX-License-Identifier: Apache-2.0
// Texts on the wire are UTF-8 and bounded; these two functions say so and make it so.
// Thread safety: pure functions.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace cutwater::wire {

/// True for well-formed UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF.
bool is_utf8(std::string_view text) noexcept;

/// The text as it may be sent: every byte that is not part of well-formed UTF-8 becomes `?`, and
/// what is longer than `max_bytes` is cut at a character.
std::string fit_text(std::string_view text, std::size_t max_bytes);

}  // namespace cutwater::wire
