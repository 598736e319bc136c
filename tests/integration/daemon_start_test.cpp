// SPDX-License-Identifier: Apache-2.0
// How a daemon starts, does not start, and ends: exit codes, the lock, the socket's name, the
// memory it needs.
#include <gtest/gtest.h>

#include <csignal>

#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "support/daemon_process.hpp"
#include "support/raw_peer.hpp"

namespace cutwater::test {
namespace {

constexpr const char* kConfig = "limits: { api: { rate: 10/s } }\n";

class Start : public testing::Test {
 protected:
  Start() { place_.write_config(kConfig); }

  static std::string identity(const std::string& path) {
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0) return "none";
    return std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino) + ":" +
           std::to_string(status.st_mode) + ":" + std::to_string(status.st_size);
  }
  bool serves() const { return RawPeer(place_.socket()).greet(wire::Want::Ask).has_value(); }
  static DaemonOptions with(std::vector<std::string> arguments) {
    DaemonOptions options;
    options.arguments = std::move(arguments);
    return options;
  }
  ProgramRun run(std::vector<std::string> arguments, bool with_config = true) const {
    std::vector<std::string> command = {DaemonProcess::program()};
    if (with_config) {
      command.insert(command.end(), {"--config", place_.config(), "--set",
                                     "instance.memory-directory=" + place_.memory()});
    }
    command.insert(command.end(), arguments.begin(), arguments.end());
    return run_program(command);
  }

  ScratchPlace place_;
};

TEST_F(Start, TellsReadyAndStoppingAndLeavesTheMemory) {
  DaemonProcess daemon(place_);
  ASSERT_TRUE(daemon.ready()) << daemon.log();
  EXPECT_TRUE(serves());

  EXPECT_EQ(daemon.stop(), 0);

  EXPECT_NE(daemon.notifications().find("STOPPING=1"), std::string::npos);
  EXPECT_EQ(identity(place_.socket()), "none");
  EXPECT_NE(identity(place_.memory() + "/state"), "none");
}

TEST_F(Start, BeatsForAManagerThatWatches) {
  DaemonOptions options;
  options.environment["WATCHDOG_USEC"] = "400000";
  DaemonProcess daemon(place_, options);
  ASSERT_TRUE(daemon.ready());

  EXPECT_TRUE(daemon.wait_notification("WATCHDOG=1"));
}

TEST_F(Start, C126AfterAKillTheNextServesAtOnce) {
  {
    DaemonProcess daemon(place_);
    ASSERT_TRUE(daemon.ready());
    daemon.kill(SIGKILL);
  }
  ASSERT_NE(identity(place_.socket()), "none");   // the stale socket

  DaemonProcess next(place_);

  ASSERT_TRUE(next.ready()) << next.log();
  EXPECT_TRUE(serves());
}

TEST_F(Start, C126ASecondInstanceExitsWith3AndChangesNothing) {
  DaemonProcess first(place_);
  ASSERT_TRUE(first.ready());
  std::vector<std::string> before;
  const std::vector<std::string> names = {"rules", "state", "stats", "cutwater.sock"};
  for (const auto& name : names) before.push_back(identity(place_.memory() + "/" + name));

  DaemonProcess same(place_);                                                              // (b)
  DaemonProcess other_socket(place_, with({"--set", "listen.unix.path=" + place_.path() +  // (c)
                                                        "/other.sock"}));

  EXPECT_EQ(same.wait_end(), 3) << same.log();
  EXPECT_EQ(other_socket.wait_end(), 3) << other_socket.log();
  EXPECT_NE(same.log().find("another daemon (pid " + std::to_string(first.pid()) + ")"),
            std::string::npos)
      << same.log();
  EXPECT_EQ(identity(place_.path() + "/other.sock"), "none");
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(identity(place_.memory() + "/" + names[i]), before[i]) << names[i];
  }
  EXPECT_TRUE(serves());
}

TEST_F(Start, C126AnEndingDaemonLeavesTheSocketOfAnother) {
  const std::string path = place_.path() + "/shared.sock";
  DaemonProcess first(place_, with({"--set", "listen.unix.path=" + path}));
  ASSERT_TRUE(first.ready());
  ::unlink(path.c_str());
  ScratchPlace other;
  DaemonProcess second(other, with({"--set", "listen.unix.path=" + path}));
  ASSERT_TRUE(second.ready()) << second.log();
  const std::string before = identity(path);

  EXPECT_EQ(first.stop(), 0);

  EXPECT_EQ(identity(path), before);
  EXPECT_TRUE(RawPeer(path).greet(wire::Want::Ask).has_value());
}

