// SPDX-License-Identifier: Apache-2.0
// The settings of a breaker as its numbers in the memory tell them, under the configuration's keys
// and in its spelling: what `breaker get` prints also of a dead daemon's memory. Lists of classes
// are not there: the memory holds their hashes only. Private to rows/. Pure.
#pragma once
#include "rule/breaker_rule.hpp"
#include "wire/value.hpp"

namespace cutwater::rows {

/// A map of at most 40 entries.
wire::Value settings_row(const rule::BreakerNumbers& numbers);

}  // namespace cutwater::rows
