// SPDX-License-Identifier: Apache-2.0
// What a memory that takes another's place inherits: limits with their rules, overrides, patterns
// and calendars under the same indexes and ids, keys in debt, bans, overflow words, rows, counters
// (summed into the shared stripe), the stepped clock.
//
// The new memory has the same secret, epoch and number of first groups (View::g0), so place and tag
// of an entry give back where it lies there, although no key is stored; everything else may be of
// another size. An entry that finds no place adds its debt to the overflow word of its limit (the
// larger of both), so no debt is forgotten; a ban that finds none is counted and has to become an
// override. Entries that are full are not copied. Events go over under their numbers, as many as
// both rings hold; lists of the busiest keys begin anew. Breakers go over as they are: state with
// epoch, attempts and deadline, also one set by hand, window, probe cells with who holds them,
// users, counters. A call that ends after the mark ends in the successor, by exactly the cell it
// had taken.
//
// Bulkheads keep held places under their numbers; lines begin anew
// (shm/memory_copy_bulkheads.hpp).
//
// Nobody may decide in either memory meanwhile: the old one is superseded before, the new one not
// yet offered. Killed in between: copied again, from the beginning, into a fresh memory.
// Cost: ~10 ns a slot. Thread safety: the owner of both, one thread.
#pragma once
#include <cstdint>

#include <cutwater/result.hpp>

#include "shm/view.hpp"

namespace cutwater::shm {

struct CopyReport {
  std::uint64_t entries = 0;         ///< keys in debt that have a place
  std::uint64_t shared = 0;          ///< ... whose debt went to an overflow word
  std::uint64_t bans = 0, bans_lost = 0;
  std::uint32_t rows = 0;
};

/// InvalidArgument naming the number to set when something in use does not fit. Writes nothing.
Result<void> check_fits(const View& from, const View& to);

/// Copies. `to` is fresh and passed check_fits(); the image it gets is its first, generation one
/// above that of `from`.
Result<CopyReport> copy_memory(const View& from, const View& to);

}  // namespace cutwater::shm
