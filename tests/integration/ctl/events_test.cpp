// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>

#include "tool.hpp"

namespace cutwater::ctl {
namespace {

const std::string kYaml = "limits: { api: { rate: 10/s } }\n";

/// `cutwaterctl events -f` as a process whose output can be waited for.
class Follower {
 public:
  explicit Follower(const std::vector<std::string>& arguments) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(ends[1], STDOUT_FILENO);
      std::vector<std::string> words = {tool_program()};
      words.insert(words.end(), arguments.begin(), arguments.end());
      std::vector<char*> argv;
      for (std::string& word : words) argv.push_back(word.data());
      argv.push_back(nullptr);
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
    ::close(ends[1]);
    fd_ = ends[0];
  }
  ~Follower() {
    if (pid_ > 0) end(SIGKILL);
    ::close(fd_);
  }

  /// Reads until `text` has come.
  bool wait_for(const std::string& text) {
    return test::eventually([&] {
      pollfd entry{fd_, POLLIN, 0};
      char piece[4096];
      if (::poll(&entry, 1, 100) > 0) {
        const ssize_t got = ::read(fd_, piece, sizeof piece);
        if (got > 0) seen_.append(piece, static_cast<std::size_t>(got));
      }
      return seen_.find(text) != std::string::npos;
    });
  }

  /// A signal, and the exit code; minus the signal that ended it.
  int end(int signal) {
    int status = 0;
    ::kill(pid_, signal);
    ::waitpid(pid_, &status, 0);
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  const std::string& seen() const { return seen_; }

 private:
  pid_t pid_ = 0;
  int fd_ = -1;
  std::string seen_;
};

TEST(Events, ListsWhatHappened) {
  Instance instance(kYaml);
  ASSERT_EQ(instance.tool({"config", "reload"}).code, 0);

  const ProgramRun run = instance.tool({"events"});

  EXPECT_EQ(run.code, 0);
  EXPECT_NE(run.out.find("daemon_started"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("config_reloaded"), std::string::npos) << run.out;
  const ProgramRun last = instance.tool({"events", "--last", "1"});
  EXPECT_EQ(last.out.find("daemon_started"), std::string::npos) << last.out;
  const auto json = instance.json({"events"});
  EXPECT_EQ(json["events"][0]["kind"], "daemon_started");
  EXPECT_EQ(json["events"][0]["number"], 0);
}

TEST(Events, AreTheSameInTheMemoryOfADeadDaemon) {
  Instance instance(kYaml);
  ASSERT_EQ(instance.tool({"config", "reload"}).code, 0);

  const auto asked = instance.json({"events"});
  instance.daemon().kill(SIGKILL);
  const auto read = instance.json({"events"});

  EXPECT_EQ(asked["events"], read["events"]);
}

TEST(Events, FollowsUntilInterrupted) {
  Instance instance(kYaml);
  Follower follower({"--address", instance.place().address(), "events", "-f"});
  ASSERT_TRUE(follower.wait_for("daemon_started"));

  ASSERT_EQ(instance.tool({"config", "reload"}).code, 0);

  EXPECT_TRUE(follower.wait_for("config_reloaded")) << follower.seen();
  EXPECT_EQ(follower.end(SIGINT), 0);
}

TEST(Events, FollowsThroughTheDaemonsRestart) {
  Instance instance(kYaml);
  Follower follower({"--address", instance.place().address(), "events", "-f", "-o", "json"});
  ASSERT_TRUE(follower.wait_for("daemon_started"));

  instance.daemon().kill(SIGKILL);
  DaemonProcess next(instance.place(), {.arguments = {"--clock=stepped"}});
  ASSERT_TRUE(next.ready()) << next.log();

  EXPECT_TRUE(follower.wait_for("daemon_took_over")) << follower.seen();
  EXPECT_EQ(follower.end(SIGTERM), 0);
  const std::string first = follower.seen().substr(0, follower.seen().find('\n'));
  EXPECT_EQ(parse(first)["kind"], "daemon_started") << "one document a line";
}

TEST(Events, FollowsIntoAMemoryMadeAnew) {
  Instance instance(kYaml);
  ASSERT_EQ(instance.tool({"config", "reload"}).code, 0);
  Follower follower({"--address", instance.place().address(), "events", "-f", "--last", "1"});
  ASSERT_TRUE(follower.wait_for("config_reloaded"));

  instance.daemon().kill(SIGKILL);
  for (const char* file : {"rules", "state", "stats"}) {
    std::filesystem::remove(instance.place().memory() + "/" + file);
  }
  DaemonProcess next(instance.place(), {.arguments = {"--clock=stepped"}});
  ASSERT_TRUE(next.ready()) << next.log();

  EXPECT_TRUE(follower.wait_for("daemon_started")) << follower.seen();
  EXPECT_EQ(follower.end(SIGINT), 0);
}

}  // namespace
}  // namespace cutwater::ctl
