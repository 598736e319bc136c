// SPDX-License-Identifier: Apache-2.0
#include "socket_file.hpp"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <unistd.h>

#include "support/daemon_process.hpp"
#include "support/raw_peer.hpp"

namespace cutwater::server {
namespace {

class SocketPath : public testing::Test {
 protected:
  SocketSettings settings(std::uint32_t mode = 0660) const {
    return {.path = place_.path() + "/socket", .mode = mode, .group = {}, .own_directory = false};
  }
  bool answers() const { return test::RawPeer(settings().path).connected(); }
  static mode_t mode_of(const std::string& path) {
    struct stat status {};
    EXPECT_EQ(::lstat(path.c_str(), &status), 0);
    return status.st_mode & 07777;
  }

  test::ScratchPlace place_;
};

TEST_F(SocketPath, HasItsModeWhateverTheUmask) {
  for (const mode_t umask_now : {0U, 022U, 077U, 0777U}) {
    const mode_t before = ::umask(umask_now);
    auto socket = SocketFile::listen(settings(0662));
    ::umask(before);

    ASSERT_TRUE(socket) << socket.error().text();
    EXPECT_EQ(mode_of(settings().path), 0662U);
    socket->remove();
  }
}

TEST_F(SocketPath, C126ASocketLeftByAKilledDaemonIsReplaced) {
  { auto left = SocketFile::listen(settings()); ASSERT_TRUE(left); }   // closed, not removed
  ASSERT_FALSE(answers());

  auto socket = SocketFile::listen(settings());

  ASSERT_TRUE(socket) << socket.error().text();
  EXPECT_TRUE(answers());
}

TEST_F(SocketPath, C126ALiveSocketIsLeftAlone) {
  auto first = SocketFile::listen(settings());
  ASSERT_TRUE(first);

  auto second = SocketFile::listen(settings());

  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), Errc::Busy);
  EXPECT_TRUE(first->is_in_place());
  EXPECT_TRUE(answers());
}

TEST_F(SocketPath, C126FilesLinksAndFoldersAreRefusedAndUntouched) {
  const std::string path = settings().path, target = place_.path() + "/target";
  const auto refused = [&](const char* word) {
    auto socket = SocketFile::listen(settings());
    ASSERT_FALSE(socket);
    EXPECT_EQ(socket.error().code(), Errc::NotOurs);
    EXPECT_NE(socket.error().text().find(word), std::string::npos) << socket.error().text();
  };

  test::write_file(path, "precious");
  refused("not a socket");
  EXPECT_EQ(test::read_file(path), "precious");
  ::unlink(path.c_str());

  test::write_file(target, "precious");
  ASSERT_EQ(::symlink(target.c_str(), path.c_str()), 0);
  refused("symbolic link");
  EXPECT_EQ(test::read_file(target), "precious");
  ::unlink(path.c_str());

  ASSERT_EQ(::mkdir(path.c_str(), 0700), 0);
  refused("directory");
}

TEST_F(SocketPath, C126RemovesOnlyWhatItMade) {
  auto first = SocketFile::listen(settings());
  ASSERT_TRUE(first);
  ::unlink(settings().path.c_str());
  auto second = SocketFile::listen(settings());
  ASSERT_TRUE(second);

  first->remove();

  EXPECT_TRUE(second->is_in_place());
  EXPECT_FALSE(first->is_in_place());
  second->remove();
  EXPECT_NE(::access(settings().path.c_str(), F_OK), 0);
}

TEST_F(SocketPath, MakesAFolderOthersMayEnter) {
  const std::string memory = place_.path() + "/closed/main";
  ASSERT_EQ(::mkdir((place_.path() + "/closed").c_str(), 0700), 0);
  SocketSettings own = settings();
  own.path = socket_path_for(memory, true);
  own.own_directory = true;

  auto socket = SocketFile::listen(own);

  ASSERT_TRUE(socket) << socket.error().text();
  EXPECT_EQ(own.path, memory + "@socket/cutwater.sock");
  EXPECT_EQ(mode_of(memory + "@socket"), 0755U);
  EXPECT_EQ(mode_of(place_.path() + "/closed"), 0711U);
}

TEST_F(SocketPath, ALinkInPlaceOfTheFolderIsRefused) {
  const std::string memory = place_.path() + "/main";
  ASSERT_EQ(::symlink("/tmp", (memory + "@socket").c_str()), 0);
  SocketSettings own = settings();
  own.path = socket_path_for(memory, true);
  own.own_directory = true;

  auto socket = SocketFile::listen(own);

  ASSERT_FALSE(socket);
  EXPECT_EQ(socket.error().code(), Errc::NotOurs);
}

TEST_F(SocketPath, AnAddressThatDoesNotFitIsRefused) {
  SocketSettings too_long = settings();
  too_long.path = "/" + std::string(107, 'x');

  auto socket = SocketFile::listen(too_long);

  ASSERT_FALSE(socket);
  EXPECT_NE(socket.error().text().find("107 bytes"), std::string::npos);
}

}  // namespace
}  // namespace cutwater::server
