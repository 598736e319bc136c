// SPDX-License-Identifier: Apache-2.0
#include "acts/steering.hpp"

#include <gtest/gtest.h>

#include <cutwater/decision.hpp>

#include "shm/limit/admit.hpp"
#include "shm/limit/bucket.hpp"
#include "shm/limit/key_hash.hpp"
#include "support/daemon_process.hpp"
#include "wire/breaker_verbs.hpp"

namespace cutwater::server {
namespace {

class SteeringTest : public testing::Test {
 protected:
  SteeringTest() : log_(Log::open(quiet(), false).value()) {
    load("limits: { api: { rate: 1/s, burst: 5 } }");
  }

  config::Log quiet() const {
    config::Log out;
    out.file = place_.path() + "/log";
    return out;
  }
  void load(const std::string& limits, bool stepped = true) {
    write(limits);
    running_.source = {place_.config(),
                       {{"instance.memory-directory", place_.memory()},
                        {"log.target", "file:" + quiet().file}},
                       nullptr};
    running_.config = std::move(*running_.source.load().config);
    running_.reserved = running_.config.capacity;
    std::vector<std::string> remarks;
    memory_.reset();
    memory_ = Memory::open(running_.config, {.stepped = stepped, .runtime_directory = {},
                                             .xdg_runtime_dir = {}}, remarks).value();
    reloader_ = std::make_unique<Reloader>(loop_, *memory_, running_, *log_);
    acts_.reset();
    acts_ = std::make_unique<Acts>(Journal::open(loop_, {.setting = place_.path() + "/state"}),
                                   *log_);
    acts_->begin(*memory_, running_,
                 [this](auto make, auto done) {
                   reloader_->republish(std::move(make), std::move(done));
                 },
                 [] {});
    reloader_->set_effective([this](const Reloader::Limits& config_limits) {
      return acts_->effective(config_limits);
    });
    steering_ = std::make_unique<Steering>(*memory_, running_, *reloader_, *acts_, *log_);
  }
  void write(const std::string& limits) const {
    place_.write_config(
        "capacity: { keys: 1024, limits: 8, processes: 16, stripes: 2, events: 1024 }\n" + limits +
        "\n");
  }
  wire::SteerAnswer steer(wire::Steer asked) {
    std::optional<wire::SteerAnswer> answer;
    steering_->carry_out(asked, "uid 0", [&](wire::SteerAnswer got) { answer = std::move(got); });
    test::eventually([&] {
      loop_.restart();
      loop_.poll();
      reloader_->tick(static_cast<std::uint64_t>(
          std::chrono::steady_clock::now().time_since_epoch().count()));
      return answer.has_value();
    });
    return answer.value_or(wire::SteerAnswer{999, "no answer", 0});
  }
  wire::SteerAnswer reload(bool dry = false) {
    wire::Steer asked;
    asked.verb = wire::kVerbConfigReload;
    asked.arguments.set("dry", dry);
    return steer(std::move(asked));
  }
  wire::SteerAnswer step(std::uint64_t to_ns) {
    wire::Steer asked;
    asked.verb = wire::kVerbClockStep;
    asked.arguments.set("to_ns", to_ns);
    return steer(std::move(asked));
  }
  std::uint64_t left(const char* key, std::uint64_t cost = 0) {
    shm::BucketAsk ask;
    ask.limit = shm::find_limit(memory_->view(), "api");
    ask.key = shm::hash_key(shm::make_limit_secret(memory_->view().secret, "api"), key);
    ask.cost = cost;
    std::uint64_t hint = shm::kNoSlot;
    DecisionData data;
    EXPECT_EQ(shm::charge(memory_->view(), ask, hint, data), shm::Outcome::Answered);
    return Decision(data).remaining();
  }

