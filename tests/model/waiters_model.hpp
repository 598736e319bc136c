// SPDX-License-Identifier: Apache-2.0
// Model: a bulkhead whose places are waited for in line, without a lock, by processes that may die.
//
//   cell    Free | Held {owner} | Handed {record, ticket}        one for each place
//   record  Idle | Waiting {deadline, ticket}, futex word        one for each possible waiter
//   line    {arrivals, quiet}: somebody may be waiting iff the two differ
//   limit   may change while everything runs
//   A Handed cell is void when its record is not Waiting with that ticket, or its deadline has
//   passed, or its owner's row is dead: nobody will take it up.
//
//   scan:   read line, all cells, then all records -> cells not Free, void cells, the lowest ticket
//           that waits, is alive, in time and has no Handed cell (first), whether anybody waits
//   enter:  line quiet -> take a Free cell (none: a void one) below the limit by a swap to Held;
//           count: above the limit -> give it back, queue or refuse; else go
//           line not quiet, or no cell -> claim a record, take a ticket, publish Waiting,
//           arrivals + 1, then serve
//           loop: load futex word; look for Handed {me, ticket} -> swap to Held; count; record
//                 Idle; look for a second one and pass it on; go
//                 deadline passed -> record Idle; look for one and pass it on; refuse
//                 futex wait, with a cap; on its end serve
//   pass:   line quiet -> free. Scan: below the limit and somebody first -> swap to Handed {first},
//           look at its record again: still waiting -> bump its futex word, wake; else once more
//           nobody waits at all -> swap line quiet (arrivals as read before the scan); free
//   free:   swap -> Free; look at the line again: not quiet -> serve
//   serve:  scan; hand a Free cell (or a void one) to the first, wake it, repeat; free void cells
//           nobody waits for; nobody waits -> swap line quiet
//   daemon: for each dead row: records Idle, its Held cells Free, serve, wake everybody waiting,
//           free the row. The same after raising the limit and after its own start.
//
// The rules that are checked: never more places than the limit allows (after a shrink only those
// taken before it); no call without its place; no place is handed on while over the limit; nobody
// is served out of turn, no newcomer passes a waiter in line; and when nothing can move any more:
// no live waiter sleeps, no place is lost.
#pragma once

#include <array>

#include "model/explore.hpp"

namespace cutwater::model {

struct WaitersSetting {
  const char* name;
  bool large = false;        // only in the full run
  int cells = 1;
  int limit = 1;
  int limit_later = 0;       // 0: it stays
  int callers = 2;
  int kills = 0;             // of callers
  int daemon_kills = 0;
  int deadlines = 0;         // waiters whose deadline may pass
  int stops = 0;             // callers that may be stopped for ever, alive
  int rounds = 1;            // of each caller; of three only the second comes more than once
  bool wait = true;          // callers queue; else they are refused
  bool order = true;         // with the rules of order (more ghosts, more states)
  std::array<int, 2> holds = {-1, -1};  // cells that the first two hold at first; -1: none
};

enum class WaitersMutant {
  None,
  NoRelook,          // no look at the line after freeing a place
  NoConfirm,         // the record is not looked at again after handing over
  NoServeOnArrival,  // a waiter does not serve after it has arrived
  NoSecond,          // a second place handed to the same waiter is not passed on
  NoPassOn,          // who gives up does not pass on what was handed to it
  NoVoid,            // a void place is never used again
  ReaperSilent,      // the daemon frees places but neither serves nor wakes
  NoCount,           // no count after taking a place
  Barge,             // newcomers ignore the line
  QuietBlind,        // the line is made quiet without compare
  SleepBlind,        // the futex wait does not compare
  NoTicket,          // a hand-over names the record, not the ticket
  HandOverLimit,     // places are handed on while over the limit
  NotLowest,         // any waiter is served instead of the lowest ticket
  NoCap,             // a sleep has no end of its own
};

struct WaitersState {
  static constexpr int kCellsMax = 2;
  static constexpr int kCallers = 3;  // caller k uses record k and row k
  static constexpr int kDaemon = 3;
  static constexpr int kActors = 4;

  enum class Hold : u8 { Free, Held, Handed };
  // Ghost of a cell that is not free: is its owner inside the bulkhead?
  enum class Solid : u8 { Trying, Decided, OlderTry };  // OlderTry: from before the limit changed
  struct Cell {
    Hold hold;
    u8 who;     // Held: the owner. Handed: the record.
    u8 ticket;  // Handed: for which wait of that record
    Solid solid;
    bool same(const Cell& other) const {
      return hold == other.hold && who == other.who && ticket == other.ticket;
    }
  };

  enum class Queue : u8 { Idle, Claimed, Waiting };
  struct Record {
    Queue state;
    u8 ticket;
    u8 late;  // the deadline has passed
  };

