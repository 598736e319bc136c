// SPDX-License-Identifier: Apache-2.0
// Breakers, killed at any instruction (T17), and other parties who act between any two of them: the
// outcome counts or does not, a transition is whole and told once, and nobody is stuck.
#include <sys/mman.h>

#include "crash/stepper.hpp"
#include "shm/breaker/story.hpp"
#include "shm/breaker/trips.hpp"
#include "stress/breaker_world.hpp"

namespace cutwater::test {
namespace {

using rule::BreakerSettings;
using rule::BreakerState;
using shm::BreakerEntry;
using shm::Ended;
using shm::EventKind;
using shm::Steer;

constexpr std::int64_t kMs = kMillisecond;

class BreakerStep : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Stepper::unavailable(); !why.empty()) GTEST_SKIP() << why;
  }

  static BreakerSettings settings(bool time, BreakerSettings s = count_breaker({4, 4, 1})) {
    s.probe_timeout_ns = 100'000'000;
    if (time) {
      s.window_type = rule::WindowType::TimeBased;
      s.window_span_ns = 400'000'000;
      s.window_slots = 4;
    }
    return s;
  }

  /// Every transition was told, once, in order.
  static void expect_told(BreakerWorld& w) {
    w.tick();
    EXPECT_TRUE(w.info().word.announced);
    // A record whose writer was killed is passed over once a later one is that much younger.
    w.pass(2 * shm::kUnstampedPatienceNs);
    shm::Event later;
    later.kind = EventKind::LimitReset;
    shm::append_event(w.view(), later);
    std::uint32_t next = 2;
    for (const shm::Event& event : w.events(EventKind::BreakerMoved)) {
      EXPECT_EQ(event.epoch, next++);
    }
    EXPECT_EQ(next, w.info().word.epoch + 1);
  }

  /// One fresh caller brings it back to CLOSED (B6).
  static void expect_comes_back(BreakerWorld& w) {
    for (int i = 0; i < 4 && w.state() != BreakerState::Closed; ++i) {
      w.pass(1'200 * kMs);
      w.run("S");
      w.run("S");
    }
    EXPECT_EQ(w.state(), BreakerState::Closed);
    EXPECT_EQ(w.run("S"), "S");
    expect_told(w);
  }
};

TEST_F(BreakerStep, RecordOfAnOutcome) {
  for (const bool time : {false, true}) {
    BreakerWorld w(settings(time));
    BreakerEntry call;
    kill_everywhere(w.world(), {time ? "record into a time window" : "record into a count window",
                                [&](World&) {
                                  w.run("F");
                                  call = w.enter();
                                },
                                [&](World&) { w.finish(call, Ended::Success); },
                                [&](World&, bool finished) {
                                  EXPECT_EQ(w.run("S"), "S");
                                  const std::uint64_t calls = w.info().window.calls;
                                  EXPECT_TRUE(calls == 3 || (!finished && calls == 2)) << calls;
                                  EXPECT_EQ(w.info().window.failures, 1U);
                                  EXPECT_EQ(w.state(), BreakerState::Closed);
                                }});
  }
}

TEST_F(BreakerStep, AdvanceOfATimeWindow) {
  BreakerWorld w(settings(true));
  BreakerEntry call;
  kill_everywhere(w.world(), {"record that opens later slots",
                              [&](World&) {
                                w.run("F");
                                call = w.enter();
                                w.pass(250 * kMs);
                              },
                              [&](World&) { w.finish(call, Ended::Success); },
                              [&](World&, bool finished) {
                                w.run("S");
                                const std::uint64_t calls = w.info().window.calls;
                                EXPECT_TRUE(calls == 3 || (!finished && calls == 2)) << calls;
                                w.pass(600 * kMs);
                                w.run("S");
                                EXPECT_EQ(w.info().window.calls, 1U);
                              }});
}

/// And its record is whole or skipped, however its writer ended.
TEST_F(BreakerStep, Trip) {
  WorldOptions options;
  options.stripes = 1;                               // few to add up, one instruction at a time
  for (const bool time : {false, true}) {
    BreakerWorld w(settings(time), 4, options);
    BreakerEntry call;
    kill_everywhere(w.world(), {time ? "trip of a time window" : "trip of a count window",
                                [&](World&) {
                                  w.run("FFF");
                                  call = w.enter();
                                },
                                [&](World&) { w.finish(call, Ended::Failure); },
                                [&](World&, bool finished) {
                                  const auto trips = shm::read_trips(w.view(), "", 4);
                                  EXPECT_LE(trips.size(), 1U);
                                  EXPECT_TRUE(!finished || trips.size() == 1);
                                  for (const shm::BreakerTrip& trip : trips) {
                                    EXPECT_EQ(trip.window.failures, 4U);
                                    EXPECT_EQ(trip.classes.size(), 1U);
                                  }
                                  w.tick();
                                  const bool open = w.state() == BreakerState::Open;
                                  EXPECT_TRUE(open || !finished);
                                  EXPECT_TRUE(open || w.info().window.calls == 3);
                                  expect_told(w);
                                  expect_comes_back(w);
                                }});
  }
}

