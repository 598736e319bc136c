// SPDX-License-Identifier: Apache-2.0
// The test kit, used as a user's test would.
#include <cutwater/testing.hpp>

#include <gtest/gtest.h>

#include <thread>

namespace cutwater::test {
namespace {

using namespace std::chrono_literals;

constexpr char kYaml[] =
    "limits:\n"
    "  api:    {rate: 1/s, burst: 3}\n"
    "  tenant: {rate: 1/h, burst: 10}\n"
    "  leased: {rate: 1/s, burst: 160, thread-lease: 10}\n"
    "breakers:\n"
    "  fraud: {}\n"
    "bulkheads:\n"
    "  fraud: {max-concurrent-calls: 1}\n";

class TestKit : public testing::Test {
 protected:
  TestLimits limits = TestLimits::make(kYaml).value();
  Limit api = limits.client().limit("api").value();
  Limit tenant = limits.client().limit("tenant").value();
};

TEST_F(TestKit, DecidesByTheRealCodeOnAClockThatStands) {
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(api.try_acquire("alice").allowed());
  EXPECT_EQ(api.try_acquire("alice").retry_after(), 1s);
  limits.advance(1s);
  EXPECT_TRUE(api.try_acquire("alice").allowed());
  EXPECT_EQ(limits.now(), 1s);
}

TEST_F(TestKit, CountsWhatWasAskedEveryWay) {
  Key alice = api.key("alice");
  const std::string_view keys[] = {"alice", "bob"};
  Decision out[2];
  EXPECT_TRUE(alice.try_acquire().allowed());
  api.acquire_batch(keys, out);
  EXPECT_TRUE(api.acquire("alice", {.max_wait = 1s}).allowed());
  EXPECT_FALSE(api.try_acquire("alice", 2).allowed());
  EXPECT_EQ(api.peek("alice").reason(), Reason::Limit);
  EXPECT_EQ(alice.peek(0).remaining(), 0U);
  EXPECT_EQ(api.charge("bob", 1).charged(), 1U);
  EXPECT_TRUE(limits.client().acquire_all({{api, "bob"}, {tenant, "acme", 2}}).allowed());
  EXPECT_FALSE(limits.client().acquire_all({{api, "bob"}, {tenant, "acme", 2}}).allowed());

  const TestCounts of_alice = limits.counts("api", "alice");
  EXPECT_EQ(of_alice.asked, 4U);
  EXPECT_EQ(of_alice.allowed, 3U);
  EXPECT_EQ(of_alice.refused, 1U);
  EXPECT_EQ(of_alice.tokens, 3U);
  EXPECT_EQ(of_alice.looks, 2U);
  EXPECT_EQ(limits.counts("api", "bob").allowed, 3U);
  EXPECT_EQ(limits.counts("api", "bob").refused, 1U);
  EXPECT_EQ(limits.counts("api").asked, 8U);
  EXPECT_EQ(limits.counts("tenant").asked, 1U);
  EXPECT_EQ(limits.counts("tenant").tokens, 2U);
  EXPECT_EQ(limits.counts("api", "nobody").asked, 0U);
  const std::vector<TestAsk> asks = limits.asks();
  ASSERT_EQ(asks.size(), 11U);
  EXPECT_EQ(asks[1].key, "alice");
  EXPECT_EQ(asks[2].key, "bob");
  EXPECT_EQ(asks[4].cost, 2U);
  EXPECT_EQ(asks[4].reason, Reason::Limit);
  EXPECT_TRUE(asks[5].look);
  limits.forget();
  EXPECT_EQ(limits.counts("api").asked, 0U);
  EXPECT_TRUE(limits.asks().empty());
}

TEST_F(TestKit, ForcesARefusalWithItsWait) {
  ASSERT_TRUE(limits.force("api", {.retry_after = 30s}));

  for (int i = 0; i < 2; ++i) {
    const Decision d = api.try_acquire("alice");
    EXPECT_EQ(d.reason(), Reason::Limit);
    EXPECT_EQ(d.retry_after(), 30s);
    EXPECT_EQ(d.limit_name(), "api");
  }
  EXPECT_EQ(api.key("bob").try_acquire().retry_after(), 30s);
  limits.release("api");

  EXPECT_EQ(api.try_acquire("alice").remaining(), 2U) << "nothing was charged";
  EXPECT_EQ(limits.counts("api").forced, 3U);
}

TEST_F(TestKit, ForcesAnAnswerSomeTimes) {
  ASSERT_TRUE(limits.force("api", {.reason = Reason::Degraded, .times = 2}));

  EXPECT_TRUE(api.try_acquire("alice").degraded());
  EXPECT_TRUE(api.try_acquire("alice").is_hint());
  EXPECT_TRUE(api.try_acquire("alice").allowed());
}

TEST_F(TestKit, ForcesAnAllowanceThatCanBeRefundedOnce) {
  ASSERT_TRUE(api.try_acquire("alice", 3).allowed());
  ASSERT_TRUE(limits.force("api", {.reason = Reason::Allowed}));

  Decision d = api.try_acquire("alice", 2);
  EXPECT_TRUE(d.allowed());
  EXPECT_EQ(api.refund(d).value(), 2U);
  EXPECT_EQ(api.refund(d).error().code(), Errc::AlreadyUsed);
  EXPECT_EQ(limits.counts("api").refunds, 1U);
}

TEST_F(TestKit, AKeysForcedAnswerGoesBeforeItsLimits) {
  ASSERT_TRUE(limits.force("api", "alice", {.reason = Reason::Banned, .retry_after = kNever}));
  ASSERT_TRUE(limits.force("api", {.reason = Reason::Allowed}));

  EXPECT_EQ(api.try_acquire("alice").reason(), Reason::Banned);
  EXPECT_EQ(api.try_acquire("alice").retry_after(), kNever);
  for (int i = 0; i < 9; ++i) EXPECT_TRUE(api.try_acquire("bob").allowed());
  limits.release();
  EXPECT_EQ(api.try_acquire("bob").remaining(), 2U);
}

TEST_F(TestKit, RefundsRealChargesAndOnlyThose) {
  Decision d = api.try_acquire("alice", 2);
  EXPECT_EQ(api.refund(d).value(), 2U);
  EXPECT_EQ(api.peek("alice", 0).remaining(), 3U);
  Decision of_tenant = tenant.try_acquire("acme");
  EXPECT_EQ(api.refund(of_tenant).error().code(), Errc::InvalidArgument);
  Admission all = limits.client().acquire_all({{api, "alice"}, {tenant, "acme"}});
  EXPECT_EQ(limits.client().refund(all).value(), 2U);
}

TEST_F(TestKit, AForcedItemRefusesAnAllOrNoneAskOrIsLeftOut) {
  ASSERT_TRUE(limits.force("tenant", {.retry_after = 7s}));
  const Admission refused = limits.client().acquire_all({{api, "alice"}, {tenant, "acme"}});
  EXPECT_EQ(refused.limit_name(), "tenant");
  EXPECT_EQ(refused.index(), 1U);
  EXPECT_EQ(refused.retry_after(), 7s);
  EXPECT_EQ(api.peek("alice", 0).remaining(), 3U);

  ASSERT_TRUE(limits.force("tenant", {.reason = Reason::Allowed}));
  EXPECT_TRUE(limits.client().acquire_all({{api, "alice", 3}, {tenant, "acme", 99}}).allowed());
  EXPECT_EQ(api.peek("alice", 0).remaining(), 0U);
  EXPECT_EQ(limits.client().acquire_all({{tenant, "acme"}, {api, "alice"}}).index(), 1U);
}

TEST_F(TestKit, UnknownNamesAndWrongConfigurationsAreErrors) {
  EXPECT_EQ(limits.force("apo").error().code(), Errc::UnknownName);
  EXPECT_NE(limits.force("apo").error().text().find("api"), std::string::npos);
  EXPECT_EQ(limits.client().limit("apo").error().code(), Errc::UnknownName);
  EXPECT_EQ(TestLimits::make("limits: [").error().code(), Errc::InvalidConfig);
  EXPECT_EQ(api.try_acquire(std::string(5000, 'x')).reason(), Reason::KeyTooLong);
}

TEST_F(TestKit, FollowsAReload) {
  ASSERT_TRUE(api.try_acquire("alice", 3).allowed());
  ASSERT_TRUE(limits.reload("limits:\n  api: {rate: 1/s, burst: 5}\n  new: {rate: 1/s}\n"));

  EXPECT_EQ(api.peek("alice", 0).remaining(), 2U);
  EXPECT_TRUE(limits.client().limit("new").value().try_acquire("k").allowed());
  EXPECT_TRUE(tenant.try_acquire("acme").degraded());
}

TEST_F(TestKit, RemembersABoundedNumber) {
  for (std::size_t i = 0; i < kTestAsksKept + 10; ++i) api.peek(std::to_string(i));
  EXPECT_EQ(limits.asks().size(), kTestAsksKept);
  EXPECT_EQ(limits.asks().front().key, "10");
  for (std::size_t i = 0; i < kTestKeysCounted; ++i) api.peek(std::to_string(i));
  EXPECT_EQ(limits.counts("api").looks, kTestAsksKept + 10 + kTestKeysCounted);
  api.peek("one too many");
  EXPECT_EQ(limits.counts("api", "one too many").looks, 0U);
}

TEST_F(TestKit, CountsThreadsExactly) {
  Limit leased = limits.client().limit("leased").value();
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 100; ++n) leased.try_acquire("k");
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(limits.counts("leased").asked, 400U);
  EXPECT_LE(limits.counts("leased").allowed, 160U);
  EXPECT_GE(limits.counts("leased").allowed, 160U - 4 * 10) << "at most a lease each is out";
}

TEST_F(TestKit, MovesAsAWhole) {
  TestLimits moved = std::move(limits);
  EXPECT_TRUE(api.try_acquire("alice").allowed());
  EXPECT_EQ(moved.counts("api").asked, 1U);
}

TEST_F(TestKit, PlacesOfABulkheadAreCountedAndForced) {
  Bulkhead gate = limits.client().bulkhead("fraud").value();
  {
    auto place = gate.try_enter();
    EXPECT_TRUE(place && place->holds());
    EXPECT_FALSE(gate.enter());
  }
  ASSERT_TRUE(limits.force_bulkhead("fraud",
                                    {.reason = Reason::Full, .retry_after = 3s, .times = 1}));
  auto full = gate.try_enter();
  EXPECT_EQ(full.refusal().reason(), Reason::Full);
  EXPECT_EQ(full.refusal().retry_after(), 3s);
  EXPECT_EQ(full.refusal().text(),
            "bulkhead 'fraud' is full: 1 of 1 place is held; retry after about 3 s");
  EXPECT_TRUE(gate.run([] {}));

  ASSERT_TRUE(limits.force_bulkhead("fraud", {.reason = Reason::Degraded}));
  EXPECT_TRUE(gate.try_enter().degraded());
  ASSERT_TRUE(limits.force_bulkhead("fraud", {.reason = Reason::Allowed}));
  auto forced = gate.try_enter();
  EXPECT_TRUE(forced);
  EXPECT_FALSE(forced->holds());
  limits.release_bulkhead("fraud");
  EXPECT_TRUE(gate.try_enter()->holds());

  const TestCounts counts = limits.bulkhead_counts("fraud");
  EXPECT_EQ(counts.asked, 7U);
  EXPECT_EQ(counts.allowed, 4U);
  EXPECT_EQ(counts.refused, 3U);
  EXPECT_EQ(counts.forced, 3U);
  EXPECT_EQ(limits.force_bulkhead("frod").error().code(), Errc::UnknownName);
  limits.forget();
  EXPECT_EQ(limits.bulkhead_counts("fraud").asked, 0U);
}

TEST_F(TestKit, AnAdmissionOfAllPartsIsSeenInEach) {
  Client& client = limits.client();
  Breaker breaker = client.breaker("fraud").value();
  Bulkhead gate = client.bulkhead("fraud").value();
  const auto enter = [&] {
    return client.enter({.breaker = &breaker, .bulkhead = &gate, .limits = {{api, "alice"}}});
  };
  EXPECT_TRUE(enter());
  ASSERT_TRUE(limits.force("api"));
  const Entry limited = enter();
  EXPECT_EQ(limited.reason(), Reason::Limit);
  EXPECT_EQ(limited.refused_name(), "api");
  EXPECT_EQ(gate.use().in_use, 0U);
  ASSERT_TRUE(limits.force_bulkhead("fraud"));
  EXPECT_EQ(enter().refused_by(), EnterPart::Bulkhead);
  EXPECT_EQ(limits.counts("api").asked, 2U);
  EXPECT_EQ(limits.bulkhead_counts("fraud").asked, 3U);
}

}  // namespace
}  // namespace cutwater::test
