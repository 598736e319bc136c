// SPDX-License-Identifier: Apache-2.0
#include "ctl/seen_events.hpp"

#include <gtest/gtest.h>

namespace cutwater::ctl {
namespace {

TEST(SeenEvents, ShowsANamedEventOnceAndOthersAlways) {
  SeenEvents seen;

  EXPECT_TRUE(seen.first("breaker_moved", 3, 7));
  EXPECT_FALSE(seen.first("breaker_moved", 3, 7));
  EXPECT_TRUE(seen.first("breaker_moved", 3, 8));
  EXPECT_TRUE(seen.first("breaker_moved", 4, 7));
  EXPECT_TRUE(seen.first("client_attached", 3, 7));
  EXPECT_TRUE(seen.first("config_reloaded", 0, 0));
  EXPECT_TRUE(seen.first("config_reloaded", 0, 0)) << "epoch 0 names nothing";
}

TEST(SeenEvents, ForgetsTheOldestBeyondItsBound) {
  SeenEvents seen;
  for (std::uint64_t i = 1; i <= SeenEvents::kNames + 1; ++i) {
    EXPECT_TRUE(seen.first("breaker_moved", 0, i));
  }

  EXPECT_FALSE(seen.first("breaker_moved", 0, 2));
  EXPECT_TRUE(seen.first("breaker_moved", 0, 1));
}

}  // namespace
}  // namespace cutwater::ctl
