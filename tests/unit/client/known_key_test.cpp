// SPDX-License-Identifier: Apache-2.0
// The shortest way of a resolved key answers what the rule says, for every rule, and gives way as
// soon as the rules are others.
#include <atomic>
#include <random>
#include <thread>

#include "rule/bucket_rule.hpp"
#include "shm/limit/rule_reader.hpp"
#include "src/known_key.hpp"
#include "unit/client/client_fixture.hpp"

namespace cutwater::test {
namespace {

using shm::LimitCounter;

class KnownKey : public InMemory {
 protected:
  detail::LimitState& state(const std::string& name = "api") {
    return *client->core().limit(name).value();
  }
  shm::KeyHash hash(const std::string& key, const std::string& name = "api") {
    return shm::hash_key(state(name).secret, key);
  }
  /// Where the key lies; it is put there by a charge of one token.
  std::uint64_t place(const std::string& key, const std::string& name = "api") {
    const Decision d = limit(name).try_acquire(key);
    EXPECT_TRUE(d.allowed());
    return static_cast<std::uint64_t>(static_cast<Word16*>(d.data().slot) - view().slots);
  }
  bool ask(std::uint64_t hint, std::uint64_t cost, DecisionData& out, const std::string& key = "k",
           const std::string& name = "api") {
    std::uint64_t number = 0;
    return detail::decide_known(state(name), hash(key, name).hi, hint, cost, out, number);
  }
  rule::Piece piece(const std::string& name, std::uint8_t& f) {
    const shm::LimitRef ref = shm::find_limit(view(), name);
    const std::uint64_t c = view().current();
    const shm::RuleRecord& record = view().rule(c, view().limit_config(c, ref.index).rule[0]);
    f = record.f;
    return shm::read_after(record);
  }
};

TEST_F(KnownKey, AnswersWhatTheRuleSays) {
  // Rates from one a day to ten million a second, bursts to 1e9: 10^5 asks in all.
  constexpr int kLimits = 100, kAsks = 1000;
  constexpr std::uint64_t kSeed = 20240611;
  std::mt19937_64 random(kSeed);
  const auto below = [&](std::uint64_t n) { return random() % n; };
  std::string yaml = "capacity: {keys: 4096, limits: 128}\nlimits:\n";
  const char* const periods[] = {"d", "h", "m", "s"};
  for (int i = 0; i < kLimits; ++i) {
    const unsigned unit = static_cast<unsigned>(below(4));
    const std::uint64_t rate = 1 + (std::uint64_t{1} << below(unit == 3 ? 24 : 20)) % 9'999'999;
    const std::uint64_t burst = 1 + (std::uint64_t{1} << below(30)) % 999'999'999;
    yaml += "  l" + std::to_string(i) + ": {rate: " + std::to_string(rate) + "/" + periods[unit] +
            ", burst: " + std::to_string(burst) + (below(4) == 0 ? ", initial: empty" : "") + "}\n";
  }
  start(yaml);
  std::uint64_t answered = 0, granted = 0;

  for (int i = 0; i < kLimits; ++i) {
    const std::string name = "l" + std::to_string(i);
    std::uint8_t f = 0;
    const rule::Piece line = piece(name, f);
    for (int wait = 0; wait < 80 && !limit(name).peek("k").allowed(); ++wait) {
      clock.advance(limit(name).peek("k").retry_after());
    }
    const std::uint64_t hint = place("k", name);
    const Word16* const slot = view().slots + hint;
    const std::uint64_t burst = static_cast<std::uint64_t>(line.burst) >> f;
    for (int n = 0; n < kAsks; ++n) {
      clock.advance(Nanos{static_cast<std::int64_t>(random() >> (20 + below(43)))});
      const std::uint64_t cost = 1 + below(std::min<std::uint64_t>(burst, 1 << (1 + below(20))));
      const Word16 before = *slot;
      DecisionData out;
      if (!ask(hint, cost, out, "k", name)) {
        // Only what this way leaves to the other: nothing was written.
        ASSERT_EQ(*slot, before);
        ASSERT_GT(cost, shm::detail::kFastCostMax);
        continue;
      }
      ++answered;
      const std::int64_t t = view().clock.now();
      const rule::Units units = static_cast<rule::Units>(cost << f);
      const rule::Step step = rule::charge(line, rule::units_at(line, t),
                                           static_cast<rule::Units>(before.hi), units, 0);
      granted += step.granted ? 1 : 0;
      SCOPED_TRACE(name + " ask " + std::to_string(n) + " seed " + std::to_string(kSeed));
      ASSERT_EQ(out.reason, step.granted ? Reason::Allowed : Reason::Limit);
      ASSERT_EQ(out.receipt, step.granted ? Receipt::One : Receipt::None);
      ASSERT_EQ(out.t, t);
      ASSERT_EQ(out.n, step.n);
      ASSERT_EQ(out.level, step.granted ? step.y : step.eff);
      ASSERT_EQ(out.cost, units);
      ASSERT_EQ(out.mult, line.mult);
      ASSERT_EQ(out.base_t, line.base_t);
      ASSERT_EQ(out.base_n, line.base_n);
      ASSERT_EQ(out.burst, line.burst);
      ASSERT_EQ(out.shift, line.shift);
      ASSERT_EQ(out.f, f);
      ASSERT_EQ(out.slot, slot);
      ASSERT_EQ(out.tag, before.lo);
      ASSERT_FALSE(out.computed);
      ASSERT_EQ(out.flags, 0);
      ASSERT_EQ(slot->lo, before.lo);
      ASSERT_EQ(static_cast<rule::Units>(slot->hi),
                step.granted ? step.y : static_cast<rule::Units>(before.hi));
    }
  }
  EXPECT_GT(answered, 99'000U);
  EXPECT_GT(granted, 10'000U);
  EXPECT_GT(answered - granted, 1'000U);
}

TEST_F(KnownKey, CountsAsEveryOtherWay) {
  start("limits:\n  api: {rate: 1/s, burst: 10}\n");
  const std::uint64_t hint = place("k");
  DecisionData out;

  ASSERT_TRUE(ask(hint, 7, out));
  ASSERT_TRUE(ask(hint, 7, out));

  EXPECT_EQ(counted(LimitCounter::Allowed), 2U);
  EXPECT_EQ(counted(LimitCounter::Tokens), 8U);
  EXPECT_EQ(counted(LimitCounter::Refused), 1U);
}

TEST_F(KnownKey, LeavesToTheOtherWayWhatIsNotItsOwn) {
  start("limits:\n  api: {rate: 1/s, burst: 100}\n"
        "  leased: {rate: 1/s, burst: 128, thread-lease: 8}\n");
  const std::uint64_t hint = place("k");
  place("another");
  DecisionData out;
  const std::string before = all_bytes();

  EXPECT_FALSE(ask(shm::kNoSlot, 1, out)) << "not seen before";
  EXPECT_FALSE(ask(hint, 1, out, "another")) << "another key's place";
  EXPECT_FALSE(ask(hint ^ 1, 1, out)) << "the place beside it";
  EXPECT_FALSE(ask(view().slot_count, 1, out)) << "outside the table";
  EXPECT_FALSE(ask(hint, 101, out)) << "more than the burst";
  EXPECT_FALSE(ask(hint, 0, out)) << "a look";
  EXPECT_FALSE(ask(hint, ~std::uint64_t{0}, out));
  EXPECT_FALSE(ask(hint, 1, out, "k", "leased")) << "a limit with leases";

  EXPECT_EQ(all_bytes(), before);
}

TEST_F(KnownKey, NewRulesAreSeenBehindTheClock) {
  start("limits:\n  api: {rate: 1/s, burst: 10}\n");
  const std::uint64_t hint = place("k");
  DecisionData out;
  ASSERT_TRUE(ask(hint, 1, out));

  ASSERT_TRUE(client->reload("limits:\n  api: {rate: 1/s, burst: 20}\n"));
  const Word16 before = view().slots[hint];
  EXPECT_FALSE(ask(hint, 1, out));
  EXPECT_EQ(view().slots[hint], before);

  EXPECT_EQ(limit().try_acquire("k").remaining(), 17U);
  clock.advance(1us);
  ASSERT_TRUE(ask(hint, 1, out)) << "and goes on by the new ones";
  EXPECT_EQ(Decision(out).remaining(), 16U);
}

TEST_F(KnownKey, AStampBeforeTheChangeIsReadOnTheOldLine) {
  start("limits:\n  api: {rate: 1/s, burst: 10}\n");
  const std::uint64_t hint = place("k");
  clock.advance(1s);
  const std::uint64_t current = view().current();
  ASSERT_TRUE(client->reload("limits:\n  api: {rate: 100/s, burst: 10}\n"));
  ASSERT_NE(view().current(), current);
  detail::refresh(state(), view().current());
  // The line begins later than now.
  detail::PlainRule& plain = state().plain;
  plain.base_t += 10;
  plain.start += 10;
  DecisionData out;

  EXPECT_FALSE(ask(hint, 1, out));
}

// Each answer is of one whole rule, never of parts of two, however the threads interleave.
TEST_F(KnownKey, AnAnswerIsOfOneRuleWhileRulesChange) {
  const std::string small = "limits:\n  api: {rate: 1/h, burst: 100}\n";
  const std::string large = "limits:\n  api: {rate: 9999999/s, burst: 900000000}\n";
  start(small);
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> answers{0}, torn{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&, api = limit()]() mutable {
      Key key = api.key("k");
      while (!over.load()) {
        const Decision d = key.try_acquire();
        const DecisionData& out = d.data();
        const rule::Piece line{out.mult, out.base_t, out.base_n, out.burst, 0, 0, out.shift};
        if (out.computed) continue;
        answers.fetch_add(1);
        const bool is_small = out.burst >> out.f == 100;
        const bool is_large = out.burst >> out.f == 900'000'000;
        if (!is_small && !is_large) torn.fetch_add(1);
        // Before base_t the other line held, which such an answer does not show.
        if (out.t >= out.base_t && rule::units_at(line, out.t) != out.n) torn.fetch_add(1);
      }
    });
  }
  for (int i = 0; i < 300; ++i) {
    ASSERT_TRUE(client->reload(i % 2 == 0 ? large : small));
    const std::uint64_t seen = answers.load();
    while (answers.load() < seen + 20) {
      clock.advance(1us);
      std::this_thread::yield();
    }
  }
  over.store(true);
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(torn.load(), 0U) << "of " << answers.load() << " answers";
}

TEST(KnownKeyOnTheRealClock, IsTakenAndAgrees) {
  auto client = Client::in_memory("limits:\n  api: {rate: 1/h, burst: 5}\n").value();
  Limit api = client.limit("api").value();
  Key key = api.key("k");

  std::uint64_t granted = 0;
  Nanos last{0};
  for (int i = 0; i < 9; ++i) {
    const Decision d = i % 2 == 0 ? key.try_acquire() : api.try_acquire("k");
    granted += d.allowed() ? 1 : 0;
    EXPECT_GE(d.stamp(), last);
    last = d.stamp();
    if (!d.allowed()) {
      EXPECT_GT(d.retry_after(), Nanos{3'500'000'000'000});
    }
  }

  EXPECT_EQ(granted, 5U);
  EXPECT_LE(last, client.now());
}

}  // namespace
}  // namespace cutwater::test
