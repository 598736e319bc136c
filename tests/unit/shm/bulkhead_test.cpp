// SPDX-License-Identifier: Apache-2.0
// Places and the line, one step after the other.
#include "shm/bulkhead/detail.hpp"
#include "shm/bulkhead/median.hpp"
#include "stress/bulkhead_world.hpp"

namespace cutwater::test {
namespace {

using shm::BulkheadCounter;
using shm::BulkheadEntry;
using shm::Left;
using State = shm::LineLook::State;

constexpr std::int64_t kMs = kMillisecond;

TEST(Bulkhead, TakesAndGivesBack) {
  BulkheadWorld w(bulkhead_of());
  const BulkheadEntry first = w.enter(0), second = w.enter(1), third = w.enter(2);

  EXPECT_TRUE(first.granted && second.granted);
  EXPECT_NE(first.place.cell, second.place.cell);
  EXPECT_FALSE(third.granted);
  EXPECT_EQ(third.reason, Reason::Full);

  EXPECT_EQ(w.leave(first, 0), Left::Returned);
  EXPECT_TRUE(w.enter(2).granted);
  EXPECT_EQ(w.count(BulkheadCounter::Granted), 3U);
  EXPECT_EQ(w.count(BulkheadCounter::RefusedFull), 1U);
  EXPECT_EQ(w.count(BulkheadCounter::Returned), 1U);
  EXPECT_TRUE(w.world().verify().empty()) << w.world().verify();
}

TEST(Bulkhead, ARefusalSaysHowItStands) {
  BulkheadWorld w(bulkhead_of());
  static_cast<void>(w.enter(0));
  w.pass(400 * kMs);
  static_cast<void>(w.enter(1));
  w.pass(100 * kMs);

  const BulkheadEntry refused = w.enter(2);

  EXPECT_EQ(refused.in_use, 2U);
  EXPECT_EQ(refused.limit, 2U);
  EXPECT_EQ(refused.waiting, 0U);
  EXPECT_EQ(refused.oldest_ns / kMs, 500);
  EXPECT_EQ(refused.retry_after_ns, kSecond);        // how long they hold is not known yet
  EXPECT_TRUE(refused.hint);
  EXPECT_FALSE(refused.may_wait);
}

TEST(Bulkhead, ALookWritesNothing) {
  BulkheadWorld w(bulkhead_of());
  const Snapshot empty = w.world().save();
  EXPECT_TRUE(shm::look_at_bulkhead(w.view(), w.ref(), w.caller()).granted);
  EXPECT_TRUE(w.world().same(empty));
  static_cast<void>(w.enter(0));
  static_cast<void>(w.enter(1));
  const Snapshot full = w.world().save();
  EXPECT_FALSE(shm::look_at_bulkhead(w.view(), w.ref(), w.caller()).granted);
  EXPECT_TRUE(w.world().same(full));
}

TEST(Bulkhead, NobodyWithoutARowHolds) {
  BulkheadWorld w(bulkhead_of());
  const BulkheadEntry entry = shm::enter_bulkhead(w.view(), w.ref(), {});
  EXPECT_FALSE(entry.granted);
  EXPECT_EQ(entry.reason, Reason::Degraded);
  EXPECT_FALSE(shm::join_line(w.view(), w.ref(), {}, {}).joined);
}

TEST(Bulkhead, SwitchedOffLetsEverybodyPass) {
  rule::BulkheadSettings settings = bulkhead_of();
  settings.enabled = false;
  BulkheadWorld w(settings);
  for (int i = 0; i < 5; ++i) {
    const BulkheadEntry entry = w.enter();
    EXPECT_TRUE(entry.granted);
    EXPECT_EQ(w.leave(entry), Left::Nothing);
  }
  EXPECT_EQ(w.in_use(), 0U);
  EXPECT_EQ(w.count(BulkheadCounter::PassedOff), 5U);
}

TEST(Bulkhead, NoPlacesRefuseEverybody) {
  BulkheadWorld w(bulkhead_of({0, 0, 8, 0}));
  EXPECT_FALSE(w.enter().granted);
  EXPECT_EQ(w.enter().limit, 0U);
}

TEST(Bulkhead, C085APlaceThatNobodyTookIsLeftByNobody) {
  BulkheadWorld w(bulkhead_of());
  BulkheadEntry forged = w.enter(0);
  forged.place.cell_value ^= 4;
  EXPECT_EQ(w.leave(forged, 1), Left::Stale);
  EXPECT_EQ(w.in_use(), 1U);
  EXPECT_EQ(w.count(BulkheadCounter::Stale), 1U);
}

TEST(Bulkhead, AHolderWithoutAStampIsGivenOneByTheTick) {
  BulkheadWorld w(bulkhead_of({1, 0, 8, 50'000'000}));
  const BulkheadEntry entry = w.enter(0);
  w.view().bulkhead_stamps[entry.place.cell] = 0;    // stopped before it wrote it
  w.pass(100 * kMs);
  EXPECT_EQ(w.tick().revoked, 0U);
  w.pass(51 * kMs);
  EXPECT_EQ(w.tick().revoked, 1U);
}

TEST(Bulkhead, ARefusalTellsTheMedianHoldOfTheLastMinute) {
  BulkheadWorld w(bulkhead_of({1, 0, 8, 0}));
  shm::HoldMedians medians;
  medians.look(w.view());
  for (const std::int64_t ms : {10, 20, 20, 30, 500}) {
    const BulkheadEntry entry = w.enter(0);
    w.pass(ms * kMs);
    w.leave(entry, 0);
  }
  static_cast<void>(w.enter(1));
  EXPECT_EQ(w.enter(0).retry_after_ns, kSecond);     // nobody looked yet
  w.pass(shm::HoldMedians::kStepNs);

  medians.look(w.view());

  const std::int64_t median = w.enter(0).retry_after_ns;
  EXPECT_GE(median, 20 * kMs);
  EXPECT_LE(median, 22'500'000);
  EXPECT_EQ(w.info().median_ns, median);
  w.pass(121 * kSecond);                             // nobody looks any more
  EXPECT_EQ(w.enter(0).retry_after_ns, kSecond);
  medians.look(w.view());                            // a minute in which nothing came back
  EXPECT_EQ(w.enter(0).retry_after_ns, kSecond);
}

TEST(BulkheadLine, NoMoreThanMaxWaiting) {
  BulkheadWorld w(bulkhead_of({1, 1'000'000'000, 2, 0}));
  static_cast<void>(w.enter(0));
  const auto a = w.join(1), b = w.join(2), c = w.join(3);
  EXPECT_TRUE(a.joined && b.joined);
  EXPECT_FALSE(c.joined);
  EXPECT_EQ(c.refusal.reason, Reason::Full);
  EXPECT_EQ(c.refusal.waiting, 2U);
  shm::leave_line(w.view(), w.ref(), w.caller(1), a.wait);
  EXPECT_TRUE(w.join(3).joined);
  EXPECT_EQ(w.count(BulkheadCounter::GaveUp), 1U);
}

TEST(BulkheadLine, NobodyWaitsWhereMaxWaitIsZero) {
  BulkheadWorld w(bulkhead_of({1, 0, 8, 0}));
  static_cast<void>(w.enter(0));
  EXPECT_FALSE(w.join(1).joined);
}

TEST(Bulkhead, APlaceGoesOverToTheRowThatPresentsIt) {
  BulkheadWorld w(bulkhead_of());
  const BulkheadEntry held = w.enter(0);
  w.pass(300 * kMs);
  const shm::PlaceTicket mine =
      shm::take_over_place(w.view(), w.ref(), w.caller(1), held.place);
  EXPECT_NE(mine.cell_value, 0U);
  EXPECT_EQ(w.info().oldest_ns / kMs, 300);
  EXPECT_EQ(shm::take_over_place(w.view(), w.ref(), w.caller(2), held.place).cell_value, 0U);
  w.kill(0);
  EXPECT_EQ(w.tick().reclaimed, 0U);
  EXPECT_EQ(w.leave(held, 0), Left::Stale);
  EXPECT_EQ(shm::leave_bulkhead(w.view(), w.ref(), w.caller(1), mine), Left::Returned);
}

TEST(Bulkhead, AScribbledCellIsFreedAndCounted) {
  BulkheadWorld w(bulkhead_of());
  w.view().bulkhead_cells[0] = 3;                    // no state of a cell
  w.view().bulkhead_cells[1] = shm::pack_held({999, 1}, 7);
  w.tick();
  EXPECT_EQ(w.in_use(), 0U);
  EXPECT_GT(w.view().stats_control->damage, 0U);
}

}  // namespace
}  // namespace cutwater::test
