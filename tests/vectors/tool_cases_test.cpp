// SPDX-License-Identifier: Apache-2.0
// The same numbers as an operator sees them: cutwaterctl beside a client that decides, on a
// daemon's stepped clock.
#include <nlohmann/json.hpp>

#include "shm/view.hpp"
#include "src/core.hpp"
#include "support/daemon_process.hpp"
#include "vectors/every_way.hpp"

namespace cutwater::test {
namespace {

/// The ways that the tool can look at.
std::vector<WayMaker> ways_with_an_address() {
  std::vector<WayMaker> ways;
  for (const WayMaker& maker : every_way()) {
    if (!maker.make()->address().empty()) ways.push_back(maker);
  }
  return ways;
}

class ToolCases : public EveryWay {
 protected:
  ProgramRun run_tool(std::vector<std::string> words) {
    std::vector<std::string> command = {CUTWATERCTL_PROGRAM, "--address", way->address(),
                                        "--timeout", "60s", "-o", "json"};
    command.insert(command.end(), words.begin(), words.end());
    return run_program(command);
  }

  nlohmann::json ask_tool(std::vector<std::string> words, int code = 0) {
    const ProgramRun run = run_tool(std::move(words));
    EXPECT_EQ(run.code, code) << run.out << run.err;
    auto document = nlohmann::json::parse(run.out, nullptr, false);
    EXPECT_FALSE(document.is_discarded()) << run.out;
    return document;
  }
};

INSTANTIATE_TEST_SUITE_P(Ways, ToolCases, ::testing::ValuesIn(ways_with_an_address()), way_name);

// covers: C022 (the tool beside a real daemon)
TEST_P(ToolCases, C022TheGoldenRowInTheTool) {
  ASSERT_NO_FATAL_FAILURE(start("api: {rate: 2/s, burst: 3}"));
  EXPECT_EQ(ask_tool({"limit", "get", "api"})["burst"], 3) << "the limit is its burst";
  struct Golden { Nanos t; bool allowed; int remaining; };
  constexpr Golden kRow[] = {
      {0ms, true, 2},    {250ms, true, 1},   {500ms, true, 1},
      {750ms, true, 0},  {1000ms, true, 0},  {1250ms, false, 0},
      {1500ms, true, 0}, {1750ms, false, 0}, {2000ms, true, 0},
  };
  for (const Golden& golden : kRow) {
    at(golden.t);
    const auto before = ask_tool({"limit", "peek", "api", "k"}, golden.allowed ? 0 : 1);
    EXPECT_EQ(before["allowed"], golden.allowed) << golden.t.count();
    const Decision d = limit().try_acquire("k");
    const auto after = ask_tool({"limit", "peek", "api", "k", "--cost", "0"});
    EXPECT_EQ(after["remaining"], golden.remaining) << golden.t.count();
    EXPECT_EQ(after["reset_after_ns"], d.reset_after().count()) << golden.t.count();
    if (!golden.allowed) {
      EXPECT_EQ(before["retry_after_ns"], d.retry_after().count()) << golden.t.count();
    }
  }
}

// covers: C009 (the tool beside a real daemon)
TEST_P(ToolCases, C009NeverIsToldApartFromLater) {
  ASSERT_NO_FATAL_FAILURE(start("api: {rate: 1 per 60 s, burst: 5}"));
  ASSERT_TRUE(limit().try_acquire("k", 5).allowed());
  const auto never = ask_tool({"limit", "peek", "api", "k", "--cost", "10"}, 1);
  const auto later = ask_tool({"limit", "peek", "api", "k", "--cost", "5"}, 1);
  EXPECT_EQ(never["reason"], "never");
  EXPECT_EQ(later["reason"], "limit");
  EXPECT_EQ(later["retry_after_ns"], 300'000'000'000);
}

// covers: C088 (the tool beside a real daemon)
TEST_P(ToolCases, C088TheExactFieldInTheTool) {
  ASSERT_NO_FATAL_FAILURE(start("api: {rate: 1 per 5 s, burst: 1}"));
  ASSERT_TRUE(limit().try_acquire("k").allowed());
  for (const Nanos left : {Nanos{4600ms}, Nanos{1s}, Nanos{400ms}, Nanos{1}}) {
    at(5s - left);
    const auto refused = ask_tool({"limit", "peek", "api", "k"}, 1);
    EXPECT_EQ(refused["retry_after_ns"], left.count());
  }
}

// covers: C042 (the tool beside a real daemon)
TEST_P(ToolCases, C042AFullTableIsVisibleAndLoggedOnce) {
  ASSERT_NO_FATAL_FAILURE(start_whole("capacity: {keys: 1024, limits: 16}\n"
                                      "limits: {api: {rate: 1/h, burst: 1, on-full: deny}}\n"));
  Limit api = limit();
  std::uint64_t without_place = 0;
  for (int i = 0; i < 100'000; ++i) {
    without_place += api.try_acquire(std::to_string(i)).overflow() ? 1 : 0;
  }
  ASSERT_GT(without_place, 0U);

  const auto status = ask_tool({"status"});
  EXPECT_EQ(status["no_place"], without_place);
  EXPECT_EQ(status["in_debt"], status["slots"]) << "100 % full";
  EXPECT_NE(status["advice"].dump().find("capacity.keys"), std::string::npos) << status.dump();

  const std::string words = "found no place";
  ASSERT_TRUE(eventually([&] { return way->log().find(words) != std::string::npos; }));
  api.try_acquire("one more");
  ask_tool({"status"});
  const std::string log = way->log();
  EXPECT_EQ(log.find(words), log.rfind(words)) << "one line, not one a decision";
}

}  // namespace
}  // namespace cutwater::test
