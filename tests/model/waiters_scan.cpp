// SPDX-License-Identifier: Apache-2.0
// Scan, hand over, free: what every actor of the waiters model does with a place it makes or holds.
#include "model/waiters_model.hpp"

namespace cutwater::model {

using Pc = WaitersState::Pc;
using Hold = WaitersState::Hold;
using Mode = WaitersState::Mode;
using Back = WaitersState::Back;
using M = WaitersMutant;

void WaitersModel::scan(Actor& me, Mode mode) const {
  me.mode = mode;
  me.pc = Pc::ScanCell;
  me.j = 0;
}

// The line is read by the first step of a scan. (It is an atomic load of its own in the protocol;
// here it rides on the first load of a cell, which comes right after it.)
void WaitersModel::scan_cell(State& state, int k) {
  Actor& me = state.actors[k];
  if (me.j == 0) {
    me.arrivals = state.arrivals;
    me.occupied = me.voids = me.anybody = me.first = me.first_ticket = 0;
    me.cells = {};
    if (setting_.order) {
      me.limit_seen = state.limit;
      if (me.mode != Mode::Take) me.due = first_in_line(state);
    }
  }
  Cell& seen = me.cells[me.j];
  seen = state.cells[me.j];
  seen.solid = {};
  if (seen.hold != Hold::Free) ++me.occupied;
  if (seen.hold == Hold::Handed) me.voids = small(me.voids | 1 << me.j);
  if (++me.j < setting_.cells) return;
  me.j = 0;
  me.pc = Pc::ScanRecord;
  if (me.mode == Mode::Take && me.voids == 0) scanned(state, k);
}

void WaitersModel::scan_record(State& state, int k) {
  Actor& me = state.actors[k];
  const int w = me.j;
  const State::Record& record = state.records[w];
  const bool in_line = eligible(state, w);
  bool has_place = false;
  if (record.state == State::Queue::Waiting && state.life[w] < State::Life::RowDead) {
    me.anybody = 1;
  }
  for (int x = 0; x < setting_.cells; ++x) {
    const Cell& cell = me.cells[x];
    if (cell.hold != Hold::Handed || cell.who != w || !in_line) continue;
    if (cell.ticket != name_of(record.ticket)) continue;
    me.voids = small(me.voids & ~(1 << x));
    has_place = true;
  }
  const bool better = mutant_ == M::NotLowest ? record.ticket > me.first_ticket
                                              : record.ticket < me.first_ticket;
  if (in_line && !has_place && (me.first_ticket == 0 || better)) {
    me.first = small(w);
    me.first_ticket = record.ticket;
  }
  if (++me.j < State::kCallers) return;
  me.j = 0;
  if (mutant_ == M::NoVoid) me.voids = 0;
  scanned(state, k);
}

// Where the limit never changes, loading it is no step of its own.
void WaitersModel::scanned(State& state, int k) {
  state.actors[k].pc = Pc::Limit;
  if (setting_.limit_later == 0) choose(state, k);
}

void WaitersModel::choose(State& state, int k) {
  Actor& me = state.actors[k];
  const int limit = state.limit;
  int usable = -1;
  int last_void = -1;
  for (int x = 0; x < setting_.cells; ++x) {
    const bool is_void = (me.voids >> x & 1) != 0;
    if (is_void) last_void = x;
    const bool is_free = me.cells[x].hold == Hold::Free;
    const bool room = (is_free && me.occupied < limit) || (is_void && me.occupied <= limit);
    if (usable < 0 && x < limit && room) usable = x;
  }
  const bool somebody = me.first_ticket != 0;
  switch (me.mode) {
    case Mode::Take:
      if (usable < 0) return go_back(me);
      me.x = small(usable);
      me.pc = Pc::Grab;
      break;
    case Mode::Serve:
      if (usable >= 0 && somebody) {
        me.i = small(usable);
        me.value = me.cells[usable];
        me.pc = Pc::Pass;
      } else if (last_void >= 0) {
        me.x = small(last_void);
        me.pc = Pc::FreeVoid;
      } else if (!me.anybody) {
        me.pc = Pc::Quiet;
      } else {
        go_back(me);
      }
      break;
    case Mode::Hand: {
      const bool over = me.i >= limit || me.occupied > limit;
      if (over && mutant_ != M::HandOverLimit) me.pc = Pc::Unhold;
      else if (somebody) me.pc = Pc::Pass;
      else me.pc = me.anybody ? Pc::Unhold : Pc::Quiet;
      break;
    }
  }
}

void WaitersModel::pass(State& state, int k) {
  Actor& me = state.actors[k];
  Cell& cell = state.cells[me.i];
  if (!cell.same(me.value)) {
    if (me.mode != Mode::Serve) return go_back(me);
    me.i = 0;
    me.value = {};
    return scan(me, Mode::Serve);
  }
  if (me.due && me.first_ticket > me.due && overtakes(state, me.due)) {
    fail("a waiter was served out of turn");
  }
  const bool same_limit = me.limit_seen == state.limit;
  if (me.mode == Mode::Hand && same_limit && decided(state) > state.limit) {
    fail("handed on while over the limit");
  }
  const State::Solid solid = cell.hold == Hold::Free ? State::Solid{} : cell.solid;
  me.value = {Hold::Handed, me.first, name_of(me.first_ticket), {}};
  cell = me.value;
  cell.solid = solid;
  me.pc = mutant_ == M::NoConfirm ? Pc::Bump : Pc::Confirm;
}

// The waiter may have gone between the scan and the swap; then the place is passed on again.
void WaitersModel::confirm(State& state, int k) {
  Actor& me = state.actors[k];
  const u8 ticket = state.records[me.first].ticket;
  if (!eligible(state, me.first) || name_of(ticket) != me.value.ticket) {
    return scan(me, Mode::Hand);
  }
  me.pc = Pc::Bump;
  if (mutant_ != M::NoTicket || !me.due || ticket <= me.due) return;
  for (int w = 0; w < State::kCallers; ++w) {
    if (state.records[w].ticket == me.due && eligible(state, w)) {
      fail("a waiter was served out of turn");
    }
  }
}

void WaitersModel::wake(State& state, int k) {
  Actor& me = state.actors[k];
  end_sleep(state, me.first);
  if (me.mode != Mode::Serve) return go_back(me);
  me.i = 0;
  me.value = {};
  scan(me, Mode::Serve);
}

void WaitersModel::unhold(State& state, int k) {
  Actor& me = state.actors[k];
  if (!state.cells[me.i].same(me.value)) return go_back(me);
  state.cells[me.i] = {};
  me.value = {};
  me.pc = Pc::Relook;
  if (mutant_ == M::NoRelook) go_back(me);
}

void WaitersModel::free_void(State& state, int k) {
  Actor& me = state.actors[k];
  if (state.cells[me.x].same(me.cells[me.x])) state.cells[me.x] = {};
  scan(me, Mode::Serve);
}

// Whoever arrived after the scan began has moved the arrivals on, and the line is not quiet.
void WaitersModel::make_quiet(State& state, int k) {
  Actor& me = state.actors[k];
  if (mutant_ == M::QuietBlind || state.arrivals == me.arrivals) state.quiet = state.arrivals;
  if (me.mode == Mode::Hand) me.pc = Pc::Unhold;
  else go_back(me);
}

void WaitersModel::go_back(Actor& me) const {
  me.i = 0;
  me.value = {};
  me.mode = {};
  me.first = me.first_ticket = me.due = me.limit_seen = 0;
  switch (me.back) {
    case Back::Finish: finish(me); break;
    case Back::Look: me.pc = Pc::Look; break;
    case Back::Claim:
      if (setting_.wait) me.pc = Pc::Claim;
      else finish(me);
      break;
    case Back::Second:
      me.pc = Pc::Second;
      me.j = 0;
      break;
    case Back::GiveUp:
      me.pc = Pc::GiveUpCell;
      me.j = 0;
      break;
    case Back::Daemon:
      me.pc = Pc::ReapBump;
      me.j = 0;
      break;
  }
}

// Only whoever is between its load of the word and its wait can see that the word has changed.
void WaitersModel::bump(State& state, int waiter) {
  const Pc pc = state.actors[waiter].pc;
  state.bumped[waiter] = pc == Pc::LookCell || pc == Pc::Sleep;
}

void WaitersModel::end_sleep(State& state, int waiter) {
  Actor& sleeper = state.actors[waiter];
  if (sleeper.pc == Pc::Asleep) sleeper.pc = Pc::Look;
}

}  // namespace cutwater::model
