// SPDX-License-Identifier: Apache-2.0
// All reported fields of a decision at once, for who wants them all (the daemon's answers); a
// Decision computes them one by one, from the same numbers. Pure. Thread safety: values.
#pragma once
#include <cutwater/decision.hpp>

#include "rule/bucket_rule.hpp"

namespace cutwater::rule {

/// From a line of the token clock, or as they stand when they were finished already.
Report report_of(const DecisionData& decision) noexcept;

/// Tokens a decision took, the smallest over its windows: Decision::charged().
std::uint64_t charged_of(const DecisionData& decision) noexcept;

/// Finishes a decision: from now on it holds these four answers instead of a line. The receipt
/// (slot, tag, level, cost) stays.
void set_report(DecisionData& decision, const Report& report) noexcept;

}  // namespace cutwater::rule
