// SPDX-License-Identifier: Apache-2.0
// Circuit breakers in shared memory: what the mapped client, the daemon and a replay ask of them.
//
//   BreakerEntry entry = enter_breaker(view, ref, caller, 0);
//   if (entry.granted) finish_breaker(view, ref, caller, entry.call, {.kind = Ended::Success});
//
// One state word per breaker, replaced only as a whole, epoch + 1 at each transition; a ring of
// outcomes; P cells for half-open probes (shm/breaker/layout.hpp). Enter on a CLOSED breaker is one
// load and writes nothing shared. There are no timers: a deadline is data, and whoever comes past
// one makes the step. Every change is one swap, so a kill leaves the old or the new, and whoever
// comes next finishes what a killed process left: judges outcomes not yet judged, settles
// half-open, writes the event of an unannounced word. Nobody refuses in half-open before it tried
// to settle.
// Every loop is bounded; running out answers conservatively (refused) and is counted.
// Process safety: any number of processes and threads. No function here allocates, makes a system
// call (a clock reading by the vdso apart) or waits.
#pragma once
#include <atomic>
#include <bit>
#include <cstdint>

#include <cutwater/decision.hpp>

#include "rule/breaker_class.hpp"
#include "rule/breaker_rule.hpp"
#include "shm/breaker/kept.hpp"
#include "shm/breaker/layout.hpp"
#include "shm/counters.hpp"
#include "shm/view.hpp"

namespace cutwater::shm {

/// A breaker as a caller knows it: index, and which of its owners in the course of time.
struct BreakerRef {
  std::uint32_t index = kNoLine;
  std::uint32_t incarnation = 0;
};

/// What one process keeps of one breaker in one memory, in its own: shared by its threads. Only
/// hints, counts and a copy of what is there; losing them costs nothing but work.
struct BreakerLocal {
  BreakerKept kept;                            ///< of the settings in force: the short ways
  std::atomic<std::uint64_t> ramp{0};          ///< epoch:32 | calls of this ramp so far:32
  std::atomic<std::uint32_t> user{kNoLine};    ///< which user record is this process's
};

/// Which user of a breaker somebody is (rule/breaker_users.hpp): the process that owns the row, or
/// one that was forked from it and has none of its own.
struct BreakerUserId {
  std::uint32_t row = 0;                       ///< 0: no user
  std::uint32_t generation = 0;
  std::uint64_t fork = 0;                      ///< 0: the row's own process; else differs by child
};

/// Who asks. A caller without a row (0) can do everything; a probe it takes is freed by its result
/// or its deadline only.
struct BreakerCaller {
  std::uint32_t row = 0;
  std::uint32_t generation = 0;
  StripeHandle stripe;                         ///< counters == nullptr: nothing is counted
  BreakerLocal* local = nullptr;               ///< nullptr: a caller that only passes by
  BreakerUserId user;                          ///< row 0: `row` and `generation` are the user's too

