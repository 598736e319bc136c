// SPDX-License-Identifier: Apache-2.0
// Segments made, mapped and undone as they should be. What is refused: segment_refusal_test.cpp.
#include "shm/segment.hpp"

#include <sys/mman.h>
#include <sys/wait.h>

#include <csignal>

#include "base/crc32c.hpp"
#include "shm/image.hpp"
#include "unit/shm/memory_support.hpp"

namespace cutwater::shm {
namespace {

using test::TmpfsDirectory;

constexpr std::uint64_t kFirstGeneration = std::uint64_t{1} << kCurrentGenerationShift;

// Whoever maps makes no file of its own. covers: C064
TEST(Segment, CreatedFilesCanBeMappedAndShowTheSameMemory) {
  TmpfsDirectory directory;
  const auto owner = Segment::create_files(directory.fd(), test::small_options());
  ASSERT_TRUE(owner) << owner.error().text();
  const auto client = Segment::open_files(directory.fd(), Access::Client);
  ASSERT_TRUE(client) << client.error().text();

  owner->view().slots[5] = {7, 9};

  EXPECT_EQ(client->view().slots[5], (Word16{7, 9}));
  EXPECT_EQ(std::memcmp(owner->view().uuid, client->view().uuid, 16), 0);
  EXPECT_EQ(std::memcmp(owner->view().secret, client->view().secret, 192), 0);
  EXPECT_EQ(client->capacity(), rounded(test::small_options().capacity));
  EXPECT_EQ(directory.entries(), 3U);
}

TEST(Segment, AFreshOneHasGenerationOneAndAWholeEmptyImage) {
  const auto segment = Segment::create_private(test::small_options());
  ASSERT_TRUE(segment) << segment.error().text();
  const View& view = segment->view();

  EXPECT_EQ(view.current(), kFirstGeneration);
  EXPECT_TRUE(image_is_whole(view, 0));
  EXPECT_EQ(view.image_head(view.current()).limits, 0U);
  EXPECT_EQ(view.limit_config(view.current(), 3).windows, 0);
  for (std::uint64_t slot = 0; slot < view.slot_count; ++slot) {
    EXPECT_EQ(view.slots[slot], Word16{});
  }
}

TEST(Segment, SegmentTimeStartsAtOneSecond) {
  const auto segment = Segment::create_private(test::small_options());
  ASSERT_TRUE(segment);

  EXPECT_GE(segment->view().clock.now(), kEpochLeadNs);
  EXPECT_FALSE(segment->view().clock.is_stepped());
}

TEST(Segment, BucketsLieAtTwoMebibytesInEveryMapping) {
  TmpfsDirectory directory;
  const auto owner = Segment::create_files(directory.fd(), test::small_options());
  const auto client = Segment::open_files(directory.fd(), Access::Client);
  const auto own = Segment::create_private(test::small_options());
  ASSERT_TRUE(owner && client && own);

  for (const Segment* segment : {&*owner, &*client, &*own}) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(segment->view().slots) % kBucketAlign, 0U);
  }
}

