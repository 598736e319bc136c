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
  /// So many bulkheads are looked at in one look, those behind them in the next ones.
  static constexpr std::uint32_t kAtOnce = 128;

  /// Takes a step of each bulkhead whose step is due, of kAtOnce of them.
  void look(const View& view);

 private:
  struct Look {
    std::int64_t t_ns;
    std::array<std::uint32_t, kHistogramCells> held;
  };
  struct Kept {
    std::uint32_t incarnation = 0;
    std::int64_t next_ns = 0;
    std::int64_t none_ns = 0;                        ///< when nobody had held one yet; 0: unknown
    std::vector<Look> looks;                         ///< oldest first, of the last minute
  };

  static void look_at(const View& view, std::uint32_t index, std::int64_t now, Kept& kept);

  std::vector<Kept> kept_;                           ///< by bulkhead index
  std::uint32_t next_ = 0;                           ///< the first of the next look
  std::uint8_t of_[16] = {};                         ///< which memory they are of
};

/// Upper end of the cell that holds the middle one of these; 0 when there is none.
std::int64_t median_of(const std::uint32_t (&cells)[kHistogramCells]) noexcept;

}  // namespace cutwater::shm
