// SPDX-License-Identifier: Apache-2.0
// Every documented key once misspelt, in the wrong place, doubled, and with a value of the wrong
// type. The tests run along the schema, so a new key is tested from its first day.
#include <set>

#include "config/schema.hpp"
#include "loading.hpp"

namespace cutwater::config {
namespace {

/// A text whose block of `key` holds `lines`, one level deeper than the block; `first` is the line
/// of the first of them, `column` that of each.
struct Text {
  std::string text;
  int first = 1;
  int column = 1;
  std::string path;
};

Text in_block(std::string_view block, const std::string& lines) {
  Text out;
  std::string indent;
  std::string mark;   // of a list's item
  bool named = false;
  for (std::string_view rest = block; !rest.empty();) {
    const std::size_t end = std::min(rest.find('.'), rest.size());
    std::string level(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (level == "*") level = named ? "alice" : "login";
    named |= level == "login";
    const bool list = level.ends_with("[]");
    if (list) level.resize(level.size() - 2);
    out.text += indent + level + ":\n";
    out.path += level + (list ? "[0]." : ".");
    indent += "  ";
    if (list) mark = "- ";
    ++out.first;
  }
  out.column = static_cast<int>(indent.size() + mark.size()) + 1;
  std::string line;
  for (const char c : lines) {
    line += c;
    if (c == '\n') {
      out.text += indent + mark + line;
      if (!mark.empty()) mark = "  ";
      line.clear();
    }
  }
  return out;
}

std::string place(const Text& text, int line = 0) {
  return "cutwater.yaml:" + std::to_string(text.first + line) + ":" + std::to_string(text.column);
}

bool holds(const LoadOutcome& outcome, const std::string& line) {
  for (const Finding& finding : outcome.errors) {
    if (finding.line() == line) return true;
  }
  return false;
}

std::string all(const LoadOutcome& outcome) { return outcome.report("refused"); }

std::vector<std::string> misspellings(std::string_view name) {
  const std::string word(name);
  std::string swapped = word;
  std::swap(swapped[1], swapped[2]);
  std::vector<std::string> forms = {
      word.substr(0, word.size() - 1),           // a letter lost
      word + word.back(),                        // a letter doubled
      word.substr(0, 2) + "x" + word.substr(2),  // a letter too many
  };
  if (swapped != word) forms.push_back(swapped);
  return forms;
}

// covers: C131
TEST(CaseC131, EveryKeyMisspeltNamesTheLineAndTheNearestKey) {
  int tried = 0;
  for (const Key& key : schema()) {
    if (key.name.size() < 3) continue;   // v4: a letter less is as near to v6
    for (const std::string& wrong : misspellings(key.name)) {
      const Text text = in_block(key.block, wrong + ": 1\n");

      const LoadOutcome outcome = load(text.text);

      EXPECT_FALSE(outcome.ok());
      EXPECT_TRUE(holds(outcome, place(text) + ": " + text.path + wrong +
                                     ": unknown key; did you mean '" + std::string(key.name) +
                                     "'?"))
          << text.text << all(outcome);
      ++tried;
    }
  }
  EXPECT_GE(tried, 3 * 29);
}

TEST(CaseC131, EveryBlockMisspelt) {
  for (const std::string_view outer : {"", "listen", "access"}) {
    for (const std::string_view name : children_of(outer)) {
      for (const std::string& wrong : misspellings(name)) {
        const Text text = in_block(outer, wrong + ": {}\n");
        EXPECT_TRUE(holds(load(text.text), place(text) + ": " + text.path + wrong +
                                               ": unknown key; did you mean '" + std::string(name) +
                                               "'?"))
            << text.text << all(load(text.text));
      }
    }
  }
}

TEST(CaseC131, AllMisspeltAtOnceAreAllReported) {
  std::string text;
  std::string report;
  std::set<std::string_view> sections;
  std::vector<const Key*> tried;
  for (const std::string_view block : blocks()) {
    if (!sections.insert(block.substr(0, block.find('.'))).second) continue;   // one block of each
    text += in_block(block, "").text;
    for (const Key& key : keys_of(block)) {
      const Text with = in_block(block, std::string(key.name) + "xx: 1\n");
      text += with.text.substr(in_block(block, "").text.size());
      tried.push_back(&key);
    }
  }
  const LoadOutcome outcome = load(text);

  ASSERT_EQ(outcome.errors.size(), tried.size() + 1)
      << all(outcome);   // and no rate in the limit
  report = all(outcome);
  for (const Key* key : tried) {
    EXPECT_NE(report.find("did you mean '" + std::string(key->name) + "'?"), std::string::npos)
        << key->name;
  }
  int last = 0;
  for (const Finding& finding : outcome.errors) {
    const int line = std::stoi(finding.where.substr(finding.where.find(':') + 1));
    EXPECT_GE(line, last);
    last = line;
  }
}

TEST(CaseC131, EveryKeyInTheWrongSection) {
  for (const Key& key : schema()) {
    const std::string_view wrong = key.block == "log" ? "instance" : "log";
    const Text text = in_block(wrong, std::string(key.name) + ": 1\n");

    const LoadOutcome outcome = load(text.text);

    EXPECT_FALSE(outcome.ok());
    const std::string begin =
        place(text) + ": " + text.path + std::string(key.name) + ": unknown key; ";
    EXPECT_NE(all(outcome).find(begin), std::string::npos) << all(outcome);
  }
  EXPECT_EQ(
      errors_of("capacity: { level: debug }"),
      Lines{"cutwater.yaml:1:13: capacity.level: unknown key; 'level' is a key of log; known here: "
            "keys, limits, overrides, processes, stripes, events, breakers, breaker-memory, "
            "bulkheads, bulkhead-cells, waiters, trips or tops"});
}

TEST(CaseC131, EveryKeyTwiceInEverySpelling) {
  for (const Key& key : schema()) {
    const std::string name(key.name);
    std::string snake = name;
    std::string camel;
    for (std::size_t i = 0; i < name.size(); ++i) {
      if (name[i] == '-') {
        snake[i] = '_';
        camel += static_cast<char>(name[++i] - 'a' + 'A');
      } else {
        camel += name[i];
      }
    }
    for (const std::string& second : {name, snake, camel}) {
      const Text text = in_block(key.block, name + ": 1\n" + second + ": 1\n");
      const std::string at = std::to_string(text.first) + ":" + std::to_string(text.column);
      EXPECT_TRUE(holds(load(text.text), place(text, 1) + ": " + text.path + second +
                                             ": defined twice, first at " + at +
                                             (second == name ? "" : " as '" + name + "'")))
          << text.text << all(load(text.text));
    }
  }
}

TEST(CaseC131, EveryKeyWithAValueOfTheWrongType) {
  for (const Key& key : schema()) {
    const bool list = key.kind == Kind::Users || key.kind == Kind::Groups ||
                      key.kind == Kind::Windows || key.kind == Kind::Classes;
    for (const std::string& value : {std::string(list ? "word" : "[1]"), std::string("{ a: 1 }"),
                                     std::string(), std::string("~")}) {
      const Text text = in_block(key.block, std::string(key.name) + ": " + value + "\n");
      const LoadOutcome outcome = load(text.text);
      EXPECT_FALSE(outcome.ok()) << text.text;
      const std::string path = text.path + std::string(key.name);
      EXPECT_NE(all(outcome).find(": " + path), std::string::npos) << all(outcome);
    }
  }
}

TEST(CaseC131, KeysOfLaterVersionsAreUnknownUntilThen) {
  for (const char* text :
       {"bulkheads: { a: { cluster: off } }", "guards: {}", "cluster: {}",
        "listen: { tcp: [] }", "listen: { threads: 1 }",
        "access: { identities: {} }", "breakers: { a: { cluster: off } }",
        "limits: { a: { rate: 1/s, scope: cluster } }",
        "limits: { a: { rate: 1/s, on-daemon-down: deny } }"}) {
    const LoadOutcome outcome = load(text);
    EXPECT_FALSE(outcome.ok()) << text;
    EXPECT_NE(all(outcome).find("unknown key"), std::string::npos) << all(outcome);
  }
}

}  // namespace
}  // namespace cutwater::config
