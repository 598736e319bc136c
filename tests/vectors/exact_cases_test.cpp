// SPDX-License-Identifier: Apache-2.0
// Exact numbers where others round: odd and prime rates, slow and fast ones, long idle times.
// A limit's clock counts in units of 2^-f token; an answer is exact to 1 ns or one such unit, and
// exact to 1 ns when the bucket was drained at the moment the limit was made (time 0 here).
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "support/exact_limiter.hpp"
#include "vectors/every_way.hpp"

namespace cutwater::test {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000, kDay = 86'400 * kSecond;

struct Odd {
  std::uint64_t count, period_ns, burst;

  std::string text(const std::string& name) const {
    return name + ": {rate: " + std::to_string(count) + " per " + std::to_string(period_ns) +
           "ns, burst: " + std::to_string(burst) + "}";
  }
  /// Is a drained bucket full again within what nanoseconds can say?
  bool full_in_time() const {
    return static_cast<unsigned __int128>(burst) * period_ns / count < std::uint64_t{1} << 62;
  }
  /// First whole nanosecond at which `tokens` more are there.
  Nanos due(std::uint64_t tokens = 1) const {
    const auto wide = static_cast<unsigned __int128>(tokens) * period_ns;
    return Nanos{static_cast<std::int64_t>((wide + count - 1) / count)};
  }
};

std::string name_of(std::size_t i) { return "n" + std::to_string(i); }

std::string limits_of(const std::vector<Odd>& rates) {
  std::string text;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    text += (i == 0 ? "" : ", ") + rates[i].text(name_of(i));
  }
  return text;
}

/// How exact an answer is at least: 1 ns, or a unit of the limit's clock where that is longer.
Nanos exactness(const Decision& d, const Odd& rate) {
  const auto units = static_cast<unsigned __int128>(rate.count) << d.data().f;
  return std::max(Nanos{1}, Nanos{static_cast<std::int64_t>((rate.period_ns + units - 1) / units)});
}

