// SPDX-License-Identifier: Apache-2.0
// Asking over the socket: the answers, what is given back, what is remembered.
#include "integration/ask_fixture.hpp"

namespace cutwater::test {
namespace {

using wire::ItemError;

TEST_F(Asked, AnAnswerIsThatOfTheMappedMemoryFieldByField) {
  start({.arguments = {"--clock=stepped"}});
  RawPeer peer(place_.socket());
  ASSERT_TRUE(peer.greet(hello()));
  ASSERT_TRUE(peer.ask<wire::AcquireAnswer>(acquire("api", "alice", 7)));
  const shm::Segment segment = map_memory();
  const shm::LimitHandle api = shm::resolve(segment.view(), "api");

  for (const std::uint64_t cost : {0U, 1U, 3U, 4U, 11U}) {
    wire::Peek look;
    look.items.push_back({"api", "alice", cost, 0});
    const auto answer = peer.ask<wire::PeekAnswer>(look);
    ASSERT_TRUE(answer);
    const wire::DecisionAnswer& asked = answer->decisions.at(0);
    DecisionData data;
    ASSERT_EQ(shm::look(segment.view(), {.limit = api.ref, .key = shm::key_of(api, "alice"),
                                         .cost = cost}, data), shm::Outcome::Answered);
    const Decision mapped(data);
    const auto ns = [](Nanos time) {
      return time == kNever ? wire::kNever : static_cast<std::uint64_t>(time.count());
    };
    EXPECT_EQ(asked.reason, static_cast<std::uint16_t>(mapped.reason()));
    EXPECT_EQ(asked.remaining, mapped.remaining());
    EXPECT_EQ(asked.retry_after_ns, ns(mapped.retry_after()));
    EXPECT_EQ(asked.reset_after_ns, ns(mapped.reset_after()));
    EXPECT_EQ(asked.window, mapped.window());
  }
}

TEST_F(Asked, ABatchDecidesEachItemAloneAndCountsOnTheDaemonsStripe) {
  start();
  RawPeer peer(place_.socket());
  ASSERT_TRUE(peer.greet(hello()));
  wire::Acquire batch;
  batch.items = {{"slow", "a", 5, 0},          {std::nullopt, "a", 1, 0},
                 {"slwo", "a", 1, 0},          {std::nullopt, "b", 1, 0},
                 {"slow", std::string(4096, 'k'), 1, 0}, {"slow", "c", 6, 0}};

  const auto answer = peer.ask<wire::AcquireAnswer>(batch);

  ASSERT_TRUE(answer) << peer.refusal().text;
  const auto& got = answer->decisions;
  ASSERT_EQ(got.size(), 6U);
  EXPECT_TRUE(got[0].allowed());
  EXPECT_EQ(got[1].reason, static_cast<std::uint16_t>(Reason::Limit));
  EXPECT_EQ(got[2].reason, static_cast<std::uint16_t>(ItemError::UnknownName));
  EXPECT_NE(got[2].text.find("did you mean 'slow'?"), std::string::npos) << got[2].text;
  EXPECT_EQ(got[3].reason, static_cast<std::uint16_t>(ItemError::UnknownName));
  EXPECT_TRUE(got[4].allowed());
  EXPECT_EQ(got[5].reason, static_cast<std::uint16_t>(Reason::Never));
  EXPECT_EQ(got[5].retry_after_ns, wire::kNever);
  const shm::Segment segment = map_memory();
  EXPECT_EQ(counter(segment, "slow", shm::LimitCounter::Allowed), 2U);
  EXPECT_EQ(counter(segment, "slow", shm::LimitCounter::Refused), 2U);
  EXPECT_EQ(counter(segment, "slow", shm::LimitCounter::Tokens), 6U);
}

TEST_F(Asked, AWaitIsAnsweredAtOnceWithItsStart) {
  start();
  RawPeer peer(place_.socket());
  ASSERT_TRUE(peer.greet(hello()));
  ASSERT_TRUE(peer.ask<wire::AcquireAnswer>(acquire("slow", "w", 5)));
  wire::Acquire patient = acquire("slow", "w");
  patient.max_wait_ns = 2ULL * 3600 * 1'000'000'000;   // max-wait of the limit: 1h

  const auto answer = peer.ask<wire::AcquireAnswer>(patient);

  ASSERT_TRUE(answer);
  EXPECT_TRUE(answer->decisions[0].allowed());
  EXPECT_GT(answer->decisions[0].wait_ns, 3000ULL * 1'000'000'000);
  wire::Acquire second = patient;   // would begin in two hours: beyond max-wait
  EXPECT_FALSE(peer.ask<wire::AcquireAnswer>(second)->decisions[0].allowed());
}

TEST_F(Asked, EnterTakesAllOrNone) {
  start();
  RawPeer peer(place_.socket());
  ASSERT_TRUE(peer.greet(hello()));
  ASSERT_TRUE(peer.ask<wire::AcquireAnswer>(acquire("slow", "full", 5)));
  wire::Enter all;
  all.items = {{"tenant", "acme", 1, 0}, {"slow", "full", 1, 0}};

  const auto refused = peer.ask<wire::EnterAnswer>(all);

  ASSERT_TRUE(refused) << peer.refusal().text;
  EXPECT_EQ(refused->admission.reason, static_cast<std::uint16_t>(Reason::Limit));
  EXPECT_EQ(refused->admission.part, wire::Part::Limit);
  EXPECT_EQ(refused->admission.index, 1U);
  EXPECT_EQ(remaining(peer, "tenant", "acme"), 4U);
  all.items[1].key = "fresh";
  EXPECT_TRUE(peer.ask<wire::EnterAnswer>(all)->admission.allowed());
  EXPECT_EQ(remaining(peer, "tenant", "acme"), 3U);

  all.breaker = "bank";
  EXPECT_EQ(peer.ask<wire::EnterAnswer>(all)->admission.reason,
            static_cast<std::uint16_t>(ItemError::UnknownName));
}

TEST_F(Asked, RefundAndCancelGiveBackOnceWhatIsStillOnTop) {
  start();
  RawPeer peer(place_.socket());
  ASSERT_TRUE(peer.greet(hello()));
  const std::uint32_t first = peer.next_request();
  ASSERT_TRUE(peer.ask<wire::AcquireAnswer>(acquire("tenant", "acme", 3)));
  wire::Refund refund;
  refund.items = {{first, 0, std::nullopt}, {first, 0, std::nullopt}, {first, 1, std::nullopt},
                  {first + 1000, 0, std::nullopt}};

  const auto answer = peer.ask<wire::RefundAnswer>(refund);

  ASSERT_TRUE(answer) << peer.refusal().text;
  EXPECT_EQ(answer->items[0], (wire::Returned{0, 3}));
  EXPECT_EQ(answer->items[1].code, static_cast<std::uint16_t>(ItemError::Stale));
  EXPECT_NE(answer->items[2].code, 0U);
  EXPECT_EQ(answer->items[3].code, static_cast<std::uint16_t>(ItemError::NotRemembered));
  EXPECT_EQ(remaining(peer, "tenant", "acme"), 4U);

  const std::uint32_t under = peer.next_request();
  ASSERT_TRUE(peer.ask<wire::AcquireAnswer>(acquire("tenant", "acme", 1)));
  const std::uint32_t top = peer.next_request();
  ASSERT_TRUE(peer.ask<wire::AcquireAnswer>(acquire("tenant", "acme", 1)));
  EXPECT_EQ(peer.ask<wire::CancelAnswer>(wire::Cancel{under})->returned.code,
            static_cast<std::uint16_t>(ItemError::TooLate));
  EXPECT_EQ(peer.ask<wire::CancelAnswer>(wire::Cancel{top})->returned, (wire::Returned{0, 1}));
  EXPECT_EQ(remaining(peer, "tenant", "acme"), 3U);
}

TEST_F(Asked, ASessionThatRemembersNothingGivesNothingBack) {
  start();
  RawPeer peer(place_.socket());
  ASSERT_TRUE(peer.greet(hello(0)));
  const std::uint32_t first = peer.next_request();
  ASSERT_TRUE(peer.ask<wire::AcquireAnswer>(acquire("slow", "a")));

  EXPECT_EQ(peer.ask<wire::CancelAnswer>(wire::Cancel{first})->returned.code,
            static_cast<std::uint16_t>(ItemError::NotRemembered));
  EXPECT_EQ(remaining(peer, "slow", "a"), 4U);
}

TEST_F(Asked, C127ARepeatAfterACutConnectionIsAnsweredAndNeverExecutedTwice) {
  start();
  std::optional<wire::Welcome> welcome;
  std::uint32_t request = 0;
  {
    RawPeer peer(place_.socket());
    welcome = peer.greet(hello());
    ASSERT_TRUE(welcome);
    EXPECT_FALSE(welcome->resumed);
    request = peer.next_request();
    ASSERT_TRUE(peer.ask<wire::AcquireAnswer>(acquire("slow", "a", 2)));
  }   // cut: the answer may have been lost on its way

  wire::Hello again = hello();
  again.session = welcome->session;
  RawPeer taker(place_.socket());
  const auto resumed = taker.greet(again);
  ASSERT_TRUE(resumed);
  EXPECT_TRUE(resumed->resumed);
  EXPECT_EQ(resumed->session, welcome->session);
  EXPECT_EQ(resumed->row_index, welcome->row_index);
  taker.set_next_request(request);
  const auto repeated = taker.ask<wire::AcquireAnswer>(acquire("slow", "a", 2), wire::kFlagRepeat);
  ASSERT_TRUE(repeated) << taker.refusal().text;
  EXPECT_TRUE(repeated->decisions[0].allowed());
  EXPECT_EQ(repeated->decisions[0].remaining, 3U);
  EXPECT_EQ(remaining(taker, "slow", "a"), 3U);

  // What never arrived is executed by its repeat; the receipt of the first life still counts.
  taker.set_next_request(taker.next_request() + 10);
  EXPECT_TRUE(taker.ask<wire::AcquireAnswer>(acquire("slow", "b"), wire::kFlagRepeat));
  EXPECT_EQ(taker.ask<wire::CancelAnswer>(wire::Cancel{request})->returned,
            (wire::Returned{0, 2}));
}

TEST_F(Asked, ASessionOfAnotherRunOrAnotherUserIsNotResumed) {
  start();
  std::optional<wire::Welcome> welcome;
  {
    RawPeer peer(place_.socket());
    welcome = peer.greet(hello());
    ASSERT_TRUE(peer.ask<wire::AcquireAnswer>(acquire("slow", "a", 2)));
  }
  daemon_->kill();
  daemon_.emplace(place_);
  ASSERT_TRUE(daemon_->ready()) << daemon_->log();

  wire::Hello again = hello();
  again.session = welcome->session;
  RawPeer taker(place_.socket());
  const auto fresh = taker.greet(again);

  ASSERT_TRUE(fresh);
  EXPECT_FALSE(fresh->resumed);
  EXPECT_NE(fresh->daemon, welcome->daemon);
  EXPECT_NE(fresh->session, welcome->session);
  EXPECT_EQ(remaining(taker, "slow", "a"), 3U) << "the memory was adopted";
}

TEST_F(Asked, ResolveSaysSettingsOrTheNearestName) {
  start();
  RawPeer peer(place_.socket());
  ASSERT_TRUE(peer.greet(hello()));
  wire::Resolve names;
  names.names = {{wire::NameKind::Limit, "tenant"}, {wire::NameKind::Limit, "tenent"},
                 {wire::NameKind::Breaker, "bank"}};

  const auto answer = peer.ask<wire::ResolveAnswer>(names);

  ASSERT_TRUE(answer) << peer.refusal().text;
  EXPECT_EQ(answer->names[0].code, 0U);
  EXPECT_EQ(answer->names[0].settings.find("windows")->as_array()->size(), 2U);
  EXPECT_EQ(answer->names[1].nearest, std::vector<std::string>{"tenant"});
  EXPECT_EQ(answer->names[2].code, static_cast<std::uint16_t>(ItemError::UnknownName));
}

TEST_F(Asked, KilledWhileItIsAskedItForgetsNothingThatWasAnswered) {
  start();
  std::uint64_t allowed = 0;
  for (int round = 0; round < 3; ++round) {
    RawPeer peer(place_.socket());
    ASSERT_TRUE(peer.greet(hello()));
    // Pipelined, so that the kill comes in the middle of the work.
    std::string bytes;
    const std::string payload = *wire::encode(acquire("slow", "k" + std::to_string(round)));
    for (std::uint32_t i = 1; i <= 400; ++i) {
      bytes += wire::encode_frame({.type = MessageType::Acquire, .request = i}, payload);
    }
    ASSERT_TRUE(peer.send(bytes));
    ASSERT_TRUE(peer.receive());
    daemon_->kill();
    allowed = 1;
    while (const auto frame = peer.receive()) {
      const auto answer = wire::decode<wire::AcquireAnswer>(frame->payload);
      ASSERT_TRUE(answer);
      allowed += answer->decisions[0].allowed() ? 1 : 0;
    }
    daemon_.emplace(place_);
    ASSERT_TRUE(daemon_->ready()) << daemon_->log();
    RawPeer after(place_.socket());
    ASSERT_TRUE(after.greet(hello()));
    EXPECT_LE(allowed, 5U);
    EXPECT_LE(remaining(after, "slow", "k" + std::to_string(round)), 5 - allowed);
  }
}

}  // namespace
}  // namespace cutwater::test
