// SPDX-License-Identifier: Apache-2.0
// Every check of a header refuses, and says which one it was (C033, C045, C052, C143).
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include <functional>

#include "shm/process_table.hpp"
#include "shm/segment.hpp"
#include "unit/shm/memory_support.hpp"

namespace cutwater::shm {
namespace {

using test::region_of;
using test::TmpfsDirectory;

class SegmentRefusal : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(Segment::create_files(directory_.fd(), test::small_options()));
    ASSERT_TRUE(Segment::open_files(directory_.fd(), Access::Client));
  }

  /// Changes a header, its checksum made right again, and expects `code` with `text` in the
  /// message.
  void expect_refused(const char* file, const std::function<void(FileHeader&)>& change, Errc code,
                      const std::string& text) {
    test::change_header(directory_.fd(), file, change);
    expect_refused(code, text);
  }
  void expect_refused(Errc code, const std::string& text) {
    for (const Access access : {Access::Owner, Access::Client, Access::ReadOnly}) {
      const auto segment = Segment::open_files(directory_.fd(), access);
      EXPECT_FALSE(segment);
      EXPECT_EQ(segment.error().code(), code) << segment.error().text();
      EXPECT_NE(segment.error().text().find(text), std::string::npos) << segment.error().text();
    }
  }
  void truncate_file(const char* file, std::int64_t length) {
    const UniqueFd fd(openat(directory_.fd(), file, O_RDWR | O_CLOEXEC));
    ASSERT_EQ(ftruncate(fd.get(), length), 0);
  }

  TmpfsDirectory directory_;
};

TEST_F(SegmentRefusal, NothingThere) {
  ASSERT_TRUE(discard_files(directory_.fd()));

  expect_refused(Errc::NoDaemon, "no memory in this directory");
}

TEST_F(SegmentRefusal, OneFileMissing) {
  ASSERT_EQ(unlinkat(directory_.fd(), "stats", 0), 0);

  expect_refused(Errc::Damaged, "`stats`: missing");
}

TEST_F(SegmentRefusal, SymbolicLink) {
  ASSERT_EQ(renameat(directory_.fd(), "state", directory_.fd(), "elsewhere"), 0);
  ASSERT_EQ(symlinkat("elsewhere", directory_.fd(), "state"), 0);

  expect_refused(Errc::NotOurs, "`state`: is a symbolic link");
}

TEST_F(SegmentRefusal, NotARegularFile) {
  ASSERT_EQ(unlinkat(directory_.fd(), "stats", 0), 0);
  ASSERT_EQ(mkfifoat(directory_.fd(), "stats", 0600), 0);

  const auto segment = Segment::open_files(directory_.fd(), Access::ReadOnly);

  EXPECT_EQ(segment.error().code(), Errc::Damaged);
  EXPECT_NE(segment.error().text().find("not a regular file"), std::string::npos);
}

TEST_F(SegmentRefusal, Empty) {
  truncate_file("rules", 0);

  expect_refused(Errc::Damaged, "`rules`: truncated to 0 bytes");
}

TEST_F(SegmentRefusal, TruncatedByOnePage) {
  struct stat status {};
  ASSERT_EQ(fstatat(directory_.fd(), "state", &status, 0), 0);
  truncate_file("state", status.st_size - 4096);

  expect_refused(Errc::Damaged, "`state`: truncated or grown");
}

TEST_F(SegmentRefusal, ForeignMagic) {
  expect_refused(
      "state", [](FileHeader& header) { header.magic ^= 1; }, Errc::Damaged, "foreign magic");
}

TEST_F(SegmentRefusal, AnotherLayout) {
  expect_refused("rules", [](FileHeader& header) { header.abi_major = kAbiMajor + 1; },
                 Errc::LayoutMismatch,
                 "layout " + std::to_string(kAbiMajor + 1) + ", this build knows layout " +
                     std::to_string(kAbiMajor));
}

