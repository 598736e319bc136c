// SPDX-License-Identifier: Apache-2.0
// Guards: the steps without which a concurrent or crash-safe
// algorithm of ours is wrong. Each has a name; a build with -DCUTWATER_GUARD_REMOVED=NAME leaves
// that one out, and a named test must then fail (tests/CONTROLS.md). In every other build guarded()
// is a constant true and costs nothing.
#pragma once

namespace cutwater {

enum class Guard {
  None,
  MultRoundedUp,           ///< rule/token_clock: rate rounded up, else due times come 1 ns late
  OldPieceBeforeBase,      ///< rule/token_clock: a stamp before base_t uses the old piece
  ExactDueTime,            ///< rule/token_clock: one exact division, no estimate
  UndoNeedsReceipt,        ///< limit/bucket_table: undo swaps the receipt, never "lower by c"
  InsertSecondClock,       ///< limit/bucket_insert: the clock is read again after the rescan
  InsertRescan,            ///< limit/bucket_insert: both groups are read again after the claim
  InsertExactPromotion,    ///< limit/bucket_insert: the promotion swaps the exact claim
  InsertClaimNonce,        ///< limit/bucket_insert: two claims never look alike
  InsertLowerAddressWins,  ///< limit/bucket_insert: the claim at the lower address stays
  InsertReadsOverflow,     ///< limit/bucket_insert: a new member starts with the overflow debt
  OverflowRescan,          ///< limit/bucket_overflow: the charger looks for the key again
  OverflowSecondClock,     ///< limit/bucket_overflow: the charger reads the clock again
  OverflowWaitsForStart,   ///< limit/bucket_overflow: the charger waits until its slice begins
  JudgedByOwnRule,         ///< limit/bucket_table: a victim is judged by its own rule id and floor
  FloorCounts,             ///< rule/bucket_rule: the floor F takes part in the effective tat
  GenerationBeforeSwap,    ///< limit/bucket_table: `current` is read again before the swap
  PublishAhead,            ///< shm/publisher: base_t lies ahead of the publication
  WriteIdleImage,          ///< shm/publisher: only the idle image is written
  ConversionInOneSwap,     ///< limit/bucket_table: a conversion is part of the grant's one swap
  RefusalWritesNothing,    ///< limit/bucket_table: a refusal does not store what it computed
  LeaseDecays,             ///< client/thread_lease: a lease spends no more than N(t) allows
  ReadyWordLast,           ///< shm/segment: the ready word is stored when all else is whole
  HeaderChecked,           ///< shm/segment: header CRC and bounds are checked at attach
  ReapOnPidfdOnly,         ///< server/janitor: a closed socket alone does not kill a row
  RowFreedLast,            ///< server/janitor: the row is freed after everything that belongs to it
  ForkDropsRow,            ///< client/process_identity: a forked child keeps neither row nor stripe
  StripeOneWriter,         ///< shm/counters: one writer thread per stripe
  EventNumberLast,         ///< shm/event_log: the number is stored after the fields
  EventChecksum,           ///< shm/event_log: a torn record is recognised by its checksum
  LockHeldForLife,         ///< server/instance_lock: one daemon per memory directory
  // several windows and limits, overrides, bans, shadow: the decision
  LookAtAllFirst,          ///< limit/admit: all are looked at before anything is charged
  RollBackLost,            ///< limit/admit: a lost race gives back what was charged before it
  AllOrNoneOrder,          ///< limit/admit: charged in one order, whatever the caller's list
  OverrideSharesPlace,     ///< limit/bucket_detail: an entry of any rule of the window is the key's
  PredecessorFirst,        ///< limit/bucket_detail: a stopped clock's debt goes by its factor first
  ConvertAtChangeMoment,   ///< limit/bucket_detail: a predecessor's debt is taken at base_t
  ShadowNeverBlocks,       ///< limit/admit: a limit in shadow refuses nobody and no set
  BanBeforeBucket,         ///< limit/admit: a banned key is refused before its bucket is touched
  DebtBounded,             ///< limit/bucket: a charge after the fact stops at max-debt
  CreditNotBelowFull,      ///< limit/bucket: a credit never puts tat below N
  // the rules: publication
  BansUntilRaisedFirst,    ///< limit/bans: bans_until is raised before the entry is put
  ConversionFactorRoundedUp,  ///< limit/rule_writer: a converted debt is rounded against the caller
  FloorNeverFalls,         ///< limit/rule_writer: a new F never lies below the old one
  FloorUnderAsIs,          ///< limit/rule_writer: a burst that grew under as-is comes with a floor
  ReachNeverFalls,         ///< limit/rule_writer: D stays the largest, else a change forgives debts
  WindowNumberNeverFalls,  ///< limit/calendar_writer: k goes on when the wall clock is set back
  SweepBeforeReuse,        ///< shm/publisher: an id is free only after a pass found no entry of it
  // names of keys
  KeyNameOfItsEntry,       ///< limit/key_name: a name written for another entry is not believed
  KeyNameProven,           ///< limit/key_name: a name is believed when it hashes to its entry only
  // a memory that takes another's place
  SupersededFirst,         ///< shm/supersede: deciders are turned away before anything is copied
  CopyFromTheBeginning,    ///< shm/supersede: what was copied before a kill is not trusted
  CopyFindsNewPlace,       ///< shm/supersede: an entry's place is computed for the new table
  RulesRenamedLast,        ///< shm/supersede: the new rules are named when all else is
  GivenBackInBoth,         ///< shm/supersede: what is given back behind the mark, there too
  // breakers
  BreakerSettlesEveryCell, ///< breaker/finish: outcomes of the killed are judged, not only ours
  BreakerTicketEpoch,      ///< breaker/finish: an outcome counts in the epoch of its grant only
  BreakerHintChecked,      ///< breaker/time_ring: a cell's stamp, not the hint, says its slot
  BreakerSealedStays,      ///< breaker/time_ring: nobody counts in a sealed slot
  BreakerEventBeforeMove,  ///< breaker/state: an unannounced word is announced, then moved
  BreakerProbeSecondLook,  ///< breaker/probe: the state is read again after the take
  BreakerProbeOlderOnly,   ///< breaker/probe: only cells of an older epoch are free
  BreakerProbeTakeNumber,  ///< breaker/probe: two takes of one cell are two words
  BreakerTwoReadings,      ///< breaker/probe: some of P decide only when two readings agree
  BreakerSettleBeforeRefusing,  ///< breaker/enter: nobody refuses before it tried to settle
  BreakerRestHealthy,      ///< breaker/user: one is singled out only beside a healthy rest
  BreakerPassesExactly,    ///< breaker/probe: a probe passes on by exactly its ticket's word
  BreakerMoveClearsViews,  ///< breaker/user: a move of the host ends what processes had for
                           ///< themselves
  HangingCountedOnce,      ///< breaker/hanging: a call gives its cell back before it records
  PartsReadAgainAfterReload,  ///< shm/kept: what a process kept of the settings ends with them
  // bulkheads
  PlaceCountedAfterTake,   ///< shm/bulkhead: who takes counts all cells afterwards
  PlaceTakeNumber,         ///< shm/bulkhead: two takes of one cell are two words
  PlaceLookAfterFree,      ///< shm/bulkhead: who frees a cell then looks at the line
  PlaceLookAfterQueueing,  ///< bulkhead/line: who joins the line then looks for a free cell
  PlaceLookAfterLeaving,   ///< bulkhead/line: who gives up then looks for what was handed to it
  PlaceRecordReadAgain,    ///< bulkhead/line: after a hand-over the record is read again
  PlaceVoidIsFree,         ///< shm/bulkhead: what was handed to one who is gone is free for all
  PlaceLineSwappedWhole,   ///< bulkhead/line: the line is made quiet only as it was read
  PlaceNewcomersQueue,     ///< shm/bulkhead: a newcomer does not pass those in line
  PlacesKeptWhileAway,     ///< bulkhead/publisher: a bulkhead that comes back finds its holders
  // names and patterns of both
  PatternNameOfIncarnation,  ///< shm/pattern_place: a name holds under its own incarnation only
  PatternCreatesInOrder,   ///< shm/pattern_place: one creation of a pattern after the other
  // admission in one step
  EnterLooksAgain,         ///< shm/enter: who waited looks at breaker and deadline again
  EnterUndoesAll,          ///< shm/enter: a refusal on the way gives back what was taken before
  // the rules: what a reload loosens
  LooseningHoldsAtOnce,    ///< shm/publisher_limits: where a restriction ends, numbers hold at once
};

}  // namespace cutwater

#if __has_include("guard_removed.hpp")   // written by CMake in such a build only
#include "guard_removed.hpp"
#endif
#if defined(CUTWATER_GUARD_BY_ENVIRONMENT)
#include <cstdlib>
#endif

namespace cutwater {

#if defined(CUTWATER_GUARD_BY_ENVIRONMENT)
/// The build of `.ci/controls`: one for all guards. $GUARD_LEFT_OUT is the number of the guard that
/// this process leaves out, its place in the list above.
inline Guard guard_removed() noexcept {
  static const Guard removed = [] {
    const char* number = std::getenv("GUARD_LEFT_OUT");
    return static_cast<Guard>(number == nullptr ? 0 : std::atoi(number));
  }();
  return removed;
}
inline bool guarded(Guard guard) noexcept { return guard != guard_removed(); }
#else
#if defined(CUTWATER_GUARD_REMOVED)
inline constexpr Guard kGuardRemoved = Guard::CUTWATER_GUARD_REMOVED;
#else
inline constexpr Guard kGuardRemoved = Guard::None;
#endif

/// True when this build keeps the guard.
constexpr bool guarded(Guard guard) noexcept { return guard != kGuardRemoved; }
#endif

}  // namespace cutwater
