// SPDX-License-Identifier: Apache-2.0
// Everything a person may ask of one bulkhead, in whole sentences: what the next caller gets first
// (as rule/bulkhead_text.hpp says it to that caller), then who holds how many places, for whom the
// next one goes, and the settings that bear on it. The daemon's answers and the tool reading a dead
// daemon's memory print the same sentences, because both take them from here. Pure; allocates.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "rule/bulkhead_text.hpp"

namespace cutwater::rule {

/// So many processes are named one by one, those with most places first; the rest is summed up.
inline constexpr std::size_t kHoldersNamed = 8;

/// One process in a bulkhead.
struct BulkheadShare {
  std::uint32_t pid = 0;        ///< 0 = not known; then `row` names it
  std::uint32_t row = 0;
  std::uint32_t places = 0;     ///< held by it, or on their way to it
  std::uint32_t waiting = 0;    ///< its calls in line
  std::int64_t oldest_ns = 0;   ///< how long its oldest place is held; 0 = unknown
  bool gone = false;            ///< it does not live any more, its places are not yet given back
};

/// What stands beside the story of a bulkhead that is looked at.
struct BulkheadAround {
  bool enabled = true;
  bool pattern = false;                ///< the pattern's own places, shared by names beyond it
  std::uint32_t max_waiting = 0;
  std::uint64_t max_wait_ns = 0;       ///< 0 nobody waits; kWaitForever
  std::uint64_t max_hold_ns = 0;       ///< 0 off
  std::int64_t median_ns = 0;          ///< how long places are held, of the last minute; 0 unknown
  std::int64_t retry_after_ns = 0;     ///< what a refusal would say
  std::vector<BulkheadShare> shares;   ///< any order
  /// Who is first in line and has no place handed to it yet: its row, 0 = nobody.
  std::uint32_t next_row = 0;
  std::int64_t next_left_ns = 0;       ///< and how long it still waits
};

/// Sentences without a capital and without a full stop, most important first; never empty.
std::vector<std::string> explain_lines(const BulkheadStory& story, const BulkheadAround& around);

}  // namespace cutwater::rule
