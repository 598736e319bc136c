// SPDX-License-Identifier: Apache-2.0
// What the command line of cutwaterctl has: options, commands, and what each of them runs.
// Included by the two files that know CLI11 only. Thread safety: one thread.
#pragma once
#include <functional>
#include <string>

#include "ctl/commands.hpp"
#include "ctl/completion.hpp"

namespace CLI {
class App;
}

namespace cutwater::ctl {

/// What --for is when it is left out.
inline constexpr const char* kUntilUndone = "0";

/// The words of one command line, as CLI11 fills them in.
struct Line {
  Settings settings;
  std::string output = "table", timeout = "1s", hold = kUntilUndone;
  std::string file, shell, word;
  std::uint64_t cost = 1, number = 0, trips = kTripsShown;
  bool dry = false;
  KeyAct act;
  BreakerHand hand;  ///< its name also for what only looks, and of a bulkhead
  OverrideAct override_act;
  KeysAsk keys;
  EventsAsk events;
  ReplayCommand replay;
  std::function<Exit()> chosen;  ///< the command that was named
};

void add_globals(CLI::App& app, Line& line);
void add_commands(CLI::App& app, Line& line);

/// What the commands are, for completion.
CommandTree tree_of(const CLI::App& app);
/// The same of this program, whatever line it was given.
CommandTree command_tree();

}  // namespace cutwater::ctl