TEST_F(Start, C126AForeignSocketThatAnswersIsBusy) {
  const std::string path = place_.path() + "/shared.sock";
  DaemonProcess first(place_, with({"--set", "listen.unix.path=" + path}));
  ASSERT_TRUE(first.ready());
  ScratchPlace other;

  DaemonProcess second(other, with({"--set", "listen.unix.path=" + path}));

  EXPECT_EQ(second.wait_end(), 3) << second.log();
  EXPECT_TRUE(RawPeer(path).greet(wire::Want::Ask).has_value());
}

TEST_F(Start, C126FilesAndLinksAtTheSocketsPathAreRefusedAndUntouched) {
  const std::string path = place_.path() + "/at", target = place_.path() + "/target";
  write_file(target, "precious");
  for (const bool link : {false, true}) {
    ::unlink(path.c_str());
    if (link) ASSERT_EQ(::symlink(target.c_str(), path.c_str()), 0);
    else write_file(path, "precious");

    DaemonProcess daemon(place_, with({"--set", "listen.unix.path=" + path}));

    EXPECT_EQ(daemon.wait_end(), 5) << daemon.log();
    EXPECT_NE(daemon.log().find(path), std::string::npos);
    EXPECT_EQ(read_file(path), "precious");
  }
}

TEST_F(Start, C126OfTwoStartsAtOnceExactlyOneWins) {
  for (int round = 0; round < 10; ++round) {
    DaemonOptions unwaited;
    unwaited.wait = false;
    DaemonProcess one(place_, unwaited), two(place_, unwaited);

    const bool first = one.wait_ready(), second = two.wait_ready();

    ASSERT_NE(first, second) << one.log() << two.log();
    EXPECT_EQ((first ? two : one).wait_end(), 3);
    EXPECT_TRUE(serves());
  }
}

TEST_F(Start, ExitCodesTellWhatIsWrong) {
  EXPECT_EQ(run({"--no-such-option"}).code, 2);
  EXPECT_EQ(run({"--clock=sundial"}).code, 2);
  EXPECT_EQ(run({"--set", "nonsense"}).code, 2);
  EXPECT_EQ(run({"--set", "log.level=loud"}).code, 4);
  EXPECT_EQ(run({"--config", "/nonexistent.yaml"}, false).code, 4);
  EXPECT_EQ(run({"--set", "log.target=file:/nonexistent/log"}).code, 4);
  EXPECT_EQ(run({"--version"}, false).code, 0);
}

TEST_F(Start, CheckConfigPrintsEveryErrorOrWhatIsReserved) {
  const ProgramRun good = run({"--check-config"});
  EXPECT_EQ(good.code, 0);
  EXPECT_NE(good.out.find("1 limits"), std::string::npos);
  EXPECT_NE(good.out.find("in all"), std::string::npos);

  place_.write_config("limits:\n  api: { rate: 0/s }\n  b: { rate: 1/s, brust: 2 }\n");
  const ProgramRun bad = run({"--check-config"});
  EXPECT_EQ(bad.code, 4);
  EXPECT_NE(bad.out.find("cutwater.yaml:2:"), std::string::npos) << bad.out;
  EXPECT_NE(bad.out.find("did you mean 'burst'?"), std::string::npos);
  EXPECT_NE(bad.out.find("2 errors"), std::string::npos);
  EXPECT_EQ(identity(place_.memory()), "none");
}

TEST_F(Start, HelpConfigDescribesTheKeys) {
  const ProgramRun help = run({"--help-config"}, false);

  EXPECT_EQ(help.code, 0);
  EXPECT_NE(help.out.find("initial-after-damage"), std::string::npos);
}

TEST_F(Start, TheConfigurationsFileMayComeFromTheEnvironment) {
  const ProgramRun check = run_program({DaemonProcess::program(), "--check-config"},
                                       {{"CUTWATER_CONFIG", place_.config()}});

  EXPECT_EQ(check.code, 0);
  EXPECT_NE(check.out.find(place_.config()), std::string::npos);
}

