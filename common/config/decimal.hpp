// SPDX-License-Identifier: Apache-2.0
// Shares as operators write them, read as decimals and never as binary fractions, into parts per
// million.
//   percent   50  33.3333  50%  0.5%     four places; 0.5 alone is refused: it may mean half
//   decimal   0.5  1.5                   six places: what ends in ratio, factor or multiplier
// Errors: InvalidConfig, `what is wrong; remedy`. Thread safety: pure functions.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include <cutwater/result.hpp>

namespace cutwater::config {

/// 0..1000000 ppm.
Result<std::uint64_t> parse_percent(std::string_view text);

/// min..max ppm.
Result<std::uint64_t> parse_decimal(std::string_view text, std::uint64_t min_ppm,
                                    std::uint64_t max_ppm);

/// "33.3333%"; parse_percent() reads it back.
std::string format_percent(std::uint64_t ppm);

/// "1.5"; parse_decimal() reads it back.
std::string format_decimal(std::uint64_t ppm);

}  // namespace cutwater::config
