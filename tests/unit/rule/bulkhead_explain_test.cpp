// SPDX-License-Identifier: Apache-2.0
#include "rule/bulkhead_explain.hpp"

#include <gtest/gtest.h>

#include "rule/bulkhead_settings.hpp"

namespace cutwater::rule {
namespace {

constexpr std::int64_t kMs = 1'000'000;

BulkheadStory story(std::uint32_t in_use, std::uint32_t limit, std::uint32_t waiting = 0) {
  BulkheadStory s;
  s.name = "fraud";
  s.in_use = in_use;
  s.limit = limit;
  s.waiting = waiting;
  return s;
}

BulkheadAround around() {
  BulkheadAround a;
  a.max_waiting = 64;
  a.retry_after_ns = 40 * kMs;
  return a;
}

using Words = std::vector<std::string>;

const std::string kNoHold =
    "max-hold is off: a call that does not end keeps its place while its process lives";

TEST(BulkheadExplain, AFreeOneGivesAPlaceAndSaysWhoIsInside) {
  BulkheadStory s = story(3, 10);
  s.oldest_ns = 1'200 * kMs;
  BulkheadAround a = around();
  a.shares = {{.pid = 80, .row = 2, .places = 1, .oldest_ns = 30 * kMs},
              {.pid = 77, .row = 1, .places = 2, .oldest_ns = 1'200 * kMs}};

  EXPECT_EQ(explain_lines(s, a),
            (Words{"the next caller gets a place: 3 of 10 places are held, the oldest for 1.2 s",
                   "nobody waits in line here: max-wait-duration is 0",
                   "pid 77 holds 2 places, the oldest for 1.2 s",
                   "pid 80 holds 1 place, for 30 ms", kNoHold}));
}

TEST(BulkheadExplain, AFullOneSaysWhoWaitsForHowLongAndWhoIsNext) {
  BulkheadStory s = story(2, 2, 2);
  BulkheadAround a = around();
  a.max_wait_ns = 5'000 * kMs;
  a.max_hold_ns = 30'000 * kMs;
  a.median_ns = 40 * kMs;
  a.shares = {{.pid = 77, .row = 1, .places = 2, .waiting = 1}, {.row = 5, .waiting = 1}};
  a.next_row = 5;
  a.next_left_ns = 1'500 * kMs;

  EXPECT_EQ(explain_lines(s, a),
            (Words{"the next caller that does not wait is refused: 2 of 2 places are held; "
                   "2 wait in line; come back in about 40 ms",
                   "one that waits is number 3 in line, of at most 64, and waits at most 5 s",
                   "the next place that is given back goes to row 5, first in line, which waits "
                   "for 1.5 s more at most",
                   "pid 77 holds 2 places, and waits with 1 call", "row 5 waits with 1 call",
                   "half of the places of the last minute were held for 40 ms or less",
                   "a place that is held longer than 30 s is taken back (max-hold)"}));
}

TEST(BulkheadExplain, AFullLineRefusesThoseWhoWouldWaitToo) {
  BulkheadAround a = around();
  a.max_wait_ns = kWaitForever;
  a.max_waiting = 2;

  EXPECT_EQ(explain_lines(story(2, 2, 2), a).front(),
            "the next caller is refused, also one that would wait: 2 of 2 places are held; 2 wait "
            "in line, as many as may (2); come back in about 40 ms");
  a.max_waiting = 3;
  EXPECT_EQ(explain_lines(story(2, 2, 2), a)[1],
            "one that waits is number 3 in line, of at most 3, and waits until its own deadline");
}

TEST(BulkheadExplain, AFreePlaceThatIsOwedToTheLineIsSaid) {
  BulkheadAround a = around();
  a.max_wait_ns = 1'000 * kMs;

  EXPECT_EQ(explain_lines(story(1, 2, 1), a).front(),
            "the next caller that does not wait is refused: the next place goes to those in line: "
            "1 of 2 places are held; 1 waits in line; come back in about 40 ms");
}

TEST(BulkheadExplain, SwitchedOffWithoutPlacesLoweredAndAPattern) {
  BulkheadAround off = around();
  off.enabled = false;
  EXPECT_EQ(explain_lines(story(0, 2), off),
            (Words{"switched off: the next caller is let through, and nothing is counted"}));
  EXPECT_EQ(explain_lines(story(0, 0), around()),
            (Words{"the next caller is refused: max-concurrent-calls is 0"}));

  const Words lowered = explain_lines(story(5, 2), around());
  EXPECT_EQ(lowered.front(),
            "the next caller is refused: 5 of 2 places are held; come back in about 40 ms");
  EXPECT_EQ(lowered[2], "3 too many are inside since the number was lowered: they finish, and "
                        "nobody gets a place before");

  BulkheadAround pattern = around();
  pattern.pattern = true;
  EXPECT_NE(explain_lines(story(0, 2), pattern).back().find("the pattern's own places"),
            std::string::npos);
}

TEST(BulkheadExplain, PlacesOfTheGoneAreSaidAndManyAreSummedUp) {
  BulkheadAround a = around();
  a.shares = {{.row = 9, .places = 3, .gone = true}};
  for (std::uint32_t i = 0; i < kHoldersNamed + 1; ++i) {
    a.shares.push_back({.pid = 100 + i, .row = 20 + i, .places = 1});
  }

  const Words words = explain_lines(story(12, 20), a);

  EXPECT_EQ(words[2], "row 9 (gone) holds 3 places; the daemon gives them back");
  EXPECT_EQ(words[3], "pid 100 holds 1 place");
  EXPECT_EQ(words[2 + kHoldersNamed], "2 more processes hold 2 places and wait with 0 calls");
}

}  // namespace
}  // namespace cutwater::rule
