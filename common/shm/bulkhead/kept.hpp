// SPDX-License-Identifier: Apache-2.0
// What the short ways of a bulkhead need of its settings, as a process keeps it (shm/kept.hpp):
// taking a free place while nobody is in line, and giving it back.
#pragma once
#include <cstddef>
#include <cstdint>

#include "shm/bulkhead/layout.hpp"
#include "shm/kept.hpp"

namespace cutwater::shm {

/// Names of the words.
enum class BulkheadWord : std::uint8_t {
  Ref,       ///< pack_ref()
  Bits,      ///< kKept...
  Head,      ///< BulkheadHead*
  Cells,     ///< u64*: the first cell, all others follow it
  Stamps,    ///< u64*: the stamp of the first
  Limits,    ///< cells:32 | limit:32
  First,     ///< row:32 | cell at which a caller of that row begins to look:32
  Counters,  ///< bytes from a stripe's first counter to those of this bulkhead
};
inline constexpr std::size_t kBulkheadWords = 8;

/// Switched on, at least one place, and all cells lie in one run.
inline constexpr std::uint64_t kKeptPlaces = 1;
/// max-hold is set: stamps are exact.
inline constexpr std::uint64_t kKeptExact = 2;

using BulkheadKept = Kept<kBulkheadWords>;

/// What one process keeps of one bulkhead in one memory, in its own: shared by its threads.
struct BulkheadLocal {
  BulkheadKept kept;
};

}  // namespace cutwater::shm
