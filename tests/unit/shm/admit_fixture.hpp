// SPDX-License-Identifier: Apache-2.0
// A private segment on the stepped clock with rules written by hand (support/image_edit.hpp), and
// the acts of admit.hpp as short as a test wants them.
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "rule/decision_report.hpp"
#include "shm/limit/admit.hpp"
#include "shm/publisher.hpp"
#include "shm/segment.hpp"
#include "support/image_edit.hpp"

namespace cutwater::shm {

class AdmitTest : public testing::Test {
 protected:
  static constexpr std::int64_t kMs = 1'000'000;
  static constexpr std::int64_t kSecond = 1'000'000'000;
  using Window = cutwater::test::ImageEdit::Window;

  void SetUp() override { open(1024); }

  void open(std::uint64_t keys) {
    SegmentOptions options;
    options.capacity.keys = keys;
    options.capacity.limits = 16;
    options.capacity.overrides = 64;
    options.clock = ClockKind::Stepped;
    auto made = Segment::create_private(options);
    ASSERT_TRUE(made) << made.error().text();
    segment = std::make_unique<Segment>(std::move(made.value()));
    edit = std::make_unique<cutwater::test::ImageEdit>(view());
    start = view().clock.now();
  }

  const View& view() const { return segment->view(); }
  void at(std::int64_t t) { step_clock(view(), start + t); }

  LimitHandle add(std::string_view name, const std::vector<Window>& windows,
                  std::uint8_t flags = 0) {
    edit->add_limit(name, windows, flags);
    return resolve(view(), name);
  }
  static Window rate(std::uint64_t count, std::int64_t period_ns, std::uint64_t burst) {
    return {.count = count, .period_ns = period_ns, .burst = burst};
  }

  AdmitAsk ask(const LimitHandle& limit, std::string_view key, std::uint64_t cost = 1) const {
    return {limit.ref, key_of(limit, key), cost, 0};
  }
  DecisionData take(const LimitHandle& limit, std::string_view key, std::uint64_t cost = 1,
                    std::int64_t wait = 0) const {
    DecisionData out;
    AdmitAsk wanted = ask(limit, key, cost);
    wanted.max_wait_ns = wait;
    EXPECT_EQ(admit(view(), wanted, out), Outcome::Answered);
    return out;
  }
  DecisionData peek(const LimitHandle& limit, std::string_view key, std::uint64_t cost = 1) const {
    DecisionData out;
    EXPECT_EQ(look(view(), ask(limit, key, cost), out), Outcome::Answered);
    return out;
  }
  /// Every byte that a decision may change.
  std::vector<std::uint8_t> bytes() const {
    const auto* slots = reinterpret_cast<const std::uint8_t*>(view().slots);
    std::vector<std::uint8_t> all(slots, slots + view().slot_count * sizeof(Word16));
    const auto* limits = reinterpret_cast<const std::uint8_t*>(view().limits);
    all.insert(all.end(), limits, limits + view().limit_count * sizeof(LimitState));
    return all;
  }

  static bool allowed(const DecisionData& d) { return d.reason == Reason::Allowed; }
  static rule::Report of(const DecisionData& d) { return rule::report_of(d); }

  std::unique_ptr<Segment> segment;
  std::unique_ptr<cutwater::test::ImageEdit> edit;
  std::int64_t start = 0;
};

}  // namespace cutwater::shm