/// It changes nothing but the count of late ones; its time is not counted.
TEST_F(BreakerStep, OutcomeThatComesTooLate) {
  BreakerWorld w(settings(false));
  BreakerEntry call;
  const auto timed = [&] { return shm::sum_breaker_counters(w.view(), w.ref().index); };
  kill_everywhere(w.world(), {"outcome of a call of before",
                              [&](World&) {
                                call = w.enter();
                                w.pass(30 * kMs);
                                w.run("FFFF");
                              },
                              [&](World&) { w.finish(call, Ended::Failure); },
                              [&](World&, bool) {
                                EXPECT_EQ(w.state(), BreakerState::Open);
                                std::uint32_t calls = 0;
                                for (const std::uint32_t n : timed().durations) calls += n;
                                EXPECT_EQ(calls, 4U);
                                expect_told(w);
                                expect_comes_back(w);
                              }});
}

TEST_F(BreakerStep, AGoodOutcomeThatMakesEnoughToOpen) {
  WorldOptions options;
  options.stripes = 1;
  BreakerWorld w(settings(false), 4, options);
  BreakerEntry call;
  kill_everywhere(w.world(), {"record of the good outcome that opens",
                              [&](World&) {
                                w.run("FFS");
                                call = w.enter();
                              },
                              [&](World&) { w.finish(call, Ended::Success); },
                              [&](World&, bool finished) {
                                // Two of four: seen by whoever recorded it, or by the next one.
                                if (!finished && w.state() == BreakerState::Closed) w.run("S");
                                EXPECT_EQ(w.state(), BreakerState::Open);
                                expect_comes_back(w);
                              }});
}

