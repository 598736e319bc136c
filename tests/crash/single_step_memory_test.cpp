// SPDX-License-Identifier: Apache-2.0
// T17, T8, T21, T22, T23: what is not a bucket, killed at every instruction: publications, the
// sweep, take-overs, counters, events, rows. Readers see the old or the new, never a mixture, and
// the next daemon goes on from whatever is there.
#include <gtest/gtest.h>

#include "crash/stepper.hpp"
#include "shm/counters.hpp"
#include "shm/event_log.hpp"
#include "shm/limit/tops.hpp"
#include "shm/process_table.hpp"
#include "shm/stripe_life.hpp"

namespace cutwater::test {
namespace {

using Limits = std::vector<rule::LimitSettings>;

class SingleStepMemory : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Stepper::unavailable(); !why.empty()) GTEST_SKIP() << why;
  }
  static WorldOptions tiny() {
    return {.keys = 16, .limits = 2, .processes = 4, .stripes = 3, .events = 8};
  }
  // A new daemon, its sweep done, with the memory untouched where there is nothing to sweep.
  static void daemon_starts(World& world) {
    world.adopt();
    while (!world.publisher().sweep(64)) {}
  }
  static std::uint64_t left(World& world, const char* name) {
    if (world.ref(name).index == shm::kNoLimit) return 0;
    return Decision{world.peek(name, key(7), 0)}.remaining();
  }

  // Publishes `after` over `before`; one token of each limit is used.
  static void publish_everywhere(const char* name, const Limits& before, const Limits& after) {
    World world(before, tiny());
    const auto debts = [](World& w) {
      w.take("a", key(7));
      w.take("b", key(7));
    };
    const std::uint64_t old_a = before[0].windows[0].burst - 1;
    const std::uint64_t old_b = before.size() < 2 ? 0 : before[1].windows[0].burst - 1;
    const std::uint64_t new_a = after[0].windows[0].burst - 1;
    const std::uint64_t used_b = before.size() < 2 ? 0 : 1;
    const std::uint64_t new_b = after.size() < 2 ? 0 : after[1].windows[0].burst - used_b;
    kill_everywhere(world, {name, debts,
                            [&](World& w) { w.publish(after); },
                            [&](World& w, bool done) {
                              w.pass(1);         // beyond the moment at which it takes effect
                              const bool is_old = left(w, "a") == old_a && left(w, "b") == old_b;
                              const bool is_new = left(w, "a") == new_a && left(w, "b") == new_b;
                              EXPECT_TRUE(done ? is_new : is_old || is_new)
                                  << "a has " << left(w, "a") << ", b has " << left(w, "b");
                              daemon_starts(w);
                              EXPECT_EQ(w.verify(), "");
                              w.publish(after);
                              w.pass(1);
                              while (!w.publisher().sweep(64)) {}
                              EXPECT_EQ(left(w, "a"), new_a);
                              EXPECT_EQ(left(w, "b"), new_b);
                              EXPECT_EQ(w.verify(), "");
                            },
                            daemon_starts});
  }
};

TEST_F(SingleStepMemory, PublishOtherNumbers) {
  publish_everywhere("publish: two limits change together",
                     {limit("a", {1, kHour}, 3), limit("b", {1, kHour}, 5)},
                     {limit("a", {1, kHour}, 30), limit("b", {2, kHour}, 50)});
}

TEST_F(SingleStepMemory, PublishUnderANewRuleId) {
  publish_everywhere("publish: a rate that needs a new rule id",
                     {limit("a", {1, kHour}, 3), limit("b", {1, kHour}, 5)},
                     {limit("a", {1'000'000, kSecond}, 30), limit("b", {1, kHour}, 5)});
}

TEST_F(SingleStepMemory, PublishAnAddedLimit) {
  publish_everywhere("publish: a limit is added", {limit("a", {1, kHour}, 3)},
                     {limit("a", {1, kHour}, 3), limit("b", {1, kHour}, 5)});
}

TEST_F(SingleStepMemory, PublishARemovedLimit) {
  publish_everywhere("publish: a limit is removed",
                     {limit("a", {1, kHour}, 3), limit("b", {1, kHour}, 5)},
                     {limit("a", {1, kHour}, 3)});
}

