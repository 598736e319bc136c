// SPDX-License-Identifier: Apache-2.0
// Bulkheads through reloads: more places, fewer, none.
#include "stress/bulkhead_world.hpp"

namespace cutwater::test {
namespace {

using shm::BulkheadEntry;
using shm::Left;
using State = shm::LineLook::State;

TEST(BulkheadReload, AGrownLimitServesTheLineAtOnce) {
  BulkheadWorld w(waiting_bulkhead(1), 4, {.bulkheads = 2, .bulkhead_cells = 16});
  static_cast<void>(w.enter(0));
  const auto a = w.join(1), b = w.join(2);
  w.publish(waiting_bulkhead(2));
  EXPECT_EQ(w.poll(a, 1).state, State::Granted);
  EXPECT_EQ(w.poll(b, 2).state, State::Waiting);
}

TEST(BulkheadReload, WhatDrainedIsGivenBackToOthersLater) {
  BulkheadWorld w(bulkhead_of({5, 0, 8, 0}), 6, {.bulkheads = 2, .bulkhead_cells = 8});
  std::vector<BulkheadEntry> held;
  for (std::uint32_t i = 0; i < 5; ++i) held.push_back(w.enter(i));
  w.publish(bulkhead_of({2, 0, 8, 0}));
  EXPECT_FALSE(w.world().publisher().settle_due());
  for (std::uint32_t i = 0; i < 5; ++i) w.leave(held[i], i);
  EXPECT_TRUE(w.world().publisher().settle_due());
  ASSERT_TRUE(w.world().publisher().renew().ok());
  EXPECT_FALSE(w.world().publisher().settle_due());

  rule::BulkheadSettings other = bulkhead_of({6, 0, 8, 0});
  other.name = "other";
  w.world().publisher().set_bulkheads({bulkhead_of({2, 0, 8, 0}), other});
  const auto early = w.world().publisher().publish({}, 0);
  ASSERT_FALSE(early.ok());                          // what was freed rests
  EXPECT_EQ(early.error().code(), Errc::Busy);
  EXPECT_NE(early.error().text().find("capacity.bulkhead-cells"), std::string::npos);
  w.pass(shm::kBulkheadRestNs);
  EXPECT_TRUE(w.world().publisher().publish({}, 0).ok());
  EXPECT_TRUE(w.world().verify().empty()) << w.world().verify();
}

TEST(BulkheadReload, AGrownBulkheadKeepsWhatIsHeldAlsoBehindAnother) {
  rule::BulkheadSettings other = bulkhead_of({3, 0, 8, 0});
  other.name = "other";
  BulkheadWorld w(bulkhead_of({2, 0, 8, 0}), 6, {.bulkheads = 2, .bulkhead_cells = 16});
  w.world().publisher().set_bulkheads({bulkhead_of({2, 0, 8, 0}), other});
  ASSERT_TRUE(w.world().publisher().publish({}, 0).ok());
  std::vector<BulkheadEntry> held{w.enter(0), w.enter(1)};
  w.world().publisher().set_bulkheads({bulkhead_of({4, 0, 8, 0}), other});
  ASSERT_TRUE(w.world().publisher().publish({}, 0).ok());
  held.push_back(w.enter(2));
  held.push_back(w.enter(3));
  EXPECT_FALSE(w.enter(4).granted);
  for (std::uint32_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(held[i].granted);
    EXPECT_EQ(w.leave(held[i], i), Left::Returned);
  }
  EXPECT_EQ(w.in_use(), 0U);
}

TEST(BulkheadReload, ARemovedOneIsGoneAndComesBackWithThoseWhoAreStillIn) {
  BulkheadWorld w(bulkhead_of({2, 0, 8, 0}), 4, {.bulkheads = 2, .bulkhead_cells = 8});
  const shm::BulkheadRef before = w.ref();
  const BulkheadEntry held = w.enter(0), left = w.enter(1);
  w.world().publisher().set_bulkheads({});
  ASSERT_TRUE(w.world().publisher().publish({}, 0).ok());
  EXPECT_EQ(w.ref().index, shm::kNoLine);
  EXPECT_EQ(shm::enter_bulkhead(w.view(), before, w.caller()).reason, Reason::Degraded);
  EXPECT_EQ(shm::leave_bulkhead(w.view(), before, w.caller(1), left.place), Left::Returned);
  EXPECT_EQ(shm::leave_bulkhead(w.view(), before, w.caller(1), left.place), Left::Nothing);

  w.publish(bulkhead_of({2, 0, 8, 0}));
  EXPECT_EQ(w.ref().index, before.index);
  EXPECT_NE(w.ref().incarnation, before.incarnation);
  EXPECT_EQ(w.in_use(), 1U);
  EXPECT_TRUE(w.enter(2).granted);
  EXPECT_FALSE(w.enter(3).granted);                  // two are in: not one more
  EXPECT_EQ(shm::leave_bulkhead(w.view(), before, w.caller(0), held.place), Left::Returned);
  EXPECT_TRUE(w.enter(3).granted);
  EXPECT_TRUE(w.world().verify().empty()) << w.world().verify();
}

TEST(BulkheadReload, PlacesOfARemovedOneGoToOthersWhenAllHaveLeft) {
  rule::BulkheadSettings other = bulkhead_of({4, 0, 8, 0});
  other.name = "other";
  BulkheadWorld w(bulkhead_of({5, 0, 8, 0}), 4, {.bulkheads = 2, .bulkhead_cells = 8});
  const shm::BulkheadRef before = w.ref();
  const BulkheadEntry held = w.enter(0), dead = w.enter(1);
  ASSERT_TRUE(held.granted && dead.granted);
  const auto publish_other = [&] {
    w.world().publisher().set_bulkheads({other});
    return w.world().publisher().publish({}, 0);
  };
  EXPECT_EQ(publish_other().error().code(), Errc::Busy);
  w.world().publisher().set_bulkheads({});
  ASSERT_TRUE(w.world().publisher().publish({}, 0).ok());
  w.pass(shm::kBulkheadRestNs);
  EXPECT_EQ(publish_other().error().code(), Errc::Busy);     // one of them is still in
  w.kill(1);
  EXPECT_TRUE(shm::bulkhead_needs_tick(w.view(), before.index));
  EXPECT_EQ(shm::tick_bulkhead(w.view(), before.index, {}).reclaimed, 1U);
  EXPECT_EQ(shm::leave_bulkhead(w.view(), before, w.caller(0), held.place), Left::Returned);
  EXPECT_FALSE(shm::bulkhead_needs_tick(w.view(), before.index));

  ASSERT_TRUE(publish_other().ok());
  EXPECT_TRUE(w.world().verify().empty()) << w.world().verify();
}

TEST(BulkheadReload, WhoStandsInLineOfARemovedOneLeavesItBehindEmpty) {
  BulkheadWorld w(waiting_bulkhead(1), 4, {.bulkheads = 2, .bulkhead_cells = 8});
  const shm::BulkheadRef before = w.ref();
  const BulkheadEntry held = w.enter(0);
  const auto waiting = w.join(1);
  w.world().publisher().set_bulkheads({});
  ASSERT_TRUE(w.world().publisher().publish({}, 0).ok());
  EXPECT_EQ(shm::poll_line(w.view(), before, w.caller(1), waiting.wait).state, State::Gone);

  w.publish(waiting_bulkhead(1));
  EXPECT_EQ(w.info().waiting, 0U);
  EXPECT_EQ(shm::leave_bulkhead(w.view(), before, w.caller(0), held.place), Left::Returned);
  EXPECT_TRUE(w.enter(2).granted);
}

TEST(BulkheadReload, MoreThanFitsNamesTheSetting) {
  BulkheadWorld w(bulkhead_of(), 4, {.bulkheads = 1, .bulkhead_cells = 4, .waiters = 8});
  rule::BulkheadSettings other = bulkhead_of();
  other.name = "other";
  const auto refused = [&](std::vector<rule::BulkheadSettings> all) {
    w.world().publisher().set_bulkheads(std::move(all));
    const auto done = w.world().publisher().publish({}, 0);
    return done.ok() ? std::string() : done.error().text();
  };
  EXPECT_NE(refused({bulkhead_of(), other}).find("capacity.bulkheads"), std::string::npos);
  EXPECT_NE(refused({bulkhead_of({5, 0, 8, 0})}).find("capacity.bulkhead-cells"),
            std::string::npos);
  EXPECT_NE(refused({bulkhead_of({2, 1, 9, 0})}).find("capacity.waiters"), std::string::npos);
  EXPECT_EQ(refused({bulkhead_of({4, 1, 8, 0})}), "");
}

}  // namespace
}  // namespace cutwater::test
