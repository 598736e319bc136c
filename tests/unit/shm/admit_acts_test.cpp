// SPDX-License-Identifier: Apache-2.0
// After the fact, operators' acts, and several limits at once.
#include "unit/shm/admit_fixture.hpp"

namespace cutwater::shm {
namespace {

TEST_F(AdmitTest, V47ToV55CreditAndChargeAfterTheFact) {
  const LimitHandle api = add("api", {{.count = 1, .period_ns = kSecond, .burst = 10}});
  DecisionData d = take(api, "k", 10);
  EXPECT_EQ(of(d).reset_after_ns, 10 * kSecond);

  EXPECT_EQ(credit(view(), ask(api, "k"), 4, d), Outcome::Answered);          // V48
  EXPECT_EQ(of(d).remaining, 4U);
  EXPECT_EQ(of(d).reset_after_ns, 6 * kSecond);
  EXPECT_EQ(credit(view(), ask(api, "k"), 100, d), Outcome::Answered);        // V49
  EXPECT_EQ(of(d).remaining, 10U);
  EXPECT_EQ(of(d).reset_after_ns, 0);
  EXPECT_TRUE(allowed(take(api, "k", 10)));                                   // V50

  std::uint64_t charged = 0;                                                  // V51
  EXPECT_EQ(charge_after(view(), ask(api, "k", 5), charged, d), Outcome::Answered);
  EXPECT_TRUE(allowed(d));
  EXPECT_EQ(charged, 5U);
  EXPECT_EQ(of(d).remaining, 0U);
  EXPECT_EQ(of(d).retry_after_ns, 0);
  EXPECT_EQ(of(d).starts_in_ns, 0);
  EXPECT_EQ(of(d).reset_after_ns, 15 * kSecond);
  d = take(api, "k");                                                         // V52
  EXPECT_EQ(of(d).retry_after_ns, 6 * kSecond);
  EXPECT_EQ(of(d).reset_after_ns, 15 * kSecond);
  at(5 * kSecond);
  d = take(api, "k");                                                         // V53
  EXPECT_EQ(of(d).retry_after_ns, kSecond);
  EXPECT_EQ(of(d).remaining, 0U);
  at(6 * kSecond);
  d = take(api, "k");                                                         // V54
  EXPECT_TRUE(allowed(d));
  EXPECT_EQ(of(d).reset_after_ns, 10 * kSecond);

  const auto before = bytes();
  EXPECT_EQ(credit(view(), ask(api, "fresh"), 5, d), Outcome::Answered);      // V55
  EXPECT_EQ(of(d).remaining, 10U);
  EXPECT_EQ(bytes(), before);
}

TEST_F(AdmitTest, ADebtIsBoundedAndTheAnswerSaysHowMuchWasCharged) {
  const LimitHandle api =
      add("api", {{.count = 1, .period_ns = kSecond, .burst = 10, .max_debt = 3}});
  std::uint64_t charged = 0;
  DecisionData d;

  EXPECT_EQ(charge_after(view(), ask(api, "k", 20), charged, d), Outcome::Answered);
  EXPECT_EQ(charged, 13U);
  EXPECT_EQ(charge_after(view(), ask(api, "k", 1), charged, d), Outcome::Answered);
  EXPECT_TRUE(allowed(d));
  EXPECT_EQ(charged, 0U);
  EXPECT_EQ(of(d).reset_after_ns, 13 * kSecond);
  at(1500 * kMs);
  EXPECT_EQ(charge_after(view(), ask(api, "k", 5), charged, d), Outcome::Answered);
  EXPECT_EQ(charged, 1U);                               // whole tokens only
}

TEST_F(AdmitTest, ChargeGoesIntoEachWindowAsFarAsItCan) {
  const LimitHandle api =
      add("api", {{.count = 1, .period_ns = kSecond, .burst = 2, .max_debt = 1},
                  {.count = 1, .period_ns = kSecond, .burst = 100, .max_debt = 1}});
  std::uint64_t charged = 0;
  DecisionData d;

  EXPECT_EQ(charge_after(view(), ask(api, "k", 50), charged, d), Outcome::Answered);

  EXPECT_EQ(charged, 3U);
  EXPECT_EQ(of(d).reset_after_ns, 50 * kSecond);
}

TEST_F(AdmitTest, ChargeOfABannedKeyIsCharged) {
  const LimitHandle api = add("api", {rate(1, kSecond, 10)});
  EXPECT_EQ(ban(view(), api.ref, key_of(api, "k").hash, start + kSecond).outcome, BanOutcome::Done);
  std::uint64_t charged = 0;
  DecisionData d;

  EXPECT_EQ(charge_after(view(), ask(api, "k", 4), charged, d), Outcome::Answered);

  EXPECT_EQ(charged, 4U);
  at(kSecond);
  EXPECT_EQ(of(peek(api, "k", 0)).remaining, 7U);
}

TEST_F(AdmitTest, DrainSpendsWhatIsThereAndADebtStaysADebt) {
  const LimitHandle api = add("api", {rate(1, kSecond, 10), rate(1, kSecond, 20)});
  std::uint64_t drained = 0;
  DecisionData d;
  EXPECT_TRUE(allowed(take(api, "k", 4)));
  at(500 * kMs);

  EXPECT_EQ(drain(view(), ask(api, "k"), drained, d), Outcome::Answered);
  EXPECT_EQ(drained, 6U);                               // and the half token that had come
  EXPECT_EQ(of(d).remaining, 0U);
  EXPECT_EQ(of(peek(api, "k")).retry_after_ns, kSecond);
  std::uint64_t charged = 0;
  EXPECT_EQ(charge_after(view(), ask(api, "k", 3), charged, d), Outcome::Answered);
  EXPECT_EQ(drain(view(), ask(api, "k"), drained, d), Outcome::Answered);
  EXPECT_EQ(drained, 0U);
  EXPECT_EQ(of(peek(api, "k")).retry_after_ns, 4 * kSecond);
  EXPECT_EQ(drain(view(), ask(api, "fresh"), drained, d), Outcome::Answered);
  EXPECT_EQ(drained, 10U);
  EXPECT_EQ(take(api, "fresh").reason, Reason::Limit);
}

TEST_F(AdmitTest, RefillFillsEveryWindow) {
  const LimitHandle api = add("api", {rate(1, kSecond, 10), rate(1, kSecond, 20)});
  EXPECT_TRUE(allowed(take(api, "k", 10)));
  bool had_debt = false;

  EXPECT_EQ(refill(view(), ask(api, "k"), had_debt), Outcome::Answered);
  EXPECT_TRUE(had_debt);
  EXPECT_EQ(of(peek(api, "k", 0)).reset_after_ns, 0);
  EXPECT_EQ(refill(view(), ask(api, "k"), had_debt), Outcome::Answered);
  EXPECT_FALSE(had_debt);
}

// ---- several limits -----------------------------------------------------------------------------

TEST_F(AdmitTest, AllOrNoneWhateverTheOrderOfTheList) {
  const LimitHandle user = add("user", {rate(1, 60 * kSecond, 1)});
  const LimitHandle all = add("all", {rate(10, 60 * kSecond, 10)});
  for (const bool user_first : {true, false}) {
    const std::string key = user_first ? "a" : "b";
    AdmitAnswer answer;
    const AdmitAsk one = ask(user, key), two = ask(all, key);
    const AdmitAsk asks[] = {user_first ? one : two, user_first ? two : one};
    EXPECT_EQ(admit_all(view(), asks, answer), Outcome::Answered);
    EXPECT_TRUE(allowed(answer.verdict));
    EXPECT_EQ(of(answer.verdict).remaining, 0U);
    EXPECT_EQ(answer.decisive, user_first ? 0 : 1);     // the tightest
    const auto before = bytes();

    EXPECT_EQ(admit_all(view(), asks, answer), Outcome::Answered);

    EXPECT_EQ(answer.verdict.reason, Reason::Limit);
    EXPECT_EQ(answer.decisive, user_first ? 0 : 1);
    EXPECT_EQ(of(answer.verdict).retry_after_ns, 60 * kSecond);
    EXPECT_EQ(bytes(), before);
    EXPECT_EQ(of(peek(all, key, 0)).remaining, 9U);
    EXPECT_TRUE(allowed(answer.item[user_first ? 1 : 0]));
    EXPECT_EQ(answer.item[user_first ? 1 : 0].receipt, Receipt::None);
  }
}

TEST_F(AdmitTest, TheLimitWithTheLongestWaitIsNamed) {
  const LimitHandle quick = add("quick", {rate(1, kSecond, 1)});
  const LimitHandle slow = add("slow", {rate(1, 60 * kSecond, 1)});
  EXPECT_TRUE(allowed(take(quick, "k")));
  EXPECT_TRUE(allowed(take(slow, "k")));
  AdmitAnswer answer;
  const AdmitAsk asks[] = {ask(quick, "k"), ask(slow, "k")};

  EXPECT_EQ(admit_all(view(), asks, answer), Outcome::Answered);

  EXPECT_EQ(answer.decisive, 1);
  EXPECT_EQ(of(answer.verdict).retry_after_ns, 60 * kSecond);
  EXPECT_EQ(of(answer.item[0]).retry_after_ns, kSecond);
}

TEST_F(AdmitTest, ALimitNamedTwiceWithTheSameKeyCountsTheSum) {
  const LimitHandle api = add("api", {rate(1, kSecond, 5)});
  AdmitAnswer answer;
  const AdmitAsk too_much[] = {ask(api, "k", 3), ask(api, "k", 3)};
  EXPECT_EQ(admit_all(view(), too_much, answer), Outcome::Answered);
  EXPECT_EQ(answer.verdict.reason, Reason::Never);

  const AdmitAsk fits[] = {ask(api, "k", 3), ask(api, "k", 2)};
  EXPECT_EQ(admit_all(view(), fits, answer), Outcome::Answered);

  EXPECT_TRUE(allowed(answer.verdict));
  EXPECT_EQ(of(answer.item[0]).remaining, 0U);
  EXPECT_EQ(of(answer.item[1]).remaining, 0U);
  EXPECT_EQ(answer.item[0].receipt, Receipt::One);
  EXPECT_EQ(answer.item[1].receipt, Receipt::None);
  EXPECT_EQ(give_back(view(), answer.item[0]), 5U);
  EXPECT_EQ(of(peek(api, "k", 0)).remaining, 5U);
}

TEST_F(AdmitTest, AShadowLimitNeverBlocksTheOthersAndIsNotChargedWhenTheyRefuse) {
  const LimitHandle real = add("real", {rate(1, kSecond, 2)});
  const LimitHandle shadow = add("shadow", {rate(1, kSecond, 1)}, kLimitShadow);
  const AdmitAsk asks[] = {ask(shadow, "k"), ask(real, "k")};
  AdmitAnswer answer;

  EXPECT_EQ(admit_all(view(), asks, answer), Outcome::Answered);
  EXPECT_TRUE(allowed(answer.verdict));
  EXPECT_EQ(answer.verdict.flags & Decision::kShadow, 0);
  EXPECT_EQ(admit_all(view(), asks, answer), Outcome::Answered);
  EXPECT_TRUE(allowed(answer.verdict));
  EXPECT_NE(answer.verdict.flags & Decision::kShadow, 0);
  EXPECT_EQ(answer.verdict.would, Reason::Limit);
  EXPECT_NE(answer.item[0].flags & Decision::kShadow, 0);
  EXPECT_EQ(answer.item[1].flags & Decision::kShadow, 0);
  at(kSecond - 1);
  const auto before = bytes();
  EXPECT_EQ(admit_all(view(), asks, answer), Outcome::Answered);
  EXPECT_EQ(answer.verdict.reason, Reason::Limit);
  EXPECT_EQ(answer.decisive, 1);
  EXPECT_EQ(bytes(), before);
}

TEST_F(AdmitTest, AGoneLimitIsNamedAndNothingIsCharged) {
  const LimitHandle api = add("api", {rate(1, kSecond, 1)});
  LimitHandle gone = api;
  gone.ref.incarnation += 1;
  const AdmitAsk asks[] = {ask(api, "k"), ask(gone, "j")};
  AdmitAnswer answer;
  const auto before = bytes();

  EXPECT_EQ(admit_all(view(), asks, answer), Outcome::LimitGone);

  EXPECT_EQ(answer.gone, 1);
  EXPECT_EQ(bytes(), before);
}

TEST_F(AdmitTest, EightLimitsAreTheMostOfOneAsk) {
  std::vector<LimitHandle> limits;
  std::vector<AdmitAsk> asks;
  for (int i = 0; i < 9; ++i) {
    limits.push_back(add("limit-" + std::to_string(i), {rate(1, kSecond, 1)}));
    asks.push_back(ask(limits.back(), "k"));
  }
  AdmitAnswer answer;
  EXPECT_EQ(admit_all(view(), asks, answer), Outcome::Answered);
  EXPECT_EQ(answer.verdict.reason, Reason::InvalidArgument);
  EXPECT_EQ(admit_all(view(), {}, answer), Outcome::Answered);
  EXPECT_EQ(answer.verdict.reason, Reason::InvalidArgument);

  asks.pop_back();
  EXPECT_EQ(admit_all(view(), asks, answer), Outcome::Answered);
  EXPECT_TRUE(allowed(answer.verdict));
}

}  // namespace
}  // namespace cutwater::shm
