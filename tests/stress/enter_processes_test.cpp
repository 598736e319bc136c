// SPDX-License-Identifier: Apache-2.0
// Admission in one step by many processes at once, and by processes that are killed in the middle:
// never more places, probes or tokens than there are, nobody waits in vain, and everything comes
// back.
#include <csignal>
#include <iostream>

#include "stress/crew.hpp"
#include "stress/enter_world.hpp"

namespace cutwater::test {
namespace {

using shm::CallKind;
using shm::Ended;

constexpr std::uint32_t kProcesses = 4;
constexpr std::uint32_t kPlaces = 2;
constexpr std::uint32_t kProbes = 2;
constexpr std::size_t kEpochs = 65'536;

EnterSetup setup() {
  EnterSetup out;
  out.breaker = count_breaker({100, 100, kProbes});
  out.places = kPlaces;
  out.max_waiting = kProcesses;
  out.burst = {1'000'000, 500};        // the clock hardly moves: nothing refills
  out.processes = kProcesses;
  return out;
}

struct Told {
  std::atomic<std::int64_t> running{0}, too_many{0}, too_many_probes{0};
  std::atomic<std::uint64_t> granted{0}, waited{0}, probes{0}, tokens{0};
  std::atomic<std::int32_t> probes_of[kEpochs] = {};
};

void ask_once(EnterWorld& w, Told& told, Chance& chance, std::uint32_t me) {
  EnterWish wish;
  wish.cost = {1, chance.one_in(8) ? 1ULL : 0};
  wish.max_wait_ns = chance.one_in(2) ? shm::kWaitAsConfigured : 0;
  const auto one = w.ask(me, wish);
  w.begin(*one);
  if (one->waits()) ++told.waited;
  while (one->waits()) {
    shm::wait_in_line(w.view(), w.caller(me), one->entering);
    w.resume(*one);
  }
  if (!one->granted()) {
    sched_yield();                                   // whoever has it may be waiting for a core
    return;
  }
  ++told.granted;
  told.tokens += wish.cost[1];
  if (++told.running > kPlaces) ++told.too_many;
  const bool probe = one->answer.call.kind == CallKind::Probe;
  std::atomic<std::int32_t>& of = told.probes_of[one->answer.call.epoch % kEpochs];
  if (probe) {
    ++told.probes;
    if (++of > static_cast<std::int32_t>(kProbes)) ++told.too_many_probes;
  }
  if (chance.one_in(4)) sched_yield();
  --told.running;
  const bool cancels = chance.one_in(4);
  if (probe && cancels) --of;
  w.finish(*one, cancels ? Ended::Cancelled : Ended::Success);
}

TEST(EnterProcesses, NeverMoreThanThereAreAndNobodyWaitsInVain) {
  EnterWorld w{setup()};
  Shared<Told> told;
  const bool fine = run_crew(kProcesses, [&](int me) {
    Chance chance(static_cast<std::uint64_t>(me) + 1);
    for (int i = 0; i < 3'000; ++i) {
      ask_once(w, *told, chance, static_cast<std::uint32_t>(me));
      // One of them opens the breaker now and then, over at once: it goes half-open.
      if (me == 0 && i % 50 == 0) w.make_half_open();
    }
  });
  EXPECT_TRUE(fine);
  EXPECT_EQ(told->too_many.load(), 0);
  EXPECT_EQ(told->too_many_probes.load(), 0);
  EXPECT_LE(told->tokens.load(), 500U);
  EXPECT_EQ(w.bulkhead_info().in_use, 0U);
  EXPECT_EQ(w.bulkhead_info().waiting, 0U);
  EXPECT_EQ(w.breaker_info().probes_held, 0U);
  EXPECT_GT(told->granted.load(), 500U);
  EXPECT_GT(told->probes.load(), 0U);
  std::cout << told->granted << " granted, " << told->waited << " of the asks in line, "
            << told->probes << " probes\n";
}

TEST(EnterProcesses, WhatTheKilledHeldComesBack) {
  EnterWorld w{setup()};
  Shared<Told> told;
  const std::uint64_t seed = 20'261'130;
  Chance chance(seed);
  constexpr int kRounds = 100;
  for (int round = 0; round < kRounds && !testing::Test::HasFailure(); ++round) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", round " + std::to_string(round));
    const std::uint64_t before = told->granted.load();
    std::vector<pid_t> children;
    for (std::uint32_t me = 0; me < kProcesses; ++me) {
      children.push_back(start_process([&, me] {
        Chance mine(seed + static_cast<std::uint64_t>(round) * kProcesses + me);
        for (;;) ask_once(w, *told, mine, me);
      }));
    }
    // Some way on, wherever that finds them.
    const std::uint64_t enough = before + 1 + chance.below(40);
    while (told->granted.load() < enough) sched_yield();
    for (const pid_t child : children) kill(child, SIGKILL);
    for (const pid_t child : children) wait_for(child);
    for (std::uint32_t me = 0; me < kProcesses; ++me) w.kill(me);
    w.tick();
    EXPECT_EQ(w.bulkhead_info().in_use, 0U);
    EXPECT_EQ(w.bulkhead_info().waiting, 0U);
    EXPECT_EQ(w.breaker_info().probes_held, 0U);
    for (std::uint32_t me = 0; me < kProcesses; ++me) w.revive(me);
    if (round % 10 == 0) w.make_half_open();
  }
  const auto one = w.ask(0, {.cost = {1, 0}});
  w.begin(*one);
  EXPECT_TRUE(one->granted());
  EXPECT_EQ(w.world().verify(), "");
}

}  // namespace
}  // namespace cutwater::test
