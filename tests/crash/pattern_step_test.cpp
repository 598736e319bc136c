// SPDX-License-Identifier: Apache-2.0
// Names that patterns make, killed at any instruction: a name has one place or none, a place one
// name, and whoever enters by the name that left is told so or is still in the old one. The owner
// that makes room is killed too; its successor goes on from whatever is there.
#include "crash/stepper.hpp"
#include "stress/pattern_world.hpp"

namespace cutwater::test {
namespace {

using shm::BulkheadRef;
using shm::Left;

/// As little as there can be: a publication is stepped through whole.
constexpr PatternRoom kGates{.bulkheads = 3, .bulkhead_cells = 6, .waiters = 1, .breakers = 0};
constexpr PatternRoom kBreakers{.bulkheads = 0, .bulkhead_cells = 0, .waiters = 0, .breakers = 2};

class PatternStep : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Stepper::unavailable(); !why.empty()) GTEST_SKIP() << why;
  }

  static rule::BulkheadSettings pattern() {
    rule::BulkheadSettings settings = gates(2, 2);
    settings.idle_ns = 1'000'000'000;
    return settings;
  }

  /// Both places can be had, and all come back.
  static void expect_places(const PatternWorld& w, BulkheadRef ref, std::uint32_t places) {
    std::vector<shm::BulkheadEntry> held;
    for (std::uint32_t i = 0; i < places; ++i) held.push_back(w.enter(ref, 1));
    for (const shm::BulkheadEntry& one : held) EXPECT_TRUE(one.granted);
    EXPECT_FALSE(w.enter(ref, 1).granted);
    for (const shm::BulkheadEntry& one : held) EXPECT_EQ(w.leave(ref, one, 1), Left::Returned);
  }
  static void bury(const PatternWorld& w, std::uint32_t process) {
    std::uint64_t& word = w.view().rows[w.row(process).index].word;
    shm::RowWord row = shm::unpack_row(word);
    row.state = shm::RowState::Dead;
    word = shm::pack_row(row);
    for (std::uint32_t i = 0; i < w.view().bulkhead_count; ++i) {
      static_cast<void>(shm::tick_bulkhead(w.view(), i, {}));
    }
  }
};

TEST_F(PatternStep, APatternMakesABulkhead) {
  PatternWorld w({pattern()}, kGates);
  kill_everywhere(w.world(), {"a bulkhead's first use",
                              [&](World&) { w.gate("bank-a"); },
                              [&](World&) { w.gate("bank-new"); },
                              [&](World&, bool) {
                                const shm::ResolvedBulkhead made = w.gate("bank-new");
                                EXPECT_NE(made.ref.index, w.gate("bank-a").ref.index);
                                EXPECT_FALSE(made.shared);
                                EXPECT_EQ(w.name_of(made.ref), "bank-new");
                                EXPECT_TRUE(w.gate("bank-b").shared);   // none lost or doubled
                                expect_places(w, made.ref, 2);
                              }});
}

TEST_F(PatternStep, ANameThatGetsThePlaceOfAnother) {
  PatternWorld w({pattern()}, kGates);
  kill_everywhere(w.world(), {"a bulkhead's first use of a place that had a name",
                              [&](World&) {
                                const BulkheadRef old = w.gate("bank-an-older-and-longer-name").ref;
                                w.gate("bank-a");
                                EXPECT_EQ(w.make_room({{}, {{old.index, old.incarnation}}}), "");
                              },
                              [&](World&) { w.gate("bank-new"); },
                              [&](World&, bool) {
                                const shm::ResolvedBulkhead made = w.gate("bank-new");
                                EXPECT_FALSE(made.shared);
                                EXPECT_EQ(w.name_of(made.ref), "bank-new");
                                EXPECT_TRUE(w.gate("bank-an-older-and-longer-name").shared);
                                expect_places(w, made.ref, 2);
                              }});
}

TEST_F(PatternStep, RoomIsMadeWhileTheOldNameEnters) {
  PatternWorld w({pattern()}, kGates);
  BulkheadRef old;
  shm::UnusedPlaces unused;
  const auto daemon_starts = [&](World& world) {
    world.adopt();
    EXPECT_EQ(w.publish({pattern()}), "");
  };
  kill_everywhere(
      w.world(),
      {"a name makes room",
       [&](World& world) {
         daemon_starts(world);
         old = w.gate("bank-old").ref;
         w.gate("bank-a");
         unused = {{}, {{old.index, old.incarnation}}};
       },
       [&](World&) { w.make_room(unused); },
       [&](World& world, bool finished) {
         const shm::BulkheadEntry in = w.enter(old, 0);
         const BulkheadRef now = shm::find_bulkhead(w.view(), "bank-old");
         const bool stays = now.index == old.index && now.incarnation == old.incarnation;
         EXPECT_EQ(in.granted, stays);
         EXPECT_TRUE(!finished || !stays);
         EXPECT_EQ(w.gate("bank-new").shared, stays);
         daemon_starts(world);
         EXPECT_EQ(w.leave(old, in, 0), stays ? Left::Returned : Left::Nothing);
         EXPECT_EQ(w.make_room(unused), "");
         const shm::ResolvedBulkhead made = w.gate("bank-new");
         EXPECT_FALSE(made.shared);
         expect_places(w, made.ref, 2);
         EXPECT_EQ(world.verify(), "");
       },
       daemon_starts});
}