TEST(Segment, CapacityRoundsKeysUpToWholeGroups) {
  EXPECT_EQ(rounded({.keys = 1}).keys, 16U);       // two groups of 16 slots at least
  EXPECT_EQ(rounded({.keys = 16}).keys, 16U);
  EXPECT_EQ(rounded({.keys = 17}).keys, 24U);
  EXPECT_EQ(rounded({.keys = 262'144}).keys, 262'144U);
}

TEST(Segment, RuleIdsAreFourForEachLimitAndTheReservedOnes) {
  EXPECT_EQ(rule_capacity(1), 6U);
  EXPECT_EQ(rule_capacity(256), 1026U);
  EXPECT_EQ(rule_capacity(65'535), 65'535U);
}

TEST(Segment, FileLengthsAreTheRealOnes) {
  TmpfsDirectory directory;
  const auto segment = Segment::create_files(directory.fd(), test::small_options());
  ASSERT_TRUE(segment);
  const Capacity capacity = test::small_options().capacity;

  std::uint64_t sum = 0;
  for (const char* name : {"rules", "state", "stats"}) {
    struct stat status {};
    ASSERT_EQ(fstatat(directory.fd(), name, &status, 0), 0);
    EXPECT_EQ(status.st_mode & 07777, 0600U) << name;
    // Every page is there: nothing of it can end in SIGBUS later.
    EXPECT_GE(std::uint64_t(status.st_blocks) * 512, std::uint64_t(status.st_size)) << name;
    sum += static_cast<std::uint64_t>(status.st_size);
  }

  EXPECT_EQ(sum, total_length(capacity));
}

TEST(Segment, APrivateOneIsSharedWithAForkedChild) {
  const auto segment = Segment::create_private(test::small_options());
  ASSERT_TRUE(segment);

  const pid_t child = fork();
  if (child == 0) {
    segment->view().slots[1] = {11, 12};
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);

  EXPECT_EQ(segment->view().slots[1], (Word16{11, 12}));
}

TEST(Segment, AClientCannotWriteTheRules) {
  TmpfsDirectory directory;
  const auto owner = Segment::create_files(directory.fd(), test::small_options());
  const auto client = Segment::open_files(directory.fd(), Access::Client);
  ASSERT_TRUE(owner && client);
  RulesControl* rules = client->view().rules_control;

  EXPECT_EQ(mprotect(rules, kPage, PROT_READ | PROT_WRITE), -1);
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);   // a sanitizer's handler would turn the signal into an exit
    __atomic_store_n(&rules->current, std::uint64_t{0}, __ATOMIC_RELAXED);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(owner->view().current(), kFirstGeneration);
}

TEST(Segment, OpenLeavesNoDescriptorBehind) {
  TmpfsDirectory directory;
  const auto owner = Segment::create_files(directory.fd(), test::small_options());
  ASSERT_TRUE(owner);
  const std::size_t before = test::open_descriptor_count();

  const auto client = Segment::open_files(directory.fd(), Access::Client);
  const auto own = Segment::create_private(test::small_options());

  ASSERT_TRUE(client && own);
  EXPECT_EQ(test::open_descriptor_count(), before);
}

TEST(Segment, DescriptorsForAClientAreReadOnlyWhereItMayNotWrite) {
  TmpfsDirectory directory;
  ASSERT_TRUE(Segment::create_files(directory.fd(), test::small_options()));

  const auto files = open_descriptors(directory.fd(), false);
  const auto looking = open_descriptors(directory.fd(), true);
  ASSERT_TRUE(files && looking);

  const int expected[] = {O_RDONLY, O_RDWR, O_RDWR};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(fcntl((*files)[i], F_GETFL) & O_ACCMODE, expected[i]);
    EXPECT_EQ(fcntl((*looking)[i], F_GETFL) & O_ACCMODE, O_RDONLY);
    EXPECT_EQ(fcntl((*files)[i], F_GETFD), FD_CLOEXEC);
    close((*files)[i]);
    close((*looking)[i]);
  }
}

TEST(Segment, MapsDescriptorsThatHaveNoName) {
  TmpfsDirectory directory;
  ASSERT_TRUE(Segment::create_files(directory.fd(), test::small_options()));
  SegmentFiles memory;
  const char* const names[] = {"rules", "state", "stats"};
  for (std::size_t i = 0; i < 3; ++i) {
    memory[i] = memfd_create(names[i], MFD_CLOEXEC);
    const UniqueFd from(openat(directory.fd(), names[i], O_RDONLY | O_CLOEXEC));
    std::vector<char> bytes(std::filesystem::file_size(directory.path() + "/" + names[i]));
    ASSERT_EQ(read(from.get(), bytes.data(), bytes.size()), ssize_t(bytes.size()));
    ASSERT_EQ(write(memory[i], bytes.data(), bytes.size()), ssize_t(bytes.size()));
  }

  const auto segment = Segment::map(memory, Access::Client);

  ASSERT_TRUE(segment) << segment.error().text();
  EXPECT_TRUE(image_is_whole(segment->view(), 0));
  for (const int fd : memory) close(fd);
}

TEST(Segment, AViewStaysValidWhenTheSegmentIsMoved) {
  auto segment = Segment::create_private(test::small_options());
  ASSERT_TRUE(segment);
  const View view = segment->view();

  const Segment moved = std::move(segment).value();
  view.slots[0] = {1, 2};

  EXPECT_EQ(moved.view().slots[0], (Word16{1, 2}));
  EXPECT_EQ(moved.view().secret, view.secret);
}

TEST(Segment, TwoSegmentsHaveDifferentNamesAndSecrets) {
  const auto a = Segment::create_private(test::small_options());
  const auto b = Segment::create_private(test::small_options());
  ASSERT_TRUE(a && b);

  EXPECT_NE(std::memcmp(a->view().uuid, b->view().uuid, 16), 0);
  EXPECT_NE(std::memcmp(a->view().secret, b->view().secret, 192), 0);
}

TEST(SteppedClock, MovesForwardOnlyAndCountsItsSteps) {
  const auto segment = Segment::create_private(test::stepped_options());
  ASSERT_TRUE(segment);
  const View& view = segment->view();
  ASSERT_TRUE(view.clock.is_stepped());

  EXPECT_EQ(view.clock.now(), kEpochLeadNs);
  EXPECT_EQ(step_clock(view, kEpochLeadNs + 5), kEpochLeadNs + 5);
  EXPECT_EQ(step_clock(view, 3), kEpochLeadNs + 5);
  EXPECT_EQ(view.clock.now(), kEpochLeadNs + 5);
  EXPECT_EQ(view.state_control->stepped_futex, 1U);
}

TEST(SegmentFiles, CreatingAgainReplacesTheOldMemory) {
  TmpfsDirectory directory;
  const auto first = Segment::create_files(directory.fd(), test::small_options());
  const auto second = Segment::create_files(directory.fd(), test::small_options());
  ASSERT_TRUE(first && second);

  const auto found = Segment::open_files(directory.fd(), Access::ReadOnly);

  ASSERT_TRUE(found);
  EXPECT_EQ(std::memcmp(found->view().uuid, second->view().uuid, 16), 0);
  EXPECT_EQ(directory.entries(), 3U);
}

TEST(SegmentFiles, SettingAsideKeepsTheFilesForALook) {
  TmpfsDirectory directory;
  ASSERT_TRUE(Segment::create_files(directory.fd(), test::small_options()));

  ASSERT_TRUE(set_aside_files(directory.fd()));

  EXPECT_TRUE(directory.has("rules.bad") && directory.has("state.bad") &&
              directory.has("stats.bad"));
  EXPECT_EQ(Segment::open_files(directory.fd(), Access::ReadOnly).error().code(), Errc::NoDaemon);
}

TEST(SegmentFiles, DiscardingLeavesNothing) {
  TmpfsDirectory directory;
  ASSERT_TRUE(Segment::create_files(directory.fd(), test::small_options()));
  ASSERT_EQ(close(openat(directory.fd(), "state.next", O_CREAT | O_WRONLY, 0600)), 0);

  ASSERT_TRUE(discard_files(directory.fd()));

  EXPECT_EQ(directory.entries(), 0U);
  EXPECT_TRUE(discard_files(directory.fd()));
}

}  // namespace
}  // namespace cutwater::shm
