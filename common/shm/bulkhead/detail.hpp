// SPDX-License-Identifier: Apache-2.0
// What the files of shm/bulkhead/*.cpp share: a bulkhead's parts with private bounds, the scan that
// every hand-over is decided by, and the ways a place goes on. Not for anybody else.
#pragma once
#include <bitset>
#include <cstdint>

#include "base/guard.hpp"
#include "shm/bulkhead/bulkhead.hpp"
#include "shm/bulkhead/quick.hpp"
#include "shm/pattern_place.hpp"

namespace cutwater::shm {

/// Rounds of enter before the conservative answer: refused, counted as contention.
inline constexpr int kBulkheadRounds = 64;
/// Holding time in a refusal while the median is not known.
inline constexpr std::int64_t kUnknownHoldNs = 1'000'000'000;
/// A median older than this is not known any more.
inline constexpr std::int64_t kMedianGoodNs = 120'000'000'000;

/// A private copy of the configuration; its extents were compared with private bounds.
struct BulkheadParts {
  const View* view = nullptr;
  std::uint32_t index = 0;
  std::uint64_t current = 0;         ///< `current` the copy was read under
  BulkheadHead* head = nullptr;
  BulkheadConfig config;
  std::uint32_t cells = 0;           ///< all that are counted
  std::uint32_t records = 0;

