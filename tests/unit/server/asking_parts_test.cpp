// SPDX-License-Identifier: Apache-2.0
// The small parts behind asking: receipts as bytes, parked sessions, events as rows, limits with
// manual acts on top.
#include <gtest/gtest.h>

#include "acts/acts.hpp"
#include "ask/receipt_bytes.hpp"
#include "event_feed.hpp"
#include "session_store.hpp"
#include "shm/segment.hpp"

namespace cutwater::server {
namespace {

TEST(ReceiptBytes, KeepEveryChargeOfADecision) {
  Word16 slots[3] = {};
  DecisionData data;
  data.reason = Reason::Allowed;
  data.receipt = Receipt::Several;
  data.charges = 3;
  data.tokens = 7;
  data.f = 20;
  data.slot = &slots[0];
  data.tag = 11;
  data.level = 12;
  data.cost = 13;
  data.more[0] = {&slots[1], 21, 22, 23};
  data.more[1] = {&slots[2], 31, 32, 33};

  const auto kept = receipt_of(to_bytes(5, {3, 9}, data));

  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->life, 5U);
  EXPECT_EQ(kept->limit.index, 3U);
  EXPECT_EQ(kept->limit.incarnation, 9U);
  EXPECT_EQ(kept->data.charges, 3U);
  EXPECT_EQ(kept->data.tokens, 7U);
  EXPECT_EQ(kept->data.slot, &slots[0]);
  EXPECT_EQ(kept->data.more[1].slot, &slots[2]);
  EXPECT_EQ(kept->data.more[1].cost, 33);
}

TEST(ReceiptBytes, NothingChargedIsEmptyAndOtherBytesAreNone) {
  DecisionData refused;
  EXPECT_EQ(to_bytes(1, {0, 0}, refused), "");
  DecisionData charged;
  charged.receipt = Receipt::One;
  const std::string bytes = to_bytes(1, {0, 0}, charged);
  EXPECT_TRUE(receipt_of(bytes));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(receipt_of(std::string_view(bytes).substr(0, size))) << size;
  }
}

TEST(SessionStore, OnlyTheSameUidTakesASessionOverAndOnlyInTime) {
  SessionStore store;
  const auto park = [&](const std::string& token) {
    store.park(token, {.uid = 7, .row = {4, 1}, .until_ns = 100, .memory = {}});
  };
  park("a");
  EXPECT_FALSE(store.take("a", 8, 50));
  EXPECT_FALSE(store.take("b", 7, 50));
  EXPECT_FALSE(store.take("a", 7, 100));
  ASSERT_TRUE(store.find("a"));
  const auto taken = store.take("a", 7, 99);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->row.index, 4U);
  EXPECT_FALSE(store.take("a", 7, 50)) << "it is taken once";

  park("c");
  store.tick(99);
  EXPECT_EQ(store.size(), 1U);
  store.tick(100);
  EXPECT_EQ(store.size(), 0U);
}

TEST(SessionStore, SoManyAreKeptAndTheFirstToEndGoes) {
  SessionStore store;
  for (std::size_t i = 0; i < SessionStore::kMaxParked + 3; ++i) {
    store.park(std::to_string(i), {.uid = 7, .row = {}, .until_ns = 1000 + i, .memory = {}});
  }
  EXPECT_EQ(store.size(), SessionStore::kMaxParked);
  EXPECT_FALSE(store.find("2"));
  EXPECT_TRUE(store.find("3"));
}

TEST(EventFeed, GivesEachEventOnceAndTheOldOnesToWhoAsks) {
  shm::SegmentOptions options;
  options.capacity = {.keys = 64, .limits = 4, .processes = 16, .stripes = 2, .events = 16};
  const shm::Segment segment = shm::Segment::create_private(options).value();
  const shm::View& view = segment.view();
  const auto append = [&](shm::EventKind kind) {
    shm::Event event;
    event.kind = kind;
    shm::append_event(view, event);
  };
  append(shm::EventKind::DaemonStarted);
  EventFeed feed(view);
  EXPECT_TRUE(feed.look(view).empty()) << "what was before is not new";
  append(shm::EventKind::ConfigReloaded);
  append(shm::EventKind::ClientGone);
  EXPECT_EQ(feed.next_seq(view), 4U);

  const auto fresh = feed.look(view);

  ASSERT_EQ(fresh.size(), 2U);
  EXPECT_EQ(fresh[0]->kind, wire::kEventConfig);
  EXPECT_EQ(fresh[1]->kind, wire::kEventClient);
  EXPECT_EQ(fresh[1]->seq, 3U);
  EXPECT_TRUE(feed.look(view).empty());
  EXPECT_EQ(feed.since(view, 1).size(), 3U);
  EXPECT_EQ(feed.since(view, 3).size(), 1U);
  EXPECT_TRUE(feed.since(view, 4).empty());
}

Act act(ActKind kind, std::uint64_t id, std::string key) {
  Act out;
  out.kind = kind;
  out.id = id;
  out.limit = "api";
  out.key = std::move(key);
  return out;
}

TEST(WithActs, AnOperatorsActWinsAndABanBeatsAnOverride) {
  rule::LimitSettings api;
  api.name = "api";
  api.windows = {rule::rate_window(1, 1'000'000'000, 5)};
  api.overrides = {{.key = "written", .kind = rule::LimitKind::Unlimited},
                   {.key = "w*", .pattern = true, .kind = rule::LimitKind::Unlimited}};
  Act slower = act(ActKind::Override, 1, "written");
  slower.rate_count = 3;
  slower.rate_period_ns = 1'000'000'000;
  slower.burst = 2;
  Act shadow = act(ActKind::Shadow, 4, "");
  shadow.shadow = true;
  Act elsewhere = act(ActKind::Ban, 5, "x");
  elsewhere.limit = "gone";
  const std::map<std::uint64_t, Act> standing = {
      {1, slower}, {2, act(ActKind::Ban, 2, "bad")}, {3, act(ActKind::Override, 3, "bad")},
      {4, shadow}, {5, elsewhere}, {6, act(ActKind::Ban, 6, "placed")}};

  const auto limits = with_acts({api}, standing, {6});

  ASSERT_EQ(limits.size(), 1U);
  EXPECT_EQ(limits[0].mode, rule::Mode::Shadow);
  const auto& overrides = limits[0].overrides;
  ASSERT_EQ(overrides.size(), 3U);
  EXPECT_EQ(overrides[0].kind, rule::LimitKind::Bucket);
  EXPECT_EQ(overrides[0].windows.at(0).burst, 2U);
  EXPECT_TRUE(overrides[1].pattern);
  EXPECT_EQ(overrides[2].key, "bad");
  EXPECT_EQ(overrides[2].kind, rule::LimitKind::Blocked);
}

}  // namespace
}  // namespace cutwater::server
