// SPDX-License-Identifier: Apache-2.0
// T17: every operation on buckets is killed at every instruction of the code that ships; then
// somebody else goes on. Nobody gets a token twice, nobody waits for the dead, and what the dead
// took or did not take is exactly the one charge under way (C054).
#include <gtest/gtest.h>

#include <cstdlib>

#include "crash/stepper.hpp"
#include "src/known_key.hpp"

namespace cutwater::test {
namespace {

constexpr std::uint64_t kBurst = 5;
constexpr std::uint64_t kKey = 7;

class SingleStep : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Stepper::unavailable(); !why.empty()) GTEST_SKIP() << why;
  }

  // The next caller gets the burst less what was taken before, or less the cost under way as well;
  // one member, no claim left, no loop that ran out.
  static void expect_left(World& world, bool finished, std::uint64_t before, std::uint64_t after,
                          std::uint64_t number = kKey) {
    const std::uint64_t contended = world.view().stats_control->contention;
    const std::uint64_t given = world.drain("api", key(number));
    if (finished) {
      EXPECT_EQ(given, after);
    } else {
      EXPECT_TRUE(given == before || given == after) << given << " given";
    }
    EXPECT_LE(world.members_of(key(number)), 1U);
    EXPECT_EQ(world.claims_of(key(number)), 0U);
    EXPECT_EQ(world.view().stats_control->contention, contended);
    EXPECT_EQ(world.verify(), "");
  }
  static void fill_with_full_entries(World& world) {
    world.crowd("fast", 1, 1000);
    world.pass(kSecond);
  }
  static World make_world() {
    auto slow = limit("api", {1, kHour}, kBurst);
    return World({slow, limit("fast", {1'000'000, kSecond}, 1), limit("slow", {1, 10 * kHour}, 1)});
  }

  World world_{{limit("api", {1, kHour}, kBurst, kHour), limit("fast", {1'000'000, kSecond}, 1),
                limit("slow", {1, 10 * kHour}, 1)}};
  const shm::LimitRef api_ = world_.ref("api");      // the same in every world and after a reload
};

TEST_F(SingleStep, ChargeOfAMember) {
  kill_everywhere(world_, {"charge of a member",
                           [this](World& w) { w.take(api_, key(kKey)); },
                           [this](World& w) { w.take(api_, key(kKey), 2); },
                           [](World& w, bool done) { expect_left(w, done, 4, 2); }});
}

TEST_F(SingleStep, ChargeByTheShortestWay) {
  // What a client keeps of a limit, for this memory; counted on the shared stripe.
  const std::atomic<std::uint64_t> life{1};
  detail::LimitState state;
  state.view = &world_.view();
  state.life = &life;
  state.client = 1;
  state.ref.store(detail::pack_ref(api_));
  detail::prepare_plain_rule(state);
  detail::keep_plain_rule(state, world_.view().current());
  std::uint64_t hint = 0;
  kill_everywhere(world_, {"charge of a resolved key by the shortest way",
                           [&](World& w) {
                             const DecisionData d = w.take(api_, key(kKey));
                             hint = static_cast<std::uint64_t>(static_cast<Word16*>(d.slot) -
                                                               w.view().slots);
                             detail::thread_counter.client = 1;
                             detail::thread_counter.life = 1;
                             detail::thread_counter.stripe = shm::shared_stripe(w.view());
                           },
                           [&](World&) {
                             DecisionData out;
                             const std::uint64_t hi = key(kKey).hi;
                             std::uint64_t number = 0;
                             if (!detail::decide_known(state, hi, hint, 2, out, number)) {
                               std::abort();
                             }
                           },
                           [](World& w, bool done) { expect_left(w, done, 4, 2); }});
  detail::thread_counter = {};
}

TEST_F(SingleStep, ChargeWithAnOlderStamp) {
  kill_everywhere(world_, {"charge of a member with an older stamp",
                           [](World& w) {
                             w.take("api", key(kKey));
                             w.pass(kSecond);
                           },
                           [this](World& w) {
                             w.take_at(w.now() - kSecond / 2, api_, key(kKey), 2);
                           },
                           [](World& w, bool done) { expect_left(w, done, 4, 2); }});
}

TEST_F(SingleStep, ChargeThatWaits) {
  kill_everywhere(world_, {"charge that takes a place in line",
                           [this](World& w) { w.take(api_, key(kKey), kBurst); },
                           [this](World& w) { w.take(api_, key(kKey), 1, kHour); },
                           [](World& w, bool done) {
                             w.pass(kHour);
                             expect_left(w, done, 1, 0);
                           }});
}

TEST_F(SingleStep, Refusal) {
  kill_everywhere(world_, {"refusal (writes nothing)",
                           [](World& w) { w.take("api", key(kKey), kBurst); },
                           [this](World& w) { w.take(api_, key(kKey)); },
                           [](World& w, bool done) { expect_left(w, done, 0, 0); }});
}

TEST_F(SingleStep, Look) {
  kill_everywhere(world_, {"look (writes nothing)",
                           [](World& w) { w.take("api", key(kKey), 4); },
                           [this](World& w) { w.peek(api_, key(kKey)); },
                           [](World& w, bool done) { expect_left(w, done, 1, 1); }});
}

TEST_F(SingleStep, InsertIntoAnEmptyGroup) {
  kill_everywhere(world_, {"insert into an empty group", [](World&) {},
                           [this](World& w) { w.take(api_, key(kKey), 2); },
                           [](World& w, bool done) { expect_left(w, done, 5, 3); }});
}

