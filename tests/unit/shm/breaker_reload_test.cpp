// SPDX-License-Identifier: Apache-2.0
// What a reload keeps of a breaker (S15).
#include "shm/breaker/publisher.hpp"
#include "stress/breaker_world.hpp"

namespace cutwater::test {
namespace {

using rule::BreakerState;
using shm::Ended;

constexpr std::int64_t kMs = kMillisecond;

TEST(BreakerReload, AWiderWindowKeepsWhatWasCountedAndBringsNothingBack) {
  rule::BreakerSettings settings = count_breaker({4, 4, 2});
  BreakerWorld w(settings);
  w.run("FSSSSS");                                   // the failure has left
  ASSERT_EQ(w.info().window.calls, 4u);
  settings.window_calls = 40;
  settings.minimum_calls = 4;

  w.publish(settings);

  EXPECT_EQ(w.info().window.calls, 4u);
  EXPECT_EQ(w.info().window.failures, 0u);
  EXPECT_EQ(w.run("SFFF"), "SFFF");
  EXPECT_EQ(w.info().window.calls, 8u);
  EXPECT_EQ(w.run("FF"), "FF");                      // 5 of 10
  EXPECT_EQ(w.state(), BreakerState::Open);
}

TEST(BreakerReload, ANarrowerWindowKeepsTheNewestAndForgetsTheRest) {
  rule::BreakerSettings settings = count_breaker({10, 10, 2});
  BreakerWorld w(settings);
  w.run("FFFSSSS");
  settings.window_calls = 4;
  w.publish(settings);
  EXPECT_EQ(w.info().window.calls, 4u);
  EXPECT_EQ(w.info().window.failures, 0u);
  settings.window_calls = 10;
  w.publish(settings);
  EXPECT_EQ(w.info().window.calls, 4u);              // nothing comes back
}

TEST(BreakerReload, AnotherKindOrShapeStartsEmptyInTheSameEpoch) {
  rule::BreakerSettings settings = count_breaker();
  BreakerWorld w(settings);
  w.run("FFF");
  const std::uint32_t epoch = w.info().word.epoch;
  settings.window_type = rule::WindowType::TimeBased;
  settings.window_span_ns = 10'000 * kMs;
  w.publish(settings);
  EXPECT_EQ(w.info().window.calls, 0u);
  EXPECT_EQ(w.info().word.epoch, epoch);
  w.run("FF");
  EXPECT_EQ(w.info().window.calls, 2u);
  settings.window_slots = 5;
  w.publish(settings);
  EXPECT_EQ(w.info().window.calls, 0u);
}

TEST(BreakerReload, ThresholdsHoldFromTheNextOutcomeAndWaitsKeepTheirDeadline) {
  rule::BreakerSettings settings = count_breaker({10, 5, 2});
  BreakerWorld w(settings);
  w.run("FFSSS");
  settings.failure_rate_ppm = 300'000;
  w.publish(settings);
  EXPECT_EQ(w.state(), BreakerState::Closed);
  w.run("S");                                        // 2 of 6: 33 %
  EXPECT_EQ(w.state(), BreakerState::Open);
  const std::int64_t deadline = w.info().word.deadline_ns;
  settings.open_wait_ns = 60'000 * kMs;
  w.publish(settings);
  EXPECT_EQ(w.info().word.deadline_ns, deadline);
}

TEST(BreakerReload, OtherHalfOpenRulesEndTheHalfOpenEpoch) {
  rule::BreakerSettings settings = count_breaker({1, 1, 4});
  BreakerWorld w(settings);
  w.run("F");
  w.pass(1'001 * kMs);
  const auto probe = w.enter();
  ASSERT_EQ(w.state(), BreakerState::HalfOpen);
  settings.probes = 20;
  w.publish(settings);
  EXPECT_EQ(w.state(), BreakerState::Open);
  EXPECT_EQ(w.info().word.reason, rule::BreakerReason::Reloaded);
  EXPECT_EQ(w.finish(probe, Ended::Failure), shm::Recorded::Stale);
  int granted = 0;
  for (int i = 0; i < 30; ++i) granted += w.enter().granted;
  EXPECT_EQ(granted, 20);
}

// covers: C129 (shm)
TEST(BreakerReload, ReloadsOfOtherThingsLeaveEveryByteAsItWas) {
  BreakerWorld w(count_breaker());
  w.run("FFSS");
  const auto bytes = [&] {
    const auto* head = reinterpret_cast<const std::uint8_t*>(w.view().breakers);
    std::vector<std::uint8_t> all(head, head + sizeof(shm::BreakerHead));
    const std::size_t length = std::size_t{w.view().breaker_lines} * shm::kCacheLine;
    all.insert(all.end(), w.view().breaker_memory, w.view().breaker_memory + length);
    return all;
  };
  const auto before = bytes();
  for (std::uint64_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(w.world().publisher().publish({limit("api", {1, kSecond}, 5 + i)}, i));
    w.pass(1);
    while (!w.world().publisher().sweep(64)) {}
  }
  EXPECT_EQ(bytes(), before);
}

TEST(BreakerReload, MoreThanWasReservedIsRefusedWithTheNumberToSet) {
  BreakerWorld w(count_breaker());
  rule::BreakerSettings large = count_breaker({60'000, 5, 2});
  w.world().publisher().set_breakers({large});
  auto refused = w.world().publisher().publish({}, 0);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text().find(
                std::to_string(shm::breaker_memory_needed({large}))), std::string::npos)
      << refused.error().text();
  std::vector<rule::BreakerSettings> many(3, count_breaker());
  many[1].name = "c";
  many[2].name = "d";
  w.world().publisher().set_breakers(many);
  refused = w.world().publisher().publish({}, 0);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().text().find("set capacity.breakers"), std::string::npos);
  EXPECT_EQ(w.run("S"), "S");                        // the old one is whole
}

TEST(BreakerReload, FreedPlacesRestForAnHour) {
  rule::BreakerSettings settings = count_breaker({100, 5, 2});
  WorldOptions options;
  options.breaker_memory = 3 * shm::breaker_memory_needed({settings});
  BreakerWorld w(settings, 2, options);
  const auto resize = [&](std::uint32_t n) {
    settings.window_calls = n;
    w.world().publisher().set_breakers({settings});
    return w.world().publisher().publish({}, 0);
  };
  std::uint32_t n = 101;
  Result<shm::PublishReport> last = resize(n);
  while (last) last = resize(++n);
  EXPECT_EQ(last.error().code(), Errc::Busy) << last.error().text();
  w.pass(shm::kBreakerRestNs + 1);
  EXPECT_TRUE(resize(n));
}

}  // namespace
}  // namespace cutwater::test
