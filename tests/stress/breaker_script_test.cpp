// SPDX-License-Identifier: Apache-2.0
// Random scripts of entering, outcomes, time, deaths, acts by hand and reloads: after each step the
// breaker in shared memory is what the rules say it is, told by a model that shares no code with
// it.
#include <algorithm>
#include <map>
#include <sstream>

#include "stress/breaker_oracle.hpp"
#include "stress/breaker_world.hpp"

namespace cutwater::test {
namespace {

using rule::BreakerSettings;

constexpr std::uint32_t kProcesses = 6;

std::uint32_t ppm_of(std::int64_t ppm) {
  return ppm < 0 ? rule::kOffPpm : static_cast<std::uint32_t>(ppm);
}

/// The same settings for both.
struct Both {
  OracleSettings oracle;
  BreakerSettings settings;
};

Both both(const OracleSettings& o) {
  BreakerSettings s = count_breaker();
  s.window_type = o.time ? rule::WindowType::TimeBased : rule::WindowType::CountBased;
  if (o.time) {
    s.window_slots = static_cast<std::uint32_t>(o.window);
    s.window_span_ns = static_cast<std::uint64_t>(o.window * o.slot_ns);
  } else {
    s.window_calls = static_cast<std::uint32_t>(o.window);
    s.window_min_span_ns = static_cast<std::uint64_t>(10 * o.span_slot_ns);
  }
  s.minimum_calls = static_cast<std::uint32_t>(o.minimum);
  s.failure_rate_ppm = ppm_of(o.failure_ppm);
  s.slow_rate_ppm = ppm_of(o.slow_ppm);
  s.slow_duration_ns = static_cast<std::uint64_t>(o.slow_ns);
  s.failure_count = static_cast<std::uint32_t>(o.failure_count);
  s.consecutive_failures = static_cast<std::uint32_t>(o.consecutive);
  s.evaluate_on = o.only_on_failure ? rule::EvaluateOn::Failure : rule::EvaluateOn::AnyResult;
  s.open_wait_ns = static_cast<std::uint64_t>(o.wait_ns);
  s.backoff = o.multiplier_ppm != 1'000'000 || o.max_wait_ns != 0;
  s.backoff_ppm = static_cast<std::uint32_t>(o.multiplier_ppm);
  s.max_open_wait_ns = static_cast<std::uint64_t>(o.max_wait_ns);
  s.open_edge = o.exclusive ? rule::OpenEdge::Exclusive : rule::OpenEdge::Inclusive;
  s.max_open_for_ns = static_cast<std::uint64_t>(o.max_open_for_ns);
  s.probes = static_cast<std::uint32_t>(o.probes);
  s.half_open_rule = static_cast<rule::HalfOpenRule>(o.decision);
  s.half_open_value = static_cast<std::uint32_t>(o.decision_value);
  s.half_open_max_wait_ns = static_cast<std::uint64_t>(o.half_open_max_ns);
  s.after_half_open_wait =
      o.closes_after_max ? rule::AfterHalfOpenWait::Closed : rule::AfterHalfOpenWait::Open;
  s.automatic_half_open = o.automatic;
  s.probe_timeout_ns = static_cast<std::uint64_t>(o.probe_timeout_ns);
  s.on_probe_timeout =
      o.release_late ? rule::OnProbeTimeout::Release : rule::OnProbeTimeout::Failure;
  s.ignored_results =
      o.ignored_is_success ? rule::IgnoredResults::Success : rule::IgnoredResults::ReturnPermit;
  s.late_results = o.show_late ? rule::LateResults::ShowInOpen : rule::LateResults::Drop;
  s.count_hanging = o.hanging;
  s.ramp = o.ramp ? rule::Ramp::On : rule::Ramp::Off;
  s.ramp_percent = {};
  for (std::size_t i = 0; i < o.ramp_percent.size(); ++i) {
    s.ramp_percent[i] = static_cast<std::uint8_t>(o.ramp_percent[i]);
  }
  s.ramp_ns = static_cast<std::uint64_t>(o.ramp_ns);
  s.min_processes = o.min_users < 0 ? rule::kMinProcessesOff
                                    : static_cast<std::uint32_t>(o.min_users);
  return {o, s};
}

/// `whole_ms`: time moves by whole ms, so that what was looked up once per ms is what is there;
/// then calls in flight may count.
/// `users`: it asks whose failures these are.
OracleSettings draw(Chance& chance, bool whole_ms, bool users) {
  OracleSettings o;
  if (users) o.min_users = chance.one_in(2) ? 0 : static_cast<std::int64_t>(2 + chance.below(4));
  o.time = chance.one_in(2);
  o.window = static_cast<std::int64_t>(o.time ? 1 + chance.below(8) : 5 + chance.below(20));
  o.slot_ns = 100'000'000 + static_cast<std::int64_t>(chance.below(3)) * 77'000'001;
  if (!o.time && chance.one_in(3)) o.span_slot_ns = 20'000'000;
  o.minimum = static_cast<std::int64_t>(1 + chance.below(12));
  o.failure_ppm = static_cast<std::int64_t>(chance.below(1'000'001));
  if (chance.one_in(3)) o.slow_ppm = static_cast<std::int64_t>(chance.below(1'000'001));
  o.slow_ns = 5'000'000;
  if (chance.one_in(4)) o.failure_count = static_cast<std::int64_t>(2 + chance.below(8));
  if (chance.one_in(3)) o.consecutive = static_cast<std::int64_t>(2 + chance.below(4));
  if (chance.one_in(6)) o.failure_ppm = -1;
  if (o.failure_ppm < 0 && o.slow_ppm < 0) o.consecutive = 3;
  o.hanging = whole_ms && o.slow_ppm >= 0;
  o.only_on_failure = chance.one_in(3);
  o.wait_ns = static_cast<std::int64_t>(1'000'000 + chance.below(900'000'000));
  if (chance.one_in(2)) {
    o.multiplier_ppm = static_cast<std::int64_t>(1'000'000 + chance.below(3'000'000));
  }
  if (chance.one_in(2)) o.max_wait_ns = 2'000'000'000;
  o.exclusive = chance.one_in(2);
  o.max_open_for_ns = 400'000'000;
  o.probes = static_cast<std::int64_t>(1 + chance.below(9));
  const bool rates = o.failure_ppm >= 0 || o.slow_ppm >= 0;
  const std::uint64_t decision = rates ? chance.below(4) : 2 + chance.below(2);
  o.decision = static_cast<decltype(o.decision)>(decision);
  if (decision == 1 || decision == 3) {
    const auto probes = static_cast<std::uint64_t>(o.probes);
    o.decision_value = static_cast<std::int64_t>(1 + chance.below(probes));
  }
  if (chance.one_in(3)) o.half_open_max_ns = 300'000'000;
  o.closes_after_max = chance.one_in(2);
  o.automatic = chance.one_in(3);
  o.probe_timeout_ns = 250'000'000;
  o.release_late = chance.one_in(2);
  o.ignored_is_success = chance.one_in(3);
  o.show_late = chance.one_in(3);
  o.ramp = chance.one_in(3);
  o.ramp_ns = 900'000'000;
  return o;
}

class Script {
 public:
  explicit Script(std::uint64_t seed)
      : chance_(seed), whole_ms_(seed % 2 == 0), users_(seed % 4 < 2),
        both_(both(draw(chance_, whole_ms_, users_))), oracle_(both_.oracle),
        world_(both_.settings, kProcesses, roomy()) {
    for (std::uint32_t i = 0; i < kProcesses; ++i) join(i);
    if (users_ && chance_.one_in(2)) sick_ = chance_.below(kProcesses);
  }

