// SPDX-License-Identifier: Apache-2.0
// The short ways of a bulkhead, for callers that keep its settings (BulkheadCaller::local): a free
// place while nobody is in line, and giving it back to nobody. The same algorithm as
// enter_bulkhead() and leave_bulkhead(), which try these first, in the same order of the same
// accesses; whatever is out of the ordinary goes the long way.
//
// Time. The clock is as dear as both swaps together. So a place says since when it is held by the
// coarse clock (base/coarse_clock.hpp), at most one tick of the kernel too early; and how long it
// was held is measured exactly only for the first place that a thread takes in each tick. For the
// others the difference of ticks counts: it goes into the sum, which it makes right on the whole,
// and into the histogram when it is not 0. A thread that takes less than one place in a tick is
// measured exactly at each. With max-hold, and on a stepped clock, every place is.
//
// Killed anywhere: as shm/bulkhead/bulkhead.hpp. Process and thread safety, bounds: the same.
// Nothing here calls the kernel.
#pragma once
#include <algorithm>
#include <cstdint>

#include "base/coarse_clock.hpp"
#include "base/sync_point.hpp"
#include "shm/breaker/breaker.hpp"
#include "shm/bulkhead/bulkhead.hpp"
#include "shm/supersede.hpp"

namespace cutwater::shm {

/// Take numbers a thread draws at once.
inline constexpr std::uint32_t kTakeBlock = 4096;

namespace detail {

/// What a thread has left of its take numbers, and the tick in which it last measured a place.
struct ThreadPlaces {
  std::uint32_t number = 0, left = 0;
  std::int64_t measured_tick = 0;
};
// initial-exec: one instruction instead of a call; 16 bytes, so the library can be loaded late too.
[[gnu::tls_model("initial-exec")]] extern thread_local constinit ThreadPlaces thread_places;
/// Draws the next block.
void draw_takes(ThreadPlaces& places) noexcept;

/// Cells that are not free.
[[gnu::noinline]] std::uint32_t count_all(const std::uint64_t* cells, std::uint32_t all) noexcept;
/// Somebody is in line since the cell was freed.
[[gnu::noinline]] void serve_slowly(const View& view, std::uint64_t ref,
                                    StripeHandle stripe) noexcept;

[[gnu::always_inline]] inline BulkheadCounters* bulkhead_counters_at(
    StripeHandle stripe, std::uint64_t offset) noexcept {
  return reinterpret_cast<BulkheadCounters*>(stripe.counters + offset);
}
[[gnu::always_inline]] inline void count_place(StripeHandle stripe, std::uint64_t offset,
                                               BulkheadCounter counter) noexcept {
  if (stripe.counters == nullptr) [[unlikely]] return;
  add_to(stripe.shared,
         &bulkhead_counters_at(stripe, offset)->value[static_cast<std::size_t>(counter)],
         std::uint64_t{1});
}

/// Adds a holding time; `ns` 0 of a place that was not measured says nothing but to the sum.
[[gnu::always_inline]] inline void count_holding(StripeHandle stripe, std::uint64_t offset,
                                                 std::int64_t ns, bool measured) noexcept {
  if (stripe.counters == nullptr || (ns <= 0 && !measured)) [[likely]] return;
  BulkheadCounters& counters = *bulkhead_counters_at(stripe, offset);
  const std::int64_t held = std::max<std::int64_t>(ns, 0);
  add_to(stripe.shared, &counters.held[histogram_cell(held)], std::uint32_t{1});
  add_to(stripe.shared, &counters.value[static_cast<std::size_t>(BulkheadCounter::HeldUs)],
         static_cast<std::uint64_t>(held) / 1'000);
}

/// Since when a place just taken is held. `exact`: it has to be measured.
[[gnu::always_inline]] inline std::int64_t held_since(const View& view, bool exact,
                                                      bool& coarse) noexcept {
  coarse = false;
  if (exact || view.clock.is_stepped()) [[unlikely]] return view.clock.now();
  const std::int64_t tick = coarse_boottime_ns();
  ThreadPlaces& mine = thread_places;
  if (mine.measured_tick != tick) [[unlikely]] {
    mine.measured_tick = tick;
    return view.clock.now();
  }
  coarse = true;
  return view.clock.from_boottime(tick);
}

/// How long it was held, by the clock its start is of.
[[gnu::always_inline]] inline std::int64_t held_for(const View& view,
                                                    const PlaceTicket& place) noexcept {
  const bool coarse = place.coarse && !view.clock.is_stepped();
  const std::int64_t now =
      coarse ? view.clock.from_boottime(coarse_boottime_ns()) : view.clock.now();
  return now - place.start_ns;
}

}  // namespace detail

/// The next take number of this process.
[[gnu::always_inline]] inline std::uint32_t next_take() noexcept {
  detail::ThreadPlaces& mine = detail::thread_places;
  if (mine.left == 0) [[unlikely]] detail::draw_takes(mine);
  --mine.left;
  return guarded(Guard::PlaceTakeNumber) ? mine.number++ : 0;
}

/// A place taken quickly.
struct QuickPlace {
  PlaceTicket ticket;
  std::uint64_t* at = nullptr;         ///< its cell
  std::uint32_t limit = 0;
};
/// What became of a try to take a place quickly.
enum class QuickTake : std::uint8_t {
  No = 0,       ///< nothing was done
  Taken = 1,    ///< `out` is held
  Unsure = 2,   ///< `out` is held, and may be one too many, or by rules that are over: to be judged
};

/// Takes a free place. `ref`: as pack_ref(). Taken: counted.
[[gnu::always_inline]] inline QuickTake take_quickly(const View& view, std::uint64_t ref,
                                                     const BulkheadCaller& caller,
                                                     QuickPlace& out) noexcept {
  using enum BulkheadWord;
  if (caller.local == nullptr || caller.row == 0) [[unlikely]] return QuickTake::No;
  const BulkheadKept& kept = caller.local->kept;
  const std::uint64_t begun = kept.begin();
  const std::uint64_t bits = kept.word<Bits>(), kept_ref = kept.word<Ref>();
  const std::uint64_t limits = kept.word<Limits>(), first = kept.word<First>();
  const auto* const head = reinterpret_cast<const BulkheadHead*>(kept.word<Head>());
  auto* const cells = reinterpret_cast<std::uint64_t*>(kept.word<Cells>());
  auto* const stamps = reinterpret_cast<std::uint64_t*>(kept.word<Stamps>());
  const std::uint64_t counters = kept.word<Counters>();
  if (!BulkheadKept::holds(view, begun) || (bits & kKeptPlaces) == 0 || kept_ref != ref)
      [[unlikely]] return QuickTake::No;
  // seq_cst, all of the line and of cells: as load_line() and load_cell().
  if (!line_is_quiet(__atomic_load_n(&head->line, __ATOMIC_SEQ_CST))) return QuickTake::No;
  const auto limit = static_cast<std::uint32_t>(limits);
  const auto all = static_cast<std::uint32_t>(limits >> 32);
  std::uint32_t cell = first >> 32 == caller.row ? static_cast<std::uint32_t>(first)
                                                 : caller.row * 8 % limit;
  for (std::uint32_t n = 0; __atomic_load_n(cells + cell, __ATOMIC_SEQ_CST) != 0; ++n) {
    if (n == limit) return QuickTake::No;
    if (++cell == limit) cell = 0;
  }
  const std::uint32_t take = next_take();
  std::uint64_t free = 0;
  const std::uint64_t value = pack_held({caller.row, caller.generation}, take);
  const std::int64_t since = detail::held_since(view, (bits & kKeptExact) != 0, out.ticket.coarse);
  CUTWATER_SYNC_POINT("bulkhead.before_take");
  if (!__atomic_compare_exchange_n(cells + cell, &free, value, false, __ATOMIC_SEQ_CST,
                                   __ATOMIC_SEQ_CST)) {
    return QuickTake::No;
  }
  CUTWATER_SYNC_POINT("bulkhead.taken");
  out.ticket.cell_value = value;
  out.ticket.start_ns = since;
  out.ticket.cell = cell;
  out.at = cells + cell;
  out.limit = limit;
  if (guarded(Guard::PlaceCountedAfterTake)) {
    // K1, with the limit read anew, which it is when the rules are the same. Where there are no
    // more cells than places, no more than there are places can be held.
    std::uint32_t occupied = 0;
    if (all != limit) [[unlikely]] occupied = detail::count_all(cells, all);
    if (occupied > limit || !BulkheadKept::holds(view, begun)) [[unlikely]] {
      return QuickTake::Unsure;
    }
  }
  // relaxed: read by people and by max-hold, which believe it by its take number only.
  __atomic_store_n(stamps + cell, pack_stamp(since, take), __ATOMIC_RELAXED);
  detail::count_place(caller.stripe, counters, BulkheadCounter::Granted);
  return QuickTake::Taken;
}

/// What enter_bulkhead() answers for it; Unsure is judged here. Not for No.
BulkheadEntry entry_of(const View& view, BulkheadRef ref, const BulkheadCaller& caller,
                       const QuickPlace& place, QuickTake how) noexcept;

/// Gives it back. False: nothing was done; ask leave_bulkhead(). `moved`: Left::Moved, else it was
/// returned and counted.
[[gnu::always_inline]] inline bool leave_quickly(const View& view, std::uint64_t ref,
                                                 const BulkheadCaller& caller,
                                                 const PlaceTicket& place, bool& moved) noexcept {
  using enum BulkheadWord;
  if (caller.local == nullptr) [[unlikely]] return false;
  const BulkheadKept& kept = caller.local->kept;
  const std::uint64_t begun = kept.begin();
  const std::uint64_t bits = kept.word<Bits>(), kept_ref = kept.word<Ref>();
  const std::uint64_t limits = kept.word<Limits>(), counters = kept.word<Counters>();
  const auto* const head = reinterpret_cast<const BulkheadHead*>(kept.word<Head>());
  auto* const cells = reinterpret_cast<std::uint64_t*>(kept.word<Cells>());
  if (!BulkheadKept::holds(view, begun) || (bits & kKeptPlaces) == 0 || kept_ref != ref ||
      place.cell >= limits >> 32) [[unlikely]] {
    return false;
  }
  if (!line_is_quiet(__atomic_load_n(&head->line, __ATOMIC_SEQ_CST))) return false;
  const bool timed = place.start_ns != 0;
  const std::int64_t held = timed ? detail::held_for(view, place) : 0;
  CUTWATER_SYNC_POINT("bulkhead.before_free");
  std::uint64_t mine = place.cell_value;
  if (!__atomic_compare_exchange_n(cells + place.cell, &mine, std::uint64_t{0}, false,
                                   __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    return false;                                    // stale: the long way says so
  }
  CUTWATER_SYNC_POINT("bulkhead.freed");
  if (guarded(Guard::PlaceLookAfterFree) &&
      !line_is_quiet(__atomic_load_n(&head->line, __ATOMIC_SEQ_CST))) [[unlikely]] {
    detail::serve_slowly(view, ref, caller.stripe);
  }
  moved = overtaken(view);
  if (moved) [[unlikely]] return true;
  detail::count_place(caller.stripe, counters, BulkheadCounter::Returned);
  if (timed) detail::count_holding(caller.stripe, counters, held, !place.coarse);
  return true;
}

}  // namespace cutwater::shm
