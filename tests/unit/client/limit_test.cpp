// SPDX-License-Identifier: Apache-2.0
#include <thread>

#include "unit/client/client_fixture.hpp"

namespace cutwater::test {
namespace {

using shm::LimitCounter;

class LimitTest : public InMemory {};

constexpr char kFivePerFive[] = "limits:\n  api: {rate: 1/s, burst: 5}\n";

TEST_F(LimitTest, GrantsTheBurstAndReportsTheExactTimes) {
  start(kFivePerFive);
  Limit api = limit();

  for (std::uint64_t left = 5; left-- > 0;) {
    const Decision d = api.try_acquire("alice");
    EXPECT_TRUE(d.allowed());
    EXPECT_EQ(d.remaining(), left);
    EXPECT_EQ(d.retry_after(), 0ns);
    EXPECT_EQ(d.reset_after(), (5 - left) * 1s);
  }
  const Decision refused = api.try_acquire("alice");

  EXPECT_EQ(refused.reason(), Reason::Limit);
  EXPECT_EQ(refused.retry_after(), 1s);
  EXPECT_EQ(refused.reset_after(), 5s);
  EXPECT_EQ(refused.limit_name(), "api");
  EXPECT_EQ(refused.decided_by(), DecidedBy::Private);
}

TEST_F(LimitTest, AdvertisedWaitIsEnoughAndNecessary) {
  start("limits:\n  api: {rate: 7/s, burst: 2}\n");
  Limit api = limit();
  EXPECT_TRUE(api.try_acquire("k", 2).allowed());
  const Nanos wait = api.try_acquire("k").retry_after();

  clock.advance(wait - 1ns);
  EXPECT_FALSE(api.try_acquire("k").allowed());
  clock.advance(1ns);

  EXPECT_TRUE(api.try_acquire("k").allowed());
}

TEST_F(LimitTest, CostAboveTheBurstIsNeverAndTakesNothing) {
  start(kFivePerFive);
  Limit api = limit();

  const Decision d = api.try_acquire("alice", 6);

  EXPECT_EQ(d.reason(), Reason::Never);
  EXPECT_EQ(d.retry_after(), kNever);
  EXPECT_TRUE(api.try_acquire("alice", 5).allowed());
}

TEST_F(LimitTest, RefusalWritesNothingButItsCounter) {
  start(kFivePerFive);
  Limit api = limit();
  ASSERT_TRUE(api.try_acquire("alice", 5).allowed());
  const shm::View& v = view();
  const std::string buckets(reinterpret_cast<const char*>(v.slots), v.slot_count * sizeof(Word16));

  for (int i = 0; i < 100; ++i) EXPECT_FALSE(api.try_acquire("alice").allowed());

  EXPECT_EQ(buckets, std::string(reinterpret_cast<const char*>(v.slots), buckets.size()));
  EXPECT_EQ(counted(LimitCounter::Refused), 100U);
}

TEST_F(LimitTest, LooksWriteNothingAtAll) {
  start(kFivePerFive);
  Limit api = limit();
  Key key = api.key("alice");
  ASSERT_TRUE(api.try_acquire("alice", 2).allowed());
  const std::string before = all_bytes();

  const Decision one = api.peek("alice");
  const Decision two = key.peek(4);
  const Decision three = api.try_acquire("alice", 0);
  const Decision four = key.try_acquire(0);
  const Decision five = api.peek("somebody else", 5);

  EXPECT_EQ(before, all_bytes());
  EXPECT_TRUE(one.allowed());
  EXPECT_EQ(one.remaining(), 2U);
  EXPECT_EQ(two.reason(), Reason::Limit);
  EXPECT_EQ(two.retry_after(), 1s);
  EXPECT_TRUE(three.allowed());
  EXPECT_EQ(three.remaining(), 3U);
  EXPECT_EQ(four.remaining(), 3U);
  EXPECT_TRUE(five.allowed());
}

TEST_F(LimitTest, LooksOfAThreadThatNeverDecidedWriteNothingEither) {
  start(kFivePerFive);
  Limit api = limit();
  const std::string before = all_bytes();

  std::thread([&] { api.try_acquire("alice", 0); api.peek("alice"); }).join();

  EXPECT_EQ(before, all_bytes());
}

TEST_F(LimitTest, EmptyKeyAndHostileBytesAreKeysLikeAnyOther) {
  start("limits:\n  api: {rate: 1/d, burst: 1}\n");
  Limit api = limit();
  const std::string longest(kMaxKeyBytes, 'x');
  std::string differs = longest;
  differs.back() = 'y';

  for (const std::string& key : {std::string(), std::string("\0", 1), std::string("\0\0", 2),
                                 std::string("\xff\xfe"), longest, differs}) {
    EXPECT_TRUE(api.try_acquire(key).allowed());
    EXPECT_FALSE(api.try_acquire(key).allowed());
  }
}

TEST_F(LimitTest, KeyTooLongChargesNothingAnyWay) {
  start(kFivePerFive);
  Limit api = limit();
  const std::string key(kMaxKeyBytes + 1, 'x');
  const std::string before = all_bytes();

  EXPECT_EQ(api.try_acquire(key).reason(), Reason::KeyTooLong);
  EXPECT_EQ(api.peek(key).reason(), Reason::KeyTooLong);
  EXPECT_EQ(api.key(key).try_acquire().reason(), Reason::KeyTooLong);
  EXPECT_EQ(api.key(key).peek().reason(), Reason::KeyTooLong);
  EXPECT_EQ(api.acquire(key, {.max_wait = 1s}).reason(), Reason::KeyTooLong);
  EXPECT_EQ(api.reserve(key, {.max_wait = 1s}).reason(), Reason::KeyTooLong);
  EXPECT_EQ(api.try_acquire(key).retry_after(), kNever);
  EXPECT_EQ(api.try_acquire(key).limit_name(), "api");

  EXPECT_EQ(before, all_bytes());
}

TEST_F(LimitTest, CostBeyondTheDocumentedMaximumIsInvalid) {
  start(kFivePerFive);
  Limit api = limit();
  const std::string before = all_bytes();

  for (const std::uint64_t cost : {kMaxCost + 1, ~std::uint64_t{0}}) {
    EXPECT_EQ(api.try_acquire("alice", cost).reason(), Reason::InvalidArgument);
    EXPECT_EQ(api.peek("alice", cost).reason(), Reason::InvalidArgument);
    EXPECT_EQ(api.key("alice").try_acquire(cost).reason(), Reason::InvalidArgument);
    EXPECT_EQ(api.key("alice").peek(cost).reason(), Reason::InvalidArgument);
    EXPECT_EQ(api.reserve("alice", {.cost = cost}).reason(), Reason::InvalidArgument);
  }

  EXPECT_EQ(before, all_bytes());
  EXPECT_EQ(api.try_acquire("alice", kMaxCost).reason(), Reason::Never);
}

TEST_F(LimitTest, KeyHandleAndStringAreOneBucket) {
  start(kFivePerFive);
  Limit api = limit();
  Key alice = api.key("alice");
  Key copy = alice;

  EXPECT_EQ(alice.try_acquire().remaining(), 4U);
  EXPECT_EQ(api.try_acquire("alice").remaining(), 3U);
  EXPECT_EQ(copy.try_acquire(2).remaining(), 1U);
  copy = api.key("bob");

  EXPECT_EQ(copy.try_acquire().remaining(), 4U);
  EXPECT_EQ(alice.try_acquire().remaining(), 0U);
}

TEST_F(LimitTest, LimitsOfTheSameKeyAreIndependent) {
  start("limits:\n  api: {rate: 1/s, burst: 5}\n  login: {rate: 1/s, burst: 1}\n");
  Limit api = limit();
  Limit login = limit("login");

  EXPECT_TRUE(login.try_acquire("alice").allowed());
  EXPECT_FALSE(login.try_acquire("alice").allowed());

  EXPECT_EQ(api.try_acquire("alice").remaining(), 4U);
}

TEST_F(LimitTest, UnknownNameListsTheNearest) {
  start("limits:\n  api-per-user: {rate: 1/s}\n  api-per-tenant: {rate: 1/s}\n  x: {rate: 1/s}\n");

  const auto found = client->limit("api-per-usr");

  EXPECT_EQ(found.error().code(), Errc::UnknownName);
  const std::string& text = found.error().text();
  EXPECT_NE(text.find("\"api-per-usr\""), std::string::npos) << text;
  EXPECT_NE(text.find("api-per-user"), std::string::npos) << text;
}

TEST_F(LimitTest, UnknownNameWithoutAnyLimitSaysSo) {
  start("");

  const auto found = client->limit("api\n\x7f");

  EXPECT_EQ(found.error().code(), Errc::UnknownName);
  EXPECT_NE(found.error().text().find("has no limits"), std::string::npos);
  EXPECT_EQ(found.error().text().find('\n'), std::string::npos);
}

TEST_F(LimitTest, SameNameGivesTheSameLimit) {
  start(kFivePerFive);

  Limit one = limit();
  Limit two = limit();

  EXPECT_EQ(one.name(), "api");
  EXPECT_EQ(one.try_acquire("alice", 3).remaining(), 2U);
  EXPECT_EQ(two.try_acquire("alice").remaining(), 1U);
}

TEST_F(LimitTest, CountsWhatItAnswers) {
  start(kFivePerFive);
  Limit api = limit();

  api.try_acquire("alice", 3);
  api.try_acquire("alice", 2);
  api.try_acquire("alice", 2);
  api.try_acquire("bob", 6);

  EXPECT_EQ(counted(LimitCounter::Allowed), 2U);
  EXPECT_EQ(counted(LimitCounter::Tokens), 5U);
  EXPECT_EQ(counted(LimitCounter::Refused), 2U);
}

TEST_F(LimitTest, InvalidConfigurationGivesEveryErrorWithItsPlace) {
  const auto made = Client::in_memory("limits:\n  api: {rat: 1/s, burst: 0}\n", clock);

  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), Errc::InvalidConfig);
  EXPECT_NE(made.error().text().find("2:9"), std::string::npos) << made.error().text();
  EXPECT_NE(made.error().text().find("rate"), std::string::npos) << made.error().text();
}

