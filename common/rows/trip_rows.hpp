// SPDX-License-Identifier: Apache-2.0
// The rows of READ `trips`: why breakers opened, newest first (shm/breaker/trips.hpp).
//
//   trips     breaker number unix_ms ago_ns epoch attempts from reason wait_ns calls failures slow
//             run hanging looked_at classes {class: failures} processes [{row pid failures slow}]
//             durations {calls p50_ns p99_ns max_ns span_ns?} settings {as of `breaker`}
// classes and processes count the last failures and slow calls before it, `looked_at` of them; a
// process is named as it was then. durations are absent when none was measured; without span_ns
// they are since the memory was made.
// Never writes a byte. Thread safety: one thread. Allocates.
#pragma once
#include <string_view>

#include "rows/segment_rows.hpp"

namespace cutwater::rows {

/// Trips that one READ may ask for.
inline constexpr std::size_t kMaxTrips = 100;

/// Of all breakers when `name` is empty. UnknownName lists the nearest names; a breaker that is
/// gone and left trips behind is known.
Result<Rows> trip_rows(const shm::View& view, std::string_view name, std::size_t most);

}  // namespace cutwater::rows
