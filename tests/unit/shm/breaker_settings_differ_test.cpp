// SPDX-License-Identifier: Apache-2.0
// For each setting of a breaker two breakers that differ in it and in nothing else, the same calls,
// and two answers: no setting is read and forgotten. A row that both answer alike fails.
#include "rule/breaker_class.hpp"
#include "unit/shm/breaker_scenes.hpp"

namespace cutwater::test {
namespace {

using Change = void (*)(BreakerSettings&);
using Scene = std::string (*)(BreakerWorld&);

struct Row {
  const char* key;
  Change base;                       ///< on top of count_breaker({10, 5, 2}), both have it
  Change one, other;                 ///< the setting itself
  Scene scene;                       ///< what is done, and what is seen then
  const char* seen_one;
  const char* seen_other;
};

void nothing(BreakerSettings&) {}

std::string state(BreakerWorld& w) { return std::string(rule::name_of(w.state())); }

std::string wait_of(const shm::BreakerEntry& entry) {
  return entry.granted ? "granted" : std::to_string(entry.retry_after_ns);
}

/// Runs the script and tells the state it leads to.
template <char... Letters>
std::string after(BreakerWorld& w) {
  w.run(std::string{Letters...});
  return state(w);
}

/// OPEN, and the wait of whoever asks 1 ms later.
std::string open_wait(BreakerWorld& w) {
  w.run("FFFFF");
  w.pass(kMs);
  return wait_of(w.enter());
}

/// The wait of the second opening in a row.
std::string second_wait(BreakerWorld& w) {
  w.run("FFFFF");
  w.pass(10'000 * kMs);
  w.run("FF");
  return wait_of(w.enter());
}

/// HALF_OPEN, nobody in it yet.
void half_open(BreakerWorld& w) {
  w.run("FFFFF");
  w.pass(1'001 * kMs);
}

std::string two_slow_of(BreakerWorld& w) {
  for (int i = 0; i < 5; ++i) w.call(Ended::Success, 500 * kMs);
  return state(w);
}

const Row kRows[] = {
    {"sliding-window-type", [](auto& s) { s.window_span_ns = 1'000'000'000; }, nothing,
     [](auto& s) { s.window_type = rule::WindowType::TimeBased; },
     [](auto& w) {
       for (int i = 0; i < 5; ++i) w.call(Ended::Failure, 300 * kMs);
       return state(w);
     },
     "OPEN", "CLOSED"},
    {"sliding-window-size (calls)", [](auto& s) { s.minimum_calls = 4; }, nothing,
     [](auto& s) { s.window_calls = 4; }, after<'S', 'S', 'S', 'S', 'F', 'F'>, "CLOSED", "OPEN"},
    {"sliding-window-size (span)",
     [](auto& s) { s.window_type = rule::WindowType::TimeBased; },
     [](auto& s) { s.window_span_ns = 1'000'000'000; },
     [](auto& s) { s.window_span_ns = 10'000'000'000; },
     [](auto& w) {
       for (int i = 0; i < 5; ++i) w.call(Ended::Failure, 300 * kMs);
       return state(w);
     },
     "CLOSED", "OPEN"},
    {"sliding-window-slots",
     [](auto& s) {
       s.window_type = rule::WindowType::TimeBased;
       s.window_span_ns = 1'000'000'000;
     },
     [](auto& s) { s.window_slots = 10; }, [](auto& s) { s.window_slots = 1; },
     [](auto& w) {                                   // over the edge of a whole second
       w.pass(1'900 * kMs - w.view().clock.now() % (1'000 * kMs));
       w.run("FF");
       w.pass(150 * kMs);
       w.run("FFF");
       return state(w);
     },
     "OPEN", "CLOSED"},
    {"sliding-window-min-span", [](auto& s) { s.window_calls = 5; }, nothing,
     [](auto& s) { s.window_min_span_ns = 1'000'000'000; },
     after<'S', 'S', 'S', 'S', 'S', 'S', 'F', 'F', 'F'>, "OPEN", "CLOSED"},
    {"minimum-number-of-calls", nothing, nothing, [](auto& s) { s.minimum_calls = 3; },
     after<'F', 'F', 'F'>, "CLOSED", "OPEN"},
    {"failure-rate-threshold", nothing, nothing, [](auto& s) { s.failure_rate_ppm = 800'000; },
     after<'F', 'S', 'F', 'S', 'F'>, "OPEN", "CLOSED"},
    {"slow-call-rate-threshold", [](auto& s) { s.slow_duration_ns = 100 * kMs; }, nothing,
     [](auto& s) { s.slow_rate_ppm = 500'000; }, two_slow_of, "CLOSED", "OPEN"},
    {"slow-call-duration-threshold", [](auto& s) { s.slow_rate_ppm = 500'000; },
     [](auto& s) { s.slow_duration_ns = 499 * kMs; },
     [](auto& s) { s.slow_duration_ns = 500 * kMs; }, two_slow_of, "OPEN", "CLOSED"},
    {"failure-count-threshold", nothing, nothing, [](auto& s) { s.failure_count = 2; },
     after<'F', 'S', 'F'>, "CLOSED", "OPEN"},
    {"consecutive-failures", nothing, nothing, [](auto& s) { s.consecutive_failures = 3; },
     after<'F', 'F', 'F'>, "CLOSED", "OPEN"},
    {"evaluate-on", nothing, nothing,
     [](auto& s) { s.evaluate_on = rule::EvaluateOn::Failure; },
     after<'F', 'F', 'F', 'F', 'S'>, "OPEN", "CLOSED"},
    {"wait-duration-in-open-state", nothing, nothing,
     [](auto& s) { s.open_wait_ns = 2'000'000'000; }, open_wait, "999000001", "1999000001"},
    {"enable-exponential-backoff", nothing, nothing,
     [](auto& s) {
       s.backoff = true;
       s.backoff_ppm = 2 * rule::kPpm;
     },
     second_wait, "1000000001", "2000000001"},
    {"exponential-backoff-multiplier", [](auto& s) { s.backoff = true; },
     [](auto& s) { s.backoff_ppm = 2 * rule::kPpm; },
     [](auto& s) { s.backoff_ppm = 3 * rule::kPpm; }, second_wait, "2000000001", "3000000001"},
    {"exponential-max-wait-duration-in-open-state",
     [](auto& s) {
       s.backoff = true;
       s.backoff_ppm = 2 * rule::kPpm;
     },
     nothing, [](auto& s) { s.max_open_wait_ns = 1'500'000'000; }, second_wait, "2000000001",
     "1500000001"},
    {"open-edge", nothing, [](auto& s) { s.open_edge = rule::OpenEdge::Inclusive; },
     [](auto& s) { s.open_edge = rule::OpenEdge::Exclusive; }, open_wait, "999000000",
     "999000001"},
    {"permitted-number-of-calls-in-half-open-state", nothing, nothing,
     [](auto& s) { s.probes = 3; },
     [](auto& w) {
       half_open(w);
       int granted = 0;
       for (int i = 0; i < 5; ++i) granted += w.enter().granted;
       return std::to_string(granted);
     },
     "2", "3"},
    {"half-open-decision", [](auto& s) { s.probes = 3; }, nothing,
     [](auto& s) { s.half_open_rule = rule::HalfOpenRule::AllSucceed; },
     [](auto& w) {
       half_open(w);
       w.run("SFS");
       return state(w);
     },
     "CLOSED", "OPEN"},
    {"half-open-decision (its number)",
     [](auto& s) {
       s.probes = 3;
       s.half_open_rule = rule::HalfOpenRule::Successes;
     },
     [](auto& s) { s.half_open_value = 1; }, [](auto& s) { s.half_open_value = 2; },
     [](auto& w) {
       half_open(w);
       w.run("S");
       return state(w);
     },
     "CLOSED", "HALF_OPEN"},
    {"max-wait-duration-in-half-open-state", nothing, nothing,
     [](auto& s) { s.half_open_max_wait_ns = 500'000'000; },
     [](auto& w) {
       half_open(w);
       w.enter();
       w.pass(500 * kMs);
       w.enter();
       return state(w);
     },
     "HALF_OPEN", "OPEN"},
    {"transition-to-state-after-wait-duration",
     [](auto& s) { s.half_open_max_wait_ns = 500'000'000; }, nothing,
     [](auto& s) { s.after_half_open_wait = rule::AfterHalfOpenWait::Closed; },
     [](auto& w) {
       half_open(w);
       w.enter();
       w.pass(500 * kMs);
       w.enter();
       return state(w);
     },
     "OPEN", "CLOSED"},
    {"automatic-transition-from-open-to-half-open-enabled", nothing, nothing,
     [](auto& s) { s.automatic_half_open = true; },
     [](auto& w) {
       half_open(w);
       w.tick();
       return state(w);
     },
     "OPEN", "HALF_OPEN"},
    {"probe-timeout", nothing, nothing, [](auto& s) { s.probe_timeout_ns = 100 * kMs; },
     [](auto& w) {
       half_open(w);
       w.enter();
       w.pass(100 * kMs);
       w.tick();
       return std::to_string(w.info().probes.failed);
     },
     "0", "1"},
    {"on-probe-timeout", [](auto& s) { s.probe_timeout_ns = 100 * kMs; }, nothing,
     [](auto& s) { s.on_probe_timeout = rule::OnProbeTimeout::Release; },
     [](auto& w) {
       half_open(w);
       w.enter();
       w.pass(100 * kMs);
       w.tick();
       return std::to_string(w.info().probes.failed);
     },
     "1", "0"},
    {"ignored-results", [](auto& s) { s.minimum_calls = 4; }, nothing,
     [](auto& s) { s.ignored_results = rule::IgnoredResults::Success; },
     after<'F', 'F', 'I', 'I'>, "CLOSED", "OPEN"},
    {"late-results", nothing, nothing,
     [](auto& s) { s.late_results = rule::LateResults::ShowInOpen; },
     [](auto& w) {
       const BreakerEntry late = w.enter();
       w.run("FFFFF");
       w.finish(late, Ended::Success);
       return std::to_string(w.info().window.calls);
     },
     "5", "6"},
    {"count-hanging-calls",
     [](auto& s) {
       s.slow_rate_ppm = 500'000;
       s.slow_duration_ns = 100 * kMs;
     },
     nothing, [](auto& s) { s.count_hanging = true; },
     [](auto& w) {
       for (int i = 0; i < 5; ++i) w.enter();
       w.pass(101 * kMs);
       w.enter();
       return state(w);
     },
     "CLOSED", "OPEN"},
    {"min-processes", nothing, nothing,
     [](auto& s) { s.min_processes = rule::kMinProcessesAuto; },
     [](auto& w) {                                   // one of four fails, the others do not
       for (int i = 0; i < 20 && w.state() == BreakerState::Closed; ++i) {
         w.call(Ended::Failure, kMs, 0);
         w.call(Ended::Failure, kMs, 0);
         w.call(Ended::Success, kMs, 1 + static_cast<std::uint32_t>(i) % 3);
       }
       return state(w);
     },
     "OPEN", "CLOSED"},
    {"ramp-after-close", [](auto& s) { s.probes = 1; }, [](auto& s) { s.ramp = rule::Ramp::Off; },
     [](auto& s) { s.ramp = rule::Ramp::On; },
     [](auto& w) {
       half_open(w);
       w.run("S");
       return w.run("SSSS");
     },
     "SSSS", "SXXX"},
    {"ramp-after-close (steps)",
     [](auto& s) {
       s.probes = 1;
       s.ramp = rule::Ramp::On;
     },
     nothing, [](auto& s) { s.ramp_percent = {50, 100}; },
     [](auto& w) {
       half_open(w);
       w.run("S");
       return w.run("SSSS");
     },
     "SXXX", "SXSX"},
    {"ramp-after-close (over)",
     [](auto& s) {
       s.probes = 1;
       s.ramp = rule::Ramp::On;
     },
     nothing, [](auto& s) { s.ramp_ns = 1'000 * kMs; },
     [](auto& w) {
       half_open(w);
       w.run("S");
       w.pass(1'000 * kMs);
       return w.run("SSSS");
     },
     "SXXX", "SSSS"},
    {"max-open-for", nothing, nothing, [](auto& s) { s.max_open_for_ns = 30'000 * kMs; },
     [](auto& w) {
       shm::BreakerReport report;
       report.kind = Ended::Failure;
       report.open_now = true;
       report.open_for_ns = 3'600'000 * kMs;
       shm::finish_breaker(w.view(), w.ref(), w.caller(), w.enter().call, report);
       return wait_of(w.enter());
     },
     "600000000001", "30000000001"},
    {"open-on-retry-after", nothing, nothing, [](auto& s) { s.open_on_retry_after = true; },
     [](auto& w) {
       shm::BreakerReport report;
       report.kind = Ended::Failure;
       report.failure_class = rule::class_counter("http-503");
       report.retry_after_ns = 7'000 * kMs;
       shm::finish_breaker(w.view(), w.ref(), w.caller(), w.enter().call, report);
       return state(w);
     },
     "CLOSED", "OPEN"},
    {"initial-state", nothing, nothing,
     [](auto& s) { s.initial_state = BreakerState::MetricsOnly; }, after<'F', 'F', 'F', 'F', 'F'>,
     "OPEN", "METRICS_ONLY"},
    {"record", nothing, nothing,
     [](auto& s) {
       s.record = {"timeout"};
       s.record_given = true;
     },
     [](auto& w) {
       const auto verdict = shm::judge_class(w.view(), w.ref(), "connect");
       return std::string(verdict == rule::ClassVerdict::Failure ? "failure" : "success");
     },
     "failure", "success"},
    {"ignore", nothing, nothing, [](auto& s) { s.ignore = {"connect"}; },
     [](auto& w) {
       const auto verdict = shm::judge_class(w.view(), w.ref(), "connect");
       return std::string(verdict == rule::ClassVerdict::Failure ? "failure" : "ignored");
     },
     "failure", "ignored"},
    {"enabled", nothing, nothing, [](auto& s) { s.enabled = false; },
     after<'F', 'F', 'F', 'F', 'F'>, "OPEN", "CLOSED"},
};

BreakerSettings settings_of(const Row& row, Change change) {
  BreakerSettings s = count_breaker({10, 5, 2});
  row.base(s);
  change(s);
  return s;
}

TEST(BreakerSettingsDiffer, EachSettingAloneChangesTheAnswer) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.key);
    const BreakerSettings first = settings_of(row, row.one), second = settings_of(row, row.other);
    ASSERT_NE(first, second);
    BreakerWorld one(first), other(second);
    const std::string seen_one = row.scene(one), seen_other = row.scene(other);
    EXPECT_EQ(seen_one, row.seen_one);
    EXPECT_EQ(seen_other, row.seen_other);
    EXPECT_NE(seen_one, seen_other);
  }
}

/// Drawn waits: by a hash of name and epoch, so the figures are no round ones.
TEST(BreakerSettingsDiffer, RandomizedWaitAndItsFactor) {
  BreakerSettings fixed = count_breaker({10, 5, 2}), little = fixed, much = fixed;
  little.randomized = much.randomized = true;
  little.randomized_ppm = 100'000;
  much.randomized_ppm = 500'000;
  BreakerWorld a(fixed), b(little), c(much);
  const std::int64_t of_fixed = std::stoll(open_wait(a)), of_little = std::stoll(open_wait(b)),
                     of_much = std::stoll(open_wait(c));
  EXPECT_EQ(of_fixed, 999'000'001);
  EXPECT_NE(of_little, of_fixed);
  EXPECT_NE(of_much, of_little);
  EXPECT_LE(std::abs(of_little - of_fixed), 100'000'000);
  EXPECT_LE(std::abs(of_much - of_fixed), 500'000'000);
}

}  // namespace
}  // namespace cutwater::test
