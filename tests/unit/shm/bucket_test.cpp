// SPDX-License-Identifier: Apache-2.0
// Buckets in a private segment on the stepped clock: found,
// first sight, no place, undo, reset, change.
#include "shm/limit/bucket.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "shm/limit/bucket_table.hpp"
#include "shm/publisher.hpp"
#include "shm/segment.hpp"

namespace cutwater::shm {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

rule::LimitSettings limit_of(std::string name, std::uint64_t count, std::uint64_t period_ns,
                             std::uint64_t burst) {
  rule::LimitSettings settings;
  settings.windows.resize(1);
  settings.name = std::move(name);
  settings.windows[0].rate_count = count;
  settings.windows[0].rate_period_ns = period_ns;
  settings.windows[0].burst = burst;
  return settings;
}

class BucketTest : public testing::Test {
 protected:
  void open(std::vector<rule::LimitSettings> limits, std::uint64_t keys = 1024) {
    SegmentOptions options;
    options.capacity.keys = keys;
    options.capacity.limits = 8;
    options.clock = ClockKind::Stepped;
    auto made = Segment::create_private(options);
    ASSERT_TRUE(made) << made.error().text();
    segment_ = std::make_unique<Segment>(std::move(made.value()));
    publisher_ = std::make_unique<Publisher>(view());
    publish(std::move(limits));
    start_ = view().clock.now();
  }
  PublishReport publish(std::vector<rule::LimitSettings> limits) {
    auto done = publisher_->publish(limits, 0);
    EXPECT_TRUE(done) << done.error().text();
    return done ? *done : PublishReport{};
  }
  const View& view() { return segment_->view(); }
  void at(std::int64_t t_ns) { step_clock(view(), start_ + t_ns); }

  KeyHash hash(const std::string& limit, const std::string& key) {
    return hash_key(make_limit_secret(view().secret, limit), key);
  }
  DecisionData take(const std::string& limit, const std::string& key, std::uint64_t cost = 1,
                    std::int64_t wait = 0) {
    BucketAsk ask{find_limit(view(), limit), hash(limit, key), cost, wait};
    DecisionData out;
    std::uint64_t hint = kNoSlot;
    EXPECT_EQ(charge(view(), ask, hint, out), Outcome::Answered);
    return out;
  }
  DecisionData peek(const std::string& limit, const std::string& key, std::uint64_t cost = 1) {
    BucketAsk ask{find_limit(view(), limit), hash(limit, key), cost, 0};
    DecisionData out;
    std::uint64_t hint = kNoSlot;
    EXPECT_EQ(look(view(), ask, hint, out), Outcome::Answered);
    return out;
  }
  std::uint64_t members() {
    std::uint64_t n = 0;
    for (std::uint64_t i = 0; i < view().slot_count; ++i) n += view().slots[i].lo != 0;
    return n;
  }
  std::vector<std::uint8_t> bytes() {
    const auto* first = reinterpret_cast<const std::uint8_t*>(view().slots);
    std::vector<std::uint8_t> all(first, first + view().slot_count * 16);
    const auto* limits = reinterpret_cast<const std::uint8_t*>(view().limits);
    all.insert(all.end(), limits, limits + view().limit_count * sizeof(LimitState));
    return all;
  }

  std::unique_ptr<Segment> segment_;
  std::unique_ptr<Publisher> publisher_;
  std::int64_t start_ = 0;
};

TEST_F(BucketTest, AdmitsTheBurstThenOneByOne) {
  open({limit_of("api", 10, kSecond, 10)});

  for (int i = 0; i < 10; ++i) EXPECT_EQ(Decision{take("api", "alice")}.remaining(), 9U - i);
  const Decision refused{take("api", "alice")};
  EXPECT_EQ(refused.reason(), Reason::Limit);
  EXPECT_EQ(refused.retry_after(), Nanos{kSecond / 10});
  at(kSecond / 10 - 1);
  EXPECT_EQ(take("api", "alice").reason, Reason::Limit);
  at(kSecond / 10);
  EXPECT_EQ(take("api", "alice").reason, Reason::Allowed);
  EXPECT_EQ(members(), 1U);
}

TEST_F(BucketTest, RefusalsAndLooksWriteNothing) {
  open({limit_of("api", 1, kSecond, 1)});
  take("api", "alice");
  const auto before = bytes();

  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(take("api", "alice").reason, Reason::Limit);
    EXPECT_EQ(take("api", "bob", 2).reason, Reason::Never);
    EXPECT_EQ(take("api", "bob", 0).reason, Reason::Allowed);
    EXPECT_EQ(peek("api", "carol").reason, Reason::Allowed);
  }

