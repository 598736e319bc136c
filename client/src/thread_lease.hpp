// SPDX-License-Identifier: Apache-2.0
// Thread lease: for limits with `thread-lease: k` a thread charges k tokens at once and then spends
// them privately, without touching shared memory: two processes on one hot key no longer fight for
// its line (spec memory 8.4; opt-in).
//
// A lease holds the slice (a, y] of the token axis. Spending c needs max(a, N(t)) + c <= y, then a
// moves there (guard LeaseDecays): what was not spent in time is gone, as in the bucket itself, so
// burst + rate * t holds whoever is stopped or killed; a kill costs at most k tokens, which refill.
// Per thread kThreadLeases leases at once; the oldest gives way and gives back its rest. A lease
// ends at a reload, at fork (the child has none), with its thread (the rest is given back) and when
// it cannot pay; then k are charged again, or, where the bucket does not have k, just the cost
// asked.
//
// Time: CLOCK_MONOTONIC_COARSE (5 ns instead of 25) rounded up by its tick, brought to the
// segment's clock when the lease was made; a later reading only decays more. What it refuses is
// decided again by the segment's clock. After a suspend of the machine it may be behind by the
// suspend: at most one lease is then spent late. The stamp of such an answer is the reading used,
// at most a tick ahead.
// remaining() of such an answer counts the rest of the lease as there: this thread can spend it.
// Refund is exact: the last charge of the lease that is not given back yet goes back into it; once
// the lease has ended, TooLate.
// Thread safety: a thread sees its own leases only.
#pragma once
#include <cstdint>

#include "shm/bucket.hpp"
#include "src/limit_state.hpp"

namespace cutwater::detail {

inline constexpr int kThreadLeases = 8;

/// Reads what never changes about the clocks. Called when a Client is made.
void prepare_leases() noexcept;

/// A decision of a limit that is_plain() says no of: by this thread's lease where the limit has
/// leases, else by a charge, after the settings of a new generation were read. `cost` (over 0) and
/// the key were checked.
/// False: the limit is special (decide.hpp), and nothing was done.
bool decide_closely(LimitState& state, shm::KeyHash key, std::uint64_t cost, std::uint64_t& hint,
                    DecisionData& out) noexcept;

/// Undo of an answer by a lease by the thread that got it; false: too late.
bool refund_to_lease(const LimitState& state, const DecisionData& receipt) noexcept;

/// Gives back what this thread holds at client `number`; 0: at every client. At thread end and when
/// a client closes.
void give_back_leases(std::uint64_t number) noexcept;

}  // namespace cutwater::detail
