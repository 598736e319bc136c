// SPDX-License-Identifier: Apache-2.0
// T5, T6: floods of keys and a table without room. Debts are never forgotten, a flood changes
// nothing for those it is not about, and the overflow word gives nobody a token twice.
#include <gtest/gtest.h>

#include "stress/ledger.hpp"
#include "stress/world.hpp"

namespace cutwater::test {
namespace {

std::uint64_t admitted(World& world, const std::string& name, shm::KeyHash hash, int asks) {
  std::uint64_t given = 0;
  for (int i = 0; i < asks; ++i) given += world.take(name, hash).reason == Reason::Allowed;
  return given;
}

// covers: C040
TEST(Flood, ForgetsNoDebtAndGivesNobodyMore) {
  // P8: 4096 places, one a second, burst 1, 10^6 invented keys within 10 s.
  constexpr std::uint64_t kInvented = 1'000'000;
  constexpr std::int64_t kLasts = 10 * kSecond;
  constexpr int kAsks = 200;
  World world({limit("api", {1, kSecond}, 1)}, {.keys = 4096});
  const shm::LimitRef api = world.ref("api");
  const auto slots = world.view().slot_count;
  std::uint64_t first = 0, late = 0;
  ASSERT_EQ(world.take(api, key(1)).reason, Reason::Allowed);
  const std::int64_t start = world.now();
  std::int64_t late_since = 0;
  std::uint64_t early = 0;

  for (std::uint64_t n = 0; n < kInvented; ++n) {
    world.take(api, key(1'000 + n));
    if (n % 100 == 0) world.pass(kLasts / static_cast<std::int64_t>(kInvented / 100));
    if (n % (kInvented / kAsks) != kInvented / kAsks - 1) continue;
    first += world.take(api, key(1)).reason == Reason::Allowed;
    if (n < kInvented / 3) continue;
    if (late_since == 0) late_since = world.now();
    ++early;
    late += world.take(api, key(2)).reason == Reason::Allowed;
  }

  const auto elapsed = static_cast<std::uint64_t>((world.now() - start) / kSecond);
  const auto since = static_cast<std::uint64_t>((world.now() - late_since) / kSecond);
  EXPECT_LE(first, elapsed) << "1 before the flood, then 1 a second";
  EXPECT_GE(first + 1, elapsed) << "in debt all the time: its place was its own";
  EXPECT_LE(late, 1 + since);
  EXPECT_EQ(world.view().slot_count, slots);
  EXPECT_EQ(world.verify(), "");
  std::printf("%lu keys over %lu slots: the steady key got %lu of %d, the late one %lu of %lu\n",
              static_cast<unsigned long>(kInvented), static_cast<unsigned long>(slots),
              static_cast<unsigned long>(first), kAsks, static_cast<unsigned long>(late),
              static_cast<unsigned long>(early));
}

TEST(Flood, DebtsOfASlowLimitOutliveTheKeysOfAFastOne) {
  World world({limit("slow", {1, 1'000 * kHour}, 2), limit("fast", {1'000'000, kSecond}, 1)},
              {.keys = 1024});
  world.pass(100 * kHour);             // by the clock of `fast` a debt of `slow` is long forgotten
  std::vector<std::uint64_t> debtors;
  for (std::uint64_t n = 0; n < 1'000; ++n) {
    const DecisionData d = world.take("slow", key(n), 2);
    if (d.reason == Reason::Allowed && !Decision{d}.overflow()) debtors.push_back(n);
  }
  for (std::uint64_t n = 0; n < 200'000; ++n) {
    world.take("fast", key(1'000'000 + n));
    if (n % 16 == 0) world.pass(kMicrosecond);
  }

  ASSERT_GE(debtors.size(), 900U);
  for (const std::uint64_t n : debtors) {
    ASSERT_EQ(world.take("slow", key(n)).reason, Reason::Limit) << "the debt of key " << n;
    ASSERT_EQ(world.members_of(key(n)), 1U);
  }
}

// The floor of `initial: empty`: nobody starts with a burst, present or absent, and entries at the
// floor are as good as none.
TEST(Floor, CountsForKeysThatAreThereAndThatAreNot) {
  auto empty = limit("empty", {1, kSecond}, 3);
  empty.initial = rule::Initial::Empty;
  World world({empty});
  Ledger ledger;

  for (int second = 0; second < 12; ++second) {
    for (std::uint64_t n = 0; n < 60; ++n) {
      for (int i = 0; i < 3; ++i) ledger.add(n, world.take("empty", key(n)));
    }
    EXPECT_LE(ledger.tokens(), 60U * static_cast<std::uint64_t>(second));
    world.pass(kSecond);
  }

  EXPECT_EQ(ledger.fault(), "");
  EXPECT_EQ(world.verify(), "");
}

// covers: C042
TEST(FullTable, KnownKeysGoOnAndUnknownOnesAreAnsweredByOnFull) {
  auto deny = limit("deny", {1, kHour}, 3);
  deny.on_full = rule::OnFull::Deny;
  auto allow = limit("allow", {1, kHour}, 3);
  allow.on_full = rule::OnFull::Allow;
  World world({limit("share", {1, kHour}, 3), deny, allow, limit("filler", {1, 10 * kHour}, 1)});
  for (const char* name : {"share", "deny", "allow"}) world.take(name, key(1));
  world.crowd("filler", 1, 1'000);

  for (const char* name : {"share", "deny", "allow"}) {
    EXPECT_EQ(admitted(world, name, key(1), 10), 2U) << "a known key of " << name;
  }
  const Snapshot before = world.save();
  const Decision denied{world.take("deny", key(2))};
  EXPECT_EQ(denied.reason(), Reason::Degraded);
  EXPECT_TRUE(denied.overflow() && denied.degraded());
  const Decision allowed{world.take("allow", key(2))};
  EXPECT_TRUE(allowed.allowed() && allowed.overflow() && allowed.degraded());
  EXPECT_TRUE(world.same(before)) << "deny and allow write nothing";
  std::uint64_t shared = 0;
  for (std::uint64_t n = 0; n < 20; ++n) {
    const Decision d{world.take("share", key(10 + n))};
    EXPECT_TRUE(d.overflow());
    shared += d.allowed();
  }
  EXPECT_EQ(shared, 3U) << "keys without a place share one bucket";
}

// T5: the table is full and empty in turns; keys are charged in the word and in places of their
// own.
TEST(FullTable, FilledAndDrainedInTurns) {
  std::uint64_t overflowed = 0, placed = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    World world({limit("api", {1, 2 * kSecond}, 1), limit("other", {1, kSecond}, 2)});
    Chance chance(seed);
    Ledger ledger;
    for (int turn = 0; turn < 100; ++turn) {
      for (std::uint64_t i = 0; i < 60; ++i) {
        const std::uint64_t number = chance.below(90);
        const std::uint64_t which = number % 2;
        const DecisionData d = world.take(which == 0 ? "api" : "other", key(number));
        ledger.add(number, d);
        if (d.reason == Reason::Allowed) ++(Decision{d}.overflow() ? overflowed : placed);
        world.pass(static_cast<std::int64_t>(chance.below(20 * kMillisecond)));
      }
      if (chance.one_in(3)) world.pass(static_cast<std::int64_t>(chance.below(3 * kSecond)));
    }
    ASSERT_EQ(ledger.fault(), "");
  }
  EXPECT_GE(overflowed, 1'000U);
  std::printf("%lu charges in places, %lu in the overflow word\n",
              static_cast<unsigned long>(placed), static_cast<unsigned long>(overflowed));
}

// A cost of the whole burst fits only at the one moment at which the word is full: it starts a
// little ahead of the clock, and is answered when its slice has begun.
TEST(FullTable, AChargeOfTheOverflowWordHasBegunWhenItIsAnswered) {
  World world({limit("api", {10'000'000, kSecond}, 1), limit("slow", {1, 10 * kHour}, 1)},
              {.clock = shm::ClockKind::Boottime});
  world.crowd("slow", 1, 1'000);
  std::uint64_t granted = 0;

  for (std::uint64_t n = 0; n < 20'000; ++n) {
    const DecisionData d = world.take("api", key(n % 7));
    if (d.reason != Reason::Allowed) continue;
    ASSERT_TRUE(Decision{d}.overflow());
    ASSERT_LE(d.level - d.n, d.burst) << "tokens of the future";
    ASSERT_LE(d.t, world.now());
    ++granted;
  }

  EXPECT_GE(granted, 100U);
  std::printf("%lu of 20000 charges of a whole burst granted\n",
              static_cast<unsigned long>(granted));
}

}  // namespace
}  // namespace cutwater::test
