// SPDX-License-Identifier: Apache-2.0
// A client that asks over the socket, against a scripted daemon.
#include <algorithm>

#include <cutwater/http.hpp>

#include "unit/client/ask_fixture.hpp"

namespace cutwater::test {
namespace {

TEST_F(AskTest, AnAnswerHasEveryFieldOfTheDaemons) {
  daemon.tokens = 5;
  Client client = open(options());
  Limit api = client.limit("api").value();

  const Decision first = api.try_acquire("alice", 3);
  const Decision refused = api.try_acquire("alice", 3);
  const Decision look = api.peek("alice", 2);

  EXPECT_TRUE(first.allowed());
  EXPECT_EQ(first.remaining(), 2U);
  EXPECT_EQ(first.reset_after(), 3ns);
  EXPECT_EQ(first.charged(), 3U);
  EXPECT_EQ(first.decided_by(), DecidedBy::Socket);
  EXPECT_EQ(first.limit_name(), "api");
  EXPECT_FALSE(first.degraded());
  EXPECT_EQ(refused.reason(), Reason::Limit);
  EXPECT_EQ(refused.remaining(), 2U);
  EXPECT_EQ(refused.retry_after(), 12'345'678'901ns);
  EXPECT_EQ(refused.reset_after(), kNever);
  EXPECT_TRUE(look.allowed());
  EXPECT_EQ(look.charged(), 0U);
  EXPECT_EQ(daemon.executed("api", "alice"), 3U);
  EXPECT_EQ(client.status().way, ClientWay::Socket);
  EXPECT_EQ(client.status().asked, 4U) << "RESOLVE and three";
  EXPECT_EQ(client.instance(), "main");
  EXPECT_EQ(lines, std::vector<std::string>{
                       "client \"asker\" asks the daemon over the socket"});
}

TEST_F(AskTest, WhatTheDaemonToldOfALimitIsKnownHere) {
  Client client = open(options());
  Limit api = client.limit("api").value();

  const auto policy = policy_of(api.try_acquire("alice"));

  ASSERT_TRUE(policy);                           // 2 per minute, burst 5
  EXPECT_EQ(rate_limit_policy_field(std::span{&*policy, 1}), "\"api\";q=5;w=150");
  EXPECT_EQ(api.ip_prefix().v4, 24);
  EXPECT_EQ(api.ip_prefix().v6, 56);
}

TEST_F(AskTest, NamesNobodyHasAreUnknownWithTheNearest) {
  Client client = open(options());

  const auto missing = client.limit("apo");

  EXPECT_EQ(missing.error().code(), Errc::UnknownName);
  EXPECT_NE(missing.error().text().find("the nearest are api"), std::string::npos);
  EXPECT_EQ(client.limit("not a name").error().code(), Errc::UnknownName);
}

TEST_F(AskTest, ALimitThatIsGoneIsDegradedWithAHint) {
  Client client = open(options(IfAbsent::Allow));
  Limit api = client.limit("api").value();
  daemon.limits = {"other"};

  const Decision d = api.try_acquire("alice");

  EXPECT_EQ(d.reason(), Reason::Degraded) << "if_absent is for an absent daemon";
  EXPECT_TRUE(d.degraded());
  EXPECT_TRUE(d.is_hint());
  EXPECT_EQ(client.status().degraded, 0U);
}

TEST_F(AskTest, KeysOfEveryKindArriveAsTheyAre) {
  Client client = open(options());
  Limit api = client.limit("api").value();
  const std::string nul("a\0b", 3), longest(kMaxKeyBytes, 'x');

  for (const std::string& key : {std::string{}, nul, longest, std::string("\xff\xff")}) {
    EXPECT_TRUE(api.try_acquire(key).allowed());
    EXPECT_EQ(daemon.executed("api", key), 1U);
  }
  EXPECT_EQ(api.try_acquire(longest + "x").reason(), Reason::KeyTooLong);
  EXPECT_EQ(api.try_acquire("k", kMaxCost + 1).reason(), Reason::InvalidArgument);
  EXPECT_EQ(daemon.executed_in_all(), 4U);
}

TEST_F(AskTest, HandlesKeepTheirKeyAndAreCopied) {
  Client client = open(options());
  Limit api = client.limit("api").value();
  Key copy = api.key("nobody");
  {
    Key alice = api.key("alice");
    copy = alice;
    const Key third = copy;
    EXPECT_TRUE(alice.try_acquire().allowed());
    EXPECT_TRUE(third.peek().allowed());
  }
  EXPECT_TRUE(copy.try_acquire(2).allowed());

  EXPECT_EQ(daemon.executed("api", "alice"), 3U);
  EXPECT_EQ(daemon.executed("api", "nobody"), 0U);
}

TEST_F(AskTest, BatchesGoOutInFramesAndComeBackInOrder) {
  daemon.tokens = 1;
  Client client = open(options());
  Limit api = client.limit("api").value();
  std::vector<std::string> names;
  for (int i = 0; i < 600; ++i) names.push_back("key " + std::to_string(i % 300));
  for (int i = 0; i < 20; ++i) names.push_back(std::string(4000, 'a') + std::to_string(i));
  names[100] = std::string(kMaxKeyBytes + 1, 'x');
  const std::vector<std::string_view> keys(names.begin(), names.end());
  std::vector<Decision> out(keys.size());

  api.acquire_batch(keys, out);

  for (std::size_t i = 0; i < keys.size(); ++i) {
    const bool second = i >= 300 && i < 600 && i != 400;
    if (i == 100) EXPECT_EQ(out[i].reason(), Reason::KeyTooLong);
    else EXPECT_EQ(out[i].reason(), second ? Reason::Limit : Reason::Allowed) << i;
  }
  EXPECT_EQ(daemon.faults, 0U);
  EXPECT_GE(daemon.requests, 4U + 5) << "256 items and 16 KiB of keys a frame";
}

TEST_F(AskTest, RefundNamesTheAnswerAndIsSpentOnce) {
  Client client = open(options());
  Limit api = client.limit("api").value();
  Decision d = api.try_acquire("alice");
  Decision look = api.peek("alice");

  EXPECT_EQ(api.refund(d).value(), 1U);
  EXPECT_EQ(daemon.executed("api", "alice"), 0U);
  EXPECT_EQ(api.refund(d).error().code(), Errc::AlreadyUsed);
  EXPECT_EQ(api.refund(look).error().code(), Errc::InvalidArgument);
  EXPECT_EQ(daemon.refunds, 1U);
}

TEST_F(AskTest, AReceiptOfAnotherSessionIsTooLate) {
  Client client = open(options());
  Limit api = client.limit("api").value();
  Decision d = api.try_acquire("alice");
  daemon.stop();
  daemon.start();
  while (api.try_acquire("bob").degraded()) {}

  EXPECT_EQ(api.refund(d).error().code(), Errc::TooLate);
  EXPECT_EQ(daemon.refunds, 0U);
}

TEST_F(AskTest, CostsThatNoItemCanSayTogetherAreRefusedAndNotMisunderstood) {
  daemon.tokens = kMaxCost;
  Client client = open(options(IfAbsent::Deny));
  Limit api = client.limit("api").value();

  const Admission both = client.acquire_all({{api, "alice", kMaxCost}, {api, "alice", 2}});

  EXPECT_EQ(both.reason(), Reason::Limit);
  EXPECT_EQ(both.index(), 1U);
  EXPECT_EQ(daemon.faults, 0U);
}

TEST_F(AskTest, NobodySleepsLongerThanHeAskedFor) {
  Client client = open(options());
  Limit api = client.limit("api").value();
  for (const std::uint64_t wait_ns : {std::uint64_t{3'600'000'000'000}, wire::kNever - 1}) {
    daemon.wait_ns = wait_ns;

    const Decision d = api.acquire("alice", {.max_wait = 5ms});

    EXPECT_TRUE(d.allowed());
    EXPECT_GE(d.starts_in(), 3'600'000'000'000ns) << "told as it was answered";
  }
}

TEST_F(AskTest, BusyIsWaitedOutAndAskedAgain) {
  Client client = open(options());
  Limit api = client.limit("api").value();
  daemon.busy = 2;

  EXPECT_TRUE(api.try_acquire("alice").allowed());

  EXPECT_EQ(daemon.executed("api", "alice"), 1U);
  EXPECT_EQ(daemon.faults, 0U);
}

TEST_F(AskTest, GoawayMovesToAnotherConnectionUnderTheSameSession) {
  Client client = open(options());
  Limit api = client.limit("api").value();
  daemon.goaway_after = 2;
  std::vector<Decision> made;

  for (int i = 0; i < 10; ++i) made.push_back(api.try_acquire("alice"));

  EXPECT_TRUE(std::ranges::all_of(made, [](const Decision& d) { return d.allowed(); }));
  EXPECT_EQ(daemon.executed("api", "alice"), 10U);
  EXPECT_EQ(daemon.hellos, 2U);
  EXPECT_EQ(api.refund(made[0]).value(), 1U) << "the session is the same";
}

TEST_F(AskTest, ACutAtAnyByteLosesNothingAndRepeatsNothing) {   // C127
  Client client = open(options());
  Limit api = client.limit("api").value();
  std::uint64_t asks = 0;
  for (const bool out : {false, true}) {
    for (long byte = 0; byte < 400; ++byte) {
      daemon.cut_in = daemon.cut_out = -1;
      (out ? daemon.cut_out : daemon.cut_in) = byte;
      for (int i = 0; i < 8; ++i, ++asks) {
        const Decision d = api.try_acquire("key");
        ASSERT_TRUE(d.allowed()) << (out ? "out " : "in ") << byte << " ask " << i;
        ASSERT_EQ(d.remaining(), daemon.tokens - asks - 1);
      }
      ASSERT_EQ(daemon.executed("api", "key"), asks);
    }
  }
  EXPECT_GT(daemon.repeats, 100U);
  EXPECT_EQ(daemon.faults, 0U);
  EXPECT_EQ(client.status().degraded, 0U);
}

TEST_F(AskTest, AnUnknownSessionLeavesWhatWasSentStale) {
  daemon.resumes = false;
  Client client = open(options(IfAbsent::Deny));
  Limit api = client.limit("api").value();
  std::uint64_t answered = 0, degraded = 0;
  for (long byte = 0; byte < 200; ++byte) {
    daemon.cut_out = byte;
    for (int i = 0; i < 4; ++i) {
      const Decision d = api.try_acquire("key");
      ASSERT_TRUE(d.allowed() || d.degraded());
      ++(d.allowed() ? answered : degraded);
    }
    daemon.cut_out = -1;
  }

  EXPECT_GT(degraded, 0U);
  EXPECT_EQ(client.status().degraded, degraded);
  EXPECT_EQ(daemon.repeats, 0U);
  EXPECT_LE(daemon.executed("api", "key"), answered + degraded);
  EXPECT_GE(daemon.executed("api", "key"), answered);
}

TEST_F(AskTest, ASilentDaemonCostsOneDeadlineAndThenNobodyWaits) {
  Client client = open(options(IfAbsent::Allow, 30ms));
  Limit api = client.limit("api").value();
  daemon.silent = true;

  const Decision first = api.try_acquire("alice");
  const std::uint64_t sent = daemon.requests;
  const Decision second = api.try_acquire("alice");

  EXPECT_TRUE(first.allowed());
  EXPECT_TRUE(first.degraded());
  EXPECT_TRUE(second.degraded());
  EXPECT_EQ(daemon.requests, sent) << "answered at once, without asking";
  EXPECT_EQ(client.status().way, ClientWay::Absent);
  EXPECT_EQ(client.status().late, 1U) << "the second one did not wait";
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_NE(lines[1].find("if_absent: allow; the daemon did not answer in time"),
            std::string::npos);

  daemon.silent = false;
  while (api.try_acquire("bob").degraded()) {}
  EXPECT_EQ(client.status().way, ClientWay::Socket);
  EXPECT_EQ(lines.size(), 3U);
}

TEST_F(AskTest, ADaemonThatIsGoneAndBackIsNoticedOnceEach) {
  Client client = open(options(IfAbsent::Deny));
  Limit api = client.limit("api").value();
  ASSERT_TRUE(api.try_acquire("k").allowed());
  daemon.stop();

  Decision d;
  for (int i = 0; i < 1000; ++i) d = api.try_acquire("k");

  EXPECT_EQ(d.reason(), Reason::Degraded);
  EXPECT_TRUE(d.degraded());
  EXPECT_TRUE(d.is_hint());
  EXPECT_GE(d.retry_after(), 100ms);
  EXPECT_EQ(d.limit_name(), "api");
  EXPECT_EQ(client.status().degraded, 1000U);
  EXPECT_EQ(lines.size(), 2U);

  daemon.start();
  while (api.try_acquire("k").degraded()) {}
  EXPECT_EQ(lines.size(), 3U);
  EXPECT_EQ(client.status().attached, 2U);
}

}  // namespace
}  // namespace cutwater::test
