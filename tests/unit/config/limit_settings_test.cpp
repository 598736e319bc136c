// SPDX-License-Identifier: Apache-2.0
#include "rule/limit_settings.hpp"

#include <gtest/gtest.h>

namespace cutwater::rule {
namespace {

LimitSettings good() {
  LimitSettings settings;
  settings.windows.resize(1);
  settings.name = "api";
  settings.windows[0].rate_count = 10;
  settings.windows[0].rate_period_ns = kNanosPerSecond;
  settings.windows[0].burst = 10;
  return settings;
}

template <class Change>
std::string refused(Change&& change) {
  LimitSettings settings = good();
  change(settings);
  const auto checked = check(settings);
  EXPECT_EQ(checked.error().code(), Errc::InvalidArgument);
  return checked.error().text();
}

TEST(LimitSettings, WhatConfigurationsGiveIsAccepted) { EXPECT_TRUE(check(good()).ok()); }

TEST(LimitSettings, EveryFieldHasItsRange) {
  using S = LimitSettings;
  EXPECT_EQ(refused([](S& s) { s.windows[0].rate_count = 0; }),
            "limit 'api': rate_count is 0; it must be 1..1000000000");
  EXPECT_EQ(refused([](S& s) { s.windows[0].rate_count = kMaxRateCount + 1; }),
            "limit 'api': rate_count is 1000000001; it must be 1..1000000000");
  refused([](S& s) { s.windows[0].rate_period_ns = 0; });
  refused([](S& s) { s.windows[0].rate_period_ns = kMinPeriodNs - 1; });
  refused([](S& s) { s.windows[0].rate_period_ns = kMaxPeriodNs + 1; });
  EXPECT_EQ(refused([](S& s) { s.windows[0].burst = 0; }),
            "limit 'api': burst is 0; it must be 1..1000000000");
  refused([](S& s) { s.windows[0].burst = kMaxBurst + 1; });
  refused([](S& s) { s.max_wait_ns = kMaxWaitNs + 1; });
  refused([](S& s) { s.max_waiting = kMaxWaiting + 1; });
  refused([](S& s) { s.thread_lease = 1; });
  refused([](S& s) { s.windows[0].burst = kMaxBurst; s.thread_lease = kMaxThreadLease + 1; });
  refused([](S& s) { s.note = std::string(kMaxNoteLength + 1, 'n'); });
  refused([](S& s) { s.name = ""; });
  refused([](S& s) { s.name = "a b"; });
  refused([](S& s) { s.name = std::string(kMaxNameLength + 1, 'n'); });
}

TEST(LimitSettings, TheEdgesAreInside) {
  LimitSettings settings = good();
  settings.name = std::string(kMaxNameLength, 'n');
  settings.windows[0].rate_count = 1;
  settings.windows[0].rate_period_ns = kMaxPeriodNs;
  settings.windows[0].burst = kMaxBurst;
  settings.thread_lease = kMaxThreadLease;
  settings.max_waiting = kMaxWaiting;
  settings.note = std::string(kMaxNoteLength, 'n');
  EXPECT_TRUE(check(settings).ok());
  settings.windows[0].rate_count = kMaxRateCount;
  EXPECT_TRUE(check(settings).ok());
}

TEST(LimitSettings, TenMillionASecondAndNoMore) {
  LimitSettings settings = good();
  settings.windows[0].rate_count = kMaxRatePerSecond;
  EXPECT_TRUE(check(settings).ok());
  settings.windows[0].rate_count = kMaxRatePerSecond + 1;
  EXPECT_EQ(check(settings).error().text(),
            "limit 'api': 10000001 per 1000000000 ns is above the maximum of 10000000 per second");
  EXPECT_FALSE(above_max_rate(10, kMinPeriodNs));
  EXPECT_TRUE(above_max_rate(11, kMinPeriodNs));
  EXPECT_FALSE(above_max_rate(kMaxRateCount, kMaxPeriodNs));
  EXPECT_TRUE(above_max_rate(kMaxRateCount, 100 * kNanosPerSecond - 1));
  EXPECT_FALSE(above_max_rate(kMaxRateCount, 100 * kNanosPerSecond));
}

}  // namespace
}  // namespace cutwater::rule