  void run(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      said_.str("");
      said_ << "step " << i << ": ";
      step();
      SCOPED_TRACE(said_.str());
      agree();
    }
  }
  std::int64_t transitions() const { return oracle_.transitions; }
  std::uint64_t hung() const { return hung_; }
  std::int64_t local_faults() const { return oracle_.local_faults; }

 private:
  struct Running {
    shm::BreakerEntry entry;
    std::uint64_t number;
    std::uint32_t process;
  };

  static WorldOptions roomy() {
    WorldOptions options;
    options.breaker_memory = 1 << 20;
    return options;
  }

  void step() {
    const std::uint64_t dice = chance_.below(1'000);
    if (dice < 380) enter();
    else if (dice < 740) end_one();
    else if (dice < 930) pass();
    else if (dice < 960) tick();
    else if (dice < 975) die();
    else if (dice < 993) steer();
    else reload();
  }

  void enter() { enter_as(static_cast<std::uint32_t>(chance_.below(kProcesses))); }

  void enter_as(std::uint32_t process) {
    const std::int64_t now = world_.view().clock.now();
    const std::int64_t deadline =
        chance_.one_in(3) ? now + static_cast<std::int64_t>(chance_.below(100'000'000)) : 0;
    said_ << "process " << process << " enters";
    const shm::BreakerEntry entry = world_.enter(process, deadline);
    const BreakerOracle::Answer want = oracle_.enter(static_cast<int>(process), now, deadline);
    ASSERT_EQ(entry.granted, want.granted) << said_.str();
    if (entry.granted) {
      running_.push_back({entry, want.call, process});
      return;
    }
    EXPECT_EQ(entry.reason == Reason::Probing, want.probing) << said_.str();
    EXPECT_EQ(entry.hint, want.probing);
    EXPECT_EQ(entry.retry_after_ns, want.retry_ns) << said_.str();
  }

  void end_one() {
    if (running_.empty()) return pass();
    const std::size_t at = chance_.below(running_.size());
    const Running call = running_[at];
    running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(at));
    const std::uint64_t dice = chance_.below(20);
    // One process may be sick alone: nearly all its calls fail, nearly all others go well.
    const std::uint64_t well = sick_ == kProcesses ? 9 : call.process == sick_ ? 1 : 15;
    const auto how = dice < well ? shm::Ended::Success
                     : dice < 17 ? shm::Ended::Failure
                     : dice < 19 ? shm::Ended::Ignored
                                 : shm::Ended::Cancelled;
    shm::BreakerReport report;
    report.kind = how;
    report.open_now = how == shm::Ended::Failure && chance_.one_in(40);
    if (report.open_now && chance_.one_in(2)) {
      report.open_for_ns = static_cast<std::int64_t>(1 + chance_.below(600'000'000));
    }
    said_ << "call " << call.number << " ends, " << static_cast<int>(how);
    const bool present = call.entry.call.epoch == world_.info().word.epoch;
    const shm::Recorded got = shm::finish_breaker(
        world_.view(), world_.ref(), world_.caller(call.process), call.entry.call, report);
    const BreakerOracle::Recorded want =
        oracle_.outcome(call.number, static_cast<BreakerOracle::How>(how),
                        world_.view().clock.now(), report.open_now, report.open_for_ns);
    if (present) EXPECT_EQ(static_cast<int>(got), static_cast<int>(want)) << said_.str();
    else EXPECT_NE(got, shm::Recorded::Counted) << said_.str();
  }

