// SPDX-License-Identifier: Apache-2.0
// T3, T5, T7 by chance: three callers are moved from stop to stop in random order, while the clock
// moves on, places come and go and reloads happen. 10 000 schedules of each kind, from seeds, so
// that each can be played again. P1 must hold in every one: no token of a key is given twice.
#include <gtest/gtest.h>

#include <array>

#include "stress/actor.hpp"
#include "stress/ledger.hpp"
#include "stress/world.hpp"

namespace cutwater::test {
namespace {

constexpr std::uint64_t kSchedules = 10'000;
constexpr int kCallers = 3;
constexpr std::uint64_t kAsks = 2;               // of a caller, each with its undo perhaps

struct Kind {
  Rate rate;
  std::uint64_t burst;
  std::int64_t longest_ns;             ///< the clock moves by at most this at once
  bool crowded;                        ///< the table is full to begin with
  bool reloads;
};

class RandomSchedule : public testing::Test {
 protected:
  struct Answered {
    std::uint64_t owner;
    DecisionData data;
    bool undone = false;
  };

  void play_all(const Kind& kind, std::uint64_t seed) {
    world_ = std::make_unique<World>(settings(kind, kind.burst));
    api_ = world_->ref("api");
    if (kind.crowded) world_->crowd("churn", 1, 10'000);
    const Snapshot fresh = world_->save();
    std::uint64_t stops = 0, grants = 0;
    for (std::uint64_t n = 0; n < kSchedules && !HasFailure(); ++n) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", schedule " + std::to_string(n));
      world_->restore(fresh);
      world_->adopt();
      Chance chance(spread(seed) + n);
      stops += play(kind, chance);
      grants += judge();
    }
    std::printf("%lu schedules, seed %lu: %lu stops, %lu grants\n",
                static_cast<unsigned long>(kSchedules), static_cast<unsigned long>(seed),
                static_cast<unsigned long>(stops), static_cast<unsigned long>(grants));
  }

 private:
  static std::vector<rule::LimitSettings> settings(const Kind& kind, std::uint64_t burst) {
    return {limit("api", kind.rate, burst), limit("churn", {1'000, kSecond}, 1)};
  }

  // What one caller does; the first key is everybody's.
  void ask(std::vector<Answered>& answers, std::uint64_t seed) {
    Chance chance(seed);
    for (std::uint64_t i = 0; i < kAsks; ++i) {
      const std::uint64_t number = chance.one_in(4) ? 8 : 7;
      Answered answer{number, world_->take(api_, key(number))};
      if (answer.data.reason == Reason::Allowed && chance.one_in(4)) {
        answer.undone = undo(world_->view(), answer.data);
      }
      answers.push_back(answer);
    }
  }

  std::uint64_t play(const Kind& kind, Chance& chance) {
    for (auto& answers : answers_) answers.clear();
    std::array<std::unique_ptr<Actor>, kCallers> actors;
    for (int i = 0; i < kCallers; ++i) {
      const std::uint64_t life = chance();
      actors[i] = std::make_unique<Actor>([this, i, life] { ask(answers_[i], life); });
    }
    std::uint64_t stops = 0;
    std::uint64_t living = kCallers;
    for (int moves = 0; living > 0 && moves < 400; ++moves) {
      switch (chance.below(8)) {
        case 0:
          world_->pass(static_cast<std::int64_t>(chance.below(kind.longest_ns)));
          break;
        case 1:
          world_->take("churn", key(20'000 + chance.below(40)));
          break;
        case 2:
          if (!kind.reloads || !chance.one_in(8)) break;
          (void)world_->publisher().publish(settings(kind, 1 + chance.below(3)), 0);
          break;
        default: {
          Actor& actor = *actors[chance.below(kCallers)];
          if (actor.over()) break;
          ++stops;
          living -= !actor.step();
        }
      }
    }
    for (auto& actor : actors) actor->finish();
    return stops;
  }

  std::uint64_t judge() {
    Ledger ledger;
    for (const auto& answers : answers_) {
      for (const Answered& answer : answers) {
        if (!answer.undone) ledger.add(answer.owner, answer.data);
      }
    }
    // And what is left: the next caller may take only what nobody has.
    for (const std::uint64_t number : {7, 8}) {
      for (int i = 0; i < 20; ++i) {
        const DecisionData d = world_->take(api_, key(number));
        if (d.reason != Reason::Allowed) break;
        ledger.add(number, d);
      }
      EXPECT_LE(world_->members_of(key(number)), 1U);
    }
    EXPECT_EQ(ledger.fault(), "");
    EXPECT_EQ(world_->verify(), "");
    return ledger.grants();
  }

  std::unique_ptr<World> world_;
  shm::LimitRef api_;
  std::array<std::vector<Answered>, kCallers> answers_;
};

TEST_F(RandomSchedule, FirstSight) {
  play_all({{1, kSecond}, 1, 800 * kMillisecond, false, false}, 1);
}
TEST_F(RandomSchedule, FirstSightWithinOneTickOfAClaim) {
  play_all({{10'000'000, kSecond}, 2, 400, false, false}, 2);
}
TEST_F(RandomSchedule, WithoutAPlace) {
  play_all({{1, kSecond}, 2, 600 * kMillisecond, true, false}, 3);
}
TEST_F(RandomSchedule, WithReloads) {
  play_all({{1, kHour}, 2, kHour, true, true}, 4);
}

}  // namespace
}  // namespace cutwater::test
