// SPDX-License-Identifier: Apache-2.0
// What happens to the actors of the waiters model from outside, its ghosts, and the rules at the
// end.
#include <algorithm>

#include "model/waiters_model.hpp"

namespace cutwater::model {

using Pc = WaitersState::Pc;
using Hold = WaitersState::Hold;
using Queue = WaitersState::Queue;
using Life = WaitersState::Life;
using Solid = WaitersState::Solid;

namespace {

const char* label(Pc pc) {
  switch (pc) {
    case Pc::Enter: return "load line";
    case Pc::ScanCell: return "scan: load cell";
    case Pc::ScanRecord: return "scan: load record";
    case Pc::Limit: return "load limit, decide";
    case Pc::Grab: return "swap cell -> Held";
    case Pc::Count: return "count: load cell";
    case Pc::CountLimit: return "count: load limit";
    case Pc::Pass: return "swap cell -> Handed";
    case Pc::Confirm: return "load record again";
    case Pc::Bump: return "bump futex word";
    case Pc::Wake: return "futex wake";
    case Pc::Unhold: return "swap cell -> Free";
    case Pc::Relook: return "load line again";
    case Pc::FreeVoid: return "swap void cell -> Free";
    case Pc::Quiet: return "swap line quiet";
    case Pc::Claim: return "claim record, take ticket";
    case Pc::Publish: return "publish record";
    case Pc::Arrive: return "bump arrivals";
    case Pc::Look: return "load own futex word";
    case Pc::LookCell: return "look for own Handed";
    case Pc::Sleep: return "futex wait";
    case Pc::Asleep: return "timer";
    case Pc::Mine: return "swap Handed -> Held";
    case Pc::LeaveLine: return "record -> Idle";
    case Pc::Second: return "look for a second Handed";
    case Pc::Call: return "call ends";
    case Pc::Leave: return "load line (leave)";
    case Pc::GiveUp: return "give up: record -> Idle";
    case Pc::GiveUpCell: return "give up: look for Handed";
    case Pc::ReapRecord: return "reap: record -> Idle";
    case Pc::ReapCell: return "reap: cell";
    case Pc::ReapServe: return "reap: serve";
    case Pc::ReapBump: return "reap: bump";
    case Pc::ReapWake: return "reap: wake";
    case Pc::ReapEnd: return "reap: free the row";
    case Pc::Done:
    case Pc::Dead:
    case Pc::Stopped: break;
  }
  return "";
}

bool at_rest(Pc pc) { return pc == Pc::Done || pc == Pc::Dead || pc == Pc::Stopped; }

void start_daemon(WaitersState& state) {
  WaitersState::Actor& daemon = state.actors[WaitersState::kDaemon];
  daemon = {};
  daemon.pc = Pc::ReapRecord;
}

}  // namespace

WaitersState WaitersModel::initial() const {
  State state{};
  state.limit = state.cap = small(setting_.limit);
  state.limit_later = small(setting_.limit_later);
  state.kills = small(setting_.kills);
  state.daemon_kills = small(setting_.daemon_kills);
  state.deadlines = small(setting_.deadlines);
  state.stops = small(setting_.stops);
  for (Actor& actor : state.actors) actor.pc = Pc::Done;
  for (int k = 0; k < setting_.callers; ++k) {
    state.actors[k].pc = Pc::Enter;
    const bool once = setting_.callers == 3 && k != 1;
    state.actors[k].rounds = small(once ? 1 : setting_.rounds);
  }
  for (int k = 0; k < 2; ++k) {
    const int cell = setting_.holds[k];
    if (cell < 0) continue;
    state.cells[cell] = {Hold::Held, small(k), 0, Solid::Decided};
    state.actors[k].pc = Pc::Call;
    state.actors[k].my_cell = small(cell);
    state.in_call[k] = 1;
  }
  // Both places are held: the third has already seen that and decided to queue.
  if (setting_.holds[1] >= 0) state.actors[2].pc = Pc::Claim;
  return state;
}

void WaitersModel::successors(const State& from, Sink& sink) {
  for (int k = 0; k < State::kActors; ++k) {
    if (!can_move(from, k)) continue;
    emit(from, sink, {small(k), label(from.actors[k].pc), true},
         [&](State& next) { step(next, k); });
  }
  for (int k = 0; k < State::kCallers; ++k) callers_suffer(from, sink, k);
  daemon_and_limit(from, sink);
}

// A sleep that is capped ends again and again. Once after each deadline and once after a stop is
// enough here: at any other time its serving finds nothing that its last one did not.
bool WaitersModel::can_move(const State& state, int k) const {
  const Actor& me = state.actors[k];
  if (me.pc != Pc::Asleep) return !at_rest(me.pc);
  if (state.records[k].late) return true;
  for (int w = 0; w < State::kCallers; ++w) {
    const State::Record& record = state.records[w];
    const bool noticed = (me.noticed >> w & 1) != 0;
    if (record.state == Queue::Waiting && record.late && !noticed) return true;
  }
  return mutant_ != WaitersMutant::NoCap && (state.capped >> k & 1) != 0;
}

void WaitersModel::callers_suffer(const State& from, Sink& sink, int k) {
  const bool active = !at_rest(from.actors[k].pc);
  if (active && from.kills > 0) {
    emit(from, sink, {small(k), "killed", false}, [&](State& next) {
      --next.kills;
      next.actors[k] = {};
      next.actors[k].pc = Pc::Dead;
      next.life[k] = Life::Killed;
      next.in_call[k] = 0;
    });
  }
  if (active && from.stops > 0) {
    emit(from, sink, {small(k), "stopped for ever", false}, [&](State& next) {
      --next.stops;
      next.actors[k] = {};
      next.actors[k].pc = Pc::Stopped;
      next.in_call[k] = 0;
      constexpr int kEverybody = (1 << State::kCallers) - 1;
      next.capped = small(kEverybody & ~(1 << k));
    });
  }
  const State::Record& record = from.records[k];
  if (record.state == Queue::Waiting && !record.late && from.deadlines > 0) {
    emit(from, sink, {small(k), "waiter's deadline passes", false}, [&](State& next) {
      --next.deadlines;
      next.records[k].late = 1;
    });
  }
  if (from.life[k] == Life::Killed && from.actors[State::kDaemon].pc == Pc::Done) {
    emit(from, sink, {State::kDaemon, "daemon marks the row dead", true}, [&](State& next) {
      next.life[k] = Life::RowDead;
      start_daemon(next);
    });
  }
}

void WaitersModel::daemon_and_limit(const State& from, Sink& sink) {
  const bool idle = from.actors[State::kDaemon].pc == Pc::Done;
  if (from.limit_later != 0) {
    emit(from, sink, {State::kDaemon, "limit changed", false}, [](State& next) {
      for (Cell& cell : next.cells) {
        const bool trying = cell.hold != Hold::Free && cell.solid == Solid::Trying;
        if (trying) cell.solid = Solid::OlderTry;
      }
      next.daemon_due = next.limit_later > next.limit;
      next.limit = next.limit_later;
      next.limit_later = 0;
    });
  }
  if (from.daemon_due && idle) {
    emit(from, sink, {State::kDaemon, "daemon's tick", true}, start_daemon);
  }
  if (from.daemon_kills > 0 && !idle) {
    emit(from, sink, {State::kDaemon, "daemon killed, a new one starts", false},
         [](State& next) {
           --next.daemon_kills;
           start_daemon(next);
         });
  }
}

// go(), with the rules that hold after every step.
void WaitersModel::emit(const State& from, Sink& sink, Step step, auto change) {
  go(from, sink, step, [&](State& next) {
    change(next);
    check_places(next);
  });
}

void WaitersModel::check_places(State& state) {
  const int places = decided(state);
  state.cap = small(std::max<int>(state.limit, std::min<int>(state.cap, places)));
  if (places > state.cap) fail("more places decided than the limit allows");
  int running = 0;
  for (int k = 0; k < State::kCallers; ++k) {
    if (!state.in_call[k]) continue;
    ++running;
    const bool has_place = std::any_of(state.cells.begin(), state.cells.end(), [&](const Cell& c) {
      return c.hold == Hold::Held && c.who == k;
    });
    if (!has_place) fail("a call runs without a place");
  }
  if (running > state.cap) fail("more calls running than the limit allows");
}

void WaitersModel::check_final(const State& state) {
  bool frozen = false;  // somebody who is stopped, not dead, keeps a place: its waiters wait
  for (const Cell& cell : state.cells) {
    frozen |= cell.hold != Hold::Free && state.actors[cell.who].pc == Pc::Stopped;
  }
  for (int k = 0; k < State::kCallers; ++k) {
    if (state.actors[k].pc != Pc::Asleep) continue;
    for (int x = 0; x < setting_.cells && x < state.limit; ++x) {
      const Cell& cell = state.cells[x];
      const bool for_nobody = cell.hold == Hold::Handed && !eligible(state, cell.who);
      const bool for_me = cell.hold == Hold::Handed && cell.who == k;
      if (cell.hold == Hold::Free || for_nobody || for_me) {
        fail("lost wake-up: a live waiter sleeps beside a free place");
      }
    }
    if (!frozen) fail("lost wake-up: a live waiter sleeps for ever");
  }
  for (const Cell& cell : state.cells) {
    if (cell.hold == Hold::Free || state.actors[cell.who].pc == Pc::Stopped) continue;
    const bool kept = cell.hold == Hold::Held || (eligible(state, cell.who) &&
                                                  state.records[cell.who].ticket == cell.ticket);
    if (kept || setting_.stops == 0) fail("lost place: a cell is never free again");
  }
}

bool WaitersModel::eligible(const State& state, int waiter) {
  const State::Record& record = state.records[waiter];
  return record.state == Queue::Waiting && !record.late && state.life[waiter] < Life::RowDead;
}

bool WaitersModel::handed(const State& state, int waiter) {
  return std::any_of(state.cells.begin(), state.cells.end(), [&](const Cell& cell) {
    return cell.hold == Hold::Handed && cell.who == waiter &&
           cell.ticket == state.records[waiter].ticket;
  });
}

// Does the ticket still stand in line, with nothing handed to it?
bool WaitersModel::overtakes(const State& state, int ticket) const {
  for (int w = 0; w < State::kCallers; ++w) {
    if (state.records[w].ticket == ticket && eligible(state, w) && !handed(state, w)) return true;
  }
  return false;
}

int WaitersModel::decided(const State& state) {
  int places = 0;
  for (const Cell& cell : state.cells) {
    places += cell.hold != Hold::Free && cell.solid != Solid::Trying;
  }
  return places;
}

// The ticket that must be served next, 0 when nobody has fully arrived.
u8 WaitersModel::first_in_line(const State& state) const {
  u8 lowest = 0;
  for (int w = 0; w < State::kCallers; ++w) {
    const bool arrived = eligible(state, w) && state.actors[w].pc != Pc::Arrive;
    if (!arrived || state.life[w] != Life::Alive || handed(state, w)) continue;
    if (lowest == 0 || state.records[w].ticket < lowest) lowest = state.records[w].ticket;
  }
  return lowest;
}

}  // namespace cutwater::model
