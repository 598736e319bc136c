// SPDX-License-Identifier: Apache-2.0
// Who is in a bulkhead, as people are told.
#include "shm/bulkhead/holders.hpp"

#include "stress/bulkhead_world.hpp"

namespace cutwater::test {
namespace {

constexpr std::int64_t kMs = kMillisecond;

shm::BulkheadHolders holders_of(const BulkheadWorld& w) {
  shm::BulkheadHolders out;
  EXPECT_TRUE(shm::read_bulkhead_holders(w.view(), w.ref().index, out));
  return out;
}

TEST(BulkheadHolders, EachRowOnceWithItsPlacesAndItsOldest) {
  BulkheadWorld w(bulkhead_of({3, 1'000'000'000, 8, 0}));
  static_cast<void>(w.enter(1));
  w.pass(400 * kMs);
  static_cast<void>(w.enter(0));
  w.pass(100 * kMs);
  static_cast<void>(w.enter(0));
  w.pass(100 * kMs);
  const Snapshot before = w.world().save();

  const shm::BulkheadHolders found = holders_of(w);

  ASSERT_EQ(found.all.size(), 2U);
  EXPECT_EQ(found.all[0].row, w.row(0).index);
  EXPECT_EQ(found.all[0].places, 2U);
  EXPECT_EQ(found.all[0].oldest_ns / kMs, 200);
  EXPECT_EQ(found.all[1].row, w.row(1).index);
  EXPECT_EQ(found.all[1].places, 1U);
  EXPECT_EQ(found.all[1].oldest_ns / kMs, 600);
  EXPECT_EQ(found.next_row, 0U);
  EXPECT_TRUE(w.world().same(before));
}

TEST(BulkheadHolders, TheNextPlaceIsOfTheFirstWhoHasNone) {
  BulkheadWorld w(bulkhead_of({1, 1'000'000'000, 8, 0}));
  const shm::BulkheadEntry held = w.enter(0);
  const shm::JoinedLine first = w.join(2), second = w.join(1);
  ASSERT_TRUE(first.joined && second.joined);
  w.pass(300 * kMs);

  const shm::BulkheadHolders found = holders_of(w);
  EXPECT_EQ(found.all.size(), 3U);
  EXPECT_EQ(found.next_row, w.row(2).index);
  EXPECT_EQ(found.next_left_ns / kMs, 700);

  // Handed over and not yet taken: its place, and the next one is the other's.
  w.leave(held, 0);
  const shm::BulkheadHolders after = holders_of(w);
  ASSERT_EQ(after.all.size(), 2U);
  EXPECT_EQ(after.all[0].row, w.row(2).index);
  EXPECT_EQ(after.all[0].places, 1U);
  EXPECT_EQ(after.next_row, w.row(1).index);
}

TEST(BulkheadHolders, ThoseWhoAreGoneAreMarkedUntilTheirPlacesAreBack) {
  BulkheadWorld w(bulkhead_of({2, 1'000'000'000, 8, 0}));
  static_cast<void>(w.enter(0));
  w.kill(0);
  const shm::BulkheadHolders dead = holders_of(w);
  ASSERT_EQ(dead.all.size(), 1U);
  EXPECT_TRUE(dead.all[0].gone);

  w.tick();
  EXPECT_TRUE(holders_of(w).all.empty());
  shm::BulkheadHolders none;
  EXPECT_FALSE(shm::read_bulkhead_holders(w.view(), w.view().bulkhead_count, none));
  EXPECT_TRUE(none.all.empty());
}

TEST(BulkheadHolders, AScribbledCellIsNobodys) {
  BulkheadWorld w(bulkhead_of());
  w.view().bulkhead_cells[0] = 3;                            // no state of a cell
  w.view().bulkhead_cells[1] = shm::pack_handed(77, 0x3fff);  // to a record beyond its own
  EXPECT_TRUE(holders_of(w).all.empty());
}

}  // namespace
}  // namespace cutwater::test