class ExactCases : public EveryWay {
 protected:
  /// The configuration `rates`; how many were admitted when limit i is asked one nanosecond before
  /// and at its due time, all drained at 0.
  void expect_due_times(const std::vector<Odd>& rates) {
    ASSERT_NO_FATAL_FAILURE(start_whole("capacity: {keys: 4096, limits: 512}\nlimits: {" +
                                        limits_of(rates) + "}\n"));
    struct Question { Nanos t; std::size_t limit; bool due; };
    std::vector<Question> questions;
    for (std::size_t i = 0; i < rates.size(); ++i) {
      ASSERT_EQ(limit(name_of(i)).try_acquire("k", rates[i].burst).remaining(), 0U);
      const Nanos due = rates[i].due();
      questions.push_back({due - 1ns, i, false});
      questions.push_back({due, i, true});
    }
    std::stable_sort(questions.begin(), questions.end(),
                     [](const Question& a, const Question& b) { return a.t < b.t; });
    for (const Question& question : questions) {
      at(question.t);
      const Decision d = limit(name_of(question.limit)).try_acquire("k");
      ASSERT_EQ(d.allowed(), question.due) << rates[question.limit].text("") << " at "
                                           << question.t.count();
      if (!question.due) { ASSERT_EQ(d.retry_after(), 1ns); }
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Ways, ExactCases, ::testing::ValuesIn(every_way()), way_name);

Odd random_rate(std::mt19937_64& chance, std::uint64_t longest_ns) {
  constexpr std::uint64_t kPrimes[] = {2, 3, 7, 13, 101, 997, 7919, 104'729, 999'983};
  for (;;) {
    Odd odd{.count = 1 + chance() % (std::uint64_t{1} << chance() % 21),
            .period_ns = 1'000,
            .burst = 1};
    odd.period_ns += chance() % std::max(kSecond, (longest_ns - 1'000) >> chance() % 40);
    if (chance() % 3 == 0) odd.count = kPrimes[chance() % std::size(kPrimes)];
    if (chance() % 3 == 0) odd.period_ns = kPrimes[chance() % std::size(kPrimes)] * 1'000'003;
    odd.burst = chance() % 2 == 0 ? 1 : 1 + chance() % 1000;
    const auto per_second = static_cast<unsigned __int128>(odd.count) * kSecond / odd.period_ns;
    if (per_second < 10'000'000) return odd;
  }
}

TEST_P(ExactCases, C001DueTimesOfTheReportedRates) {
  ASSERT_NO_FATAL_FAILURE(expect_due_times(
      {{1, 3600 * kSecond, 1}, {10, 13 * kSecond, 1}, {1, 3 * kSecond, 1}, {3, kSecond, 3}}));
}

TEST_P(ExactCases, C001DueTimesOfRandomAndPrimeRates) {
  const bool mapped = GetParam().name != std::string_view("InMemory");
  const int rounds = mapped ? 1 : 40;
  constexpr std::size_t kLimits = 250;             // 10 000 pairs in memory
  std::mt19937_64 chance(20'240'607);
  for (int round = 0; round < rounds; ++round) {
    std::vector<Odd> rates;
    for (std::size_t i = 0; i < kLimits; ++i) rates.push_back(random_rate(chance, 3660 * kDay));
    ASSERT_NO_FATAL_FAILURE(expect_due_times(rates)) << "round " << round;
  }
}

TEST_P(ExactCases, C014TheAdvertisedWaitIsWhatIsMissing) {
  ASSERT_NO_FATAL_FAILURE(start("one: {rate: 1/s, burst: 1}, ten: {rate: 10/s, burst: 5}"));
  ASSERT_TRUE(limit("one").try_acquire("k").allowed());
  ASSERT_TRUE(limit("ten").try_acquire("k", 5).allowed());
  EXPECT_EQ(limit("ten").try_acquire("k", 3).retry_after(), 300ms);
  at(200ms);
  EXPECT_EQ(limit("one").try_acquire("k").retry_after(), 800ms);
  at(300ms - 1us);
  EXPECT_FALSE(limit("ten").try_acquire("k", 3).allowed());
  at(300ms);
  EXPECT_TRUE(limit("ten").try_acquire("k", 3).allowed());
  at(1s - 1us);
  EXPECT_FALSE(limit("one").try_acquire("k").allowed());
  at(1s);
  EXPECT_TRUE(limit("one").try_acquire("k").allowed());
}

/// One key of one limit: drained by some tokens, asked for some, and what the law demands.
void expect_exact_wait(Way& way, Nanos& now, Limit asked, const Odd& rate, std::mt19937_64& chance,
                       const std::string& key) {
  SCOPED_TRACE(rate.text(key));
  const auto stamp = static_cast<std::uint64_t>(now.count());
  const std::uint64_t drained = 1 + chance() % rate.burst, cost = 1 + chance() % rate.burst;
  ExactBucket oracle(rate.count, rate.period_ns, rate.burst);
  oracle.take(stamp, drained);
  ASSERT_TRUE(asked.try_acquire(key, drained).allowed());

  const Decision refused = asked.try_acquire(key, cost);

  const ExactAnswer exact = oracle.take(stamp, cost);
  ASSERT_EQ(refused.allowed(), exact.allowed);
  if (refused.allowed()) return;
  const Nanos retry = refused.retry_after();
  const Nanos off = retry - Nanos{static_cast<std::int64_t>(*exact.retry_after_ns)};
  ASSERT_LE(std::chrono::abs(off), exactness(refused, rate));
  way.at(now += retry - 1ns);
  ASSERT_FALSE(asked.try_acquire(key, cost).allowed());
  ASSERT_EQ(asked.peek(key, cost).retry_after(), 1ns);
  way.at(now += 1ns);
  ASSERT_TRUE(asked.try_acquire(key, cost).allowed());
}

/// The law: who waits the advertised time is admitted, one nanosecond earlier is too early; and
/// that time is the exact one, as far as the limit's clock can tell.
TEST_P(ExactCases, C014TheAdvertisedWaitIsEnoughAndNecessary) {
  const bool mapped = GetParam().name != std::string_view("InMemory");
  const int rounds = mapped ? 1 : 40;
  constexpr int kCases = 500;
  constexpr std::size_t kLimits = 50;
  std::mt19937_64 chance(46'579);
  for (int round = 0; round < rounds; ++round) {
    std::vector<Odd> rates;
    for (std::size_t i = 0; i < kLimits; ++i) rates.push_back(random_rate(chance, kSecond));
    ASSERT_NO_FATAL_FAILURE(start(limits_of(rates)));
    Nanos now{0};
    for (int i = 0; i < kCases; ++i) {
      const std::size_t which = chance() % kLimits;
      at(now += Nanos{static_cast<std::int64_t>(chance() % kSecond)});
      ASSERT_NO_FATAL_FAILURE(expect_exact_wait(*way, now, limit(name_of(which)), rates[which],
                                                chance, "k" + std::to_string(i)));
    }
  }
}

TEST_P(ExactCases, C021LongPeriodsAreExact) {
  const std::vector<Odd> rates = {{5, 365 * kDay, 5},
                                  {50'000'000, 30 * kDay, 50'000'000},
                                  {1, 25 * kDay, 1},
                                  {1, 50 * kDay, 1},
                                  {1, 3660 * kDay, 1}};
  ASSERT_NO_FATAL_FAILURE(start(limits_of(rates)));
  for (std::size_t i = 0; i < rates.size(); ++i) {
    ASSERT_TRUE(limit(name_of(i)).try_acquire("k", rates[i].burst).allowed());
    const Decision refused = limit(name_of(i)).try_acquire("k");
    EXPECT_EQ(refused.remaining(), 0U);
    EXPECT_EQ(refused.retry_after(), rates[i].due()) << rates[i].text("");
    EXPECT_EQ(refused.reset_after(), rates[i].due(rates[i].burst)) << rates[i].text("");
  }
  EXPECT_EQ(limit("n0").peek("k").retry_after(), 24h * 73);
  EXPECT_EQ(limit("n1").peek("k").retry_after(), 51'840us);
}

TEST_P(ExactCases, C021LongPeriodsEndWhenTheyShould) {
  ASSERT_NO_FATAL_FAILURE(expect_due_times({{5, 365 * kDay, 5},
                                            {50'000'000, 30 * kDay, 50'000'000},
                                            {1, 25 * kDay, 1},
                                            {1, 50 * kDay, 1},
                                            {1, 3660 * kDay, 1}}));
}

TEST_P(ExactCases, C005NothingOverflowsAfterLongIdle) {
  const std::vector<Odd> rates = {
      {500'000, kSecond, 500'000},    {10'000'000, kSecond, 10'000'000},
      {10'000'000, kSecond, 1'000'000'000}, {1, 1'000, 1},
      {1, kSecond, 1'000'000'000},    {1, 3660 * kDay, 1},
      {1, 3660 * kDay, 1'000'000'000}, {1'000'000'000, 3660 * kDay, 1'000'000'000}};
  constexpr Nanos kIdle[] = {1ns, 1us, 1ms,  1s,          1h,           12h,
                             24h, 24h * 30, 24h * 400, 24h * 3660, 24h * 365 * 18};
  ASSERT_NO_FATAL_FAILURE(start(limits_of(rates)));
  const auto key = [](std::size_t i) { return "idle" + std::to_string(i); };
  for (std::size_t i = 0; i < rates.size(); ++i) {
    for (std::size_t k = 0; k < std::size(kIdle); ++k) {
      ASSERT_TRUE(limit(name_of(i)).try_acquire(key(k), rates[i].burst).allowed());
    }
  }
  for (std::size_t k = 0; k < std::size(kIdle); ++k) {
    at(kIdle[k]);
    for (std::size_t i = 0; i < rates.size(); ++i) {
      ExactBucket oracle(rates[i].count, rates[i].period_ns, rates[i].burst);
      oracle.take(0, rates[i].burst);

      const Decision d = limit(name_of(i)).try_acquire(key(k));

      const auto exact = oracle.take(static_cast<std::uint64_t>(kIdle[k].count()), 1);
      SCOPED_TRACE(rates[i].text("") + " after " + std::to_string(kIdle[k].count()));
      EXPECT_EQ(d.allowed(), exact.allowed);
      EXPECT_EQ(d.remaining(), exact.remaining);
      EXPECT_EQ(d.retry_after().count(), static_cast<std::int64_t>(*exact.retry_after_ns));
      const Nanos reset{static_cast<std::int64_t>(exact.reset_after_ns)};
      if (rates[i].full_in_time()) {
        EXPECT_LE(std::chrono::abs(d.reset_after() - reset), exactness(d, rates[i]));
      } else {
        EXPECT_EQ(d.reset_after(), kNever) << "full in more than a hundred years";
      }
    }
  }
}

TEST_P(ExactCases, C005TheReportedHalfDay) {
  ASSERT_NO_FATAL_FAILURE(start("api: {rate: 500000/s, burst: 500000}"));
  ASSERT_TRUE(limit().try_acquire("k").allowed());
  at(12h);
  const Decision d = limit().try_acquire("k");
  EXPECT_TRUE(d.allowed());
  EXPECT_EQ(d.remaining(), 499'999U);
}

}  // namespace
}  // namespace cutwater::test
