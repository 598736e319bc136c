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
  const std::string_view near = nearest(reached.unknown, views);
  return "unknown command '" + escape_short(reached.unknown) + "'" +
         (near.empty() ? "" : "; did you mean '" + std::string(near) + "'?") +
         "; one of:" + names_of(known);
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
  return about + error.what() + "\n" + usage_line(reached);
}

}  // namespace cutwater::ctl
