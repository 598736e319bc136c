// SPDX-License-Identifier: Apache-2.0
// What the model tests share: the algorithm must hold in a setting, a mutant must be caught.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <string>

#include "model/explore.hpp"

namespace cutwater::model {

// A mutant is the algorithm without one of its guards. `setting` is the one in which the checker
// must find the damage, `reason` the rule that must break first there (the search is breadth-first,
// so the answer is always the same).
template <class Mutant>
struct MutantCase {
  Mutant mutant;
  const char* name;
  const char* setting;
  const char* reason;
};

// Settings too large for every day run only when this variable of the environment is 1.
inline bool full_run() {
  const char* value = std::getenv("CUTWATER_MODEL_FULL");
  return value != nullptr && std::string(value) == "1";
}

inline std::string in_lines(const Outcome& outcome) {
  std::string lines;
  for (const std::string& line : outcome.trace) lines += "    " + line + "\n";
  return lines;
}

inline void report(const char* setting, const Outcome& outcome) {
  std::cout << setting << ": " << outcome.states << " states, " << outcome.steps << " steps, "
            << (outcome.broken ? outcome.broken : "holds") << "\n";
}

template <class State>
void expect_holds(Model<State>& model, const char* setting) {
  const Outcome outcome = explore(model);

  report(setting, outcome);
  ASSERT_FALSE(outcome.gave_up) << "more than " << kStatesMax << " states";
  EXPECT_EQ(outcome.broken, nullptr) << (outcome.broken ? outcome.broken : "") << "\n"
                                     << in_lines(outcome);
}

template <class State>
void expect_caught(Model<State>& model, const char* setting, const char* reason) {
  const Outcome outcome = explore(model);

  report(setting, outcome);
  ASSERT_NE(outcome.broken, nullptr) << "nothing breaks without this guard";
  EXPECT_STREQ(outcome.broken, reason) << in_lines(outcome);
}

// The entry of a table of settings that has this name. The tables are static; a wrong name ends the
// test program with a message.
template <class Table>
const auto& setting_named(const Table& table, const std::string& name) {
  for (const auto& entry : table) {
    if (name == entry.name) return entry;
  }
  std::cerr << "no setting is named " << name << "\n";
  std::abort();
}

// Test names from tables whose entries have a `name` of letters and digits.
inline constexpr auto kNameOf = [](const auto& info) { return std::string(info.param.name); };

}  // namespace cutwater::model
