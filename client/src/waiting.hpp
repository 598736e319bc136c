// SPDX-License-Identifier: Apache-2.0
// What every way of waiting in line shares: the bound on callers asleep per limit and process, and
// the answer of a full line. Thread safety: everything from any thread.
#pragma once
#include <cutwater/decision.hpp>

#include "src/limit_state.hpp"

namespace cutwater::detail {

/// Takes one of the limit's places for sleepers of this process; false: state.max_waiting are
/// taken. A forked child does not inherit its parent's sleepers.
bool begin_waiting(LimitState& state) noexcept;
void end_waiting(LimitState& state) noexcept;

/// `refused` becomes the answer of a full line: as before, but by Reason::Full and with a hint.
void answer_line_full(const Decision& refused, DecisionData& out) noexcept;

}  // namespace cutwater::detail
