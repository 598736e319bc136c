// SPDX-License-Identifier: Apache-2.0
// The races of names that patterns make, each in the one order that goes wrong when a guard is
// missing (tests/CONTROLS.md): a caller that stands still while its name leaves the place.
#include "stress/actor.hpp"
#include "stress/pattern_world.hpp"

namespace cutwater::test {
namespace {

using shm::BulkheadRef;
using shm::Left;

rule::BulkheadSettings short_lived(std::uint32_t instances, std::uint32_t places) {
  rule::BulkheadSettings settings = gates(instances, places);
  settings.idle_ns = 1'000'000'000;
  return settings;
}

/// Everything unused for a second leaves.
void recycle(PatternWorld& w) {
  w.look();
  w.pass(kSecond);
  ASSERT_EQ(w.make_room(w.look()), "");
}

int places_of(const PatternWorld& w, const std::string& name) {
  int found = 0;
  for (std::uint32_t i = 0; i < w.view().bulkhead_count; ++i) {
    found += w.name_of({i, 0}) == name;
  }
  return found;
}

/// Places that have a name, whether its text is written or not.
int taken(const PatternWorld& w) {
  int found = 0;
  for (std::uint32_t i = 0; i < w.view().bulkhead_count; ++i) {
    shm::BulkheadInfo info;
    found += shm::read_bulkhead(w.view(), i, info) && info.kind == shm::kInstanceEntry;
  }
  return found;
}

TEST(PatternSchedule, ANameHasOnePlaceWhateverBecomesFreeMeanwhile) {
  PatternWorld w({short_lived(2, 1), [] {
                    rule::BulkheadSettings other = short_lived(1, 1);
                    other.name = "shop-*";
                    return other;
                  }()});
  const BulkheadRef first = w.gate("bank-first").ref;
  shm::ResolvedBulkhead late;
  Actor a([&] { late = w.gate("bank-x"); });
  ASSERT_TRUE(a.run_to("pattern.before_create"));    // it has seen the second place free only
  // The pattern is not full, so its owner is asked by hand, as if it had been a moment ago.
  ASSERT_EQ(w.make_room({{}, {{first.index, first.incarnation}}}), "");
  const BulkheadRef made = w.gate("bank-x").ref;
  ASSERT_EQ(made.index, first.index);

  a.finish();

  EXPECT_EQ(late.ref.index, made.index);
  EXPECT_EQ(places_of(w, "bank-x"), 1);
  EXPECT_EQ(taken(w), 1);
}

TEST(PatternSchedule, WhoStopsBeforeTheNameIsWrittenByRulesOfBeforeNamesNothing) {
  PatternWorld w({short_lived(1, 1)});
  const BulkheadRef old = w.gate("bank-old").ref;
  recycle(w);
  Actor a([&] { w.gate("bank-late"); });
  ASSERT_TRUE(a.run_to("pattern.before_named"));
  EXPECT_TRUE(w.gate("bank-quick").shared);          // it ended the creation of bank-late first
  EXPECT_EQ(shm::find_bulkhead(w.view(), "bank-late").index, old.index);
  recycle(w);
  EXPECT_EQ(w.gate("bank-quick").ref.index, old.index);

  a.finish();

  EXPECT_EQ(places_of(w, "bank-quick"), 1);
  EXPECT_EQ(shm::find_bulkhead(w.view(), "bank-late").index, shm::kNoLine);
}

TEST(PatternSchedule, WhoTakesByAnOldNameHoldsNothingOfTheNewOne) {
  for (const char* stop : {"bulkhead.before_take", "bulkhead.taken"}) {
    PatternWorld w({short_lived(1, 1)});
    const BulkheadRef old = w.gate("bank-old").ref;
    w.look();
    w.pass(kSecond);
    const shm::UnusedPlaces unused = w.look();
    ASSERT_EQ(unused.bulkheads.size(), 1U);
    shm::BulkheadEntry late;
    Actor a([&] { late = w.enter(old, 0); });
    const bool took = std::string_view(stop) == "bulkhead.taken";
    ASSERT_TRUE(a.run_to(stop));
    ASSERT_EQ(w.make_room(unused), "");
    const BulkheadRef fresh = w.gate("bank-new").ref;
    // Who holds a place keeps its name.
    EXPECT_EQ(w.name_of({old.index, 0}), took ? "bank-old" : "bank-new") << stop;

    a.finish();

    if (took) {
      EXPECT_TRUE(late.granted);
      EXPECT_EQ(w.leave(old, late, 0), Left::Returned);
      continue;
    }
    EXPECT_FALSE(late.granted);
    const shm::BulkheadEntry entry = w.enter(fresh, 1);
    EXPECT_TRUE(entry.granted);
    EXPECT_EQ(w.leave(fresh, entry, 1), Left::Returned);
  }
}

TEST(PatternSchedule, WhoJudgesByAnOldNameMovesNothingOfTheNewOne) {
  rule::BreakerSettings settings = count_breaker({1, 1, 1});
  settings.name = "dep-*";
  settings.max_instances = 1;
  settings.idle_ns = 1'000'000'000;
  PatternWorld w({}, {}, {settings});
  const shm::BreakerRef old = w.breaker("dep-old").ref;
  w.look();
  w.pass(kSecond);
  const shm::UnusedPlaces unused = w.look();
  ASSERT_EQ(unused.breakers.size(), 1U);
  Actor a([&] { w.end(old, shm::Ended::Failure); });
  ASSERT_TRUE(a.run_to("breaker.before_move"));      // one failure is enough to open it
  ASSERT_EQ(w.make_room(unused), "");
  const shm::BreakerRef fresh = w.breaker("dep-new").ref;
  ASSERT_EQ(fresh.index, old.index);

  a.finish();

  shm::BreakerInfo info;
  ASSERT_TRUE(shm::read_breaker(w.view(), fresh.index, info));
  EXPECT_STREQ(info.name, "dep-new");
  EXPECT_EQ(info.word.state, rule::BreakerState::Closed);
  EXPECT_EQ(info.window.calls, 0U);
}

}  // namespace
}  // namespace cutwater::test
