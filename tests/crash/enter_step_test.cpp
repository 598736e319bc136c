// SPDX-License-Identifier: Apache-2.0
// Admission in one step, killed at any instruction (T17): place and probe come back with the dead,
// at most the cost of what was charged is lost and refills, and others go on.
#include "crash/stepper.hpp"
#include "stress/enter_world.hpp"

namespace cutwater::test {
namespace {

using rule::BreakerState;
using shm::Ended;

class EnterStep : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Stepper::unavailable(); !why.empty()) GTEST_SKIP() << why;
    make();
  }
  void make() { w = std::make_unique<EnterWorld>(EnterSetup{}); }

  /// What process 0 held comes back when it is dead, and somebody else is admitted at once.
  void expect_comes_back(std::uint64_t one_least) {
    w->kill(0);
    w->tick();
    EXPECT_EQ(w->bulkhead_info().in_use, 0U);
    EXPECT_EQ(w->bulkhead_info().waiting, 0U);
    EXPECT_EQ(w->breaker_info().probes_held, 0U);
    EXPECT_GE(w->tokens(0), one_least);
    EXPECT_GE(w->tokens(1), 2U);
    w->pass(20 * kMillisecond);
    EXPECT_EQ(w->tokens(0), 2U) << "what was lost refills";
    const auto other = w->ask(1);
    w->begin(*other);
    EXPECT_TRUE(other->granted());
    w->finish(*other, Ended::Success);
    EXPECT_EQ(w->breaker_info().word.state, BreakerState::Closed);
  }

  std::unique_ptr<EnterWorld> w;
};

TEST_F(EnterStep, PlaceTokensAndProbe) {
  std::unique_ptr<EnterCase> one;
  kill_everywhere(w->world(), {"an admission with everything",
                               [&](World&) {
                                 w->make_half_open();
                                 one = w->ask(0);
                               },
                               [&](World&) { w->begin(*one); },
                               [&](World&, bool finished) {
                                 EXPECT_TRUE(!finished || w->bulkhead_info().in_use == 1);
                                 expect_comes_back(1);
                               }});
}

TEST_F(EnterStep, ACallThatIsNotMadeGivesEverythingBack) {
  std::unique_ptr<EnterCase> one;
  kill_everywhere(w->world(), {"an admission that gives everything back",
                               [&](World&) {
                                 w->make_half_open();
                                 one = w->ask(0);
                                 w->begin(*one);
                               },
                               [&](World&) {
                                 shm::undo_enter(w->view(), w->caller(0), one->entering.ask,
                                                 one->answer);
                               },
                               [&](World&, bool finished) {
                                 expect_comes_back(finished ? 2 : 1);
                               }});
}

TEST_F(EnterStep, TheWayIntoTheLineAndOut) {
  std::unique_ptr<EnterCase> holder, one;
  const auto prepare = [&](World&) {
    w->make_half_open();
    holder = w->ask(2, {.breaker = false, .cost = {0, 0}});
    w->begin(*holder);
    one = w->ask(0, {.max_wait_ns = -1});
  };
  const auto recover = [&](World&, bool) {
    shm::leave_bulkhead(w->view(), w->bulkhead(), w->caller(2).bulkhead(), holder->answer.place);
    expect_comes_back(1);
  };
  kill_everywhere(w->world(), {"an admission that joins the line", prepare,
                               [&](World&) { w->begin(*one); }, recover});
  make();
  kill_everywhere(w->world(), {"an admission whose caller is gone",
                               [&](World& world) {
                                 prepare(world);
                                 w->begin(*one);
                               },
                               [&](World&) {
                                 shm::abandon_enter(w->view(), w->caller(0), one->entering);
                               },
                               recover});
  make();
  kill_everywhere(w->world(), {"an admission that finds its place handed over",
                               [&](World& world) {
                                 prepare(world);
                                 w->begin(*one);
                                 w->finish(*holder);
                               },
                               [&](World&) { w->resume(*one); },
                               [&](World&, bool) { expect_comes_back(1); }});
}

}  // namespace
}  // namespace cutwater::test
