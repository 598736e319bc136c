// SPDX-License-Identifier: Apache-2.0
// Who is in a bulkhead: its places and its line, by the row that holds or waits. For people who
// look (`cutwaterctl bulkhead explain`); never on a decision path.
//
// Reads only, beside any daemon and clients: cells and records are read one after the other, so
// what changes meanwhile may be seen half (a place that moves on is counted for the one before or
// the one behind). Bounded by the places and records of one bulkhead (4096 and 16383). Allocates.
// Thread and process safety: any number of readers.
#pragma once
#include <cstdint>
#include <vector>

#include "shm/view.hpp"

namespace cutwater::shm {

struct BulkheadHolder {
  std::uint32_t row = 0;
  std::uint32_t generation = 0;        ///< low 14 bits
  std::uint32_t places = 0;            ///< held, or handed to a call of it that waits
  std::uint32_t waiting = 0;           ///< calls in line, alive and in time
  std::int64_t oldest_ns = 0;          ///< how long its oldest known place is held
  bool gone = false;                   ///< the row does not live with this generation any more
};

struct BulkheadHolders {
  std::vector<BulkheadHolder> all;     ///< most places first, then most calls in line, then by row
  std::uint32_t next_row = 0;          ///< first in line without a place handed to it; 0 = nobody
  std::int64_t next_left_ns = 0;       ///< how long it still waits
};

/// False: no such bulkhead in the rules in force, or its places lie out of bounds.
bool read_bulkhead_holders(const View& view, std::uint32_t index, BulkheadHolders& out);

}  // namespace cutwater::shm
