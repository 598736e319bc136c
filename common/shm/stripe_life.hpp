// SPDX-License-Identifier: Apache-2.0
// Stripes and the lives of the rows they belong to.
//
// The reaper marks a row DEAD, frees its stripes, then the row. A thread that took its row's number
// before and claims after that would hold a stripe nobody ever frees: its client may have attached
// anew meanwhile (the row was given back with the former session), or the process may be killed
// there. So whoever claims looks at its row afterwards, and the owner of the memory looks for
// what a kill between those two leaves. A life that is over never comes back, since generations
// only grow (process_table.hpp), so a look that found one over stays true.
//
// A kill at any instruction leaves the stripe free, or owned by a life that is over until the next
// release_stripes_of_the_over(). Process safety: any; the latter is the daemon's. No allocation.
#pragma once
#include <cstdint>

#include "shm/counters.hpp"

namespace cutwater::shm {

/// claim_stripe() for a row that lives; the shared one when that life is over.
StripeHandle claim_living_stripe(const View& view, StripeOwnerWord owner) noexcept;

/// Frees the stripes whose row is free, has another generation or does not exist; returns how many.
/// Those of a DEAD row are its reaper's.
std::uint32_t release_stripes_of_the_over(const View& view) noexcept;

}  // namespace cutwater::shm