  test::ScratchPlace place_;
  std::unique_ptr<Log> log_;
  asio::io_context loop_;
  Running running_;
  std::unique_ptr<Memory> memory_;
  std::unique_ptr<Reloader> reloader_;
  std::unique_ptr<Acts> acts_;
  std::unique_ptr<Steering> steering_;
};

TEST_F(SteeringTest, ReloadsWholeAndSaysWhatChanged) {
  write("limits: { api: { rate: 1/s, burst: 7 }, new: { rate: 2/s } }");

  const wire::SteerAnswer answer = reload();

  EXPECT_EQ(answer.code, wire::kSteerDone) << answer.text;
  EXPECT_NE(answer.text.find("1 limits added, 1 changed"), std::string::npos);
  EXPECT_EQ(left("alice"), 7U);
  EXPECT_EQ(running_.reloads, 1U);
}

TEST_F(SteeringTest, C130ARefusedReloadSaysEveryErrorAndChangesNothing) {
  write("limits:\n  api: { rate: 0/s }\n  bad: { rate: 10, brust: 3 }");
  const std::uint64_t generation = memory_->view().current();

  const wire::SteerAnswer answer = reload();

  EXPECT_EQ(answer.code, wire::kSteerInvalid);
  EXPECT_NE(answer.text.find("cutwater.yaml:3:"), std::string::npos);
  EXPECT_NE(answer.text.find("did you mean 'burst'?"), std::string::npos);
  EXPECT_NE(answer.text.find("the running configuration stays"), std::string::npos);
  EXPECT_EQ(memory_->view().current(), generation);
  EXPECT_EQ(left("alice"), 5U);
}

TEST_F(SteeringTest, ADryReloadIsOnlyTheVerdict) {
  write("limits: { api: { rate: 1/s, burst: 9 } }");

  EXPECT_EQ(reload(true).code, wire::kSteerDone);
  EXPECT_EQ(left("alice"), 5U);
}

TEST_F(SteeringTest, AKeyReadOnlyAtStartRefusesTheReloadAsAWhole) {
  place_.write_config("instance: { name: blue }\nlimits: { api: { rate: 1/s, burst: 9 } }\n");

  const wire::SteerAnswer answer = reload();

  EXPECT_EQ(answer.code, wire::kSteerInvalid);
  EXPECT_NE(answer.text.find("needs a restart"), std::string::npos) << answer.text;
  EXPECT_EQ(left("alice"), 5U);
}

TEST_F(SteeringTest, ALogFileThatCannotBeOpenedRefusesTheReload) {
  running_.source.settings.emplace_back("log.target", "file:/nonexistent/folder/log");
  write("limits: { api: { rate: 1/s, burst: 9 } }");

  EXPECT_EQ(reload().code, wire::kSteerInvalid);
  EXPECT_EQ(left("alice"), 5U);
}

TEST_F(SteeringTest, C129ReloadsOfOtherThingsLeaveTheStateByteIdentical) {
  left("alice", 3);
  const std::string before = test::read_file(place_.memory() + "/state");

  for (int i = 1; i <= 100; ++i) {
    write("log: { level: " + std::string(i % 2 != 0 ? "debug" : "info") +
          " }\nlimits: { api: { rate: 1/s, burst: 5, note: \"" + std::to_string(i) + "\" } }");
    ASSERT_EQ(reload().code, wire::kSteerDone);
  }

  EXPECT_EQ(test::read_file(place_.memory() + "/state"), before);
}

TEST_F(SteeringTest, ReloadsComeOneAfterTheOtherAndTheirNumberIsBounded) {
  std::size_t answered = 0, refused = 0;
  for (std::size_t i = 0; i < Reloader::kMaxWaiting + 3; ++i) {
    reloader_->request(Reloader::Origin::Dry, [&](const Verdict& verdict) {
      ++answered;
      refused += verdict.ok ? 0 : 1;
    });
  }
  EXPECT_EQ(refused, 3U);

  test::eventually([&] {
    loop_.restart();
    loop_.poll();
    return answered == Reloader::kMaxWaiting + 3;
  });
  EXPECT_EQ(answered, Reloader::kMaxWaiting + 3);
}

TEST_F(SteeringTest, ResetGivesTheWholeBurstBack) {
  left("alice", 5);
  wire::Steer asked;
  asked.verb = wire::kVerbLimitReset;
  asked.name = "api";
  asked.key = "alice";

  const wire::SteerAnswer answer = steer(asked);

  EXPECT_EQ(answer.code, wire::kSteerDone);
  EXPECT_EQ(left("alice"), 5U);
  EXPECT_NE(steer(asked).text.find("nothing to reset"), std::string::npos);
}

TEST_F(SteeringTest, ResetNamesTheNearestLimitAndWantsAKey) {
  wire::Steer asked;
  asked.verb = wire::kVerbLimitReset;
  asked.name = "apj";
  asked.key = "alice";
  EXPECT_EQ(steer(asked).code, wire::kSteerNoSuchName);
  EXPECT_NE(steer(asked).text.find("'api'"), std::string::npos);
  asked.name = "api";
  asked.key = std::nullopt;
  EXPECT_EQ(steer(asked).code, wire::kSteerInvalid);
}

TEST_F(SteeringTest, ALaterBanIsTheOneThatHoldsAlsoWhenItIsShorter) {
  const auto ban = [&](std::uint64_t seconds) {
    wire::Steer asked;
    asked.verb = wire::kVerbLimitBan;
    asked.name = "api";
    asked.key = "mallory";
    asked.for_ns = seconds * 1'000'000'000;
    return steer(std::move(asked)).code;
  };
  const auto banned_s = [&] {
    const shm::View& view = memory_->view();
    const shm::LimitHandle limit = shm::resolve(view, "api");
    const std::int64_t now = view.clock.now();
    const std::int64_t until =
        shm::banned_until(view, limit.ref, shm::hash_key(limit.secret, "mallory"), now);
    return until == 0 ? 0 : (until - now + 999'999'999) / 1'000'000'000;
  };
  EXPECT_EQ(ban(3600), wire::kSteerDone);
  EXPECT_EQ(banned_s(), 3600);

  EXPECT_EQ(ban(60), wire::kSteerDone);
  EXPECT_EQ(banned_s(), 60);
  EXPECT_EQ(acts_->book().standing().size(), 1U);

  EXPECT_EQ(ban(120), wire::kSteerDone);
  EXPECT_EQ(banned_s(), 120);
  acts_->put_bans();
  EXPECT_EQ(banned_s(), 120) << "put again: the same";
}

TEST_F(SteeringTest, TheSteppedClockMovesForwardOnly) {
  const std::int64_t now = memory_->view().clock.now();

  const wire::SteerAnswer answer = step(static_cast<std::uint64_t>(now) + 1'000'000'000);

  EXPECT_EQ(answer.code, wire::kSteerDone);
  EXPECT_EQ(answer.text, std::to_string(now + 1'000'000'000));
  EXPECT_EQ(memory_->view().clock.now(), now + 1'000'000'000);
  EXPECT_EQ(step(static_cast<std::uint64_t>(now)).code, wire::kSteerNotPermitted);
  EXPECT_EQ(memory_->view().clock.now(), now + 1'000'000'000);
  EXPECT_EQ(step(~std::uint64_t{0}).code, wire::kSteerInvalid);
}

TEST_F(SteeringTest, ABoottimeClockIsNotMoved) {
  memory_.reset();
  load("limits: { api: { rate: 1/s, burst: 5 } }", false);

  EXPECT_EQ(step(1'000'000'000'000).code, wire::kSteerNotPermitted);
}

TEST_F(SteeringTest, UnknownVerbsAreNamed) {
  wire::Steer asked;
  asked.verb = "limit.ban";

  EXPECT_EQ(steer(asked).code, wire::kSteerInvalid);
}

TEST_F(SteeringTest, ATransitionEndsTheActThatHeldTheBreakerAndTakesNoNote) {
  load("breakers: { fraud: { wait-duration-in-open-state: 5s, enable-randomized-wait: false } }");
  const auto move = [&](const char* to, std::uint64_t for_ns = 0, std::string note = "") {
    wire::Steer asked;
    asked.verb = wire::kVerbBreakerTransition;
    asked.name = "fraud";
    asked.arguments.set("to", to);
    asked.for_ns = for_ns;
    asked.note = std::move(note);
    return steer(std::move(asked));
  };
  wire::Steer force;
  force.verb = wire::kVerbBreakerForceOpen;
  force.name = "fraud";
  ASSERT_EQ(steer(force).code, wire::kSteerDone);
  ASSERT_EQ(acts_->book().standing().size(), 1U);

  EXPECT_EQ(move("OPEN", 0, "why").text,
            "breaker.transition: takes no note: it is no act that lasts");
  EXPECT_EQ(move("elsewhere").text, "breaker.transition: to must be OPEN, HALF_OPEN or CLOSED");
  EXPECT_EQ(move("OPEN", ~std::uint64_t{0}).code, wire::kSteerInvalid);
  EXPECT_EQ(acts_->book().standing().size(), 1U);
  const wire::SteerAnswer done = move("OPEN");

  EXPECT_EQ(done.code, wire::kSteerDone);
  EXPECT_EQ(done.text, "fraud is OPEN, retry after 5 s (1 opening in a row)");
  EXPECT_EQ(acts_->book().standing().size(), 0U);
  EXPECT_EQ(acts_->book().ended().back().end.how, EndKind::Undone);
  EXPECT_EQ(move("HALF_OPEN").code, wire::kSteerDone);
}

}  // namespace
}  // namespace cutwater::server
