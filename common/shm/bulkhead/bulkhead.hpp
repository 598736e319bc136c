// SPDX-License-Identifier: Apache-2.0
// Bulkheads in shared memory: places for calls at once, over all processes of the host. What the
// mapped client, the daemon and an in-memory client ask of them.
//
//   BulkheadEntry entry = enter_bulkhead(view, ref, caller);        // never waits
//   if (entry.granted) { ...; leave_bulkhead(view, ref, caller, entry.place); }
//
// A place is a cell that says who holds it: {row, generation, take number}, taken and given back by
// one swap of exactly that value (shm/bulkhead/layout.hpp, K1-K4). There is no count to go wrong:
// who takes counts the cells afterwards and gives back what is too much. Given back twice, by a
// stranger, or after it was taken back: counted as stale, no effect.
//
// Waiting, first come, first served over all processes:
//
//   JoinedLine joined = join_line(view, ref, caller, {.max_wait_ns = ...});
//   if (joined.joined) {
//     LineLook look = poll_line(view, ref, caller, joined.wait);
//     while (look.state == LineLook::State::Waiting) {
//       sleep_in_line(view, ref, caller, joined.wait, look);        // at most kLineSleepNs
//       look = poll_line(view, ref, caller, joined.wait);
//     }
//   }
//
// A place that is given back goes straight to the lowest ticket in line that is alive and in time.
// Each waiter sleeps on a word of its own. A hand-over to somebody who is gone is void: free for
// everybody. Without a daemon waiters end at their deadlines, and the places of the dead come back
// with the next daemon.
// Killed at any instruction: a place is held or not, a record is in line or not; what was freed and
// not yet handed on is handed on by the next one who leaves, joins, times out or ticks. A killed
// holder's or waiter's cell and record are freed by tick_bulkhead() once its row is dead.
// Stopped as holder: keeps its place until it goes on, dies, or max-hold.
//
// A reload: a raised limit counts at once (the daemon's tick serves the line); a lowered one at
// once and without blocking: running calls finish, nobody gets a place while too many are out. A
// bulkhead that is removed forgets its places; calls still running give back nothing.
// Process safety: any number of processes and threads. Every loop is bounded; running out answers
// by refusing and is counted. Only sleep_in_line() waits; nothing here allocates; waking somebody
// is the only system call besides (and clock readings by the vdso). A scan keeps up to 36 KiB on
// the stack, two of them at most at once.
#pragma once
#include <cstdint>
#include <string_view>

#include <cutwater/decision.hpp>

#include "rule/bulkhead_settings.hpp"
#include "shm/bulkhead/kept.hpp"
#include "shm/bulkhead/layout.hpp"
#include "shm/counters.hpp"
#include "shm/view.hpp"