TEST_F(SegmentRefusal, AFeatureThisBuildDoesNotKnow) {
  expect_refused("stats", [](FileHeader& header) { header.features_required = 4; },
                 Errc::LayoutMismatch, "features this build does not know");
}

TEST_F(SegmentRefusal, AFeatureNobodyNeedsIsNoReason) {
  test::change_header(directory_.fd(), "rules", [](FileHeader& h) { h.features_optional |= 1024; });

  EXPECT_TRUE(Segment::open_files(directory_.fd(), Access::Client));
}

TEST_F(SegmentRefusal, NotReady) {
  expect_refused("stats", [](FileHeader& header) { header.ready = 0; }, Errc::Damaged, "not ready");
}

TEST_F(SegmentRefusal, FilesInTheWrongOrder) {
  auto files = open_descriptors(directory_.fd(), true);
  ASSERT_TRUE(files);

  const auto segment = Segment::map({(*files)[1], (*files)[0], (*files)[2]}, Access::ReadOnly);

  EXPECT_EQ(segment.error().code(), Errc::Damaged);
  EXPECT_NE(segment.error().text().find("is another of the three"), std::string::npos);
  for (const int fd : *files) close(fd);
}

TEST_F(SegmentRefusal, FilesOfTwoMemories) {
  TmpfsDirectory other;
  ASSERT_TRUE(Segment::create_files(other.fd(), test::small_options()));
  ASSERT_EQ(renameat(other.fd(), "state", directory_.fd(), "state"), 0);

  expect_refused(Errc::Damaged, "uuid differs");
}

// covers: C033, C143
TEST_F(SegmentRefusal, EveryFlippedBitOfAHeader) {
  // Each bit below the checksum and of the checksum itself, in each file.
  for (const char* file : {"rules", "state", "stats"}) {
    const UniqueFd fd(openat(directory_.fd(), file, O_RDWR | O_CLOEXEC));
    for (off_t at = 0; at < off_t{offsetof(FileHeader, ready)}; ++at) {
      std::uint8_t byte = 0;
      ASSERT_EQ(pread(fd.get(), &byte, 1, at), 1);
      const auto flipped = static_cast<std::uint8_t>(byte ^ (1 << (at % 8)));
      ASSERT_EQ(pwrite(fd.get(), &flipped, 1, at), 1);
      EXPECT_FALSE(Segment::open_files(directory_.fd(), Access::ReadOnly))
          << file << " byte " << at;
      ASSERT_EQ(pwrite(fd.get(), &byte, 1, at), 1);
    }
  }
  EXPECT_TRUE(Segment::open_files(directory_.fd(), Access::ReadOnly));
}

TEST_F(SegmentRefusal, AChecksumThatDoesNotFit) {
  const UniqueFd fd(openat(directory_.fd(), "state", O_RDWR | O_CLOEXEC));
  const std::uint64_t page_kind = 1;   // harmless in itself
  ASSERT_EQ(pwrite(fd.get(), &page_kind, 4, offsetof(FileHeader, page_kind)), 4);

  expect_refused(Errc::Damaged, "`state`: header checksum is wrong");
}

TEST_F(SegmentRefusal, ARegionBehindTheEnd) {
  expect_refused(
      "state", [](FileHeader& h) { region_of(h, RegionKind::Rows).offset = h.total_length; },
      Errc::Damaged, "region rows reaches out of bounds");
}

TEST_F(SegmentRefusal, ARegionWithTooMany) {
  expect_refused("state", [](FileHeader& h) { region_of(h, RegionKind::Bucket).count = 1 << 20; },
                 Errc::Damaged, "region buckets reaches out of bounds");
}

TEST_F(SegmentRefusal, ARegionWhoseEndWrapsAround) {
  // In 64 bits offset + stride * count is 8192 again: inside the file.
  const auto wrap = [](FileHeader& header) {
    Region& region = region_of(header, RegionKind::Bucket);
    region.offset = 2 * kPage - std::uint64_t{region.stride} * region.count;
    ASSERT_LE(region.offset + std::uint64_t{region.stride} * region.count, header.total_length);
  };
  expect_refused("state", wrap, Errc::Damaged, "region buckets reaches out of bounds");
}

