// SPDX-License-Identifier: Apache-2.0
// What a program gives back after the memory it was taken from was superseded (shm/supersede.hpp):
// a place, a call's outcome with its probe or the cell by which it is seen to hang. The successor
// has the same cells under the same numbers, with the same words in them and the same rows, so it
// is given back there by exactly what was taken; what is there no more makes that swap fail.
//
// The order, and why nothing is lost: the mark, the copy, then the daemon answers. A return before
// the mark is in the copy. One after it finds the mark (shm: Left::Moved, Recorded::Moved or
// Overtaken) and attaches to the successor, as a decision does, on its caller's thread. From the
// mark until the daemon answers no successor can be attached: then it is kept here (OwedList) and
// given back by the next attach of this Client, which any ask of it brings about. A process that
// ends, or closes its Client, meanwhile: its row is given back with all it holds.
// A memory that is no successor (other secret: the old one was lost) has nothing of it: dropped.
// Thread safety: everything from any thread. Fork: a child drops its parent's.
#pragma once
#include <atomic>
#include <cstdint>

#include "shm/breaker/breaker.hpp"
#include "shm/bulkhead/bulkhead.hpp"
#include "shm/enter.hpp"

namespace cutwater::detail {

struct BreakerPlace;
struct BulkheadSpot;

/// One thing to be given back: `bulkhead` and a place, or `breaker` and a call.
struct Owed {
  const BulkheadSpot* bulkhead = nullptr;
  shm::PlaceTicket place;
  const BreakerPlace* breaker = nullptr;         ///< where it was taken, as above
  /// Whose cell it is: the name may have moved since. Indexes stay through a move of the memory.
  std::uint64_t ref = 0;
  shm::BreakerCall call;
  shm::BreakerReport report;
  shm::Recorded how = shm::Recorded::Moved;
  std::uint64_t life = 0;                        ///< process_life() of who took it
};

class OwedList {
 public:
  /// Things kept at once; beyond, they stay held until the process ends, and are counted as lost.
  static constexpr std::uint32_t kMost = 4096;

  OwedList() = default;
  OwedList(const OwedList&) = delete;
  OwedList& operator=(const OwedList&) = delete;
  ~OwedList();

  /// Gives it back now, or keeps it.
  void give_back(const Owed& owed) noexcept;
  /// Gives back what is kept; what cannot be, is kept again.
  void settle() noexcept;
  std::uint64_t lost() const noexcept { return lost_.load(std::memory_order_relaxed); }

 private:
  struct Node;
  void keep(const Owed& owed) noexcept;

  std::atomic<Node*> kept_{nullptr};
  std::atomic<std::uint32_t> count_{0};
  std::atomic<std::uint64_t> lost_{0};
};

/// A place of `ref` for which Left::Moved was told at that spot.
void leave_in_successor(const BulkheadSpot& spot, std::uint64_t ref,
                        const shm::PlaceTicket& place) noexcept;
/// What an admission left over on its way; a part that it did not ask for is nullptr.
void give_back_owed(const BulkheadSpot* spot, const BreakerPlace* place, const shm::EnterAsk& asked,
                    const shm::EnterOwed& owed) noexcept;
/// A call of `ref` for which goes_on(how). An outcome without a cell is dropped where it cannot be
/// told now.
void end_in_successor(const BreakerPlace& place, std::uint64_t ref, const shm::BreakerCall& call,
                      shm::BreakerReport report, shm::Recorded how) noexcept;

}  // namespace cutwater::detail
