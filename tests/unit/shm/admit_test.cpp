// SPDX-License-Identifier: Apache-2.0
// One limit of every kind: windows, calendars, overrides, bans, shadow.
#include "unit/shm/admit_fixture.hpp"

namespace cutwater::shm {
namespace {

TEST_F(AdmitTest, W8ToW13TwoWindowsAreOneAnswer) {
  const LimitHandle api = add("api", {rate(10, kSecond, 10), rate(20, 60 * kSecond, 20)});

  DecisionData d = take(api, "k", 10);
  EXPECT_TRUE(allowed(d));
  EXPECT_EQ(of(d).remaining, 0U);
  EXPECT_EQ(d.window, 0);
  EXPECT_EQ(of(d).reset_after_ns, 30 * kSecond);

  auto before = bytes();
  d = take(api, "k");
  EXPECT_EQ(d.reason, Reason::Limit);
  EXPECT_EQ(d.window, 0);
  EXPECT_EQ(of(d).retry_after_ns, 100 * kMs);
  EXPECT_EQ(bytes(), before);

  at(1000 * kMs);
  d = take(api, "k", 10);
  EXPECT_TRUE(allowed(d));
  EXPECT_EQ(of(d).remaining, 0U);

  at(2000 * kMs);
  before = bytes();
  d = take(api, "k");
  EXPECT_EQ(d.reason, Reason::Limit);
  EXPECT_EQ(d.window, 1);
  EXPECT_EQ(of(d).retry_after_ns, 1000 * kMs);
  EXPECT_EQ(bytes(), before);

  // Full since half a second: charged and given back, its entry would say so.
  at(2500 * kMs);
  EXPECT_EQ(of(take(api, "k")).retry_after_ns, 500 * kMs);
  EXPECT_EQ(bytes(), before);

  at(4000 * kMs);
  d = take(api, "k");
  EXPECT_TRUE(allowed(d));
  EXPECT_EQ(of(d).remaining, 0U);
  EXPECT_EQ(d.window, 1);
}

TEST_F(AdmitTest, ACostOverOneWindowIsNever) {
  const LimitHandle api = add("api", {rate(10, kSecond, 10), rate(20, 60 * kSecond, 20)});

  const DecisionData d = take(api, "k", 11);

  EXPECT_EQ(d.reason, Reason::Never);
  EXPECT_EQ(of(d).retry_after_ns, rule::kNeverNs);
  EXPECT_EQ(of(take(api, "k", 10)).remaining, 0U);
}

TEST_F(AdmitTest, WindowsAreGivenBackTogether) {
  const LimitHandle api = add("api", {rate(10, kSecond, 10), rate(20, 60 * kSecond, 20)});
  const auto before = peek(api, "k", 0);
  DecisionData first = take(api, "k", 4);
  DecisionData second = take(api, "k", 2);
  EXPECT_EQ(second.receipt, Receipt::Several);

  EXPECT_EQ(give_back(view(), first), 0U);              // somebody charged after it
  EXPECT_EQ(give_back(view(), second, 1), 1U);
  EXPECT_EQ(of(peek(api, "k", 0)).remaining, 5U);
  EXPECT_EQ(give_back(view(), second), 1U);
  EXPECT_EQ(second.receipt, Receipt::None);
  EXPECT_EQ(give_back(view(), second), 0U);
  EXPECT_EQ(give_back(view(), first), 4U);

  EXPECT_EQ(of(peek(api, "k", 0)).remaining, of(before).remaining);
  EXPECT_EQ(of(peek(api, "k", 0)).reset_after_ns, 0);
}

TEST_F(AdmitTest, AWaiterStartsWhenTheLastOfItsWindowsHasIt) {
  const LimitHandle api = add("api", {rate(1, kSecond, 2), rate(6, 60 * kSecond, 2)});
  EXPECT_TRUE(allowed(take(api, "k", 2)));

  const DecisionData refused = take(api, "k", 1, 5 * kSecond);
  EXPECT_EQ(refused.reason, Reason::Limit);             // the second window has it in 10 s
  EXPECT_EQ(of(refused).retry_after_ns, 10 * kSecond);

  const DecisionData placed = take(api, "k", 1, 10 * kSecond);
  EXPECT_TRUE(allowed(placed));
  EXPECT_EQ(of(placed).starts_in_ns, 10 * kSecond);
}

TEST_F(AdmitTest, W1CalendarCountsBetweenEdges) {
  std::vector<std::int64_t> edges;
  for (int i = 1; i <= 24; ++i) edges.push_back(start + i * 60 * kSecond);
  const LimitHandle api = add("api", {{.burst = 10, .edges = edges}});

  at(59 * kSecond);
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(allowed(take(api, "k")));
  DecisionData d = take(api, "k");
  EXPECT_EQ(d.reason, Reason::Limit);
  EXPECT_EQ(of(d).retry_after_ns, kSecond);
  EXPECT_EQ(of(d).reset_after_ns, kSecond);
  at(60 * kSecond - 1);
  EXPECT_EQ(of(take(api, "k")).retry_after_ns, 1);

  at(60 * kSecond);
  d = take(api, "k", 10);
  EXPECT_TRUE(allowed(d));
  EXPECT_EQ(of(d).remaining, 0U);
  EXPECT_EQ(of(d).reset_after_ns, 60 * kSecond);
  EXPECT_EQ(take(api, "k").reason, Reason::Limit);
  EXPECT_EQ(take(api, "k", 11).reason, Reason::Never);
  EXPECT_EQ(d.flags & Decision::kExtrapolated, 0);
}

TEST_F(AdmitTest, CalendarGoesOnBeyondItsLastEdgeAndSaysSo) {
  const LimitHandle api =
      add("api", {{.burst = 2, .edges = {start + 10 * kSecond, start + 40 * kSecond}}});

  at(40 * kSecond);
  DecisionData d = take(api, "k", 2);
  EXPECT_TRUE(allowed(d));
  EXPECT_NE(d.flags & Decision::kExtrapolated, 0);
  d = take(api, "k");
  EXPECT_EQ(of(d).retry_after_ns, 30 * kSecond);
  at(100 * kSecond - 1);
  EXPECT_TRUE(allowed(take(api, "k", 2)));
  EXPECT_EQ(of(take(api, "k")).retry_after_ns, 1);
  at(100 * kSecond);
  EXPECT_TRUE(allowed(take(api, "k", 2)));
}

TEST_F(AdmitTest, NobodyWaitsForACalendarEdge) {
  const LimitHandle api = add("api", {{.burst = 1, .edges = {start + 10 * kSecond}}});
  EXPECT_TRUE(allowed(take(api, "k")));

  const DecisionData d = take(api, "k", 1, 60 * kSecond);

  EXPECT_EQ(d.reason, Reason::Limit);
  EXPECT_EQ(of(d).retry_after_ns, 10 * kSecond);
}

TEST_F(AdmitTest, SpacingRefusalsDoNotRestartIt) {
  const LimitHandle api = add("api", {rate(1, 2 * kSecond, 1)});
  EXPECT_TRUE(allowed(take(api, "k")));
  at(1999 * kMs);
  EXPECT_EQ(of(take(api, "k")).retry_after_ns, kMs);
  at(2000 * kMs);
  EXPECT_TRUE(allowed(take(api, "k")));
}

// ---- overrides ----------------------------------------------------------------------------------

TEST_F(AdmitTest, AnExactKeyBeatsAPatternAndAPatternTheLimit) {
  const LimitHandle api = add("api", {rate(1, kSecond, 1)});
  edit->add_pattern(api.ref, "partner:*", edit->add_set(api.ref, {rate(5, kSecond, 5)}));
  edit->add_pattern(api.ref, "*:test", edit->add_set(api.ref, {rate(7, kSecond, 7)}));
  edit->add_override(api.ref, key_of(api, "partner:big").hash,
                     edit->add_set(api.ref, {rate(9, kSecond, 9)}));

  EXPECT_EQ(of(peek(api, "alice", 0)).remaining, 1U);
  EXPECT_EQ(of(peek(api, "partner:", 0)).remaining, 5U);
  EXPECT_EQ(of(peek(api, "partner:x", 0)).remaining, 5U);
  EXPECT_EQ(of(peek(api, "partner:test", 0)).remaining, 5U);   // the first that matches
  EXPECT_EQ(of(peek(api, "other:test", 0)).remaining, 7U);
  EXPECT_EQ(of(peek(api, "test", 0)).remaining, 1U);
  EXPECT_EQ(of(peek(api, "partner:big", 0)).remaining, 9U);
  EXPECT_NE(peek(api, "partner:big", 0).notes & kNoteOverridden, 0);
}

TEST_F(AdmitTest, AKeyKeepsItsDebtWhenItGetsAnOverrideAndWhenItLosesIt) {
  const LimitHandle api = add("api", {rate(10, kSecond, 10)});
  EXPECT_TRUE(allowed(take(api, "k", 8)));

  const std::uint32_t slower = edit->add_set(api.ref, {rate(1, kSecond, 20)});
  edit->add_override(api.ref, key_of(api, "k").hash, slower);
  EXPECT_EQ(of(peek(api, "k", 0)).remaining, 12U);
  EXPECT_TRUE(allowed(take(api, "k", 2)));
  EXPECT_EQ(of(peek(api, "k", 0)).remaining, 10U);
  edit->drop_override(api.ref, key_of(api, "k").hash);

  EXPECT_EQ(of(peek(api, "k", 0)).remaining, 0U);       // 10 used of 10
  EXPECT_EQ(of(peek(api, "k", 1)).retry_after_ns, 100 * kMs);
}

TEST_F(AdmitTest, AnOverrideEndsAtItsSecond) {
  const LimitHandle api = add("api", {rate(1, kSecond, 1)});
  const auto until = static_cast<std::uint32_t>((start + 5 * kSecond) / kSecond);
  edit->add_override(api.ref, key_of(api, "k").hash, edit->add_set(api.ref, {rate(9, kSecond, 9)}),
                     until);

  at(until * kSecond - start - 1);
  EXPECT_EQ(of(peek(api, "k", 0)).remaining, 9U);
  at(until * kSecond - start);
  EXPECT_EQ(of(peek(api, "k", 0)).remaining, 1U);
}

TEST_F(AdmitTest, UnlimitedAndBlockedKeysHaveNoBucket) {
  const LimitHandle api = add("api", {rate(1, kSecond, 1)});
  edit->add_override(api.ref, key_of(api, "monitor").hash,
                     edit->add_set(rule::LimitKind::Unlimited));
  edit->add_override(api.ref, key_of(api, "mallory").hash, edit->add_set(rule::LimitKind::Blocked));
  const auto before = bytes();

  for (int i = 0; i < 100; ++i) EXPECT_TRUE(allowed(take(api, "monitor", 1000)));
  const DecisionData d = take(api, "mallory");

  EXPECT_EQ(of(take(api, "monitor")).remaining, kRemainingUnlimited);
  EXPECT_NE(take(api, "monitor").notes & kNoteUnlimited, 0);
  EXPECT_EQ(d.reason, Reason::Banned);
  EXPECT_EQ(of(d).retry_after_ns, rule::kNeverNs);
  EXPECT_EQ(bytes(), before);
}

TEST_F(AdmitTest, C008UnlimitedAndBlockedLimits) {
  const LimitHandle open_to_all = add("open", {rate(1, kSecond, 1)}, kLimitUnlimited);
  const LimitHandle shut = add("shut", {rate(1, kSecond, 1)}, kLimitBlocked);

  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(allowed(take(open_to_all, "k")));
    EXPECT_EQ(take(shut, "k").reason, Reason::Banned);
  }
}

// ---- bans ---------------------------------------------------------------------------------------

TEST_F(AdmitTest, ABanEndsByItselfToTheNanosecond) {
  const LimitHandle api = add("api", {rate(1, kSecond, 1)});
  const KeyHash key = key_of(api, "mallory").hash;

  BanAnswer done = ban(view(), api.ref, key, start + 10 * kSecond);
  EXPECT_EQ(done.outcome, BanOutcome::Done);
  EXPECT_TRUE(done.announce);
  EXPECT_FALSE(ban(view(), api.ref, key, start + 5 * kSecond).announce);   // shortened

  DecisionData d = take(api, "mallory");
  EXPECT_EQ(d.reason, Reason::Banned);
  EXPECT_EQ(of(d).retry_after_ns, 5 * kSecond);
  EXPECT_EQ(of(d).reset_after_ns, 5 * kSecond);
  EXPECT_TRUE(allowed(take(api, "alice")));
  at(5 * kSecond - 1);
  EXPECT_EQ(of(take(api, "mallory")).retry_after_ns, 1);
  at(5 * kSecond);
  EXPECT_TRUE(allowed(take(api, "mallory")));
  EXPECT_FALSE(clear_bans(view()));                     // until 10 s bans are looked for
  at(10 * kSecond);
  EXPECT_TRUE(clear_bans(view()));
  EXPECT_FALSE(clear_bans(view()));
}

TEST_F(AdmitTest, ABanCanBeEnded) {
  const LimitHandle api = add("api", {rate(1, kSecond, 1)});
  const KeyHash key = key_of(api, "mallory").hash;
  EXPECT_FALSE(unban(view(), api.ref, key));
  EXPECT_EQ(ban(view(), api.ref, key, start + 10 * kSecond).outcome, BanOutcome::Done);

  EXPECT_TRUE(unban(view(), api.ref, key));
  EXPECT_FALSE(unban(view(), api.ref, key));

  EXPECT_TRUE(allowed(take(api, "mallory")));
}

TEST_F(AdmitTest, ABanWithoutAPlaceIsToldAndAnExpiredOneGivesItsPlace) {
  open(16);
  const LimitHandle api = add("api", {rate(1, 3600 * kSecond, 10)});
  int banned = 0;
  BanAnswer last;
  for (int i = 0; i < 200 && last.outcome == BanOutcome::Done; ++i) {
    last = ban(view(), api.ref, key_of(api, std::to_string(i)).hash, start + 100 * kSecond);
    banned += last.outcome == BanOutcome::Done;
  }
  EXPECT_EQ(last.outcome, BanOutcome::NoPlace);
  EXPECT_GE(banned, 16);
  // Nobody takes the place of a ban in force ...
  EXPECT_NE(take(api, "alice").flags & Decision::kOverflow, 0);
  for (int i = 0; i < banned; ++i) {
    EXPECT_EQ(peek(api, std::to_string(i)).reason, Reason::Banned) << i;
  }
  // ... and one that is over stands in nobody's way.
  at(100 * kSecond);
  EXPECT_EQ(take(api, "bob").flags & Decision::kOverflow, 0);
}

// ---- shadow -------------------------------------------------------------------------------------

TEST_F(AdmitTest, AShadowLimitDecidesAndRefusesNobody) {
  const LimitHandle api = add("api", {rate(1, kSecond, 2)}, kLimitShadow);
  EXPECT_FALSE((take(api, "k").flags & Decision::kShadow) != 0);
  EXPECT_TRUE(allowed(take(api, "k")));
  const auto before = bytes();

  const DecisionData d = take(api, "k");

  EXPECT_TRUE(allowed(d));
  EXPECT_NE(d.flags & Decision::kShadow, 0);
  EXPECT_EQ(d.would, Reason::Limit);
  EXPECT_EQ(of(d).retry_after_ns, 0);
  EXPECT_EQ(of(d).remaining, 0U);
  EXPECT_EQ(d.receipt, Receipt::None);
  EXPECT_EQ(bytes(), before);
}

}  // namespace
}  // namespace cutwater::shm
