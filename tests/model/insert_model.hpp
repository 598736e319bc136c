// SPDX-License-Identifier: Apache-2.0
// Model: the first sight of a key in a table of buckets that has no lock.
//
// A key without an entry may be anywhere: somebody may be inserting it at this moment, or may just
// have inserted, spent and filled it, so that it was replaced again. The protocol that is modelled:
//
//   read the clock; find: a member of this key -> charge it
//   missed: read the clock again (it judges which entries are full and may be replaced)
//   scan:   a member -> charge it; a tentative of this key -> adopt it;
//           else swap the first full or empty slot -> {tentative, nonce}
//   rescan: a member, or a tentative at a lower address -> withdraw the own one, start over;
//           a tentative at a higher address -> swap it to empty
//   read the clock again, then the overflow word;
//   swap the own tentative (by exact value) -> {member, max(that reading, overflow) + cost}
//   no slot at all: charge the overflow word, starting a little ahead of the clock;
//           rescan: somebody of this key is there -> undo by receipt, start over;
//           clock again: already past the start -> undo, start over;
//           else wait until the charge is inside the burst
//
// One tested key meets churn of other keys in a window of two slots. The rate is one token a tick,
// so that a moment is also a place on the token axis; every cost is 1.
//
// The rule that is checked: every token of the key is used at most once, none beyond the burst,
// none below the clock; there is never more than one member of the key; everybody comes to an end.
#pragma once

#include <array>

#include "model/explore.hpp"

namespace cutwater::model {

struct InsertSetting {
  const char* name;
  int rounds;      // requests of each caller, one after the other
  int kills;       // callers that may be killed, between any two of their steps
  int ticks;       // how far the clock may run
  int churns;      // replacements of full or lapsed entries by other keys
  bool overflow;   // both slots are in debt at first; who finds none uses the overflow word
  int burst;
};

enum class InsertMutant {
  None,
  FirstClockOnly,         // one reading of the clock, before the first look
  ClockBeforeRescan,      // the reading that starts the bucket comes before the rescan
  NoRescan,               // the own tentative is promoted without looking for others
  BlindPromote,           // the member is written whatever the slot holds
  NoOverflowRead,         // a new member does not start with the debt of the overflow word
  OverflowReadEarly,      // it does, but the word was read before the tentative was published
  NoOverflowRescan,       // the overflow word is charged without looking for the key again
  NoOverflowClock,        // it is charged by the first reading of the clock
  TentativesLookAlike,    // no nonce: a tentative cannot be told from another of the same key
  NoOverflowWait,         // an overflow charge does not wait for its start
};

struct InsertState {
  static constexpr int kSlots = 2;
  static constexpr int kCallers = 2;
  static constexpr int kAxis = 16;  // longer than any run: burst + ticks + all costs

  enum class Tag : u8 { Empty, Member, Tentative, Other };
  struct Slot {
    Tag tag;
    u8 value;  // Member, Other: when it is full again. Tentative: its nonce.
    bool operator==(const Slot&) const = default;
    bool is_key() const { return tag == Tag::Member || tag == Tag::Tentative; }
  };
  enum class Pc : u8 {
    Clock, Find, ClockAfterMiss, Scan, Publish, Rescan, Withdraw, KillOther, ClockAfterRescan,
    ReadOverflow, Promote, LoadMember, ChargeMember, OverLoad, OverCharge, OverRescan, OverClock,
    OverWait, OverUndo, Done, Dead
  };
  struct Caller {
    Pc pc;
    u8 i;            // the slot a look has come to
    u8 now;          // the last reading of the clock
    u8 own;          // the slot of the own tentative or of the member to charge
    u8 victim;       // the slot to replace; kSlots: none
    u8 tentative;    // the slot of somebody's tentative of this key; kSlots: none
    u8 seen;         // the overflow's rescan met the key
    u8 overflow;     // the overflow word as it was read
    u8 start;        // where the slice of an overflow charge begins
    u8 rounds;
    Slot victim_was;
    Slot own_is;     // the exact value of the own (or adopted) tentative
    Slot other;      // the exact value of the entry that is to be killed or charged
  };

  std::array<Slot, kSlots> slots;
  std::array<Caller, kCallers> callers;
  u8 now;
  u8 overflow;
  u8 kills, ticks, churns;
  u8 nonces;
  std::array<u8, kAxis> used;  // ghost: how often each token was handed out
};

class InsertModel final : public Model<InsertState> {
 public:
  InsertModel(const InsertSetting& setting, InsertMutant mutant)
      : setting_(setting), mutant_(mutant) {}

  State initial() const override;
  void successors(const State& from, Sink& sink) override;
  void check(const State& state) override;

 private:
  using Slot = State::Slot;
  using Caller = State::Caller;

  void step(State& state, int caller);
  void find(State& state, Caller& me);
  void scan(State& state, Caller& me);
  void publish(State& state, Caller& me);
  void rescan(State& state, Caller& me);
  void kill_other(State& state, Caller& me);
  void rescan_next(Caller& me);
  void promote(State& state, Caller& me);
  void load_member(State& state, Caller& me);
  void charge_member(State& state, Caller& me);
  void over_load(State& state, Caller& me);
  void over_charge(State& state, Caller& me);
  void over_rescan(State& state, Caller& me);
  void over_clock(State& state, Caller& me);
  void over_wait(State& state, Caller& me);

  void use(State& state, int end, int now);
  static void start_over(Caller& me);
  static void finish(Caller& me);
  static bool replaceable(Slot slot, int now);

  const InsertSetting setting_;
  const InsertMutant mutant_;
};

}  // namespace cutwater::model
