// SPDX-License-Identifier: Apache-2.0
// Which directory is taken, which is refused and why; the lock of the daemon (C044, C126).
#include "shm/directory.hpp"

#include <sys/wait.h>

#include <csignal>

#include "unit/shm/memory_support.hpp"

namespace cutwater::shm {
namespace {

using test::TmpfsDirectory;
using Paths = std::vector<std::string>;

DirectoryQuery at(const std::string& path) {
  DirectoryQuery query;
  query.setting = path;
  return query;
}

mode_t mode_of(const MemoryDirectory& directory) {
  struct stat status {};
  fstat(directory.fd.get(), &status);
  return status.st_mode & 07777;
}

void expect_refused(const DirectoryQuery& query, Errc code, const std::string& text) {
  const auto directory = open_directory(query);
  EXPECT_FALSE(directory);
  EXPECT_EQ(directory.error().code(), code) << directory.error().text();
  EXPECT_NE(directory.error().text().find(text), std::string::npos) << directory.error().text();
}

TEST(DirectoryCandidates, ComeInTheDocumentedOrder) {
  DirectoryQuery query;
  query.instance = "edge";
  query.runtime_directory = "/run/a:/run/b";
  query.xdg_runtime_dir = "/run/user/7";

  const std::string last = "/dev/shm/cutwater-" + std::to_string(geteuid()) + "/edge";
  EXPECT_EQ(directory_candidates(query),
            (Paths{"/run/a", "/run/cutwater/edge", "/run/user/7/cutwater/edge", last}));
}

TEST(DirectoryCandidates, ASettingIsTheOnlyOne) {
  DirectoryQuery query = at("/x/y");
  query.runtime_directory = "/run/a";

  EXPECT_EQ(directory_candidates(query), Paths{"/x/y"});
}

TEST(DirectoryCandidates, AutoMeansNoSetting) {
  const Paths expected = {"/run/cutwater/main",
                          "/dev/shm/cutwater-" + std::to_string(geteuid()) + "/main"};

  EXPECT_EQ(directory_candidates(at("auto")), expected);
  EXPECT_EQ(directory_candidates(at("")), expected);
}

TEST(Directory, MissingPartsAreMadeForUsOnly) {
  TmpfsDirectory base;

  const auto directory = open_directory(at(base.path() + "/a/b"));

  ASSERT_TRUE(directory) << directory.error().text();
  EXPECT_EQ(directory->path, base.path() + "/a/b");
  EXPECT_EQ(mode_of(*directory), 0700U);
  EXPECT_EQ(fcntl(directory->fd.get(), F_GETFD), FD_CLOEXEC);
}

TEST(Directory, AnotherModeIsRepaired) {
  TmpfsDirectory base;
  ASSERT_EQ(chmod(base.path().c_str(), 0777), 0);

  const auto directory = open_directory(at(base.path()));

  ASSERT_TRUE(directory);
  EXPECT_EQ(mode_of(*directory), 0700U);
}

TEST(Directory, LookingMakesAndChangesNothing) {
  TmpfsDirectory base;
  ASSERT_EQ(chmod(base.path().c_str(), 0750), 0);
  DirectoryQuery query = at(base.path());
  query.create = false;

  const auto directory = open_directory(query);

  ASSERT_TRUE(directory);
  EXPECT_EQ(mode_of(*directory), 0750U);
  query.setting = base.path() + "/missing";
  expect_refused(query, Errc::NoDaemon, "No such file");
  EXPECT_EQ(base.entries(), 0U);
}

TEST(Directory, ALinkInThePathIsRefused) {
  TmpfsDirectory base;
  ASSERT_EQ(mkdirat(base.fd(), "real", 0700), 0);
  ASSERT_EQ(mkdirat(base.fd(), "real/deep", 0700), 0);
  ASSERT_EQ(symlinkat("real", base.fd(), "link"), 0);

  expect_refused(at(base.path() + "/link"), Errc::NotOurs, "`link` is a symbolic link");
  expect_refused(at(base.path() + "/link/deep"), Errc::NotOurs, "`link` is a symbolic link");
}

TEST(Directory, AFileInThePathIsRefused) {
  TmpfsDirectory base;
  ASSERT_EQ(close(openat(base.fd(), "file", O_CREAT | O_WRONLY | O_CLOEXEC, 0600)), 0);

  expect_refused(at(base.path() + "/file"), Errc::System, "Not a directory");
}

TEST(Directory, AnotherFileSystemIsRefusedAndTheMountNamed) {
  const std::string ours = "/proc/" + std::to_string(getpid());   // our uid's, and no tmpfs

  expect_refused(at(ours), Errc::NotTmpfs, "is not on a tmpfs");
  expect_refused(at(ours), Errc::NotTmpfs, "mount -t tmpfs");
  expect_refused(at(ours + "/cutwater"), Errc::NotTmpfs, "its parent is not on a tmpfs");
}

TEST(Directory, ARelativePathIsRefused) {
  expect_refused(at("run/cutwater"), Errc::InvalidArgument, "not an absolute path");
  expect_refused(at("/dev/shm/../shm"), Errc::InvalidArgument, "must not contain `..`");
}

TEST(Directory, AnInstanceNameIsNoPath) {
  DirectoryQuery query;
  for (const char* name : {"", ".", "..", "a/b"}) {
    query.instance = name;
    expect_refused(query, Errc::InvalidArgument, "instance name");
  }
}

TEST(Directory, SomebodyElsesIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "giving a directory away needs root";
  TmpfsDirectory base;
  ASSERT_EQ(mkdirat(base.fd(), "theirs", 0777), 0);
  ASSERT_EQ(fchownat(base.fd(), "theirs", 4711, 4711, 0), 0);

  expect_refused(at(base.path() + "/theirs"), Errc::NotOurs, "belongs to uid 4711");
  expect_refused(at(base.path() + "/theirs/main"), Errc::NotOurs, "belongs to uid 4711");
}

TEST(Directory, RootMayLookAtSomebodyElses) {
  if (geteuid() != 0) GTEST_SKIP() << "giving a directory away needs root";
  TmpfsDirectory base;
  ASSERT_EQ(fchown(base.fd(), 4711, 4711), 0);
  DirectoryQuery query = at(base.path());
  query.create = false;

  EXPECT_TRUE(open_directory(query));
}

TEST(Directory, TheFirstCandidateThatServesIsTaken) {
  TmpfsDirectory base;
  DirectoryQuery query;
  query.instance = "test-" + std::to_string(getpid());
  query.runtime_directory = base.path() + "/first";

  const auto first = open_directory(query);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->path, base.path() + "/first");

