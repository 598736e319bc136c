// SPDX-License-Identifier: Apache-2.0
#include "log.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/daemon_process.hpp"

namespace cutwater::server {
namespace {

using config::LogFormat;
using config::LogLevel;
constexpr std::chrono::milliseconds kPatience{30'000};

class LogFile : public testing::Test {
 protected:
  config::Log settings() const {
    config::Log out;
    out.file = place_.path() + "/log";
    return out;
  }
  std::string text() const { return test::read_file(settings().file); }

  test::ScratchPlace place_;
};

TEST_F(LogFile, WritesLinesOfItsLevelAndAbove) {
  auto log = Log::open(settings(), false).value();

  log->debug("too small");
  log->info("{} limits", 3);
  log->error("bad");
  ASSERT_TRUE(log->close(kPatience));

  EXPECT_EQ(text().find("too small"), std::string::npos);
  EXPECT_NE(text().find("Z info 3 limits\n"), std::string::npos);
  EXPECT_NE(text().find("Z error bad\n"), std::string::npos);
}

TEST_F(LogFile, WritesJsonWhateverTheTextHolds) {
  config::Log json = settings();
  json.format = LogFormat::Json;
  auto log = Log::open(json, false).value();

  log->info("a \"quoted\" \\ text");
  ASSERT_TRUE(log->close(kPatience));

  EXPECT_NE(text().find(R"("level":"info","text":"a \"quoted\" \\ text"})"), std::string::npos);
}

TEST_F(LogFile, AControlCharacterNeverMakesASecondLine) {
  auto log = Log::open(settings(), false).value();

  log->info("name {}", "x\ny\x1b[31m");
  ASSERT_TRUE(log->close(kPatience));

  EXPECT_NE(text().find("name x?y?[31m\n"), std::string::npos);
}

TEST_F(LogFile, CountsALineThatRepeats) {
  auto log = Log::open(settings(), false).value();

  for (int i = 0; i < 5; ++i) log->warn("again");
  log->warn("other");
  ASSERT_TRUE(log->close(kPatience));

  EXPECT_NE(text().find("again\n"), std::string::npos);
  EXPECT_NE(text().find("the line before came 4 times more\n"), std::string::npos);
  EXPECT_EQ(text().find("again", text().find("again") + 1), std::string::npos);
}

TEST_F(LogFile, CutsALongLine) {
  auto log = Log::open(settings(), false).value();

  log->info("{}", std::string(100'000, 'x'));
  ASSERT_TRUE(log->close(kPatience));

  EXPECT_LE(text().size(), Log::kMaxLine);
}

TEST_F(LogFile, ReopensItsFileAfterARotation) {
  auto log = Log::open(settings(), false).value();
  log->info("before");
  ASSERT_TRUE(test::eventually([&] { return text().find("before") != std::string::npos; }));
  ASSERT_EQ(::rename(settings().file.c_str(), (settings().file + ".1").c_str()), 0);

  log->reopen();
  log->info("after");
  ASSERT_TRUE(log->close(kPatience));

  EXPECT_NE(text().find("after"), std::string::npos);
  EXPECT_EQ(text().find("before"), std::string::npos);
}

TEST_F(LogFile, AFileThatCannotBeOpenedIsAnErrorWithItsPath) {
  config::Log nowhere;
  nowhere.file = "/nonexistent/folder/log";

  auto log = Log::open(nowhere, false);

  ASSERT_FALSE(log);
  EXPECT_NE(log.error().text().find("/nonexistent/folder/log"), std::string::npos);
}

TEST_F(LogFile, AChangeThatFailsKeepsTheOldTarget) {
  auto log = Log::open(settings(), false).value();
  config::Log nowhere = settings();
  nowhere.file = "/nonexistent/folder/log";

  EXPECT_FALSE(log->change(nowhere));
  log->info("still here");
  ASSERT_TRUE(log->close(kPatience));

  EXPECT_NE(text().find("still here"), std::string::npos);
}

// C134: a FIFO nobody reads. The caller goes on, lines are dropped and counted, the end does not
// wait.
TEST_F(LogFile, C134AStuckTargetDropsAndCountsAndHoldsNobody) {
  config::Log stuck = settings();
  stuck.queue = 256;
  ASSERT_EQ(::mkfifo(stuck.file.c_str(), 0600), 0);
  auto log = Log::open(stuck, false).value();

  for (int i = 0; i < 100'000; ++i) log->info("line {}", i);

  EXPECT_GT(log->dropped(), 90'000U);
  EXPECT_FALSE(log->close(std::chrono::milliseconds{50}));
}

TEST_F(LogFile, C134SaysHowMuchWasLostWhenThereIsRoomAgain) {
  config::Log stuck = settings();
  stuck.queue = 256;
  ASSERT_EQ(::mkfifo(stuck.file.c_str(), 0600), 0);
  auto log = Log::open(stuck, false).value();
  for (int i = 0; i < 20'000; ++i) log->info("line {}", i);
  ASSERT_GT(log->dropped(), 0U);

  const int reader = ::open(stuck.file.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  std::string seen;
  const bool told = test::eventually([&] {
    char piece[65536];
    const ssize_t n = ::read(reader, piece, sizeof piece);
    if (n > 0) seen.append(piece, static_cast<std::size_t>(n));
    return seen.find("log lines were dropped") != std::string::npos;
  });
  ::close(reader);

  EXPECT_TRUE(told);
}

TEST(StderrIsJournal, OnlyWhenDeviceAndInodeAreThoseOfStderr) {
  struct stat status {};
  ASSERT_EQ(::fstat(STDERR_FILENO, &status), 0);
  const std::string own = std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino);

  EXPECT_TRUE(stderr_is_journal(own.c_str()));
  EXPECT_FALSE(stderr_is_journal("8:1"));
  EXPECT_FALSE(stderr_is_journal("nonsense"));
  EXPECT_FALSE(stderr_is_journal(nullptr));
}

}  // namespace
}  // namespace cutwater::server