TEST_F(SingleStepMemory, SweepConvertsOnce) {
  World world({limit("a", {1, kHour}, 5), limit("b", {1, 10 * kHour}, 1)}, tiny());
  constexpr std::uint64_t kKeys = 4;
  kill_everywhere(
      world,
      {"sweep",
       [](World& w) {
         for (std::uint64_t n = 0; n < kKeys; ++n) w.take("a", key(n), 1 + n);
         w.crowd("b", 1, 1000);
         w.take("a", key(99), 2);                // owed in the overflow word
         w.publish({limit("a", {1'000'000, kSecond}, 5), limit("b", {1, 10 * kHour}, 1)});
       },
       [](World& w) {
         while (!w.publisher().sweep(8)) {}
       },
       [](World& w, bool) {
         daemon_starts(w);
         for (std::uint64_t n = 0; n < kKeys; ++n) EXPECT_EQ(w.drain("a", key(n)), 4 - n);
         EXPECT_EQ(w.drain("a", key(99)), 3U);
         EXPECT_EQ(w.verify(), "");
         w.publish({limit("a", {1, kHour}, 5), limit("b", {1, 10 * kHour}, 1)});
       },
       [](World& w) { w.adopt(); }});
}

TEST_F(SingleStepMemory, TakeOverAndPublishAgain) {
  World world({limit("a", {1, kHour}, 5)}, tiny());
  std::uint64_t before = 0;
  const auto prepare = [&](World& w) {
    w.take("a", key(7));
    before = w.view().current() >> shm::kCurrentGenerationShift;
  };
  const auto recover = [&](World& w, bool done) {
    const std::uint64_t generation = w.view().current() >> shm::kCurrentGenerationShift;
    EXPECT_TRUE(generation == before + 1 || (!done && generation == before));
    EXPECT_EQ(w.verify(), "");
    daemon_starts(w);
    w.publisher().announce_takeover();
    EXPECT_GT(w.view().current() >> shm::kCurrentGenerationShift, generation);
    w.publish({limit("a", {1, kHour}, 6)});
    w.pass(1);
    EXPECT_EQ(left(w, "a"), 5U);
    EXPECT_EQ(w.verify(), "");
  };
  kill_everywhere(world, {"announce_takeover", prepare,
                          [](World& w) { w.publisher().announce_takeover(); }, recover,
                          daemon_starts});
  World other({limit("a", {1, kHour}, 5)}, tiny());
  kill_everywhere(other, {"publish_again", prepare,
                          [](World& w) { w.publisher().publish_again(); }, recover,
                          daemon_starts});
}

TEST_F(SingleStepMemory, StepOfTheClock) {
  World world({limit("a", {1, kHour}, 5)}, tiny());
  std::int64_t start = 0;
  kill_everywhere(world, {"step_clock", [&](World& w) { start = w.now(); },
                          [](World& w) { w.pass(kSecond); },
                          [&](World& w, bool done) {
                            const std::int64_t now = w.now();
                            EXPECT_TRUE(now == start + kSecond || (!done && now == start));
                            w.pass(kSecond);
                            EXPECT_EQ(w.now(), now + kSecond);
                          }});
}

TEST_F(SingleStepMemory, Counters) {
  World world({limit("a", {1, kHour}, 5)}, tiny());
  constexpr Word16 kOwner{std::uint64_t{2} << 32 | 9, 1};
  const auto sum = [](World& w) { return shm::sum_counters(w.view(), 0)[0]; };
  const auto claim_all = [](World& w) {
    std::uint64_t own = 0;
    for (std::uint64_t i = 0; i < 3; ++i) {
      own += !shm::claim_stripe(w.view(), {std::uint64_t{3} << 32 | 1, 1 + i}).shared;
    }
    return own;
  };
  const auto claim = [=](World& w) {
    shm::claim_stripe(w.view(), kOwner).add(0, shm::LimitCounter::Allowed, 5);
  };
  const auto recover = [=](World& w, bool done) {
    const std::uint64_t seen = sum(w);
    EXPECT_TRUE(seen == 10 || (!done && seen == 5)) << seen;
    shm::release_stripes_of(w.view(), 2, 9);
    EXPECT_EQ(claim_all(w), 3U) << "a stripe of the dead is lost";
    EXPECT_EQ(sum(w), seen) << "freeing a stripe changed what it counted";
  };
  kill_everywhere(world, {"claim_stripe and add", claim, claim, recover});
  World shared({limit("a", {1, kHour}, 5)}, tiny());
  const auto add = [](World& w) {
    shm::shared_stripe(w.view()).add(0, shm::LimitCounter::Allowed, 5);
  };
  kill_everywhere(shared, {"add to the shared stripe", add, add, recover});
  World released({limit("a", {1, kHour}, 5)}, tiny());
  const auto twice = [=](World& w) {
    claim(w);
    add(w);
  };
  const auto freed = [=](World& w, bool) { recover(w, true); };
  kill_everywhere(released, {"release_stripe", twice,
                             [=](World& w) { shm::release_stripe(w.view(), kOwner); }, freed});
  World reaped({limit("a", {1, kHour}, 5)}, tiny());
  kill_everywhere(reaped, {"release_stripes_of", twice,
                           [](World& w) { shm::release_stripes_of(w.view(), 2, 9); }, freed});
}

