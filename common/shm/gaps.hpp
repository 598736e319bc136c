// SPDX-License-Identifier: Apache-2.0
// Gaps: what is free of a region that the publisher gives out in runs (lines of the breaker memory,
// cells and waiter records of bulkheads).
//
// Filled once for an apply(), during which nothing becomes free: gaps only shrink, and each size
// goes on where it last found room. 10 000 runs cost 10 000 looks and not 10 000 times all of them.
// Thread safety: one thread. Private memory; allocates.
#pragma once
#include <cstdint>
#include <map>
#include <vector>

namespace cutwater::shm {

struct Gap {
  std::uint32_t first = 0, count = 0;
  friend bool operator==(const Gap&, const Gap&) = default;
};

class Gaps {
 public:
  Gaps() = default;
  /// Everything below `room` that no run in `used` covers; they come in any order and may overlap.
  Gaps(std::vector<Gap> used, std::uint32_t room);

  /// The first gap with room for `count`, at its beginning; nullptr: none. take() it then.
  const Gap* first_fit(std::uint32_t count);
  /// The one that begins exactly there; nullptr: none.
  const Gap* at(std::uint32_t first);
  /// Not free any more; what of it was no gap before is left alone. No gap may reach beyond it on
  /// both sides.
  void take(Gap run);

  /// In order; some may be empty.
  const std::vector<Gap>& all() const noexcept { return gaps_; }
  /// Gaps looked at by first_fit() so far.
  std::uint64_t looks() const noexcept { return looks_; }

 private:
  std::vector<Gap> gaps_;
  std::map<std::uint32_t, std::size_t> next_;   ///< by size: nothing before it is large enough
  std::uint64_t looks_ = 0;
};

}  // namespace cutwater::shm
