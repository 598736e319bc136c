// SPDX-License-Identifier: Apache-2.0
// Limits of several windows, calendar windows, overrides, shadow and several limits at once, over
// every way of asking.
#include <cutwater/client.hpp>

#include "shm/limit/admit.hpp"
#include "src/core.hpp"
#include "vectors/every_way.hpp"

namespace cutwater::test {
namespace {

class KindCases : public EveryWay {
 protected:
  static std::string no(int i) { return std::to_string(i); }
};

// covers: W8, W9, W10, W11, W13
TEST_P(KindCases, W8W9W10W11W13TwoWindowsOnOneLimit) {
  start("api: {windows: [{rate: 10/s, burst: 10}, {rate: 20/m, burst: 20}]}");
  const auto minute_left = [&] {
    shm::BucketAsk minute;
    const shm::View& view = way->view();
    const shm::LimitHandle api = shm::resolve(view, "api");
    minute = {.limit = api.ref, .key = shm::key_of(api, "k").hash};
    minute.cost = 0;
    minute.window = 1;
    std::uint64_t hint = shm::kNoSlot;
    DecisionData out;
    EXPECT_EQ(shm::look(view, minute, hint, out), shm::Outcome::Answered);
    return Decision{out}.remaining();
  };

  Decision d = limit().try_acquire("k", 10);
  EXPECT_TRUE(d.allowed());
  EXPECT_EQ(d.remaining(), 0U);
  EXPECT_EQ(minute_left(), 10U);

  d = limit().try_acquire("k");
  EXPECT_EQ(d.reason(), Reason::Limit);
  EXPECT_EQ(d.window(), 0);
  EXPECT_EQ(d.retry_after(), 100ms);
  EXPECT_EQ(minute_left(), 10U);

  at(1s);
  EXPECT_TRUE(limit().try_acquire("k", 10).allowed());
  EXPECT_EQ(limit().peek("k", 0).remaining(), 0U);
  EXPECT_EQ(minute_left(), 0U);

  at(2s);
  d = limit().try_acquire("k");
  EXPECT_EQ(d.reason(), Reason::Limit);
  EXPECT_EQ(d.window(), 1);
  EXPECT_EQ(d.retry_after(), 1s);

  at(4s);
  d = limit().try_acquire("k");
  EXPECT_TRUE(d.allowed());
  EXPECT_EQ(d.remaining(), 0U);
  EXPECT_EQ(d.window(), 1);
  EXPECT_EQ(limit().try_acquire("k").window(), 1);
}

// covers: W1, C017 (in memory, mapped, socket; calendar)
TEST_P(KindCases, W1ACalendarCountsBetweenEdgesOfTheWallClock) {
  start("api: {calendar: {count: 10, per: minute}}");
  // A stepped clock starts at 1970-01-01T00:00:00Z; edges are whole minutes.
  at(59s);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(limit().try_acquire("k").allowed());
  Decision d = limit().try_acquire("k");
  EXPECT_EQ(d.reason(), Reason::Limit);
  EXPECT_EQ(d.retry_after(), 1s);
  EXPECT_EQ(d.reset_after(), 1s);

  at(60s);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(limit().try_acquire("k").allowed());
  d = limit().try_acquire("k");
  EXPECT_EQ(d.retry_after(), 60s);
  EXPECT_EQ(d.reset_after(), 60s);
  EXPECT_FALSE(d.extrapolated());
}

// covers: C011
TEST_P(KindCases, C011OneRefusesSoNothingIsTaken) {
  start("user: {rate: 1/m}, global: {rate: 10/m}");
  for (const bool user_first : {true, false}) {
    Client& client = way->client();
    Limit user = limit("user"), global = limit("global");
    const std::string tag = user_first ? "1" : "2";
    const auto ask = [&](const std::string& who) {
      return user_first ? client.acquire_all({{user, who + tag}, {global, tag}})
                        : client.acquire_all({{global, tag}, {user, who + tag}});
    };
    int admitted = 0;
    for (int i = 0; i < 20; ++i) admitted += ask("A").allowed();
    EXPECT_EQ(admitted, 1);
    EXPECT_EQ(global.peek(tag, 0).remaining(), 9U);
    for (char who = 'B'; who <= 'J'; ++who) admitted += ask(std::string(1, who)).allowed();
    EXPECT_EQ(admitted, 10);
    EXPECT_EQ(ask("K").limit_name(), "global");
    EXPECT_EQ(ask("A").limit_name(), "user");
  }
}

// covers: C008 (unlimited, blocked)
TEST_P(KindCases, C008UnlimitedAndBlockedAreTwoWords) {
  start("open: {unlimited: true}, shut: {blocked: true}");
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(limit("open").try_acquire(no(i), 1000).allowed());
    const Decision d = limit("shut").try_acquire(no(i));
    EXPECT_EQ(d.reason(), Reason::Banned);
    EXPECT_EQ(d.retry_after(), kNever);
  }
}

TEST_P(KindCases, KeysHaveRatesOfTheirOwn) {
  start("api: {rate: 1/s, burst: 1, keys: {big: {rate: 5/s, burst: 5}, \"partner:*\": {rate: 3/s, "
        "burst: 3}, monitor: {unlimited: true}, mallory: {banned: true}}}");

  EXPECT_EQ(limit().peek("alice", 0).remaining(), 1U);
  EXPECT_EQ(limit().peek("big", 0).remaining(), 5U);
  EXPECT_EQ(limit().peek("partner:x", 0).remaining(), 3U);
  EXPECT_TRUE(limit().try_acquire("monitor", 100).allowed());
  EXPECT_EQ(limit().try_acquire("mallory").reason(), Reason::Banned);
  Key partner = limit().key("partner:x");
  EXPECT_TRUE(partner.try_acquire(3).allowed());
  reload("api: {rate: 1/s, burst: 1}");
  EXPECT_EQ(partner.try_acquire().retry_after(), 3s);   // 3 used of 1: the key keeps its debt
  EXPECT_EQ(limit().try_acquire("mallory").reason(), Reason::Allowed);
}

TEST_P(KindCases, AShadowLimitSaysWhatItWouldHaveSaid) {
  start("api: {rate: 1/s, burst: 1, mode: shadow}");
  EXPECT_FALSE(limit().try_acquire("k").shadow());

  const Decision d = limit().try_acquire("k");

  EXPECT_TRUE(d.allowed());
  EXPECT_TRUE(d.shadow());
  EXPECT_EQ(d.would(), Reason::Limit);
}

INSTANTIATE_TEST_SUITE_P(Ways, KindCases, ::testing::ValuesIn(every_way()), way_name);

}  // namespace
}  // namespace cutwater::test
