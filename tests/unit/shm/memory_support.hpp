// SPDX-License-Identifier: Apache-2.0
// What the tests of the shared memory need: a directory of their own on a tmpfs, small segments,
// headers that can be changed with and without a right checksum.
#pragma once
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/crc32c.hpp"
#include "shm/header.hpp"
#include "shm/directory.hpp"
#include "shm/segment.hpp"

namespace cutwater::shm::test {

/// A new directory under /dev/shm, removed with everything in it at the end.
class TmpfsDirectory {
 public:
  TmpfsDirectory() {
    char name[] = "/dev/shm/cutwater-test-XXXXXX";
    if (mkdtemp(name) == nullptr) std::abort();
    path_ = name;
    fd_.reset(open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  TmpfsDirectory(const TmpfsDirectory&) = delete;
  TmpfsDirectory& operator=(const TmpfsDirectory&) = delete;
  ~TmpfsDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::string& path() const { return path_; }
  int fd() const { return fd_.get(); }
  bool has(const std::string& name) const {
    return faccessat(fd(), name.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0;
  }
  std::size_t entries() const {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(path_)) ++count;
    return count;
  }

 private:
  std::string path_;
  UniqueFd fd_;
};

inline SegmentOptions small_options() {
  SegmentOptions options;
  options.capacity = {.keys = 64, .limits = 4, .processes = 16, .stripes = 2, .events = 16};
  return options;
}

inline SegmentOptions stepped_options() {
  SegmentOptions options = small_options();
  options.clock = ClockKind::Stepped;
  return options;
}

/// Changes the header of one file in a directory, then stores it with a right checksum.
template <class Change>
void change_header(int directory_fd, const char* file, Change change) {
  const UniqueFd fd(openat(directory_fd, file, O_RDWR | O_CLOEXEC));
  FileHeader header;
  ASSERT_EQ(pread(fd.get(), &header, sizeof header, 0), ssize_t{sizeof header});
  change(header);
  header.crc32c = header_checksum(header);
  ASSERT_EQ(pwrite(fd.get(), &header, sizeof header, 0), ssize_t{sizeof header});
}

inline Region& region_of(FileHeader& header, RegionKind kind) {
  for (Region& region : header.region) {
    if (region.kind == static_cast<std::uint32_t>(kind)) return region;
  }
  std::abort();
}

inline std::size_t open_descriptor_count() {
  std::size_t count = 0;
  DIR* directory = opendir("/proc/self/fd");
  while (readdir(directory) != nullptr) ++count;
  closedir(directory);
  return count;
}

}  // namespace cutwater::shm::test
