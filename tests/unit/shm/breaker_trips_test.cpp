// SPDX-License-Identifier: Apache-2.0
// Why a breaker opened, and what it did since the start: records and figures for people.
#include "shm/breaker/trips.hpp"

#include <cstring>

#include "rule/breaker_class.hpp"
#include "shm/breaker/story.hpp"
#include "stress/breaker_world.hpp"

namespace cutwater::test {
namespace {

using rule::BreakerReason;
using rule::BreakerState;
using shm::BreakerCounter;
using shm::BreakerTrip;
using shm::Ended;

constexpr std::int64_t kMs = kMillisecond;

/// A failure of this class by that process, after `took`.
void fail(BreakerWorld& w, std::uint32_t process, std::string_view name,
          std::int64_t took = kMs) {
  const shm::BreakerEntry entry = w.enter(process);
  ASSERT_TRUE(entry.granted);
  w.pass(took);
  shm::BreakerReport report;
  report.kind = Ended::Failure;
  report.failure_class = rule::class_counter(name);
  report.duration_ns = took;
  shm::finish_breaker(w.view(), w.ref(), w.caller(process), entry.call, report);
}

WorldOptions with_trips(std::uint32_t trips) {
  WorldOptions options;
  options.trips = trips;
  return options;
}

TEST(BreakerTrips, TellWhatOpenedItAndWhoContributed) {
  rule::BreakerSettings settings = count_breaker({10, 5, 1});
  settings.consecutive_failures = 8;
  BreakerWorld w(settings, 3);
  w.run("S");
  fail(w, 0, "timeout", 30 * kMs);
  fail(w, 1, "timeout", 30 * kMs);
  fail(w, 1, "http-503");
  const std::int64_t before = w.view().clock.now();
  fail(w, 1, "timeout", 30 * kMs);

  const auto trips = shm::read_trips(w.view(), w.info().name, 10);

  ASSERT_EQ(trips.size(), 1U);
  const BreakerTrip& trip = trips[0];
  EXPECT_EQ(trip.name, w.info().name);
  EXPECT_EQ(trip.epoch, 2U);
  EXPECT_EQ(trip.from, BreakerState::Closed);
  EXPECT_EQ(trip.reason, BreakerReason::FailureRate);
  EXPECT_EQ(trip.attempts, 1U);
  EXPECT_EQ(trip.t_ns, before + 30 * kMs);
  EXPECT_EQ(trip.until_ns, trip.t_ns + 1'000 * kMs);
  EXPECT_EQ(trip.window.calls, 5U);
  EXPECT_EQ(trip.window.failures, 4U);
  EXPECT_EQ(trip.window.run, 4U);
  EXPECT_EQ(trip.looked_at, 4U);
  ASSERT_EQ(trip.classes.size(), 2U);
  EXPECT_EQ(trip.classes[0].name, "timeout");
  EXPECT_EQ(trip.classes[0].failures, 3U);
  EXPECT_EQ(trip.classes[1].name, "http-5xx");
  EXPECT_EQ(trip.classes[1].failures, 1U);
  ASSERT_EQ(trip.contributors.size(), 2U);
  EXPECT_EQ(trip.contributors[0].row, w.row(1).index);
  EXPECT_EQ(trip.contributors[0].failures, 3U);
  EXPECT_EQ(trip.contributors[1].row, w.row(0).index);
  EXPECT_EQ(trip.contributors[1].failures, 1U);
  EXPECT_EQ(trip.numbers.minimum, 5U);
  EXPECT_EQ(trip.durations, 5U) << "the call that opened it is one of them";
  EXPECT_GE(trip.p99_ns, 30 * kMs);
  EXPECT_LE(trip.p99_ns, 34 * kMs);
  EXPECT_EQ(trip.durations_since_ns, 0);
}

TEST(BreakerTrips, AreNewestFirstAndTheLastOfTheReservedOnes) {
  BreakerWorld w(count_breaker({4, 2, 1}), 1, with_trips(3));
  for (int i = 0; i < 5; ++i) {
    w.run("FF");
    w.pass(1'001 * kMs);
    w.run("S");
    ASSERT_EQ(w.state(), BreakerState::Closed);
  }
  const auto trips = shm::read_trips(w.view(), "", 10);
  ASSERT_EQ(trips.size(), 3U);
  EXPECT_EQ(trips[0].number, 4U);
  EXPECT_EQ(trips[2].number, 2U);
  EXPECT_EQ(shm::read_trips(w.view(), "", 1).size(), 1U);
  EXPECT_TRUE(shm::read_trips(w.view(), "another", 10).empty());
}

TEST(BreakerTrips, OnlyWhatDecidedByItselfIsOne) {
  BreakerWorld w(count_breaker({4, 2, 1}));
  shm::steer_breaker(w.view(), w.ref(), shm::Steer::ToOpen, 0, 0);
  EXPECT_TRUE(shm::read_trips(w.view(), "", 10).empty());
  w.pass(1'001 * kMs);
  w.run("F");                                        // half-open failed: the trip was before
  ASSERT_EQ(w.state(), BreakerState::Open);
  EXPECT_TRUE(shm::read_trips(w.view(), "", 10).empty());
}

TEST(BreakerTrips, MemoryWithoutRoomForThemOpensAllTheSame) {
  BreakerWorld w(count_breaker({4, 2, 1}), 1, with_trips(0));
  w.run("FF");
  EXPECT_EQ(w.state(), BreakerState::Open);
  EXPECT_TRUE(shm::read_trips(w.view(), "", 10).empty());
}

TEST(BreakerTrips, ATornRecordIsToldByItsChecksumAndSkipped) {
  BreakerWorld w(count_breaker({4, 2, 1}), 1, with_trips(3));
  for (int i = 0; i < 2; ++i) {
    w.run("FF");
    w.pass(1'001 * kMs);
    w.run("S");
  }
  ASSERT_EQ(shm::read_trips(w.view(), "", 10).size(), 2U);
  EXPECT_EQ(shm::check_trip(w.view(), 0), "");
  auto* const bytes = reinterpret_cast<unsigned char*>(&w.view().trips[0]);
  for (const std::size_t at : {std::size_t{8}, std::size_t{45}, sizeof(shm::TripRecord) - 9}) {
    bytes[at] ^= 0x10;
    const auto trips = shm::read_trips(w.view(), "", 10);
    ASSERT_EQ(trips.size(), 1U) << at;
    EXPECT_EQ(trips[0].number, 1U);
    EXPECT_EQ(shm::check_trip(w.view(), 0), "its checksum is wrong");
    bytes[at] ^= 0x10;
  }
  w.view().trips[0].number += 1;                     // a number of another place
  EXPECT_EQ(shm::read_trips(w.view(), "", 10).size(), 1U);
  EXPECT_EQ(shm::check_trip(w.view(), 0), "holds the number of another record");
  w.view().trips[0].number += 2;
  EXPECT_EQ(shm::check_trip(w.view(), 0), "holds a number that was never given out");
}

TEST(BreakerTrips, MoreContributorsThanPlacesAreLeftOut) {
  WorldOptions options = with_trips(2);
  options.processes = 12;
  BreakerWorld w(count_breaker({20, 12, 1}), 10, options);
  for (std::uint32_t process = 0; process < 10; ++process) fail(w, process, "timeout");
  fail(w, 3, "timeout");
  fail(w, 3, "timeout");
  const auto trips = shm::read_trips(w.view(), "", 1);
  ASSERT_EQ(trips.size(), 1U);
  EXPECT_EQ(trips[0].looked_at, 12U);
  EXPECT_EQ(trips[0].contributors.size(), shm::kTripRows);
  EXPECT_EQ(trips[0].contributors[0].row, w.row(3).index);
}

TEST(BreakerFigures, CountMovesAndTheTimeInEachState) {
  BreakerWorld w(count_breaker({4, 2, 1}));
  w.pass(10 * kMs);
  w.run("FF");                                       // open, 2 ms later
  w.pass(1'100 * kMs);
  const shm::BreakerEntry probe = w.enter();         // half-open
  w.pass(30 * kMs);
  w.finish(probe, Ended::Success);                   // closed
  w.pass(5 * kMs);

  shm::BreakerFigures figures;
  ASSERT_TRUE(shm::read_breaker_figures(w.view(), w.ref().index, figures));

  const auto moves = [&](BreakerState from, BreakerState to, BreakerReason reason) {
    return figures.moves[static_cast<int>(from)][static_cast<int>(to)][static_cast<int>(reason)];
  };
  EXPECT_EQ(moves(BreakerState::Closed, BreakerState::Open, BreakerReason::FailureRate), 1U);
  EXPECT_EQ(moves(BreakerState::Open, BreakerState::HalfOpen, BreakerReason::WaitOver), 1U);
  EXPECT_EQ(moves(BreakerState::HalfOpen, BreakerState::Closed, BreakerReason::ProbesSucceeded),
            1U);
  EXPECT_EQ(moves(BreakerState::Closed, BreakerState::HalfOpen, BreakerReason::ByHand), 0U);
  EXPECT_EQ(figures.time_ns[static_cast<int>(BreakerState::Closed)], 17 * kMs);
  EXPECT_EQ(figures.time_ns[static_cast<int>(BreakerState::Open)], 1'100 * kMs);
  EXPECT_EQ(figures.time_ns[static_cast<int>(BreakerState::HalfOpen)], 30 * kMs);
  EXPECT_EQ(figures.sums.of(BreakerCounter::Failure), 2U);
  EXPECT_FALSE(shm::read_breaker_figures(w.view(), 1000, figures));
}

TEST(BreakerFigures, DurationsSinceTheStartAndInTheLastMinute) {
  BreakerWorld w(count_breaker({100, 100, 1}));
  const std::uint32_t index = w.ref().index;
  for (int i = 0; i < 100; ++i) w.call(Ended::Success, 10 * kMs);
  shm::BreakerFigures figures;
  shm::read_breaker_figures(w.view(), index, figures);
  EXPECT_EQ(figures.total.calls, 100U);
  EXPECT_EQ(figures.total.mean_ns, 10 * kMs);
  EXPECT_EQ(figures.minute.calls, 0U);               // nobody looked yet
  EXPECT_TRUE(shm::look_at_minute(w.view(), index));
  EXPECT_FALSE(shm::look_at_minute(w.view(), index));   // 10 s have not passed

  for (int i = 0; i < 200; ++i) w.call(Ended::Success, i < 2 ? 400 * kMs : 100 * kMs);
  shm::read_breaker_figures(w.view(), index, figures);
  EXPECT_EQ(figures.minute.calls, 200U);
  EXPECT_GE(figures.minute.p50_ns, 100 * kMs);
  EXPECT_LE(figures.minute.p50_ns, 113 * kMs);
  EXPECT_LE(figures.minute.p99_ns, 113 * kMs);       // 198 of 200 are at or below it
  EXPECT_GE(figures.minute.max_ns, 400 * kMs);
  EXPECT_LE(figures.minute.max_ns, 450 * kMs);
  EXPECT_EQ(figures.total.calls, 300U);
  EXPECT_EQ(figures.minute.span_ns, 2 * 400 * kMs + 198 * 100 * kMs);

  for (int i = 0; i < 20; ++i) {                     // the looks of 200 s of quiet
    w.pass(10'000 * kMs);
    EXPECT_TRUE(shm::look_at_minute(w.view(), index));
  }
  shm::read_breaker_figures(w.view(), index, figures);
  EXPECT_EQ(figures.minute.calls, 0U);
  EXPECT_EQ(figures.total.calls, 300U);
}

TEST(BreakerFigures, ALookThatWasNeverFinishedIsNoLook) {
  BreakerWorld w(count_breaker());
  const std::uint32_t index = w.ref().index;
  shm::look_at_minute(w.view(), index);
  w.view().stories[index].minute[0].t_ns = 0;        // its writer was killed
  w.call(Ended::Success);
  shm::BreakerFigures figures;
  shm::read_breaker_figures(w.view(), index, figures);
  EXPECT_EQ(figures.minute.calls, 0U);
  w.view().stories[index].minute[0].t_ns = std::int64_t{1} << 62;   // from the future
  shm::read_breaker_figures(w.view(), index, figures);
  EXPECT_EQ(figures.minute.calls, 0U);
  EXPECT_TRUE(shm::look_at_minute(w.view(), index));
}

}  // namespace
}  // namespace cutwater::test