  std::uint32_t limit() const noexcept { return config.limit; }
  std::uint64_t* cell(std::uint32_t i) const noexcept {
    return view->bulkhead_cells + place_of(config.cells, i);
  }
  std::uint64_t* stamp(std::uint32_t i) const noexcept {
    return view->bulkhead_stamps + place_of(config.cells, i);
  }
  WaiterRecord* record(std::uint32_t i) const noexcept {
    return view->waiters + place_of(config.records, i);
  }
  /// Where number `i` of these runs lies; `i` is below their sum.
  static std::uint32_t place_of(const Extent (&extents)[kExtents], std::uint32_t i) noexcept {
    std::size_t part = 0;
    while (i >= extents[part].count) i -= extents[part++].count;
    return extents[part].first + i;
  }
};
/// False: no such bulkhead any more, no name has this place of a pattern, or its places lie out of
/// bounds (counted as damage).
bool read_parts(const View& view, BulkheadRef ref, BulkheadParts& out) noexcept;
bool read_parts(const View& view, std::uint32_t index, BulkheadParts& out) noexcept;
/// Keeps what the short ways need of them (shm/bulkhead/kept.hpp), for later calls.
void keep_bulkhead(const BulkheadParts& parts, const BulkheadCaller& caller) noexcept;
/// Where a caller begins to look: processes begin at different lines of the cells.
inline std::uint32_t first_look(const BulkheadCaller& caller, std::uint32_t limit) noexcept {
  return caller.row * 8 % limit;
}
/// For whoever holds a place or a record of before: also when the bulkhead was taken out, or the
/// place of a pattern went to another name. What it holds is told by its exact value, which nobody
/// else's cell or record has; where the index has other runs by now, it is not found.
/// Without an incarnation (the tick, a copy): whatever lies there.
bool read_parts_left(const View& view, BulkheadRef ref, BulkheadParts& out) noexcept;
/// The rules changed since they were read: reads them again. False: gone; `parts` stays as it was.
bool refresh_parts(BulkheadParts& parts) noexcept;

/// seq_cst: who frees a cell or joins the line then looks at the other; one of the two sees it.
inline std::uint64_t load_line(const BulkheadParts& parts) noexcept {
  return __atomic_load_n(&parts.head->line, __ATOMIC_SEQ_CST);
}
inline std::uint64_t load_cell(const std::uint64_t* cell) noexcept {
  return __atomic_load_n(cell, __ATOMIC_SEQ_CST);
}
inline bool swap_cell(std::uint64_t* cell, std::uint64_t from, std::uint64_t to) noexcept {
  return __atomic_compare_exchange_n(cell, &from, to, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/// Cells or records of these runs together.
inline std::uint32_t total_of(const Extent (&extents)[kExtents]) noexcept {
  std::uint32_t total = 0;
  for (const Extent& extent : extents) total += extent.count;
  return total;
}
/// An entry that is nobody's; its next owner is told apart from its last one.
inline BulkheadConfig emptied(const BulkheadConfig& config) noexcept {
  BulkheadConfig out{};
  out.incarnation = config.incarnation;
  return out;
}
/// Nobody alive holds a place of these runs, or is in line.
bool nobody_is_in(const View& view, const BulkheadConfig& config) noexcept;

/// True when the row lives with a generation whose low 14 bits are these.
bool place_owner_alive(const View& view, std::uint32_t row, std::uint32_t generation) noexcept;

/// In time: its deadline, rounded up, lies ahead.
inline bool in_time(const Waiter& waiter, std::int64_t now) noexcept {
  return static_cast<std::uint64_t>(now) < waiter.deadline * kDeadlineNs;
}

/// One reading of the line, then of all cells, then of all records, in this order.
struct BulkheadScan {
  std::uint64_t line = 0;
  std::uint32_t occupied = 0;        ///< cells not free, void ones included
  std::uint32_t first = kNoLine;     ///< record with the lowest ticket that waits, is alive and in
                                     ///< time, and has no place handed to it
  std::uint64_t first_ticket = 0;
  std::uint32_t waiting = 0;         ///< alive and in time
  bool anybody = false;              ///< somebody waits whose row lives
  std::bitset<rule::kMaxConcurrentCalls> voids;
  std::uint64_t cell[rule::kMaxConcurrentCalls];   ///< as read, [0, parts.cells)

  /// The lowest cell that may be given under this limit; kNoLine when there is none.
  std::uint32_t usable(const BulkheadParts& parts) const noexcept;
};
void scan_bulkhead(const BulkheadParts& parts, std::int64_t now, BulkheadScan& out) noexcept;

/// Cells that are not free.
std::uint32_t count_places(const BulkheadParts& parts) noexcept;
/// K1: after a take, with the limit read anew: too many are out, or this cell is given no more.
bool overshot(BulkheadParts& parts, std::uint32_t cell) noexcept;

/// A place that its taker has just made its own.
struct HeldPlace {
  std::uint64_t* place = nullptr;    ///< where the cell lies, whatever a reload does to the numbers
  std::uint64_t value = 0;
  std::uint32_t cell = 0;
};
/// Passes on a cell that is mine (HELD by me, or HANDED to me): to the first in line, or to nobody.
/// False: it was not mine any more. `look_first`: a quiet line is taken at its word.
bool pass_place(BulkheadParts& parts, HeldPlace held, bool look_first,
                StripeHandle stripe) noexcept;
/// Hands free and void cells to those in line until nothing is left to hand over.
void serve_line(BulkheadParts& parts, StripeHandle stripe) noexcept;
void wake_waiter(WaiterRecord* record) noexcept;

/// What a taker does last: since when it holds.
PlaceTicket stamp_place(const BulkheadParts& parts, HeldPlace held, std::int64_t now) noexcept;

/// A refusal with its numbers.
BulkheadEntry refusal_of(const BulkheadParts& parts, Reason reason, std::int64_t now) noexcept;
BulkheadEntry degraded_place(const View& view, BulkheadRef ref, StripeHandle stripe) noexcept;
/// Age of the oldest known holder, and its row.
struct OldestHolder { std::int64_t ns = 0; std::uint32_t row = 0; };
OldestHolder oldest_holder(const BulkheadParts& parts, std::int64_t now) noexcept;
std::int64_t median_hold(const BulkheadParts& parts, std::int64_t now) noexcept;
/// What this configuration, of an image or a copy, says of the name of `index`.
PatternEntry bulkhead_entry(const View& view, const BulkheadConfig& config,
                            std::uint32_t index) noexcept;
void bulkhead_name(const View& view, std::uint64_t current, std::uint32_t index, char* out,
                   std::size_t size) noexcept;

/// All its counters together: changes with every use.
std::uint64_t bulkhead_uses(const View& view, std::uint32_t index) noexcept;
void count_held(const View& view, StripeHandle stripe, std::uint32_t index,
                std::int64_t duration_ns) noexcept;
void count_waited(const View& view, StripeHandle stripe, std::uint32_t index,
                  std::int64_t duration_ns) noexcept;

}  // namespace cutwater::shm
