// SPDX-License-Identifier: Apache-2.0
// Gives back what a dead owner held, in an order that a kill of the daemon between any two steps
// does not spoil: the row is FREE only after nothing of it is left (R2), so the next daemon finds a
// DEAD row and starts over, and no successor ever shares a row with what its predecessor left.
// Each step is bound to (row, generation): doing it twice, or for a row granted anew, does nothing.
#pragma once
#include <array>
#include <cstdint>

#include "shm/process_table.hpp"
#include "shm/view.hpp"

namespace cutwater::server {

enum class ReapStep : std::uint8_t { MarkDead, FreePlaces, FreeProbes, FreeStripes, FreeRow };

/// The steps in their order.
std::array<ReapStep, 5> reap_order() noexcept;

void carry_out(ReapStep step, const shm::View& view, shm::RowTable& rows, shm::RowGrant row);

/// All steps, and the count in the statistics.
void reap(const shm::View& view, shm::RowTable& rows, shm::RowGrant row);

}  // namespace cutwater::server
