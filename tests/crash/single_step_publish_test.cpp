// SPDX-License-Identifier: Apache-2.0
// T8, T17: publications of windows, overrides, patterns, calendars and of each word of on-change,
// and the sweep behind them, killed at every instruction. Readers see all of the old or all of the
// new, and the daemon that comes next goes on from whatever is there.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "crash/stepper.hpp"
#include "rule/decision_report.hpp"
#include "shm/limit/admit.hpp"

namespace cutwater::test {
namespace {

using Limits = std::vector<rule::LimitSettings>;
using rule::OnChange;
using Values = std::vector<std::uint64_t>;

constexpr std::uint64_t kHourNs = 3600 * rule::kNanosPerSecond;

rule::WindowSettings hourly(std::uint64_t burst) { return rule::rate_window(1, kHourNs, burst); }

rule::LimitSettings with(std::string name, std::vector<rule::WindowSettings> windows,
                         OnChange word = OnChange::KeepUsed) {
  rule::LimitSettings settings;
  settings.name = std::move(name);
  settings.windows = std::move(windows);
  settings.on_change = word;
  settings.max_wait_ns = 0;
  return settings;
}

rule::OverrideSettings over(std::string key, std::uint64_t burst) {
  return {.key = std::move(key), .windows = {hourly(burst)}};
}

class SingleStepPublish : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Stepper::unavailable(); !why.empty()) GTEST_SKIP() << why;
  }
  static WorldOptions tiny() {
    return {.keys = 16, .limits = 2, .processes = 4, .stripes = 3, .events = 8};
  }
  static void take(World& w, const std::string& name, const std::string& key, std::uint64_t cost) {
    const shm::LimitHandle limit = shm::resolve(w.view(), name);
    DecisionData out;
    if (limit.ref.index == shm::kNoLimit) return;
    EXPECT_EQ(shm::admit(w.view(), {limit.ref, shm::key_of(limit, key), cost, 0}, out),
              shm::Outcome::Answered);
  }
  /// What keys k, m and n of both limits have.
  static Values values(World& w) {
    Values all;
    for (const char* name : {"a", "b"}) {
      const shm::LimitHandle limit = shm::resolve(w.view(), name);
      for (const char* key : {"k", "m", "n"}) {
        DecisionData out;
        if (limit.ref.index == shm::kNoLimit) {
          all.push_back(0);
          continue;
        }
        EXPECT_EQ(shm::look(w.view(), {limit.ref, shm::key_of(limit, key), 0, 0}, out),
                  shm::Outcome::Answered);
        all.push_back(rule::report_of(out).remaining);
      }
    }
    return all;
  }
  static void sweep(World& w) {
    while (!w.publisher().sweep(64)) {}
  }
  static void daemon_starts(World& w) {
    w.adopt();
    sweep(w);
  }
  static void debts(World& w) {
    for (const char* name : {"a", "b"}) {
      take(w, name, "k", 2);
      take(w, name, "m", 1);
    }
  }

  static void publish_everywhere(const char* name, const Limits& before, const Limits& after) {
    Values old_values, new_values;
    {
      World plain(before, tiny());
      debts(plain);
      old_values = values(plain);
      plain.publish(after);
      plain.pass(1);
      new_values = values(plain);
      sweep(plain);
      EXPECT_EQ(values(plain), new_values) << "the sweep changes nothing";
    }
    World world(before, tiny());
    kill_everywhere(world, {name, debts, [&](World& w) { w.publish(after); },
                            [&](World& w, bool done) {
                              w.pass(1);
                              const Values now = values(w);
                              EXPECT_TRUE(now == new_values || (!done && now == old_values));
                              daemon_starts(w);
                              EXPECT_EQ(w.verify(), "");
                              w.publish(after);
                              w.pass(1);
                              sweep(w);
                              EXPECT_EQ(values(w), new_values);
                              EXPECT_EQ(w.verify(), "");
                            },
                            daemon_starts});
  }
};

TEST_F(SingleStepPublish, Windows) {
  publish_everywhere("publish: windows come and go", {with("a", {hourly(5)}),
                                                      with("b", {hourly(9), hourly(4)})},
                     {with("a", {hourly(7), hourly(6)}), with("b", {hourly(8)})});
}

TEST_F(SingleStepPublish, Overrides) {
  auto a = with("a", {hourly(5)}), b = with("b", {hourly(5)});
  a.overrides = {over("k", 20)};
  auto other = a;
  other.overrides = {over("m", 30),
                     {.key = "n*", .pattern = true, .kind = rule::LimitKind::Blocked}};
  b.mode = rule::Mode::Shadow;
  publish_everywhere("publish: overrides come and go", {a, b}, {other, b});
}

TEST_F(SingleStepPublish, Calendars) {
  using rule::CalendarUnit;
  const auto calendar = [](std::uint64_t count, const char* zone) {
    return rule::calendar_window(count, CalendarUnit::Year, zone);
  };
  publish_everywhere("publish: calendars",
                     {with("a", {calendar(5, "UTC")}), with("b", {hourly(5)})},
                     {with("a", {calendar(9, "UTC")}), with("b", {calendar(7, "UTC")})});
}

TEST_F(SingleStepPublish, EachWord) {
  for (const OnChange word : {OnChange::AsIs, OnChange::Proportional, OnChange::Reset}) {
    publish_everywhere("publish: a word of on-change",
                       {with("a", {hourly(4)}), with("b", {hourly(8)})},
                       {with("a", {hourly(12)}, word), with("b", {hourly(4)}, word)});
  }
}

TEST_F(SingleStepPublish, WithoutABucket) {
  auto open = with("a", {}), closed = with("b", {});
  open.kind = rule::LimitKind::Unlimited;
  closed.kind = rule::LimitKind::Blocked;
  publish_everywhere("publish: unlimited and blocked",
                     {with("a", {hourly(4)}), with("b", {hourly(8)})}, {open, closed});
}

TEST_F(SingleStepPublish, SweepOfARuleOfAnOverride) {
  auto a = with("a", {hourly(5)});
  auto had = a;
  had.overrides = {over("k", 20), over("m", 20)};
  World world({had}, tiny());
  kill_everywhere(world, {"sweep: an override is gone",
                          [&](World& w) {
                            take(w, "a", "k", 4);
                            take(w, "a", "m", 12);
                            w.publish({a});
                            w.pass(1);
                          },
                          [](World& w) { sweep(w); },
                          [&](World& w, bool) {
                            daemon_starts(w);
                            const Values now = values(w);
                            EXPECT_EQ(now[0], 1U);
                            EXPECT_EQ(now[1], 0U);
                            EXPECT_EQ(w.verify(), "");
                            w.publish({had});
                            EXPECT_EQ(values(w)[1], 8U) << "12 of 20 are used";
                          },
                          [](World& w) { w.adopt(); }});
}

}  // namespace
}  // namespace cutwater::test
