// SPDX-License-Identifier: Apache-2.0
// Clocks: one that is set back or forward, and readings that come late.
#include "shm/limit/bucket.hpp"
#include "shm/limit/key_hash.hpp"
#include "src/core.hpp"
#include "support/wall_clock.hpp"
#include "vectors/every_way.hpp"

namespace cutwater::test {
namespace {

class ClockCases : public EveryWay {};

INSTANTIATE_TEST_SUITE_P(Ways, ClockCases, ::testing::ValuesIn(every_way()), way_name);

/// Two days back, eleven seconds back, right again, an hour and ten years ahead.
constexpr Nanos kSteps[] = {-24h * 2, -11s, 24h * 2 + 11s, 1h, 24h * 3650, -24h * 3650 - 1h};

TEST_P(ClockCases, C023SettingTheWallClockChangesNoAnswer) {
  ASSERT_NO_FATAL_FAILURE(start("api: {rate: 50/s, burst: 50}"));
  Limit api = limit();
  ASSERT_EQ(api.try_acquire("k", 40).remaining(), 10U);
  Nanos now{0};
  for (const Nanos step : kSteps) {
    step_wall_clock(step);
    EXPECT_EQ(api.try_acquire("k", 10).remaining(), 0U);
    const Decision refused = api.try_acquire("k");
    EXPECT_FALSE(refused.allowed());
    EXPECT_EQ(refused.retry_after(), 20ms);
    EXPECT_EQ(refused.reset_after(), 1s);
    at(now += 200ms);
    EXPECT_EQ(api.peek("k", 0).remaining(), 10U);
  }
}

/// On a real clock, with a limit that refills a token in ten years: only the burst ever passes.
// covers: C023 (in memory, real clock)
TEST(WallClock, C023NoDecisionReadsIt) {
  Client client = Client::in_memory("limits: {api: {rate: 1 per 3660 d, burst: 60}}").value();
  Limit api = client.limit("api").value();
  ASSERT_EQ(api.try_acquire("k").remaining(), 59U);
  const std::uint64_t readings = wall_clock_readings();
  std::uint64_t left = 59;
  for (const Nanos step : kSteps) {
    step_wall_clock(step);
    EXPECT_EQ(api.try_acquire("k").remaining(), left - 1);
    EXPECT_EQ(api.key("k").try_acquire().remaining(), left - 2);
    EXPECT_EQ(api.peek("k", 0).remaining(), left - 2);
    EXPECT_FALSE(api.try_acquire("k", 60).allowed());
    Decision reserved = api.reserve("k", {.max_wait = 1ms});
    EXPECT_EQ(api.refund(reserved).value(), 1U);
    left -= 2;
  }
  EXPECT_EQ(wall_clock_readings(), readings);
}

/// Five a second. A caller read the clock in one second and charges in the next.
// covers: C026 (in one process)
TEST(LateReadings, C026ALateCallerMintsNothing) {
  SteppedClock clock;
  Client client = Client::in_memory("limits: {api: {rate: 5/s, burst: 5}}", clock).value();
  const shm::View& view = client.core().view();
  const shm::LimitRef limit = shm::find_limit(view, "api");
  const shm::KeyHash key = shm::hash_key(shm::make_limit_secret(view.secret, "api"), "k");
  const auto charge_at = [&](std::int64_t t) {
    const shm::BucketAsk ask{.limit = limit, .key = key, .cost = 1, .max_wait_ns = 0};
    std::uint64_t hint = shm::kNoSlot;
    DecisionData out;
    EXPECT_EQ(shm::charge_at(view, ask, t, hint, out), shm::Outcome::Answered);
    return out.reason == Reason::Allowed ? 1 : 0;
  };
  clock.set(331s);
  const std::int64_t early = view.clock.now();
  int in_331 = 0;
  for (int i = 0; i < 5; ++i) in_331 += charge_at(early);
  ASSERT_EQ(in_331, 5);
  clock.set(332s);
  const std::int64_t late = view.clock.now();
  int in_332 = 0;
  for (int i = 0; i < 4; ++i) in_332 += charge_at(late);
  ASSERT_EQ(in_332, 4);

  EXPECT_EQ(charge_at(early), 0) << "by its own reading there is nothing left";
  for (int i = 0; i < 4; ++i) in_332 += charge_at(late);

  EXPECT_EQ(in_332, 5);
  clock.set(333s);
  int in_333 = 0;
  for (int i = 0; i < 10; ++i) in_333 += charge_at(view.clock.now());
  EXPECT_EQ(in_333, 5) << "nothing moved back";
}

/// A batch read the clock once; others charged later. Every order of late and present readings:
/// by the stamps of the decisions never more than burst + rate * t.
// covers: C026 (in one process)
TEST(LateReadings, C026AnyOrderOfReadingsKeepsTheBound) {
  for (int late_call = 0; late_call < 11; ++late_call) {
    SteppedClock clock;
    Client client = Client::in_memory("limits: {api: {rate: 5/s, burst: 5}}", clock).value();
    const shm::View& view = client.core().view();
    const shm::BucketAsk ask{
        .limit = shm::find_limit(view, "api"),
        .key = shm::hash_key(shm::make_limit_secret(view.secret, "api"), "k"),
        .cost = 1,
        .max_wait_ns = 0};
    const std::int64_t begin = view.clock.now();
    int admitted = 0;
    for (int call = 0; call < 12; ++call) {
      clock.set(200ms * call);
      const std::int64_t t = call == late_call ? begin : view.clock.now();
      std::uint64_t hint = shm::kNoSlot;
      for (int i = 0; i < 5; ++i) {
        DecisionData out;
        ASSERT_EQ(shm::charge_at(view, ask, t, hint, out), shm::Outcome::Answered);
        admitted += out.reason == Reason::Allowed ? 1 : 0;
        ASSERT_LE(admitted, 5 + call) << "late call " << late_call;
      }
    }
    EXPECT_EQ(admitted, 5 + 11) << "and a late one costs nothing either, late call " << late_call;
  }
}

}  // namespace
}  // namespace cutwater::test
