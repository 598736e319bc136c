// SPDX-License-Identifier: Apache-2.0
// The main job: several processes decide a log through one daemon's memory, exactly.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <regex>
#include <string>

#include "tool.hpp"

namespace cutwater::ctl {
namespace {

const std::string kYaml = "limits: { per-client: { rate: 2/s, burst: 20 } }\n";

/// The number behind a word at the begin of a line; -1 when it is not there.
long number_behind(const std::string& text, const std::string& word) {
  std::smatch found;
  const std::regex line("(^|\n)" + word + " +([0-9]+)");
  return std::regex_search(text, found, line) ? std::stol(found[2]) : -1;
}

/// Requests of `clients` clients, `per_second` each second.
void write_log(const std::string& path, int requests, int clients, int per_second) {
  std::ofstream file(path);
  for (int i = 0; i < requests; ++i) {
    const int second = i / per_second;
    char line[120];
    std::snprintf(line, sizeof line,
                  "client%d - - [17/May/2015:%02d:%02d:%02d +0000] \"GET / HTTP/1.1\" 200 1\n",
                  (i * 7919) % clients, second / 3600, second / 60 % 60, second % 60);
    file << line;
  }
}

TEST(Quickstart, DecidesAMadeLogExactly) {
  Instance instance(kYaml);

  const ProgramRun run = run_quickstart({"--address", instance.place().address(), "--seed", "42"});

  EXPECT_EQ(run.code, 0) << run.out << run.err;
  EXPECT_EQ(number_behind(run.out, "requests"), 10'000);
  EXPECT_EQ(number_behind(run.out, "admitted") + number_behind(run.out, "refused"), 10'000);
  EXPECT_GT(number_behind(run.out, "refused"), 0);
  EXPECT_NE(run.out.find("equal to the exact limiter"), std::string::npos) << run.out;
}

TEST(Quickstart, AgreesWithReplayAndWithItselfOnUsedMemory) {
  Instance instance(kYaml);
  const std::string log = instance.place().path() + "/access.log";
  write_log(log, 5000, 40, 130);

  const ProgramRun first = run_quickstart({"--address", instance.place().address(), "--log", log});
  const ProgramRun again =
      run_quickstart({"--address", instance.place().address(), "--log", log, "--workers", "7"});
  const ProgramRun replay = run_tool({"replay", log, "--limit", "per-client", "--config",
                                      instance.place().config(), "-o", "json"});

  EXPECT_EQ(first.code, 0) << first.out << first.err;
  EXPECT_EQ(again.code, 0) << again.out << again.err;
  const auto json = parse(replay.out);
  EXPECT_GT(json["refused"], 0);
  EXPECT_EQ(number_behind(first.out, "admitted"), json["admitted"]);
  EXPECT_EQ(number_behind(again.out, "admitted"), json["admitted"]);
}

// What the comparison must catch: more keys in debt than places, and a limit that refuses those.
TEST(Quickstart, FailsWhenAClientsSumDiffers) {
  Instance instance(
      "capacity: { keys: 1024 }\n"
      "limits: { per-client: { rate: 1/d, burst: 1, on-full: deny } }\n");
  const std::string log = instance.place().path() + "/access.log";
  write_log(log, 6000, 6000, 6000);

  const ProgramRun run = run_quickstart({"--address", instance.place().address(), "--log", log});

  EXPECT_EQ(run.code, 1);
  EXPECT_NE(run.err.find("clients differ from the exact limiter"), std::string::npos) << run.err;
  EXPECT_NE(run.out.find("raise capacity.keys"), std::string::npos) << run.out;
}

TEST(Quickstart, NeedsASteppedClockAndAnExistingLimit) {
  Instance boottime(kYaml, {});
  Instance stepped(kYaml);

  const ProgramRun clock = run_quickstart({"--address", boottime.place().address()});
  const ProgramRun limit =
      run_quickstart({"--address", stepped.place().address(), "--limit", "per-clint"});
  const ProgramRun nobody = run_quickstart({"--address", "unix:/nonexistent/x.sock"});

  EXPECT_EQ(clock.code, 1);
  EXPECT_NE(clock.err.find("--clock=stepped"), std::string::npos) << clock.err;
  EXPECT_EQ(limit.code, 1);
  EXPECT_NE(limit.err.find("did you mean 'per-client'?"), std::string::npos) << limit.err;
  EXPECT_EQ(nobody.code, 1);
}

/// Pids of the children of a process.
std::vector<pid_t> children_of(pid_t pid) {
  const std::string task = "/proc/" + std::to_string(pid) + "/task/" + std::to_string(pid);
  std::ifstream file(task + "/children");
  std::vector<pid_t> found;
  for (pid_t child = 0; file >> child;) found.push_back(child);
  return found;
}

TEST(Quickstart, FailsWhenAWorkerIsKilled) {
  Instance instance(kYaml);
  const std::string log = instance.place().path() + "/access.log";
  write_log(log, 80'000, 40, 1);  // 80 000 stamps: the conductor is busy for a while
  const pid_t pid = ::fork();
  if (pid == 0) {
    const int nothing = ::open("/dev/null", O_RDWR);
    for (int fd = 0; fd < 3; ++fd) ::dup2(nothing, fd);
    ::execl(quickstart_program().c_str(), "cutwater-quickstart", "--address",
            instance.place().address().c_str(), "--log", log.c_str(), static_cast<char*>(nullptr));
    ::_exit(127);
  }

  std::vector<pid_t> workers;
  ASSERT_TRUE(test::eventually([&] {
    workers = children_of(pid);
    return workers.size() == 4 || ::kill(pid, 0) != 0;
  }));
  ASSERT_EQ(workers.size(), 4U);
  ::kill(workers[1], SIGKILL);
  int status = 0;
  ::waitpid(pid, &status, 0);

  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 1);
}

TEST(Quickstart, MeasuresAFreeRun) {
  Instance instance(kYaml, {});

  const ProgramRun run = run_quickstart({"--free-run", "--address", instance.place().address(),
                                         "--processes", "1,2", "--seconds", "0.1"});

  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_NE(run.out.find("PROCESSES  DECISIONS/S"), std::string::npos) << run.out;
  EXPECT_GT(number_behind(run.out, " +1"), 0) << run.out;
  EXPECT_GT(number_behind(run.out, " +2"), 0) << run.out;
}

}  // namespace
}  // namespace cutwater::ctl