TEST_F(SingleStep, InsertReplacingAFullEntry) {
  kill_everywhere(world_, {"insert replacing a full entry", fill_with_full_entries,
                           [this](World& w) { w.take(api_, key(kKey), 2); },
                           [](World& w, bool done) { expect_left(w, done, 5, 3); }});
}

TEST_F(SingleStep, InsertReplacingAnExpiredClaim) {
  kill_everywhere(world_, {"insert replacing an expired claim",
                           [](World& w) {
                             w.crowd("slow", 1, 1000);
                             for (std::uint32_t i = 0; i < 2; ++i) {
                               w.plant_claim("api", key(99), false, 3 + i, -kMillisecond);
                             }
                           },
                           [this](World& w) { w.take(api_, key(kKey), 2); },
                           [](World& w, bool done) { expect_left(w, done, 5, 3); }});
}

TEST_F(SingleStep, InsertAdoptingTheClaimOfTheDead) {
  for (const std::int64_t deadline : {2 * kMillisecond, -kMillisecond}) {
    World world = make_world();
    const char* name =
        deadline > 0 ? "insert adopting a claim" : "insert adopting an expired claim";
    kill_everywhere(world, {name,
                            [&](World& w) { w.plant_claim("api", key(kKey), false, 5, deadline); },
                            [this](World& w) { w.take(api_, key(kKey), 2); },
                            [](World& w, bool done) { expect_left(w, done, 5, 3); }});
  }
}

TEST_F(SingleStep, InsertKillingAHigherClaimAndGivingWayToALower) {
  // Two dead inserters left a claim each: the one in the key's first group is adopted, and the
  // other lies above it or below it, by the key.
  for (const bool above : {true, false}) {
    World world = make_world();
    std::uint64_t number = 1;
    for (;; ++number) {
      const shm::Place place = place_of(world.view(), key(number), 0);
      if ((place.other > place.first) == above) break;
    }
    const char* name = above ? "insert killing a higher claim" : "insert giving way to a lower one";
    kill_everywhere(world, {name,
                            [&](World& w) {
                              w.plant_claim("api", key(number), false, 9, 2 * kMillisecond);
                              w.plant_claim("api", key(number), true, 2, 2 * kMillisecond);
                            },
                            [&](World& w) { w.take(api_, key(number), 2); },
                            [&](World& w, bool done) { expect_left(w, done, 5, 3, number); }});
    if (HasFailure()) break;
  }
}

TEST_F(SingleStep, ConversionUnderANewRuleId) {
  // To a finer scale the old number would look like nothing owed, to a coarser one like damage.
  const Rate slow{1, kHour}, fast{1'000'000, kSecond};
  for (const bool finer : {true, false}) {
    World world({limit("api", finer ? fast : slow, kBurst)});
    kill_everywhere(world, {finer ? "charge that converts to a finer scale"
                                  : "charge that converts to a coarser scale",
                            [&](World& w) {
                              w.take("api", key(kKey), 3);
                              w.publish({limit("api", finer ? slow : fast, 4)});
                            },
                            [this](World& w) { w.take(api_, key(kKey)); },
                            [](World& w, bool done) { expect_left(w, done, 1, 0); }});
  }
}

TEST_F(SingleStep, Undo) {
  DecisionData receipt;
  kill_everywhere(world_, {"undo",
                           [&](World& w) {
                             w.take("api", key(kKey));
                             receipt = w.take("api", key(kKey), 3);
                           },
                           [&](World& w) { undo(w.view(), receipt); },
                           [](World& w, bool done) { expect_left(w, done, 1, 4); }});
}

TEST_F(SingleStep, Reset) {
  kill_everywhere(world_, {"reset", [this](World& w) { w.take(api_, key(kKey), 4); },
                           [this](World& w) { reset(w.view(), api_, key(kKey)); },
                           [](World& w, bool done) { expect_left(w, done, 1, 5); }});
}

TEST_F(SingleStep, OverflowCharge) {
  kill_everywhere(world_, {"charge of the overflow word",
                           [](World& w) { w.crowd("slow", 1, 1000); },
                           [this](World& w) { w.take(api_, key(kKey), 2); },
                           [](World& w, bool done) { expect_left(w, done, 5, 3); }});
}

TEST_F(SingleStep, OverflowUndo) {
  DecisionData receipt;
  kill_everywhere(world_, {"undo of a charge of the overflow word",
                           [&](World& w) {
                             w.crowd("slow", 1, 1000);
                             receipt = w.take("api", key(kKey), 3);
                           },
                           [&](World& w) { undo(w.view(), receipt); },
                           [](World& w, bool done) { expect_left(w, done, 2, 5); }});
}

TEST_F(SingleStep, OverflowDebtMovesIntoAPlace) {
  kill_everywhere(world_, {"insert of a key with a debt in the overflow word",
                           [](World& w) {
                             w.crowd("fast", 1, 1000);
                             w.take("api", key(kKey), 3);
                             w.pass(kMillisecond);
                           },
                           [this](World& w) { w.take(api_, key(kKey)); },
                           [](World& w, bool done) { expect_left(w, done, 2, 1); }});
}

TEST_F(SingleStep, RepairOfADamagedEntry) {
  kill_everywhere(world_, {"repair of an entry beyond its reach",
                           [](World& w) {
                             const DecisionData d = w.take("api", key(kKey));
                             static_cast<Word16*>(d.slot)->hi = std::uint64_t{1} << 62;
                           },
                           [this](World& w) { w.take(api_, key(kKey)); },
                           [](World& w, bool done) {
                             expect_left(w, done, 0, 0);
                             w.pass(5 * kHour + 1);    // the longest wait: the time to empty
                             EXPECT_EQ(w.drain("api", key(kKey)), kBurst);
                           }});
}

}  // namespace
}  // namespace cutwater::test
