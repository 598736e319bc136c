// SPDX-License-Identifier: Apache-2.0
// Bulkheads, killed at any instruction (T17): a place is held or free, nobody in line is forgotten,
// and once the dead one's row is reaped there are as many places as the limit says.
#include "crash/stepper.hpp"
#include "shm/bulkhead/median.hpp"
#include "shm/row_holdings.hpp"
#include "stress/bulkhead_world.hpp"

namespace cutwater::test {
namespace {

using shm::BulkheadEntry;
using shm::JoinedLine;
using shm::Left;
using State = shm::LineLook::State;

constexpr std::int64_t kMs = kMillisecond;

/// Process 0 is the one that is killed; the others go on.
class BulkheadStep : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Stepper::unavailable(); !why.empty()) GTEST_SKIP() << why;
  }

  static rule::BulkheadSettings one_place() { return bulkhead_of({1, 1'000'000'000, 3, 0}); }

  /// Served within two looks: the first may find that its place went another way.
  static bool served(BulkheadWorld& w, const JoinedLine& line, std::uint32_t process,
                     BulkheadEntry& place) {
    for (int i = 0; i < 2; ++i) {
      const auto look = w.poll(line, process);
      place = look.entry;
      if (look.state == State::Granted) return true;
    }
    return false;
  }
  /// Exactly `limit` places can be had, and they all come back.
  static void expect_places(BulkheadWorld& w, std::uint32_t limit) {
    std::vector<BulkheadEntry> held;
    for (std::uint32_t i = 0; i < limit; ++i) held.push_back(w.enter(3));
    for (const BulkheadEntry& one : held) EXPECT_TRUE(one.granted);
    EXPECT_FALSE(w.enter(3).granted);
    for (const BulkheadEntry& one : held) EXPECT_EQ(w.leave(one, 3), Left::Returned);
    EXPECT_EQ(w.in_use(), 0U);
    EXPECT_EQ(w.info().waiting, 0U);
  }
};

TEST_F(BulkheadStep, TakeOfAPlace) {
  BulkheadWorld w(bulkhead_of());
  BulkheadEntry held;
  kill_everywhere(w.world(), {"take of a place",
                              [&](World&) {
                                w.renew_rows();
                                held = w.enter(1);
                              },
                              [&](World&) { static_cast<void>(w.enter(0)); },
                              [&](World&, bool) {
                                EXPECT_LE(w.in_use(), 2U);
                                w.bury(0);
                                EXPECT_EQ(w.in_use(), 1U);
                                EXPECT_EQ(w.leave(held, 1), Left::Returned);
                                expect_places(w, 2);
                              }});
}

TEST_F(BulkheadStep, TakeThatIsOneTooMany) {
  BulkheadWorld w(bulkhead_of());
  BulkheadEntry first, second;
  kill_everywhere(w.world(), {"take where none is free",
                              [&](World&) {
                                w.renew_rows();
                                first = w.enter(1);
                                second = w.enter(2);
                              },
                              [&](World&) { static_cast<void>(w.enter(0)); },
                              [&](World&, bool) {
                                w.bury(0);
                                EXPECT_EQ(w.leave(first, 1), Left::Returned);
                                EXPECT_EQ(w.leave(second, 2), Left::Returned);
                                expect_places(w, 2);
                              }});
}

TEST_F(BulkheadStep, ReturnOfAPlace) {
  BulkheadWorld w(bulkhead_of());
  BulkheadEntry held;
  kill_everywhere(w.world(), {"return of a place, nobody waits",
                              [&](World&) {
                                w.renew_rows();
                                held = w.enter(0);
                              },
                              [&](World&) { w.leave(held, 0); },
                              [&](World&, bool finished) {
                                EXPECT_LE(w.in_use(), finished ? 0U : 1U);
                                w.bury(0);
                                expect_places(w, 2);
                              }});
}

TEST_F(BulkheadStep, TheLineOfARowThatNobodyAnswersFor) {
  BulkheadWorld w(one_place());
  BulkheadEntry held;
  JoinedLine behind;
  const auto empty = [&] {
    shm::empty_line_of(w.view(), w.row(1), shm::shared_stripe(w.view()));
  };
  kill_everywhere(w.world(), {"the records of a row are emptied, one was handed a place",
                              [&](World&) {
                                w.renew_rows();
                                held = w.enter(0);
                                static_cast<void>(w.join(1));
                                static_cast<void>(w.join(1));
                                behind = w.join(2);
                                w.leave(held, 0);
                              },
                              [&](World&) { empty(); },
                              [&](World&, bool finished) {
                                if (!finished) empty();
                                EXPECT_EQ(w.info().waiting, 1U);
                                BulkheadEntry place;
                                EXPECT_TRUE(served(w, behind, 2, place));
                                EXPECT_EQ(w.leave(place, 2), Left::Returned);
                                expect_places(w, 1);
                              }});
}

TEST_F(BulkheadStep, HandOver) {
  BulkheadWorld w(one_place());
  BulkheadEntry held;
  JoinedLine first, second;
  kill_everywhere(w.world(), {"return of a place to the first in line",
                              [&](World&) {
                                w.renew_rows();
                                held = w.enter(0);
                                first = w.join(1);
                                second = w.join(2);
                              },
                              [&](World&) { w.leave(held, 0); },
                              [&](World&, bool finished) {
                                BulkheadEntry place;
                                EXPECT_TRUE(!finished || served(w, first, 1, place));
                                if (!finished) {
                                  w.bury(0);
                                  EXPECT_TRUE(served(w, first, 1, place));
                                }
                                EXPECT_EQ(w.poll(second, 2).state, State::Waiting);
                                EXPECT_EQ(w.leave(place, 1), Left::Returned);
                                EXPECT_TRUE(served(w, second, 2, place));
                                EXPECT_EQ(w.leave(place, 2), Left::Returned);
                                expect_places(w, 1);
                              }});
}

TEST_F(BulkheadStep, Arrival) {
  for (const bool free : {false, true}) {
    BulkheadWorld w(one_place());
    BulkheadEntry held;
    kill_everywhere(w.world(), {free ? "arrival in line, a place is free" : "arrival in line",
                                [&](World&) {
                                  w.renew_rows();
                                  held = free ? BulkheadEntry{} : w.enter(1);
                                },
                                [&](World&) { static_cast<void>(w.join(0)); },
                                [&](World&, bool) {
                                  w.bury(0);
                                  EXPECT_EQ(w.info().waiting, 0U);
                                  EXPECT_TRUE(free || w.leave(held, 1) == Left::Returned);
                                  expect_places(w, 1);
                                }});
  }
}

/// One that is at the head of the line, to whom the place was handed, does this.
struct AtTheHead {
  const char* name;
  std::function<void(BulkheadWorld&, const JoinedLine&)> act;
};

TEST_F(BulkheadStep, WhatTheFirstInLineDoes) {
  const AtTheHead acts[] = {
      {"take of a place that was handed over",
       [](BulkheadWorld& w, const JoinedLine& line) { static_cast<void>(w.poll(line, 0)); }},
      {"giving up with a place in hand",
       [](BulkheadWorld& w, const JoinedLine& line) {
         shm::leave_line(w.view(), w.ref(), w.caller(0), line.wait);
       }},
      {"the end of the wait with a place in hand",
       [](BulkheadWorld& w, const JoinedLine& line) {
         w.pass(100 * kMs);
         static_cast<void>(w.poll(line, 0));
       }},
  };
  for (const AtTheHead& one : acts) {
    BulkheadWorld w(one_place());
    JoinedLine first, second;
    kill_everywhere(w.world(), {one.name,
                                [&](World&) {
                                  w.renew_rows();
                                  const BulkheadEntry held = w.enter(1);
                                  first = w.join(0, {100'000'000, 0});
                                  second = w.join(2);
                                  w.leave(held, 1);
                                },
                                [&](World&) { one.act(w, first); },
                                [&](World&, bool) {
                                  w.bury(0);
                                  BulkheadEntry place;
                                  EXPECT_TRUE(served(w, second, 2, place));
                                  EXPECT_EQ(w.leave(place, 2), Left::Returned);
                                  expect_places(w, 1);
                                }});
  }
}

TEST_F(BulkheadStep, TickOverTheDeadAndTheTooLongHeld) {
  BulkheadWorld w(bulkhead_of({2, 1'000'000'000, 3, 50'000'000}));
  JoinedLine first, second;
  BulkheadEntry late;
  kill_everywhere(w.world(), {"tick: a dead holder, one past max-hold, two in line",
                              [&](World&) {
                                w.renew_rows();
                                late = w.enter(1);
                                w.pass(51 * kMs);
                                static_cast<void>(w.enter(0));
                                first = w.join(2);
                                second = w.join(3);
                                w.kill(0);
                              },
                              [&](World&) { w.tick(); },
                              [&](World&, bool) {
                                w.tick();
                                BulkheadEntry place, other;
                                EXPECT_TRUE(served(w, first, 2, place));
                                EXPECT_TRUE(served(w, second, 3, other));
                                EXPECT_EQ(w.leave(late, 1), Left::Stale);
                                EXPECT_EQ(w.leave(place, 2), Left::Returned);
                                EXPECT_EQ(w.leave(other, 3), Left::Returned);
                                expect_places(w, 2);
                              }});
}

TEST_F(BulkheadStep, TakingOverAPlace) {
  BulkheadWorld w(bulkhead_of());
  BulkheadEntry held;
  kill_everywhere(w.world(), {"a place taken over by another row",
                              [&](World&) {
                                w.renew_rows();
                                held = w.enter(1);
                              },
                              [&](World&) {
                                shm::take_over_place(w.view(), w.ref(), w.caller(0), held.place);
                              },
                              [&](World&, bool) {
                                EXPECT_EQ(w.in_use(), 1U);
                                w.bury(0);
                                const bool still = w.in_use() == 1;
                                EXPECT_EQ(w.leave(held, 1), still ? Left::Returned : Left::Stale);
                                expect_places(w, 2);
                              }});
}

TEST_F(BulkheadStep, ReloadThatGrows) {
  BulkheadWorld w(one_place(), 4, {.bulkheads = 2, .bulkhead_cells = 24, .waiters = 24});
  const rule::BulkheadSettings more = bulkhead_of({4, 1'000'000'000, 6, 0});
  BulkheadEntry held;
  JoinedLine line;
  kill_everywhere(w.world(), {"publication of more places and a longer line",
                              [&](World&) {
                                w.renew_rows();
                                held = w.enter(1);
                                line = w.join(2);
                              },
                              [&](World&) { w.publish(more); },
                              [&](World& world, bool) {
                                EXPECT_TRUE(w.info().limit == 1 || w.info().limit == 4);
                                world.adopt();
                                w.publish(more);
                                BulkheadEntry place;
                                EXPECT_TRUE(served(w, line, 2, place));
                                EXPECT_EQ(w.leave(place, 2), Left::Returned);
                                EXPECT_EQ(w.leave(held, 1), Left::Returned);
                                expect_places(w, 4);
                              },
                              [&](World& world) {
                                world.adopt();
                                world.publisher().set_bulkheads({one_place()});
                              }});
}

TEST_F(BulkheadStep, MedianOfTheLastMinute) {
  WorldOptions options;
  options.stripes = 1;
  BulkheadWorld w(bulkhead_of(), 4, options);
  shm::HoldMedians medians;
  kill_everywhere(w.world(), {"median of the holding times",
                              [&](World&) {
                                w.renew_rows();
                                medians = {};
                                medians.look(w.view());
                                const BulkheadEntry held = w.enter(1);
                                w.pass(20 * kMs);
                                w.leave(held, 1);
                                w.pass(shm::HoldMedians::kStepNs);
                              },
                              [&](World&) { medians.look(w.view()); },
                              [&](World&, bool finished) {
                                const std::int64_t median = w.info().median_ns;
                                EXPECT_TRUE(median >= 20 * kMs || (!finished && median == 0));
                                expect_places(w, 2);
                              }});
}

}  // namespace
}  // namespace cutwater::test
