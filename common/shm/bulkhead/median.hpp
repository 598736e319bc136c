// SPDX-License-Identifier: Apache-2.0
// HoldMedians: how long places were held in the last minute, told to those who are refused.
//
// Belongs to the owner of the memory (the daemon, an in-memory client), which calls look() once a
// second or at a refusal. Every 10 s it keeps the histogram of each bulkhead in its own memory, and
// writes the median of what was given back since the look a minute ago into the bulkhead's head. A
// bulkhead of which nothing was given back in that time tells nothing. Without an owner the last
// median stays believed for two minutes, then it is unknown (1 s).
// Thread safety: one thread. Allocates; never on a decision path.
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "shm/bulkhead/bulkhead.hpp"

namespace cutwater::shm {

class HoldMedians {
 public:
  static constexpr std::int64_t kStepNs = 10'000'000'000;
  static constexpr std::size_t kSteps = 6;           ///< of them make the minute

  /// Takes a step of each bulkhead when one is due; else nothing.
  void look(const View& view);

 private:
  struct Look {
    std::int64_t t_ns;
    std::array<std::uint32_t, kHistogramCells> held;
  };
  struct Kept {
    std::uint32_t incarnation = 0;
    std::vector<Look> looks;                         ///< oldest first, of the last minute
  };

  std::vector<Kept> kept_;                           ///< by bulkhead index
  std::int64_t next_ns_ = 0;
  std::uint8_t of_[16] = {};                         ///< which memory they are of
};

/// Upper end of the cell that holds the middle one of these; 0 when there is none.
std::int64_t median_of(const std::uint32_t (&cells)[kHistogramCells]) noexcept;

}  // namespace cutwater::shm