/// Row 2 was given back before its thread claims: wherever it is killed, no stripe is lost.
TEST_F(SingleStepMemory, AClaimForALifeThatIsOver) {
  constexpr Word16 kOver{std::uint64_t{2} << 32 | 1, 1};
  const auto end_row = [](World& w) {
    shm::RowTable rows(w.view(), true);
    const auto row = rows.grant({.pid = 4711, .name = "test"});
    rows.mark_dead(*row);
    rows.free(*row);
  };
  const auto none_is_lost = [](World& w, bool done) {
    if (done) {
      EXPECT_EQ(w.verify(), "");
    }
    shm::release_stripes_of_the_over(w.view());
    EXPECT_EQ(w.verify(), "");
    EXPECT_EQ(shm::stripes_in_use(w.view()), 0U);
  };
  World claimed({limit("a", {1, kHour}, 5)}, tiny());
  kill_everywhere(claimed, {"claim_living_stripe", end_row,
                            [=](World& w) { shm::claim_living_stripe(w.view(), kOver); },
                            none_is_lost});
  World found({limit("a", {1, kHour}, 5)}, tiny());
  kill_everywhere(found, {"release_stripes_of_the_over",
                          [=](World& w) {
                            end_row(w);
                            shm::claim_stripe(w.view(), kOver);
                          },
                          [](World& w) { shm::release_stripes_of_the_over(w.view()); },
                          none_is_lost});
}

TEST_F(SingleStepMemory, Tops) {
  WorldOptions options = tiny();
  options.tops = 2;
  World world({limit("a", {1, kHour}, 5)}, options);
  const auto note = [](World& w, std::uint64_t key) {
    shm::note_top(w.view(), {.limit = 0, .key = {key, 0}, .text = "k", .refused = true});
  };
  kill_everywhere(world, {"note_top",
                          [=](World& w) {
                            shm::clear_tops(w.view(), 0);
                            for (const std::uint64_t key : {1U, 1U, 2U}) note(w, key);
                          },
                          [=](World& w) { note(w, 3); },
                          [=](World& w, bool done) {
                            EXPECT_EQ(w.verify(), "");
                            const auto tops = shm::read_tops(w.view(), 0);
                            bool first = false, noted = false;
                            for (const shm::Top& top : tops) {
                              first = first || (top.key_hash == 1 && top.asked == 2);
                              noted = noted || (top.key_hash == 3 && top.refused == 1);
                              EXPECT_LE(top.refused, top.asked);
                            }
                            std::string seen;
                            for (const shm::Top& top : tops) {
                              seen += std::to_string(top.key_hash) + ":" +
                                      std::to_string(top.asked) + " ";
                            }
                            EXPECT_TRUE(first) << "another row was touched: " << seen;
                            EXPECT_TRUE(noted || !done);
                            note(w, 4);               // a torn row is free for the key that
                            note(w, 5);               // its number names
                            EXPECT_EQ(shm::read_tops(w.view(), 0).size(), 2U);
                            shm::clear_tops(w.view(), 0);
                            EXPECT_TRUE(shm::read_tops(w.view(), 0).empty());
                          }});
}

