// SPDX-License-Identifier: Apache-2.0
#include <random>

#include "unit/client/client_fixture.hpp"

namespace cutwater::test {
namespace {

using shm::LimitCounter;

class BatchTest : public InMemory {};

constexpr char kSmall[] = "limits:\n  api: {rate: 3/s, burst: 4}\n";

TEST_F(BatchTest, AnswersAsSingleAsksWouldFieldByField) {
  start(kSmall);
  Client single = make_client(kSmall, clock);
  Limit batched = limit();
  Limit one_by_one = single.limit("api").value();
  std::mt19937_64 random(20240611);

  for (int round = 0; round < 200; ++round) {
    std::vector<std::string> keys(random() % 150);
    for (std::string& key : keys) key = "key" + std::to_string(random() % 40);
    const std::vector<std::string_view> asked(keys.begin(), keys.end());
    std::vector<Decision> out(keys.size());
    const std::uint64_t cost = random() % 6;

    batched.acquire_batch(asked, out, cost);

    for (std::size_t i = 0; i < keys.size(); ++i) {
      const Decision expected = one_by_one.try_acquire(keys[i], cost);
      ASSERT_EQ(out[i].reason(), expected.reason()) << round << " " << i;
      ASSERT_EQ(out[i].remaining(), expected.remaining());
      ASSERT_EQ(out[i].retry_after(), expected.retry_after());
      ASSERT_EQ(out[i].reset_after(), expected.reset_after());
      ASSERT_EQ(out[i].limit_name(), "api");
      ASSERT_EQ(out[i].decided_by(), expected.decided_by());
    }
    clock.advance(Nanos(random() % 1'000'000'000));
  }
  const shm::View& other = single.core().view();
  for (const LimitCounter which : {LimitCounter::Allowed, LimitCounter::Refused,
                                   LimitCounter::Tokens}) {
    EXPECT_EQ(counted(which), shm::sum_counters(other, 0)[static_cast<std::size_t>(which)]);
  }
}

TEST_F(BatchTest, OneBadKeyLeavesTheOthersAlone) {
  start(kSmall);
  const std::string long_key(kMaxKeyBytes + 1, 'x');
  const std::vector<std::string_view> keys{"a", long_key, "a", ""};
  std::vector<Decision> out(4);

  limit().acquire_batch(keys, out);

  EXPECT_EQ(out[0].remaining(), 3U);
  EXPECT_EQ(out[1].reason(), Reason::KeyTooLong);
  EXPECT_EQ(out[2].remaining(), 2U);
  EXPECT_EQ(out[3].remaining(), 3U);
  EXPECT_EQ(counted(LimitCounter::Allowed), 3U);
}

TEST_F(BatchTest, CostBeyondTheMaximumChargesNobody) {
  start(kSmall);
  const std::vector<std::string_view> keys{"a", "b"};
  std::vector<Decision> out(2);

  limit().acquire_batch(keys, out, kMaxCost + 1);

  EXPECT_EQ(out[0].reason(), Reason::InvalidArgument);
  EXPECT_EQ(out[1].reason(), Reason::InvalidArgument);
  EXPECT_EQ(limit().try_acquire("a").remaining(), 3U);
}

TEST_F(BatchTest, FewerAnswersThanKeysAsksThatMany) {
  start(kSmall);
  const std::vector<std::string_view> keys{"a", "a", "a"};
  std::vector<Decision> out(2);

  limit().acquire_batch(keys, out);
  limit().acquire_batch({}, out);

  EXPECT_EQ(out[1].remaining(), 2U);
  EXPECT_EQ(limit().peek("a").remaining(), 1U);
}

TEST_F(BatchTest, AnswersAreReceipts) {
  start(kSmall);
  Limit api = limit();
  const std::vector<std::string_view> keys{"a", "b"};
  std::vector<Decision> out(2);
  api.acquire_batch(keys, out, 2);

  EXPECT_EQ(api.refund(out[0]).value(), 2U);

  EXPECT_EQ(api.try_acquire("a").remaining(), 3U);
  EXPECT_EQ(api.try_acquire("b").remaining(), 1U);
}

}  // namespace
}  // namespace cutwater::test