  BreakerUserId user_id() const noexcept {
    return user.row != 0 ? user : BreakerUserId{row, generation, 0};
  }
};

/// How a granted call is known to the breaker.
enum class CallKind : std::uint8_t {
  None = 0,     ///< nothing to report: refused, or reported already
  Window = 1,   ///< CLOSED: its outcome enters the window
  Probe = 2,    ///< HALF_OPEN: holds a cell
  Metrics = 3,  ///< METRICS_ONLY: recorded and judged, opens nothing
  Off = 4,      ///< DISABLED or switched off: nothing is recorded
  OwnProbe = 5, ///< CLOSED, open for this process only: the one call that tries it again
};

/// One admitted attempt. A plain value; the client's Call owns one and reports it once.
struct BreakerCall {
  Word16 ticket;                     ///< Probe: exactly what was put into the cell
  std::int64_t start_ns = 0;         ///< segment time of the grant; 0 = not read
  std::uint32_t epoch = 0;
  std::uint16_t cell = 0;
  CallKind kind = CallKind::None;
};

enum class RefusalScope : std::uint8_t { Host = 0, Process = 1 };

struct BreakerEntry {
  bool granted = false;
  BreakerCall call;                  ///< when granted
  // When refused:
  Reason reason = Reason::Open;      ///< Open, Probing; Degraded: the breaker is gone, or damage
  RefusalScope scope = RefusalScope::Host;
  rule::BreakerState state = rule::BreakerState::Closed;
  bool ramping = false;
  bool hint = false;                 ///< retry_after_ns is an upper estimate; else exact to 1 ns
  std::int64_t retry_after_ns = 0;   ///< never 0 while refused; -1 = not by itself
  std::int64_t now_ns = 0;           ///< the reading this answer used
};

/// Asks for one call. `deadline_ns`: segment time by which the call will have ended, 0 = unknown; a
/// probe is held until then, 10 minutes at most, else for probe-timeout.
BreakerEntry enter_breaker(const View& view, BreakerRef ref, const BreakerCaller& caller,
                           std::int64_t deadline_ns) noexcept;

/// What enter_breaker would answer, without a write: for admission that looks before it takes.
BreakerEntry look_at_breaker(const View& view, BreakerRef ref,
                             const BreakerCaller& caller) noexcept;

/// The same for one who refuses by it: where look_at_breaker would refuse in HALF_OPEN, the step
/// that is due there (a probe past its deadline, a verdict, the end of the longest wait) is made
/// first, as enter_breaker does, so that nobody who only looks is refused for ever. Takes nothing.
BreakerEntry look_after_settling(const View& view, BreakerRef ref,
                                 const BreakerCaller& caller) noexcept;
/// Counts a refusal that was found by looking: enter_breaker counts its own.
void count_breaker_refusal(const View& view, StripeHandle stripe, std::uint32_t index,
                           Reason reason) noexcept;

enum class Ended : std::uint8_t { Success = 0, Failure = 1, Ignored = 2, Cancelled = 3 };

struct BreakerReport {
  Ended kind = Ended::Cancelled;
  std::int64_t duration_ns = -1;     ///< -1: from the grant until now
  std::uint8_t failure_class = 0;    ///< counter of its class, below kBreakerClasses
  bool open_now = false;             ///< a failure that opens at once ...
  std::int64_t open_for_ns = -1;     ///< ... for this long (cut at max-open-for); -1: as configured
  /// A Retry-After that came with a failure whose class may carry one (rule::may_retry_after);
  /// opens for it where open-on-retry-after says so. -1: none.
  std::int64_t retry_after_ns = -1;
};

enum class Recorded : std::uint8_t {
  Counted = 0,    ///< it took part
  Nothing = 1,    ///< ignored, cancelled, or a breaker that records nothing
  Stale = 2,      ///< its epoch is over, or its probe was taken back: counted, changes nothing
  Lost = 3,       ///< the ring was damaged or never free: counted, changes nothing
  Moved = 4,      ///< the memory was superseded before: nothing was written
  Overtaken = 5,  ///< ... meanwhile: it took part, but the copy may still hold the call's cell
};
constexpr bool goes_on(Recorded how) noexcept {
  return how == Recorded::Moved || how == Recorded::Overtaken;
}
/// The outcome of a granted call; once per call (the owner of the call sees to that).
Recorded finish_breaker(const View& view, BreakerRef ref, const BreakerCaller& caller,
                        const BreakerCall& call, const BreakerReport& report) noexcept;

/// The rest of it where goes_on(how), in the memory that took its place (shm/supersede.hpp):
/// all of it when it had Moved, else what holds a cell. `ref` as found there; `call` as granted.
Recorded finish_in_successor(const View& view, BreakerRef ref, const BreakerCaller& caller,
                             const BreakerCall& call, const BreakerReport& report,
                             Recorded how) noexcept;

/// A held probe passes to another row of the same client (after a daemon restart its connection has
/// another one): one swap of exactly the cell's word. True: `call` is that of `to` now. False: it
/// was settled, taken back or passed on before, and nothing changed.
bool pass_probe(const View& view, BreakerRef ref, const BreakerCaller& to,
                BreakerCall& call) noexcept;

/// Says that this process uses the breaker: call it when a name was resolved, again after new
/// rules. From three living users on each has counts of its own, and one whose calls fail beside a
/// healthy rest is refused alone (RefusalScope::Process). Idempotent; without a place of its own
/// (kBreakerUsers are there) or without a row the last one is shared. The place is free again when
/// the daemon's tick finds the row dead.
void join_breaker(const View& view, BreakerRef ref, const BreakerCaller& caller) noexcept;

/// One user as a reader sees it.
struct BreakerUserInfo {
  std::uint32_t row = 0, generation = 0;       ///< generation: its low 14 bits
  bool forked = false;                         ///< a child of the row's process
  std::uint64_t calls = 0, failures = 0, slow = 0;   ///< present and previous turn
  std::uint32_t run = 0;                       ///< failures in a row; 0 while open
  bool open = false, probing = false;          ///< for itself, in the present epoch
  std::uint32_t attempts = 0;
  std::int64_t deadline_ns = 0;
};
/// Reads them into `out`; returns how many. Reads only.
std::size_t read_breaker_users(const View& view, std::uint32_t index,
                               BreakerUserInfo (&out)[kBreakerUsers]) noexcept;

/// By hand.
enum class Steer : std::uint8_t {
  ForceOpen = 0,   ///< FORCED_OPEN
  Disable = 1,     ///< DISABLED
  MetricsOnly = 2, ///< METRICS_ONLY
  Auto = 3,        ///< back from one of these: FORCED_OPEN to half-open, the others to CLOSED
  Reset = 4,       ///< CLOSED, empty, no attempts
  ToOpen = 5,      ///< OPEN: the wait starts anew, attempts + 1 (not when `for_ns` is given)
  ToHalfOpen = 6,  ///< from OPEN or FORCED_OPEN; an error from CLOSED
  ToClosed = 7,
};
enum class Steered : std::uint8_t { Done = 0, NoChange = 1, NotAllowed = 2, Gone = 3 };
/// `for_ns`: how long the state holds, 0 = until it is changed (ToOpen: the configured wait).
Steered steer_breaker(const View& view, BreakerRef ref, Steer what, std::int64_t for_ns,
                      std::uint32_t row) noexcept;

struct TickReport {
  std::uint32_t reclaimed = 0;       ///< probes of dead owners given back
  std::uint32_t expired = 0;         ///< probes past their deadline
};
/// What the daemon does on its tick, for one breaker: probes of the dead and of the late, outcomes
/// not yet judged, events owed, and the step to HALF_OPEN where that is asked for. Idempotent.
TickReport tick_breaker(const View& view, std::uint32_t index, StripeHandle stripe) noexcept;

/// True when a tick has something to do or may soon: cheap, for a loop over all breakers.
bool breaker_needs_tick(const View& view, std::uint32_t index) noexcept;
/// True when there is nothing to say of it: switched on, CLOSED for everybody, not ramping; or no
/// such breaker. As cheap.
bool breaker_is_plain(const View& view, std::uint32_t index) noexcept;
/// True when a row that died may have something in it: a probe, a call in flight, a user record.
bool breaker_may_hold(const View& view, std::uint32_t index) noexcept;

/// What a reader sees of one breaker; reads only.
struct BreakerInfo {
  bool used = false;
  std::uint8_t kind = kNamedEntry;
  std::uint32_t incarnation = 0;
  rule::BreakerNumbers numbers{};
  BreakerWord word;
  rule::EffectiveState effective;
  std::int64_t now_ns = 0;
  std::int64_t since_ns = 0;         ///< of the present epoch; 0 = unknown
  std::uint32_t trip_permille = 1023;
  std::uint32_t trip_calls = 0;
  rule::BreakerWindow window;        ///< of the present epoch, at now_ns
  std::int64_t window_span_ns = 0;   ///< TIME: its span; COUNT: 0
  rule::ProbeResults probes;
  std::uint32_t probes_held = 0;
  std::uint32_t users = 0;           ///< living processes that use it
  std::uint32_t users_open = 0;      ///< of them, open for themselves
  std::uint32_t hanging = 0;
  bool flapping = false;             ///< four or more openings within ten minutes, the last one too
  char name[64] = {};
};
bool read_breaker(const View& view, std::uint32_t index, BreakerInfo& out) noexcept;

/// One step of a breaker's counter.
void count_breaker(const View& view, StripeHandle stripe, std::uint32_t index,
                   BreakerCounter counter, std::uint64_t n = 1) noexcept;
/// Sums over all stripes. Histogram cells are differences modulo 2^32, like every counter there.
struct BreakerSums {
  std::uint64_t value[kBreakerCounters] = {};
  std::uint32_t durations[kHistogramCells] = {};
  std::uint64_t of(BreakerCounter counter) const noexcept {
    return value[static_cast<std::size_t>(counter)];
  }
};
BreakerSums sum_breaker_counters(const View& view, std::uint32_t index) noexcept;
/// Adds what another memory had counted.
void add_breaker_counters(const View& view, StripeHandle stripe, std::uint32_t index,
                          const BreakerSums& sums) noexcept;
/// Cell of a duration, and the longest duration that falls into a cell.
constexpr std::size_t histogram_cell(std::int64_t duration_ns) noexcept {
  const std::uint64_t us =
      duration_ns < 1'000 ? 1 : static_cast<std::uint64_t>(duration_ns) / 1'000;
  const unsigned octave = static_cast<unsigned>(std::bit_width(us)) - 1;
  const std::uint64_t step = octave >= 3 ? (us >> (octave - 3)) & 7 : (us << (3 - octave)) & 7;
  const std::size_t cell = std::size_t{octave} * 8 + step;
  return cell < kHistogramCells ? cell : kHistogramCells - 1;
}
std::int64_t histogram_upper_ns(std::size_t cell) noexcept;

/// What its lists say of that class or, where they do not name it, of the group it lies in.
rule::Listed listed_class(const View& view, BreakerRef ref, std::string_view name) noexcept;
/// What this breaker makes of a failure of that class.
rule::ClassVerdict judge_class(const View& view, BreakerRef ref, std::string_view name) noexcept;

/// The breaker of that name in the rules in force, also one a pattern made; index kNoLine when
/// there is none. Reads only.
BreakerRef find_breaker(const View& view, std::string_view name) noexcept;

struct ResolvedBreaker {
  BreakerRef ref;                    ///< index kNoLine: no such name, and no pattern stands for it
  bool shared = false;               ///< no place was left: the pattern's own, shared with others
};
/// The same, and makes the breaker where a pattern stands for the name and has a place left: for
/// whoever is about to use it. Killed at any instruction: the next one finishes it.
ResolvedBreaker resolve_breaker(const View& view, std::string_view name,
                                StripeHandle stripe) noexcept;

}  // namespace cutwater::shm
