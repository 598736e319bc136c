// SPDX-License-Identifier: Apache-2.0
// What the daemon tells of a breaker over the socket is what a program that reads the memory itself
// finds: the state as the next caller finds it, and whose time is taken.
#include <gtest/gtest.h>

#include "stress/breaker_world.hpp"
#include "unit/server/asked/served.hpp"

namespace cutwater::test {
namespace {

using rule::BreakerState;
using shm::BreakerCounter;
using wire::OutcomeKind;
using wire::OutcomeReport;

constexpr std::uint64_t kMsNs = 1'000'000;

config::Config config_with(const rule::BreakerSettings& settings) {
  config::Config out = small_config(16);
  out.breakers = {settings};
  return out;
}

rule::BreakerSettings timed() {
  rule::BreakerSettings out = count_breaker({10, 10, 1});
  out.slow_rate_ppm = rule::kPpm;
  return out;
}

class ToldBreaker : public testing::Test {
 protected:
  explicit ToldBreaker(const rule::BreakerSettings& settings = count_breaker({1, 1, 1}))
      : served(config_with(settings), true) {}

  shm::BreakerRef ref() { return shm::find_breaker(served.view(), "b"); }
  BreakerState state() {
    shm::BreakerInfo out;
    shm::read_breaker(served.view(), ref().index, out);
    return out.word.state;
  }
  std::uint64_t count(BreakerCounter counter) {
    return shm::sum_breaker_counters(served.view(), ref().index).of(counter);
  }
  void pass(std::uint64_t ns) {
    shm::step_clock(served.view(), served.view().clock.now() + static_cast<std::int64_t>(ns));
  }
  static wire::Enter breaker() {
    wire::Enter out;
    out.breaker = "b";
    return out;
  }
  static OutcomeReport report(const std::string& ticket, OutcomeKind how) {
    OutcomeReport out;
    out.ticket = ticket;
    out.outcome = how;
    return out;
  }

  Served served;
};

class TimedBreaker : public ToldBreaker {
 protected:
  TimedBreaker() : ToldBreaker(timed()) {}
};

// The state as the next caller finds it, as Breaker::state() of who reads the memory himself.
TEST_F(ToldBreaker, ResolveSaysHalfOpenWhenTheWaitIsOver) {
  ServedPeer peer(served);
  peer.greet();
  wire::Resolve names;
  names.names = {{wire::NameKind::Breaker, "b"}};
  const auto told = [&] {
    const auto answer = peer.ask<wire::ResolveAnswer>(names);
    return static_cast<wire::BreakerWord>(answer->names[0].settings.find("state")->as_unsigned()
                                              .value_or(0));
  };
  peer.outcome(report(peer.enter(breaker()).ticket, OutcomeKind::Failed));
  EXPECT_EQ(told(), wire::BreakerWord::Open);

  pass(1'001 * kMsNs);

  EXPECT_EQ(state(), BreakerState::Open);
  EXPECT_EQ(told(), wire::BreakerWord::HalfOpen);
}

// As for a program that reads the memory itself: time is taken where slow calls are counted.
TEST_F(ToldBreaker, WhatACallTookIsMeasuredOnlyWhereASettingNeedsIt) {
  ServedPeer peer(served);
  peer.greet();
  const wire::Admission told = peer.enter(breaker());
  EXPECT_EQ(told.flags & wire::kAnswerTimed, 0);
  pass(7 * kMsNs);
  peer.outcome(report(told.ticket, OutcomeKind::Succeeded));
  EXPECT_EQ(count(BreakerCounter::DurationUs), 0U);

  OutcomeReport given = report(peer.enter(breaker()).ticket, OutcomeKind::Succeeded);
  given.duration_ns = 5 * kMsNs;
  peer.outcome(given);
  EXPECT_EQ(count(BreakerCounter::DurationUs), 5'000U);
}

TEST_F(TimedBreaker, TheDaemonMeasuresWhenTheOutcomeDoesNotSay) {
  ServedPeer peer(served);
  peer.greet();
  const wire::Admission told = peer.enter(breaker());
  EXPECT_NE(told.flags & wire::kAnswerTimed, 0);
  pass(7 * kMsNs);

  peer.outcome(report(told.ticket, OutcomeKind::Succeeded));

  EXPECT_EQ(count(BreakerCounter::DurationUs), 7'000U);
}

}  // namespace
}  // namespace cutwater::test
