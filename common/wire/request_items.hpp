// SPDX-License-Identifier: Apache-2.0
// What a request counts against the credit: one element of a batch is one item, anything else is
// one. Both machines count by this. Thread safety: pure functions.
#pragma once
#include <algorithm>
#include <cstddef>

#include "wire/enter_message.hpp"
#include "wire/watch_message.hpp"

namespace cutwater::wire {

inline std::size_t items_of(const auto&) { return 1; }
inline std::size_t items_of(const Resolve& m) { return m.names.size(); }
inline std::size_t items_of(const Acquire& m) { return m.items.size(); }
inline std::size_t items_of(const Peek& m) { return m.items.size(); }
inline std::size_t items_of(const Refund& m) { return m.items.size(); }
inline std::size_t items_of(const Enter& m) { return std::max<std::size_t>(m.items.size(), 1); }
inline std::size_t items_of(const Outcome& m) { return m.reports.size(); }
inline std::size_t items_of(const Present& m) { return m.tickets.size(); }

}  // namespace cutwater::wire
