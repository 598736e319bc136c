// SPDX-License-Identifier: Apache-2.0
// T11, T17: what charges or changes several words, killed at every instruction. A kill costs at
// most the cost under way in each word that was already charged, and never gives a token twice.
// Rules are written by hand into the image (support/image_edit.hpp).
#include <gtest/gtest.h>

#include <vector>

#include "crash/stepper.hpp"
#include "rule/decision_report.hpp"
#include "shm/limit/admit.hpp"
#include "support/image_edit.hpp"

namespace cutwater::test {
namespace {

constexpr std::uint64_t kKey = 7;
constexpr std::uint64_t kCost = 2;

class SingleStepAdmit : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Stepper::unavailable(); !why.empty()) GTEST_SKIP() << why;
  }

  static ImageEdit::Window hourly(std::uint64_t burst) {
    return {.count = 1, .period_ns = kHour, .burst = burst};
  }
  static shm::AdmitAsk ask(shm::LimitRef limit, std::uint64_t number, std::uint64_t cost) {
    return {limit, {key(number), {}}, cost, 0};
  }
  static DecisionData admit(World& w, shm::LimitRef limit, std::uint64_t number,
                            std::uint64_t cost) {
    DecisionData out;
    (void)shm::admit(w.view(), ask(limit, number, cost), out);
    return out;
  }
  /// Tokens there in one window of a key.
  static std::uint64_t left(World& w, shm::LimitRef limit, std::uint8_t window,
                            std::uint64_t number = kKey) {
    shm::BucketAsk one{.limit = limit, .key = key(number)};
    one.cost = 0;
    one.window = window;
    std::uint64_t hint = shm::kNoSlot;
    DecisionData out;
    EXPECT_EQ(shm::look(w.view(), one, hint, out), shm::Outcome::Answered);
    return rule::report_of(out).remaining;
  }
  /// Windows are charged in order: those in front of the kill by the whole cost, the rest not.
  static void expect_charged_in_order(const std::vector<std::uint64_t>& before,
                                      const std::vector<std::uint64_t>& now, bool finished,
                                      std::uint64_t cost) {
    bool charged = true;
    for (std::size_t i = 0; i < before.size(); ++i) {
      const bool this_one = now[i] == before[i] - cost;
      EXPECT_TRUE(this_one || now[i] == before[i]) << i << ": " << now[i];
      EXPECT_TRUE(charged || !this_one) << i << " charged before the one in front of it";
      charged = this_one;
      EXPECT_TRUE(this_one || !finished) << i;
    }
  }
  /// Somebody else goes on with the key, and gets what is left and no more.
  static void expect_usable(World& w, shm::LimitRef limit, std::uint64_t most,
                            std::uint64_t number = kKey) {
    const std::uint64_t contended = w.view().stats_control->contention;
    std::uint64_t given = 0;
    while (given <= most && admit(w, limit, number, 1).reason == Reason::Allowed) ++given;
    EXPECT_EQ(given, most);
    EXPECT_EQ(w.view().stats_control->contention, contended);
    EXPECT_EQ(w.claims_of(key(number)), 0U);
  }

  World world_{{limit("plain", {1, kHour}, 10, kHour)}, {.overrides = 16}};
  ImageEdit edit_{world_.view()};
  const shm::LimitRef plain_ = world_.ref("plain");
  const shm::LimitRef three_ =
      edit_.add_limit("three", {hourly(5), hourly(7), hourly(9)});
};

TEST_F(SingleStepAdmit, AdmitOverThreeWindows) {
  kill_everywhere(world_, {"admit over three windows",
                           [this](World& w) { admit(w, three_, kKey, 1); },
                           [this](World& w) { admit(w, three_, kKey, kCost); },
                           [this](World& w, bool done) {
                             const std::vector<std::uint64_t> now = {
                                 left(w, three_, 0), left(w, three_, 1), left(w, three_, 2)};
                             expect_charged_in_order({4, 6, 8}, now, done, kCost);
                             expect_usable(w, three_, now[0]);
                           }});
}

