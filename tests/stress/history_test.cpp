// SPDX-License-Identifier: Apache-2.0
// T2, T9, T10 and item 10 of the promises: random histories on the stepped clock in the smallest
// table, with more keys than places. 10^5 of each, seeds fixed and printed with a failure.
#include <gtest/gtest.h>

#include <cmath>

#include "stress/ledger.hpp"
#include "stress/world.hpp"

namespace cutwater::test {
namespace {

constexpr std::uint64_t kHistories = 100'000;
constexpr std::uint64_t kKeys = 44;              // the table has 32 slots

// One history is played in a world whose bytes are put back afterwards.
class History : public testing::Test {
 protected:
  template <class Play>
  void play_all(World& world, std::uint64_t seed, Play play) {
    const Snapshot fresh = world.save();
    for (std::uint64_t n = 0; n < kHistories && !HasFailure(); ++n) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", history " + std::to_string(n));
      Chance chance(spread(seed) + n);
      world.restore(fresh);
      play(chance);
    }
    std::printf("%lu histories, seed %lu, %lu decisions, %lu granted, %lu undone, %lu reloads\n",
                static_cast<unsigned long>(kHistories), static_cast<unsigned long>(seed),
                static_cast<unsigned long>(decisions_), static_cast<unsigned long>(granted_),
                static_cast<unsigned long>(undone_), static_cast<unsigned long>(reloads_));
  }

  std::uint64_t decisions_ = 0, granted_ = 0, undone_ = 0, reloads_ = 0;
};

struct Receipt {
  std::uint64_t owner;
  DecisionData data;
};

