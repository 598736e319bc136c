// SPDX-License-Identifier: Apache-2.0
// Rows whose owners are gone, given back in bounded pieces: with 10 000 breakers and bulkheads a
// look at all of them takes milliseconds, and many processes may end at once.
//
// A row is DEAD from add() on, so nobody takes its things for held. step() goes round all bulkheads
// and breakers, kAtOnce of them a step, for all dead rows together; a row is free when a whole
// round was made since it was added: then its stripes go, and the row last (server/reap.hpp, R2).
// Up to kAtOnce of them a row is given back by one step. Killed in between: the row is DEAD, and
// the next daemon begins its round anew.
// Thread safety: the loop's thread.
#pragma once
#include <cstdint>
#include <vector>

#include "shm/process_table.hpp"
#include "shm/view.hpp"

namespace cutwater::server {

class Reaper {
 public:
  static constexpr std::uint32_t kAtOnce = 2048;

  void add(const shm::View& view, shm::RowTable& rows, shm::RowGrant row);
  /// The rows that this step made free; the next step is due unless idle().
  std::vector<shm::RowGrant> step(const shm::View& view, shm::RowTable& rows);
  bool idle() const noexcept { return dead_.empty(); }
  /// Rounds begin anew: the memory is another one, with the same rows.
  void memory_replaced(const shm::View& view) noexcept;
  /// Bulkheads and breakers looked at so far.
  std::uint64_t looks() const noexcept { return looks_; }

 private:
  struct Dead {
    shm::RowGrant row;
    std::uint32_t left = 0;            ///< to be looked at before its round is whole
  };
  std::vector<Dead> dead_;             ///< oldest first
  std::uint32_t next_ = 0;             ///< bulkheads, then breakers
  std::uint64_t looks_ = 0;
};

}  // namespace cutwater::server
