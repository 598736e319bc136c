// SPDX-License-Identifier: Apache-2.0
#include "unit/client/client_fixture.hpp"

namespace cutwater::test {
namespace {

class ReloadTest : public InMemory {};

TEST_F(ReloadTest, KeepsTokensUsedAndHandlesGood) {
  start("limits:\n  api: {rate: 10/m, burst: 10}\n");
  Limit api = limit();
  Key alice = api.key("alice");
  ASSERT_EQ(alice.try_acquire(8).remaining(), 2U);

  ASSERT_TRUE(client->reload("limits:\n  api: {rate: 20/m, burst: 20}\n"));

  EXPECT_EQ(alice.try_acquire().remaining(), 11U);
  EXPECT_EQ(api.try_acquire("alice").remaining(), 10U);
  EXPECT_EQ(api.key("alice").peek().remaining(), 9U);
}

TEST_F(ReloadTest, TakesEffectAtTheNextNanosecondOfTheClock) {
  start("limits:\n  api: {rate: 1/s, burst: 1}\n");

  ASSERT_TRUE(client->reload("limits:\n  api: {rate: 1/s, burst: 3}\n"));

  EXPECT_EQ(clock.now(), 1ns);
  EXPECT_TRUE(limit().try_acquire("k", 3).allowed());
}

TEST_F(ReloadTest, RefusedConfigurationLeavesEverything) {
  start("limits:\n  api: {rate: 1/s, burst: 3}\n");
  const auto before = view().current();

  const auto reloaded = client->reload("limits:\n  api: {rate: 0/s}\n");

  EXPECT_EQ(reloaded.error().code(), Errc::InvalidConfig);
  EXPECT_EQ(view().current(), before);
  EXPECT_TRUE(limit().try_acquire("k", 3).allowed());
}

TEST_F(ReloadTest, RemovedLimitIsAnsweredDegradedUntilItIsBack) {
  start("limits:\n  api: {rate: 1/s, burst: 3}\n  other: {rate: 1/s, burst: 3}\n");
  Limit api = limit();
  Key alice = api.key("alice");
  ASSERT_TRUE(alice.try_acquire(3).allowed());

  ASSERT_TRUE(client->reload("limits:\n  other: {rate: 1/s, burst: 3}\n"));
  for (int i = 0; i < 3; ++i) {
    const Decision gone = api.try_acquire("alice");
    EXPECT_EQ(gone.reason(), Reason::Degraded);
    EXPECT_TRUE(gone.degraded());
    EXPECT_TRUE(gone.is_hint());
    EXPECT_GT(gone.retry_after(), 0ns);
    EXPECT_EQ(gone.limit_name(), "api");
    EXPECT_EQ(alice.try_acquire().reason(), Reason::Degraded);
    EXPECT_EQ(alice.peek().reason(), Reason::Degraded);
    EXPECT_EQ(api.reserve("alice", {.max_wait = 1s}).reason(), Reason::Degraded);
  }
  EXPECT_EQ(client->limit("gone").error().code(), Errc::UnknownName);
  clock.advance(1s);
  ASSERT_TRUE(client->reload("limits:\n  other: {rate: 1/s}\n  api: {rate: 1/s, burst: 3}\n"));

  EXPECT_TRUE(alice.try_acquire().allowed());
  EXPECT_TRUE(api.try_acquire("alice").allowed());
}

TEST_F(ReloadTest, AnsweredInABatchTooWhenALimitIsGone) {
  start("limits:\n  api: {rate: 1/s, burst: 3}\n");
  Limit api = limit();
  ASSERT_TRUE(client->reload("limits: {}\n"));
  const std::vector<std::string_view> keys{"a", "b", "c"};
  std::vector<Decision> out(3);

  api.acquire_batch(keys, out);

  for (const Decision& d : out) EXPECT_EQ(d.reason(), Reason::Degraded);
}

TEST_F(ReloadTest, RateThatDoesNotFitTheScaleKeepsTheDebt) {
  start("limits:\n  api: {rate: 1/d, burst: 10}\n");
  Key alice = limit().key("alice");
  ASSERT_EQ(alice.try_acquire(9).remaining(), 1U);

  ASSERT_TRUE(client->reload("limits:\n  api: {rate: 10M/s, burst: 1000000000}\n"));
  EXPECT_EQ(alice.peek(0).remaining(), 1'000'000'000U - 9);
  clock.advance(1s);
  ASSERT_TRUE(client->reload("limits:\n  api: {rate: 10M/s, burst: 5}\n"));

  EXPECT_TRUE(alice.try_acquire(5).allowed());
}

TEST_F(ReloadTest, ManyReloadsInARowGoThrough) {
  start("limits:\n  api: {rate: 1/h, burst: 100}\n");
  Limit api = limit();
  ASSERT_TRUE(api.try_acquire("k", 50).allowed());

  for (int i = 0; i < 50; ++i) {
    const auto reloaded = client->reload(i % 2 == 0 ? "limits:\n  api: {rate: 2/h, burst: 60}\n"
                                                    : "limits:\n  api: {rate: 1/h, burst: 100}\n");
    ASSERT_TRUE(reloaded) << i << ": " << reloaded.error().text();
  }

  EXPECT_EQ(api.peek("k", 0).remaining(), 50U);
}

TEST(RealClockReload, WaitsForTheLastChangeAndGoesThrough) {
  auto client = Client::in_memory("limits:\n  api: {rate: 1/d, burst: 2}\n").value();
  Limit api = client.limit("api").value();
  ASSERT_TRUE(api.try_acquire("k", 2).allowed());

  ASSERT_TRUE(client.reload("limits:\n  api: {rate: 1/d, burst: 3}\n"));
  ASSERT_TRUE(client.reload("limits:\n  api: {rate: 1/d, burst: 4}\n"));
  ASSERT_TRUE(client.reload("limits:\n  api: {rate: 1/d, burst: 4}\n"));

  // The second change waited for the first (100 ms ahead), so at least burst 3 is in force.
  EXPECT_TRUE(api.try_acquire("k").allowed());
}

}  // namespace
}  // namespace cutwater::test