TEST_F(SingleStepAdmit, FirstSightOverThreeWindows) {
  kill_everywhere(world_, {"first sight of a key over three windows", [](World&) {},
                           [this](World& w) { admit(w, three_, kKey, kCost); },
                           [this](World& w, bool done) {
                             const std::vector<std::uint64_t> now = {
                                 left(w, three_, 0), left(w, three_, 1), left(w, three_, 2)};
                             expect_charged_in_order({5, 7, 9}, now, done, kCost);
                             expect_usable(w, three_, now[0]);
                           }});
}

TEST_F(SingleStepAdmit, RefusalOverThreeWindows) {
  kill_everywhere(world_, {"refusal by the third of three windows (writes nothing)",
                           [this](World& w) {
                             admit(w, three_, kKey, 5);
                             w.pass(5 * kHour);
                             admit(w, three_, kKey, 5);
                             w.pass(3 * kHour);
                           },
                           [this](World& w) { admit(w, three_, kKey, 5); },
                           [this](World& w, bool) {
                             EXPECT_EQ(left(w, three_, 0), 3U);
                             EXPECT_EQ(left(w, three_, 1), 5U);
                             EXPECT_EQ(left(w, three_, 2), 7U);
                           }});
}

TEST_F(SingleStepAdmit, AcquireAllOfTwoLimits) {
  kill_everywhere(world_, {"admit_all of two limits, one with three windows",
                           [this](World& w) {
                             admit(w, plain_, kKey, 1);
                             admit(w, three_, kKey, 1);
                           },
                           [this](World& w) {
                             const shm::AdmitAsk asks[] = {ask(three_, kKey, kCost),
                                                           ask(plain_, kKey, kCost)};
                             shm::AdmitAnswer answer;
                             (void)shm::admit_all(w.view(), asks, answer);
                           },
                           [this](World& w, bool done) {
                             const std::vector<std::uint64_t> now = {
                                 left(w, plain_, 0), left(w, three_, 0), left(w, three_, 1),
                                 left(w, three_, 2)};
                             expect_charged_in_order({9, 4, 6, 8}, now, done, kCost);
                             expect_usable(w, plain_, now[0]);
                             expect_usable(w, three_, now[1]);
                           }});
}

TEST_F(SingleStepAdmit, GiveBackOfThreeWindows) {
  DecisionData receipt;
  kill_everywhere(world_, {"undo of a charge of three windows",
                           [&](World& w) { receipt = admit(w, three_, kKey, kCost); },
                           [&](World& w) {
                             DecisionData mine = receipt;
                             (void)shm::give_back(w.view(), mine);
                           },
                           [this](World& w, bool done) {
                             for (std::uint8_t window = 0; window < 3; ++window) {
                               const std::uint64_t full = 5U + 2U * window;
                               const std::uint64_t now = left(w, three_, window);
                               EXPECT_TRUE(now == full || (!done && now == full - kCost));
                             }
                             expect_usable(w, three_, left(w, three_, 0));
                           }});
}

TEST_F(SingleStepAdmit, ChargeAfterTheFact) {
  kill_everywhere(world_, {"charge after the fact, into debt",
                           [this](World& w) { admit(w, three_, kKey, 5); },
                           [this](World& w) {
                             std::uint64_t charged = 0;
                             DecisionData out;
                             (void)shm::charge_after(w.view(), ask(three_, kKey, 3), charged, out);
                           },
                           [this](World& w, bool done) {
                             w.pass(3 * kHour);
                             const std::vector<std::uint64_t> now = {
                                 left(w, three_, 0), left(w, three_, 1), left(w, three_, 2)};
                             expect_charged_in_order({3, 5, 7}, now, done, 3);
                             expect_usable(w, three_, now[0]);
                           }});
}

TEST_F(SingleStepAdmit, CreditAndDrain) {
  kill_everywhere(world_, {"credit of two tokens in three windows",
                           [this](World& w) { admit(w, three_, kKey, 5); },
                           [this](World& w) {
                             DecisionData out;
                             (void)shm::credit(w.view(), ask(three_, kKey, 0), 2, out);
                           },
                           [this](World& w, bool done) {
                             for (std::uint8_t window = 0; window < 3; ++window) {
                               const std::uint64_t was = 2U * window;
                               const std::uint64_t now = left(w, three_, window);
                               EXPECT_TRUE(now == was + 2 || (!done && now == was)) << now;
                             }
                             expect_usable(w, three_, left(w, three_, 0));
                           }});
  kill_everywhere(world_, {"drain of three windows",
                           [this](World& w) { admit(w, three_, kKey + 1, 1); },
                           [this](World& w) {
                             std::uint64_t drained = 0;
                             DecisionData out;
                             (void)shm::drain(w.view(), ask(three_, kKey + 1, 0), drained, out);
                           },
                           [this](World& w, bool done) {
                             for (std::uint8_t window = 0; window < 3; ++window) {
                               const std::uint64_t was = 4U + 2U * window;
                               const std::uint64_t now = left(w, three_, window, kKey + 1);
                               EXPECT_TRUE(now == 0 || (!done && now == was)) << now;
                             }
                           }});
}

