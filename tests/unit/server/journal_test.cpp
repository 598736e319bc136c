// SPDX-License-Identifier: Apache-2.0
#include "acts/journal.hpp"

#include <gtest/gtest.h>

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <ctime>
#include <filesystem>

#include "acts/act_book.hpp"
#include "support/daemon_process.hpp"
#include "unit/server/some_acts.hpp"

namespace {

enum class DiskOrder : int { Obey, Hold, Fail };
std::atomic<DiskOrder> disk_order{DiskOrder::Obey};

}  // namespace

/// In place of the C library's in this program: it does what `disk_order` says.
extern "C" int fdatasync(int fd) {
  for (int waited = 0; disk_order == DiskOrder::Hold && waited < 60'000; ++waited) {
    const timespec pause{0, 1'000'000};
    ::nanosleep(&pause, nullptr);
  }
  if (disk_order == DiskOrder::Fail) {
    errno = EIO;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_fdatasync, fd));
}

namespace cutwater::server {
namespace {

using test::read_file;
using test::ScratchPlace;
using test::write_file;

struct JournalFile : testing::Test {
  Journal::Opened open() {
    return Journal::open(loop, {.setting = place.path() + "/state/main"});
  }
  /// Hands them over; `pending`, `done` and `saved` are set as the loop runs.
  void begin(Journal& journal, const std::vector<JournalEntry>& entries) {
    pending = done = false;
    journal.append(
        entries,
        [this](const Result<void>& result) {
          done = true;
          saved = result.ok();
        },
        [this] { pending = true; });
  }
  /// Runs the loop until that is so.
  bool runs_until(const bool& so) {
    return test::eventually([&] {
      loop.restart();
      loop.poll();
      return so;
    });
  }
  void append(Journal& journal, const std::vector<JournalEntry>& entries) {
    begin(journal, entries);
    runs_until(done);
  }
  std::vector<JournalEntry> act(std::uint64_t id) {
    Act one = ban("k" + std::to_string(id));
    one.id = id;
    return {one};
  }
  ScratchPlace place;
  asio::io_context loop;
  bool pending = false, done = false, saved = false;
  std::string file = place.path() + "/state/main/journal";
};

TEST_F(JournalFile, ASlowDiskIsToldOfFirstAndItsAnswerLater) {
  auto opened = open();
  disk_order = DiskOrder::Hold;

  begin(*opened.journal, act(1));
  ASSERT_TRUE(runs_until(pending));
  EXPECT_FALSE(done);
  disk_order = DiskOrder::Obey;

  EXPECT_TRUE(runs_until(done));
  EXPECT_TRUE(saved);
}

TEST_F(JournalFile, ADiskThatFailsIsNoSlowOneAndTheLineIsGone) {
  auto opened = open();
  disk_order = DiskOrder::Fail;

  begin(*opened.journal, act(1));
  EXPECT_TRUE(runs_until(done));
  disk_order = DiskOrder::Obey;

  EXPECT_FALSE(saved);
  EXPECT_FALSE(pending);
  append(*opened.journal, act(2));
  opened.journal.reset();
  ASSERT_EQ(open().entries.size(), 1U);
}

TEST_F(JournalFile, MoreLinesThanMayWaitAreRefusedAtOnce) {
  auto opened = open();
  std::size_t answered = 0, refused = 0;
  disk_order = DiskOrder::Hold;
  for (std::size_t i = 0; i < Journal::kMaxQueued + 10; ++i) {
    opened.journal->append(act(i + 1), [&](const Result<void>& result) {
      ++answered;
      refused += result ? 0 : 1;
    });
  }
  EXPECT_GE(answered, 9U) << "one may be with the disk";
  EXPECT_EQ(refused, answered);
  disk_order = DiskOrder::Obey;

  EXPECT_TRUE(test::eventually([&] {
    loop.restart();
    loop.poll();
    return answered == Journal::kMaxQueued + 10;
  }));
  EXPECT_LE(refused, 10U);
}

TEST_F(JournalFile, WhatWasSavedIsThereAfterwards) {
  {
    auto opened = open();
    EXPECT_TRUE(opened.remarks.empty());
    append(*opened.journal, act(1));
    append(*opened.journal, act(2));
    EXPECT_TRUE(saved);
  }

  EXPECT_EQ(open().entries.size(), 2U);
  struct stat status {};
  ASSERT_EQ(::stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0600U);
}

TEST_F(JournalFile, ALineCutByACrashIsDroppedSilently) {
  append(*open().journal, act(1));
  const std::string whole = read_file(file);
  for (std::size_t cut = 1; cut < whole.size(); cut += 7) {
    write_file(file, whole + whole.substr(0, cut));

    auto opened = open();

    EXPECT_EQ(opened.entries.size(), 1U);
    EXPECT_TRUE(opened.remarks.empty());
    append(*opened.journal, act(2));
    opened.journal.reset();
    EXPECT_EQ(open().entries.size(), 2U) << "the half line must not spoil the next";
    write_file(file, whole);
  }
}

TEST_F(JournalFile, ADamagedLineIsSkippedAndKeptAside) {
  {
    auto opened = open();
    for (const std::uint64_t id : {1U, 2U, 3U}) append(*opened.journal, act(id));
  }
  std::string bytes = read_file(file);
  bytes[bytes.find("login", bytes.find('\n'))] = 'X';
  write_file(file, bytes);

  auto opened = open();

  EXPECT_EQ(opened.entries.size(), 2U);
  ASSERT_EQ(opened.remarks.size(), 1U);
  EXPECT_NE(opened.remarks[0].find("line 2: its checksum is wrong"), std::string::npos);
  EXPECT_EQ(read_file(file + ".bad"), bytes);
}

TEST_F(JournalFile, ManyEndedActsAreCompactedAway) {
  auto opened = open();
  EXPECT_FALSE(opened.journal->wants_rewrite(1));
  std::vector<JournalEntry> many(Journal::kLinesBeforeCompaction + 2, act(1)[0]);
  append(*opened.journal, many);
  EXPECT_TRUE(opened.journal->wants_rewrite(1));

  opened.journal->rewrite(act(9), [](const Result<void>&) {});
  append(*opened.journal, act(10));

  EXPECT_FALSE(opened.journal->wants_rewrite(1));
  opened.journal.reset();
  const auto entries = open().entries;
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(std::get<Act>(entries[0]).id, 9U);
}

TEST_F(JournalFile, AFileThatIsRemovedUnderItComesBackWithTheNextAct) {
  {
    auto opened = open();
    append(*opened.journal, act(1));
    ASSERT_EQ(::unlink(file.c_str()), 0);
    append(*opened.journal, act(2));
    EXPECT_TRUE(saved);
    append(*opened.journal, act(3));
  }

  EXPECT_EQ(open().entries.size(), 3U);
}

TEST_F(JournalFile, WhatLiesInItsPlaceIsKeptAside) {
  {
    auto opened = open();
    append(*opened.journal, act(1));
    ASSERT_EQ(::unlink(file.c_str()), 0);
    write_file(file, "somebody's\n");
    append(*opened.journal, act(2));
  }

  EXPECT_EQ(open().entries.size(), 2U);
  EXPECT_EQ(read_file(file + ".bad"), "somebody's\n");
}

TEST_F(JournalFile, ADirectoryThatIsGoneMeansNotSaved) {
  auto opened = open();
  append(*opened.journal, act(1));
  std::filesystem::remove_all(place.path() + "/state");

  append(*opened.journal, act(2));

  EXPECT_FALSE(saved);
}

TEST_F(JournalFile, TwoDaemonsNeverWriteOneJournal) {
  auto first = open();
  auto second = open();

  ASSERT_EQ(second.remarks.size(), 1U);
  EXPECT_NE(second.remarks[0].find("another daemon writes it"), std::string::npos);
  append(*second.journal, act(1));
  EXPECT_FALSE(saved);
}

TEST_F(JournalFile, APlaceThatCannotBeHadIsSaidAndOffIsQuiet) {
  write_file(place.path() + "/file", "");
  auto opened = Journal::open(loop, {.setting = place.path() + "/file/below"});
  EXPECT_EQ(opened.remarks.size(), 1U);

  auto off = Journal::open(loop, {.setting = "off"});
  EXPECT_TRUE(off.remarks.empty());
  append(*off.journal, act(1));
  EXPECT_FALSE(saved);
}

}  // namespace
}  // namespace cutwater::server
