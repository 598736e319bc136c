// SPDX-License-Identifier: Apache-2.0
// Admission in one step: a breaker, a bulkhead and limits, all or none (spec breaker C2; memory
// 8.1). The mapped client and the daemon's ENTER ask exactly these functions; the rules themselves
// are those of shm/breaker/breaker.hpp, shm/bulkhead/bulkhead.hpp and shm/limit/admit.hpp.
//
//   Entering entering{.ask = {.breaker = fraud, .bulkhead = gate, .limits = limits}};
//   EnterAnswer out;
//   EnterStep step = begin_enter(view, caller, entering, out);
//   while (step == EnterStep::Wait) {              // only with max_wait_ns != 0
//     sleep_on(entering.nap);                      // a daemon does something else meanwhile
//     step = resume_enter(view, caller, entering, out);
//   }
//   if (out.granted()) ... out.call, out.place, out.limits; else out.reason, out.part
//
// Look, then take. All parts are looked at first: breaker, deadline, bulkhead (when the call may
// not wait), every limit; the first that would refuse answers, and nothing was written but its
// counter. Steps that are due anyway are made on the way (a half-open breaker is settled before it
// refuses anybody). Then they are taken in one order: the place, the only thing that is waited for,
// and while a call waits it holds nothing else; then breaker and deadline are looked at again
// (guard EnterLooksAgain); the limits are charged; the probe comes last. A part that refuses on the
// way, because somebody was faster, gives back what was taken before it, the last first and each by
// its exact value (guard EnterUndoesAll).
//
// In line (Wait): each resume looks at the breaker, at the deadline, and whether a place was handed
// over. A breaker that is OPEN by then ends the wait, `open`; the ask's deadline, `expired`; the
// end of max_wait_ns, `full`. Who opens a breaker wakes the line of the bulkhead of its name.
// Resume when the word of line_futex() moved, or after kLineSleepNs at the latest: who hands a
// place over may be stopped before it wakes anybody.
//
// What it counts, on caller.stripe: what each part would count when asked alone. A grant counts in
// every part, a refusal in the part that refused; what was taken and given back is no decision.
// Bounds: kMaxAdmitItems limits; the loops of the parts. Nothing here allocates, sleeps, locks or
// calls the kernel, but the wake of the first in line after a place was given back, and
// wait_in_line().
// Killed anywhere: at most the cost in what was charged so far is spent, and refills; place, probe
// and record in line are cells of (row, generation) and come back as those of any dead process do.
// Process and thread safety: any number at once; one Entering belongs to one thread at a time.
#pragma once
#include <cstdint>
#include <span>

#include "shm/breaker/breaker.hpp"
#include "shm/bulkhead/bulkhead.hpp"
#include "shm/limit/admit.hpp"

namespace cutwater::shm {

/// max_wait_ns: as long as the bulkhead is configured to let anybody wait.
inline constexpr std::int64_t kWaitAsConfigured = -1;

/// What is asked. A part with index kNoLine, and an empty list, are left out. `limits` and the keys
/// in it must stay until the admission is over.
struct EnterAsk {
  BreakerRef breaker;
  BulkheadRef bulkhead;
  std::span<const AdmitAsk> limits;
  /// Longest time in line for a place, bounded by the bulkhead's max-wait-duration. 0: never in
  /// line.
  std::int64_t max_wait_ns = 0;
  /// Segment time by which the call will have ended, 0 = unknown; bounds the wait, and is the
  /// probe's deadline.
  std::int64_t deadline_ns = 0;
};

/// Which part refused; numbers are those of the protocol.
enum class EnterPart : std::uint8_t { None = 0, Limit = 1, Bulkhead = 2, Breaker = 3 };

/// What was given back while the memory was superseded (shm/supersede.hpp, overtaken()): to be
/// given back in the successor too, which may have it as it was before.
struct EnterOwed {
  PlaceTicket place;                   ///< for leave_bulkhead(); cell_value 0: none
  BreakerCall call;                    ///< for finish_in_successor(), cancelled; kind None: none
  Recorded how = Recorded::Nothing;
};

struct EnterAnswer {
  /// Allowed; Open, Probing; Full; Limit, Never, Banned; Expired: the deadline passed (part: where
  /// it waited, else None); Degraded: a part is gone (`gone`), or damage; InvalidArgument.
  Reason reason = Reason::Degraded;
  EnterPart part = EnterPart::None;
  bool hint = true;                    ///< retry_after_ns is an estimate; else exact
  std::int64_t retry_after_ns = 0;     ///< never 0 while refused; -1: not by itself
  std::int64_t now_ns = 0;             ///< reading of the clock the answer used
  std::int64_t waited_ns = 0;          ///< time in line; 0: it never was there
  /// Of a limit that is gone, or of a memory that was superseded: as admit_all says.
  Outcome limits_outcome = Outcome::Answered;
  BreakerCall call;                    ///< granted, with a breaker
  PlaceTicket place;                   ///< granted, with a bulkhead; empty where it is switched off
  BreakerEntry breaker;                ///< what the breaker said last
  BulkheadEntry bulkhead;              ///< what the bulkhead said last
  AdmitAnswer limits;                  ///< what the limits said; receipts when granted
  EnterOwed owed;                      ///< of a refusal, and of undo_enter()

  bool granted() const noexcept { return reason == Reason::Allowed; }
};

/// Who asks: its row (none: it gets no place), its counters, and what its process keeps of the
/// breaker.
struct EnterCaller {
  BreakerCaller breaker;
  BulkheadLocal* places = nullptr;     ///< what its process keeps of the bulkhead
  /// The same row and stripe, as the bulkhead wants them.
  BulkheadCaller bulkhead() const noexcept {
    return {breaker.row, breaker.generation, breaker.stripe, places};
  }
};

/// One admission under way. A plain value; copy none that waits.
struct Entering {
  EnterAsk ask;
  // After EnterStep::Wait: for sleep_in_line() and line_futex().
  WaitTicket line;                     ///< its record in line
  LineLook seen;                       ///< what it saw there last
  bool waits = false;                  ///< it stands in line
  PlaceTicket owed;                    ///< EnterOwed::place so far
};

enum class EnterStep : std::uint8_t {
  Done = 0,    ///< `out` is the answer
  Wait = 1,    ///< in line: sleep, then resume_enter(), or abandon_enter()
};

EnterStep begin_enter(const View& view, const EnterCaller& caller, Entering& entering,
                      EnterAnswer& out) noexcept;
EnterStep resume_enter(const View& view, const EnterCaller& caller, Entering& entering,
                       EnterAnswer& out) noexcept;

/// Sleeps while it waits: until a place is handed over, its time is over, or kLineSleepNs.
void wait_in_line(const View& view, const EnterCaller& caller, const Entering& entering) noexcept;

/// The caller of one that waits is gone: out of the line, a place just handed over is passed on.
/// Does nothing to one that does not wait.
void abandon_enter(const View& view, const EnterCaller& caller, Entering& entering) noexcept;

/// What an answer granted goes back, the last first: the call was never made. The probe is free
/// again, the tokens as far as nobody charged after them, the place is handed on. Once per answer.
void undo_enter(const View& view, const EnterCaller& caller, const EnterAsk& ask,
                EnterAnswer& answer) noexcept;

}  // namespace cutwater::shm
