// SPDX-License-Identifier: Apache-2.0
// What a change of a limit keeps: the four words of on-change, in both shapes of a change (the same
// rule id, a new one), and a scale that does not fit.
#include "unit/shm/publish_fixture.hpp"

namespace cutwater::shm {
namespace {

using rule::OnChange;

class ChangeTest : public PublishTest {
 protected:
  static rule::LimitSettings api(rule::WindowSettings window, OnChange word = OnChange::KeepUsed) {
    return limit("api", {std::move(window)}, word);
  }
  std::uint64_t reset_ns(const std::string& key) {
    return static_cast<std::uint64_t>(rule::report_of(peek("api", key)).reset_after_ns);
  }
  std::uint64_t retry_ns(const std::string& key, std::uint64_t cost) {
    return static_cast<std::uint64_t>(rule::report_of(peek("api", key, cost)).retry_after_ns);
  }
};

TEST_F(ChangeTest, V58KeepUsedLoweredAndRaisedAgain) {
  open({api(per_minute(10, 10))});
  EXPECT_TRUE(allowed(take("api", "k", 8)));
  publish({api(per_minute(5, 5))});
  EXPECT_EQ(left("api", "k"), 0U);
  EXPECT_NEAR(static_cast<double>(reset_ns("k")), 96e9, 10);
}

TEST_F(ChangeTest, V59ALoweredLimitRefusesUntilTheDebtIsPaid) {
  open({api(per_minute(10, 10))});
  take("api", "k", 8);
  publish({api(per_minute(5, 5))});
  EXPECT_FALSE(allowed(take("api", "k")));
  EXPECT_NEAR(static_cast<double>(retry_ns("k", 1)), 48e9, 10);
}

TEST_F(ChangeTest, V60GoingBackRestores) {
  open({api(per_minute(10, 10))});
  take("api", "k", 8);
  publish({api(per_minute(5, 5))});
  publish({api(per_minute(10, 10))});
  EXPECT_EQ(left("api", "k"), 2U);
  EXPECT_NEAR(static_cast<double>(reset_ns("k")), 48e9, 10);
}

TEST_F(ChangeTest, V61V62WhatIsThereAfterGoingBack) {
  open({api(per_minute(10, 10))});
  take("api", "k", 8);
  publish({api(per_minute(5, 5))});
  publish({api(per_minute(10, 10))});
  EXPECT_FALSE(allowed(take("api", "k", 3)));
  EXPECT_NEAR(static_cast<double>(retry_ns("k", 3)), 6e9, 10);
  EXPECT_TRUE(allowed(take("api", "k", 2)));
  EXPECT_EQ(left("api", "k"), 0U);
  EXPECT_NEAR(static_cast<double>(reset_ns("k")), 60e9, 10);
}

TEST_F(ChangeTest, V63AsIsRaisedKeepsWhatIsAvailable) {
  open({api(per_minute(10, 100), OnChange::AsIs)});
  take("api", "k", 60);
  publish({api(per_minute(10, 200), OnChange::AsIs)});
  EXPECT_EQ(left("api", "k"), 40U);
  EXPECT_NEAR(static_cast<double>(reset_ns("k")), 960e9, 10);
  EXPECT_EQ(left("api", "nobody"), 100U) << "a key without an entry is like one with a full one";
}

TEST_F(ChangeTest, V64AsIsLoweredIsCutToTheNewBurst) {
  open({api(per_minute(10, 100), OnChange::AsIs)});
  take("api", "k", 60);
  publish({api(per_minute(10, 20), OnChange::AsIs)});
  EXPECT_EQ(left("api", "k"), 20U);
  EXPECT_EQ(reset_ns("k"), 0U);
}

TEST_F(ChangeTest, C128EachWordFromFiftyOfAHundredToTwo) {
  struct Row { OnChange word; std::uint64_t left, first_after_s; };
  for (const Row row : {Row{OnChange::KeepUsed, 0, 1470}, Row{OnChange::AsIs, 2, 0},
                        Row{OnChange::Proportional, 1, 0}, Row{OnChange::Reset, 2, 0}}) {
    SCOPED_TRACE(static_cast<int>(row.word));
    open({api(per_minute(100, 100), row.word)});
    take("api", "k", 50);
    publish({api(per_minute(2, 2), row.word)});
    EXPECT_EQ(left("api", "k"), row.left);
    EXPECT_NEAR(static_cast<double>(retry_ns("k", 1)),
                static_cast<double>(row.first_after_s) * 1e9, 100);
    sweep();
    EXPECT_EQ(left("api", "k"), row.left) << "the sweep changes nothing";
    EXPECT_EQ(verified(), "");
  }
}

TEST_F(ChangeTest, C128EightOfTenUsedRaisedToTwenty) {
  struct Row { OnChange word; std::uint64_t left; };
  for (const Row row : {Row{OnChange::KeepUsed, 12}, Row{OnChange::AsIs, 2},
                        Row{OnChange::Proportional, 4}, Row{OnChange::Reset, 20}}) {
    SCOPED_TRACE(static_cast<int>(row.word));
    open({api(per_minute(10, 10), row.word)});
    take("api", "k", 8);
    publish({api(per_minute(20, 20), row.word)});
    EXPECT_EQ(left("api", "k"), row.left);
    EXPECT_EQ(left("api", "nobody"), row.word == OnChange::AsIs ? 10U : 20U);
  }
}

TEST_F(ChangeTest, C128AsIsThenRaisedFarKeepsTwo) {
  open({api(per_minute(100, 100), OnChange::AsIs)});
  take("api", "k", 50);
  publish({api(per_minute(2, 2), OnChange::AsIs)});
  sweep();
  publish({api(per_minute(200, 200), OnChange::AsIs)});
  EXPECT_EQ(left("api", "k"), 2U);
}

TEST_F(ChangeTest, C128AnotherPeriodAloneKeepsWhatIsThere) {
  for (const OnChange word : {OnChange::KeepUsed, OnChange::AsIs, OnChange::Proportional}) {
    open({api(per_minute(100, 100), word)});
    take("api", "k", 50);
    publish({api(rule::rate_window(100, 10 * rule::kNanosPerSecond, 100), word)});
    EXPECT_EQ(left("api", "k"), 50U);
    EXPECT_NEAR(static_cast<double>(reset_ns("k")), 5e9, 10);
  }
}

TEST_F(ChangeTest, C128ARenamedLimitIsANewOne) {
  open({api(per_minute(100, 100))});
  take("api", "k", 50);
  publish({limit("web", {per_minute(100, 100)})});
  EXPECT_EQ(left("web", "k"), 100U);
  EXPECT_EQ(resolve(view(), "api").ref.index, kNoLimit);
}

TEST_F(ChangeTest, AScaleThatDoesNotFitMeansTheSame) {
  // 1 per hour and 100000 per second need other units: a new rule id, by every word.
  struct Row { OnChange word; std::uint64_t left, fresh; };
  for (const Row row : {Row{OnChange::KeepUsed, 12, 20}, Row{OnChange::AsIs, 2, 10},
                        Row{OnChange::Proportional, 4, 20}, Row{OnChange::Reset, 20, 20}}) {
    SCOPED_TRACE(static_cast<int>(row.word));
    open({api(per_second(100'000, 10), row.word)});
    take("api", "k", 8);
    const auto before = resolve(view(), "api");
    const std::uint16_t old_id = view().limit_config(view().current(), before.ref.index).rule[0];
    publish({api(rule::rate_window(1, 3600 * rule::kNanosPerSecond, 20), row.word)});
    const std::uint16_t id = view().limit_config(view().current(), before.ref.index).rule[0];
    ASSERT_NE(id, old_id);
    EXPECT_EQ(left("api", "k"), row.left);
    EXPECT_EQ(left("api", "nobody"), row.fresh);
    sweep();
    EXPECT_EQ(left("api", "k"), row.left);
    EXPECT_EQ(left("api", "nobody"), row.fresh);
    EXPECT_EQ(verified(), "");
  }
}

TEST_F(ChangeTest, ASecondReloadWaitsForTheSweep) {
  open({api(per_minute(100, 100), OnChange::Proportional)});
  // Two keys and one slot at a time: whatever the secret, one of them is not in the first slot.
  for (const char* key : {"k", "l"}) take("api", key, 50);
  publish({api(per_minute(10, 10), OnChange::Proportional)});
  EXPECT_NE(refused({api(per_minute(4, 4), OnChange::Proportional)}, Errc::Busy)
                .find("still being converted"), std::string::npos);
  for (const char* key : {"k", "l"}) EXPECT_EQ(left("api", key), 5U);
  while (!publisher->sweep(1)) {}
  publish({api(per_minute(4, 4), OnChange::Proportional)});
  for (const char* key : {"k", "l"}) EXPECT_EQ(left("api", key), 2U);
  sweep();
  for (const char* key : {"k", "l"}) EXPECT_EQ(left("api", key), 2U);
}

TEST_F(ChangeTest, AnOverrideThatIsChangedWithItsLimitAndDroppedBeforeASweepOwesOn) {
  const auto with = [](std::uint64_t base_period_ns, rule::WindowSettings own) {
    auto settings = api(rule::rate_window(40, base_period_ns, 46), OnChange::AsIs);
    settings.overrides = {over("k", {own})};
    return Limits{settings};
  };
  constexpr std::uint64_t kHourNs = 60 * kMinuteNs;
  open(with(kHourNs, rule::rate_window(26, kHourNs, 9)));
  take("api", "k", 8);
  // The scale of the window changes, and with it the override's rule id; then that one goes too.
  publish(with(kSecond, rule::rate_window(26, kHourNs, 9)));
  pass(kSecond);
  publish(with(kSecond, per_minute(28, 37)));
  EXPECT_EQ(left("api", "k"), 29U);

  sweep();

  EXPECT_EQ(left("api", "k"), 29U);
  EXPECT_EQ(verified(), "");
}

TEST_F(ChangeTest, AnotherMaxWaitResetsNothing) {
  auto settings = api(per_minute(100, 100), OnChange::Reset);
  open({settings});
  take("api", "k", 50);
  settings.max_wait_ns = 1'000'000'000;
  settings.max_debt = 7;
  publish({settings});
  EXPECT_EQ(left("api", "k"), 50U);
}

TEST_F(ChangeTest, ALoweredBurstForgivesNothing) {
  // 900 of 1000 used, then a burst of 1 with little room for debts: 900 it stays, and an entry as
  // far ahead as that is no damage. Under the same id and under a new one.
  for (const std::uint64_t per_hour : {1U, 1'000'000U}) {
    auto wide = api(rule::rate_window(per_hour, 3600 * rule::kNanosPerSecond, 1000));
    wide.max_wait_ns = 0;
    open({wide});
    take("api", "k", 900);
    auto narrow = api(rule::rate_window(1, 3600 * rule::kNanosPerSecond, 1));
    narrow.max_wait_ns = 0;
    narrow.max_debt = 1;
    publish({narrow});
    EXPECT_FALSE(allowed(take("api", "k")));
    EXPECT_NEAR(static_cast<double>(retry_ns("k", 1)), 900 * 3600e9, 1e10);
    sweep();
    EXPECT_FALSE(allowed(take("api", "k")));
    EXPECT_NEAR(static_cast<double>(retry_ns("k", 1)), 900 * 3600e9, 1e10);
  }
}

TEST_F(ChangeTest, ABucketThatBecomesACalendarCarriesWhatWasUsed) {
  for (const OnChange word : {OnChange::KeepUsed, OnChange::Reset}) {
    open({api(per_minute(100, 100), word)});
    take("api", "k", 60);
    publish({api(rule::calendar_window(100, rule::CalendarUnit::Hour, "UTC"), word)});
    EXPECT_EQ(left("api", "k"), word == OnChange::Reset ? 100U : 40U);
    sweep();
    EXPECT_EQ(left("api", "k"), word == OnChange::Reset ? 100U : 40U);
    take("api", "k", 10);
    publish({api(per_minute(100, 100), word)});
    sweep();
    EXPECT_EQ(left("api", "k"), word == OnChange::Reset ? 100U : 30U);
    EXPECT_EQ(verified(), "");
  }
}

TEST_F(ChangeTest, InitialEmptyFillsSinceItWasConfigured) {
  auto settings = api(per_minute(60, 60));
  settings.initial = rule::Initial::Empty;
  open({settings});
  EXPECT_EQ(left("api", "k"), 0U);
  at(10 * kSecond);
  EXPECT_EQ(left("api", "k"), 10U);
  // The floor goes through every change: the key still fills.
  settings.windows = {per_second(1'000'000, 80)};
  publish({settings});
  EXPECT_LE(left("api", "k"), 31U);
  EXPECT_GE(left("api", "k"), 30U);
}

}  // namespace
}  // namespace cutwater::shm
