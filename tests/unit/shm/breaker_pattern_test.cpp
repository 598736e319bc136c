// SPDX-License-Identifier: Apache-2.0
// Patterns: a breaker of its own for each name at its first use, as many as were reserved for.
#include <thread>

#include "rule/breaker_pattern.hpp"
#include "shm/verify.hpp"
#include "unit/shm/breaker_scenes.hpp"

namespace cutwater::test {
namespace {

using shm::BreakerRef;
using shm::ResolvedBreaker;

BreakerSettings bank(std::uint32_t instances) {
  BreakerSettings s = count_breaker({4, 4, 1});
  s.name = "bank-*";
  s.max_instances = instances;
  return s;
}

class BreakerPatternTest : public testing::Test {
 protected:
  void start(const std::vector<BreakerSettings>& settings) {
    WorldOptions options;
    options.breakers = 24;
    options.breaker_memory = 4 * shm::breaker_memory_needed(settings) + 65'536;
    options.events = 64;
    world = std::make_unique<World>(std::vector<rule::LimitSettings>{}, options);
    publish(settings);
  }
  void publish(const std::vector<BreakerSettings>& settings) {
    world->publisher().set_breakers(settings);
    const auto done = world->publisher().publish({}, 0);
    ASSERT_TRUE(done) << done.error().text();
  }
  const shm::View& view() const { return world->view(); }
  ResolvedBreaker resolve(std::string_view name) const {
    return shm::resolve_breaker(view(), name, shm::shared_stripe(view()));
  }
  std::string name_of(BreakerRef ref) const {
    shm::BreakerInfo info;
    return shm::read_breaker(view(), ref.index, info) ? info.name : "-";
  }
  Recorded fail(BreakerRef ref) const {
    const BreakerEntry entry = shm::enter_breaker(view(), ref, {}, 0);
    if (!entry.granted) return Recorded::Nothing;
    return shm::finish_breaker(view(), ref, {}, entry.call, {.kind = Ended::Failure});
  }
  BreakerState state(BreakerRef ref) const {
    shm::BreakerInfo info;
    shm::read_breaker(view(), ref.index, info);
    return info.word.state;
  }
  std::unique_ptr<World> world;
};

TEST_F(BreakerPatternTest, ANameGetsABreakerOfItsOwnAtItsFirstUse) {
  start({bank(3)});
  EXPECT_EQ(shm::find_breaker(view(), "bank-a").index, shm::kNoLine);

  const ResolvedBreaker a = resolve("bank-a"), b = resolve("bank-b");

  EXPECT_NE(a.ref.index, b.ref.index);
  EXPECT_FALSE(a.shared);
  EXPECT_EQ(name_of(a.ref), "bank-a");
  EXPECT_EQ(name_of(b.ref), "bank-b");
  EXPECT_EQ(resolve("bank-a").ref.index, a.ref.index);
  EXPECT_EQ(shm::find_breaker(view(), "bank-a").index, a.ref.index);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(fail(a.ref), Recorded::Counted);
  EXPECT_EQ(state(a.ref), BreakerState::Open);
  EXPECT_EQ(state(b.ref), BreakerState::Closed);
  EXPECT_TRUE(shm::verify(view()).ok());
}

TEST_F(BreakerPatternTest, BeyondMaxInstancesThePatternsOwnAnswersAndIsCounted) {
  start({bank(2)});
  resolve("bank-a");
  resolve("bank-b");

  const ResolvedBreaker c = resolve("bank-c"), d = resolve("bank-d");

  EXPECT_TRUE(c.shared);
  EXPECT_EQ(c.ref.index, d.ref.index);
  EXPECT_EQ(name_of(c.ref), "bank-*");
  EXPECT_EQ(shm::sum_breaker_counters(view(), c.ref.index).of(BreakerCounter::BeyondInstances), 2U);
  EXPECT_FALSE(resolve("bank-a").shared);
}

TEST_F(BreakerPatternTest, AnExactNameBeatsAPatternAndTheLongerPatternTheShorter) {
  BreakerSettings exact = count_breaker(), longer = bank(2), end = bank(2);
  exact.name = "bank-north";
  longer.name = "bank-s*";
  end.name = "*-audit-log";
  start({bank(2), exact, longer, end});

  EXPECT_EQ(name_of(resolve("bank-north").ref), "bank-north");
  shm::BreakerInfo info;
  shm::read_breaker(view(), resolve("bank-north").ref.index, info);
  EXPECT_EQ(info.kind, shm::kNamedEntry);
  for (const char* name : {"bank-sun", "bank-sea", "bank-sky"}) resolve(name);
  EXPECT_TRUE(resolve("bank-sky").shared);           // the longer one's two places are taken ...
  EXPECT_FALSE(resolve("bank-moon").shared);         // ... and none of the shorter one's
  EXPECT_EQ(name_of(resolve("bank-audit-log").ref), "bank-audit-log");
  EXPECT_EQ(resolve("shop").ref.index, shm::kNoLine);
  EXPECT_EQ(resolve("bank-?").ref.index, shm::kNoLine);
  EXPECT_EQ(name_of(resolve("bank-*").ref), "bank-*");
}

TEST_F(BreakerPatternTest, AReloadKeepsThemAndChangesThemTogether) {
  start({bank(3)});
  const BreakerRef a = resolve("bank-a").ref;
  fail(a);
  fail(a);
  BreakerSettings changed = bank(5);
  changed.open_wait_ns = 7'000'000'000;

  publish({changed});

  EXPECT_EQ(resolve("bank-a").ref.index, a.index);
  shm::BreakerInfo info;
  ASSERT_TRUE(shm::read_breaker(view(), a.index, info));
  EXPECT_EQ(info.window.calls, 2U);
  EXPECT_EQ(info.numbers.open_wait_ns, 7'000'000'000U);
  for (const char* name : {"bank-b", "bank-c", "bank-d", "bank-e"}) {
    EXPECT_FALSE(resolve(name).shared) << name;
  }
  EXPECT_TRUE(resolve("bank-f").shared);
  publish({count_breaker()});                        // taken out: gone with its instances
  EXPECT_EQ(resolve("bank-a").ref.index, shm::kNoLine);
  EXPECT_FALSE(shm::enter_breaker(view(), a, {}, 0).granted);
}

TEST_F(BreakerPatternTest, WhatCannotFitOrBeToldApartIsRefusedWithTheRemedy) {
  start({bank(3)});
  const auto refusal = [&](const std::vector<BreakerSettings>& settings) {
    world->publisher().set_breakers(settings);
    const auto done = world->publisher().publish({}, 0);
    return done ? std::string{} : done.error().text();
  };
  EXPECT_EQ(refusal({bank(24)}),
            "25 breakers ('bank-*' takes 25: its max-instances and one), but memory was reserved "
            "for 24; set capacity.breakers to at least 25 and restart");
  BreakerSettings other = bank(2);
  other.name = "*k-one";
  EXPECT_NE(refusal({bank(2), other}).find("stands for the same names and is as long"),
            std::string::npos);
  EXPECT_FALSE(resolve("bank-a").shared);            // what was in force still is
}

TEST_F(BreakerPatternTest, ManyWhoAskAtOnceGetOnePlaceForEachName) {
  start({bank(16)});
  constexpr int kThreads = 4, kNames = 16;
  std::uint32_t found[kThreads][kNames] = {};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kNames; ++i) {
        const int n = (i * 5 + t) % kNames;
        found[t][n] = resolve("bank-" + std::to_string(n)).ref.index;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<std::uint32_t> places;
  for (int n = 0; n < kNames; ++n) {
    for (int t = 1; t < kThreads; ++t) EXPECT_EQ(found[t][n], found[0][n]) << n;
    EXPECT_EQ(name_of({found[0][n], 0}), "bank-" + std::to_string(n));
    places.insert(found[0][n]);
  }
  EXPECT_EQ(places.size(), 16U);
}

TEST_F(BreakerPatternTest, TwoPatternsClashOnlyWhereOneNameFitsBoth) {
  EXPECT_TRUE(rule::patterns_clash("a*", "*b"));
  EXPECT_TRUE(rule::patterns_clash("bank-*", "*-bank"));
  EXPECT_FALSE(rule::patterns_clash("bank-*", "shop-*"));
  EXPECT_FALSE(rule::patterns_clash("bank-*", "bank-n*"));
  EXPECT_FALSE(rule::patterns_clash("*-a", "*-b"));
  EXPECT_FALSE(rule::patterns_clash("bank", "bank-*"));
  EXPECT_TRUE(rule::pattern_stands_for("bank-*", "bank-"));
  EXPECT_FALSE(rule::pattern_stands_for("ab*ba", "aba"));
}

}  // namespace
}  // namespace cutwater::test