TEST_F(LimitTest, ClientsOnOneClockMoveTogether) {
  start("limits:\n  api: {rate: 1/s, burst: 1}\n");
  Client other = make_client("limits:\n  api: {rate: 1/s, burst: 1}\n", clock);
  Limit mine = limit();
  Limit theirs = other.limit("api").value();
  EXPECT_TRUE(mine.try_acquire("k").allowed());
  EXPECT_TRUE(theirs.try_acquire("k").allowed());

  clock.advance(1s);

  EXPECT_TRUE(mine.try_acquire("k").allowed());
  EXPECT_TRUE(theirs.try_acquire("k").allowed());
  EXPECT_EQ(client->now(), other.now());
}

TEST_F(LimitTest, SteppedClockOnlyMovesForward) {
  start("limits:\n  api: {rate: 1/s, burst: 1}\n");
  clock.set(10s);
  const Nanos before = client->now();

  clock.advance(-5s);
  clock.set(3s);

  EXPECT_EQ(clock.now(), 10s);
  EXPECT_EQ(client->now(), before);
}

TEST_F(LimitTest, SteppedClockStopsAtTheEndOfSegmentTime) {
  start("limits: { api: { rate: 1/s, burst: 1 } }");
  clock.advance(5s);
  clock.advance(kNever);
  const Nanos end = clock.now();
  EXPECT_GT(end, 24h * 365 * 18);
  EXPECT_EQ(client->now(), end + 1s);

  clock.set(kNever);
  clock.advance(1ns);

  EXPECT_EQ(clock.now(), end);
}

