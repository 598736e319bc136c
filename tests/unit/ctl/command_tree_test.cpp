// SPDX-License-Identifier: Apache-2.0
// The man page and the completion of each shell know every command and every option that the
// command line has.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "ctl/command_line.hpp"

namespace cutwater::ctl {
namespace {

using Visit = std::function<void(const std::string& words, const CommandTree& command)>;

/// Each command that does something, by its words: `breaker force-open`.
void each_command(const CommandTree& tree, const std::string& before, const Visit& visit) {
  for (const CommandTree& child : tree.children) {
    const std::string words = before.empty() ? child.name : before + " " + child.name;
    if (child.children.empty()) visit(words, child);
    each_command(child, words, visit);
  }
}

/// Heads and what is indented below them.
struct Entry {
  std::string head, body;
};
std::vector<Entry> entries_of_page() {
  std::ifstream file(CUTWATER_MAN_PAGE);
  std::vector<Entry> out;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('*')) out.push_back({line, {}});
    else if (line.starts_with('\t') && !out.empty()) out.back().body += line + '\n';
  }
  return out;
}

/// Every entry whose head names the command.
std::string described(const std::vector<Entry>& page, const std::string& words) {
  std::string out;
  for (const Entry& entry : page) {
    const bool about = entry.head.find("*" + words + "*") != std::string::npos;
    if (about) out += entry.head + "\n" + entry.body;
  }
  return out;
}

bool is_help(const CommandOption& option) {
  return std::find(option.names.begin(), option.names.end(), "--help") != option.names.end();
}

bool has_one_of(const std::string& text, const std::vector<std::string>& names,
                const std::string& before, const std::string& behind) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return text.find(before + name + behind) != std::string::npos;
  });
}

TEST(CommandTree, TheManPageHasEveryCommandAndOption) {
  const CommandTree tree = command_tree();
  const std::vector<Entry> page = entries_of_page();
  ASSERT_GT(page.size(), 30U);
  std::size_t commands = 0;
  each_command(tree, "", [&](const std::string& words, const CommandTree& command) {
    ++commands;
    const std::string text = described(page, words);
    EXPECT_FALSE(text.empty()) << words << " is not described";
    for (const CommandOption& option : command.options) {
      if (is_help(option)) continue;
      EXPECT_TRUE(has_one_of(text, option.names, "*", "*")) << words << " " << option.names[0];
    }
  });
  EXPECT_GT(commands, 30U);
  for (const CommandOption& option : tree.options) {
    if (is_help(option)) continue;
    const bool there = std::any_of(page.begin(), page.end(), [&](const Entry& entry) {
      return has_one_of(entry.head, option.names, "", "");
    });
    EXPECT_TRUE(there) << option.names[0];
  }
}

TEST(CommandTree, TheManPageHasNoCommandThatIsNot) {
  std::vector<std::string> known = {"cutwaterctl"};
  each_command(command_tree(), "", [&](const std::string& words, const CommandTree&) {
    known.push_back(words);
  });
  for (const Entry& entry : entries_of_page()) {
    std::istringstream head(entry.head);
    for (std::string word; std::getline(head, word, '*');) {
      const bool command = !word.empty() && word.find_first_of("-,[]()_|") == std::string::npos &&
                           word.find_first_not_of(" ") != std::string::npos;
      if (!command || entry.body.empty()) continue;
      const bool is_known = std::any_of(known.begin(), known.end(), [&](const std::string& one) {
        return one == word;
      });
      EXPECT_TRUE(is_known) << word << " in: " << entry.head;
    }
  }
}

TEST(CommandTree, EachShellCompletesEveryCommandAndOption) {
  const CommandTree tree = command_tree();
  for (const Shell shell : {Shell::Bash, Shell::Zsh, Shell::Fish}) {
    const std::string script = completion_script(tree, shell);
    each_command(tree, "", [&](const std::string& words, const CommandTree& command) {
      std::string path = "/" + words;
      std::replace(path.begin(), path.end(), ' ', '/');
      EXPECT_NE(script.find(path), std::string::npos) << path;
      for (const CommandOption& option : command.options) {
        for (const std::string& name : option.names) {
          // fish writes `-l for`, the others `--for`.
          const std::string bare = name.substr(name.find_first_not_of('-'));
          const std::string written = shell != Shell::Fish ? name
                                      : name.starts_with("--") ? "-l " + bare
                                                               : "-s " + bare;
          EXPECT_NE(script.find(written), std::string::npos)
              << words << " " << name << " in shell " << static_cast<int>(shell);
        }
      }
    });
  }
}

TEST(CommandTree, NamesOfBreakersAndBulkheadsAreCompletedWhereverOneIsWanted) {
  std::size_t breakers = 0, bulkheads = 0;
  each_command(command_tree(), "", [&](const std::string& words, const CommandTree& command) {
    const bool breaker = words.starts_with("breaker "), bulkhead = words.starts_with("bulkhead ");
    for (const Positional& one : command.positionals) {
      if (breaker) {
        EXPECT_EQ(one.wanted, Wanted::BreakerName) << words;
      }
      if (bulkhead) {
        EXPECT_EQ(one.wanted, Wanted::BulkheadName) << words;
      }
      breakers += breaker ? 1 : 0;
      bulkheads += bulkhead ? 1 : 0;
    }
  });
  EXPECT_EQ(breakers, 8U);
  EXPECT_EQ(bulkheads, 2U);
}

}  // namespace
}  // namespace cutwater::ctl
