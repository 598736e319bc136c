// SPDX-License-Identifier: Apache-2.0
// Rows: granted oldest first with a new generation, written by their owner only (C057, C058).
#include "shm/process_table.hpp"

#include <sys/wait.h>

#include <csignal>

#include "unit/shm/memory_support.hpp"

namespace cutwater::shm {
namespace {

constexpr std::uint32_t kClientRows = 16;

class RowTableTest : public testing::Test {
 protected:
  RowTableTest() : segment_(Segment::create_private(test::stepped_options())) {}
  const View& view() const { return segment_->view(); }

  Result<Segment> segment_;
};

RowTable::Owner client(std::uint32_t pid) {
  RowTable::Owner owner;
  owner.pid = pid;
  owner.uid = 33;
  owner.start_time = 1000 + pid;
  owner.name = "worker";
  return owner;
}

TEST(RowWord, PacksAndUnpacks) {
  const RowWord word{0xfedcba98U, RowKind::Connection, RowState::Orphan};

  const RowWord again = unpack_row(pack_row(word));

  EXPECT_EQ(pack_row(word), 0xfedcba9803020000U);
  EXPECT_EQ(again.generation, word.generation);
  EXPECT_EQ(again.kind, word.kind);
  EXPECT_EQ(again.state, word.state);
}

TEST_F(RowTableTest, AGrantFillsTheRow) {
  RowTable rows(view(), true);

  const auto grant = rows.grant(client(4711));

  ASSERT_TRUE(grant);
  RowInfo info;
  ASSERT_TRUE(read_row(view(), grant->index, info));
  EXPECT_EQ(grant->index, kFirstClientRow);
  EXPECT_EQ(info.word.generation, grant->generation);
  EXPECT_EQ(info.word.state, RowState::Live);
  EXPECT_EQ(info.word.kind, RowKind::Process);
  EXPECT_EQ(info.pid, 4711U);
  EXPECT_EQ(info.uid, 33U);
  EXPECT_EQ(info.start_time, 5711U);
  EXPECT_EQ(info.attached_ns, view().clock.now());
  EXPECT_STREQ(info.name, "worker");
}

TEST_F(RowTableTest, NamesAreCutAndCleaned) {
  RowTable rows(view(), true);
  RowTable::Owner owner = client(1);
  const std::string name = "bad\n\x1b[31m" + std::string(100, 'x');
  owner.name = name;

  const auto grant = rows.grant(owner);

  RowInfo info;
  ASSERT_TRUE(read_row(view(), grant->index, info));
  EXPECT_EQ(std::string(info.name), "bad??[31m" + std::string(38, 'x'));
}

TEST_F(RowTableTest, TheDaemonGetsRowOneAlsoAfterAKilledOne) {
  RowTable rows(view(), true);
  RowTable::Owner daemon;
  daemon.kind = RowKind::Daemon;

  const auto first = rows.grant(daemon);
  RowTable successor(view(), false);
  const auto second = successor.grant(daemon);

  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->index, kDaemonRow);
  EXPECT_EQ(second->index, kDaemonRow);
  EXPECT_EQ(second->generation, first->generation + 1);
}

TEST_F(RowTableTest, TheRowThatWasFreeTheLongestIsGrantedNext) {
  RowTable rows(view(), true);
  std::vector<RowGrant> held;
  for (std::uint32_t i = 0; i < kClientRows; ++i) held.push_back(*rows.grant(client(i)));
  for (const std::uint32_t i : {5U, 2U, 9U}) {
    rows.mark_dead(held[i]);
    rows.free(held[i]);
  }

  EXPECT_EQ(rows.grant(client(100))->index, held[5].index);
  EXPECT_EQ(rows.grant(client(101))->index, held[2].index);
  EXPECT_EQ(rows.grant(client(102))->index, held[9].index);
}

// covers: C058
TEST_F(RowTableTest, ASuccessorInARowIsNotItsPredecessor) {
  RowTable rows(view(), true);
  std::vector<RowGrant> held;
  for (std::uint32_t i = 0; i < kClientRows; ++i) held.push_back(*rows.grant(client(7)));
  const RowGrant before = held[3];
  rows.mark_dead(before);
  rows.free(before);

  const RowGrant after = *rows.grant(client(7));   // the same pid again

  EXPECT_EQ(after.index, before.index);
  EXPECT_EQ(after.generation, before.generation + 1);
  EXPECT_FALSE(row_alive(view(), before.index, before.generation));
  EXPECT_TRUE(row_alive(view(), after.index, after.generation));
}

TEST_F(RowTableTest, AFullTableSaysSo) {
  RowTable rows(view(), true);
  for (std::uint32_t i = 0; i < kClientRows; ++i) ASSERT_TRUE(rows.grant(client(i)));

  const auto refused = rows.grant(client(99));

  EXPECT_EQ(refused.error().code(), Errc::Busy);
  EXPECT_NE(refused.error().text().find("all 16 rows"), std::string::npos);
  EXPECT_NE(refused.error().text().find("capacity.processes"), std::string::npos);
  EXPECT_EQ(rows.live_count(), kClientRows);
}

// covers: C057
TEST_F(RowTableTest, TenThousandLivesDoNotUseItUp) {
  RowTable rows(view(), true);
  std::vector<RowGrant> live;
  for (std::uint32_t i = 0; i < 8; ++i) live.push_back(*rows.grant(client(i)));

  for (std::uint32_t i = 0; i < 10'000; ++i) {
    const auto grant = rows.grant(client(i));
    ASSERT_TRUE(grant) << i;
    rows.mark_dead(*grant);
    rows.free(*grant);
  }

  EXPECT_EQ(rows.live_count(), live.size());
  for (const RowGrant& row : live) EXPECT_TRUE(row_alive(view(), row.index, row.generation));
}

TEST_F(RowTableTest, ADeadRowIsGoneForOthersButNotGrantedBeforeItIsFree) {
  RowTable rows(view(), true);
  std::vector<RowGrant> held;
  for (std::uint32_t i = 0; i < kClientRows; ++i) held.push_back(*rows.grant(client(i)));

  rows.mark_dead(held[0]);

  EXPECT_FALSE(row_alive(view(), held[0].index, held[0].generation));
  EXPECT_FALSE(rows.grant(client(50)));
  EXPECT_EQ(rows.in_use().size(), kClientRows);
  rows.free(held[0]);
  EXPECT_EQ(rows.in_use().size(), kClientRows - 1);
  EXPECT_TRUE(rows.grant(client(50)));
}

TEST_F(RowTableTest, AnOrphanLivesAndCanComeBack) {
  RowTable rows(view(), true);
  const RowGrant row = *rows.grant(client(1));

  rows.mark_orphan(row);
  EXPECT_TRUE(row_alive(view(), row.index, row.generation));
  EXPECT_EQ(rows.in_use()[0].word.state, RowState::Orphan);

  rows.mark_live(row);
  EXPECT_EQ(rows.in_use()[0].word.state, RowState::Live);

  rows.mark_orphan(row);
  rows.mark_dead(row);
  EXPECT_FALSE(row_alive(view(), row.index, row.generation));
}

TEST_F(RowTableTest, StepsOfAnotherLifeDoNothing) {
  RowTable rows(view(), true);
  const RowGrant row = *rows.grant(client(1));
  const RowGrant older{row.index, row.generation - 1};

  rows.mark_dead(older);
  EXPECT_TRUE(row_alive(view(), row.index, row.generation));

  rows.free(row);   // not dead yet
  EXPECT_TRUE(row_alive(view(), row.index, row.generation));

  rows.mark_dead({9999, 1});
  rows.free({0, 0});
}

TEST_F(RowTableTest, AdoptionKeepsTheRowsFound) {
  RowGrant live, dead;
  {
    RowTable rows(view(), true);
    live = *rows.grant(client(1));
    dead = *rows.grant(client(2));
    rows.mark_dead(dead);
  }

  RowTable rows(view(), false);

  EXPECT_TRUE(row_alive(view(), live.index, live.generation));
  ASSERT_EQ(rows.in_use().size(), 2U);
  EXPECT_EQ(rows.in_use()[1].word.state, RowState::Dead);
  rows.free(dead);
  EXPECT_EQ(rows.in_use().size(), 1U);
  EXPECT_EQ(rows.grant(client(3))->index, kFirstClientRow + 2);
}

TEST_F(RowTableTest, AdoptionTurnsAnImpossibleStateIntoDead) {
  { RowTable rows(view(), true); }
  view().rows[4].word = std::uint64_t{7} << 32 | std::uint64_t{200} << 16;

  RowTable rows(view(), false);

  ASSERT_EQ(rows.in_use().size(), 1U);
  EXPECT_EQ(rows.in_use()[0].index, 4U);
  EXPECT_EQ(rows.in_use()[0].word.state, RowState::Dead);
  rows.free({4, 7});
  EXPECT_TRUE(rows.in_use().empty());
}

// R1: what somebody writes into a row changes nothing in what the daemon believes.
TEST_F(RowTableTest, AScribbledRowDoesNotChangeTheTruth) {
  RowTable rows(view(), true);
  const RowGrant row = *rows.grant(client(1));

  view().rows[row.index].word = 0;

  EXPECT_EQ(rows.live_count(), 1U);
  EXPECT_EQ(rows.in_use()[0].word.generation, row.generation);
  rows.mark_dead(row);
  EXPECT_EQ(unpack_row(view().rows[row.index].word).state, RowState::Dead);
}

TEST_F(RowTableTest, IndexesOutOfRangeAreNobody) {
  RowTable rows(view(), true);
  RowInfo info;

  EXPECT_FALSE(read_row(view(), view().row_count, info));
  EXPECT_FALSE(row_alive(view(), view().row_count, 0));
  EXPECT_FALSE(row_alive(view(), 0, 0));
  EXPECT_FALSE(row_alive(view(), kFirstClientRow, 0));
}

TEST(ProcessIdentity, StartTimeTellsTwoLivesOfAPidApart) {
  EXPECT_NE(process_start_time(static_cast<std::uint32_t>(getpid())), 0U);

  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  const std::uint64_t started = process_start_time(static_cast<std::uint32_t>(child));
  EXPECT_GE(started, process_start_time(static_cast<std::uint32_t>(getpid())));
  EXPECT_EQ(started, process_start_time(static_cast<std::uint32_t>(child)));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  EXPECT_EQ(process_start_time(static_cast<std::uint32_t>(child)), 0U);
}

TEST(ProcessIdentity, NamespacesOfSelfAreKnown) {
  EXPECT_NE(pid_namespace_of(0), 0U);
  EXPECT_EQ(pid_namespace_of(static_cast<std::uint32_t>(getpid())), pid_namespace_of(0));
  EXPECT_EQ(pid_namespace_of(0x7fffffff), 0U);
}

}  // namespace
}  // namespace cutwater::shm
