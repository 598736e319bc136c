// SPDX-License-Identifier: Apache-2.0
// How often one sick process is told from a sick dependency: random orders of calls from a fixed
// seed, N 20, minimum 10, 50 %. A run ends with the first verdict: the host opened, or some process
// for itself.
#include "stress/breaker_world.hpp"

namespace cutwater::test {
namespace {

constexpr int kRuns = 3'000;
constexpr int kMostCalls = 2'000;

struct Mix {
  std::uint32_t processes = 8;
  std::uint32_t sick = 0;            ///< the first ones: every call of theirs fails
  std::uint32_t error_percent = 0;   ///< of the calls of the others
  std::uint32_t sick_share = 0;      ///< per cent of all calls that the first makes; 0: alike
};

struct Verdicts {
  int host = 0, alone = 0, nothing = 0;
  int host_while_others_called = 0;
  int host_at_tenth = 0;
  int wrong_one = 0;                 ///< a process was singled out that is not sick
};

class Runs {
 public:
  explicit Runs(const Mix& mix) : mix_(mix), world_(settings(), mix.processes), chance_(20) {}

  Verdicts all() {
    for (int i = 0; i < kRuns; ++i) {
      shm::steer_breaker(world_.view(), world_.ref(), shm::Steer::Reset, 0, 1);
      one();
    }
    return found_;
  }

 private:
  static rule::BreakerSettings settings() {
    rule::BreakerSettings s = count_breaker({20, 10, 1});
    s.min_processes = rule::kMinProcessesAuto;
    return s;
  }

  std::uint32_t who() {
    if (mix_.sick_share == 0) return static_cast<std::uint32_t>(chance_.below(mix_.processes));
    if (chance_.below(100) < mix_.sick_share) return 0;
    return static_cast<std::uint32_t>(1 + chance_.below(mix_.processes - 1));
  }

  void one() {
    bool others = false;
    for (int call = 1; call <= kMostCalls; ++call) {
      const std::uint32_t process = who();
      others |= process != 0;
      const bool fails = process < mix_.sick || chance_.below(100) < mix_.error_percent;
      world_.finish(world_.enter(process), fails ? shm::Ended::Failure : shm::Ended::Success,
                    process);
      const Word16 word = load16(&world_.view().breakers[world_.ref().index].state);
      const shm::BreakerWord state = shm::unpack_breaker(word);
      if (state.state == rule::BreakerState::Open) {
        ++found_.host;
        found_.host_while_others_called += others;
        found_.host_at_tenth += call == 10;
        return;
      }
      if (!state.views) continue;
      ++found_.alone;
      check_who();
      return;
    }
    ++found_.nothing;
  }

  void check_who() {
    shm::BreakerUserInfo users[shm::kBreakerUsers];
    const std::size_t count = shm::read_breaker_users(world_.view(), world_.ref().index, users);
    for (std::size_t i = 0; i < count; ++i) {
      found_.wrong_one += users[i].open && i >= mix_.sick;
    }
  }

  Mix mix_;
  BreakerWorld world_;
  Chance chance_;
  Verdicts found_;
};

Verdicts run(const char* what, const Mix& mix) {
  const Verdicts found = Runs(mix).all();
  std::printf("%s: host %.1f %%, alone %.1f %%, nothing %d of %d runs, seed 20\n", what,
              100.0 * found.host / kRuns, 100.0 * found.alone / kRuns, found.nothing, kRuns);
  return found;
}

TEST(BreakerSick, WhenAllEightFailTheHostOpensAtTheTenthCallAlways) {
  const Verdicts found = run("8 of 8 fail", {.processes = 8, .sick = 8});
  EXPECT_EQ(found.host_at_tenth, kRuns);
}

TEST(BreakerSick, OneOfEightIsSingledOutAlways) {
  const Verdicts found = run("1 of 8 sick", {.processes = 8, .sick = 1});
  EXPECT_EQ(found.alone, kRuns);
  EXPECT_EQ(found.host, 0);
  EXPECT_EQ(found.wrong_one, 0);
}

TEST(BreakerSick, ThreeOfFiveOpenTheHost) {
  const Verdicts found = run("3 of 5 sick", {.processes = 5, .sick = 3});
  EXPECT_GE(found.host, kRuns * 94 / 100);
}

TEST(BreakerSick, ErrorsEverywhereOpenTheHost) {
  const Verdicts found = run("60 % errors everywhere", {.processes = 8, .error_percent = 60});
  EXPECT_GE(found.host, kRuns * 98 / 100);
}

TEST(BreakerSick, ASickOneWithMostOfTheCallsOpensTheHostOnlyWhenNobodyElseCalled) {
  const Verdicts found = run("1 of 5 sick with 85 % of the calls",
                             {.processes = 5, .sick = 1, .sick_share = 85});
  EXPECT_GE(found.alone, kRuns * 78 / 100);
  EXPECT_EQ(found.host_while_others_called, 0);
  EXPECT_EQ(found.wrong_one, 0);
}

}  // namespace
}  // namespace cutwater::test
