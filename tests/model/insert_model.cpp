// SPDX-License-Identifier: Apache-2.0
#include "model/insert_model.hpp"

#include <algorithm>

namespace cutwater::model {

using Pc = InsertState::Pc;
using Tag = InsertState::Tag;
using M = InsertMutant;

namespace {

constexpr u8 kNone = InsertState::kSlots;

const char* label(Pc pc) {
  switch (pc) {
    case Pc::Clock: return "clock";
    case Pc::Find: return "find: load slot";
    case Pc::ClockAfterMiss: return "clock after miss";
    case Pc::Scan: return "scan: load slot";
    case Pc::Publish: return "swap victim -> tentative";
    case Pc::Rescan: return "rescan: load slot";
    case Pc::Withdraw: return "withdraw own";
    case Pc::KillOther: return "kill other tentative";
    case Pc::ClockAfterRescan: return "clock after rescan";
    case Pc::ReadOverflow: return "load overflow";
    case Pc::Promote: return "swap tentative -> member + charge";
    case Pc::LoadMember: return "load member";
    case Pc::ChargeMember: return "swap charge";
    case Pc::OverLoad: return "overflow: load";
    case Pc::OverCharge: return "overflow: swap";
    case Pc::OverRescan: return "overflow: rescan";
    case Pc::OverClock: return "overflow: clock";
    case Pc::OverWait: return "overflow: wait";
    case Pc::OverUndo: return "overflow: undo";
    case Pc::Done:
    case Pc::Dead: break;
  }
  return "";
}

}  // namespace

void InsertModel::step(State& state, int caller) {
  Caller& me = state.callers[caller];
  switch (me.pc) {
    case Pc::Clock:
      me.now = state.now;
      me.i = 0;
      me.pc = Pc::Find;
      break;
    case Pc::Find: find(state, me); break;
    case Pc::ClockAfterMiss:  // an old reading would only replace less
      me.now = state.now;
      me.pc = Pc::Scan;
      break;
    case Pc::Scan: scan(state, me); break;
    case Pc::Publish: publish(state, me); break;
    case Pc::Rescan: rescan(state, me); break;
    case Pc::Withdraw:
      if (state.slots[me.own] == me.own_is) state.slots[me.own] = {};
      start_over(me);
      break;
    case Pc::KillOther: kill_other(state, me); break;
    case Pc::ClockAfterRescan:
      me.now = state.now;
      me.pc = Pc::ReadOverflow;
      break;
    case Pc::ReadOverflow:
      if (mutant_ != M::OverflowReadEarly) {
        me.overflow = mutant_ == M::NoOverflowRead ? u8{0} : state.overflow;
      }
      me.pc = Pc::Promote;
      break;
    case Pc::Promote: promote(state, me); break;
    case Pc::LoadMember: load_member(state, me); break;
    case Pc::ChargeMember: charge_member(state, me); break;
    case Pc::OverLoad: over_load(state, me); break;
    case Pc::OverCharge: over_charge(state, me); break;
    case Pc::OverRescan: over_rescan(state, me); break;
    case Pc::OverClock: over_clock(state, me); break;
    case Pc::OverWait: over_wait(state, me); break;
    case Pc::OverUndo:  // by receipt: only while nobody has charged after it
      if (state.overflow == me.start + 1) state.overflow = me.start;
      start_over(me);
      break;
    case Pc::Done:
    case Pc::Dead: break;
  }
  // Forget what no later step reads, so that equal states are equal.
  if (me.pc == Pc::LoadMember || me.pc == Pc::ChargeMember) {
    me.victim = me.tentative = me.seen = me.overflow = 0;
    me.victim_was = me.own_is = {};
    if (me.pc == Pc::LoadMember) me.other = {};
  }
}

void InsertModel::find(State& state, Caller& me) {
  if (state.slots[me.i].tag == Tag::Member) {
    me.own = me.i;
    me.pc = Pc::LoadMember;
  } else if (++me.i == State::kSlots) {
    me.i = 0;
    me.victim = me.tentative = kNone;
    me.pc = mutant_ == M::FirstClockOnly ? Pc::Scan : Pc::ClockAfterMiss;
  }
}

void InsertModel::scan(State& state, Caller& me) {
  const Slot slot = state.slots[me.i];
  if (slot.tag == Tag::Member) {
    me.own = me.i;
    me.i = 0;
    me.pc = Pc::LoadMember;
    return;
  }
  if (slot.tag == Tag::Tentative && me.tentative == kNone) {
    me.tentative = me.i;
    me.own_is = slot;
  }
  if (me.victim == kNone && replaceable(slot, me.now)) {
    me.victim = me.i;
    me.victim_was = slot;
  }
  if (++me.i < State::kSlots) return;
  me.i = 0;
  if (mutant_ == M::OverflowReadEarly) me.overflow = state.overflow;
  if (me.tentative != kNone) {
    me.own = me.tentative;
    me.pc = Pc::Rescan;
  } else if (me.victim != kNone) {
    me.pc = Pc::Publish;
  } else if (setting_.overflow) {
    me.pc = Pc::OverLoad;
  } else {
    finish(me);
  }
}

void InsertModel::publish(State& state, Caller& me) {
  if (state.slots[me.victim] != me.victim_was) return start_over(me);
  const u8 nonce = mutant_ == M::TentativesLookAlike ? u8{1} : ++state.nonces;
  me.own_is = {Tag::Tentative, nonce};
  state.slots[me.victim] = me.own_is;
  me.own = me.victim;
  me.i = 0;
  me.pc = mutant_ == M::NoRescan ? Pc::ClockAfterRescan : Pc::Rescan;
}

void InsertModel::rescan(State& state, Caller& me) {
  const Slot slot = state.slots[me.i];
  if (me.i != me.own && slot.is_key()) {
    if (slot.tag == Tag::Member || me.i < me.own) {
      me.pc = Pc::Withdraw;
    } else {
      me.other = slot;
      me.pc = Pc::KillOther;
    }
    return;
  }
  rescan_next(me);
}

void InsertModel::kill_other(State& state, Caller& me) {
  me.pc = Pc::Rescan;
  if (state.slots[me.i] != me.other) return;  // look at that slot again
  state.slots[me.i] = {};
  rescan_next(me);
}

void InsertModel::rescan_next(Caller& me) {
  if (++me.i < State::kSlots) return;
  me.i = 0;
  const bool early = mutant_ == M::FirstClockOnly || mutant_ == M::ClockBeforeRescan;
  me.pc = early ? Pc::ReadOverflow : Pc::ClockAfterRescan;
}

void InsertModel::promote(State& state, Caller& me) {
  const int end = std::max(me.now, me.overflow) + 1;
  const bool fits = end <= me.now + setting_.burst;
  Slot& slot = state.slots[me.own];
  const bool blind = mutant_ == M::BlindPromote && slot.tag != Tag::Member;
  if (slot != me.own_is && !blind) return start_over(me);
  slot = {Tag::Member, small(fits ? end : end - 1)};
  if (fits) use(state, end, me.now);
  finish(me);
}

void InsertModel::load_member(State& state, Caller& me) {
  me.other = state.slots[me.own];
  if (me.other.tag != Tag::Member) {
    start_over(me);
  } else if (std::max(me.other.value, me.now) + 1 > me.now + setting_.burst) {
    finish(me);  // refused
  } else {
    me.pc = Pc::ChargeMember;
  }
}

void InsertModel::charge_member(State& state, Caller& me) {
  if (state.slots[me.own] != me.other) {
    me.pc = Pc::LoadMember;
    return;
  }
  const int end = std::max(me.other.value, me.now) + 1;
  state.slots[me.own].value = small(end);
  use(state, end, me.now);
  finish(me);
}

// The charge starts a tick ahead of the clock: a cost equal to the burst fits at one moment only,
// and judged by the reading it was computed from it would be refused for ever.
void InsertModel::over_load(State& state, Caller& me) {
  const int ahead = mutant_ == M::NoOverflowClock ? 0 : 1;
  me.overflow = state.overflow;
  me.start = std::max(me.overflow, small(me.now + ahead));
  if (me.start + 1 > me.now + setting_.burst + ahead) {
    finish(me);
  } else {
    me.pc = Pc::OverCharge;
  }
}

void InsertModel::over_charge(State& state, Caller& me) {
  if (state.overflow != me.overflow) {
    me.pc = Pc::OverLoad;
    return;
  }
  state.overflow = small(me.start + 1);
  me.i = 0;
  me.seen = 0;
  me.pc = Pc::OverRescan;
}

void InsertModel::over_rescan(State& state, Caller& me) {
  if (mutant_ != M::NoOverflowRescan && state.slots[me.i].is_key()) me.seen = 1;
  if (++me.i < State::kSlots) return;
  me.i = 0;
  me.pc = me.seen ? Pc::OverUndo : Pc::OverClock;
}

// Nothing that was replaced before the rescan reached beyond this reading: when the start is not
// below it, no token of the slice can have been used by a member that is gone.
void InsertModel::over_clock(State& state, Caller& me) {
  if (mutant_ == M::NoOverflowClock) {
    use(state, me.start + 1, me.now);
    finish(me);
  } else if (state.now > me.start) {
    me.pc = Pc::OverUndo;
  } else {
    me.now = state.now;
    me.pc = Pc::OverWait;
  }
}

// The admission is stamped with the first moment at which it is inside the burst.
void InsertModel::over_wait(State& state, Caller& me) {
  const int end = me.start + 1;
  const bool wait = mutant_ != M::NoOverflowWait;
  if (wait && end > state.now + setting_.burst) {
    me.now = state.now;
    return;
  }
  use(state, end, wait ? std::max<int>(me.now, end - setting_.burst) : me.now);
  finish(me);
}

// Ghost: the token (end - 1, end] is handed out at the moment `now`.
void InsertModel::use(State& state, int end, int now) {
  if (end > now + setting_.burst) fail("beyond the burst");
  if (end - 1 < now) fail("below the clock");
  if (end >= State::kAxis) return fail("the axis of this model is too short");
  if (++state.used[end] > 1) fail("one token handed out twice");
}

void InsertModel::start_over(Caller& me) {
  const u8 rounds = me.rounds;
  me = {};
  me.rounds = rounds;
}

void InsertModel::finish(Caller& me) {
  const u8 rounds = me.rounds;
  me = {};
  me.rounds = rounds > 1 ? small(rounds - 1) : u8{0};
  me.pc = rounds > 1 ? Pc::Clock : Pc::Done;
}

// A tentative is taken over only by its own key, or by the world once its deadline has passed.
bool InsertModel::replaceable(Slot slot, int now) {
  if (slot.tag == Tag::Empty) return true;
  return slot.tag != Tag::Tentative && slot.value <= now;
}

InsertState InsertModel::initial() const {
  State state{};
  state.kills = small(setting_.kills);
  state.ticks = small(setting_.ticks);
  state.churns = small(setting_.churns);
  state.slots.fill({Tag::Other, small(setting_.overflow ? 1 : 0)});
  for (Caller& caller : state.callers) caller.rounds = small(setting_.rounds);
  return state;
}

void InsertModel::successors(const State& from, Sink& sink) {
  for (int k = 0; k < State::kCallers; ++k) {
    const Pc pc = from.callers[k].pc;
    if (pc == Pc::Done || pc == Pc::Dead) continue;
    go(from, sink, {small(k), label(pc), true}, [&](State& next) { step(next, k); });
    if (from.kills == 0) continue;
    go(from, sink, {small(k), "killed", false}, [&](State& next) {
      --next.kills;
      next.callers[k] = {};
      next.callers[k].pc = Pc::Dead;
    });
  }
  if (from.ticks > 0) {
    go(from, sink, {kWorld, "tick", false}, [](State& next) {
      --next.ticks;
      ++next.now;
    });
  }
  if (from.churns == 0) return;
  const auto churn = [&](int i, const char* what, int full_in) {
    go(from, sink, {kWorld, what, false}, [&](State& next) {
      --next.churns;
      next.slots[i] = {Tag::Other, small(next.now + full_in)};
    });
  };
  for (int i = 0; i < State::kSlots; ++i) {
    const Slot slot = from.slots[i];
    if (replaceable(slot, from.now)) churn(i, "churn takes a full slot", 2);
    if (slot.tag == Tag::Tentative) churn(i, "churn takes a lapsed tentative", 1);
  }
}

void InsertModel::check(const State& state) {
  int members = 0;
  for (const Slot slot : state.slots) members += slot.tag == Tag::Member;
  if (members > 1) fail("two members of one key");
}

}  // namespace cutwater::model