TEST_F(SegmentRefusal, ARegionOverTheHeader) {
  expect_refused("stats", [](FileHeader& h) { region_of(h, RegionKind::Events).offset = 64; },
                 Errc::Damaged, "region events reaches out of bounds");
}

TEST_F(SegmentRefusal, RegionsThatOverlap) {
  const auto overlap = [](FileHeader& header) {
    region_of(header, RegionKind::Limit).offset = region_of(header, RegionKind::Rows).offset;
  };
  expect_refused("state", overlap, Errc::Damaged, "regions overlap");
}

TEST_F(SegmentRefusal, AnImageTableOutsideItsImage) {
  const auto outside = [](FileHeader& header) {
    Region& region = region_of(header, RegionKind::ImageRules);
    region.offset = region_of(header, RegionKind::Image).stride;
  };
  expect_refused("rules", outside, Errc::Damaged, "region rules reaches out of bounds");
}

TEST_F(SegmentRefusal, ARegionThatIsNotAligned) {
  expect_refused("state", [](FileHeader& h) { region_of(h, RegionKind::Bucket).offset += 8; },
                 Errc::Damaged, "not aligned");
}

TEST_F(SegmentRefusal, AMissingRegion) {
  expect_refused("state", [](FileHeader& h) { region_of(h, RegionKind::Limit).kind = 99; },
                 Errc::Damaged, "region limit words is missing");
}

TEST_F(SegmentRefusal, AWrongStride) {
  expect_refused("state", [](FileHeader& h) { region_of(h, RegionKind::Rows).stride = 64; },
                 Errc::Damaged, "region rows: wrong stride");
}

TEST_F(SegmentRefusal, NoElements) {
  expect_refused("stats", [](FileHeader& h) { region_of(h, RegionKind::Events).count = 0; },
                 Errc::Damaged, "region events: count 0 is out of range");
}

TEST_F(SegmentRefusal, BucketsThatAreNoWholeGroups) {
  expect_refused("state", [](FileHeader& h) { region_of(h, RegionKind::Bucket).count -= 1; },
                 Errc::Damaged, "no whole groups");
}

TEST_F(SegmentRefusal, AFactorThatDoesNotDivideTheGroups) {
  expect_refused("state", [](FileHeader& h) { region_of(h, RegionKind::Bucket).flags = 7; },
                 Errc::Damaged, "no whole groups");
}

TEST_F(SegmentRefusal, FilesWithDifferentNumbersOfLimits) {
  expect_refused("state", [](FileHeader& h) { region_of(h, RegionKind::Limit).count -= 1; },
                 Errc::Damaged, "another number of limits");
}

TEST_F(SegmentRefusal, StripesForAnotherNumberOfLimits) {
  expect_refused("stats", [](FileHeader& h) { region_of(h, RegionKind::Stripes).stride -= 64; },
                 Errc::Damaged, "region stripes: wrong stride");
}

// covers: C033
TEST_F(SegmentRefusal, AnotherBoot) {
  EXPECT_FALSE(files_of_another_boot(directory_.fd()));
  for (const char* file : {"rules", "state", "stats"}) {
    test::change_header(directory_.fd(), file,
                        [](FileHeader& header) { header.boot_id[3] ^= 0x40; });
  }

  expect_refused(Errc::Damaged, "of another boot");
  EXPECT_TRUE(files_of_another_boot(directory_.fd()));
  EXPECT_TRUE(Segment::open_files(directory_.fd(), Access::ReadOnly, false));
}