TEST_F(PatternStep, TheOldNameEntersWhileRoomIsMade) {
  PatternWorld w({pattern()}, kGates);
  BulkheadRef old;
  kill_everywhere(w.world(),
                  {"a take by a name that makes room then",
                   [&](World& world) {
                     world.adopt();
                     EXPECT_EQ(w.publish({pattern()}), "");
                     w.renew_rows();
                     old = w.gate("bank-old").ref;
                     w.gate("bank-a");
                   },
                   [&](World&) { static_cast<void>(w.enter(old, 0)); },
                   [&](World& world, bool) {
                     world.adopt();
                     EXPECT_EQ(w.publish({pattern()}), "");
                     EXPECT_EQ(w.make_room({{}, {{old.index, old.incarnation}}}), "");
                     const shm::ResolvedBulkhead made = w.gate("bank-new");
                     bury(w, 0);
                     if (!made.shared) expect_places(w, made.ref, 2);
                     if (made.shared) expect_places(w, old, 2);   // it was in: the name stayed
                     EXPECT_EQ(world.verify(), "");
                   }});
}

TEST_F(PatternStep, APatternComesBackWithThoseWhoAreIn) {
  PatternWorld w({pattern()}, kGates);
  BulkheadRef old;
  shm::BulkheadEntry held;
  const auto out = [&](World& world) {
    world.adopt();
    EXPECT_EQ(w.publish({}), "");
  };
  kill_everywhere(w.world(),
                  {"a pattern comes back",
                   [&](World& world) {
                     world.adopt();
                     EXPECT_EQ(w.publish({pattern()}), "");
                     old = w.gate("bank-a").ref;
                     held = w.enter(old, 0);
                     out(world);
                   },
                   [&](World&) { w.publish({pattern()}); },
                   [&](World& world, bool) {
                     world.adopt();
                     EXPECT_EQ(w.publish({pattern()}), "");
                     const shm::ResolvedBulkhead again = w.gate("bank-a");
                     EXPECT_EQ(again.ref.index, old.index);
                     expect_places(w, again.ref, 1);
                     EXPECT_EQ(w.leave(old, held, 0), Left::Returned);
                     expect_places(w, again.ref, 2);
                     EXPECT_EQ(world.verify(), "");
                   },
                   out});
}

TEST_F(PatternStep, ABreakerMakesRoom) {
  rule::BreakerSettings settings = count_breaker({4, 4, 1});
  settings.name = "dep-*";
  settings.max_instances = 1;
  PatternWorld w({}, kBreakers, {settings});
  shm::BreakerRef old;
  shm::UnusedPlaces unused;
  const auto daemon_starts = [&](World& world) {
    world.adopt();
    EXPECT_EQ(w.publish({}), "");
  };
  kill_everywhere(w.world(),
                  {"a breaker makes room",
                   [&](World& world) {
                     daemon_starts(world);
                     old = w.breaker("dep-old").ref;
                     w.end(old, shm::Ended::Failure);
                     w.end(old, shm::Ended::Failure);
                     unused = {{{old.index, old.incarnation}}, {}};
                   },
                   [&](World&) { w.make_room(unused); },
                   [&](World& world, bool finished) {
                     const bool stays =
                         shm::find_breaker(w.view(), "dep-old").incarnation == old.incarnation;
                     EXPECT_TRUE(!finished || !stays);
                     EXPECT_EQ(w.end(old, shm::Ended::Failure), stays);
                     daemon_starts(world);
                     EXPECT_EQ(w.make_room(unused), "");
                     const shm::ResolvedBreaker made = w.breaker("dep-new");
                     EXPECT_FALSE(made.shared);
                     shm::BreakerInfo info;
                     ASSERT_TRUE(shm::read_breaker(w.view(), made.ref.index, info));
                     EXPECT_STREQ(info.name, "dep-new");
                     EXPECT_EQ(info.window.calls, 0U);
                     EXPECT_EQ(info.word.state, rule::BreakerState::Closed);
                     EXPECT_EQ(world.verify(), "");
                   },
                   daemon_starts});
}

}  // namespace
}  // namespace cutwater::test