  void pass() {
    const std::uint64_t most = chance_.one_in(12) ? 2'500'000'000 : 40'000'000;
    auto ns = static_cast<std::int64_t>(chance_.below(most));
    if (whole_ms_) ns -= ns % kMillisecond;
    said_ << ns << " ns pass";
    world_.pass(ns);
  }

  void tick() {
    said_ << "tick";
    world_.tick();
    oracle_.tick(world_.view().clock.now());
  }

  void join(std::uint32_t process) {
    oracle_.join(static_cast<int>(process), world_.row(process).index);
  }

  void die() {
    const auto process = static_cast<std::uint32_t>(chance_.below(kProcesses));
    said_ << "process " << process << " dies";
    world_.kill(process);
    if (whole_ms_) world_.pass(kMillisecond);        // what was looked up counts it this long
    oracle_.kill(static_cast<int>(process));
    std::erase_if(running_, [&](const Running& call) { return call.process == process; });
    if (chance_.one_in(2)) {
      enter_as((process + 1) % kProcesses);          // who finds the cell before the daemon does
    }
    world_.revive(process);                          // ticks first
    oracle_.tick(world_.view().clock.now());
    join(process);
  }

  void steer() {
    const auto what = static_cast<shm::Steer>(chance_.below(8));
    const std::int64_t for_ns =
        chance_.one_in(2) ? static_cast<std::int64_t>(1 + chance_.below(500'000'000)) : 0;
    said_ << "by hand " << static_cast<int>(what) << " for " << for_ns;
    const shm::Steered got = shm::steer_breaker(world_.view(), world_.ref(), what, for_ns, 1);
    const int want = oracle_.steer(static_cast<BreakerOracle::Steer>(what), for_ns,
                                   world_.view().clock.now());
    EXPECT_EQ(static_cast<int>(got), want) << said_.str();
  }