TEST_F(Start, AMemoryDirectoryOffTmpfsIsRefused) {
  const ProgramRun refused = run({"--set", "instance.memory-directory=/etc"});

  EXPECT_EQ(refused.code, 5);
  EXPECT_NE(refused.err.find("tmpfs"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("mount -t tmpfs"), std::string::npos);
}

TEST_F(Start, ADirectoryOfAnotherUserIsRefused) {
  if (!is_root()) GTEST_SKIP() << "needs root to give a directory away";
  ASSERT_EQ(::mkdir(place_.memory().c_str(), 0777), 0);
  ASSERT_EQ(::chown(place_.memory().c_str(), 12345, 12345), 0);

  DaemonProcess daemon(place_);

  EXPECT_EQ(daemon.wait_end(), 5) << daemon.log();
  EXPECT_NE(daemon.log().find("belongs to uid 12345"), std::string::npos) << daemon.log();
}

TEST_F(Start, C052ATmpfsTooSmallNamesWhatIsNeededAndNobodyDiesOfIt) {
  if (!is_root()) GTEST_SKIP() << "needs root to mount a file system";
  const std::string small = place_.path() + "/small";
  ASSERT_EQ(::mkdir(small.c_str(), 0755), 0);
  const std::string needed = run({"--check-config"}).out;
  const auto at = needed.find("in all");
  const std::uint64_t bytes = std::stoull(needed.substr(at + 6));
  // Far too small, half, and one page less than the three files and the lock take.
  for (const std::uint64_t size : {std::uint64_t{1} << 20, bytes / 2, bytes / 4096 * 4096}) {
    const std::string option = "size=" + std::to_string(size);
    ASSERT_EQ(::mount("tmpfs", small.c_str(), "tmpfs", 0, option.c_str()), 0);

    const ProgramRun refused = run({"--set", "instance.memory-directory=" + small + "/main"});

    EXPECT_EQ(refused.code, 5) << size << refused.err;
    EXPECT_NE(refused.err.find(std::to_string(bytes) + " bytes needed"), std::string::npos)
        << refused.err;
    EXPECT_NE(refused.err.find("bytes available"), std::string::npos);
    EXPECT_NE(refused.err.find(small), std::string::npos);
    EXPECT_NE(refused.err.find("capacity.keys"), std::string::npos);
    struct statvfs status {};
    ASSERT_EQ(::statvfs(small.c_str(), &status), 0);
    EXPECT_GE(status.f_bfree + 8, status.f_blocks) << "nothing may be left lying there";
    ::umount(small.c_str());
  }
}

TEST_F(Start, C140TheSocketHasItsModeWhateverTheUmask) {
  DaemonOptions options = with({"--set", "listen.unix.mode=0600"});
  options.umask = 0;
  DaemonProcess daemon(place_, options);
  ASSERT_TRUE(daemon.ready()) << daemon.log();

  struct stat status {};
  ASSERT_EQ(::stat(place_.socket().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600U);
  ASSERT_EQ(::stat(place_.memory().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700U);
}

// A sanitizer's runtime makes mlock do nothing and succeed.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_F(Start, MemoryThatCannotBeLockedIsSaidOrEndsTheStart) {
  if (!is_root()) GTEST_SKIP() << "needs root to start it without the right to lock";
  if (!others_may_run(DaemonProcess::program())) GTEST_SKIP() << kBuildIsClosed;
  ASSERT_EQ(::chown(place_.path().c_str(), 12345, 12345), 0);
  DaemonOptions options;
  options.uid = 12345;
  options.locked_memory = 65536;
  DaemonProcess when_possible(place_, options);
  ASSERT_TRUE(when_possible.ready()) << when_possible.log();
  EXPECT_TRUE(when_possible.wait_log("LimitMEMLOCK"));
  when_possible.kill();

  options.arguments = {"--set", "instance.lock-memory=true"};
  DaemonProcess demanded(place_, options);

  EXPECT_EQ(demanded.wait_end(), 5) << demanded.log();
  EXPECT_NE(demanded.log().find("limit of locked memory: 65536 bytes"), std::string::npos);
}
#endif

TEST_F(Start, TheCounterIsUsedOnlyWhereItIsAClock) {
  DaemonProcess daemon(place_, with({"--set", "instance.clock=tsc"}));

  if (!daemon.ready()) {
    EXPECT_EQ(daemon.wait_end(), 5);
    EXPECT_NE(daemon.log().find("use boottime"), std::string::npos) << daemon.log();
  }
}

TEST_F(Start, AMemoryOfTheOtherClockIsPutAsideAndSaid) {
  { DaemonProcess daemon(place_); ASSERT_TRUE(daemon.ready()); daemon.kill(SIGKILL); }

  DaemonProcess stepped(place_, with({"--clock=stepped"}));

  ASSERT_TRUE(stepped.ready()) << stepped.log();
  EXPECT_TRUE(stepped.wait_log("clock is boottime, this daemon was started with stepped"));
  EXPECT_NE(identity(place_.memory() + "/state.bad"), "none");
}

TEST_F(Start, TheSocketMayBeOff) {
  DaemonProcess daemon(place_, with({"--set", "listen.unix.path=off"}));

  ASSERT_TRUE(daemon.ready()) << daemon.log();
  EXPECT_EQ(identity(place_.socket()), "none");
  EXPECT_EQ(daemon.stop(), 0);
}

TEST_F(Start, ASecondSignalEndsWithoutWaiting) {
  DaemonProcess daemon(place_);
  ASSERT_TRUE(daemon.ready());
  RawPeer peer(place_.socket());
  ASSERT_TRUE(peer.greet(wire::Want::Ask));

  daemon.signal(SIGTERM);
  daemon.signal(SIGINT);

  EXPECT_EQ(daemon.wait_end(), 0);
}

}  // namespace
}  // namespace cutwater::test
