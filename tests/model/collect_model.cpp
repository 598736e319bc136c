// SPDX-License-Identifier: Apache-2.0
#include "model/collect_model.hpp"

#include <bit>

namespace cutwater::model {

using Pc = CollectState::Pc;

namespace {

constexpr u8 kNoReading = 255;
constexpr u8 kAllCells = (1 << CollectState::kCells) - 1;

const char* label(Pc pc) {
  switch (pc) {
    case Pc::Start: return "the call begins";
    case Pc::Write: return "swap own cell -> result";
    case Pc::LoadWord: return "load word";
    case Pc::Read: return "load cell";
    case Pc::Decide: return "swap word";
    case Pc::Done:
    case Pc::Dead: break;
  }
  return "";
}

}  // namespace

void CollectModel::step(State& state, int actor) {
  State::Actor& me = state.actors[actor];
  switch (me.pc) {
    case Pc::Start:
      state.before[actor] = state.returned & kAllCells;
      me.pc = Pc::Write;
      break;
    case Pc::Write:
      state.cell[actor] = 1;
      me.pc = Pc::LoadWord;
      break;
    case Pc::LoadWord:
      if (state.decided) {
        finish(state, actor);
      } else {
        me = {.pc = Pc::Read, .i = 0, .seen = 0, .last = kNoReading};
      }
      break;
    case Pc::Read: read(state, actor); break;
    case Pc::Decide: decide(state, actor); break;
    case Pc::Done:
    case Pc::Dead: break;
  }
}

void CollectModel::read(State& state, int actor) {
  State::Actor& me = state.actors[actor];
  me.seen = small(me.seen | state.cell[me.i] << me.i);
  if (++me.i < State::kCells) return;
  me.i = 0;
  if (me.seen != me.last && mutant_ != CollectMutant::OneReading) {
    me.last = me.seen;
    me.seen = 0;
  } else if (std::popcount(me.seen) >= State::kDecides) {
    me.pc = Pc::Decide;
  } else {
    finish(state, actor);
  }
}

void CollectModel::decide(State& state, int actor) {
  State::Actor& me = state.actors[actor];
  if (!state.decided) {
    state.decided = 1;
    for (int k = 0; k < State::kCells; ++k) {
      const bool counted = (me.seen >> k & 1) != 0;
      if (counted && (state.before[k] & ~me.seen) != 0) {
        fail("a returned result is left out of a decision that counts a newer one");
      }
    }
  }
  me = {};
  me.pc = Pc::LoadWord;
}

void CollectModel::finish(State& state, int actor) {
  state.actors[actor] = {};
  state.actors[actor].pc = Pc::Done;
  state.returned = small(state.returned | 1 << actor);
}

CollectState CollectModel::initial() const {
  State state{};
  state.kills = 1;
  state.actors[State::kActors - 1].pc = Pc::LoadWord;
  return state;
}

void CollectModel::successors(const State& from, Sink& sink) {
  for (int k = 0; k < State::kActors; ++k) {
    const Pc pc = from.actors[k].pc;
    if (pc == Pc::Done || pc == Pc::Dead) continue;
    go(from, sink, {small(k), label(pc), true}, [&](State& next) { step(next, k); });
    if (from.kills == 0) continue;
    go(from, sink, {small(k), "killed", false}, [&](State& next) {
      --next.kills;
      next.actors[k] = {};
      next.actors[k].pc = Pc::Dead;
    });
  }
}

void CollectModel::check_final(const State& state) {
  int results = 0;
  for (const u8 cell : state.cell) results += cell;
  const bool nobody_killed = state.kills > 0;
  if (results >= State::kDecides && !state.decided && nobody_killed) {
    fail("enough results, nobody killed, no decision");
  }
}

}  // namespace cutwater::model
