// SPDX-License-Identifier: Apache-2.0
// All reported fields of a decision at once, for who wants them all (the daemon's answers); a
// Decision computes them one by one, from the same numbers. Pure. Thread safety: values.
#pragma once
#include <cutwater/decision.hpp>

#include "rule/bucket_rule.hpp"

namespace cutwater::rule {

Report report_of(const DecisionData& decision) noexcept;

}  // namespace cutwater::rule
