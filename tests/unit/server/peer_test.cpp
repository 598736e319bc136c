// SPDX-License-Identifier: Apache-2.0
#include "peer.hpp"

#include <gtest/gtest.h>

#include <csignal>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shm/process_table.hpp"
#include "support/daemon_process.hpp"

namespace cutwater::server {
namespace {

TEST(PeerProcess, IsWhomTheKernelNames) {
  int pair[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  const shm::UniqueFd ours(pair[0]), theirs(pair[1]);

  auto peer = read_peer(ours.get());

  ASSERT_TRUE(peer);
  EXPECT_EQ(peer->identity.uid, ::geteuid());
  EXPECT_EQ(peer->identity.gid, ::getegid());
  EXPECT_EQ(peer->pid, static_cast<std::uint32_t>(::getpid()));
  EXPECT_EQ(peer->start_time, shm::process_start_time(peer->pid));
  EXPECT_TRUE(peer->pidfd);
  EXPECT_FALSE(has_ended(peer->pidfd));
}

/// A child that lives until it is killed.
class Child {
 public:
  Child() : pid_(::fork()) {
    if (pid_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      while (true) ::pause();
    }
  }
  ~Child() { end(); }
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  std::uint32_t pid() const { return static_cast<std::uint32_t>(pid_); }

 private:
  pid_t pid_;
};

TEST(KnownProcess, C058IsItsPidAndItsStartTimeTogether) {
  Child child;
  const std::uint64_t started = shm::process_start_time(child.pid());

  auto same = open_known_process(child.pid(), started);
  auto other = open_known_process(child.pid(), started + 1);   // the pid came again

  ASSERT_TRUE(same.ok() && other.ok());
  EXPECT_TRUE(*same);
  EXPECT_FALSE(*other);
  child.end();
  EXPECT_TRUE(has_ended(*same));
}

TEST(KnownProcess, IsGoneWhenItEnded) {
  Child child;
  const std::uint32_t pid = child.pid();
  const std::uint64_t started = shm::process_start_time(pid);
  child.end();

  auto gone = open_known_process(pid, started);

  ASSERT_TRUE(gone.ok());
  EXPECT_FALSE(*gone);
  EXPECT_FALSE(*open_known_process(0, 0));
}

TEST(Mapping, IsFoundByDeviceAndInode) {
  const test::ScratchPlace place;
  const std::string path = place.path() + "/file";
  test::write_file(path, std::string(4096, 'x'));
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  const auto own = static_cast<std::uint32_t>(::getpid());
  EXPECT_EQ(look_for_mapping(own, status.st_dev, status.st_ino), Mapping::Gone);

  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  void* at = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0);
  ::close(fd);
  ::unlink(path.c_str());

  EXPECT_EQ(look_for_mapping(own, status.st_dev, status.st_ino), Mapping::There);
  ::munmap(at, 4096);
  EXPECT_EQ(look_for_mapping(own, status.st_dev, status.st_ino), Mapping::Gone);
}

TEST(Mapping, IsUnknownOfAProcessThatIsNotThere) {
  Child child;
  const std::uint32_t pid = child.pid();
  child.end();

  EXPECT_EQ(look_for_mapping(pid, 1, 1), Mapping::Unreadable);
}

}  // namespace
}  // namespace cutwater::server
