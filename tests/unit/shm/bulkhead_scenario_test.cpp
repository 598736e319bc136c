// SPDX-License-Identifier: Apache-2.0
// The numbered scenes and cases of bulkheads, and what a line promises. Compiled twice: with the
// world in memory, and with the world over the socket (tests/unit/server/asked/stress).
#include <gtest/gtest.h>

#include <vector>

#include "stress/bulkhead_world.hpp"

namespace cutwater::test {
namespace {

using shm::BulkheadCounter;
using shm::BulkheadEntry;
using shm::Left;
using State = shm::LineLook::State;

constexpr std::int64_t kMs = kMillisecond;

TEST(Bulkhead, C085GivenBackTwiceOrTooLateHasNoEffect) {
  BulkheadWorld w(bulkhead_of({2, 0, 8, 50'000'000}));
  const BulkheadEntry first = w.enter(0);
  EXPECT_EQ(w.leave(first, 0), Left::Returned);
  const BulkheadEntry second = w.enter(0);           // the same cell, by the same process
  EXPECT_EQ(second.place.cell, first.place.cell);
  EXPECT_EQ(w.leave(first, 0), Left::Stale);         // twice
  EXPECT_EQ(w.in_use(), 1U);

  w.pass(51 * kMs);
  EXPECT_EQ(w.tick().revoked, 1U);                   // max-hold
  EXPECT_EQ(w.in_use(), 0U);
  const BulkheadEntry third = w.enter(1);
  EXPECT_EQ(w.leave(second, 0), Left::Stale);        // late
  EXPECT_EQ(w.in_use(), 1U);
  EXPECT_EQ(w.leave(third, 1), Left::Returned);
  EXPECT_EQ(w.count(BulkheadCounter::Stale), 2U);
  EXPECT_EQ(w.count(BulkheadCounter::Revoked), 1U);
  EXPECT_EQ(w.events(shm::EventKind::PlaceRevoked).size(), 1U);
}

TEST(Bulkhead, C086PlacesOfTheKilledComeBackWithTheTick) {
  BulkheadWorld w(bulkhead_of({10, 0, 8, 0}));
  for (std::uint32_t i = 0; i < 10; ++i) ASSERT_TRUE(w.enter(i % 4).granted);
  w.kill(0);
  w.kill(1);
  EXPECT_FALSE(w.enter(2).granted);

  EXPECT_EQ(w.tick().reclaimed, 6U);                 // 0, 4, 8 and 1, 5, 9

  EXPECT_EQ(w.in_use(), 4U);
  EXPECT_EQ(w.count(BulkheadCounter::Reclaimed), 6U);
  EXPECT_EQ(w.events(shm::EventKind::PlaceReclaimed).size(), 6U);
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(w.enter(3).granted);
}

TEST(Bulkhead, S75HolderKilledAThousandTimes) {
  BulkheadWorld w(waiting_bulkhead(4), 4);
  Chance chance(75);
  for (int round = 0; round < 1'000; ++round) {
    for (std::uint32_t p = 0; p < 4; ++p) {
      if (chance.one_in(2)) static_cast<void>(w.enter(p));
      if (chance.one_in(3)) static_cast<void>(w.join(p));
    }
    for (std::uint32_t p = 0; p < 4; ++p) w.revive(p);
    ASSERT_EQ(w.in_use(), 0U) << "round " << round;
    ASSERT_EQ(w.info().waiting, 0U) << "round " << round;
  }
}

TEST(BulkheadLine, FirstComeFirstServed) {
  BulkheadWorld w(waiting_bulkhead(1));
  const BulkheadEntry held = w.enter(0);
  const auto a = w.join(1), b = w.join(2);
  ASSERT_TRUE(a.joined && b.joined);
  EXPECT_EQ(w.poll(b, 2).state, State::Waiting);
  const BulkheadEntry refused = w.enter(3);
  EXPECT_EQ(refused.waiting, 2U);
  EXPECT_TRUE(refused.may_wait);

  w.pass(30 * kMs);
  w.leave(held, 0);

  EXPECT_FALSE(w.enter(3).granted);                  // no newcomer passes
  EXPECT_EQ(w.poll(b, 2).state, State::Waiting);
  const auto got = w.poll(a, 1);
  ASSERT_EQ(got.state, State::Granted);
  EXPECT_EQ(w.leave(got.entry, 1), Left::Returned);
  EXPECT_EQ(w.poll(b, 2).state, State::Granted);
  EXPECT_EQ(w.count(BulkheadCounter::Waited), 2U);
  EXPECT_EQ(w.count(BulkheadCounter::WaitedUs), 60'000U);
  EXPECT_EQ(w.count(BulkheadCounter::HandedOver), 2U);
}

TEST(BulkheadLine, EndsByMaxWaitOrByTheDeadline) {
  BulkheadWorld w(waiting_bulkhead(1));
  static_cast<void>(w.enter(0));
  const auto longest = w.join(1), shorter = w.join(2, {500'000'000, 0});
  const auto deadline = w.join(3, {.deadline_ns = w.now() + 200 * kMs});

  w.pass(200 * kMs);
  const auto expired = w.poll(deadline, 3);
  ASSERT_EQ(expired.state, State::Over);
  EXPECT_EQ(expired.entry.reason, Reason::Expired);
  w.pass(299 * kMs);
  EXPECT_EQ(w.poll(shorter, 2).state, State::Waiting);
  w.pass(1 * kMs);
  ASSERT_EQ(w.poll(shorter, 2).state, State::Over);
  w.pass(500 * kMs);
  const auto full = w.poll(longest, 1);
  ASSERT_EQ(full.state, State::Over);
  EXPECT_EQ(full.entry.reason, Reason::Full);
  EXPECT_EQ(w.info().waiting, 0U);
  EXPECT_EQ(w.count(BulkheadCounter::RefusedExpired), 1U);
}

TEST(BulkheadLine, C084TimedOutWaitersSwallowNoPlace) {
  BulkheadWorld w(bulkhead_of({8, 50'000'000, 8, 0}), 16);
  for (int round = 0; round < 1'000; ++round) {
    std::vector<BulkheadEntry> held;
    for (std::uint32_t i = 0; i < 8; ++i) held.push_back(w.enter(i));
    std::vector<shm::JoinedLine> line;
    for (std::uint32_t i = 8; i < 16; ++i) line.push_back(w.join(i));
    if (round % 2 == 0) w.pass(51 * kMs);            // else they are handed places first
    const bool killed = round % 4 == 1;
    for (std::uint32_t i = 0; i < 8; ++i) w.leave(held[i], i);
    if (killed) w.revive(8);
    w.pass(51 * kMs);
    for (std::uint32_t i = killed ? 1 : 0; i < 8; ++i) {
      const auto look = w.poll(line[i], 8 + i);
      if (look.state == State::Granted) w.leave(look.entry, 8 + i);
    }
    ASSERT_EQ(w.in_use(), 0U) << "round " << round;
    std::vector<BulkheadEntry> again;
    for (std::uint32_t i = 0; i < 8; ++i) again.push_back(w.enter(i));
    for (std::uint32_t i = 0; i < 8; ++i) {
      ASSERT_TRUE(again[i].granted) << "round " << round;
      w.leave(again[i], i);
    }
  }
}

/// Ten callers of 200 ms each at a bulkhead of `limit`; how many ran, and how long it took.
struct Ran { int succeeded = 0; std::int64_t took_ms = 0; std::vector<std::uint32_t> order; };
Ran ten_callers(BulkheadWorld& w) {
  struct Caller { std::uint32_t number; shm::JoinedLine line; BulkheadEntry place;
                  std::int64_t until; };
  Ran ran;
  const std::int64_t start = w.now();
  std::vector<Caller> waiting, running;
  const auto begin = [&](std::uint32_t number, const BulkheadEntry& place) {
    running.push_back({number, {}, place, w.now() + 200 * kMs});
    ran.order.push_back(number);
  };
  for (std::uint32_t i = 0; i < 10; ++i) {
    const BulkheadEntry entry = w.enter(i);
    if (entry.granted) begin(i, entry);
    else if (const auto line = w.join(i); line.joined) waiting.push_back({i, line, {}, 0});
  }
  while (!running.empty()) {
    w.pass(200 * kMs);
    std::vector<Caller> done;
    done.swap(running);
    for (const Caller& one : done) {
      w.leave(one.place, one.number);
      ++ran.succeeded;
    }
    for (std::size_t i = 0; i < waiting.size();) {
      const auto look = w.poll(waiting[i].line, waiting[i].number);
      if (look.state != State::Granted) {
        ++i;
        continue;
      }
      begin(waiting[i].number, look.entry);
      waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  ran.took_ms = (w.now() - start) / kMs;
  return ran;
}

TEST(BulkheadLine, S68TenCallersTwoAtATimeInTheOrderTheyCame) {
  BulkheadWorld w(bulkhead_of({2, rule::kWaitForever, 8, 0}), 10);
  const Ran ran = ten_callers(w);
  EXPECT_EQ(ran.succeeded, 10);
  EXPECT_EQ(ran.took_ms, 1000);
  for (std::uint32_t i = 0; i < 10; ++i) EXPECT_EQ(ran.order[i], i);
}

TEST(BulkheadLine, S69WithoutAWaitTwoOfTenSucceed) {
  BulkheadWorld w(bulkhead_of(), 10);
  const Ran ran = ten_callers(w);
  EXPECT_EQ(ran.succeeded, 2);
  EXPECT_EQ(ran.took_ms, 200);
  EXPECT_EQ(w.count(BulkheadCounter::RefusedFull), 16U);   // each asked, then asked for the line
}

TEST(BulkheadLine, S70WithoutALimitAllRunAtOnce) {
  rule::BulkheadSettings settings = bulkhead_of();
  settings.enabled = false;
  BulkheadWorld w(settings, 10);
  const Ran ran = ten_callers(w);
  EXPECT_EQ(ran.succeeded, 10);
  EXPECT_EQ(ran.took_ms, 200);
}

TEST(BulkheadReload, S73AShrinkBlocksNobodyAndGivesNothingUntilEnoughLeft) {
  BulkheadWorld w(bulkhead_of({5, 0, 8, 0}), 6);
  std::vector<BulkheadEntry> held;
  for (std::uint32_t i = 0; i < 5; ++i) held.push_back(w.enter(i));

  w.publish(bulkhead_of({2, 0, 8, 0}));              // returns at once

  EXPECT_EQ(w.info().over, 3U);
  for (std::uint32_t i = 0; i < 4; ++i) {
    EXPECT_FALSE(w.enter(5).granted) << i << " have left";
    EXPECT_EQ(w.leave(held[i], i), Left::Returned);
  }
  EXPECT_EQ(w.info().over, 0U);
  const BulkheadEntry entry = w.enter(5);
  EXPECT_TRUE(entry.granted);
  EXPECT_FALSE(w.enter(0).granted);
}

}  // namespace
}  // namespace cutwater::test
