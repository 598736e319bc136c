// SPDX-License-Identifier: Apache-2.0
// What the daemon keeps of a session that enters breakers and bulkheads over the socket: which of
// its tickets were used, and what a mapped process keeps for itself of each breaker. Everything
// else is in the tickets and in the memory.
//
// It belongs to the session's row: it goes with it over a cut connection, and a successor of the
// row starts anew. Losing it (a daemon restart) costs no cell: PRESENT brings tickets back as new
// ones.
// Bounds: kTickets tickets of a session are told apart; whether an older one was used is not known.
// As many holders as rows, as many locals as breakers. Thread safety: the loop's thread.
#pragma once
#include <bitset>
#include <cstdint>
#include <map>
#include <memory>

#include "shm/breaker/breaker.hpp"
#include "shm/process_table.hpp"

namespace cutwater::server {

/// Serials of tickets, and which were used.
class TicketBook {
 public:
  /// Calls of one session that may be under way before the oldest is forgotten.
  static constexpr std::uint32_t kTickets = 8192;

  std::uint32_t issue();
  enum class Spent : std::uint8_t {
    First,       ///< once for each serial that was issued and is among the last kTickets
    Again,       ///< it is among them, and was spent
    Forgotten,   ///< older, or never issued: the cell it names says what it is worth
  };
  Spent spend(std::uint32_t serial) noexcept;

 private:
  std::unique_ptr<std::bitset<kTickets>> open_;   ///< by serial; from the first issue on
  std::uint32_t next_ = 1;
};

struct Holder {
  shm::RowGrant row;                 ///< index 0: the session has none
  TicketBook tickets;
  std::uint64_t holding = 0;         ///< tickets with a cell that were not brought back yet
  std::map<std::uint32_t, shm::BreakerLocal> locals;   ///< by breaker
};

class HolderBook {
 public:
  /// The holder of this row; a new one when the row was granted anew.
  Holder& of(shm::RowGrant row);
  /// Another memory: its breakers are other ones.
  void memory_replaced();
  std::size_t size() const noexcept { return holders_.size(); }

 private:
  std::map<std::uint32_t, Holder> holders_;
};

}  // namespace cutwater::server
