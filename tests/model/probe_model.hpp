// SPDX-License-Identifier: Apache-2.0
// Model: a breaker's word and its half-open probes, shared by processes that may die at any step.
//
//   word {state, epoch, announced; deadline}
//   cell {row, epoch, Free | Held | Spent, bad; take, deadline}
//
//   move(w, next):  w not announced -> announce(w), start over    (no transition loses its event)
//                   swap word w -> {next, epoch + 1, not announced}; won -> announce it
//   announce(w):    append the event of w.epoch; swap word w -> w + announced
//   enter:   load word. Closed -> go. Open before its deadline -> refuse. Open after it -> move to
//            HalfOpen, start over. HalfOpen -> for each cell:
//              of a newer epoch -> the word I hold is stale, start over
//              Held of this epoch: owner's row dead -> take it over; deadline passed -> swap it to
//                  Spent bad (or Free, where a lapse says nothing); else next cell
//              Free, or of an older epoch -> swap to Held {me, epoch, take + 1};
//                  won -> load the word again; another epoch -> give the cell back, start over;
//                         else THE CALL STARTS
//            no cell: settle; nothing decided -> refuse
//   result:  swap exactly the cell value I took -> Spent (Free when the result does not count);
//            lost -> it came too late, nothing else; won -> settle
//   settle:  load word; read all cells; all Spent of this epoch (or one bad, where the first
//            failure decides) -> move to Open or Closed
//   daemon:  each Held cell: dead -> Free, deadline passed -> Spent bad; settle; announce
//
// A forced-open word is modelled as an Open one whose deadline is still to come.
//
// The rules that are checked: a cell of the current epoch is not taken from a living owner before
// its deadline, and no result is overwritten; no call starts in an epoch that is not half-open; the
// decision is the sequential rule applied to the results; every epoch is announced, in order; a
// dead owner says nothing about the dependency; and from every reachable state, with everybody else
// stopped for ever, a single fresh caller brings the breaker to Closed.
#pragma once

#include <array>

#include "model/explore.hpp"

namespace cutwater::model {

struct ProbeSetting {
  const char* name;
  int callers;
  bool same_process;    // the first two callers are threads of one process
  bool control;         // an operator resets or forces the breaker open once
  bool lapse_frees;     // a passed deadline frees the cell instead of counting as a failure
  bool first_failure;   // one failure decides; else half of the results
  int rounds;           // calls of each caller
  bool kills;           // any process may be killed, the daemon too
  bool wrong_reap;      // the daemon may take a living process for dead, once
  int deadlines;        // probes whose deadline may pass
  int epochs_max;       // runs are followed up to this epoch
};

enum class ProbeMutant {
  None,
  NoReread,          // a call starts without loading the word again
  OtherNotOlder,     // a cell of any other epoch counts as free, not only of an older one
  NoSettle,          // a caller that found no cell refuses without settling
  NoTake,            // no take number: a cell taken again by the same row looks the same
  EpochlessResult,   // a result goes into any cell that is held by the own row
  NoAnnounce,        // a word that is not announced may be left
  NoDeadRule,        // dead owners and deadlines are ignored
  DeadIsResult,      // a dead owner counts as a failed result
  CountOldSpent,     // results of an old epoch count
  MoveBlind,         // the deciding swap does not compare the epoch
  NoLapse,           // the deadline of a living owner is ignored
};

struct ProbeState {
  static constexpr int kCells = 2;
  static constexpr int kActors = 5;
  static constexpr int kControl = 2;   // actor of the operator, where there is one
  static constexpr int kDaemon = 3;
  static constexpr int kRescuer = 4;   // only moves in rescue()
  static constexpr int kRows = 3;      // rows of the process table that may die
  static constexpr int kEpochs = 16;

  enum class Breaker : u8 { Closed, Open, HalfOpen };
  struct Word {
    Breaker state;
    u8 epoch;
    u8 announced;
    u8 late;  // its deadline has passed (time is data: no swap compares it)
    bool same(const Word& other) const {
      return state == other.state && epoch == other.epoch && announced == other.announced;
    }
  };