TEST_F(SingleStepMemory, AppendOfAnEvent) {
  World world({limit("a", {1, kHour}, 5)}, tiny());
  const auto append = [](World& w, std::uint32_t object) {
    shm::Event event;
    event.kind = shm::EventKind::LimitReset;
    event.object = object;
    event.epoch = object;
    shm::append_event(w.view(), event);
  };
  kill_everywhere(world, {"append_event",
                          [=](World& w) {
                            for (std::uint32_t i = 1; i <= 10; ++i) append(w, i);  // the ring wraps
                          },
                          [=](World& w) { append(w, 11); },
                          [=](World& w, bool done) {
                            EXPECT_EQ(w.verify(), "");
                            append(w, 12);
                            w.pass(kSecond);             // the patience with a writer
                            const shm::EventPage page = shm::read_events(w.view(), 4, 100);
                            std::vector<std::uint32_t> objects;
                            for (const shm::Event& event : page.events) {
                              EXPECT_EQ(event.object, event.number + (event.number < 10 ? 1 : 0) +
                                                          (event.object == 12 ? 12 - event.number
                                                           : event.number >= 10 ? 1 : 0))
                                  << "a record of two events";
                              objects.push_back(event.object);
                            }
                            ASSERT_FALSE(objects.empty());
                            EXPECT_EQ(objects.back(), 12U) << "the dead hides what comes after";
                            EXPECT_TRUE(std::is_sorted(objects.begin(), objects.end()));
                            const bool whole =
                                std::count(objects.begin(), objects.end(), 11U) == 1;
                            EXPECT_TRUE(whole || !done);
                            EXPECT_EQ(w.verify(), "");
                          }});
}

TEST_F(SingleStepMemory, Rows) {
  using shm::RowKind;
  using shm::RowState;
  using shm::RowTable;
  World world({limit("a", {1, kHour}, 5)}, tiny());
  const RowTable::Owner owner{.kind = RowKind::Process, .pid = 4711, .uid = 12, .start_time = 99,
                              .pid_namespace = 5, .connection = 6, .name = "worker"};
  std::unique_ptr<RowTable> table;
  shm::RowGrant row;
  const auto daemon = [&](World& w) { table = std::make_unique<RowTable>(w.view(), false); };
  const auto one_row = [&](World& w) {
    table = std::make_unique<RowTable>(w.view(), true);
    row = *table->grant(owner);
  };
  const auto next_daemon_goes_on = [&](World& w, bool) {
    RowTable next(w.view(), false);
    for (const shm::RowInfo& info : next.in_use()) {
      EXPECT_EQ(info.pid, 4711U);
      EXPECT_EQ(info.start_time, 99U);
      EXPECT_STREQ(info.name, "worker");
      next.mark_dead({info.index, info.word.generation});
      EXPECT_FALSE(row_alive(w.view(), info.index, info.word.generation));
      next.free({info.index, info.word.generation});
    }
    EXPECT_TRUE(next.in_use().empty());
    for (std::uint32_t i = 0; i < w.view().row_count - shm::kFirstClientRow; ++i) {
      const auto granted = next.grant(owner);
      ASSERT_TRUE(granted) << "a row is lost";
      EXPECT_TRUE(row_alive(w.view(), granted->index, granted->generation));
      EXPECT_FALSE(granted->index == row.index && granted->generation == row.generation)
          << "a successor looks like its predecessor";
    }
    EXPECT_EQ(w.verify(), "");
  };
  const auto each = [&](const char* name, auto prepare, auto run) {
    World w({limit("a", {1, kHour}, 5)}, tiny());
    kill_everywhere(w, {name, prepare, run, next_daemon_goes_on, daemon});
  };
  each("RowTable::grant", one_row, [&](World&) { (void)table->grant(owner); });
  each("RowTable::mark_orphan", one_row, [&](World&) { table->mark_orphan(row); });
  each("RowTable::mark_live",
       [&](World& w) {
         one_row(w);
         table->mark_orphan(row);
       },
       [&](World&) { table->mark_live(row); });
  each("RowTable::mark_dead", one_row, [&](World&) { table->mark_dead(row); });
  each("RowTable::free",
       [&](World& w) {
         one_row(w);
         table->mark_dead(row);
       },
       [&](World&) { table->free(row); });
  each("RowTable (adoption)", one_row, [&](World& w) { RowTable(w.view(), false); });
  each("RowTable (fresh)", one_row, [&](World& w) { RowTable(w.view(), true); });
}

}  // namespace
}  // namespace cutwater::test
