// SPDX-License-Identifier: Apache-2.0
// Hundreds of breakers and bulkheads: lists are whole in a pipe, fit a terminal of 80 columns, and
// their JSON has the same fields in every row.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tool.hpp"

namespace cutwater::ctl {
namespace {

constexpr int kMany = 300;

std::string yaml_of_many() {
  std::string breakers, bulkheads;
  for (int i = 0; i < kMany; ++i) {
    const std::string name = "payment-provider-" + std::to_string(100 + i);
    breakers += "  " + name + ": {}\n";
    bulkheads += "  " + name + ": { max-concurrent-calls: 4, max-waiting: 1 }\n";
  }
  return "capacity: { keys: 1024, breakers: 320, bulkheads: 320, breaker-memory: 4MiB }\n"
         "breakers:\n" + breakers + "bulkheads:\n" + bulkheads;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    out.push_back(line);
  }
  return out;
}

/// Columns that a line takes on a terminal: without what sets colours.
std::size_t shown_width(const std::string& line) {
  std::size_t width = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '\x1b') {
      i = line.find('m', i);
      if (i == std::string::npos) break;
    } else {
      ++width;
    }
  }
  return width;
}

std::set<std::string> fields_of(const nlohmann::json& row) {
  std::set<std::string> out;
  for (const auto& entry : row.items()) out.insert(entry.key());
  return out;
}

class Many : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    instance_ = new Instance(yaml_of_many());
    ASSERT_TRUE(instance_->ready()) << instance_->daemon().log();
  }
  static void TearDownTestSuite() {
    delete instance_;
    instance_ = nullptr;
  }
  std::vector<std::string> at(std::vector<std::string> words) const {
    words.insert(words.begin(), {"--address", instance_->place().address()});
    return words;
  }
  static Instance* instance_;
};
Instance* Many::instance_ = nullptr;

TEST_F(Many, InAPipeAListIsWholeAndWithoutColours) {
  for (const char* what : {"breaker", "bulkhead"}) {
    const ProgramRun run = instance_->tool({what, "list"});
    const auto lines = lines_of(run.out);

    EXPECT_EQ(run.code, 0) << run.err;
    ASSERT_EQ(lines.size(), 1U + kMany) << what;
    EXPECT_EQ(run.out.find('\x1b'), std::string::npos);
    for (const auto& line : lines) EXPECT_NE(line.find_last_not_of(' '), line.size()) << line;
    EXPECT_NE(lines.back().find("payment-provider-399"), std::string::npos) << "in order";
    EXPECT_EQ(lines[0].find("too narrow"), std::string::npos);
  }
}

TEST_F(Many, OnATerminalOf80ColumnsNoLineIsBroken) {
  for (const auto& words : std::vector<std::vector<std::string>>{
           {"breaker", "list"}, {"bulkhead", "list"}, {"journal", "list"}, {"status"}}) {
    const ProgramRun run = run_tool_on_terminal(at(words), false, 80);
    ASSERT_EQ(run.code, 0) << run.out;
    const bool list = words[1 % words.size()] == "list";
    for (const std::string& line : lines_of(run.out)) {
      if (list) {
        EXPECT_LE(shown_width(line), 80U) << line;
      }
    }
  }
  const ProgramRun breakers = run_tool_on_terminal(at({"breaker", "list"}), true, 80);
  EXPECT_NE(breakers.out.find("(too narrow for EPOCH"), std::string::npos) << breakers.out;
  EXPECT_NE(breakers.out.find("RETRY"), std::string::npos) << "what matters stays";
  EXPECT_EQ(breakers.out.find('\x1b'), std::string::npos) << "NO_COLOR";
}

TEST_F(Many, EveryRowOfAListHasTheseFields) {
  const std::set<std::string> breaker = {
      "breaker", "state", "ready", "reason", "epoch", "attempts", "ramping", "enabled", "allowed",
      "answer", "retry_after_ns", "hint", "window", "calls", "failures", "slow", "run", "probes",
      "probes_held", "probes_spent", "users", "users_open", "hanging", "flapping"};
  const std::set<std::string> bulkhead = {"bulkhead", "enabled",     "limit",   "in_use",
                                          "over",     "waiting",     "allowed", "answer",
                                          "hint",     "max_waiting", "retry_after_ns"};
  for (const bool dead : {false, true}) {
    if (dead) instance_->daemon().kill(SIGKILL);
    const auto breakers = instance_->json({"breaker", "list"});
    const auto bulkheads = instance_->json({"bulkhead", "list"});
    EXPECT_EQ(breakers["source"], dead ? "memory" : "daemon");
    ASSERT_EQ(breakers["breakers"].size(), static_cast<std::size_t>(kMany));
    ASSERT_EQ(bulkheads["bulkheads"].size(), static_cast<std::size_t>(kMany));
    for (const auto& row : breakers["breakers"]) {
      std::set<std::string> fields = fields_of(row);
      fields.erase("since_ns");  // where it is known
      EXPECT_EQ(fields, breaker) << row.dump();
    }
    for (const auto& row : bulkheads["bulkheads"]) {
      EXPECT_EQ(fields_of(row), bulkhead) << row.dump();
    }
  }
}

}  // namespace
}  // namespace cutwater::ctl
