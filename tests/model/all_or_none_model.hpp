// SPDX-License-Identifier: Apache-2.0
// Model: two buckets that are charged together or not at all, without a lock over both.
//
//   read the clock; look at both buckets, writing nothing; one says no -> refuse
//   in fixed order: load; fits -> swap {x} -> {x + cost} (x + cost is the receipt y)
//   the second does not fit any more: undo the first by one swap {y} -> {y - cost}, only while it
//   still holds exactly that receipt (else somebody charged after it and the tokens stay spent)
//
// A bucket is one number, the place on the token axis where it is full again. The rate is one token
// a tick; the bursts are 3 and 2.
//
// The rules that are checked: no token of either bucket is used by two calls, none beyond the
// burst; a kill loses at most its cost in what was already charged; without a kill a token is lost
// only when somebody charged between a charge and its undo; everybody comes to an end.
#pragma once

#include <array>

#include "model/explore.hpp"

namespace cutwater::model {

struct AllOrNoneSetting {
  const char* name;
  int callers;
  std::array<int, 3> cost;  // of each caller, in both buckets
  int kills;
  int ticks;
  int rounds;
};

enum class AllOrNoneMutant {
  None,
  UndoLowers,       // the undo takes the cost off whatever the bucket holds now
  UndoStoresOld,    // the undo stores what was there before the charge, without compare
  NoUndo,           // a lost race leaves the first bucket charged
  TakeWithoutCheck, // the second bucket is charged on the word of the look
  UndoBelowReceipt, // the undo gives back more than the receipt says
};

struct AllOrNoneState {
  static constexpr int kCallers = 3;
  static constexpr int kBuckets = 2;
  static constexpr int kAxis = 8;
  static constexpr std::array<int, kBuckets> kBurst = {3, 2};

  enum class Pc : u8 {
    Clock, LookFirst, LookSecond, LoadFirst, SwapFirst, LoadSecond, SwapSecond, Undo, Done, Dead
  };
  struct Caller {
    Pc pc;
    u8 cost;
    u8 now;       // the reading of the clock all of this request is judged by
    u8 loaded;    // the bucket as it was loaded last
    u8 receipt;   // of the charge in the first bucket
    u8 rounds;
  };

  u8 now;
  u8 kills;
  u8 ticks;
  u8 spent;  // ghost: tokens of the first bucket whose owner was killed before it had both
  u8 lost;   // ghost: tokens whose undo came too late
  std::array<u8, kBuckets> full_at;
  std::array<std::array<u8, kAxis>, kBuckets> used;  // ghost: how often each token was used
  std::array<Caller, kCallers> callers;
};

class AllOrNoneModel final : public Model<AllOrNoneState> {
 public:
  AllOrNoneModel(const AllOrNoneSetting& setting, AllOrNoneMutant mutant)
      : setting_(setting), mutant_(mutant) {}

  State initial() const override;
  void successors(const State& from, Sink& sink) override;
  void check_final(const State& state) override;

 private:
  using Caller = State::Caller;

  void step(State& state, int caller);
  void swap_first(State& state, Caller& me);
  void swap_second(State& state, Caller& me);
  void undo(State& state, Caller& me);

  static bool fits(const Caller& me, int bucket, int full_at);
  void use(State& state, int bucket, int end, int cost);
  static void finish(Caller& me);

  const AllOrNoneSetting setting_;
  const AllOrNoneMutant mutant_;
};

}  // namespace cutwater::model