  void reload() {
    OracleSettings next = draw(chance_, whole_ms_, users_);
    // Most reloads change a threshold or a size, few the kind of the window. Where users have
    // counts their turns stay as long as they were: the rules do not say what becomes of a turn
    // that another size cuts.
    if (users_ || !chance_.one_in(4)) {
      const OracleSettings drawn = next;
      next = both_.oracle;
      next.failure_ppm = drawn.failure_ppm < 0 ? next.failure_ppm : drawn.failure_ppm;
      next.minimum = drawn.minimum;
      next.wait_ns = drawn.wait_ns;
      if (!users_ && !next.time && !drawn.time) next.window = drawn.window;
      next.min_users = drawn.min_users;
    }
    said_ << "reload";
    both_ = both(next);
    world_.publish(both_.settings);
    oracle_.reload(next, world_.view().clock.now());
  }

  void agree() {
    const shm::BreakerInfo info = world_.info();
    ASSERT_TRUE(info.used);
    EXPECT_EQ(static_cast<int>(info.word.state), static_cast<int>(oracle_.state));
    EXPECT_EQ(info.word.epoch, oracle_.epoch);
    EXPECT_EQ(info.word.attempts, oracle_.attempts);
    EXPECT_EQ(info.word.ramping, oracle_.ramping);
    if (oracle_.state != BreakerOracle::Closed || oracle_.ramping) {
      EXPECT_EQ(info.word.deadline_ns, oracle_.deadline);
    }
    EXPECT_TRUE(info.word.announced);
    const BreakerOracle::Window want = oracle_.window(info.now_ns);
    EXPECT_EQ(info.window.calls, want.calls);
    EXPECT_EQ(info.window.failures, want.failures);
    EXPECT_EQ(info.window.slow, want.slow);
    hung_ += info.hanging;
    if (users_) agree_on_users(info.now_ns);
    if (oracle_.state == BreakerOracle::HalfOpen) {
      EXPECT_EQ(info.probes_held, oracle_.held());
      EXPECT_EQ(info.probes.spent, oracle_.spent());
      EXPECT_LE(info.probes_held + info.probes.spent, info.numbers.probes);
    }
  }

  void agree_on_users(std::int64_t now) {
    shm::BreakerUserInfo found[shm::kBreakerUsers];
    const std::size_t count = shm::read_breaker_users(world_.view(), world_.ref().index, found);
    ASSERT_EQ(count, oracle_.users().size());
    for (const auto& [process, want] : oracle_.users()) {
      const auto at = std::find_if(found, found + count, [&](const shm::BreakerUserInfo& user) {
        return user.row == want.order;
      });
      ASSERT_NE(at, found + count) << "process " << process;
      const BreakerOracle::Window counts = oracle_.counts_of(want, now);
      EXPECT_EQ(at->calls, counts.calls) << "process " << process;
      EXPECT_EQ(at->failures, counts.failures) << "process " << process;
      EXPECT_EQ(at->slow, counts.slow) << "process " << process;
      EXPECT_EQ(at->run, want.run) << "process " << process;
      EXPECT_EQ(at->open, want.open) << "process " << process;
      EXPECT_EQ(at->probing, want.probing) << "process " << process;
      EXPECT_EQ(at->attempts, want.attempts) << "process " << process;
      EXPECT_EQ(at->deadline_ns, want.open ? want.deadline : at->deadline_ns)
          << "process " << process;
    }
    EXPECT_EQ(world_.count(shm::BreakerCounter::LocalFaults), oracle_.local_faults);
  }

  Chance chance_;
  bool whole_ms_, users_;
  std::uint64_t sick_ = kProcesses;  ///< the process that fails alone; kProcesses: none
  Both both_;
  BreakerOracle oracle_;
  BreakerWorld world_;
  std::vector<Running> running_;
  std::uint64_t hung_ = 0;           ///< calls in flight for too long, over all steps
  std::ostringstream said_;
};

TEST(BreakerScript, AHundredThousandRandomStepsAgreeWithTheRules) {
  constexpr int kScripts = 200, kSteps = 1'000;
  std::int64_t transitions = 0;
  std::uint64_t hung = 0;
  std::int64_t local_faults = 0;
  for (std::uint64_t seed = 1; seed <= kScripts && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Script script(seed);
    script.run(kSteps);
    transitions += script.transitions();
    hung += script.hung();
    local_faults += script.local_faults();
  }
  std::printf("%d scripts of %d steps, %ld transitions, %ld openings for one user\n", kScripts,
              kSteps, static_cast<long>(transitions), static_cast<long>(local_faults));
  EXPECT_GT(transitions, 5'000);
  EXPECT_GT(hung, 2'000U);
  EXPECT_GT(local_faults, 200);
}

}  // namespace
}  // namespace cutwater::test