TEST_F(SegmentRefusal, OneFileOfAnotherBootIsDamage) {
  const auto change = [](FileHeader& header) { header.boot_id[3] ^= 0x40; };
  expect_refused("stats", change, Errc::Damaged, "another clock or boot");
  EXPECT_FALSE(files_of_another_boot(directory_.fd()));
}

TEST_F(SegmentRefusal, AnotherTimeNamespace) {
  if (time_namespace_of_self() == 0) GTEST_SKIP() << "this kernel has no time namespaces";
  expect_refused(
      "rules", [](FileHeader& header) { header.time_namespace += 1; }, Errc::ClockMismatch,
      "another time namespace");
}

TEST_F(SegmentRefusal, AClockThatBeginsAtAnImpossibleTime) {
  expect_refused(
      "rules", [](FileHeader& h) { h.epoch_ns = std::numeric_limits<std::int64_t>::min(); },
      Errc::Damaged, "impossible time");
}

TEST_F(SegmentRefusal, AClockThatDoesNotExist) {
  expect_refused("rules", [](FileHeader& header) { header.clock = 2; }, Errc::Damaged,
                 "a clock that does not exist");
}

TEST(SegmentCapacity, OutOfRangeIsRefusedWithTheRange) {
  const auto refused = [](Capacity capacity) {
    SegmentOptions options;
    options.capacity = capacity;
    const auto segment = Segment::create_private(options);
    EXPECT_EQ(segment.error().code(), Errc::InvalidArgument);
    return segment.error().text();
  };

  EXPECT_EQ(refused({.keys = 0}), "capacity.keys: 0 is outside 1..1073741824");
  EXPECT_EQ(refused({.limits = 65'536}), "capacity.limits: 65536 is outside 1..65535");
  EXPECT_EQ(refused({.processes = 65'534}), "capacity.processes: 65534 is outside 1..65533");
  EXPECT_EQ(refused({.stripes = 4'097}), "capacity.stripes: 4097 is outside 1..4096");
  EXPECT_EQ(refused({.events = (1 << 20) + 1}), "capacity.events: 1048577 is outside 1..1048576");
}

/// Runs in a child with a mount namespace of its own: creates a memory on a tmpfs of `bytes`.
/// Exit codes: 0 done, 1 wrong, 2 no privilege.
int create_on_small_tmpfs(const std::string& path, std::uint64_t bytes, bool fits) {
  if (unshare(CLONE_NEWNS) != 0) return 2;
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return 2;
  const std::string size = "size=" + std::to_string(bytes);
  if (mount("tmpfs", path.c_str(), "tmpfs", 0, size.c_str()) != 0) return 2;
  const int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

  const auto segment = Segment::create_files(fd, test::small_options());
  if (segment.ok() != fits) {
    std::fprintf(stderr, "%s\n", segment ? "fits" : segment.error().text().c_str());
    return 1;
  }
  if (fits) return 0;
  const std::string needed = std::to_string(total_length(test::small_options().capacity));
  const std::string expected =
      needed + " bytes needed, " + std::to_string(bytes) + " bytes available on the tmpfs";
  const bool empty = std::filesystem::is_empty(path);
  if (segment.error().code() == Errc::NoMemory && empty &&
      segment.error().text().find(expected) != std::string::npos) {
    return 0;
  }
  std::fprintf(stderr, "%s\n", segment.error().text().c_str());
  return 1;
}

int in_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// covers: C052
TEST(SegmentRoom, ATmpfsThatIsTooSmallIsNamedWithBothNumbers) {
  const std::uint64_t needed = total_length(test::small_options().capacity);
  for (const std::uint64_t bytes : {std::uint64_t{1} << 20, needed - kPage, needed}) {
    TmpfsDirectory directory;
    const int code =
        in_child([&] { return create_on_small_tmpfs(directory.path(), bytes, bytes == needed); });
    if (code == 2) GTEST_SKIP() << "mounting a tmpfs needs privileges";
    EXPECT_EQ(code, 0) << bytes;
  }
}

}  // namespace
}  // namespace cutwater::shm
