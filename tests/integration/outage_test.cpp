// SPDX-License-Identifier: Apache-2.0
// A small `cutwater-bench outage`: what happened in which order, not how fast; and its picture.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

namespace {

constexpr std::size_t kWorkers = 3;
constexpr std::size_t kFailuresToOpen = 10;  // of the last 20 calls

struct Ran {
  std::string text;
  int code = -1;
};

Ran run(const std::string& arguments) {
  Ran out;
  const std::string command = std::string(CUTWATER_BENCH_PROGRAM) + " outage " + arguments;
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return out;
  char piece[4096];
  for (std::size_t n = 0; (n = std::fread(piece, 1, sizeof piece, pipe)) > 0;) {
    out.text.append(piece, n);
  }
  const int status = ::pclose(pipe);
  if (WIFEXITED(status)) out.code = WEXITSTATUS(status);
  return out;
}

struct Event {
  double at_ms;
  std::string what;
};

std::vector<Event> events_of(const nlohmann::json& worker) {
  std::vector<Event> out;
  for (const auto& event : worker) out.push_back({event[0], event[2]});
  return out;
}

/// Index of the first event of this kind at or behind `from`.
std::size_t next(const std::vector<Event>& events, std::size_t from, const std::string& what) {
  while (from < events.size() && events[from].what != what) ++from;
  return from;
}

class Outage : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    char folder[] = "/tmp/outage_test.XXXXXX";
    ASSERT_NE(::mkdtemp(folder), nullptr);
    const std::string picture = std::string(folder) + "/outage.svg";
    const Ran ran =
        run("--workers " + std::to_string(kWorkers) + " --timeout-ms 40 --json --svg " + picture);
    ASSERT_EQ(ran.code, 0) << ran.text;
    told_ = nlohmann::json::parse(ran.text, nullptr, false);
    ASSERT_FALSE(told_.is_discarded()) << ran.text;
    std::ifstream file(picture);
    std::stringstream all;
    all << file.rdbuf();
    svg_ = all.str();
    ::unlink(picture.c_str());
    ::rmdir(folder);
  }
  static nlohmann::json told_;
  static std::string svg_;
};
nlohmann::json Outage::told_;
std::string Outage::svg_;

TEST_F(Outage, EveryWorkerIsServedThenWaitsInVainThenIsProtectedThenServedAgain) {
  const double hangs = told_["hangs_ms"], recovers = told_["recovers_ms"];
  ASSERT_LT(hangs, recovers);
  for (const char* mode : {"own", "shared"}) {
    ASSERT_EQ(told_[mode]["workers"].size(), kWorkers);
    for (const auto& worker : told_[mode]["workers"]) {
      const std::vector<Event> events = events_of(worker);
      const std::size_t good = next(events, 0, "good");
      ASSERT_LT(good, events.size()) << mode;
      EXPECT_LT(events[good].at_ms, hangs) << mode;
      const auto after = std::find_if(events.begin(), events.end(), [&](const Event& event) {
        return event.at_ms >= hangs && event.what == "refused";
      });
      ASSERT_NE(after, events.end()) << mode;
      const auto refused = static_cast<std::size_t>(after - events.begin());
      const std::size_t again = next(events, refused, "good");
      ASSERT_LT(again, events.size()) << mode;
      EXPECT_GT(events.back().at_ms, recovers) << mode;
    }
  }
}

TEST_F(Outage, EachOwnBreakerBurnsItsTimeOutsAndTheSharedOneOpensOnceForAll) {
  const std::size_t own = told_["own"]["time_outs_to_open"];
  const std::size_t shared = told_["shared"]["time_outs_to_open"];

  EXPECT_GE(own, kWorkers * kFailuresToOpen);
  EXPECT_GE(shared, 1u);
  // A machine that stood still may have had some before.
  std::size_t before = 0;
  for (const auto& worker : told_["shared"]["workers"]) {
    for (const Event& event : events_of(worker)) {
      before += event.what == "timeout" && event.at_ms < told_["hangs_ms"] ? 1 : 0;
    }
  }
  // Besides those that open it only the calls that were under way then.
  EXPECT_LE(shared, before + kFailuresToOpen + kWorkers - 1);
  EXPECT_GE(told_["own"]["openings"], kWorkers);
  EXPECT_GE(told_["shared"]["openings"], 1);
}

TEST_F(Outage, SaysWhatWasPlannedAndDrawsIt) {
  const nlohmann::json plan = {
      {"workers", kWorkers}, {"timeout_ms", 40}, {"hang_ms", 2500}, {"until_all_refused", true}};
  EXPECT_EQ(told_["plan"], plan);
  for (const char* mode : {"own", "shared"}) {
    EXPECT_TRUE(told_[mode]["protected_ms"].is_number()) << mode;
    EXPECT_TRUE(told_[mode]["back_ms"].is_number()) << mode;
  }
  EXPECT_TRUE(svg_.starts_with("<?xml"));
  EXPECT_TRUE(svg_.ends_with("</svg>\n"));
}

TEST(OutageCommand, ATimeOfHangingThatWasAskedForIsKept) {
  // Too short for a breaker to open: a time-out takes longer.
  const Ran ran = run("--workers 2 --timeout-ms 1000 --hang-ms 100 --json");
  ASSERT_EQ(ran.code, 0) << ran.text;
  const auto told = nlohmann::json::parse(ran.text, nullptr, false);

  EXPECT_EQ(told["plan"]["hang_ms"], 100);
  EXPECT_EQ(told["plan"]["until_all_refused"], false);
  // Unless the machine stood still for so long.
  if (told["recovers_ms"].get<double>() - told["hangs_ms"].get<double>() < 10'000) {
    EXPECT_TRUE(told["own"]["protected_ms"].is_null()) << "its ten time-outs take longer";
  }
}

TEST(OutageCommand, HelpsOnStandardOutput) {
  for (const char* word : {"--help", "-h", "--json --help"}) {
    const Ran ran = run(word);
    EXPECT_EQ(ran.code, 0) << word;
    for (const char* part : {"--workers N", "--timeout-ms N", "--hang-ms N", "--svg FILE",
                             "until_all_refused", "protected_ms", "Exit: 0"}) {
      EXPECT_NE(ran.text.find(part), std::string::npos) << part;
    }
  }
}

TEST(OutageCommand, APictureThatCannotBeWrittenIsSaidBeforeTheRun) {
  for (const char* path : {"/no/such/folder/outage.svg", "/proc/outage.svg", "/"}) {
    const Ran ran = run(std::string("--json --svg ") + path);
    EXPECT_EQ(ran.code, 1) << path;
    EXPECT_NE(ran.text.find(std::string("--svg ") + path + " cannot be written: "),
              std::string::npos)
        << ran.text;
    EXPECT_NE(ran.text.find("name a file in a folder"), std::string::npos) << ran.text;
    EXPECT_EQ(ran.text.find('{'), std::string::npos) << "nothing was run";
  }
}

TEST(OutageCommand, SaysWhatIsWrong) {
  for (const char* wrong : {"--workers 1", "--workers 33", "--workers x", "--svg", "--timeout-ms 0",
                            "--hang-ms 99", "--svg ''", "--what"}) {
    const Ran ran = run(wrong);
    EXPECT_EQ(ran.code, 2) << wrong;
    EXPECT_NE(ran.text.find("usage: "), std::string::npos) << wrong;
  }
}

}  // namespace