  enum class Hold : u8 { Free, Held, Spent };
  struct Cell {
    Hold hold;
    u8 epoch;
    u8 row;
    u8 take;
    u8 bad;   // Spent: the result was a failure
    u8 late;  // Held: the deadline has passed
    u8 id;    // ghost: unique for each take
    bool same(const Cell& other) const {
      return hold == other.hold && epoch == other.epoch && row == other.row &&
             take == other.take && bad == other.bad;
    }
    void release_as(Hold next) {
      hold = next;
      late = id = 0;
    }
  };

  enum class Life : u8 { Alive, Killed, RowDead };
  enum class Role : u8 { Caller, Daemon, Control };
  enum class Pc : u8 {
    Load, ToHalfOpen, LoadCell, Take, Lapse, LoadAgain, GiveBack, Call, Spend, Ignore, Settle,
    Count, Move, AppendEvent, MarkAnnounced, Operate, Done
  };
  struct Actor {
    Pc pc;
    Pc then;       // where to go on after an announcement
    Role role;
    u8 i;          // the cell a look has come to
    u8 row;        // its process's row in the process table
    u8 brought;    // it settles after its own result, not before a refusal
    u8 bad;        // its own result is a failure; while counting: failures seen
    u8 got;        // the cell it took
    u8 seen;       // while counting: results seen; operator: the word is loaded
    u8 rounds;
    Word word;     // as loaded
    Cell cell;     // as loaded
    Cell mine;     // exactly what it wrote when it took its cell
  };

  Word word;
  std::array<Cell, kCells> cells;
  std::array<Actor, kActors> actors;
  std::array<Life, kActors> life;    // by row
  std::array<u8, kEpochs> events;    // ghost: the epoch's event was appended
  u8 results, failures;              // ghost: of the current epoch
  u8 ids;
  u8 wrongly_reaped;
  u8 deadlines;
};

class ProbeModel final : public Model<ProbeState> {
 public:
  ProbeModel(const ProbeSetting& setting, ProbeMutant mutant)
      : setting_(setting), mutant_(mutant) {}

  State initial() const override;
  void successors(const State& from, Sink& sink) override;
  void check(const State& state) override;
  // rescue() asks more: one caller alone must come to an end, with every other actor stopped.
  bool must_be_able_to_end() const override { return false; }

 private:
  using Actor = State::Actor;
  using Cell = State::Cell;
  using Word = State::Word;

  // What a caller or an operator may choose at its step.
  enum Pick { kSuccess, kFailure, kIgnored, kForceOpen = 0, kReset = 1 };

  void step(State& state, int actor, int pick);
  void load(State& state, Actor& me);
  void load_daemon(Actor& me);
  void load_cell(State& state, Actor& me);
  void take(State& state, Actor& me);
  void lapse(State& state, Actor& me);
  void load_again(State& state, Actor& me);
  void spend(State& state, Actor& me);
  void ignore(State& state, Actor& me);
  void settle(State& state, Actor& me);
  void count(State& state, Actor& me);
  void move(State& state, Actor& me);
  void append_event(State& state, Actor& me);
  void operate(State& state, Actor& me, int pick);

  static void announce(Actor& me, Word word, State::Pc then);
  static void finish(Actor& me);
  static void forget(Actor& me);
  static bool dead(const State& state, const Cell& cell);
  bool opens(int failures) const;
  void moved(State& state, Word next, bool by_results);
  void note_result(State& state, const Cell& cell);

  void emit(const State& from, Sink& sink, Step step, auto change);
  void processes_die(const State& from, Sink& sink);
  void time_passes(const State& from, Sink& sink);
  void rescue(State state);

  const ProbeSetting setting_;
  const ProbeMutant mutant_;
};

}  // namespace cutwater::model
