// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <sys/stat.h>

#include "loading.hpp"

namespace cutwater::config {
namespace {

namespace fs = std::filesystem;

class LoadFile : public ::testing::Test {
 protected:
  LoadFile() {
    std::string pattern = (fs::temp_directory_path() / "cutwater-config-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    path_ = (folder_ / "cutwater.yaml").string();
  }
  ~LoadFile() override { fs::remove_all(folder_); }

  void write(const std::string& text, mode_t mode = 0644) {
    std::ofstream(path_) << text;
    ASSERT_EQ(chmod(path_.c_str(), mode), 0);
  }

  /// What is said behind "FILE: ".
  std::string refusal_of(const std::string& path) {
    const LoadOutcome outcome = load_file(path);
    EXPECT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.errors.size(), 1U);
    EXPECT_EQ(outcome.errors.at(0).where, path);
    return outcome.errors.at(0).text;
  }

  fs::path folder_;
  std::string path_;
};

TEST_F(LoadFile, ReadsAFileAndNamesItInErrors) {
  write("limits: { a: { rate: 10/s } }\n");
  const LoadOutcome outcome = load_file(path_);
  ASSERT_TRUE(outcome.ok()) << outcome.report();
  EXPECT_EQ(outcome.config->limits.size(), 1U);
  EXPECT_EQ(outcome.config->file_name, path_);

  write("logg: 1\n");
  EXPECT_EQ(load_file(path_).errors.at(0).line(),
            path_ + ":1:1: logg: unknown key; did you mean 'log'?");
}

TEST_F(LoadFile, MustExistAndBeRegular) {
  EXPECT_EQ(refusal_of(path_), "cannot open it: No such file or directory");
  EXPECT_EQ(refusal_of(folder_.string()), "not a regular file; name a YAML file");
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(refusal_of(path_), "not a regular file; name a YAML file");
  EXPECT_EQ(refusal_of("/dev/null"), "not a regular file; name a YAML file");
}

TEST_F(LoadFile, MustNotBeWritableByOthers) {
  write("", 0666);
  EXPECT_EQ(refusal_of(path_), "writable by others; run chmod o-w on it");
  write("", 0664);
  EXPECT_TRUE(load_file(path_).ok());
}

TEST_F(LoadFile, NorItsFolder) {
  write("");
  fs::permissions(folder_, fs::perms(0777));
  EXPECT_EQ(refusal_of(path_),
            "the folder " + folder_.string() + " is writable by others; run chmod o-w on it");
  ASSERT_EQ(chmod(folder_.c_str(), 01777), 0);
  EXPECT_TRUE(load_file(path_).ok());
}

TEST_F(LoadFile, LooksAtBothFoldersOfALink) {
  const fs::path inner = folder_ / "inner";
  fs::create_directory(inner);
  std::ofstream(inner / "real.yaml") << "log: {}\n";
  fs::create_symlink("inner/real.yaml", path_);
  EXPECT_TRUE(load_file(path_).ok());

  fs::permissions(inner, fs::perms(0777));
  EXPECT_EQ(refusal_of(path_), "the folder " + fs::canonical(inner).string() +
                                   " is writable by others; run chmod o-w on it");
}

TEST_F(LoadFile, HoldsAtMostAMebibyte) {
  write(std::string(kMaxTextBytes, '#'));
  EXPECT_TRUE(load_file(path_).ok());
  write(std::string(kMaxTextBytes + 1, '#'));
  EXPECT_EQ(refusal_of(path_), "larger than the maximum of 1048576 bytes");
}

// covers: C130
TEST_F(LoadFile, AHalfWrittenFileIsRefusedWhole) {
  const std::string text =
      "limits:\n  a: { rate: 10/s, burst: 20 }\n  b: { rate: { count: 5, per: 1m } }\n";
  write(text);
  ASSERT_TRUE(load_file(path_).ok());
  int refused = 0;
  for (std::size_t length = 0; length < text.size(); ++length) {
    const LoadOutcome outcome = load(text.substr(0, length));
    EXPECT_EQ(outcome.ok(), outcome.errors.empty());
    refused += !outcome.ok();
  }
  EXPECT_GT(refused, 40);
}

}  // namespace
}  // namespace cutwater::config
