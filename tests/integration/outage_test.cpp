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

/// True when every tag is closed by its own name, in order, and attributes are quoted.
bool is_well_formed(const std::string& xml) {
  std::vector<std::string> open;
  for (std::size_t at = xml.find('<'); at != std::string::npos; at = xml.find('<', at + 1)) {
    const std::size_t end = xml.find('>', at);
    if (end == std::string::npos) return false;
    std::string tag = xml.substr(at + 1, end - at - 1);
    if (tag.find('<') != std::string::npos) return false;
    if (std::count(tag.begin(), tag.end(), '"') % 2 != 0) return false;
    if (tag.starts_with('?')) continue;
    const bool closes = tag.starts_with('/');
    const bool whole = tag.ends_with('/');
    const std::string name =
        tag.substr(closes ? 1 : 0, tag.find_first_of(" /", 1) - (closes ? 1 : 0));
    if (closes) {
      if (open.empty() || open.back() != name) return false;
      open.pop_back();
    } else if (!whole) {
      open.push_back(name);
    }
  }
  return open.empty();
}

class Outage : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    char folder[] = "/tmp/outage_test.XXXXXX";
    ASSERT_NE(::mkdtemp(folder), nullptr);
    const std::string picture = std::string(folder) + "/outage.svg";
    const Ran ran =
        run("--workers " + std::to_string(kWorkers) + " --hang-ms 500 --json --svg " + picture);
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

TEST_F(Outage, ThePictureIsWellFormedAndNamesItsColours) {
  ASSERT_TRUE(is_well_formed(svg_));
  EXPECT_TRUE(svg_.starts_with("<?xml"));
  for (const char* words : {"answered", "time-out", "refused at once", "the dependency hangs",
                            "A breaker in each worker", "One breaker for the host", "worker 3"}) {
    EXPECT_NE(svg_.find(words), std::string::npos) << words;
  }
  EXPECT_EQ(svg_.find("worker 4"), std::string::npos);
}

TEST(OutageCommand, SaysWhatIsWrong) {
  for (const char* wrong : {"--workers 1", "--workers 33", "--workers x", "--svg", "--timeout-ms 0",
                            "--hang-ms 99", "--what"}) {
    const Ran ran = run(wrong);
    EXPECT_EQ(ran.code, 2) << wrong;
    EXPECT_NE(ran.text.find("usage: "), std::string::npos) << wrong;
  }
}

TEST(WellFormed, TellsGoodFromBad) {
  EXPECT_TRUE(is_well_formed("<?xml version=\"1.0\"?><a b=\"c\"><d/><e>x</e></a>"));
  for (const char* bad : {"<a>", "<a></b>", "</a>", "<a b=\"c></a>", "<a"}) {
    EXPECT_FALSE(is_well_formed(bad)) << bad;
  }
}

}  // namespace
