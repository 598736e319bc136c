// SPDX-License-Identifier: Apache-2.0
// explain: the next decision about one key in words, from the row that READ `limit` answers with a
// key (rows/segment_rows.hpp). Says by what the key is judged (the limit's numbers, an override, a
// pattern, a ban), which window decides, what is left, and when to come back.
// Thread safety: pure functions.
#pragma once
#include <string>
#include <vector>

#include "wire/value.hpp"

namespace cutwater::ctl {

/// `10/s burst 10`, `500 per month (Europe/Berlin)`: one element of a row's `windows`.
std::string window_text(const wire::Value& window);

/// Whole sentences, most important first. `row` has `answer`; `cost` is what was asked for.
std::vector<std::string> explain(const wire::Value& row, std::uint64_t cost);

}  // namespace cutwater::ctl
