// SPDX-License-Identifier: Apache-2.0
// verify: reads a whole segment, read-only, and says everything
// that cannot be. It plants nothing, repairs nothing, waits for nothing; on a live segment a
// finding may be a change under way, so it is looked at twice.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "shm/view.hpp"

namespace cutwater::shm {

struct Finding {
  std::string place;                   ///< "bucket slot 4711", "rule 3", "row 9"
  std::string text;                    ///< what is wrong, in a sentence
};

struct VerifyReport {
  std::vector<Finding> findings;       ///< at most kMaxFindings
  std::uint64_t findings_total = 0;
  std::uint64_t slots = 0, members = 0,
                claims = 0;  ///< members: entries in debt or full; claims: tentative
  std::uint64_t in_debt = 0;
  /// By limit index: keys in debt in the limit's first window.
  std::vector<std::uint64_t> in_debt_of_limit;
  std::uint32_t limits = 0, rules = 0, rows = 0, events = 0;
  bool ok() const { return findings_total == 0; }
};
inline constexpr std::size_t kMaxFindings = 100;

/// Image CRC, rule records, limit entries; at most one member per key and pair of groups (I4), tat
/// <= N + D, known rule ids, alt and place agreeing, overflow words of their own limit; rows; event
/// checksums.
VerifyReport verify(const View& view);

}  // namespace cutwater::shm
