// SPDX-License-Identifier: Apache-2.0
// Publications of limits with several windows, overrides, patterns, kinds and modes.
#include "unit/shm/publish_fixture.hpp"

namespace cutwater::shm {
namespace {

using rule::LimitKind;

TEST_F(PublishTest, SeveralWindowsHaveRulesOfTheirOwn) {
  open({limit("api", {per_second(10, 10), per_minute(20, 20)})});
  EXPECT_TRUE(allowed(take("api", "k", 10)));
  const DecisionData second = take("api", "k");
  EXPECT_FALSE(allowed(second));
  EXPECT_EQ(second.window, 0);
  at(kSecond);
  EXPECT_TRUE(allowed(take("api", "k", 10)));
  at(2 * kSecond);
  EXPECT_EQ(take("api", "k").window, 1);
  EXPECT_EQ(verified(), "");
}

TEST_F(PublishTest, AWindowThatIsAddedStartsAsInitialSays) {
  for (const auto initial : {rule::Initial::Full, rule::Initial::Empty}) {
    auto settings = limit("api", {per_minute(10, 10)});
    open({settings});
    take("api", "k", 4);
    settings.windows.push_back(per_minute(6, 6));
    settings.initial = initial;
    publish({settings});
    EXPECT_EQ(left("api", "k"), initial == rule::Initial::Full ? 6U : 0U);
    EXPECT_EQ(verified(), "");
  }
}

TEST_F(PublishTest, AWindowThatIsRemovedTakesItsEntriesAlong) {
  open({limit("api", {per_minute(10, 10), per_minute(5, 5)})});
  take("api", "k", 4);
  publish({limit("api", {per_minute(10, 10)})});
  EXPECT_EQ(left("api", "k"), 6U);
  sweep();
  EXPECT_EQ(left("api", "k"), 6U);
  EXPECT_EQ(verify(view()).members, 1U);
  publish({limit("api", {per_minute(10, 10), per_minute(5, 5)})});
  EXPECT_EQ(left("api", "k"), 5U) << "the second window is a new one";
}

TEST_F(PublishTest, OverridesHaveOneSetOfRulesForEachListOfWindows) {
  auto settings = limit("api", {per_minute(10, 10)});
  settings.overrides = {over("a", {per_minute(100, 100)}), over("b", {per_minute(100, 100)}),
                        over("c", {per_minute(3, 3)})};
  open({settings});
  EXPECT_EQ(left("api", "a"), 100U);
  EXPECT_EQ(left("api", "b"), 100U);
  EXPECT_EQ(left("api", "c"), 3U);
  EXPECT_EQ(left("api", "d"), 10U);
  EXPECT_EQ(view().set(view().current(), kFirstSet + 1).windows, 1);
  EXPECT_EQ(view().set(view().current(), kFirstSet + 2).windows, 0) << "two sets for three keys";
  take("api", "a", 60);
  EXPECT_EQ(left("api", "b"), 100U);
  const std::uint64_t generation = view().current() >> kCurrentGenerationShift;
  publish({settings});
  EXPECT_EQ(view().current() >> kCurrentGenerationShift, generation) << "nothing to publish";
  EXPECT_EQ(verified(), "");
}

TEST_F(PublishTest, AKeyKeepsItsDebtWhenItsOverrideComesAndGoes) {
  auto settings = limit("api", {rule::rate_window(1, 3600 * rule::kNanosPerSecond, 10)});
  open({settings});
  take("api", "k", 8);
  auto with = settings;
  with.overrides = {over("k", {rule::rate_window(1, 3600 * rule::kNanosPerSecond, 1000)})};
  publish({with});
  EXPECT_EQ(left("api", "k"), 992U);
  take("api", "k", 900);
  EXPECT_EQ(left("api", "k"), 92U);
  publish({settings});
  EXPECT_EQ(left("api", "k"), 0U);
  sweep();
  EXPECT_EQ(verified(), "");
  EXPECT_EQ(left("api", "k"), 0U);
  // 908 are used: 899 have to come back before the first.
  EXPECT_NEAR(static_cast<double>(rule::report_of(peek("api", "k", 1)).retry_after_ns),
              899 * 3600e9, 1e6);
  publish({with});
  EXPECT_EQ(left("api", "k"), 92U);
}

TEST_F(PublishTest, ARuleOfAnOverrideIsFreeOnlyAfterTheSweep) {
  auto settings = limit("api", {per_minute(10, 10)});
  auto with = settings;
  with.overrides = {over("k", {per_minute(10, 20)})};
  open({with});
  take("api", "k", 15);
  const std::uint16_t id = view().set(view().current(), kFirstSet).rule[0];
  publish({settings});
  EXPECT_NE(view().rule(view().current(), id).kind, 0) << "its entries are still there";
  sweep();
  EXPECT_EQ(view().rule(view().current(), id).kind, 0);
  EXPECT_EQ(left("api", "k"), 0U);
}

TEST_F(PublishTest, PatternsKindsAndModesReachTheImage) {
  auto settings = limit("api", {per_minute(10, 10)});
  settings.mode = rule::Mode::Shadow;
  settings.ip_prefix_v4 = 24;
  settings.max_debt = 5;
  settings.overrides = {{.key = "partner:*", .pattern = true, .windows = {per_minute(50, 50)}},
                        {.key = "monitor", .kind = LimitKind::Unlimited},
                        {.key = "mallory", .kind = LimitKind::Blocked}};
  auto open_door = limit("open", {});
  open_door.kind = LimitKind::Unlimited;
  auto closed = limit("closed", {});
  closed.kind = LimitKind::Blocked;
  open({settings, open_door, closed});
  const std::uint64_t c = view().current();
  const LimitConfig& config = view().limit_config(c, resolve(view(), "api").ref.index);
  EXPECT_EQ(config.flags, kLimitShadow | kLimitHasOverrides | kLimitHasPatterns);
  EXPECT_EQ(config.ip_prefix_v4, 24);
  EXPECT_EQ(config.max_debt, 5U);
  EXPECT_EQ(left("api", "partner:7"), 50U);
  EXPECT_TRUE(allowed(take("api", "monitor", 1000)));
  EXPECT_TRUE(allowed(take("open", "k", 1000)));
  EXPECT_EQ(take("closed", "k").reason, Reason::Banned);
  EXPECT_EQ(verified(), "");
}

TEST_F(PublishTest, DebtsOutliveATimeWithoutABucket) {
  auto settings = limit("api", {rule::rate_window(1, 3600 * rule::kNanosPerSecond, 10)});
  open({settings});
  take("api", "k", 8);
  auto without = limit("api", {});
  without.kind = LimitKind::Unlimited;
  publish({without});
  EXPECT_TRUE(allowed(take("api", "k", 100)));
  sweep();
  publish({settings});
  EXPECT_EQ(left("api", "k"), 2U);
  without.name = "new";
  publish({settings, without});
  auto bucket = limit("new", {per_minute(3, 3)});
  publish({settings, bucket});
  EXPECT_EQ(left("new", "k"), 3U);
  EXPECT_EQ(verified(), "");
}

TEST_F(PublishTest, AnOverrideEndsAtItsMoment) {
  auto settings = limit("api", {per_minute(10, 10)});
  auto banned = rule::OverrideSettings{.key = "k", .kind = LimitKind::Blocked, .until_unix_s = 100};
  settings.overrides = {banned};
  open({settings});
  EXPECT_EQ(take("api", "k").reason, Reason::Banned);
  step_clock(view(), kEpochLeadNs + 100 * kSecond - 1);
  EXPECT_EQ(take("api", "k").reason, Reason::Banned);
  step_clock(view(), kEpochLeadNs + 100 * kSecond);
  EXPECT_TRUE(allowed(take("api", "k")));
  publish({settings});
  EXPECT_EQ(view().limit_config(view().current(), 0).flags, kLimitHasOverrides);
  EXPECT_TRUE(allowed(take("api", "k")));
}

TEST_F(PublishTest, WhatDoesNotFitNamesTheNumberToSet) {
  open({});
  auto settings = limit("api", {per_minute(10, 10)});
  for (int i = 0; i < 17; ++i) {
    settings.overrides.push_back(over(std::to_string(i), {per_minute(1, 1)}));
  }
  EXPECT_EQ(refused({settings}, Errc::InvalidArgument),
            "17 overrides, but memory was reserved for 16; set capacity.overrides to at least that "
            "number and restart");
  settings.overrides.clear();
  auto other = limit("other", {per_minute(10, 10)});
  for (int i = 0; i < 9; ++i) {
    settings.overrides.push_back({.key = std::to_string(i) + "*", .pattern = true,
                                  .windows = {per_minute(1, 1)}});
  }
  other.overrides = settings.overrides;
  EXPECT_EQ(refused({settings, other}, Errc::InvalidArgument),
            "18 key patterns, but memory was reserved for 16; set capacity.overrides to at least "
            "288 and restart");
  Limits many;
  for (int i = 0; i < 11; ++i) {
    many.push_back(limit("l" + std::to_string(i), {per_minute(1, 1), per_minute(2, 2),
                                                   per_minute(3, 3), per_minute(4, 4),
                                                   per_minute(5, 5), per_minute(6, 6)}));
  }
  const std::string text = refused(many, Errc::Busy);
  EXPECT_NE(text.find("raise capacity.limits (4 ids each, now 16)"), std::string::npos) << text;
  EXPECT_EQ(view().image_head(view().current()).limits, 0U) << "all or nothing";
}

TEST_F(PublishTest, AFullOverrideTableFindsEveryKey) {
  Capacity capacity = small();
  capacity.overrides = 4096;
  auto settings = limit("api", {per_minute(10, 10)});
  for (int i = 0; i < 4096; ++i) {
    settings.overrides.push_back({.key = "key" + std::to_string(i), .kind = LimitKind::Blocked});
  }
  open({settings}, capacity);
  for (int i = 0; i < 4096; ++i) {
    ASSERT_EQ(peek("api", "key" + std::to_string(i), 1).reason, Reason::Banned) << i;
  }
  for (int i = 0; i < 4096; ++i) {
    ASSERT_EQ(peek("api", "none" + std::to_string(i), 1).reason, Reason::Allowed) << i;
  }
  EXPECT_EQ(verified(), "");
}

TEST_F(PublishTest, ANewDaemonGoesOnWithEverything) {
  auto settings = limit("api", {per_minute(10, 10), per_minute(30, 30)});
  settings.overrides = {over("k", {per_minute(100, 100)})};
  open({settings});
  take("api", "k", 60);
  take("api", "n", 6);
  adopt();
  publish({settings});
  EXPECT_EQ(left("api", "k"), 40U);
  EXPECT_EQ(left("api", "n"), 4U);
  settings.overrides.clear();
  publish({settings});
  sweep();
  EXPECT_EQ(left("api", "k"), 0U);
  EXPECT_EQ(verified(), "");
}

}  // namespace
}  // namespace cutwater::shm