TEST_F(LimitTest, ClientMadeOnAClockThatRanStartsThere) {
  clock.set(1h);
  start("limits:\n  api: {rate: 1/s, burst: 2}\n");
  Limit api = limit();

  EXPECT_EQ(clock.now(), 1h);
  EXPECT_EQ(api.try_acquire("k", 2).remaining(), 0U);
  EXPECT_EQ(api.try_acquire("k").retry_after(), 1s);
}

TEST_F(LimitTest, MovedClientGoesOn) {
  start(kFivePerFive);
  Limit api = limit();
  EXPECT_EQ(api.try_acquire("alice").remaining(), 4U);

  Client moved = std::move(*client);

  EXPECT_EQ(api.try_acquire("alice").remaining(), 3U);
  EXPECT_EQ(moved.limit("api").value().try_acquire("alice").remaining(), 2U);
  EXPECT_EQ(moved.instance(), "main");
}

TEST(RealClock, InMemoryClientDecidesOnBoottime) {
  auto client = Client::in_memory("limits:\n  api: {rate: 1/d, burst: 2}\n").value();
  Limit api = client.limit("api").value();

  EXPECT_TRUE(api.try_acquire("k").allowed());
  EXPECT_TRUE(api.try_acquire("k").allowed());
  const Decision refused = api.try_acquire("k");

  EXPECT_FALSE(refused.allowed());
  EXPECT_GT(refused.retry_after(), 0ns);
  EXPECT_LE(refused.retry_after(), 24h);
}

}  // namespace
}  // namespace cutwater::test
