// SPDX-License-Identifier: Apache-2.0
#include "ctl/usage_text.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <string_view>

#include "base/nearest.hpp"
#include "ctl/text.hpp"

namespace cutwater::ctl {
namespace {

std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

/// How far a line was understood: the innermost command, and the first word that is none where one
/// is wanted.
struct Reached {
  const CLI::App* at;
  std::string path;     ///< `breaker why`
  std::string unknown;
};

Reached follow(const CLI::App& app, const std::vector<std::string>& words) {
  Reached out{&app, {}, {}};
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const std::string before = i == 0 ? "" : words[i - 1];
    const bool value = before.starts_with("-") && before.find('=') == std::string::npos;
    if (word.starts_with("-") || value) continue;
    const auto known = commands_of(*out.at);
    if (known.empty()) break;                        // a command: what follows are its words
    const auto next = std::find_if(known.begin(), known.end(), [&](const CLI::App* command) {
      return command->get_name() == word;
    });
    if (next == known.end()) {
      out.unknown = word;
      break;
    }
    out.at = *next;
    out.path += (out.path.empty() ? "" : " ") + word;
  }
  return out;
}

std::string names_of(const std::vector<const CLI::App*>& commands) {
  std::string text;
  for (const CLI::App* command : commands) text += " " + command->get_name();
  return text;
}

std::string unknown_text(const Reached& reached) {
  const auto known = commands_of(*reached.at);
  const std::vector<std::string> names = [&] {
    std::vector<std::string> out;
    for (const CLI::App* command : known) out.push_back(command->get_name());
    return out;
  }();
  const std::vector<std::string_view> views(names.begin(), names.end());
  // A part of a name is meant for the whole, however long that is: open for force-open.
  const auto part = std::find_if(views.begin(), views.end(), [&](std::string_view name) {
    return reached.unknown.size() > 2 && name.find(reached.unknown) != std::string_view::npos;
  });
  const std::string_view near = part != views.end() ? *part : nearest(reached.unknown, views);
  return "unknown command '" + escape_short(reached.unknown) + "'" +
         (near.empty() ? "; one of:" : "; did you mean '" + std::string(near) + "'? One of:") +
         names_of(known);
}

/// The option that a word names, of the innermost command or of those around it.
const CLI::Option* option_of(const CLI::App* at, std::string_view word) {
  const bool is_long = word.starts_with("--");
  const std::string name(word.substr(is_long ? 2 : 1, is_long ? word.find('=') - 2 : 1));
  for (; at != nullptr; at = at->get_parent()) {
    for (const CLI::Option* option : at->get_options()) {
      const auto& names = is_long ? option->get_lnames() : option->get_snames();
      if (std::find(names.begin(), names.end(), name) != names.end()) return option;
    }
  }
  return nullptr;
}

bool has_positionals(const CLI::App& app) {
  const auto options = app.get_options();
  return std::any_of(options.begin(), options.end(),
                     [](const CLI::Option* option) { return option->get_positional(); });
}

/// The first option that nobody knows, with the nearest one that is; empty: all are known.
std::string unknown_option(const CLI::App& at, const std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
    const std::string& word = words[i];
    if (word.size() < 2 || word.front() != '-') continue;
    if (const CLI::Option* option = option_of(&at, word)) {
      const bool separate = word.find('=') == std::string::npos &&
                            (word.starts_with("--") || word.size() == 2);
      if (separate && option->get_items_expected_max() > 0) ++i;
      continue;
    }
    std::vector<std::string> names;
    for (const CLI::App* each = &at; each != nullptr; each = each->get_parent()) {
      for (const CLI::Option* option : each->get_options()) {
        for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
      }
    }
    const std::vector<std::string_view> views(names.begin(), names.end());
    const std::string_view near =
        word.starts_with("--") ? nearest(word.substr(0, word.find('=')), views) : "";
    std::string text = "unknown option '" + escape_short(word) + "'";
    if (!near.empty()) text += "; did you mean '" + std::string(near) + "'?";
    else if (has_positionals(at)) text += "; what begins with a dash is written behind --";
    return text;
  }
  return {};
}

/// What the library says, about the option as it was written: -n, not --last.
std::string as_written(std::string text, const CLI::App& at,
                       const std::vector<std::string>& words) {
  for (const CLI::Option* option : at.get_options()) {
    if (option->get_lnames().empty() || option->get_snames().empty()) continue;
    const std::string whole = "--" + option->get_lnames().front() + ":";
    const std::string brief = "-" + option->get_snames().front();
    const bool written = std::find(words.begin(), words.end(), brief) != words.end();
    if (written && text.starts_with(whole)) text.replace(0, whole.size() - 1, brief);
  }
  return text;
}

/// `cutwaterctl limit peek [OPTIONS] NAME KEY`.
std::string usage_line(const Reached& reached) {
  std::string text = "usage: cutwaterctl";
  if (!reached.path.empty()) text += " " + reached.path;
  text += " [OPTIONS]";
  for (const CLI::Option* option : reached.at->get_options()) {
    if (!option->get_positional()) continue;
    const std::string name = option->get_single_name();
    text += option->get_required() ? " " + name : " [" + name + "]";
  }
  for (const CLI::Option* option : reached.at->get_options()) {
    if (option->get_positional() || !option->get_required()) continue;
    text += " " + option->get_name() + " " + option->get_type_name();
  }
  return text + "; --help says more";
}

}  // namespace

std::string usage_text(const CLI::App& app, const CLI::ParseError& error,
                       const std::vector<std::string>& words) {
  const Reached reached = follow(app, words);
  if (!reached.unknown.empty()) return unknown_text(reached);
  const auto commands = commands_of(*reached.at);
  const std::string about = reached.path.empty() ? "" : reached.path + ": ";
  const bool required = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  if (required && !commands.empty()) return about + "name a command; one of:" + names_of(commands);
  std::string what = unknown_option(*reached.at, words);
  if (what.empty()) what = as_written(error.what(), *reached.at, words);
  return about + what + "\n" + usage_line(reached);
}

}  // namespace cutwater::ctl
