// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tool.hpp"

namespace cutwater::ctl {
namespace {

const std::string kYaml = "limits: { api: { rate: 2/s, burst: 2 } }\n";

std::string line_of(const std::string& client, int second) {
  char stamp[16];
  std::snprintf(stamp, sizeof stamp, "10:%02d:%02d", second / 60, second % 60);
  return client + " - - [17/May/2015:" + stamp + " +0000] \"GET / HTTP/1.1\" 200 1\n";
}

struct Log {
  explicit Log(const std::string& text) {
    place.write_config(kYaml);
    test::write_file(path(), text);
  }
  std::string path() const { return place.path() + "/access.log"; }
  ProgramRun replay(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"replay", path(), "--limit", "api", "--config", place.config()});
    return run_tool(more);
  }
  ScratchPlace place;
};

TEST(ReplayCommand, PrintsSumsAndTheMostRefused) {
  Log log(line_of("a", 0) + line_of("a", 0) + line_of("a", 0) + line_of("b", 0) + line_of("a", 9) +
          line_of("c", 61));

  const ProgramRun run = log.replay();

  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.out,
            "limit     api\n"
            "requests  6\n"
            "admitted  5 (83.3 %)\n"
            "refused   1 (16.6 %)\n"
            "clients   3\n"
            "skipped   0\n"
            "span      1m1s\n"
            "\n"
            "MOST REFUSED  REFUSED  OF\n"
            "a                   1   4\n");
}

TEST(ReplayCommand, CountsBadLinesShowsThreeAndGoesOn) {
  Log log("x\n" + line_of("a", 0) + "\nsecond bad\n" + line_of("b", 1) + "third\nfourth bad\n");

  const ProgramRun run = log.replay({"-o", "json"});

  EXPECT_EQ(run.code, 0);
  const auto json = parse(run.out);
  EXPECT_EQ(json["requests"], 2);
  EXPECT_EQ(json["admitted"], 2);
  EXPECT_EQ(json["refused"], 0);
  EXPECT_EQ(json["clients"], 2);
  EXPECT_EQ(json["skipped"], 5);
  EXPECT_EQ(json["skipped_lines"].size(), 3U);
  EXPECT_NE(run.err.find("access.log:1: skipped: one field only"), std::string::npos) << run.err;
  EXPECT_NE(run.err.find("access.log:3: skipped: empty line"), std::string::npos) << run.err;
  EXPECT_NE(run.err.find("access.log:4: skipped: no [time]"), std::string::npos) << run.err;
  EXPECT_EQ(run.err.find("access.log:6"), std::string::npos) << run.err;
  EXPECT_NE(run.err.find("5 lines could not be read"), std::string::npos) << run.err;
}

TEST(ReplayCommand, TellsItsProgressInAFewLines) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += line_of("client" + std::to_string(i % 7), i / 2);
  Log log(text);

  const ProgramRun run = log.replay();

  EXPECT_EQ(run.code, 0);
  EXPECT_LE(std::count(run.err.begin(), run.err.end(), '\n'), 10) << run.err;
  EXPECT_NE(run.err.find("replay: 100 %"), std::string::npos) << run.err;
  EXPECT_EQ(run.err.find('\r'), std::string::npos) << "a bar although this is no terminal";
}

TEST(ReplayCommand, SaysThatALogIsNotInOrder) {
  Log log(line_of("a", 9) + line_of("a", 5) + line_of("a", 1));

  const ProgramRun run = log.replay();

  EXPECT_EQ(run.code, 0);
  EXPECT_NE(run.out.find("unsorted  2"), std::string::npos) << run.out;
  EXPECT_NE(run.err.find("sort the log by time"), std::string::npos) << run.err;
}

// covers: C037 (command line)
TEST(ReplayCommand, EscapesClients) {
  Log log(std::string("a\x1b[2J\xff") + line_of("", 0) + std::string("a\x1b[2J\xff") +
          line_of("", 0) + std::string("a\x1b[2J\xff") + line_of("", 0));

  const ProgramRun table = log.replay();
  const ProgramRun json = log.replay({"-o", "json"});

  EXPECT_NE(table.out.find("a\\x1b[2J\\xff"), std::string::npos) << table.out;
  EXPECT_EQ(parse(json.out)["most_refused"][0]["client"], "a\\x1b[2J\\xff");
}

TEST(ReplayCommand, FailsWhenNothingCouldBeRead) {
  Log log("nothing\nof\nuse\nhere\n");

  const ProgramRun run = log.replay();

  EXPECT_EQ(run.code, 4);
  EXPECT_NE(run.err.find("no line of"), std::string::npos) << run.err;
}

TEST(ReplayCommand, SaysWhatIsWrongWithItsFiles) {
  Log log(line_of("a", 0));

  const ProgramRun no_log =
      run_tool({"replay", "/nonexistent", "--limit", "api", "--config", log.place.config()});
  const ProgramRun no_limit =
      run_tool({"replay", log.path(), "--limit", "apu", "--config", log.place.config()});
  log.place.write_config("limits: { api: { rate: 2/s, brust: 2 } }\n");
  const ProgramRun bad_config = log.replay();

  EXPECT_EQ(no_log.code, 2) << no_log.err;
  EXPECT_EQ(no_limit.code, 6) << no_limit.err;
  EXPECT_NE(no_limit.err.find("api"), std::string::npos);
  EXPECT_EQ(bad_config.code, 4) << bad_config.err;
  EXPECT_NE(bad_config.err.find(":1:29: limits.api.brust"), std::string::npos) << bad_config.err;
}

TEST(ReplayCommand, UsesWhatTheEnvironmentPutsIntoTheConfiguration) {
  Log log(line_of("a", 0) + line_of("a", 0) + line_of("a", 0));
  log.place.write_config("limits: { api: { rate: \"${RATE:-1/s}\", burst: 3 } }\n");

  const ProgramRun plain = log.replay({"-o", "json"});
  const ProgramRun set = test::run_program({tool_program(), "replay", log.path(), "--limit", "api",
                                            "--config", log.place.config(), "-o", "json"},
                                           {{"CUTWATER_LIMITS__API__BURST", "1"}});

  EXPECT_EQ(parse(plain.out)["admitted"], 3) << plain.err;
  EXPECT_EQ(parse(set.out)["admitted"], 1) << set.err;
}

}  // namespace
}  // namespace cutwater::ctl