  EXPECT_EQ(bytes(), before);
}

TEST_F(BucketTest, UndoIsExactAndOnlyAtTheTop) {
  open({limit_of("api", 1, kSecond, 10)});
  const DecisionData first = take("api", "alice", 4);
  const DecisionData second = take("api", "alice", 2);

  EXPECT_FALSE(undo(view(), first));
  EXPECT_TRUE(undo(view(), second));
  EXPECT_TRUE(undo(view(), first));
  EXPECT_EQ(Decision{peek("api", "alice", 0)}.remaining(), 10U);
}

TEST_F(BucketTest, AFullTableSharesOneOverflowWord) {
  auto settings = limit_of("api", 1, kSecond, 2);
  open({settings}, 1024);
  int placed = 0, overflowed = 0, refused = 0;
  for (int i = 0; i < 5000; ++i) {
    const DecisionData d = take("api", "key" + std::to_string(i));
    if (d.reason != Reason::Allowed) ++refused;
    else if ((d.flags & Decision::kOverflow) != 0) ++overflowed;
    else ++placed;
  }

  // A new key starts with the debt of the overflow word (I9): once that is spent, no new key is
  // admitted.
  EXPECT_GT(placed, 1000);
  EXPECT_LE(placed, 2048);
  EXPECT_EQ(overflowed, 2);
  EXPECT_EQ(placed + overflowed + refused, 5000);
  EXPECT_EQ(take("api", "key0").reason, Reason::Allowed);
  EXPECT_EQ(take("api", "key0").reason, Reason::Limit);
  at(kSecond);
  EXPECT_EQ(take("api", "nobody").reason, Reason::Allowed) << "full entries are replaced";
}

