// SPDX-License-Identifier: Apache-2.0
// A caller's way into the bulkhead and out of it, and the daemon's work for dead rows.
#include "model/waiters_model.hpp"

namespace cutwater::model {

using Pc = WaitersState::Pc;
using Hold = WaitersState::Hold;
using Mode = WaitersState::Mode;
using Back = WaitersState::Back;
using Queue = WaitersState::Queue;
using Life = WaitersState::Life;
using M = WaitersMutant;

void WaitersModel::step(State& state, int k) {
  move(state, k);
  forget(state.actors[k]);
}

void WaitersModel::move(State& state, int k) {
  Actor& me = state.actors[k];
  switch (me.pc) {
    case Pc::Enter: return enter(state, k);
    case Pc::ScanCell: return scan_cell(state, k);
    case Pc::ScanRecord: return scan_record(state, k);
    case Pc::Limit: return choose(state, k);
    case Pc::Grab: return grab(state, k);
    case Pc::Count: return count(state, k);
    case Pc::CountLimit: return count_limit(state, k);
    case Pc::Pass: return pass(state, k);
    case Pc::Confirm: return confirm(state, k);
    case Pc::Bump:
      bump(state, me.first);
      me.pc = Pc::Wake;
      return;
    case Pc::Wake: return wake(state, k);
    case Pc::Unhold: return unhold(state, k);
    case Pc::Relook:
      if (state.arrivals == state.quiet) go_back(me);
      else scan(me, Mode::Serve);
      return;
    case Pc::FreeVoid: return free_void(state, k);
    case Pc::Quiet: return make_quiet(state, k);
    case Pc::Claim: return claim(state, k);
    case Pc::Publish:
      state.records[k] = {Queue::Waiting, me.ticket, 0};
      me.pc = Pc::Arrive;
      return;
    case Pc::Arrive: return arrive(state, k);
    case Pc::Look: return look(state, k);
    case Pc::LookCell: return look_cell(state, k);
    case Pc::Sleep: return sleep(state, k);
    case Pc::Asleep: return wake_up(state, k);
    case Pc::Mine: return mine(state, k);
    case Pc::LeaveLine:
      state.records[k] = {};
      me.j = me.noticed = 0;
      me.pc = Pc::Second;
      return;
    case Pc::Second: return second(state, k);
    case Pc::Call:
    case Pc::Leave: return leave(state, k);
    case Pc::GiveUp: return give_up(state, k);
    case Pc::GiveUpCell: return give_up_cell(state, k);
    case Pc::ReapRecord: return reap_record(state, k);
    case Pc::ReapCell: return reap_cell(state, k);
    case Pc::ReapServe:
      me.back = Back::Daemon;
      if (mutant_ == M::ReaperSilent) me.pc = Pc::ReapEnd;
      else scan(me, Mode::Serve);
      return;
    case Pc::ReapBump: return reap_bump(state, k);
    case Pc::ReapWake: return reap_wake(state, k);
    case Pc::ReapEnd: return reap_end(state, k);
    case Pc::Done:
    case Pc::Dead:
    case Pc::Stopped: return;
  }
}

void WaitersModel::enter(State& state, int k) {
  Actor& me = state.actors[k];
  me.back = Back::Claim;
  if (setting_.order) me.due = first_in_line(state);
  if (state.arrivals == state.quiet || mutant_ == M::Barge) scan(me, Mode::Take);
  else go_back(me);
}

void WaitersModel::grab(State& state, int k) {
  Actor& me = state.actors[k];
  if (!state.cells[me.x].same(me.cells[me.x])) {
    const u8 rounds = me.rounds;
    me = {};
    me.rounds = rounds;
    return;
  }
  me.value = {Hold::Held, small(k), 0, {}};
  me.i = me.x;
  state.cells[me.i] = me.value;
  me.j = me.occupied = 0;
  me.pc = Pc::Count;
  if (me.due && overtakes(state, me.due)) fail("a newcomer overtook a waiter");
}

void WaitersModel::count(State& state, int k) {
  Actor& me = state.actors[k];
  if (state.cells[me.j].hold != Hold::Free) ++me.occupied;
  if (++me.j < setting_.cells) return;
  me.j = 0;
  me.pc = Pc::CountLimit;
  if (setting_.limit_later == 0) count_limit(state, k);
}

// Of those who took a place at once, the ones that see too many give theirs back.
void WaitersModel::count_limit(State& state, int k) {
  Actor& me = state.actors[k];
  const bool over = me.occupied > state.limit || me.i >= state.limit;
  if (over && mutant_ != M::NoCount) {
    me.pc = Pc::Unhold;
    return;
  }
  Cell& cell = state.cells[me.i];
  if (cell.who == k && cell.hold == Hold::Held) cell.solid = State::Solid::Decided;
  if (me.mode == Mode::Take) return start_call(state, k, me.i);
  me.my_cell = me.i;
  me.i = 0;
  me.value = {};
  me.pc = Pc::LeaveLine;
}

// A claimed record looks idle to everybody else, so claiming it and taking a ticket are one step.
void WaitersModel::claim(State& state, int k) {
  Actor& me = state.actors[k];
  state.records[k] = {Queue::Claimed, 0, 0};
  me.ticket = ++state.tickets;
  me.pc = Pc::Publish;
}

void WaitersModel::arrive(State& state, int k) {
  Actor& me = state.actors[k];
  ++state.arrivals;
  me.back = Back::Look;
  if (mutant_ == M::NoServeOnArrival) me.pc = Pc::Look;
  else scan(me, Mode::Serve);
}

void WaitersModel::look(State& state, int k) {
  Actor& me = state.actors[k];
  if (state.records[k].late) {
    me.pc = Pc::GiveUp;
    return;
  }
  state.bumped[k] = 0;  // the futex word is loaded here
  me.j = 0;
  me.pc = Pc::LookCell;
}

void WaitersModel::look_cell(State& state, int k) {
  Actor& me = state.actors[k];
  const Cell& cell = state.cells[me.j];
  if (is_mine(cell, k, me)) {
    me.i = me.j;
    me.value = cell;
    me.pc = Pc::Mine;
  } else if (++me.j == setting_.cells) {
    me.j = 0;
    me.pc = Pc::Sleep;
  }
}

void WaitersModel::sleep(State& state, int k) {
  const bool waits = !state.bumped[k] || mutant_ == M::SleepBlind;
  state.actors[k].pc = waits ? Pc::Asleep : Pc::Look;
  state.bumped[k] = 0;
}

// The own deadline, or the cap on a sleep: then look after the others too.
void WaitersModel::wake_up(State& state, int k) {
  Actor& me = state.actors[k];
  if (state.records[k].late) {
    me.pc = Pc::GiveUp;
    return;
  }
  for (int w = 0; w < State::kCallers; ++w) {
    const State::Record& record = state.records[w];
    if (record.state == Queue::Waiting && record.late) me.noticed = small(me.noticed | 1 << w);
  }
  state.capped = small(state.capped & ~(1 << k));
  me.back = Back::Look;
  scan(me, Mode::Serve);
}

void WaitersModel::mine(State& state, int k) {
  Actor& me = state.actors[k];
  Cell& cell = state.cells[me.i];
  if (!cell.same(me.value)) {
    me.pc = Pc::Look;
    return;
  }
  me.value = {Hold::Held, small(k), 0, {}};
  const State::Solid solid = cell.solid;
  cell = me.value;
  cell.solid = solid;
  me.mode = Mode::Hand;
  me.back = Back::Look;
  me.j = me.occupied = 0;
  me.pc = Pc::Count;
}

void WaitersModel::second(State& state, int k) {
  Actor& me = state.actors[k];
  const Cell& cell = state.cells[me.j];
  if (is_mine(cell, k, me) && mutant_ != M::NoSecond) {
    me.i = me.j;
    me.value = cell;
    me.back = Back::Second;
    scan(me, Mode::Hand);
  } else if (++me.j == setting_.cells) {
    start_call(state, k, me.my_cell);
  }
}

// The end of the call and the load of the line are one step: nothing happens between them.
void WaitersModel::leave(State& state, int k) {
  Actor& me = state.actors[k];
  state.in_call[k] = 0;
  me.i = me.my_cell;
  me.my_cell = 0;
  me.value = {Hold::Held, small(k), 0, State::Solid::Decided};
  me.back = Back::Finish;
  me.pc = Pc::Unhold;
  if (state.arrivals != state.quiet) scan(me, Mode::Hand);
}

void WaitersModel::give_up(State& state, int k) {
  Actor& me = state.actors[k];
  state.records[k] = {};
  me.j = 0;
  me.pc = Pc::GiveUpCell;
  if (mutant_ == M::NoPassOn) finish(me);
}

void WaitersModel::give_up_cell(State& state, int k) {
  Actor& me = state.actors[k];
  const Cell& cell = state.cells[me.j];
  if (is_mine(cell, k, me)) {
    me.i = me.j;
    me.value = cell;
    me.back = Back::GiveUp;
    scan(me, Mode::Hand);
  } else if (++me.j == setting_.cells) {
    finish(me);
  }
}

void WaitersModel::reap_record(State& state, int k) {
  for (int w = 0; w < State::kCallers; ++w) {
    if (state.life[w] != Life::RowDead || state.records[w].state == Queue::Idle) continue;
    state.records[w] = {};
    return;  // one record a step
  }
  state.actors[k].j = 0;
  state.actors[k].pc = Pc::ReapCell;
}

void WaitersModel::reap_cell(State& state, int k) {
  Actor& me = state.actors[k];
  Cell& cell = state.cells[me.j];
  if (cell.hold == Hold::Held && state.life[cell.who] == Life::RowDead) cell = {};
  if (++me.j < setting_.cells) return;
  me.j = 0;
  me.pc = Pc::ReapServe;
}

void WaitersModel::reap_bump(State& state, int k) {
  Actor& me = state.actors[k];
  if (state.records[me.j].state == Queue::Waiting) {
    bump(state, me.j);
    me.pc = Pc::ReapWake;
  } else if (++me.j == State::kCallers) {
    me.j = 0;
    me.pc = Pc::ReapEnd;
  }
}

void WaitersModel::reap_wake(State& state, int k) {
  Actor& me = state.actors[k];
  end_sleep(state, me.j);
  me.pc = Pc::ReapBump;
  if (++me.j < State::kCallers) return;
  me.j = 0;
  me.pc = Pc::ReapEnd;
}

// A row that still owns something keeps its number until the next tick.
void WaitersModel::reap_end(State& state, int k) {
  for (int w = 0; w < State::kCallers; ++w) {
    bool owns = state.records[w].state != Queue::Idle;
    for (const Cell& cell : state.cells) owns |= cell.hold == Hold::Held && cell.who == w;
    if (state.life[w] == Life::RowDead && !owns) state.life[w] = Life::RowFree;
  }
  state.daemon_due = 0;
  state.actors[k] = {};
  state.actors[k].pc = Pc::Done;
}

void WaitersModel::start_call(State& state, int k, int cell) {
  Actor& me = state.actors[k];
  const u8 rounds = me.rounds;
  me = {};
  me.rounds = rounds;
  me.my_cell = small(cell);
  me.pc = Pc::Call;
  state.in_call[k] = 1;
}

void WaitersModel::finish(Actor& me) {
  const u8 rounds = me.rounds;
  me = {};
  me.pc = Pc::Done;
  if (rounds <= 1) return;
  me.rounds = small(rounds - 1);
  me.pc = Pc::Enter;
}

// Clears what no later step reads, so that equal states are equal.
void WaitersModel::forget(Actor& me) const {
  const Pc pc = me.pc;
  const bool scanning = pc == Pc::ScanCell || pc == Pc::ScanRecord || pc == Pc::Limit;
  const bool chosen = pc == Pc::Grab || pc == Pc::FreeVoid;
  const bool counting = pc == Pc::Count || pc == Pc::CountLimit;
  const bool handing = pc == Pc::Pass || pc == Pc::Confirm || pc == Pc::Bump || pc == Pc::Wake;
  const bool in_line = pc == Pc::Look || pc == Pc::LookCell || pc == Pc::Sleep || pc == Pc::Asleep;
  for (int x = 0; x < State::kCellsMax; ++x) {
    if (!scanning && !(chosen && x == me.x)) me.cells[x] = {};
  }
  if (!chosen) me.x = 0;
  if (!scanning) {
    me.anybody = me.voids = 0;
    if (!counting) me.occupied = 0;
    if (pc != Pc::Quiet) me.arrivals = 0;
  }
  if (!scanning && !chosen && !counting && !handing) me.first = me.first_ticket = 0;
  if (pc == Pc::ScanCell && me.j == 0) {  // the scan begins with its next step
    me.first = me.first_ticket = me.anybody = me.voids = me.occupied = me.arrivals = 0;
    me.limit_seen = 0;
    me.cells = {};
    if (me.mode != Mode::Take) me.due = 0;
  }
  const bool judged_by_ticket = pc == Pc::Confirm && mutant_ == M::NoTicket;
  const bool judged = pc == Pc::Grab || counting || pc == Pc::Pass || judged_by_ticket;
  if (!scanning && !judged) me.due = me.limit_seen = 0;
  if (in_line) {
    me.mode = {};
    me.back = {};
    me.i = 0;
    me.value = {};
  }
}

}  // namespace cutwater::model
