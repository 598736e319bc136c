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
//   breaker   one of them, and explain: [sentence...], settings {key: value as configured},
//             window_span_ns (what the window spans now; of a COUNT window by the outcomes of the
//             last minute, absent while nobody knows), counters {word: number}, classes {class:
//             failures}, transitions [{from to reason count}], time_in_state_ns {state: ns},
//             measured (every call's time is taken: slow-call-rate-threshold needs it; else only
//             durations that callers give are known),
//             durations, durations_minute {calls mean_ns p50_ns p99_ns max_ns span_ns?} (absent: no
//             call was measured), would_open {now? first? first_ns?} (METRICS_ONLY: reasons that
//             would hold it open now, and that would have opened it first in this visit),
//             processes [{row pid forked calls failures slow run open retry_after_ns?}] (of each
//             user; counts are 0 until three use it)
// 2^64-1 ns is never. Quantiles are upper bounds, at most 12.5 % high.
//
// Never writes a byte. Process safety: beside any daemon and clients. Thread safety: one thread.
// Allocates; never on a decision path.
#pragma once
#include <string_view>

#include "rows/named_rows.hpp"
#include "rows/segment_rows.hpp"
#include "shm/breaker/story.hpp"

namespace cutwater::rows {

Rows breaker_rows(const shm::View& view, Which which = Which::All);
/// That of `breakers` of one that was listed; nil: it is gone.
wire::Value breaker_row_of(const shm::View& view, const Named& one);
/// UnknownName lists the nearest names.
Result<wire::Value> breaker_row(const shm::View& view, std::string_view name);

/// calls, mean, p50, p99, max and span (unless they are since the start); nil: none was measured.
wire::Value durations_row(const shm::DurationFigures& figures);

}  // namespace cutwater::rows
