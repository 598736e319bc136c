// SPDX-License-Identifier: Apache-2.0
// What a breaker keeps of its users, killed at any instruction: a place is whole or free, a count
// is one step behind at most, and a view is old or new and comes to its end.
#include "crash/stepper.hpp"
#include "stress/breaker_world.hpp"

namespace cutwater::test {
namespace {

using rule::BreakerState;
using shm::BreakerEntry;
using shm::BreakerUserInfo;
using shm::Ended;

constexpr std::int64_t kMs = kMillisecond;

class BreakerUserStep : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Stepper::unavailable(); !why.empty()) GTEST_SKIP() << why;
  }

  static rule::BreakerSettings settings() {
    rule::BreakerSettings s = count_breaker({16, 5, 1});
    s.min_processes = rule::kMinProcessesAuto;
    s.consecutive_failures = 0;
    s.probe_timeout_ns = 100'000'000;
    return s;
  }

  static BreakerUserInfo user(const BreakerWorld& w, std::uint32_t process) {
    BreakerUserInfo found[shm::kBreakerUsers];
    const std::size_t count = shm::read_breaker_users(w.view(), w.ref().index, found);
    for (std::size_t i = 0; i < count; ++i) {
      if (found[i].row == w.row(process).index) return found[i];
    }
    return {};
  }

  /// Process 0 fails beside healthy ones until one more failure of it opens for itself.
  static void nearly(BreakerWorld& w) {
    for (int i = 0; i < 4; ++i) {
      for (std::uint32_t other = 1; other < 4; ++other) w.call(Ended::Success, 0, other);
      w.call(Ended::Failure, 0, 0);
    }
  }

  /// It comes back by a good call of its own, whatever a killed thread left.
  static void expect_comes_back(BreakerWorld& w) {
    for (int i = 0; i < 3 && w.info().users_open != 0; ++i) {
      w.pass(8'000 * kMs);
      w.call(Ended::Success, 0, 0);
    }
    EXPECT_EQ(w.info().users_open, 0U);
    EXPECT_TRUE(w.call(Ended::Success, 0, 0));
    EXPECT_EQ(w.state(), BreakerState::Closed);
    EXPECT_EQ(w.info().word.epoch, 1U);
  }
};

TEST_F(BreakerUserStep, JoinOfAUser) {
  BreakerWorld w(settings());
  shm::BreakerLocal local;
  shm::BreakerCaller child = w.caller(0);
  child.user = {child.row, child.generation, 7};
  child.local = &local;
  kill_everywhere(w.world(), {"join",
                              [](World&) {},
                              [&](World&) { shm::join_breaker(w.view(), w.ref(), child); },
                              [&](World&, bool finished) {
                                EXPECT_TRUE(!finished || w.info().users == 5U);
                                local.user = shm::kNoLine;
                                shm::join_breaker(w.view(), w.ref(), child);
                                w.join(1);
                                w.tick();            // counts again, and frees who is silent
                                EXPECT_EQ(w.info().users, 4U);
                              }});
}

TEST_F(BreakerUserStep, CountOfAnOutcomeAndTheOpeningForOne) {
  BreakerWorld w(settings());
  BreakerEntry call;
  kill_everywhere(w.world(), {"the failure that opens for one",
                              [&](World&) {
                                nearly(w);
                                call = w.enter(0);
                              },
                              [&](World&) { w.finish(call, Ended::Failure, 0); },
                              [&](World&, bool finished) {
                                EXPECT_EQ(w.state(), BreakerState::Closed);
                                EXPECT_TRUE(!finished || w.info().users_open == 1U);
                                const BreakerUserInfo one = user(w, 0);
                                EXPECT_TRUE(one.failures == 5 || (!finished && one.failures == 4));
                                // The next failure finds what a killed thread did not do.
                                w.call(Ended::Failure, 0, 0);
                                w.call(Ended::Failure, 0, 0);
                                EXPECT_EQ(w.info().users_open, 1U);
                                expect_comes_back(w);
                              }});
}

