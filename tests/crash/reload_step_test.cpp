// SPDX-License-Identifier: Apache-2.0
// T7: reloads between any two instructions of a decision. A child decides; at every instruction of
// the code that ships it stands still while the rules are published twice, so that the image it is
// reading is written over, and an hour passes. Then it goes on: what it answers must be what one
// whole set of rules says at its stamp, and no token is given twice.
#include <gtest/gtest.h>

#include <sys/mman.h>

#include <algorithm>
#include <functional>
#include <new>

#include "base/fork_page.hpp"
#include "crash/stepper.hpp"
#include "rule/decision_report.hpp"
#include "shm/limit/admit.hpp"

namespace cutwater::test {
namespace {

// What the child answered, in memory of both.
struct Answer {
  DecisionData data;
  shm::Outcome outcome = shm::Outcome::Superseded;
};

class ReloadStep : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = Stepper::unavailable(); !why.empty()) GTEST_SKIP() << why;
    void* place = mmap(nullptr, sizeof(Answer), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                       -1, 0);
    ASSERT_NE(place, MAP_FAILED);
    answer_ = new (place) Answer;
  }
  void TearDown() override {
    if (answer_ != nullptr) munmap(answer_, sizeof(Answer));
  }

  struct Case {
    const char* name;
    std::vector<rule::LimitSettings> first, second, third;
    std::uint64_t used;                  ///< tokens used before; 0: the key is not there yet
    std::uint64_t gap;                   ///< 1 = at every instruction
  };

  // The rules at the child's stamp, from those published: the last that took effect by then.
  struct Moment {
    std::int64_t from;
    std::uint64_t burst;
  };

  void check(const Case& c) {
    World world(c.first);
    const shm::LimitRef api = world.ref("api");
    world.pass(kSecond);
    world.take("api", key(7), c.used);
    const std::int64_t asked = world.now();
    const auto decide = [&] {
      std::uint64_t hint = shm::kNoSlot;
      answer_->outcome =
          charge_at(world.view(), {api, key(7), 1, 0}, world.now(), hint, answer_->data);
    };
    at_each_instruction(world, c.name, c.gap, decide, [&](Stepper& stepper) {
      std::vector<Moment> moments{{0, c.first[0].windows[0].burst}};
      for (const auto* next : {&c.second, &c.third}) {
        if (next->empty()) continue;
        const auto report = world.publish(*next);
        world.pass(1);
        while (!world.publisher().sweep(64)) {}
        moments.push_back({report.effective_ns, (*next)[0].windows[0].burst});
      }
      stepper.finish();
      judge(world, c.used, asked, moments);
    });
  }

  // From the present state: `decide` in a child that is stopped at every gap-th instruction; there
  // `meanwhile` goes on. It lets the child finish.
  void at_each_instruction(World& world, const char* name, std::uint64_t gap,
                           const std::function<void()>& decide,
                           const std::function<void(Stepper&)>& meanwhile) {
    const Snapshot start = world.save();
    process_life();                      // made once per process: not in a child
    std::uint64_t length = 0;
    for (Stepper whole(decide); whole.step();) ++length;
    std::uint64_t reloads = 0;
    for (std::uint64_t at = 0; at <= length && !HasFailure(); at += gap, ++reloads) {
      SCOPED_TRACE(std::string(name) + ", reloads after instruction " + std::to_string(at));
      world.restore(start);
      world.adopt();
      while (!world.publisher().sweep(64)) {}
      *answer_ = {};
      Stepper stepper(decide);
      stepper.step_over(at);
      meanwhile(stepper);
    }
    std::printf("%-42s reloads at %lu of %lu instructions\n", name,
                static_cast<unsigned long>(reloads), static_cast<unsigned long>(length));
  }

  void judge(World& world, std::uint64_t used, std::int64_t asked,
             const std::vector<Moment>& moments) {
    const DecisionData& d = answer_->data;
    ASSERT_EQ(answer_->outcome, shm::Outcome::Answered);
    EXPECT_GE(d.t, asked);
    std::uint64_t burst = 0;
    for (const Moment& moment : moments) {
      if (moment.from <= d.t) burst = moment.burst;
    }
    // All numbers of the answer belong to one rule, that of its stamp.
    if (!d.computed) {
      EXPECT_EQ(static_cast<std::uint64_t>(d.burst) >> d.f, burst);
    }
    ASSERT_TRUE(d.reason == Reason::Allowed || d.reason == Reason::Limit);
    const std::uint64_t left = Decision{d}.remaining();
    if (d.reason == Reason::Allowed) {
      EXPECT_LE(d.level - d.n, static_cast<std::int64_t>(burst << d.f));
      EXPECT_EQ(left, burst - used - 1);
    }
    EXPECT_EQ(world.drain("api", key(7), 100),
              moments.back().burst - used - (d.reason == Reason::Allowed ? 1 : 0));
    EXPECT_LE(world.members_of(key(7)), 1U);
    EXPECT_EQ(world.verify(), "");
  }

  Answer* answer_ = nullptr;
};