  enum class Life : u8 { Alive, Killed, RowDead, RowFree };
  enum class Mode : u8 { Take, Serve, Hand };  // what a scan is for
  // Where to go on when a scan and what follows from it are over.
  enum class Back : u8 { Finish, Look, Claim, Second, GiveUp, Daemon };
  enum class Pc : u8 {
    Enter, ScanCell, ScanRecord, Limit, Grab, Count, CountLimit, Pass, Confirm, Bump, Wake, Unhold,
    Relook, FreeVoid, Quiet, Claim, Publish, Arrive, Look, LookCell, Sleep, Asleep, Mine, LeaveLine,
    Second, Call, Leave, GiveUp, GiveUpCell, ReapRecord, ReapCell, ReapServe, ReapBump, ReapWake,
    ReapEnd, Done, Dead, Stopped
  };

  struct Actor {
    Pc pc;
    Mode mode;
    Back back;
    u8 rounds;
    u8 ticket;       // of my wait
    u8 my_cell;      // the place I am in
    Cell value;      // exactly what I last wrote to, or saw in, the cell `i`
    u8 i;            // the cell that is handed on, counted or freed
    u8 x;            // the cell a scan chose to take or to free
    // What a scan has seen so far:
    u8 j;            // the cell or record it has come to
    u8 arrivals;     // of the line, read first
    u8 occupied;     // cells not free; also the result of a count
    u8 voids;        // bit x: cell x is Handed and no record was found for it yet
    u8 anybody;      // somebody waits, whoever it is
    u8 first;        // the record with the lowest ticket, when first_ticket is not 0
    u8 first_ticket;
    std::array<Cell, kCellsMax> cells;
    u8 noticed;      // bit w: this sleeper has served since w's deadline passed
    u8 due;          // ghost: the ticket that must not be overtaken now
    u8 limit_seen;   // ghost: the limit when the scan began
  };

  std::array<Cell, kCellsMax> cells;
  std::array<Record, kCallers> records;
  std::array<u8, kCallers> bumped;  // the futex word: it was bumped since its owner loaded it
  u8 limit;
  u8 arrivals, quiet;               // the line
  u8 tickets;
  u8 cap;                           // ghost: the limit, or what was decided before it shrank
  std::array<Actor, kActors> actors;
  std::array<Life, kCallers> life;
  std::array<u8, kCallers> in_call;
  u8 kills, daemon_kills, deadlines, stops;
  u8 limit_later;
  u8 daemon_due;                    // the limit was raised: the daemon has work
  u8 capped;                        // bit w: w's next sleep is ended by the cap
};

class WaitersModel final : public Model<WaitersState> {
 public:
  WaitersModel(const WaitersSetting& setting, WaitersMutant mutant)
      : setting_(setting), mutant_(mutant) {}

  State initial() const override;
  void successors(const State& from, Sink& sink) override;
  void check_final(const State& state) override;

 private:
  using Actor = State::Actor;
  using Cell = State::Cell;

  // waiters_model.cpp: a caller's way in and out, and the daemon's.
  void step(State& state, int k);
  void move(State& state, int k);
  void enter(State& state, int k);
  void grab(State& state, int k);
  void count(State& state, int k);
  void count_limit(State& state, int k);
  void claim(State& state, int k);
  void arrive(State& state, int k);
  void look(State& state, int k);
  void look_cell(State& state, int k);
  void sleep(State& state, int k);
  void wake_up(State& state, int k);
  void mine(State& state, int k);
  void second(State& state, int k);
  void leave(State& state, int k);
  void give_up(State& state, int k);
  void give_up_cell(State& state, int k);
  void reap_record(State& state, int k);
  void reap_cell(State& state, int k);
  void reap_bump(State& state, int k);
  void reap_wake(State& state, int k);
  void reap_end(State& state, int k);
  void start_call(State& state, int k, int cell);
  static void finish(Actor& me);
  void forget(Actor& me) const;

  // waiters_scan.cpp: scan, hand over, free.
  void scan(Actor& me, State::Mode mode) const;
  void scan_cell(State& state, int k);
  void scan_record(State& state, int k);
  void scanned(State& state, int k);
  void choose(State& state, int k);
  void pass(State& state, int k);
  void confirm(State& state, int k);
  void wake(State& state, int k);
  void unhold(State& state, int k);
  void free_void(State& state, int k);
  void make_quiet(State& state, int k);
  void go_back(Actor& me) const;
  static void bump(State& state, int waiter);
  static void end_sleep(State& state, int waiter);

  // waiters_world.cpp: kills, deadlines, the limit; ghosts and final rules.
  void callers_suffer(const State& from, Sink& sink, int k);
  void daemon_and_limit(const State& from, Sink& sink);
  bool can_move(const State& state, int k) const;
  bool overtakes(const State& state, int ticket) const;
  u8 first_in_line(const State& state) const;
  static bool eligible(const State& state, int waiter);
  static bool handed(const State& state, int waiter);
  static int decided(const State& state);
  void check_places(State& state);
  void emit(const State& from, Sink& sink, Step step, auto change);

  u8 name_of(u8 ticket) const { return mutant_ == WaitersMutant::NoTicket ? u8{0} : ticket; }
  bool is_mine(const Cell& cell, int k, const Actor& me) const {
    return cell.hold == State::Hold::Handed && cell.who == k &&
           cell.ticket == name_of(me.ticket);
  }

  const WaitersSetting setting_;
  const WaitersMutant mutant_;
};

}  // namespace cutwater::model
