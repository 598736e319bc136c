// SPDX-License-Identifier: Apache-2.0
// The checker itself, on models whose answers are known by counting.
#include "model/explore.hpp"

#include <gtest/gtest.h>

namespace cutwater::model {
namespace {

// Two actors count to three each, one step at a time; what they do there is up to the test.
struct CountState {
  u8 at[2];
  u8 killed;
};

class Counting : public Model<CountState> {
 public:
  CountState initial() const override { return {}; }

  void successors(const CountState& from, Sink& sink) override {
    for (int k = 0; k < 2; ++k) {
      if (from.killed == k + 1) continue;
      if (from.at[k] < 3) {
        go(from, sink, {small(k), "count", true}, [&](CountState& next) { step(next, k); });
      } else {
        last_steps(from, sink, k);
      }
      if (from.killed == 0 && kills_) {
        go(from, sink, {kWorld, "kill", false}, [&](CountState& next) {
          next.killed = small(k + 1);
        });
      }
    }
  }

 protected:
  virtual void step(CountState& state, int k) { ++state.at[k]; }
  virtual void last_steps(const CountState&, Sink&, int) {}
  bool kills_ = false;
};

TEST(Explore, VisitsEveryInterleavingOnce) {
  Counting model;

  const Outcome outcome = explore(model);

  EXPECT_EQ(outcome.broken, nullptr);
  EXPECT_FALSE(outcome.gave_up);
  EXPECT_EQ(outcome.states, 16u);  // 4 x 4
  EXPECT_EQ(outcome.steps, 24u);   // 3 x 4 of each
}

TEST(Explore, ReportsTheShortestRunToABrokenStep) {
  class Meets : public Counting {
    void step(CountState& state, int k) override {
      ++state.at[k];
      if (state.at[0] == 1 && state.at[1] == 2) fail("met");
    }
  } model;

  const Outcome outcome = explore(model);

  EXPECT_STREQ(outcome.broken, "met");
  EXPECT_EQ(outcome.trace.size(), 3u);
  EXPECT_EQ(outcome.trace.back().substr(3), "count");
}

TEST(Explore, ChecksEveryStateAndEveryFinalState) {
  class Checks : public Counting {
   public:
    int seen = 0;
    int final_seen = 0;
    Checks() { kills_ = true; }
    void check(const CountState&) override { ++seen; }
    void check_final(const CountState& state) override {
      ++final_seen;
      for (int k = 0; k < 2; ++k) EXPECT_TRUE(state.at[k] == 3 || state.killed == k + 1);
    }
  } model;

  const Outcome outcome = explore(model);

  EXPECT_EQ(outcome.states, 48u);  // 16 with nobody killed, 16 with either
  EXPECT_EQ(model.seen, 48);
  EXPECT_EQ(model.final_seen, 9);  // (3, 3); the survivor at 3, the other anywhere: 4 + 4
}

TEST(Explore, ReportsABrokenFinalStateWithItsRun) {
  class Ends : public Counting {
    void check_final(const CountState&) override { fail("ended"); }
  } model;

  const Outcome outcome = explore(model);

  EXPECT_STREQ(outcome.broken, "ended");
  EXPECT_EQ(outcome.trace.size(), 6u);
}

TEST(Explore, FindsATrapInWhichActorsRunInCircles) {
  class Circles : public Counting {
    void last_steps(const CountState& from, Sink& sink, int k) override {
      if (from.at[1 - k] != 3) return;
      go(from, sink, {small(k), "over again", true}, [&](CountState& next) { next.at[k] = 2; });
    }
  } model;

  const Outcome outcome = explore(model);

  EXPECT_STREQ(outcome.broken, "live actors run in circles: no way to an end");
}

TEST(Explore, TakesAStepThatChangesNothingForWaiting) {
  class Waits : public Counting {
   public:
    int final_seen = 0;
    void check_final(const CountState&) override { ++final_seen; }

   private:
    void last_steps(const CountState& from, Sink& sink, int k) override {
      go(from, sink, {small(k), "wait", true}, [](CountState&) {});
    }
  } model;

  const Outcome outcome = explore(model);

  EXPECT_EQ(outcome.broken, nullptr);
  EXPECT_EQ(model.final_seen, 1);
}

TEST(Explore, GivesUpAboveItsLimitAndClaimsNothing) {
  Counting model;

  EXPECT_TRUE(explore(model, 10).gave_up);
  EXPECT_FALSE(explore(model, 16).gave_up);
}

}  // namespace
}  // namespace cutwater::model
