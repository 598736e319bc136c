// SPDX-License-Identifier: Apache-2.0
// What one row has of all breakers and bulkheads, for the daemon: connections of a former daemon
// are kept while they hold something, but nobody answers who stood in line for them any more.
// Bounds: one look at each cell and record there is. Thread safety: any number at once.
#pragma once
#include "shm/counters.hpp"
#include "shm/process_table.hpp"
#include "shm/view.hpp"

namespace cutwater::shm {

/// True: a place, a probe or the cell of a call that is out is this row's. A place also where a
/// reload took the bulkhead out: it is kept for whoever puts that back. Reads only.
bool row_holds(const View& view, RowGrant row) noexcept;

/// Takes the row's waiters out of every line; what was handed to them goes to the next. Nobody may
/// wait by this row meanwhile. Each step is a swap of exactly what was read: killed in between, it
/// is done again by the next.
void empty_line_of(const View& view, RowGrant row, StripeHandle stripe) noexcept;

}  // namespace cutwater::shm