TEST_F(BreakerStep, LookOfTheLastMinute) {
  BreakerWorld w(settings(false));
  const std::uint32_t index = w.ref().index;
  kill_everywhere(w.world(), {"look at a breaker's durations",
                              [&](World&) { w.run("SS"); },
                              [&](World&) { shm::look_at_minute(w.view(), index); },
                              [&](World&, bool finished) {
                                w.run("S");
                                shm::BreakerFigures figures;
                                shm::read_breaker_figures(w.view(), index, figures);
                                EXPECT_EQ(figures.total.calls, 3U);
                                EXPECT_EQ(figures.minute.calls, figures.minute.span_ns != 0);
                                EXPECT_TRUE(!finished || figures.minute.calls == 1);
                                w.pass(11'000 * kMs);
                                EXPECT_TRUE(shm::look_at_minute(w.view(), index));
                              }});
}

TEST_F(BreakerStep, OpenToHalfOpenAndTheTakeOfAProbe) {
  BreakerWorld w(settings(false));
  kill_everywhere(w.world(), {"enter at the deadline: half-open, take a probe",
                              [&](World&) {
                                w.run("FFFF");
                                w.pass(1'001 * kMs);
                              },
                              [&](World&) { w.enter(0); },
                              [&](World&, bool) {
                                EXPECT_LE(w.info().probes_held, 1U);
                                expect_comes_back(w);
                              }});
}

TEST_F(BreakerStep, ResultOfTheLastProbe) {
  for (const bool good : {true, false}) {
    BreakerWorld w(settings(false));
    BreakerEntry probe;
    kill_everywhere(w.world(), {good ? "good result of the last probe" : "bad result of a probe",
                                [&](World&) {
                                  w.run("FFFF");
                                  w.pass(1'001 * kMs);
                                  probe = w.enter(0);
                                },
                                [&](World&) {
                                  w.finish(probe, good ? Ended::Success : Ended::Failure, 0);
                                },
                                [&](World&, bool finished) {
                                  w.tick();
                                  if (finished) {
                                    EXPECT_EQ(w.state(), good ? BreakerState::Closed
                                                              : BreakerState::Open);
                                  }
                                  expect_told(w);
                                  expect_comes_back(w);
                                }});
  }
}

TEST_F(BreakerStep, TickOverALateProbe) {
  BreakerWorld w(settings(false));
  kill_everywhere(w.world(), {"tick: a late probe spent, the state moved",
                              [&](World&) {
                                w.run("FFFF");
                                w.pass(1'001 * kMs);
                                w.enter(0);
                                w.pass(100 * kMs);
                              },
                              [&](World&) { w.tick(); },
                              [&](World&, bool) {
                                w.tick();
                                EXPECT_EQ(w.state(), BreakerState::Open);
                                expect_told(w);
                                expect_comes_back(w);
                              }});
}

TEST_F(BreakerStep, AProbeThatPassesToAnotherRow) {
  BreakerWorld w(settings(false));
  BreakerEntry probe;
  kill_everywhere(w.world(), {"a probe passes to another row of its client",
                              [&](World&) {
                                w.run("FFFF");
                                w.pass(1'001 * kMs);
                                probe = w.enter(0);
                              },
                              [&](World&) {
                                shm::pass_probe(w.view(), w.ref(), w.caller(1), probe.call);
                              },
                              [&](World&, bool finished) {
                                EXPECT_EQ(w.info().probes_held, 1U);
                                // Whose it is now: one of the two, and nobody else's.
                                BreakerEntry taken = probe;
                                const bool old = shm::pass_probe(w.view(), w.ref(), w.caller(2),
                                                                 taken.call);
                                EXPECT_FALSE(finished && old);
                                EXPECT_EQ(w.info().probes_held, 1U);
                                expect_comes_back(w);
                              }});
}

TEST_F(BreakerStep, ByHand) {
  BreakerWorld w(settings(true));
  kill_everywhere(w.world(), {"reset by hand",
                              [&](World&) { w.run("FFF"); },
                              [&](World&) {
                                shm::steer_breaker(w.view(), w.ref(), Steer::Reset, 0, 1);
                              },
                              [&](World&, bool finished) {
                                w.tick();
                                const std::uint64_t calls = w.info().window.calls;
                                EXPECT_TRUE(calls == 0 || (!finished && calls == 3)) << calls;
                                expect_told(w);
                              }});
}

TEST_F(BreakerStep, ReloadThatMovesTheWindow) {
  const BreakerSettings before = settings(false);
  BreakerSettings after = before;
  after.window_calls = 12;
  after.probes = 6;
  BreakerWorld w(before);
  kill_everywhere(w.world(), {"publication of a larger window and more probes",
                              [&](World&) { w.run("FSS"); },
                              [&](World&) { w.publish(after); },
                              [&](World& world, bool) {
                                EXPECT_EQ(w.run("S"), "S");
                                world.adopt();
                                w.publish(after);
                                EXPECT_EQ(w.info().window.calls, 4U);
                                EXPECT_EQ(w.info().window.failures, 1U);
                                EXPECT_EQ(w.run("S"), "S");
                              },
                              [](World& world) { world.adopt(); }});
}

// A caller stands still at every instruction while the breaker is opened and half-opened again: it
// is never admitted by a word that is gone, and never takes more than P.
TEST_F(BreakerStep, OthersMoveTheStateBetweenAnyTwoInstructionsOfEnter) {
  BreakerWorld w(settings(false));
  w.run("FFFF");
  w.pass(1'001 * kMs);
  shm::steer_breaker(w.view(), w.ref(), Steer::ToHalfOpen, 0, 1);
  const Snapshot start = w.world().save();
  struct Answer { bool granted; std::uint32_t epoch; };
  auto* answer = static_cast<Answer*>(mmap(nullptr, sizeof(Answer), PROT_READ | PROT_WRITE,
                                           MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(answer, MAP_FAILED);
  const auto enter = [&] {
    const BreakerEntry entry = w.enter(0);
    *answer = {entry.granted, entry.call.epoch};
  };
  std::uint64_t length = 0;
  for (Stepper whole(enter); whole.step();) ++length;
  std::uint64_t granted = 0;
  for (std::uint64_t at = 0; at <= length && !HasFailure(); ++at) {
    SCOPED_TRACE("others act after instruction " + std::to_string(at));
    w.world().restore(start);
    Stepper stepper(enter);
    stepper.step_over(at);
    shm::steer_breaker(w.view(), w.ref(), Steer::ToOpen, 1, 1);
    w.pass(2);
    const BreakerEntry other = w.enter(1);
    stepper.finish();
    const shm::BreakerInfo info = w.info();
    EXPECT_TRUE(other.granted);
    EXPECT_LE(info.probes_held, 1U);
    // The other has the only probe of this epoch; the late one was admitted before, or not at all.
    EXPECT_TRUE(!answer->granted || answer->epoch != info.word.epoch);
    granted += answer->granted;
    EXPECT_EQ(w.finish(other, Ended::Success, 1), shm::Recorded::Counted);
    EXPECT_EQ(w.state(), BreakerState::Closed);
    expect_told(w);
  }
  munmap(answer, sizeof(Answer));
  std::printf("enter: others acted at %lu instructions, %lu times after the admission\n",
              static_cast<unsigned long>(length), static_cast<unsigned long>(granted));
}

}  // namespace
}  // namespace cutwater::test
