// SPDX-License-Identifier: Apache-2.0
// Which places of patterns may go to other names: setting `idle` of breakers and bulkheads.
//
// A place whose name nobody used for `idle` (nothing was counted of it: no outcome, no refusal, no
// place taken) and that rests (PatternSide::rests) makes room as soon as its pattern has no free
// place left, and not before: an unused breaker costs nothing while nobody wants its place. The
// owner of the memory looks once a second and publishes once for all that may go
// (Publisher::make_room); I1 of shm/pattern_layout.hpp says what its callers see.
// Ages are known since this looker began, so they start anew with each daemon. Without a daemon
// nobody makes room. A breaker's wait while OPEN does not count towards `idle`: it keeps callers
// out until it is over. A call of a closed breaker that lasts longer than `idle` does not show: its
// outcome comes late and is counted as stale.
// Thread safety: one thread, the owner's. Allocates. Bounds: kPlacesAtOnce a look.
#pragma once
#include <cstdint>
#include <vector>

#include "rule/breaker_settings.hpp"
#include "rule/bulkhead_settings.hpp"
#include "shm/pattern_place.hpp"

namespace cutwater::shm {

/// A place under the incarnation it was looked at.
struct PlaceRef {
  std::uint32_t index = kNoLine;
  std::uint32_t incarnation = 0;
};
struct UnusedPlaces {
  std::vector<PlaceRef> breakers, bulkheads;
  bool empty() const noexcept { return breakers.empty() && bulkheads.empty(); }
};

class IdlePlaces {
 public:
  /// Counters of so many places are read in one look, and so many are given up at most.
  static constexpr std::uint32_t kPlacesAtOnce = 256;

  /// `breakers` and `bulkheads` as published. A memory that took the place of another one begins
  /// with new ages.
  UnusedPlaces look(const View& view, const std::vector<rule::BreakerSettings>& breakers,
                    const std::vector<rule::BulkheadSettings>& bulkheads);

 private:
  struct Seen {
    std::uint32_t incarnation = 0;     ///< 0: not looked at
    std::uint64_t uses = 0;
    std::int64_t since_ns = 0;         ///< segment time from which `uses` is unchanged
  };
  struct Ages {
    std::vector<Seen> seen;            ///< by index
    std::uint32_t next = 0;
  };
  template <class Settings>
  static std::vector<PlaceRef> look(const PatternSide& side, const std::vector<Settings>& settings,
                                    Ages& ages);
  static void look_on(const PatternSide& side, std::uint64_t current, std::int64_t now,
                      Ages& ages);

  Ages breakers_, bulkheads_;
  std::uint8_t of_[16] = {};           ///< uuid of the memory
};

}  // namespace cutwater::shm