TEST_F(SingleStepAdmit, Refill) {
  kill_everywhere(world_, {"refill of three windows",
                           [this](World& w) { admit(w, three_, kKey, 5); },
                           [this](World& w) {
                             bool had_debt = false;
                             (void)shm::refill(w.view(), ask(three_, kKey, 0), had_debt);
                           },
                           [this](World& w, bool done) {
                             for (std::uint8_t window = 0; window < 3; ++window) {
                               const std::uint64_t full = 5U + 2U * window;
                               const std::uint64_t now = left(w, three_, window);
                               EXPECT_TRUE(now == full || (!done && now == full - 5)) << now;
                             }
                           }});
}

TEST_F(SingleStepAdmit, BanAndUnban) {
  const auto banned = [this](World& w) {
    return shm::banned_until(w.view(), plain_, key(kKey), w.now()) != 0;
  };
  const auto ban = [this](World& w) {
    (void)shm::ban(w.view(), plain_, key(kKey), w.now() + kSecond);
  };
  kill_everywhere(world_, {"ban of a key", [](World&) {}, ban,
                           [&](World& w, bool done) {
                             const Reason reason = admit(w, plain_, kKey, 1).reason;
                             EXPECT_EQ(reason == Reason::Banned, banned(w));
                             EXPECT_TRUE(banned(w) || !done);
                             ban(w);                       // the owner comes back and repeats it
                             EXPECT_TRUE(banned(w));
                             w.pass(kSecond);
                             expect_usable(w, plain_, reason == Reason::Allowed ? 9 : 10);
                           }});
  kill_everywhere(world_, {"a ban made longer", ban,
                           [this](World& w) {
                             (void)shm::ban(w.view(), plain_, key(kKey), w.now() + 2 * kSecond);
                           },
                           [&](World& w, bool done) {
                             EXPECT_TRUE(banned(w));
                             w.pass(kSecond);
                             EXPECT_TRUE(banned(w) || !done);
                             w.pass(kSecond);
                             EXPECT_FALSE(banned(w));
                           }});
  kill_everywhere(world_, {"end of a ban", [](World&) {},
                           [this](World& w) { (void)shm::unban(w.view(), plain_, key(kKey)); },
                           [&](World& w, bool done) {
                             EXPECT_FALSE(banned(w) && done);
                             expect_usable(w, plain_, banned(w) ? 0 : 10);
                           }});
  kill_everywhere(world_, {"no limit looks for bans any more",
                           [](World& w) { w.pass(10 * kSecond); },
                           [](World& w) { (void)shm::clear_bans(w.view()); },
                           [&](World& w, bool) {
                             EXPECT_FALSE(banned(w));
                             expect_usable(w, plain_, 10);
                           }});
}

TEST_F(SingleStepAdmit, ConversionUnderAnOverride) {
  kill_everywhere(world_, {"charge that converts to an override's rule",
                           [this](World& w) {
                             admit(w, plain_, kKey, 4);
                             edit_.add_override(plain_, key(kKey),
                                                edit_.add_set(plain_, {hourly(20)}));
                           },
                           [this](World& w) { admit(w, plain_, kKey, kCost); },
                           [this](World& w, bool done) {
                             DecisionData out;
                             EXPECT_EQ(shm::look(w.view(), ask(plain_, kKey, 0), out),
                                       shm::Outcome::Answered);
                             const std::uint64_t now = rule::report_of(out).remaining;
                             EXPECT_TRUE(now == 14 || (!done && now == 16)) << now;
                             EXPECT_LE(w.members_of(key(kKey)), 1U);
                             expect_usable(w, plain_, now);
                           }});
}

}  // namespace
}  // namespace cutwater::test
