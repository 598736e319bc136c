// SPDX-License-Identifier: Apache-2.0
#include "file_watch.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "support/daemon_process.hpp"

namespace cutwater::server {
namespace {

namespace fs = std::filesystem;
using test::ScratchPlace;
using test::write_file;
using std::chrono::milliseconds;

struct Watch : testing::Test {
  void watch(const std::string& path, milliseconds look_every = std::chrono::hours{1}) {
    watch_ = std::make_unique<FileWatch>(loop_, path, [this] { ++changes_; }, look_every);
  }
  bool sees_change(int count) {
    return test::eventually([&] { loop_.restart(); loop_.poll(); return changes_ >= count; });
  }
  /// A folder with two versions, and the links that container platforms make.
  void make_mount(const std::string& root) {
    for (const char* version : {"..v1", "..v2"}) {
      fs::create_directory(root + "/" + version);
      write_file(root + "/" + version + "/cutwater.yaml", std::string("# ") + version);
    }
    fs::create_directory_symlink("..v1", root + "/..data");
    fs::create_symlink("..data/cutwater.yaml", root + "/cutwater.yaml");
  }
  ScratchPlace place_;
  asio::io_context loop_;
  int changes_ = 0;
  std::unique_ptr<FileWatch> watch_;
};

TEST_F(Watch, SeesWhatChangedSinceTheFileWasReadBeforeTheWatchBegan) {
  write_file(place_.config(), "a: 1\n");
  const std::string read = fingerprint_of(place_.config());
  write_file(place_.config(), "a: 22\n");

  watch_ = std::make_unique<FileWatch>(loop_, place_.config(), [this] { ++changes_; },
                                       std::chrono::hours{1}, read);

  EXPECT_TRUE(sees_change(1));
}

TEST_F(Watch, SeesAFileThatIsWrittenAndOneThatIsPutInItsPlace) {
  write_file(place_.config(), "a: 1\n");
  watch(place_.config());
  ASSERT_EQ(watch_->why_slow(), "");

  write_file(place_.config(), "a: 22\n");
  EXPECT_TRUE(sees_change(1));

  write_file(place_.path() + "/new", "a: 333\n");
  fs::rename(place_.path() + "/new", place_.config());
  EXPECT_TRUE(sees_change(2));
}

TEST_F(Watch, SeesASwappedLinkOfAContainerPlatform) {
  make_mount(place_.path());
  watch(place_.config());

  fs::create_directory_symlink("..v2", place_.path() + "/..data_tmp");
  fs::rename(place_.path() + "/..data_tmp", place_.path() + "/..data");

  EXPECT_TRUE(sees_change(1));
}

TEST_F(Watch, SeesAFolderThatWasReplacedByItsFingerprint) {
  const std::string folder = place_.path() + "/etc";
  fs::create_directory(folder);
  write_file(folder + "/c.yaml", "1\n");
  watch(folder + "/c.yaml", milliseconds{20});

  fs::create_directory(place_.path() + "/other");
  write_file(place_.path() + "/other/c.yaml", "2\n");
  fs::rename(folder, place_.path() + "/old");
  fs::rename(place_.path() + "/other", folder);
  EXPECT_TRUE(sees_change(1));

  write_file(folder + "/c.yaml", "three\n");   // the new folder is watched as well
  EXPECT_TRUE(sees_change(2));
}

TEST_F(Watch, AFileThatIsGoneIsNoChangeAndAnUntouchedOneNeither) {
  write_file(place_.config(), "a: 1\n");
  watch(place_.config());

  fs::rename(place_.config(), place_.path() + "/away");
  write_file(place_.path() + "/neighbour", "x");
  fs::rename(place_.path() + "/away", place_.config());
  write_file(place_.config(), "a: 2\n");
  EXPECT_TRUE(sees_change(1));

  watch_.reset();   // the thread ends; nothing is posted afterwards
  loop_.restart();
  loop_.poll();
  EXPECT_LE(changes_, 2);
}

TEST(Fingerprint, FollowsLinksAndIsEmptyForNothing) {
  ScratchPlace place;
  write_file(place.path() + "/a", "1");
  write_file(place.path() + "/b", "1");
  fs::create_symlink("a", place.path() + "/link");
  const std::string before = fingerprint_of(place.path() + "/link");
  EXPECT_NE(before, "");

  fs::remove(place.path() + "/link");
  EXPECT_EQ(fingerprint_of(place.path() + "/link"), "");
  fs::create_symlink("b", place.path() + "/link");
  EXPECT_NE(fingerprint_of(place.path() + "/link"), before);
}

}  // namespace
}  // namespace cutwater::server