namespace cutwater::shm {

/// A bulkhead as a caller knows it: index, and which of its owners in the course of time.
struct BulkheadRef {
  std::uint32_t index = kNoLine;
  std::uint32_t incarnation = 0;
};

/// Who asks. Without a row (0) nothing can be held: refused as Degraded.
struct BulkheadCaller {
  std::uint32_t row = 0;
  std::uint32_t generation = 0;
  StripeHandle stripe;                 ///< counters == nullptr: nothing is counted
  BulkheadLocal* local = nullptr;      ///< nullptr: nothing is kept; each call reads the settings
};

/// A place held: a plain value; its owner gives it back once.
struct PlaceTicket {
  std::uint64_t cell_value = 0;        ///< exactly what was put into the cell; 0 = nothing is held
  std::int64_t start_ns = 0;           ///< segment time of the grant; 0 = not known
  std::uint32_t cell = kNoLine;        ///< number within the bulkhead; stays through reloads
  bool coarse = false;                 ///< start_ns is of the last tick (shm/bulkhead/quick.hpp)
};

struct BulkheadEntry {
  bool granted = false;
  bool may_wait = false;               ///< refused Full, and a caller may join the line
  bool hint = false;                   ///< retry_after_ns is an estimate (always, when refused)
  Reason reason = Reason::Full;        ///< Full; Expired (the line); Degraded: gone, no row, damage
  /// When granted; cell_value 0 when it is switched off. When refused: one too many that was given
  /// back while the memory was superseded, to be left in the successor as well (Left::Moved).
  PlaceTicket place;
  // When refused:
  std::uint32_t in_use = 0;            ///< places that are not free
  std::uint32_t limit = 0;
  std::uint32_t waiting = 0;           ///< in line, alive and in time
  std::int64_t oldest_ns = 0;          ///< how long the oldest known holder has held
  std::int64_t retry_after_ns = 0;     ///< median holding time of the last minute; 1 s when unknown
  std::uint64_t max_wait_ns = 0;       ///< as configured; rule::kWaitForever
  std::int64_t now_ns = 0;             ///< the reading this answer used
};

/// A place, or a refusal that says why. Never waits, never passes somebody in line.
BulkheadEntry enter_bulkhead(const View& view, BulkheadRef ref,
                             const BulkheadCaller& caller) noexcept;
/// What enter_bulkhead would answer, without a write.
BulkheadEntry look_at_bulkhead(const View& view, BulkheadRef ref,
                               const BulkheadCaller& caller) noexcept;

enum class Left : std::uint8_t {
  Returned = 0,   ///< free again, or handed to the next in line
  Stale = 1,      ///< it was not held any more: counted, no effect
  Nothing = 2,    ///< nothing was held, or the bulkhead is gone
  Moved = 3,      ///< the memory was superseded: leave by the same place in the successor as well
};
/// Moved is told whenever the copy may still hold the place (shm/supersede.hpp, overtaken()); a
/// second return of it is Stale there and changes nothing.
Left leave_bulkhead(const View& view, BulkheadRef ref, const BulkheadCaller& caller,
                    const PlaceTicket& place) noexcept;

// ---- the line ----------------------------------------------------------------------------------

/// A waiter sleeps at most this long before it looks by itself: a releaser may have been stopped or
/// killed before it woke anybody. Real time, also on a stepped clock.
inline constexpr std::int64_t kLineSleepNs = 50'000'000;

struct WaitTicket {
  std::uint64_t ticket = 0;            ///< 0 = not in line
  std::int64_t start_ns = 0;           ///< segment time of the arrival
  std::int64_t until_ns = 0;           ///< segment time at which the wait ends
  std::uint32_t record = kNoLine;
  bool by_deadline = false;            ///< it ends by the call's deadline, not by max-wait-duration
};
struct LineAsk {
  std::uint64_t max_wait_ns = rule::kWaitForever;   ///< shortens max-wait-duration, never longer
  std::int64_t deadline_ns = 0;        ///< segment time by which the call must have begun; 0 = none
};
struct JoinedLine {
  bool joined = false;
  WaitTicket wait;
  BulkheadEntry refusal;               ///< when not joined: Full (too many in line), Degraded
};
/// Takes a place in line. The caller polls until it is no longer Waiting, or calls leave_line().
/// Where max-wait-duration is 0 nobody joins.
JoinedLine join_line(const View& view, BulkheadRef ref, const BulkheadCaller& caller,
                     const LineAsk& ask) noexcept;

struct LineLook {
  enum class State : std::uint8_t {
    Granted,      ///< `entry.place` is held; the line is left
    Waiting,
    Over,         ///< until_ns has passed; the line is left; `entry` refuses: Full, or Expired
    Gone,         ///< the bulkhead is gone, or the record was taken away; `entry` says Degraded
  } state = State::Waiting;
  std::uint32_t seen = 0;              ///< Waiting: the futex word before it looked
  std::int64_t now_ns = 0;
  BulkheadEntry entry;
};
/// Looks whether a place was handed over. Never waits.
LineLook poll_line(const View& view, BulkheadRef ref, const BulkheadCaller& caller,
                   const WaitTicket& wait) noexcept;
/// Sleeps until somebody hands a place over, `until_ns`, or kLineSleepNs; serves the line itself
/// when nobody woke it. `look` is the last Waiting one.
void sleep_in_line(const View& view, BulkheadRef ref, const BulkheadCaller& caller,
                   const WaitTicket& wait, const LineLook& look) noexcept;
/// The word that a hand-over to this waiter bumps; nullptr when the bulkhead is gone. For a caller
/// that wants to be woken for other reasons as well: bump and FUTEX_WAKE it.
std::uint32_t* line_futex(const View& view, BulkheadRef ref, const WaitTicket& wait) noexcept;
/// Gives up: leaves the line and passes on what was handed over meanwhile. Counted as GaveUp.
void leave_line(const View& view, BulkheadRef ref, const BulkheadCaller& caller,
                const WaitTicket& wait) noexcept;

// ---- the owner of the memory -------------------------------------------------------------------

struct BulkheadTick {
  std::uint32_t reclaimed = 0;         ///< places of dead owners given back
  std::uint32_t revoked = 0;           ///< places held longer than max-hold
  std::uint32_t left_line = 0;         ///< records of dead owners emptied
};
/// What the daemon does on its tick and when a row died, for one bulkhead: records and places of
/// dead owners freed, max-hold, then the line served and woken. Idempotent.
BulkheadTick tick_bulkhead(const View& view, std::uint32_t index, StripeHandle stripe) noexcept;
/// True when a tick has something to do or may soon: cheap, for a loop over all bulkheads.
bool bulkhead_needs_tick(const View& view, std::uint32_t index) noexcept;
/// True when a row that died may have something in it: a place, or a record of its line.
bool bulkhead_may_hold(const View& view, std::uint32_t index) noexcept;
/// True when it has a free place and nobody waits; or no such bulkhead. As cheap.
bool bulkhead_has_room(const View& view, std::uint32_t index) noexcept;
/// Wakes everybody in line so that they look anew: the memory was superseded, the rules changed.
void wake_line(const View& view, std::uint32_t index) noexcept;
/// A place whose holder is another row now takes over exactly this cell (a session resumed after
/// the daemon's restart): its new value, or cell_value 0 when the cell no longer holds `place`.
PlaceTicket take_over_place(const View& view, BulkheadRef ref, const BulkheadCaller& caller,
                            const PlaceTicket& place) noexcept;

// ---- readers -----------------------------------------------------------------------------------

/// The bulkhead of that name in the rules in force, also one a pattern made; index kNoLine when
/// there is none. Reads only.
BulkheadRef find_bulkhead(const View& view, std::string_view name) noexcept;

struct ResolvedBulkhead {
  BulkheadRef ref;                     ///< index kNoLine: no such name and no pattern for it
  bool shared = false;                 ///< no place was left: the pattern's own, shared with others
};
/// The same, and makes the bulkhead where a pattern stands for the name and has a place left: for
/// whoever is about to use it. Killed at any instruction: the next one finishes it.
ResolvedBulkhead resolve_bulkhead(const View& view, std::string_view name,
                                  StripeHandle stripe) noexcept;

/// What a reader sees of one bulkhead; reads only.
struct BulkheadInfo {
  bool used = false;
  std::uint8_t kind = kNamedEntry;
  bool enabled = false;
  std::uint32_t incarnation = 0;
  std::uint32_t limit = 0;
  std::uint32_t in_use = 0;
  std::uint32_t over = 0;              ///< in use beyond the limit, after a shrink
  std::uint32_t waiting = 0;
  std::uint32_t max_waiting = 0;
  std::uint64_t max_wait_ns = 0;
  std::uint64_t max_hold_ns = 0;
  std::int64_t oldest_ns = 0;          ///< how long the oldest known holder has held
  std::uint32_t oldest_row = 0;        ///< whose; 0 = nobody's
  std::int64_t median_ns = 0;          ///< holding time of the last minute; 0 unknown
  std::int64_t now_ns = 0;
  char name[64] = {};
};
bool read_bulkhead(const View& view, std::uint32_t index, BulkheadInfo& out) noexcept;

/// One step of a bulkhead's counter.
void count_bulkhead(const View& view, StripeHandle stripe, std::uint32_t index,
                    BulkheadCounter counter, std::uint64_t n = 1) noexcept;
/// Sums over all stripes. Histogram cells (histogram_cell()) are differences modulo 2^32.
struct BulkheadSums {
  std::uint64_t value[kBulkheadCounters] = {};
  std::uint32_t held[kHistogramCells] = {};
  std::uint32_t waited[kHistogramCells] = {};
  std::uint64_t of(BulkheadCounter counter) const noexcept {
    return value[static_cast<std::size_t>(counter)];
  }
};
BulkheadSums sum_bulkhead_counters(const View& view, std::uint32_t index) noexcept;

}  // namespace cutwater::shm
