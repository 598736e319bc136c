// SPDX-License-Identifier: Apache-2.0
// The ticket of an ENTER: everything an admission holds, as at most wire::kMaxTicket opaque bytes
// that the client brings back with OUTCOME. The daemon keeps nothing for it but one bit (holder.hpp),
// so a ticket outlives the daemon: PRESENT brings it back to the next one.
//
//   0 form: 0-2 kind of call | 8 a breaker's call | 16 a place | 32 both words of a cell
//   1 row u16 | 3 generation, low 16 bits                       whose it is
//   breaker: index u16, incarnation u32, epoch u32, cell u8, start ns, low 56 bits;
//            a probe: the cell's second word (the first is row, generation and epoch again)
//   place:   bulkhead u16, incarnation u32, cell u24, its word u64
//   serial u32, which says whether it was used; not of a probe with a place, whose cells say it
//
// Incarnations are mixed with the memory's uuid, so a ticket of another memory names nothing here.
// A client can write what it likes: all of it is compared before it is used (row with the session,
// indexes with private bounds, words by a swap), so a made-up ticket is worth no more than what its
// own row holds. Pure. Thread safety: functions without state.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "shm/breaker.hpp"
#include "shm/process_table.hpp"

namespace cutwater::server {

/// A held place, as its cell says it.
struct HeldPlace {
  std::uint32_t bulkhead = shm::kNoLine;
  std::uint32_t incarnation = 0;
  std::uint32_t cell = 0;              ///< below 2^24
  std::uint64_t word = 0;              ///< exactly what was put into the cell
};

struct Ticket {
  shm::RowGrant row;                   ///< of the generation only the low 16 bits are kept
  std::uint32_t serial = 0;            ///< see has_serial()
  bool has_breaker = false;
  shm::BreakerRef breaker;
  shm::BreakerCall call;
  bool has_place = false;
  HeldPlace place;

  bool is_probe() const noexcept { return has_breaker && call.kind == shm::CallKind::Probe; }
  /// Else its cells alone say whether it was used.
  bool has_serial() const noexcept { return !(is_probe() && has_place); }
  /// It holds a cell that others wait for.
  bool holds() const noexcept { return has_place || is_probe(); }
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
