// SPDX-License-Identifier: Apache-2.0
// A segment in use, and the ways into it that the tests of verify damage it by.
#pragma once
#include <memory>

#include "shm/counters.hpp"
#include "shm/event_log.hpp"
#include "shm/image.hpp"
#include "shm/limit/bucket.hpp"
#include "shm/process_table.hpp"
#include "shm/publisher.hpp"
#include "shm/verify.hpp"
#include "unit/shm/memory_support.hpp"

namespace cutwater::shm::test {

inline constexpr std::uint64_t kSecondNs = 1'000'000'000;

inline rule::LimitSettings limit_of(const char* name, std::uint64_t count, std::uint64_t burst) {
  rule::LimitSettings settings;
  settings.windows.resize(1);
  settings.name = name;
  settings.windows[0].rate_count = count;
  settings.windows[0].rate_period_ns = kSecondNs;
  settings.windows[0].burst = burst;
  return settings;
}

/// A segment in use: two limits, 40 keys in debt, three rows, a stripe, events.
class VerifyTest : public testing::Test {
 protected:
  void SetUp() override {
    SegmentOptions options = stepped_options();
    options.capacity.keys = 256;
    auto made = Segment::create_private(options);
    ASSERT_TRUE(made) << made.error().text();
    segment_ = std::make_unique<Segment>(std::move(made).value());
    publisher_ = std::make_unique<Publisher>(view());
    ASSERT_TRUE(publisher_->publish({limit_of("api", 1, 5), limit_of("login", 2, 10)}, 1));
    step_clock(view(), view().clock.now() + 100);
    charge_keys();
    RowTable rows(view(), true);
    ASSERT_TRUE(rows.grant({.kind = RowKind::Daemon, .pid = 1, .name = "daemon"}));
    ASSERT_TRUE(rows.grant({.pid = 2, .name = "worker"}));
    const auto dead = rows.grant({.pid = 3, .name = "gone"});
    rows.mark_dead(*dead);
    claim_stripe(view(), {std::uint64_t{2} << 32 | 1, 1}).add(0, LimitCounter::Allowed, 7);
    for (int i = 0; i < 3; ++i) append_event(view(), Event{});
    ASSERT_TRUE(verify(view()).ok()) << texts();
  }

  void charge_keys() {
    for (const char* limit : {"api", "login"}) {
      const LimitSecret secret = make_limit_secret(view().secret, limit);
      for (int i = 0; i < 20; ++i) {
        const BucketAsk ask{find_limit(view(), limit), hash_key(secret, std::to_string(i)), 2, 0};
        DecisionData out;
        std::uint64_t hint = kNoSlot;
        ASSERT_EQ(charge(view(), ask, hint, out), Outcome::Answered);
      }
    }
  }
  const View& view() const { return segment_->view(); }
  Word16& used_slot() const {
    for (std::uint64_t i = 0; i < view().slot_count; ++i) {
      if (view().slots[i].lo != 0) return view().slots[i];
    }
    std::abort();
  }
  std::uint64_t index_of(const Word16& slot) const {
    return static_cast<std::uint64_t>(&slot - view().slots);
  }
  RuleRecord& rule(std::uint16_t id) const {
    return const_cast<RuleRecord&>(view().rule(view().current(), id));
  }
  LimitConfig& limit(std::uint32_t index) const {
    return const_cast<LimitConfig&>(view().limit_config(view().current(), index));
  }
  NameRecord& name(std::uint32_t index) const {
    return const_cast<NameRecord&>(view().limit_name(view().current(), index));
  }
  /// Somebody who changes the image may also change its sum.
  void make_image_sum_right() const {
    const int image = static_cast<int>(view().current() & kCurrentImageBit);
    const_cast<ImageHead&>(view().image_head(view().current())).crc32c = image_crc(view(), image);
  }
  std::string texts() const {
    std::string out;
    for (const Finding& finding : verify(view()).findings) {
      out += finding.place + ": " + finding.text + "\n";
    }
    return out;
  }
  void expect_found(const std::string& text) const {
    EXPECT_FALSE(verify(view()).ok());
    EXPECT_NE(texts().find(text), std::string::npos) << "looked for: " << text << "\nfound:\n"
                                                     << texts();
  }

  std::unique_ptr<Segment> segment_;
  std::unique_ptr<Publisher> publisher_;
};

}  // namespace cutwater::shm::test
