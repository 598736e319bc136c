// SPDX-License-Identifier: Apache-2.0
// The rows of READ about breakers, made from a mapped segment as those of rows/segment_rows.hpp.
//
//   breakers  breaker state (as the word says) ready (the next caller makes the step) next (where
//             to) reason since_ns (how long ago; absent: unknown) epoch attempts ramping
//             expires_ns (until a state set by hand ends; absent: none)
//             allowed answer (allowed, open, probing) retry_after_ns hint: what a caller without a
//             history would be answered now
//             calls failures slow run of the window; failure_permille, slow_permille (absent below
//             the minimum); window (in words)
//             probes probes_held probes_spent, users users_open hanging flapping
//   breaker   one of them, and explain: [sentence...], settings {key: value as in the configuration},
//             window_span_ns (present span of a TIME window), counters {word: number},
//             classes {class: failures}, durations {calls mean_ns p50_ns p99_ns max_ns} (absent: no
//             call was measured)
// 2^64-1 ns is never. Quantiles are upper bounds, at most 12.5 % high.
//
// Never writes a byte. Process safety: beside any daemon and clients. Thread safety: one thread.
// Allocates; never on a decision path.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "rows/segment_rows.hpp"

namespace cutwater::rows {

Rows breaker_rows(const shm::View& view);
/// UnknownName lists the nearest names.
Result<wire::Value> breaker_row(const shm::View& view, std::string_view name);

/// calls, mean, p50, p99 and max of a histogram with shm::histogram_cell() cells; nil when it is
/// empty. `sum_us`: of all durations; 0 leaves the mean out.
wire::Value durations_row(std::span<const std::uint32_t> cells, std::uint64_t sum_us);

}  // namespace cutwater::rows
