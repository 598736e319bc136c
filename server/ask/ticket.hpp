// SPDX-License-Identifier: Apache-2.0
// The ticket of an ENTER: everything an admission holds, as at most wire::kMaxTicket opaque bytes
// that the client brings back with OUTCOME. The daemon keeps nothing for it but one bit
// (holder.hpp), so a ticket outlives the daemon: PRESENT brings it back to the next one.
//
//   0 form: 0-2 kind of call | 8 a breaker's call | 16 a place | 32 a cell of the call
//   1 row u16 | 3 generation, low 16 bits                       whose it is
//   serial u32, which says whether it was used; start ns, low 56 bits
//   breaker: index u16, incarnation u32, epoch u32, cell u8;
//            with a cell (a probe, a tracked call) its second word: the first is row, generation
//            and epoch again
//   place:   bulkhead u16, incarnation u32, cell u24, take u32 (its word is row and generation
//            again)
//
// Incarnations are mixed with the memory's secret, so a ticket of another memory names nothing
// here; one that took another's place has its secret, and its breakers and bulkheads where they
// were.
// A client can write what it likes: all of it is compared before it is used (row with the session,
// indexes with private bounds, words by a swap), so a made-up ticket is worth no more than what its
// own row holds. Pure. Thread safety: functions without state.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "shm/breaker/breaker.hpp"
#include "shm/bulkhead/bulkhead.hpp"
#include "shm/process_table.hpp"

namespace cutwater::server {

struct Ticket {
  shm::RowGrant row;                   ///< of the generation only the low 16 bits are kept
  std::uint32_t serial = 0;
  std::int64_t start_ns = 0;           ///< segment time of the grant
  bool has_breaker = false;
  shm::BreakerRef breaker;
  shm::BreakerCall call;               ///< its start is start_ns
  bool has_place = false;
  shm::BulkheadRef bulkhead;
  std::uint32_t cell = 0;              ///< of the place, below 2^24
  std::uint32_t take = 0;

  bool is_probe() const noexcept { return has_breaker && call.kind == shm::CallKind::Probe; }
  /// It holds a cell that others wait for.
  bool holds() const noexcept { return has_place || has_cell(); }
  /// A probe's, or the one by which a call that hangs is seen.
  bool has_cell() const noexcept { return has_breaker && !(call.ticket == Word16{}); }
  /// The place as the row of the ticket holds it.
  shm::PlaceTicket place() const noexcept {
    return {shm::pack_held({row.index, row.generation}, take), start_ns, cell};
  }
  void set_place(shm::BulkheadRef of, const shm::PlaceTicket& held) noexcept {
    has_place = true;
    bulkhead = of;
    cell = held.cell;
    take = shm::unpack_place(held.cell_value).take;
  }
};

/// `life`: memory_mark() of the memory it is of.
std::string to_ticket(const Ticket& ticket, std::uint32_t life);
/// nullopt: not bytes of to_ticket(). The start is completed to the last 2^56 ns before `now_ns`.
std::optional<Ticket> ticket_of(std::string_view bytes, std::uint32_t life, std::int64_t now_ns);
/// True when `row` is the one the ticket names.
bool is_of(const Ticket& ticket, shm::RowGrant row) noexcept;
/// What a memory's tickets are mixed with.
std::uint32_t memory_mark(const shm::View& view) noexcept;

}  // namespace cutwater::server
