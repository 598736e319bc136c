// SPDX-License-Identifier: Apache-2.0
// The rows of READ about bulkheads, made from a mapped segment as those of rows/segment_rows.hpp.
//
//   bulkheads  bulkhead enabled limit in_use over waiting max_waiting
//              allowed answer (allowed, full) retry_after_ns hint: what a caller that does not wait
//              would be answered now
//              oldest_ns (age of the place held longest; absent: none, or unknown) oldest_row
//              oldest_pid (absent: unknown)
//              held, waited {calls mean_ns p50_ns p99_ns max_ns}: how long places were held, and
//              waited for in line, since the memory was made (absent: never)
//   bulkhead   one of them, and max_wait_ns max_hold_ns (0 off), counters {word: number};
//              explain [sentences], as rule/bulkhead_explain.hpp has them;
//              holders [{row pid places waiting oldest_ns gone}], most places first, at most
//              kMaxHolders of them, holders_left_out (absent: none); pid and oldest_ns are absent
//              when unknown; next_row: whom the next place goes to (absent: nobody is in line)
// 2^64-1 ns is never, and of max_wait_ns: for ever.
//
// Never writes a byte. Process safety: beside any daemon and clients. Thread safety: one thread.
// Allocates; never on a decision path.
#pragma once
#include <string_view>

#include "rows/named_rows.hpp"
#include "rows/segment_rows.hpp"

namespace cutwater::rows {

/// Processes of one bulkhead that a row lists one by one.
inline constexpr std::size_t kMaxHolders = 64;

/// By name.
Rows bulkhead_rows(const shm::View& view, Which which = Which::All);
/// That of `bulkheads` of one that was listed; nil: it is gone.
wire::Value bulkhead_row_of(const shm::View& view, const Named& one);
/// UnknownName lists the nearest names.
Result<wire::Value> bulkhead_row(const shm::View& view, std::string_view name);

}  // namespace cutwater::rows