  // One that does not serve is passed over when nobody asked for it.
  query.runtime_directory = "/proc/" + std::to_string(getpid());
  query.xdg_runtime_dir = base.path();
  query.create = false;
  ASSERT_EQ(mkdirat(base.fd(), "cutwater", 0700), 0);
  ASSERT_EQ(mkdirat(base.fd(), ("cutwater/" + query.instance).c_str(), 0700), 0);
  const auto other = open_directory(query);
  ASSERT_TRUE(other) << other.error().text();
  EXPECT_EQ(other->path, base.path() + "/cutwater/" + query.instance);
}

class Lock : public testing::Test {
 protected:
  void SetUp() override {
    auto directory = open_directory(at(base_.path()));
    ASSERT_TRUE(directory);
    directory_ = std::move(directory).value();
  }
  TmpfsDirectory base_;
  MemoryDirectory directory_;
};

/// A child that takes the lock, says so, and then does `next`.
template <class Next>
pid_t child_with_lock(const MemoryDirectory& directory, Next next) {
  int ready[2];
  if (pipe2(ready, O_CLOEXEC) != 0) std::abort();
  const pid_t child = fork();
  if (child == 0) {
    auto lock = take_lock(directory);
    const char said = lock ? 'y' : 'n';
    if (write(ready[1], &said, 1) != 1) _exit(1);
    next();
    _exit(1);
  }
  close(ready[1]);
  char said = 0;
  EXPECT_EQ(read(ready[0], &said, 1), 1);
  EXPECT_EQ(said, 'y');
  close(ready[0]);
  return child;
}

// covers: C126
TEST_F(Lock, TheSecondTakerIsToldWhoHoldsIt) {
  const auto first = take_lock(directory_);
  ASSERT_TRUE(first);

  const auto second = take_lock(directory_);

  EXPECT_EQ(second.error().code(), Errc::Busy);
  const std::string holder = "(pid " + std::to_string(getpid()) + ")";
  EXPECT_NE(second.error().text().find(holder), std::string::npos) << second.error().text();
}

TEST_F(Lock, IsSeenByWhoLooksAndNotKeptByLooking) {
  EXPECT_FALSE(lock_is_held(directory_));
  auto lock = take_lock(directory_);
  ASSERT_TRUE(lock);
  EXPECT_TRUE(lock_is_held(directory_));

  lock->reset();

  EXPECT_FALSE(lock_is_held(directory_));
  EXPECT_TRUE(take_lock(directory_));
}

// covers: C044, C126
TEST_F(Lock, FallsWithAKilledHolder) {
  const pid_t holder = child_with_lock(directory_, [] { pause(); });
  const auto busy = take_lock(directory_);
  EXPECT_EQ(busy.error().code(), Errc::Busy);
  EXPECT_NE(busy.error().text().find(std::to_string(holder)), std::string::npos);

  ASSERT_EQ(kill(holder, SIGKILL), 0);
  ASSERT_EQ(waitpid(holder, nullptr, 0), holder);

  EXPECT_TRUE(take_lock(directory_));
}

TEST_F(Lock, IsNotInheritedByExec) {
  int to_cat[2], from_cat[2];
  ASSERT_EQ(pipe2(to_cat, O_CLOEXEC), 0);
  ASSERT_EQ(pipe2(from_cat, O_CLOEXEC), 0);
  const pid_t child = child_with_lock(directory_, [&] {
    dup2(to_cat[0], STDIN_FILENO);
    dup2(from_cat[1], STDOUT_FILENO);
    execlp("cat", "cat", static_cast<char*>(nullptr));
  });
  close(to_cat[0]);
  close(from_cat[1]);
  // cat answers: the exec has happened, and the process is still there.
  ASSERT_EQ(write(to_cat[1], "x", 1), 1);
  char answer = 0;
  ASSERT_EQ(read(from_cat[0], &answer, 1), 1);

  EXPECT_TRUE(take_lock(directory_));

  close(to_cat[1]);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  close(from_cat[0]);
}

TEST_F(Lock, ALinkInItsPlaceIsRefused) {
  ASSERT_EQ(symlinkat("elsewhere", base_.fd(), "lock"), 0);

  EXPECT_EQ(take_lock(directory_).error().code(), Errc::NotOurs);
  EXPECT_FALSE(base_.has("elsewhere"));
}

}  // namespace
}  // namespace cutwater::shm
