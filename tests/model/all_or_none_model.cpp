// SPDX-License-Identifier: Apache-2.0
#include "model/all_or_none_model.hpp"

#include <algorithm>

namespace cutwater::model {

using Pc = AllOrNoneState::Pc;
using M = AllOrNoneMutant;

namespace {

constexpr int kFirst = 0;
constexpr int kSecond = 1;

const char* label(Pc pc) {
  switch (pc) {
    case Pc::Clock: return "clock";
    case Pc::LookFirst: return "look at the first";
    case Pc::LookSecond: return "look at the second";
    case Pc::LoadFirst: return "load the first";
    case Pc::SwapFirst: return "swap the first";
    case Pc::LoadSecond: return "load the second";
    case Pc::SwapSecond: return "swap the second";
    case Pc::Undo: return "undo the first";
    case Pc::Done:
    case Pc::Dead: break;
  }
  return "";
}

}  // namespace

void AllOrNoneModel::step(State& state, int caller) {
  Caller& me = state.callers[caller];
  switch (me.pc) {
    case Pc::Clock:
      me.now = state.now;
      me.pc = Pc::LookFirst;
      break;
    case Pc::LookFirst:
      if (fits(me, kFirst, state.full_at[kFirst])) me.pc = Pc::LookSecond;
      else finish(me);
      break;
    case Pc::LookSecond:  // up to here nothing was written
      if (fits(me, kSecond, state.full_at[kSecond])) me.pc = Pc::LoadFirst;
      else finish(me);
      break;
    case Pc::LoadFirst:
      me.loaded = state.full_at[kFirst];
      if (fits(me, kFirst, me.loaded)) me.pc = Pc::SwapFirst;
      else finish(me);
      break;
    case Pc::SwapFirst: swap_first(state, me); break;
    case Pc::LoadSecond: {
      me.loaded = state.full_at[kSecond];
      const bool take = fits(me, kSecond, me.loaded) || mutant_ == M::TakeWithoutCheck;
      me.pc = take ? Pc::SwapSecond : Pc::Undo;
      break;
    }
    case Pc::SwapSecond: swap_second(state, me); break;
    case Pc::Undo: undo(state, me); break;
    case Pc::Done:
    case Pc::Dead: break;
  }
}

void AllOrNoneModel::swap_first(State& state, Caller& me) {
  if (state.full_at[kFirst] != me.loaded) {
    me.pc = Pc::LoadFirst;
    return;
  }
  me.receipt = small(std::max(me.loaded, me.now) + me.cost);
  state.full_at[kFirst] = me.receipt;
  me.pc = Pc::LoadSecond;
}

void AllOrNoneModel::swap_second(State& state, Caller& me) {
  if (state.full_at[kSecond] != me.loaded) {
    me.pc = Pc::LoadSecond;
    return;
  }
  const int end = std::max(me.loaded, me.now) + me.cost;
  if (end > me.now + State::kBurst[kSecond]) fail("beyond the burst");
  state.full_at[kSecond] = small(end);
  use(state, kSecond, end, me.cost);
  use(state, kFirst, me.receipt, me.cost);
  finish(me);
}

void AllOrNoneModel::undo(State& state, Caller& me) {
  u8& full_at = state.full_at[kFirst];
  const int before = me.receipt - me.cost;
  if (mutant_ == M::UndoLowers) {
    full_at = small(std::max<int>(full_at - me.cost, me.now));
  } else if (mutant_ == M::UndoStoresOld) {
    full_at = small(std::max(before, 0));
  } else if (mutant_ == M::NoUndo) {
    // nothing is given back
  } else if (full_at == me.receipt) {
    full_at = small(mutant_ == M::UndoBelowReceipt && before > 0 ? before - 1 : before);
  } else {
    state.lost = small(state.lost + me.cost);  // too late: under-use, never over-use
  }
  finish(me);
}

bool AllOrNoneModel::fits(const Caller& me, int bucket, int full_at) {
  return std::max<int>(full_at, me.now) + me.cost <= me.now + State::kBurst[bucket];
}

// Ghost: a call that has both charges uses the tokens (end - cost, end].
void AllOrNoneModel::use(State& state, int bucket, int end, int cost) {
  if (end > State::kAxis) return fail("the axis of this model is too short");
  for (int x = end - cost; x < end; ++x) {
    if (++state.used[bucket][x] > 1) fail("two calls own one token");
  }
}

void AllOrNoneModel::finish(Caller& me) {
  const Caller was = me;
  me = {};
  me.cost = was.cost;
  me.rounds = was.rounds > 1 ? small(was.rounds - 1) : u8{0};
  me.pc = was.rounds > 1 ? Pc::Clock : Pc::Done;
}

AllOrNoneState AllOrNoneModel::initial() const {
  State state{};
  state.kills = small(setting_.kills);
  state.ticks = small(setting_.ticks);
  for (int k = 0; k < State::kCallers; ++k) {
    Caller& caller = state.callers[k];
    caller.pc = k < setting_.callers ? Pc::Clock : Pc::Done;
    caller.cost = small(setting_.cost[k]);
    caller.rounds = small(setting_.rounds);
  }
  return state;
}

void AllOrNoneModel::successors(const State& from, Sink& sink) {
  for (int k = 0; k < State::kCallers; ++k) {
    const Pc pc = from.callers[k].pc;
    if (pc == Pc::Done || pc == Pc::Dead) continue;
    go(from, sink, {small(k), label(pc), true}, [&](State& next) { step(next, k); });
    if (from.kills == 0) continue;
    go(from, sink, {small(k), "killed", false}, [&](State& next) {
      --next.kills;
      Caller& victim = next.callers[k];
      const bool charged = pc == Pc::LoadSecond || pc == Pc::SwapSecond || pc == Pc::Undo;
      if (charged) next.spent = small(next.spent + victim.cost);
      victim = {};
      victim.pc = Pc::Dead;
    });
  }
  if (from.ticks == 0) return;
  go(from, sink, {kWorld, "one token's time passes", false}, [](State& next) {
    --next.ticks;
    ++next.now;
  });
}

// Every token of the first bucket below its end was used by one call, or was lost by a kill or by
// an undo that somebody overtook. (When time passes a token may also expire unused.)
void AllOrNoneModel::check_final(const State& state) {
  int unused = 0;
  for (int x = 0; x < state.full_at[kFirst]; ++x) unused += state.used[kFirst][x] == 0;
  if (setting_.ticks == 0 && unused > state.spent + state.lost) {
    fail("tokens lost without a kill or an overtaken undo");
  }
  const int cost_max = *std::max_element(setting_.cost.begin(), setting_.cost.end());
  if (state.spent > cost_max * (setting_.kills - state.kills)) {
    fail("a kill cost more than its tokens");
  }
}

}  // namespace cutwater::model
