// SPDX-License-Identifier: Apache-2.0
// What rows about breakers (rows/breaker_rows.hpp) say in cells and half-sentences.
// Thread safety: pure functions.
#pragma once
#include <string>

#include "ctl/look.hpp"
#include "ctl/table.hpp"
#include "wire/value.hpp"

namespace cutwater::ctl {

/// NAME STATE SINCE FAILURE SLOW CALLS PROBES USERS EPOCH RETRY.
Table breaker_table(const Rows& rows);

/// `CLOSED`, `CLOSED, ramping`, `OPEN, HALF_OPEN ready`, `CLOSED (switched off)`.
std::string breaker_state(const wire::Value& row);
/// Good: grants; Warn: some, or whatever happens; Bad: refuses.
Tone breaker_tone(const wire::Value& row);
/// `failure_rate` as people say it: "failure rate", "failures in a row", "by hand".
std::string reason_text(const wire::Value& row);
/// `12s`, `-` when nobody knows; with a state by hand that ends, also when.
std::string since_text(const wire::Value& row);
/// `come back in 3.2s`, `come back in about 30s`, `only by hand`.
std::string retry_text(const wire::Value& row);
/// `33.3 %`; `-` below the minimum of calls.
std::string rate_cell(const wire::Value& row, const char* key);
/// `10 calls, 6 failed (60.0 %), 1 slow (10.0 %), 3 failures in a row`; rates where they count.
std::string counts_text(const wire::Value& row);
/// ", 3 failures in a row"; empty where nobody counts them.
std::string run_text(const wire::Value& row);
/// `FORCED_OPEN until 2030-01-01T00:00:00Z (act 7 of uid 0: their maintenance)`.
std::string act_words(const wire::Value& act);

/// What the window spans: `9s to 10s` of slots, `about 1.2s` of a count of calls; empty: unknown.
std::string span_text(const wire::Value& row);
/// METRICS_ONLY: `now: failure_rate; first 12s ago: failure_rate`; empty in other states.
std::string would_open_text(const wire::Value& row);

/// One row of READ `trips`: a headline and what is known about it, a line each.
std::string trip_text(const wire::Value& trip);

/// The entries of a map of counts; those that are 0 are left out.
void add_counts(Lines& lines, const wire::Value* map);
/// `word`: 120 calls, p50 <= 3ms, p99 <= 20ms, max <= 31ms, mean 4ms, of the last 61s: quantiles
/// are the upper edges of a histogram's cells, at most 12.5 % high. Nothing when `key` is not
/// there.
void add_durations(Lines& lines, const wire::Value& row, const char* word, const char* key);
/// A value on one line: text, number, truth, or a list of them.
std::string value_text(const wire::Value& value);

}  // namespace cutwater::ctl
