// SPDX-License-Identifier: Apache-2.0
#include "memory.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cutwater/decision.hpp>

#include "shm/limit/bucket.hpp"
#include "shm/limit/key_hash.hpp"
#include "support/daemon_process.hpp"

namespace cutwater::server {
namespace {

class MemoryTest : public testing::Test {
 protected:
  MemoryTest() {
    config_.instance.memory_directory = place_.memory();
    config_.capacity = {.keys = 1024, .limits = 4, .processes = 16, .stripes = 2, .events = 1024};
    rule::LimitSettings limit;
    limit.windows.resize(1);
    limit.name = "api";
    limit.windows[0].rate_count = 1;
    limit.windows[0].rate_period_ns = 3600 * rule::kNanosPerSecond;
    limit.windows[0].burst = 10;
    config_.limits = {limit};
  }

  std::unique_ptr<Memory> open(bool stepped = false) {
    auto memory = Memory::open(config_, {.stepped = stepped, .runtime_directory = {},
                                         .xdg_runtime_dir = {}}, remarks_);
    EXPECT_TRUE(memory) << memory.error().text();
    return memory ? std::move(*memory) : nullptr;
  }
  static Decision take(const Memory& memory, std::uint64_t cost) {
    shm::BucketAsk ask;
    ask.limit = shm::find_limit(memory.view(), "api");
    ask.key = shm::hash_key(shm::make_limit_secret(memory.view().secret, "api"), "alice");
    ask.cost = cost;
    std::uint64_t hint = shm::kNoSlot;
    DecisionData data;
    EXPECT_EQ(shm::charge(memory.view(), ask, hint, data), shm::Outcome::Answered);
    return Decision(data);
  }

  test::ScratchPlace place_;
  config::Config config_;
  std::vector<std::string> remarks_;
};

TEST_F(MemoryTest, C113WhatWasSpentStaysSpentOverARestart) {
  { EXPECT_EQ(take(*open(), 4).remaining(), 6U); }

  const auto again = open();

  EXPECT_EQ(again->birth(), Birth::Kind::Adopted);
  EXPECT_EQ(take(*again, 0).remaining(), 6U);
  EXPECT_TRUE(take(*again, 6).allowed());
  EXPECT_FALSE(take(*again, 1).allowed());
}

TEST_F(MemoryTest, TellsClientsOfATakeOver) {
  std::uint64_t before = 0;
  { before = open()->view().current(); }

  const auto again = open();

  EXPECT_GT(again->view().current() >> shm::kCurrentGenerationShift,
            before >> shm::kCurrentGenerationShift);
  EXPECT_EQ(again->view().rules_control->takeovers, 1U);
}

TEST_F(MemoryTest, AfterDamageLimitsBeginEmptyAndNobodyGainsABurst) {
  { EXPECT_TRUE(take(*open(), 4).allowed()); }
  ASSERT_EQ(::truncate((place_.memory() + "/state").c_str(), 4096), 0);

  const auto memory = open();

  EXPECT_EQ(memory->birth(), Birth::Kind::SetAside);
  EXPECT_FALSE(take(*memory, 1).allowed());
}

TEST_F(MemoryTest, OneInstanceHoldsTheLock) {
  const auto memory = open();

  auto second = Memory::open(config_, {}, remarks_);

  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), Errc::Busy);
}

TEST_F(MemoryTest, DescriptorsAreOfTheRightKind) {
  const auto memory = open();

  const auto& files = memory->descriptors(false);
  EXPECT_EQ(::fcntl(files[0], F_GETFL) & O_ACCMODE, O_RDONLY);
  EXPECT_EQ(::fcntl(files[1], F_GETFL) & O_ACCMODE, O_RDWR);
  EXPECT_EQ(::fcntl(files[2], F_GETFL) & O_ACCMODE, O_RDWR);
  for (const int fd : memory->descriptors(true)) {
    EXPECT_EQ(::fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
    EXPECT_EQ(::fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
  }
}

TEST_F(MemoryTest, C140FilesAndDirectoryAreClosedToOthers) {
  const mode_t before = ::umask(0);
  const auto memory = open();
  ::umask(before);

  struct stat status {};
  ASSERT_EQ(::stat(place_.memory().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0700U);
  for (const char* name : {"rules", "state", "stats", "lock"}) {
    ASSERT_EQ(::stat((place_.memory() + "/" + name).c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, 0600U) << name;
  }
}

TEST_F(MemoryTest, C050NoticesThatItsNamesAreGone) {
  const auto memory = open();
  EXPECT_TRUE(memory->names_in_place());

  ::unlink((place_.memory() + "/rules").c_str());
  EXPECT_FALSE(memory->names_in_place());

  test::write_file(place_.memory() + "/rules", "somebody else's");
  EXPECT_FALSE(memory->names_in_place());
}

TEST_F(MemoryTest, GivesItsOwnRowBackWhenItEndsAsAsked) {
  const auto memory = open();
  shm::RowInfo row;
  ASSERT_TRUE(shm::read_row(memory->view(), shm::kDaemonRow, row));
  EXPECT_EQ(row.pid, static_cast<std::uint32_t>(::getpid()));
  EXPECT_EQ(row.word.state, shm::RowState::Live);

  memory->say_farewell();

  ASSERT_TRUE(shm::read_row(memory->view(), shm::kDaemonRow, row));
  EXPECT_EQ(row.word.state, shm::RowState::Free);
  EXPECT_EQ(memory->view().rules_control->daemon_pid, 0U);
}

TEST_F(MemoryTest, ASteppedMemoryIsAdoptedWithItsTime) {
  { shm::step_clock(open(true)->view(), 5'000'000'000); }

  const auto again = open(true);

  EXPECT_EQ(again->birth(), Birth::Kind::Adopted);
  EXPECT_GE(again->view().clock.now(), 5'000'000'000);
}

}  // namespace
}  // namespace cutwater::server
