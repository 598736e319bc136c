// SPDX-License-Identifier: Apache-2.0
// A log that nobody takes, and what a daemon costs in memory.
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/daemon_process.hpp"
#include "support/raw_peer.hpp"

namespace cutwater::test {
namespace {

std::uint64_t status_kb(pid_t pid, const std::string& field) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  std::string word;
  std::uint64_t kb = 0;
  while (file >> word) {
    if (word == field + ":") {
      file >> kb;
      return kb;
    }
  }
  return 0;
}

class LogTarget : public testing::Test {
 protected:
  LogTarget() { place_.write_config("limits: { api: { rate: 10/s } }\n"); }

  /// Misdeeds of ever new kinds and attachments at level debug: some thousand lines.
  void make_lines(int count) const {
    for (int i = 0; i < count; ++i) {
      RawPeer peer(place_.socket());
      if (!peer.greet(wire::Want::Map)) continue;
      peer.send_frame(wire::MessageType::Bye, 0, *wire::encode(wire::Bye{}));
      peer.receive();
    }
  }
  std::uint64_t dropped() const {
    RawPeer peer(place_.socket());
    if (!peer.greet(wire::Want::Ask)) return 0;
    const auto status = peer.read("status");
    return status ? status->rows.at(0).find("log_dropped")->as_unsigned().value_or(0) : 0;
  }

  ScratchPlace place_;
};

TEST_F(LogTarget, C134APipeNobodyReadsDropsLinesAndHoldsNothing) {
  int pipe_fds[2];
  ASSERT_EQ(::pipe2(pipe_fds, O_CLOEXEC), 0);
  ::fcntl(pipe_fds[0], F_SETPIPE_SZ, 4096);
  DaemonOptions options;
  options.arguments = {"--set", "log.level=debug", "--set", "log.queue=256"};
  options.stderr_fd = pipe_fds[1];
  DaemonProcess daemon(place_, options);
  ASSERT_TRUE(daemon.ready());

  make_lines(600);

  EXPECT_TRUE(eventually([&] { return dropped() > 0; }));
  RawPeer peer(place_.socket());
  ASSERT_TRUE(peer.greet(wire::Want::Map));
  EXPECT_EQ(peer.ping(5)->value, 5U);
  EXPECT_EQ(daemon.stop(), 0);   // and its end does not wait for the log
  ::close(pipe_fds[0]);
  ::close(pipe_fds[1]);
}

TEST_F(LogTarget, C134AFifoWithoutAReaderIsNoReasonNotToStart) {
  const std::string fifo = place_.path() + "/fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  DaemonOptions options;
  options.arguments = {"--set", "log.target=file:" + fifo};
  DaemonProcess daemon(place_, options);

  ASSERT_TRUE(daemon.ready()) << daemon.log();
  EXPECT_EQ(daemon.stop(), 0);
}

TEST_F(LogTarget, ARotatedFileIsOpenedAnew) {
  const std::string path = place_.path() + "/log";
  DaemonOptions options;
  options.arguments = {"--set", "log.target=file:" + path};
  DaemonProcess daemon(place_, options);
  ASSERT_TRUE(daemon.ready());
  ASSERT_TRUE(eventually([&] { return read_file(path).find("is ready") != std::string::npos; }));
  ASSERT_EQ(::rename(path.c_str(), (path + ".1").c_str()), 0);

  daemon.signal(SIGUSR1);

  EXPECT_TRUE(eventually([&] {
    return read_file(path).find("log opened anew") != std::string::npos;
  }));
}

TEST_F(LogTarget, JournaldGetsPrioritiesAndNoTimes) {
  const std::string path = place_.path() + "/journal";
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  struct stat status {};
  ASSERT_EQ(::fstat(fd, &status), 0);
  DaemonOptions options;
  options.environment["JOURNAL_STREAM"] =
      std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino);
  options.stderr_fd = fd;
  DaemonProcess daemon(place_, options);
  ASSERT_TRUE(daemon.ready());

  EXPECT_EQ(daemon.stop(), 0);

  EXPECT_EQ(read_file(path).rfind("<6>memory in ", 0), 0U) << read_file(path);
  ::close(fd);
}

TEST_F(LogTarget, C135ADaemonWithoutItsMemoryTakesLessThan32Megabytes) {
  DaemonOptions options;
  options.arguments = {"--set", "log.level=debug"};
  DaemonProcess daemon(place_, options);
  ASSERT_TRUE(daemon.ready());

  make_lines(500);

  const std::uint64_t kb = status_kb(daemon.pid(), "RssAnon") + status_kb(daemon.pid(), "RssFile");
  EXPECT_GT(kb, 0U);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(kb, 32U * 1024);
#endif
}

}  // namespace
}  // namespace cutwater::test
