// SPDX-License-Identifier: Apache-2.0
// What the blocks take of `capacity`, written and not written.
#include "loading.hpp"

namespace cutwater::config {
namespace {

TEST(Capacity, CapacityThatIsNotWrittenIsWhatTheBlocksNeed) {
  EXPECT_EQ(config_of("").capacity.breakers, 80U);
  EXPECT_EQ(config_of("breakers:\n  \"bank-*\": {}\n  x: {}\n").capacity.breakers, 80U);
  const Config two = config_of("breakers:\n  \"bank-*\": {}\n  \"shop-*\": {}\n  x: {}\n");
  EXPECT_EQ(two.capacity.breakers, 131U);
  EXPECT_EQ(two.find_value("capacity.breakers")->text, "131");
  EXPECT_EQ(config_of("capacity: { breakers: 200 }\nbreakers: { x: {} }\n").capacity.breakers,
            200U);
  // So much is not taken without being asked for.
  EXPECT_EQ(config_of("breakers: { \"p-*\": { max-instances: 1023 } }").capacity.breakers, 1024U);
  EXPECT_EQ(errors_of("breakers: { \"p-*\": { max-instances: 1024 } }"),
            Lines{"cutwater.yaml:1:1: breakers: 1025 breakers do not fit capacity.breakers, which "
                  "is not written and grows by itself to 1024: 'p-*' takes 1025, its max-instances "
                  "of 1024 and one; set capacity.breakers to at least 1025, or its max-instances "
                  "to at most 1023"});
}

TEST(Capacity, OnlyWhatCanBeFollowedIsAdvised) {
  EXPECT_EQ(errors_of("bulkheads: { \"p-*\": { max-concurrent-calls: 1, max-instances: 624, "
                      "max-wait-duration: 1s, max-waiting: 1024 } }"),
            Lines{"cutwater.yaml:1:1: bulkheads: 640000 calls in line at bulkheads do not fit "
                  "capacity.waiters, which is not written and grows by itself to 16384: 'p-*' "
                  "takes 640000, its max-instances of 624 and one, 1024 each; more than 262144 "
                  "cannot be set: set its max-instances to at most 255, or its max-waiting to at "
                  "most 419, and capacity.waiters to 262144"});
  EXPECT_TRUE(load("capacity: { waiters: 262144 }\nbulkheads: { \"p-*\": { "
                   "max-concurrent-calls: 1, max-instances: 624, max-wait-duration: 1s, "
                   "max-waiting: 419 } }").ok());
  EXPECT_EQ(errors_of("bulkheads: { \"p-*\": { max-concurrent-calls: 1, max-wait-duration: 1s, "
                      "max-waiting: 1024 } }"),
            Lines{"cutwater.yaml:1:1: bulkheads: 66560 calls in line at bulkheads do not fit "
                  "capacity.waiters, which is not written and grows by itself to 16384: 'p-*' "
                  "takes 66560, its max-instances of 64 and one, 1024 each; set capacity.waiters "
                  "to at least 66560, or its max-instances to at most 15, or its max-waiting to "
                  "at most 252"});
}

TEST(Capacity, MoreThanFitAreRefused) {
  std::string text = "capacity: { breakers: 64 }\nbreakers:\n";
  for (int i = 0; i < 64; ++i) text += "  b" + std::to_string(i) + ": {}\n";
  EXPECT_TRUE(load(text).ok());
  EXPECT_EQ(errors_of(text + "  x: {}\n"),
            Lines{"cutwater.yaml:2:1: breakers: 65 breakers do not fit capacity.breakers, which is "
                  "64; set capacity.breakers to at least 65"});
}

}  // namespace
}  // namespace cutwater::config