TEST_F(ReloadStep, OtherBursts) {
  check({"the burst changes", {limit("api", {1, kHour}, 10)}, {limit("api", {1, kHour}, 3)},
         {limit("api", {1, kHour}, 20)}, 2, 1});
  check({"the burst changes once", {limit("api", {1, kHour}, 10)}, {limit("api", {1, kHour}, 5)},
         {}, 2, 1});
}

TEST_F(ReloadStep, OtherScales) {
  check({"the scale changes", {limit("api", {1, kHour}, 10)},
         {limit("api", {10'000, kSecond}, 4)}, {limit("api", {1, kHour}, 10)}, 2, 1});
  check({"the scale changes once", {limit("api", {1, kHour}, 10)},
         {limit("api", {10'000, kSecond}, 4)}, {}, 2, 1});
}

TEST_F(ReloadStep, WhileAKeyIsSeenFirst) {
  check({"the burst changes under an insert", {limit("api", {1, kHour}, 10)},
         {limit("api", {1, kHour}, 3)}, {limit("api", {1, kHour}, 20)}, 0, 41});
  check({"the scale changes under an insert", {limit("api", {1, kHour}, 10)},
         {limit("api", {10'000, kSecond}, 4)}, {limit("api", {1, kHour}, 10)}, 0, 43});
}

/// The same for what has several windows or an override: the child asks by shm/limit/admit.hpp. The
/// last rules have a burst of their own, so what is left in the end tells whether a token came
/// twice.
class ReloadStepAdmit : public ReloadStep {
 protected:
  struct Setting {
    const char* name;
    std::vector<rule::LimitSettings> first, second, third;
    std::uint64_t used, gap;
    std::uint64_t left;                  ///< in the end, when the child was refused
    std::uint64_t slack = 0;             ///< a factor in between rounds against the caller
  };

  static std::vector<rule::LimitSettings> api(std::vector<std::uint64_t> bursts,
                                              rule::OnChange word = rule::OnChange::KeepUsed,
                                              std::uint64_t overridden = 0) {
    auto settings = limit("api", {1, kHour}, bursts.front());
    settings.windows.clear();
    for (const std::uint64_t burst : bursts) {
      settings.windows.push_back(rule::rate_window(1, kHour, burst));
    }
    settings.on_change = word;
    if (overridden != 0) {
      settings.overrides = {{.key = "k", .windows = {rule::rate_window(1, kHour, overridden)}}};
    }
    return {settings};
  }
  DecisionData ask(World& world, std::uint64_t cost, shm::Outcome& outcome) const {
    DecisionData out;
    outcome = shm::admit(world.view(), {handle_.ref, shm::key_of(handle_, "k"), cost, 0}, out);
    return out;
  }

  void check(const Setting& c) {
    World world(c.first);
    world.pass(kSecond);
    shm::Outcome outcome{};
    handle_ = shm::resolve(world.view(), "api");
    if (c.used != 0) ask(world, c.used, outcome);
    const auto decide = [&] { answer_->data = ask(world, 1, answer_->outcome); };
    at_each_instruction(world, c.name, c.gap, decide, [&](Stepper& stepper) {
      for (const auto* next : {&c.second, &c.third}) {
        world.publish(*next);
        world.pass(1);
        while (!world.publisher().sweep(64)) {}
      }
      stepper.finish();
      ASSERT_EQ(answer_->outcome, shm::Outcome::Answered);
      ASSERT_EQ(answer_->data.reason, Reason::Allowed);
      const std::uint64_t left = rule::report_of(ask(world, 0, outcome)).remaining;
      EXPECT_LE(left, c.left - 1) << "the token was forgotten";
      EXPECT_GE(left + c.slack, c.left - 1) << "it was taken twice";
      EXPECT_EQ(world.verify(), "");
    });
  }

  shm::LimitHandle handle_;
};

TEST_F(ReloadStepAdmit, SeveralWindows) {
  check({"two windows, other bursts", api({10, 9}), api({6, 7}), api({20, 15}), 2, 7, 13});
  check({"two windows under an insert", api({10, 9}), api({6, 7}), api({20, 15}), 0, 131, 15});
}

TEST_F(ReloadStepAdmit, EachWord) {
  using rule::OnChange;
  check({"as-is", api({10}), api({20}, OnChange::AsIs), api({12}, OnChange::AsIs), 2, 5, 8});
  check({"proportional", api({10}), api({20}, OnChange::Proportional),
         api({10}, OnChange::Proportional), 2, 5, 8, 1});
  check({"keep-used behind proportional", api({10}), api({5}, OnChange::Proportional), api({20}), 2,
         5, 19, 1});
}

TEST_F(ReloadStepAdmit, Overrides) {
  using rule::OnChange;
  check({"an override comes and changes", api({10}), api({10}, OnChange::KeepUsed, 20),
         api({10}, OnChange::KeepUsed, 30), 2, 5, 28});
  check({"an override goes and comes", api({10}, OnChange::KeepUsed, 20), api({10}),
         api({10}, OnChange::KeepUsed, 15), 2, 5, 13});
  check({"an override comes under an insert", api({10}), api({10}, OnChange::KeepUsed, 20),
         api({11}, OnChange::KeepUsed, 30), 0, 97, 30});
}

}  // namespace
}  // namespace cutwater::test
