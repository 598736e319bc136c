// SPDX-License-Identifier: Apache-2.0
// Completion of command lines for bash, zsh and fish, generated from the commands themselves, so
// that no list of them is kept twice. `cutwaterctl completion SHELL` prints the script.
//
// A script completes commands, options, the words an option or a positional argument takes, files
// where a file is wanted, and names of limits, breakers and bulkheads by asking the tool itself
// (200 ms at most; no daemon: no names). Keys of callers are never completed.
// Thread safety: pure functions.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cutwater::ctl {

/// What stands where a value is wanted.
enum class Wanted : unsigned char {
  Nothing, Anything, File, LimitName, BreakerName, BulkheadName, Words,
};

/// The kind of a value by the word the help shows for it: FILE, LOG, DIR; NAME, which is one of
/// `names`; others Anything.
Wanted wanted_by(std::string_view placeholder, Wanted names) noexcept;
/// Names of what a group of commands (limit, breaker, bulkhead) is about; else Anything.
Wanted names_of_group(std::string_view group) noexcept;

/// The words of a placeholder such as `table|json`; empty when it is none.
std::vector<std::string> words_of(std::string_view placeholder);

struct CommandOption {
  std::vector<std::string> names;  ///< as typed: "-o", "--output"
  std::string help;
  Wanted value = Wanted::Nothing;  ///< Nothing: a flag
  std::vector<std::string> words;  ///< with Wanted::Words
};

/// An argument without a dash in front, by its place behind the command.
struct Positional {
  Wanted wanted = Wanted::Anything;
  std::vector<std::string> words;  ///< with Wanted::Words
};

/// A command, or the program itself (then options are those every command takes).
struct CommandTree {
  std::string name, help;
  std::vector<CommandOption> options;
  std::vector<Positional> positionals;
  std::vector<CommandTree> children;
};

enum class Shell : unsigned char { Bash, Zsh, Fish };

/// bash, zsh, fish; others nothing.
std::optional<Shell> shell_of(std::string_view name) noexcept;

std::string completion_script(const CommandTree& program, Shell shell);

}  // namespace cutwater::ctl
