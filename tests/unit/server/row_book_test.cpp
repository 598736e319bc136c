// SPDX-License-Identifier: Apache-2.0
#include "row_book.hpp"

#include <gtest/gtest.h>

namespace cutwater::server {
namespace {

using Kind = RowAction::Kind;
constexpr std::uint64_t kT = 1'000'000'000;
constexpr std::uint64_t kGrace = RowBook::kOrphanGraceNs;

RowHolder holder(std::uint32_t row, std::uint64_t connection, bool watched = true) {
  return {{row, 1}, 100 + row, 55, connection, watched, false};
}

std::vector<Kind> kinds(const RowActions& actions) {
  std::vector<Kind> out;
  for (const RowAction& action : actions) out.push_back(action.kind);
  return out;
}

using Kinds = std::vector<Kind>;

TEST(RowBook, ByeGivesTheRowBackAtOnce) {
  RowBook book;
  book.attached(holder(2, 9));

  EXPECT_EQ(kinds(book.connection_ended(9, true, kT)), Kinds{Kind::Reap});
  EXPECT_EQ(book.size(), 0U);
}

TEST(RowBook, TheEndOfTheProcessGivesTheRowBack) {
  RowBook book;
  book.attached(holder(2, 9));

  EXPECT_EQ(kinds(book.process_ended(2)), Kinds{Kind::Reap});
  EXPECT_TRUE(book.connection_ended(9, false, kT).empty());
  EXPECT_TRUE(book.process_ended(2).empty());
}

TEST(RowBook, AClosedSocketAloneKillsNoLivingProcess) {
  RowBook book;
  book.attached(holder(2, 9));

  EXPECT_EQ(kinds(book.connection_ended(9, false, kT)), Kinds{Kind::Orphan});
  EXPECT_TRUE(book.is_orphan(2));
  EXPECT_TRUE(book.tick(kT + kGrace - 1).empty());
}

TEST(RowBook, AnOrphanIsLookedForAndKeptWhileItMapsTheMemory) {
  RowBook book;
  book.attached(holder(2, 9));
  static_cast<void>(book.connection_ended(9, false, kT));

  const RowActions look = book.tick(kT + kGrace);

  ASSERT_EQ(kinds(look), Kinds{Kind::LookAtMaps});
  EXPECT_EQ(look[0].pid, 102U);
  EXPECT_TRUE(book.looked({2, 1}, false, kT + kGrace).empty());
  EXPECT_TRUE(book.tick(kT + kGrace + 1).empty());
  EXPECT_EQ(kinds(book.tick(kT + 2 * kGrace)), Kinds{Kind::LookAtMaps});
  EXPECT_EQ(kinds(book.looked({2, 1}, true, kT + 2 * kGrace)), Kinds{Kind::Reap});
}

TEST(RowBook, ALateLookAtAFormerOwnerHarmsNobody) {
  RowBook book;
  book.attached(holder(2, 9));
  static_cast<void>(book.connection_ended(9, false, kT));

  EXPECT_TRUE(book.looked({2, 0}, true, kT).empty());   // of the grant before this one
  EXPECT_TRUE(book.looked({3, 1}, true, kT).empty());
  EXPECT_EQ(book.size(), 1U);
}

TEST(RowBook, WithoutAPidfdTheConnectionIsTheLife) {
  RowBook book;
  book.attached(holder(2, 9, false));

  EXPECT_EQ(kinds(book.connection_ended(9, false, kT)), Kinds{Kind::Reap});
}

TEST(RowBook, AProcessThatComesAgainTakesItsRowBack) {
  RowBook book;
  book.attached(holder(2, 9));
  static_cast<void>(book.connection_ended(9, false, kT));
  RowActions actions;

  const auto row = book.offered(102, 55, std::nullopt, 10, actions);

  ASSERT_TRUE(row);
  EXPECT_EQ(row->index, 2U);
  EXPECT_EQ(kinds(actions), Kinds{Kind::Live});
  EXPECT_TRUE(book.tick(kT + 2 * kGrace).empty());
  EXPECT_EQ(kinds(book.connection_ended(10, false, kT)), Kinds{Kind::Orphan});
}

TEST(RowBook, NobodyTakesTheRowOfAnother) {
  RowBook book;
  book.attached(holder(2, 9));
  book.attached(holder(3, 11));
  static_cast<void>(book.connection_ended(9, false, kT));
  RowActions actions;

  EXPECT_FALSE(book.offered(102, 56, std::nullopt, 10, actions));           // the pid came again
  EXPECT_FALSE(book.offered(103, 55, shm::RowGrant{2, 1}, 10, actions));    // another's token
  EXPECT_FALSE(book.offered(102, 55, shm::RowGrant{2, 7}, 10, actions));    // an older grant
  EXPECT_FALSE(book.offered(103, 55, std::nullopt, 10, actions));           // its session runs
  EXPECT_TRUE(actions.empty());
}

TEST(RowBook, AdoptedRowsOfLivingProcessesStay) {
  RowBook book;
  (void)book.adopted(holder(2, 0), kT);

  EXPECT_EQ(kinds(book.tick(kT + kGrace)), Kinds{Kind::LookAtMaps});
  EXPECT_TRUE(book.looked({2, 1}, false, kT + kGrace).empty());
  EXPECT_EQ(book.size(), 1U);
}

TEST(RowBook, AdoptedRowsNobodyCanWatchGetTheirGraceAndNoMore) {
  RowBook book;
  (void)book.adopted(holder(2, 0, false), kT);

  EXPECT_TRUE(book.tick(kT + kGrace - 1).empty());
  EXPECT_EQ(kinds(book.tick(kT + kGrace)), Kinds{Kind::Reap});
}

TEST(RowBook, LooksAtABoundedNumberOfMapsInOneTick) {
  RowBook book;
  for (std::uint32_t row = 2; row < 100; ++row) {
    (void)book.adopted(holder(row, 0), kT);
  }

  EXPECT_EQ(book.tick(kT + kGrace).size(), RowBook::kMaxLooks);
  EXPECT_EQ(book.tick(kT + kGrace).size(), RowBook::kMaxLooks);   // the next ones
}

RowHolder asker(std::uint32_t row, std::uint64_t connection) {
  RowHolder out = holder(row, connection);
  out.asks = true;
  return out;
}

TEST(RowBook, ASessionThatOnlyAsksIsKeptForAWhileAndTakenOverByAnotherConnection) {
  RowBook book;
  book.attached(asker(2, 9));
  EXPECT_EQ(kinds(book.connection_ended(9, false, kT)), Kinds{Kind::Due});
  RowActions out;
  EXPECT_FALSE(book.offered(102, 55, std::nullopt, 10, out)) << "no process takes such a row";
  EXPECT_FALSE(book.taken_over({2, 7}, 10, out));

  EXPECT_TRUE(book.taken_over({2, 1}, 10, out));

  EXPECT_EQ(kinds(out), Kinds{Kind::Live});
  EXPECT_TRUE(book.tick(kT + 2 * kGrace).empty());
  EXPECT_FALSE(book.taken_over({2, 1}, 11, out)) << "it is not an orphan";
  EXPECT_EQ(kinds(book.connection_ended(10, false, kT)), Kinds{Kind::Due});
  EXPECT_EQ(kinds(book.tick(kT + kGrace)), Kinds{Kind::Reap}) << "without a look at any maps";
}

TEST(RowBook, RowsWhoseMemoryMovedStayWhileTheirProcessesLive) {
  RowBook book;
  book.attached(holder(2, 9));
  book.attached(asker(3, 8));
  book.memory_moved();

  EXPECT_EQ(kinds(book.connection_ended(9, false, kT)), Kinds{Kind::Orphan});
  EXPECT_TRUE(book.tick(kT + 100 * kGrace).empty()) << "it maps another memory, and lives";
  EXPECT_EQ(kinds(book.process_ended(2)), Kinds{Kind::Reap});
}

TEST(RowBook, EachClientOfAProcessTakesItsOwnRowOverBehindAMove) {
  RowBook book;
  for (const std::uint32_t row : {2U, 3U}) {
    book.attached({{row, 1}, 100, 55, row + 7, true, false});
  }
  book.memory_moved();
  RowActions out;

  // Its old connection has not ended yet; a Client that is new has no row to name.
  EXPECT_FALSE(book.offered(100, 55, std::nullopt, 19, out));
  EXPECT_EQ(book.offered(100, 55, shm::RowGrant{3, 1}, 20, out)->index, 3U);
  EXPECT_FALSE(book.offered(100, 55, shm::RowGrant{3, 1}, 21, out)) << "it is taken over";
  EXPECT_FALSE(book.offered(101, 55, shm::RowGrant{2, 1}, 22, out)) << "another process's";
  EXPECT_EQ(book.offered(100, 55, shm::RowGrant{2, 1}, 23, out)->index, 2U);
  EXPECT_TRUE(book.connection_ended(9, true, kT).empty()) << "nobody's any more";
  EXPECT_EQ(kinds(book.connection_ended(23, true, kT)), Kinds{Kind::Reap});
  EXPECT_EQ(book.size(), 1U);
}

TEST(RowBook, AnAskerOfAFormerDaemonIsKeptWhileItsProcessLivesAndItHoldsSomething) {
  RowBook book;
  EXPECT_EQ(kinds(book.adopted(asker(2, 0), kT)), Kinds{Kind::Orphan});

  EXPECT_TRUE(book.tick(kT + kGrace - 1).empty());
  EXPECT_EQ(kinds(book.tick(kT + kGrace)), Kinds{Kind::LookAtCells});
  EXPECT_TRUE(book.looked({2, 1}, false, kT + kGrace).empty());
  EXPECT_EQ(kinds(book.tick(kT + 2 * kGrace)), Kinds{Kind::LookAtCells});
  EXPECT_EQ(kinds(book.looked({2, 1}, true, kT + 2 * kGrace)), Kinds{Kind::Reap});
}

TEST(RowBook, AnAskerWhoseDaemonStopsIsKeptToo) {
  RowBook book;
  book.attached(asker(2, 9));
  book.attached(asker(3, 10));
  RowHolder unwatched = asker(4, 11);
  unwatched.watched = false;
  book.attached(unwatched);

  EXPECT_EQ(kinds(book.connection_ended(9, false, kT, true)), Kinds{Kind::Orphan});
  EXPECT_EQ(kinds(book.connection_ended(10, true, kT, true)), Kinds{Kind::Reap}) << "BYE";
  EXPECT_EQ(kinds(book.connection_ended(11, false, kT, true)), Kinds{Kind::Due}) << "no pidfd";
}

TEST(RowBook, AnAskerThatCameBackHasItsGraceToPresentWhatItHolds) {
  RowBook book;
  (void)book.adopted(asker(2, 0), kT);
  EXPECT_TRUE(book.came_back({2, 7}, kT).empty()) << "an older grant";
  EXPECT_TRUE(book.came_back({3, 1}, kT).empty());

  EXPECT_EQ(kinds(book.came_back({2, 1}, kT + 1)), Kinds{Kind::Due});
  EXPECT_TRUE(book.came_back({2, 1}, kT + kGrace).empty()) << "once";

  EXPECT_TRUE(book.tick(kT + kGrace).empty());
  EXPECT_EQ(kinds(book.tick(kT + kGrace + 1)), Kinds{Kind::Reap});
}

TEST(RowBook, TheGraceOfAnAskerGoesOnOverDaemons) {
  RowBook book;
  EXPECT_TRUE(book.adopted(asker(2, 0), kT, kGrace / 2).empty()) << "it stands in the row";
  EXPECT_TRUE(book.adopted(asker(3, 0), kT, 9 * kGrace).empty());

  EXPECT_TRUE(book.tick(kT + kGrace / 2 - 1).empty());
  EXPECT_EQ(kinds(book.tick(kT + kGrace / 2)), Kinds{Kind::Reap});
  EXPECT_EQ(kinds(book.tick(kT + kGrace)), Kinds{Kind::Reap}) << "never longer than one grace";
}

}  // namespace
}  // namespace cutwater::server
