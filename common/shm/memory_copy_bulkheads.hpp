// SPDX-License-Identifier: Apache-2.0
// Bulkheads' part of a memory that takes another's place (shm/memory_copy.hpp): settings under the
// same indexes, held places under the same numbers with their stamps, tickets that go on, counters.
// Lines begin anew: who waited in the old memory is woken and starts over in the new one, so what
// was handed over and not yet taken is free there.
// Thread safety: the owner of both memories, one thread.
#pragma once
#include <cstdint>

#include <cutwater/result.hpp>

#include "shm/view.hpp"

namespace cutwater::shm {

/// InvalidArgument naming the number to set when what is in use does not fit.
Result<void> check_bulkheads_fit(const View& from, const View& to);

/// Into `image`, which is to be the first one of `to`: settings and names, places and records one
/// behind the other. Before its checksum is taken.
void copy_bulkhead_settings(const View& from, const View& to, std::uint8_t* image) noexcept;

/// Held places, stamps, tickets and counters, when that image is current; then the waiters of the
/// old memory are woken.
void copy_bulkheads(const View& from, const View& to) noexcept;

}  // namespace cutwater::shm
