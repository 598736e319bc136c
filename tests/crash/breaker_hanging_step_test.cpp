// SPDX-License-Identifier: Apache-2.0
// Calls in flight (count-hanging-calls), killed at any instruction: the cell is held or free, the
// call counts once or not at all, and what a dead process held comes back.
#include "crash/stepper.hpp"
#include "shm/breaker/detail.hpp"
#include "stress/breaker_world.hpp"

namespace cutwater::test {
namespace {

using rule::BreakerState;
using shm::BreakerEntry;
using shm::Ended;

constexpr std::int64_t kMs = kMillisecond;
constexpr std::int64_t kSlow = 100 * kMs;

rule::BreakerSettings hanging_breaker(std::uint32_t minimum) {
  rule::BreakerSettings s = count_breaker({4, minimum, 1});
  s.failure_rate_ppm = rule::kOffPpm;
  s.slow_rate_ppm = rule::kPpm;
  s.slow_duration_ns = kSlow;
  s.count_hanging = true;
  return s;
}

class BreakerHangingStep : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Stepper::unavailable(); !why.empty()) GTEST_SKIP() << why;
  }

  /// As a killed process's row looks: in memory only, so that the next start finds it alive.
  static void kill_row(BreakerWorld& w, std::uint32_t process) {
    const shm::RowGrant row = w.row(process);
    w.view().rows[row.index].word =
        shm::pack_row({row.generation, shm::RowKind::Process, shm::RowState::Dead});
  }

  static std::uint32_t held(BreakerWorld& w) {
    shm::BreakerParts parts;
    EXPECT_TRUE(shm::read_parts(w.view(), w.ref(), parts));
    std::uint32_t held = 0;
    for (std::uint32_t i = 0; i < parts.hanging_count; ++i) {
      held += shm::unpack_probe(load16(parts.hanging + i)).state == shm::ProbeState::Held;
    }
    return held;
  }
};

TEST_F(BreakerHangingStep, EnterThatTakesACell) {
  BreakerWorld w(hanging_breaker(4));
  kill_everywhere(w.world(), {"enter that takes a cell", [&](World&) {},
                              [&](World&) { w.enter(1); },
                              [&](World&, bool finished) {
                                EXPECT_LE(held(w), 1U);
                                EXPECT_TRUE(!finished || held(w) == 1);
                                kill_row(w, 1);
                                w.tick();
                                EXPECT_EQ(held(w), 0U);
                                EXPECT_EQ(w.run("S"), "S");
                                EXPECT_EQ(w.info().window.calls, 1U);
                              }});
}

TEST_F(BreakerHangingStep, ReturnOfACallThatHung) {
  BreakerWorld w(hanging_breaker(2));
  BreakerEntry call;
  kill_everywhere(w.world(), {"return of a call that hung",
                              [&](World&) {
                                call = w.enter(1);
                                w.pass(kSlow + kMs);
                                w.tick();
                                EXPECT_EQ(w.info().hanging, 1U);
                              },
                              [&](World&) { w.finish(call, Ended::Success, 1); },
                              [&](World&, bool finished) {
                                const std::uint64_t slow = w.info().window.slow;
                                EXPECT_LE(slow + w.info().hanging, 1U);
                                EXPECT_TRUE(!finished || slow == 1);
                                w.tick();
                                EXPECT_EQ(w.state(), BreakerState::Closed);   // never two of two
                                EXPECT_TRUE(w.enter(2).granted);
                                EXPECT_EQ(w.state(), BreakerState::Closed);
                              }});
}

TEST_F(BreakerHangingStep, EnterThatOpensAndReclaims) {
  BreakerWorld w(hanging_breaker(2));
  kill_everywhere(w.world(), {"enter that finds two that hang and one dead",
                              [&](World&) {
                                w.enter(0);
                                w.enter(1);
                                w.enter(3);
                                kill_row(w, 3);
                                w.pass(kSlow + kMs);
                              },
                              [&](World&) { w.enter(2); },
                              [&](World&, bool finished) {
                                EXPECT_TRUE(!finished || w.state() == BreakerState::Open);
                                w.tick();
                                EXPECT_EQ(w.state(), BreakerState::Open);
                                EXPECT_TRUE(w.info().word.announced);
                                EXPECT_LE(held(w), 2U);
                                w.pass(1'001 * kMs);
                                w.run("S");
                                EXPECT_EQ(w.state(), BreakerState::Closed);
                                EXPECT_EQ(w.info().hanging, 0U);
                              }});
}

}  // namespace
}  // namespace cutwater::test
