// SPDX-License-Identifier: Apache-2.0
// What all HTTP answers are made of (RFC 9457 and structured fields). Pure; allocates.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include <cutwater/http.hpp>

namespace cutwater::detail {

/// At most the largest integer of a structured field.
std::string digits(std::uint64_t number);
/// In quotes, for a structured field and for JSON: what is no printable ASCII becomes '?'.
std::string quoted(std::string_view text);
/// `{"type":...,"title":...,"status":503`: the rest and the brace are the caller's.
std::string problem_head(Reason reason);
/// Content-Type and Cache-Control, where there is a body.
void add_body_fields(HttpAnswer& answer);

}  // namespace cutwater::detail
