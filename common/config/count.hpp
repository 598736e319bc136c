// SPDX-License-Identifier: Apache-2.0
// Counts and sizes as operators write them. A count knows decimal k, M, G (1M = 1 000 000) and
// binary Ki, Mi, Gi (64Ki = 65536). A size is in bytes and knows B, KiB, MiB, GiB and the short k,
// m, g, which are binary there (64m = 64MiB). Whole numbers only, no sign, no separators. Errors:
// InvalidConfig, `what is wrong; remedy`. Thread safety: pure functions.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include <cutwater/result.hpp>

namespace cutwater::config {

Result<std::uint64_t> parse_count(std::string_view text);
Result<std::uint64_t> parse_size(std::string_view text);

/// 64KiB, 1MiB, 1500: the largest unit that leaves a whole number. parse_size() reads it back.
std::string format_size(std::uint64_t bytes);

/// Permission bits in octal: 660, 0660 or 0o660; at most 0777.
Result<std::uint32_t> parse_mode(std::string_view text);

/// What a scan of leading digits found. `overflow`: the digits do not fit 64 bits.
struct Digits {
  std::uint64_t value = 0;
  std::size_t length = 0;
  bool overflow = false;
};
Digits scan_digits(std::string_view text) noexcept;

}  // namespace cutwater::config