TEST_F(BreakerUserStep, TurnOfAUser) {
  BreakerWorld w(settings());
  BreakerEntry call;
  kill_everywhere(w.world(), {"the first outcome of a turn",
                              [&](World&) {
                                for (int i = 0; i < 15; ++i) {
                                  w.call(Ended::Success, 0, static_cast<std::uint32_t>(i % 4));
                                }
                                call = w.enter(0);
                              },
                              [&](World&) { w.finish(call, Ended::Success, 0); },
                              [&](World&, bool finished) {
                                const std::uint64_t calls = user(w, 0).calls;
                                // Killed between its two words, the turn before is not told.
                                EXPECT_TRUE(calls == 5 || (!finished && (calls == 4 || calls == 1)))
                                    << calls;
                                w.call(Ended::Success, 0, 0);
                                EXPECT_EQ(w.state(), BreakerState::Closed);
                              }});
}

TEST_F(BreakerUserStep, TakeAndResultOfItsOwnProbe) {
  for (const bool good : {true, false}) {
    BreakerWorld w(settings());
    kill_everywhere(w.world(), {good ? "a good probe of its own" : "a bad probe of its own",
                                [&](World&) {
                                  nearly(w);
                                  w.call(Ended::Failure, 0, 0);
                                  EXPECT_EQ(w.info().users_open, 1U);
                                  w.pass(1'001 * kMs);
                                },
                                [&](World&) {
                                  const BreakerEntry probe = w.enter(0);
                                  w.finish(probe, good ? Ended::Success : Ended::Failure, 0);
                                },
                                [&](World&, bool finished) {
                                  const bool open = w.info().users_open == 1;
                                  EXPECT_TRUE(!finished || open != good);
                                  EXPECT_EQ(w.state(), BreakerState::Closed);
                                  expect_comes_back(w);
                                }});
  }
}

TEST_F(BreakerUserStep, TickThatFreesADeadUser) {
  BreakerWorld w(settings());
  kill_everywhere(w.world(), {"tick: the place of a dead user",
                              [&](World&) {
                                nearly(w);
                                w.call(Ended::Failure, 0, 0);
                                w.kill(0);
                              },
                              [&](World&) { w.tick(); },
                              [&](World&, bool) {
                                w.tick();
                                EXPECT_EQ(w.info().users, 3U);
                                EXPECT_EQ(w.info().users_open, 0U);
                                EXPECT_EQ(user(w, 0).calls, 0U);
                              }});
}

TEST_F(BreakerUserStep, APatternMakesABreaker) {
  rule::BreakerSettings pattern = settings();
  pattern.name = "bank-*";
  pattern.max_instances = 3;
  WorldOptions options;
  options.breakers = 6;
  options.breaker_memory = 2 * shm::breaker_memory_needed({pattern});
  World world({}, options);
  world.publisher().set_breakers({pattern});
  ASSERT_TRUE(world.publisher().publish({}, 0));
  const auto resolve = [&](std::string_view name) {
    return shm::resolve_breaker(world.view(), name, shm::shared_stripe(world.view()));
  };
  kill_everywhere(world, {"a name's first use",
                          [&](World&) { resolve("bank-a"); },
                          [&](World&) { resolve("bank-new"); },
                          [&](World&, bool) {
                            const shm::ResolvedBreaker other = resolve("bank-c");
                            const shm::ResolvedBreaker made = resolve("bank-new");
                            EXPECT_NE(made.ref.index, other.ref.index);
                            EXPECT_FALSE(made.shared || other.shared);
                            shm::BreakerInfo info;
                            ASSERT_TRUE(shm::read_breaker(world.view(), made.ref.index, info));
                            EXPECT_STREQ(info.name, "bank-new");
                            EXPECT_TRUE(resolve("bank-d").shared);   // no place was lost or doubled
                          }});
}

}  // namespace
}  // namespace cutwater::test
