// SPDX-License-Identifier: Apache-2.0
#include "rule/bulkhead_text.hpp"

#include <gtest/gtest.h>

namespace cutwater::rule {
namespace {

constexpr std::int64_t kMs = 1'000'000;

BulkheadStory full() {
  BulkheadStory s;
  s.name = "fraudCheck";
  s.in_use = 10;
  s.limit = 10;
  return s;
}

TEST(BulkheadText, ARefusalSaysHowManyHoldAndHowLongTheOldest) {
  BulkheadStory s = full();
  s.oldest_ns = 3'200 * kMs;
  s.waiting = 2;

  EXPECT_EQ(refusal_text(s, 40 * kMs),
            "bulkhead 'fraudCheck' is full: 10 of 10 places are held, the oldest for 3.2 s; "
            "2 wait in line; retry after about 40 ms");
}

TEST(BulkheadText, WhatIsNotKnownIsNotSaid) {
  BulkheadStory s = full();
  s.in_use = s.limit = 1;

  EXPECT_EQ(refusal_text(s, 1'000 * kMs),
            "bulkhead 'fraudCheck' is full: 1 of 1 place is held; retry after about 1 s");
}

TEST(BulkheadText, OneThatWaitedInVainSaysHowLong) {
  BulkheadStory s = full();
  s.waited_ns = 200 * kMs;
  s.waiting = 1;
  EXPECT_EQ(refusal_text(s, 40 * kMs),
            "bulkhead 'fraudCheck' is full after 200 ms in line: 10 of 10 places are held; "
            "1 waits in line; retry after about 40 ms");

  s.expired = true;
  EXPECT_EQ(refusal_text(s, 40 * kMs),
            "bulkhead 'fraudCheck' had no place before the call's deadline after 200 ms in line: "
            "10 of 10 places are held; 1 waits in line; give the call more time, or try again "
            "later");
}

TEST(BulkheadText, SaysWhatCutTheWaitAndWhoSharesThePlaces) {
  BulkheadStory s = full();
  s.waiting = 0;
  s.oldest_ns = 0;
  s.waited_ns = 200 * kMs;
  s.cut_wait_ns = 5'000 * kMs;
  s.shared_by = "bank-*";
  EXPECT_EQ(refusal_text(s, 40 * kMs),
            "bulkhead 'fraudCheck' is full after 200 ms in line: 10 of 10 places are held; these "
            "places are shared by names beyond max-instances of 'bank-*'; its max-wait-duration "
            "ended the wait, 5 s were asked for; retry after about 40 ms");
}

TEST(BulkheadText, AFreePlaceThatIsOwedToTheLineIsNotCalledFull) {
  BulkheadStory s = full();
  s.in_use = 9;
  s.waiting = 2;
  EXPECT_EQ(refusal_text(s, 40 * kMs),
            "bulkhead 'fraudCheck' gives its next place to those in line: 9 of 10 places are held; "
            "2 wait in line; retry after about 40 ms");
}

TEST(BulkheadText, NoPlacesAtAllIsNoQueue) {
  BulkheadStory s = full();
  s.in_use = s.limit = 0;

  EXPECT_EQ(refusal_text(s, -1),
            "bulkhead 'fraudCheck' lets nobody in: max-concurrent-calls is 0");
}

}  // namespace
}  // namespace cutwater::rule