TEST_F(BucketTest, OnFullDenyAndAllowSaySo) {
  auto deny = limit_of("deny", 1, kSecond, 1);
  deny.on_full = rule::OnFull::Deny;
  auto allow = limit_of("allow", 1, kSecond, 1);
  allow.on_full = rule::OnFull::Allow;
  auto filler = limit_of("filler", 1, 3600 * kSecond, 1);
  filler.on_full = rule::OnFull::Deny;
  open({filler, deny, allow}, 1024);
  for (int i = 0; i < 20'000; ++i) take("filler", "key" + std::to_string(i));

  const Decision denied{take("deny", "x")};
  EXPECT_EQ(denied.reason(), Reason::Degraded);
  EXPECT_TRUE(denied.degraded() && denied.overflow() && denied.is_hint());
  EXPECT_EQ(denied.retry_after(), Nanos{kSecond});
  const Decision allowed{take("allow", "x")};
  EXPECT_TRUE(allowed.allowed() && allowed.degraded() && allowed.overflow());
}

TEST_F(BucketTest, KeepUsedKeepsTheDebtWhateverTheRate) {
  open({limit_of("api", 10, 60 * kSecond, 10)});
  take("api", "alice", 8);
  publish({limit_of("api", 5, 60 * kSecond, 5)});

  const Decision lowered{take("api", "alice")};
  EXPECT_EQ(lowered.reason(), Reason::Limit);
  EXPECT_NEAR(static_cast<double>(lowered.retry_after().count()), 48e9, 100);
  publish({limit_of("api", 10, 60 * kSecond, 10)});
  EXPECT_EQ(Decision{peek("api", "alice")}.remaining(), 1U);
  // Far apart: a new rule id, converted by the next charge, and back again after the sweep.
  publish({limit_of("api", 10'000'000, kSecond, 10)});
  while (!publisher_->sweep(1000)) {}
  publish({limit_of("api", 1, 86'400 * kSecond, 10)});
  EXPECT_EQ(take("api", "alice", 3).reason, Reason::Limit);
  EXPECT_EQ(take("api", "alice", 2).reason, Reason::Allowed);
  EXPECT_EQ(take("api", "alice").reason, Reason::Limit);
}

TEST_F(BucketTest, TheSweepConvertsTheRestAndFreesTheOldId) {
  open({limit_of("api", 10'000'000, kSecond, 1'000'000)});
  for (int i = 0; i < 100; ++i) take("api", "key" + std::to_string(i), 1'000'000);
  publish({limit_of("api", 1, 86'400 * kSecond, 1'000'000)});
  EXPECT_FALSE(publisher_->publish({limit_of("api", 10'000'000, kSecond, 7)}, 0));

  while (!publisher_->sweep(1000)) {}

  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(take("api", "key" + std::to_string(i)).reason, Reason::Limit);
  publish({limit_of("api", 10'000'000, kSecond, 7)});
}

TEST_F(BucketTest, ARemovedLimitIsGoneAndItsIndexIsNotConfused) {
  open({limit_of("a", 1, kSecond, 1), limit_of("b", 1, kSecond, 1)});
  const LimitRef old = find_limit(view(), "a");
  publish({limit_of("b", 1, kSecond, 1)});
  BucketAsk ask{old, hash("a", "x"), 1, 0};
  DecisionData out;
  std::uint64_t hint = kNoSlot;

  EXPECT_EQ(charge(view(), ask, hint, out), Outcome::LimitGone);
  EXPECT_EQ(find_limit(view(), "a").index, kNoLimit);
}

TEST_F(BucketTest, EntriesGiveBackTheirHome) {
  open({limit_of("api", 1, kSecond, 1)}, 4096);
  // Load 0.55: every key finds a place. Beyond, the first without one would turn later keys away.
  for (int i = 0; i < 4500; ++i) take("api", "key" + std::to_string(i));
  std::uint64_t checked = 0;
  for (int i = 0; i < 4500; ++i) {
    const KeyHash key = hash("api", "key" + std::to_string(i));
    const Place place = place_of(view(), key, 0);
    for (std::uint64_t alt : {std::uint64_t{0}, kTagAlt}) {
      Word16* group = alt == 0 ? place.first : place.other;
      Word16* slot = scan_group(group, place.line, place.fp_bits | alt, ~kTagRuleMask);
      if (slot == nullptr) continue;
      const auto g = static_cast<std::uint64_t>(slot - view().slots) / kGroupSlots;
      const Home home = home_of(view(), g, slot->lo);
      EXPECT_EQ(home.q0, mulhi(key.lo, view().g0));
      EXPECT_EQ(home.fp, fingerprint(key, 0));
      ++checked;
    }
  }
  EXPECT_EQ(checked, 4500U);
}

TEST_F(BucketTest, ResetFillsTheBucket) {
  open({limit_of("api", 1, kSecond, 3)});
  take("api", "alice", 3);

  EXPECT_TRUE(reset(view(), find_limit(view(), "api"), hash("api", "alice")));
  EXPECT_FALSE(reset(view(), find_limit(view(), "api"), hash("api", "nobody")));
  EXPECT_EQ(Decision{peek("api", "alice", 0)}.remaining(), 3U);
}

TEST_F(BucketTest, InitialEmptyFillsSinceTheLimitWasMade) {
  auto settings = limit_of("api", 1, kSecond, 3);
  settings.initial = rule::Initial::Empty;
  open({settings});

  EXPECT_EQ(Decision{take("api", "alice")}.retry_after(), Nanos{kSecond});
  EXPECT_EQ(members(), 0U);
  at(2 * kSecond);
  EXPECT_EQ(Decision{peek("api", "bob", 0)}.remaining(), 2U);
}

}  // namespace
}  // namespace cutwater::shm
