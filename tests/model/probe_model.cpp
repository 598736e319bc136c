// SPDX-License-Identifier: Apache-2.0
// The steps of an actor. The world around it: probe_world.cpp.
#include "model/probe_model.hpp"

namespace cutwater::model {

using Pc = ProbeState::Pc;
using Role = ProbeState::Role;
using Hold = ProbeState::Hold;
using Breaker = ProbeState::Breaker;
using M = ProbeMutant;

void ProbeModel::step(State& state, int actor, int pick) {
  Actor& me = state.actors[actor];
  switch (me.pc) {
    case Pc::Load: load(state, me); break;
    case Pc::ToHalfOpen:
      if (state.word.same(me.word)) {
        moved(state, {Breaker::HalfOpen, small(me.word.epoch + 1), 0, 0}, false);
        announce(me, state.word, Pc::Load);
      } else {
        me.pc = Pc::Load;
      }
      break;
    case Pc::LoadCell: load_cell(state, me); break;
    case Pc::Take: take(state, me); break;
    case Pc::Lapse: lapse(state, me); break;
    case Pc::LoadAgain: load_again(state, me); break;
    case Pc::GiveBack:
      if (state.cells[me.got].same(me.mine)) state.cells[me.got].release_as(Hold::Free);
      me.pc = Pc::Load;
      break;
    case Pc::Call:
      me.bad = pick == kFailure;
      me.pc = pick == kIgnored ? Pc::Ignore : Pc::Spend;
      break;
    case Pc::Spend: spend(state, me); break;
    case Pc::Ignore: ignore(state, me); break;
    case Pc::Settle: settle(state, me); break;
    case Pc::Count: count(state, me); break;
    case Pc::Move: move(state, me); break;
    case Pc::AppendEvent: append_event(state, me); break;
    case Pc::MarkAnnounced:
      if (state.word.same(me.word)) state.word.announced = 1;
      if (me.then == Pc::Done) finish(me);
      else me.pc = me.then;
      break;
    case Pc::Operate: operate(state, me, pick); break;
    case Pc::Done: break;
  }
  forget(me);
}

void ProbeModel::load(State& state, Actor& me) {
  me.word = state.word;
  me.i = 0;
  if (me.role == Role::Daemon) return load_daemon(me);
  switch (me.word.state) {
    case Breaker::Closed: finish(me); break;
    case Breaker::HalfOpen: me.pc = Pc::LoadCell; break;
    case Breaker::Open:
      if (!me.word.late) finish(me);
      else if (!me.word.announced && mutant_ != M::NoAnnounce) announce(me, me.word, Pc::Load);
      else me.pc = Pc::ToHalfOpen;
      break;
  }
}

void ProbeModel::load_daemon(Actor& me) {
  if (me.word.state == Breaker::HalfOpen) me.pc = Pc::LoadCell;
  else if (me.word.announced) me.pc = Pc::Done;
  else announce(me, me.word, Pc::Done);
}

void ProbeModel::load_cell(State& state, Actor& me) {
  me.cell = state.cells[me.i];
  const Cell& cell = me.cell;
  const bool current = cell.epoch == me.word.epoch;
  if (cell.epoch > me.word.epoch && mutant_ != M::OtherNotOlder) {
    me.pc = Pc::Load;  // the word I hold is the stale one
    return;
  }
  const bool held = current && cell.hold == Hold::Held && mutant_ != M::NoDeadRule;
  if (held && dead(state, cell)) {
    const bool take_over = me.role != Role::Daemon && mutant_ != M::DeadIsResult;
    me.pc = take_over ? Pc::Take : Pc::Lapse;
    return;
  }
  if (held && cell.late && mutant_ != M::NoLapse) {
    me.pc = Pc::Lapse;
    return;
  }
  if ((!current || cell.hold == Hold::Free) && me.role == Role::Caller) {
    me.pc = Pc::Take;
    return;
  }
  if (++me.i < State::kCells) return;
  me.pc = mutant_ == M::NoSettle && me.role == Role::Caller ? Pc::Done : Pc::Settle;
  me.brought = 0;
}

void ProbeModel::take(State& state, Actor& me) {
  if (!state.cells[me.i].same(me.cell)) {
    me.pc = Pc::LoadCell;
    return;
  }
  if (state.word.state == Breaker::HalfOpen && me.cell.epoch == state.word.epoch) {
    if (me.cell.hold == Hold::Spent) fail("a result of the current epoch was overwritten");
    if (me.cell.hold == Hold::Held && !me.cell.late && !dead(state, me.cell)) {
      fail("a live probe of the current epoch was overwritten");
    }
  }
  const u8 number = mutant_ == M::NoTake ? u8{0} : small(me.cell.take + 1);
  me.mine = {Hold::Held, me.word.epoch, me.row, number, 0, 0, ++state.ids};
  state.cells[me.i] = me.mine;
  me.got = me.i;
  me.pc = Pc::LoadAgain;
  if (mutant_ != M::NoReread) return;
  me.pc = Pc::Call;
  if (state.word.state != Breaker::HalfOpen || state.word.epoch != me.mine.epoch) {
    fail("a call starts although the breaker had moved on");
  }
}

void ProbeModel::lapse(State& state, Actor& me) {
  me.pc = Pc::LoadCell;
  Cell& cell = state.cells[me.i];
  if (!cell.same(me.cell)) return;
  const bool frees = dead(state, me.cell) || setting_.lapse_frees;
  cell = me.cell;
  if (frees && mutant_ != M::DeadIsResult) {
    cell.release_as(Hold::Free);
    return;
  }
  cell.release_as(Hold::Spent);
  cell.bad = 1;
  note_result(state, cell);
  if (dead(state, me.cell)) fail("a dead owner spoke about the dependency");
}

// The last load before the call: it showed HalfOpen of the epoch of the cell.
void ProbeModel::load_again(State& state, Actor& me) {
  if (state.word.epoch != me.mine.epoch) {
    me.pc = Pc::GiveBack;
    return;
  }
  if (state.word.state != Breaker::HalfOpen) fail("a call starts outside HalfOpen");
  const Cell& cell = state.cells[me.got];
  const bool may_be_gone = cell.hold != Hold::Held || setting_.lapse_frees ||
                           dead(state, me.mine);
  if (cell.id != me.mine.id && !may_be_gone) fail("a call starts without its cell");
  me.pc = Pc::Call;
}

void ProbeModel::spend(State& state, Actor& me) {
  Cell& cell = state.cells[me.got];
  const bool own = mutant_ == M::EpochlessResult
                       ? cell.row == me.mine.row && cell.hold == Hold::Held
                       : cell.same(me.mine);
  if (!own) return finish(me);  // late: nothing else happens
  if (cell.id != me.mine.id) fail("a late result changed somebody else's probe");
  cell.release_as(Hold::Spent);
  cell.bad = me.bad;
  note_result(state, cell);
  me.brought = 1;
  me.pc = Pc::Settle;
}

void ProbeModel::ignore(State& state, Actor& me) {
  Cell& cell = state.cells[me.got];
  if (cell.same(me.mine)) {
    if (cell.id != me.mine.id) fail("a late result changed somebody else's probe");
    cell.release_as(Hold::Free);
  }
  finish(me);
}

void ProbeModel::settle(State& state, Actor& me) {
  me.word = state.word;
  me.i = me.seen = me.bad = 0;
  if (me.word.state == Breaker::HalfOpen) me.pc = Pc::Count;
  else if (me.brought || me.role == Role::Daemon) finish(me);
  else me.pc = Pc::Load;
}

void ProbeModel::count(State& state, Actor& me) {
  const Cell& cell = state.cells[me.i];
  const bool current = cell.epoch == me.word.epoch || mutant_ == M::CountOldSpent;
  if (cell.hold == Hold::Spent && current) {
    ++me.seen;
    me.bad = small(me.bad + cell.bad);
  }
  if (++me.i < State::kCells) return;
  const bool decided = me.seen == State::kCells || (setting_.first_failure && me.bad);
  if (!decided) finish(me);
  else if (!me.word.announced && mutant_ != M::NoAnnounce) announce(me, me.word, Pc::Settle);
  else me.pc = Pc::Move;
}

void ProbeModel::move(State& state, Actor& me) {
  const bool blind = mutant_ == M::MoveBlind && state.word.state == Breaker::HalfOpen;
  if (!state.word.same(me.word) && !blind) {
    me.pc = Pc::Settle;
    return;
  }
  const Breaker next = opens(me.bad) ? Breaker::Open : Breaker::Closed;
  moved(state, {next, small(state.word.epoch + 1), 0, 0}, true);
  announce(me, state.word, me.brought || me.role == Role::Daemon ? Pc::Done : Pc::Load);
}

// Readers drop an epoch they have seen; what they must never see is a gap.
void ProbeModel::append_event(State& state, Actor& me) {
  const int epoch = me.word.epoch;
  if (epoch > 0 && !state.events[epoch - 1]) fail("events out of order");
  state.events[epoch] = 1;
  me.pc = Pc::MarkAnnounced;
}

void ProbeModel::operate(State& state, Actor& me, int pick) {
  if (!me.seen) {
    me.word = state.word;
    me.seen = 1;
    if (!me.word.announced) announce(me, me.word, Pc::Operate);
    return;
  }
  if (!state.word.same(me.word)) {
    me.word = {};
    me.seen = 0;
    return;
  }
  const Breaker next = pick == kReset ? Breaker::Closed : Breaker::Open;
  moved(state, {next, small(me.word.epoch + 1), 0, 0}, false);
  announce(me, state.word, Pc::Done);
}

void ProbeModel::announce(Actor& me, Word word, Pc then) {
  me.word = word;
  me.then = then;
  me.pc = Pc::AppendEvent;
}

void ProbeModel::finish(Actor& me) {
  me.pc = Pc::Done;
  if (me.role != Role::Caller || me.rounds <= 1) return;
  --me.rounds;
  me.pc = Pc::Load;
}

// Clears what the next step does not read, so that equal states are equal.
void ProbeModel::forget(Actor& me) {
  const Pc pc = me.pc;
  const bool on_cell = pc == Pc::Take || pc == Pc::Lapse;
  const bool announcing = pc == Pc::AppendEvent || pc == Pc::MarkAnnounced;
  const bool counting = pc == Pc::Count || pc == Pc::Move;
  const bool looking = pc == Pc::LoadCell || on_cell;
  const bool operating = pc == Pc::Operate;
  if (!looking && !counting && !announcing && !operating && pc != Pc::ToHalfOpen) me.word = {};
  if (!on_cell) me.cell = {};
  if (!looking && pc != Pc::Count) me.i = 0;
  if (!counting && !operating) me.seen = 0;
  if (!counting && pc != Pc::Spend) me.bad = 0;
  if (!announcing) me.then = {};
  if (pc == Pc::Done || pc == Pc::Load) {
    me.mine = {};
    me.got = me.brought = 0;
  }
}

bool ProbeModel::dead(const State& state, const Cell& cell) {
  return state.life[cell.row] == State::Life::RowDead;
}

bool ProbeModel::opens(int failures) const {
  return setting_.first_failure ? failures > 0 : failures * 2 >= State::kCells;
}

// Ghost: a transition of the word, against the sequential rule over the results so far.
void ProbeModel::moved(State& state, Word next, bool by_results) {
  if (by_results) {
    const bool all = state.results == State::kCells;
    if (!setting_.first_failure && !all) fail("decided before every probe had a result");
    if ((next.state == Breaker::Open) != opens(state.failures)) {
      fail("decision differs from the sequential rule");
    }
    if (next.state == Breaker::Closed && !all) fail("closed before every probe had a result");
  }
  if (next.epoch != state.word.epoch + 1) fail("an epoch was skipped or used twice");
  if (!state.events[state.word.epoch]) fail("a transition will never be announced");
  state.word = next;
  state.results = state.failures = 0;
}

void ProbeModel::note_result(State& state, const Cell& cell) {
  if (state.word.state != Breaker::HalfOpen || cell.epoch != state.word.epoch) return;
  ++state.results;
  state.failures = small(state.failures + cell.bad);
  if (state.results > State::kCells) fail("more results than probes");
}

}  // namespace cutwater::model