// covers: C015, C026, C027 (random histories)
TEST_F(History, SlicesStayDisjoint) {
  constexpr Rate kRates[] = {{1, kHour}, {3, kSecond}, {1'000, kSecond}};
  const char* const kNames[] = {"slow", "middle", "fast"};
  std::vector<rule::LimitSettings> limits;
  for (int i = 0; i < 3; ++i) limits.push_back(limit(kNames[i], kRates[i], 4, kSecond));
  World world(limits);
  const shm::LimitRef refs[] = {world.ref("slow"), world.ref("middle"), world.ref("fast")};
  std::vector<Receipt> receipts;
  Ledger ledger;

  play_all(world, 1, [&](Chance& chance) {
    world.adopt();
    receipts.clear();
    ledger.clear();
    auto settings = limits;
    const std::uint64_t steps = 10 + chance.below(50);
    const std::int64_t tick = std::int64_t{1} << (10 + chance.below(22));
    for (std::uint64_t step = 0; step < steps; ++step) {
      const std::uint64_t which = chance.below(3), number = chance.below(kKeys);
      const std::uint64_t owner = which * kKeys + number;
      const shm::LimitRef ref = refs[which];
      ++decisions_;
      switch (chance.below(10)) {
        case 0: world.pass(static_cast<std::int64_t>(chance.below(tick))); break;
        case 1: {
          if (receipts.empty()) break;
          Receipt& receipt = receipts[chance.below(receipts.size())];
          if (receipt.data.receipt != cutwater::Receipt::None && undo(world.view(), receipt.data)) {
            ledger.remove(receipt.owner, receipt.data);
            ++undone_;
          }
          receipt.data.receipt = cutwater::Receipt::None;
          break;
        }
        case 2: {
          if (!chance.one_in(8)) break;
          settings[which].windows[0].burst = 1 + chance.below(8);  // same scale: the axis goes on
          world.publish(settings);
          ++reloads_;
          break;
        }
        case 3: {                                            // a place in line
          const auto wait = static_cast<std::int64_t>(chance.below(2 * kSecond));
          const DecisionData d = world.take(ref, key(owner), 1 + chance.below(3), wait);
          ledger.add(owner, d, true);
          if (d.reason == Reason::Allowed) {
            ++granted_;
            EXPECT_LE(Decision{d}.starts_in().count(), std::min(wait, kSecond));
            receipts.push_back({owner, d});
          }
          break;
        }
        default: {                                           // also with an old reading
          const bool old = chance.one_in(3);
          const std::int64_t age = old ? static_cast<std::int64_t>(chance.below(tick)) : 0;
          const DecisionData d = world.take_at(world.now() - age, ref, key(owner),
                                               1 + chance.below(3));
          ledger.add(owner, d);
          if (d.reason == Reason::Allowed) {
            ++granted_;
            receipts.push_back({owner, d});
          }
        }
      }
    }
    ASSERT_EQ(ledger.fault(), "");
    ASSERT_EQ(world.view().stats_control->contention, 0U);
  });
  EXPECT_EQ(world.verify(), "");
}

// Reloads to any rate and burst: what is given between any two moments is at most the burst in
// force at the later one and what the rates in force in between brought.
TEST_F(History, DebtsSurviveEveryReload) {
  constexpr Rate kRates[] = {{1, kHour}, {7, kSecond}, {10'000'000, kSecond}, {1, 24 * kHour},
                             {9'973, kSecond}};
  World world({limit("api", kRates[0], 5)}, {.limits = 8});

  play_all(world, 2, [&](Chance& chance) {
    world.adopt();
    Rate rate = kRates[0];
    std::uint64_t burst = 5;
    long double given = 0, brought = 0, lowest = 0;
    std::int64_t then = world.now();
    const auto advance = [&] {
      const std::int64_t now = world.now();
      brought += static_cast<long double>(now - then) * rate.count / rate.period_ns;
      then = now;
      lowest = std::min(lowest, given - brought);
    };
    for (std::uint64_t step = 0, steps = 5 + chance.below(25); step < steps; ++step) {
      ++decisions_;
      switch (chance.below(8)) {
        case 0:
          world.pass(static_cast<std::int64_t>(chance.below(std::uint64_t{1} << chance.below(40))));
          advance();
          break;
        case 1: {
          const Rate next = kRates[chance.below(5)];
          const std::uint64_t next_burst = 1 + chance.below(20);
          if (!world.publisher().publish({limit("api", next, next_burst)}, 0)) break;
          ++reloads_;
          advance();                                         // the reload moved the clock by 1
          rate = next;
          burst = next_burst;
          break;
        }
        case 2: world.publisher().sweep(16); break;
        default: {
          const std::uint64_t cost = 1 + chance.below(6);
          if (world.take("api", key(7), cost).reason != Reason::Allowed) break;
          ++granted_;
          advance();
          given += cost;
          ASSERT_LE(given - brought - lowest, burst + 1e-6L) << "more than burst and rate";
        }
      }
    }
    ASSERT_LE(world.members_of(key(7)), 1U);
  });
}

// covers: C014 (random cases)
TEST_F(History, TheWaitIsExact) {
  World world({limit("api", {1, kSecond}, 4)});
  constexpr Rate kRates[] = {{1, 24 * kHour}, {7, kSecond}, {9'973, kSecond}, {1'000'003, kSecond},
                             {10'000'000, kSecond}, {100, 60 * kSecond}, {3, kSecond}};
  std::uint64_t checked = 0;

  play_all(world, 3, [&](Chance& chance) {
    world.adopt();
    while (!world.publisher().sweep(64)) {}
    const std::uint64_t burst = 1 + chance.below(50);
    world.publish({limit("api", kRates[chance.below(7)], burst)});
    for (int i = 0; i < 6; ++i) {
      world.pass(static_cast<std::int64_t>(chance.below(std::uint64_t{1} << chance.below(36))));
      const std::uint64_t cost = 1 + chance.below(burst);
      const DecisionData d = world.take("api", key(7), cost);
      ++decisions_;
      if (d.reason == Reason::Allowed) {
        ++granted_;
        continue;
      }
      const std::int64_t wait = Decision{d}.retry_after().count();
      ASSERT_GT(wait, 0);
      ++checked;
      if (wait > 1) {
        world.pass(wait - 1);
        ASSERT_EQ(world.take("api", key(7), cost).reason, Reason::Limit) << "1 ns early";
        world.pass(1);
      } else {
        world.pass(1);
      }
      ASSERT_EQ(world.take("api", key(7), cost).reason, Reason::Allowed) << "when it was said";
    }
  });
  EXPECT_GE(checked, 100'000U);
  std::printf("%lu waits asked again a nanosecond early and when due\n",
              static_cast<unsigned long>(checked));
}

TEST_F(History, AChargeOfManyIsManyCharges) {
  World world({limit("api", {9'973, kSecond}, 64), limit("other", {9'973, kSecond}, 64)});

  play_all(world, 4, [&](Chance& chance) {
    for (int i = 0; i < 4; ++i) {
      world.pass(static_cast<std::int64_t>(chance.below(std::uint64_t{1} << chance.below(30))));
      const std::uint64_t n = 1 + chance.below(20);
      const DecisionData whole = world.take("api", key(7), n);
      ++decisions_;
      if (whole.reason != Reason::Allowed) {
        for (std::uint64_t k = 1; k < n; ++k) {
          if (world.peek("other", key(7), k).reason != Reason::Allowed) break;
          ASSERT_LT(k, n);
        }
        ASSERT_EQ(world.peek("other", key(7), n).reason, Reason::Limit);
        continue;
      }
      ++granted_;
      DecisionData last;
      for (std::uint64_t k = 0; k < n; ++k) {
        last = world.take("other", key(7));
        ASSERT_EQ(last.reason, Reason::Allowed);
      }
      ASSERT_EQ(last.level, whole.level);
      ASSERT_EQ(Decision{last}.remaining(), Decision{whole}.remaining());
    }
  });
}

// covers: C010, C061 (every byte of the three files)
TEST_F(History, RefusalsAndLooksChangeNoByte) {
  World world({limit("api", {3, kSecond}, 4), limit("slow", {1, kHour}, 2)}, {.limits = 8});
  for (std::uint64_t n = 0; n < 20; ++n) world.take("slow", key(n), 1 + n % 2);
  std::uint64_t refused = 0;

  play_all(world, 5, [&](Chance& chance) {
    for (std::uint64_t n = 0; n < 8; ++n) {
      world.take("api", key(chance.below(6)), 1 + chance.below(4));
    }
    if (chance.one_in(4)) {
      world.adopt();
      while (!world.publisher().sweep(64)) {}
      world.publish({limit("api", {3, kHour}, 2), limit("slow", {1, kHour}, 2)});
      ++reloads_;
    }
    Snapshot before = world.save();
    for (int i = 0; i < 10; ++i) {
      const char* name = chance.one_in(2) ? "api" : "slow";
      const shm::KeyHash hash = key(chance.below(kKeys));
      ++decisions_;
      if (chance.one_in(3)) {
        world.peek(name, hash, chance.below(6));
      } else if (world.take(name, hash, 1 + chance.below(6)).reason == Reason::Allowed) {
        ++granted_;
        before = world.save();
        continue;
      } else {
        ++refused;
      }
      ASSERT_TRUE(world.same(before));
    }
  });
  EXPECT_GE(refused, 100'000U);
}

}  // namespace
}  // namespace cutwater::test
