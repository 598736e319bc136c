// SPDX-License-Identifier: Apache-2.0
// Model: a decision on M of P results that are read one by one.
//
// Each of P probes writes its result into its own cell; who finds M results decides, by one swap of
// the breaker's word. The cells cannot be read at one instant. Is what somebody saw a moment that
// existed?
//
//   swap the own cell -> result; load the word: decided -> done
//   read all cells, again and again until two readings agree; M results -> swap the word; else done
//
// The rule that is checked: a result whose call had returned before a newer call began is never
// left out of a decision that counts the newer one; and when M results are there and nobody was
// killed, somebody has decided.
#pragma once

#include <array>

#include "model/explore.hpp"

namespace cutwater::model {

enum class CollectMutant {
  None,
  OneReading,  // the first reading of the cells is taken for the truth
};

struct CollectState {
  static constexpr int kCells = 3;    // P
  static constexpr int kDecides = 2;  // M
  static constexpr int kActors = 4;   // the last brings no result: a refused caller that settles

  enum class Pc : u8 { Start, Write, LoadWord, Read, Decide, Done, Dead };
  struct Actor {
    Pc pc;
    u8 i;     // the cell a reading has come to
    u8 seen;  // bit k: cell k had its result, in this reading
    u8 last;  // the same in the reading before; kNoReading at first
  };

  u8 decided;
  u8 returned;  // ghost, bit k: actor k's call has returned
  u8 kills;
  std::array<u8, kCells> cell;    // 1: the result is there
  std::array<u8, kCells> before;  // ghost: whose calls had returned before k's began
  std::array<Actor, kActors> actors;
};

class CollectModel final : public Model<CollectState> {
 public:
  explicit CollectModel(CollectMutant mutant) : mutant_(mutant) {}

  State initial() const override;
  void successors(const State& from, Sink& sink) override;
  void check_final(const State& state) override;

 private:
  void step(State& state, int actor);
  void read(State& state, int actor);
  void decide(State& state, int actor);
  static void finish(State& state, int actor);

  const CollectMutant mutant_;
};

}  // namespace cutwater::model
