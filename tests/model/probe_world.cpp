// SPDX-License-Identifier: Apache-2.0
// What happens to the actors of the probe model from outside, and the rules of every state.
#include "model/probe_model.hpp"

namespace cutwater::model {

using Pc = ProbeState::Pc;
using Role = ProbeState::Role;
using Hold = ProbeState::Hold;
using Life = ProbeState::Life;
using Breaker = ProbeState::Breaker;

namespace {

const char* label(Pc pc) {
  switch (pc) {
    case Pc::Load: return "load word";
    case Pc::ToHalfOpen: return "swap word Open -> HalfOpen";
    case Pc::LoadCell: return "load cell";
    case Pc::Take: return "swap cell -> Held";
    case Pc::Lapse: return "swap lapsed cell";
    case Pc::LoadAgain: return "load word again";
    case Pc::GiveBack: return "swap own cell -> Free";
    case Pc::Call: return "call ends";
    case Pc::Spend: return "swap cell -> Spent";
    case Pc::Ignore: return "swap cell -> Free (ignored)";
    case Pc::Settle: return "settle: load word";
    case Pc::Count: return "settle: load cell";
    case Pc::Move: return "swap word";
    case Pc::AppendEvent: return "append event";
    case Pc::MarkAnnounced: return "swap announced bit";
    case Pc::Operate: return "operator";
    case Pc::Done: break;
  }
  return "";
}

void start_daemon(ProbeState& state) {
  ProbeState::Actor& daemon = state.actors[ProbeState::kDaemon];
  daemon = {};
  daemon.role = Role::Daemon;
  daemon.row = ProbeState::kDaemon;
  daemon.pc = Pc::Load;
}

// The daemon's tick: it looks again when there is something to see.
void wake_daemon(ProbeState& state) {
  ProbeState::Actor& daemon = state.actors[ProbeState::kDaemon];
  if (daemon.pc == Pc::Done) daemon.pc = Pc::Load;
}

bool row_is_active(const ProbeState& state, int row) {
  for (int k = 0; k < ProbeState::kDaemon; ++k) {
    if (state.actors[k].row == row && state.actors[k].pc != Pc::Done) return true;
  }
  return false;
}

}  // namespace

ProbeState ProbeModel::initial() const {
  State state{};
  state.word = {Breaker::Open, 1, 1, 1};
  state.events[0] = state.events[1] = 1;
  state.deadlines = small(setting_.deadlines);
  for (int k = 0; k < State::kActors; ++k) {
    Actor& actor = state.actors[k];
    actor.row = small(setting_.same_process && k == 1 ? 0 : k);
    actor.pc = k < setting_.callers ? Pc::Load : Pc::Done;
    if (k < setting_.callers) actor.rounds = small(setting_.rounds);
  }
  state.actors[State::kDaemon].role = Role::Daemon;
  state.actors[State::kDaemon].pc = setting_.callers == 3 ? Pc::Done : Pc::Load;
  if (setting_.control) {
    state.actors[State::kControl].role = Role::Control;
    state.actors[State::kControl].pc = Pc::Operate;
  }
  return state;
}

void ProbeModel::successors(const State& from, Sink& sink) {
  for (int k = 0; k < State::kRescuer; ++k) {
    const Actor& actor = from.actors[k];
    if (actor.pc == Pc::Done) continue;
    const Life life = from.life[actor.row];
    // A row that was reaped although its process lives: the process goes on, unaware.
    const bool unaware = from.wrongly_reaped && actor.role == Role::Caller;
    if (life == Life::Killed || (life == Life::RowDead && !unaware)) continue;
    const int picks = actor.pc == Pc::Call ? 3 : actor.pc == Pc::Operate ? 2 : 1;
    for (int pick = 0; pick < picks; ++pick) {
      emit(from, sink, {small(k), label(actor.pc), true},
           [&](State& next) { step(next, k, pick); });
    }
  }
  processes_die(from, sink);
  time_passes(from, sink);
}

void ProbeModel::processes_die(const State& from, Sink& sink) {
  if (!setting_.kills) return;
  for (int row = 0; row < State::kRows; ++row) {
    if (from.life[row] == Life::Killed) {
      emit(from, sink, {State::kDaemon, "daemon marks the row dead", true}, [&](State& next) {
        next.life[row] = Life::RowDead;
        wake_daemon(next);
      });
    }
    if (from.life[row] != Life::Alive || !row_is_active(from, row)) continue;
    emit(from, sink, {small(row), "killed", false}, [&](State& next) {
      next.life[row] = Life::Killed;
      for (int k = 0; k < State::kDaemon; ++k) {
        Actor& actor = next.actors[k];
        if (actor.row != row) continue;
        const Role role = actor.role;
        actor = {};
        actor.role = role;
        actor.row = small(row);
        actor.pc = Pc::Done;
      }
    });
    if (!setting_.wrong_reap) continue;
    emit(from, sink, {small(row), "row reaped although alive", false}, [&](State& next) {
      next.life[row] = Life::RowDead;
      next.wrongly_reaped = 1;
    });
  }
  if (from.actors[State::kDaemon].pc == Pc::Done) return;
  emit(from, sink, {State::kDaemon, "daemon killed, a new one starts", false},
       [](State& next) { start_daemon(next); });
}

void ProbeModel::time_passes(const State& from, Sink& sink) {
  if (from.word.state == Breaker::Open && !from.word.late) {
    emit(from, sink, {kWorld, "open time over", false}, [](State& next) { next.word.late = 1; });
  }
  for (int i = 0; i < State::kCells; ++i) {
    const Cell& cell = from.cells[i];
    if (cell.hold != Hold::Held || cell.late || from.deadlines == 0) continue;
    emit(from, sink, {kWorld, "probe deadline passes", false}, [&](State& next) {
      next.cells[i].late = 1;
      --next.deadlines;
      wake_daemon(next);
    });
  }
}

// go(), for runs of a bounded number of epochs: what lies beyond is not followed, nor judged.
void ProbeModel::emit(const State& from, Sink& sink, Step step, auto change) {
  State next = from;
  change(next);
  if (next.word.epoch < setting_.epochs_max) sink.add(next, step);
  else take_broken();
}

void ProbeModel::check(const State& state) {
  rescue(state);
  if (state.word.epoch > 0 && !state.events[state.word.epoch - 1]) {
    fail("an earlier transition has no event");
  }
}

// Everybody else is stopped for ever, the daemon is dead, time passes: one fresh caller after the
// other must bring the breaker to Closed.
void ProbeModel::rescue(State state) {
  constexpr int kCalls = 12;
  constexpr int kSteps = 200;
  Actor& rescuer = state.actors[State::kRescuer];
  for (int call = 0; call < kCalls; ++call) {
    if (state.word.state == Breaker::Closed) return;
    state.word.late = 1;
    for (Cell& cell : state.cells) cell.late = cell.hold == Hold::Held;
    rescuer = {};
    rescuer.row = State::kRescuer;
    rescuer.rounds = 1;
    for (int i = 0; i < kSteps && rescuer.pc != Pc::Done; ++i) {
      if (state.word.epoch + 1 >= State::kEpochs) return fail("a lone caller only moves on");
      step(state, State::kRescuer, kSuccess);
    }
    if (rescuer.pc != Pc::Done) return fail("a lone caller never comes back");
  }
  if (state.word.state != Breaker::Closed) {
    fail("stuck: a lone caller cannot bring the breaker back");
  }
}

}  // namespace cutwater::model
