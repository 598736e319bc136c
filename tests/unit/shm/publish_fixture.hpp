// SPDX-License-Identifier: Apache-2.0
// A private segment on the stepped clock with a publisher: settings in, decisions out.
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "rule/decision_report.hpp"
#include "shm/limit/admit.hpp"
#include "shm/publisher.hpp"
#include "shm/segment.hpp"
#include "shm/verify.hpp"

namespace cutwater::shm {

using Limits = std::vector<rule::LimitSettings>;

class PublishTest : public testing::Test {
 protected:
  static constexpr std::int64_t kMs = 1'000'000;
  static constexpr std::int64_t kSecond = 1'000'000'000;
  static constexpr std::uint64_t kMinuteNs = 60'000'000'000;

  static Capacity small() {
    return {.keys = 64, .limits = 16, .processes = 4, .stripes = 2, .events = 8, .overrides = 16,
            .tops = 1, .calendars = 4};
  }
  void open(const Limits& limits, const Capacity& capacity = small()) {
    SegmentOptions options;
    options.capacity = capacity;
    options.clock = ClockKind::Stepped;
    auto made = Segment::create_private(options);
    ASSERT_TRUE(made) << made.error().text();
    segment = std::make_unique<Segment>(std::move(made.value()));
    publisher = std::make_unique<Publisher>(view());
    publish(limits);
    start = view().clock.now();
  }
  const View& view() const { return segment->view(); }

  PublishReport publish(const Limits& limits) {
    auto done = publisher->publish(limits, 1);
    EXPECT_TRUE(done) << done.error().text();
    return done ? *done : PublishReport{};
  }
  std::string refused(const Limits& limits, Errc code) {
    auto done = publisher->publish(limits, 1);
    if (done) return "accepted";
    EXPECT_EQ(done.error().code(), code) << done.error().text();
    return done.error().text();
  }
  void sweep() {
    while (!publisher->sweep(64)) {}
  }
  /// A daemon that is started now and finds this memory.
  void adopt() {
    publisher = std::make_unique<Publisher>(view());
    sweep();
  }
  std::string verified() const {
    std::string all;
    for (const Finding& found : verify(view()).findings) {
      all += found.place + ": " + found.text + "\n";
    }
    return all;
  }

  static rule::LimitSettings limit(std::string name, std::vector<rule::WindowSettings> windows,
                                   rule::OnChange word = rule::OnChange::KeepUsed) {
    rule::LimitSettings settings;
    settings.name = std::move(name);
    settings.windows = std::move(windows);
    settings.on_change = word;
    return settings;
  }
  static rule::WindowSettings per_second(std::uint64_t count, std::uint64_t burst) {
    return rule::rate_window(count, rule::kNanosPerSecond, burst);
  }
  static rule::WindowSettings per_minute(std::uint64_t count, std::uint64_t burst) {
    return rule::rate_window(count, kMinuteNs, burst);
  }
  static rule::OverrideSettings over(std::string key, std::vector<rule::WindowSettings> windows) {
    return {.key = std::move(key), .windows = std::move(windows)};
  }

  void at(std::int64_t t) { step_clock(view(), start + t); }
  void pass(std::int64_t ns) { step_clock(view(), view().clock.now() + ns); }

  DecisionData take(const std::string& name, const std::string& key, std::uint64_t cost = 1) {
    const LimitHandle handle = resolve(view(), name);
    DecisionData out;
    EXPECT_EQ(admit(view(), {handle.ref, key_of(handle, key), cost, 0}, out), Outcome::Answered);
    return out;
  }
  DecisionData peek(const std::string& name, const std::string& key, std::uint64_t cost = 0) {
    const LimitHandle handle = resolve(view(), name);
    DecisionData out;
    EXPECT_EQ(look(view(), {handle.ref, key_of(handle, key), cost, 0}, out), Outcome::Answered);
    return out;
  }
  std::uint64_t left(const std::string& name, const std::string& key) {
    return rule::report_of(peek(name, key)).remaining;
  }
  static bool allowed(const DecisionData& d) { return d.reason == Reason::Allowed; }

  std::unique_ptr<Segment> segment;
  std::unique_ptr<Publisher> publisher;
  std::int64_t start = 0;
};

}  // namespace cutwater::shm
