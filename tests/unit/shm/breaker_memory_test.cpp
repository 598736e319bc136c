// SPDX-License-Identifier: Apache-2.0
// Breakers in a memory that takes another's place, and what verify finds planted in one.
#include "shm/memory_copy.hpp"

#include <cstring>

#include "shm/breaker/story.hpp"
#include "shm/breaker/trips.hpp"
#include "shm/verify.hpp"
#include "unit/shm/breaker_scenes.hpp"

namespace cutwater::test {
namespace {

WorldOptions options_for(const BreakerSettings& s, std::uint32_t breakers = 2) {
  WorldOptions options;
  options.limits = 1;
  options.processes = 6;
  options.events = 64;
  options.breakers = breakers;
  options.breaker_memory = 4 * shm::breaker_memory_needed({s}) + 16'384;
  return options;
}

/// A memory into which `from` moves.
struct Successor {
  explicit Successor(const BreakerWorld& from, const WorldOptions& options)
      : world({}, options), view(world.view()) {
    view.g0 = from.view().g0;
    view.secret = from.view().secret;
  }
  World world;
  shm::View view;
};

std::string found(const shm::View& view) {
  std::string all;
  for (const shm::Finding& one : shm::verify(view).findings) {
    all += one.place + " " + one.text + "\n";
  }
  return all;
}

TEST(BreakerMemory, ASuccessorHasTheTripsItHasRoomForAndWhatTheyDid) {
  BreakerSettings s = count_breaker({4, 2, 1});
  WorldOptions roomy = options_for(s);
  roomy.trips = 5;
  BreakerWorld w(s, 4, roomy);
  for (int i = 0; i < 4; ++i) {
    w.run("FF");
    w.pass(1'001 * kMs);
    w.run("S");
  }
  for (const std::uint32_t room : {0U, 3U, 9U}) {
    WorldOptions options = options_for(s);
    options.trips = room;
    Successor next(w, options);
    ASSERT_TRUE(shm::copy_memory(w.view(), next.view));
    const auto trips = shm::read_trips(next.view, s.name, 10);
    ASSERT_EQ(trips.size(), std::min(room, 4U));
    EXPECT_TRUE(room == 0 || trips[0].number == 3U);
    EXPECT_EQ(found(next.view), "");
    shm::BreakerFigures here, there;
    const std::uint32_t index = shm::find_breaker(next.view, s.name).index;
    shm::read_breaker_figures(w.view(), w.ref().index, here);
    shm::read_breaker_figures(next.view, index, there);
    EXPECT_EQ(std::memcmp(here.moves, there.moves, sizeof here.moves), 0);
    EXPECT_EQ(here.time_ns[1], there.time_ns[1]);
    EXPECT_GT(there.time_ns[1], 4'000 * kMs);
  }
}

TEST(BreakerMemory, ASuccessorHasStateWindowProbesUsersAndCounters) {
  BreakerSettings s = count_breaker({10, 10, 2});
  s.min_processes = rule::kMinProcessesAuto;
  BreakerWorld w(s, 4);
  w.run("SFSFSFSFS");
  Successor closed(w, options_for(s));
  ASSERT_TRUE(shm::check_fits(w.view(), closed.view));
  ASSERT_TRUE(shm::copy_memory(w.view(), closed.view));
  EXPECT_EQ(found(closed.view), "");
  const shm::BreakerRef there = shm::find_breaker(closed.view, s.name);
  shm::BreakerInfo info;
  ASSERT_TRUE(shm::read_breaker(closed.view, there.index, info));
  EXPECT_EQ(info.window.calls, 9U);
  EXPECT_EQ(info.window.failures, 4U);
  EXPECT_EQ(info.users, 4U);
  EXPECT_EQ(shm::sum_breaker_counters(closed.view, there.index).of(BreakerCounter::Failure), 4U);
  // The tenth call opens there as it would have here.
  const BreakerEntry call = shm::enter_breaker(closed.view, there, w.caller(1), 0);
  shm::finish_breaker(closed.view, there, {}, call.call, {.kind = Ended::Failure});
  ASSERT_TRUE(shm::read_breaker(closed.view, there.index, info));
  EXPECT_EQ(info.word.state, BreakerState::Open);
  EXPECT_EQ(info.word.epoch, 2U);
}

TEST(BreakerMemory, AHeldProbeIsHeldInTheSuccessorUntilItsDeadline) {
  BreakerSettings s = count_breaker({4, 4, 1});
  s.probe_timeout_ns = 500'000'000;
  BreakerWorld w(s);
  w.run("FFFF");
  w.pass(1'001 * kMs);
  ASSERT_TRUE(w.enter(2).granted);
  Successor next(w, options_for(s));
  ASSERT_TRUE(shm::copy_memory(w.view(), next.view));
  const shm::BreakerRef there = shm::find_breaker(next.view, s.name);

  const BreakerEntry refused = shm::enter_breaker(next.view, there, {}, 0);
  EXPECT_EQ(refused.reason, Reason::Probing);
  EXPECT_EQ(refused.retry_after_ns, 500 * kMs);
  next.world.pass(500 * kMs);
  EXPECT_EQ(shm::enter_breaker(next.view, there, {}, 0).state, BreakerState::Open);
}

TEST(BreakerMemory, AStateSetByHandGoesOverWithItsExpiry) {
  BreakerWorld w(count_breaker());
  shm::steer_breaker(w.view(), w.ref(), Steer::ForceOpen, 60'000 * kMs, 1);
  Successor next(w, options_for(count_breaker()));
  ASSERT_TRUE(shm::copy_memory(w.view(), next.view));

  const shm::BreakerRef there = shm::find_breaker(next.view, "b");
  const BreakerEntry refused = shm::enter_breaker(next.view, there, {}, 0);
  EXPECT_EQ(refused.state, BreakerState::ForcedOpen);
  EXPECT_EQ(refused.retry_after_ns, 60'000 * kMs);
}

TEST(BreakerMemory, ASuccessorGoesOnUnderItsOwnPublisher) {
  const BreakerSettings s = count_breaker({10, 5, 2});
  BreakerWorld w(s);
  w.run("SSFF");
  Successor next(w, options_for(s));
  ASSERT_TRUE(shm::copy_memory(w.view(), next.view));
  shm::Publisher publisher(next.view);
  BreakerSettings wider = s;
  wider.window_calls = 40;

  publisher.set_breakers({wider});
  ASSERT_TRUE(publisher.publish({}, 0));

  shm::BreakerInfo info;
  ASSERT_TRUE(shm::read_breaker(next.view, shm::find_breaker(next.view, "b").index, info));
  EXPECT_EQ(info.window.calls, 4U);
  EXPECT_EQ(info.window.failures, 2U);
}

TEST(BreakerMemory, ASuccessorTooSmallIsRefusedWithTheNumberToSet) {
  const BreakerSettings s = count_breaker();
  BreakerWorld w(s);
  WorldOptions fewer = options_for(s, 0);
  Successor none(w, fewer);
  const auto places = shm::check_fits(w.view(), none.view);
  ASSERT_FALSE(places);
  EXPECT_NE(places.error().text().find("capacity.breakers"), std::string::npos);
  WorldOptions small = options_for(s);
  small.breaker_memory = 64;
  Successor tight(w, small);
  const auto bytes = shm::check_fits(w.view(), tight.view);
  ASSERT_FALSE(bytes);
  EXPECT_NE(bytes.error().text().find("capacity.breaker-memory"), std::string::npos);
}

// ---- verify -------------------------------------------------------------------------------------

/// The parts of the breaker, to scribble on.
struct Parts {
  explicit Parts(const BreakerWorld& w) {
    const shm::View& view = w.view();
    config = reinterpret_cast<shm::BreakerConfig*>(
                 const_cast<std::uint8_t*>(view.image[view.current() & shm::kCurrentImageBit]) +
                 view.image_breakers_offset) +
             w.ref().index;
    std::uint8_t* const ring = line(view, config->ring);
    cells = reinterpret_cast<Word16*>(ring + sizeof(shm::BreakerRing));
    probes = reinterpret_cast<Word16*>(line(view, config->probe_cells));
    users = reinterpret_cast<shm::BreakerUser*>(line(view, config->user_records));
    head = view.breakers + w.ref().index;
  }
  static std::uint8_t* line(const shm::View& view, std::uint32_t at) {
    return view.breaker_memory + std::size_t{at} * shm::kCacheLine;
  }
  shm::BreakerConfig* config;
  Word16* cells;
  Word16* probes;
  shm::BreakerUser* users;
  shm::BreakerHead* head;
};

TEST(BreakerVerify, SaysNothingAboutAnHonestBreaker) {
  for (const bool time : {false, true}) {
    BreakerSettings s = time ? time_breaker(3, 4) : count_breaker({4, 4, 2});
    s.min_processes = rule::kMinProcessesAuto;
    BreakerWorld w(s);
    EXPECT_EQ(found(w.view()), "");
    for (int i = 0; i < 60; ++i) {
      w.run(i % 3 == 0 ? "FSF" : "SFS");
      w.pass(i % 7 == 0 ? 1'500 * kMs : 10 * kMs);
      w.enter(static_cast<std::uint32_t>(i % 4));
      ASSERT_EQ(found(w.view()), "") << i << (time ? " time" : " count");
    }
  }
}

TEST(BreakerVerify, FindsWhatIsPlantedInTheStateWord) {
  BreakerWorld w(count_breaker());
  Parts parts(w);
  const std::uint64_t good = parts.head->state.lo;
  parts.head->state.lo = good | 7;
  EXPECT_NE(found(w.view()).find("breaker 0 is in a state that does not exist"), std::string::npos);
  parts.head->state.lo = good | std::uint64_t{1} << 30;
  EXPECT_NE(found(w.view()).find("its reserved bits are not 0"), std::string::npos);
  parts.head->state.lo = good | std::uint64_t{63} << 8;
  EXPECT_NE(found(w.view()).find("a reason that does not exist"), std::string::npos);
  parts.head->state.lo = (good & ~shm::kStateMask) | 1;
  EXPECT_NE(found(w.view()).find("is open for ever"), std::string::npos);
}

TEST(BreakerVerify, FindsWhatIsPlantedInACountWindow) {
  BreakerWorld w(count_breaker({10, 10, 2}));
  w.run("SFSFSF");
  Parts parts(w);
  const Word16 good = parts.cells[3];
  shm::CountCell cell = shm::unpack_count(good);
  cell.failures += 5;
  parts.cells[3] = shm::pack_count(cell);
  EXPECT_NE(found(w.view()).find("counts more than one"), std::string::npos);
  cell = shm::unpack_count(good);
  cell.n = 9;
  parts.cells[3] = shm::pack_count(cell);
  EXPECT_NE(found(w.view()).find("has a wrong number"), std::string::npos);
  parts.cells[3] = good;
  parts.cells[6].lo += std::uint64_t{1} << 28 << 8;
  EXPECT_NE(found(w.view()), "");
}

TEST(BreakerVerify, FindsWhatIsPlantedInATimeWindow) {
  BreakerWorld w(time_breaker(3, 10));
  w.run("SFSF");
  w.pass(1'000 * kMs);
  w.run("S");
  Parts parts(w);
  const std::uint32_t slot = shm::slot_of(w.view().clock.now(), parts.config->numbers.slot_ns);
  Word16& cell = parts.cells[slot & parts.config->ring_mask];
  const Word16 good = cell;
  shm::TimeCell bad = shm::unpack_time(good);
  bad.failures += 100;
  cell = shm::pack_time(bad);
  EXPECT_NE(found(w.view()).find("more failures than calls"), std::string::npos);
  bad = shm::unpack_time(good);
  bad.slot += 1;
  cell = shm::pack_time(bad);
  EXPECT_NE(found(w.view()).find("lies in a wrong place"), std::string::npos);
  bad.slot = slot + 2 * (parts.config->ring_mask + 1);
  cell = shm::pack_time(bad);
  EXPECT_NE(found(w.view()).find("of the future"), std::string::npos);
}

TEST(BreakerVerify, FindsWhatIsPlantedInAProbeCellAndAUser) {
  BreakerWorld w(count_breaker({4, 4, 1}));
  w.run("FFFF");
  w.pass(1'001 * kMs);
  ASSERT_TRUE(w.enter().granted);
  Parts parts(w);
  const Word16 good = parts.probes[0];
  const auto plant = [&](auto change) {
    shm::ProbeCell cell = shm::unpack_probe(good);
    change(cell);
    parts.probes[0] = shm::pack_probe(cell);
    return found(w.view());
  };
  EXPECT_NE(plant([](auto& c) { c.state = static_cast<shm::ProbeState>(3); })
                .find("probe 0 is in a state that does not exist"), std::string::npos);
  EXPECT_NE(plant([](auto& c) { c.epoch += 1; }).find("of an epoch to come"), std::string::npos);
  EXPECT_NE(plant([](auto& c) { c.row = 9'999; }).find("a row that does not exist"),
            std::string::npos);
  EXPECT_NE(plant([](auto& c) { c.deadline_us += 3'600'000'000; })
                .find("held for longer than a probe can be"), std::string::npos);
  parts.probes[0] = good;
  EXPECT_EQ(found(w.view()), "");
  parts.users[2].owner = shm::pack_owner(9'999, 1, 0);
  EXPECT_NE(found(w.view()).find("user 2 is a row that does not exist"), std::string::npos);
}

TEST(BreakerVerify, FindsPlacesOutsideTheMemory) {
  BreakerWorld w(count_breaker());
  Parts parts(w);
  const auto plant = [&](std::uint32_t& field) {
    const std::uint32_t good = field;
    field = 0x00ff'ffff;
    const std::string text = found(w.view());
    field = good;
    return text;
  };
  EXPECT_NE(plant(parts.config->ring).find("its ring lies outside"), std::string::npos);
  EXPECT_NE(plant(parts.config->probe_cells).find("its probe cells lie outside"),
            std::string::npos);
  EXPECT_NE(plant(parts.config->user_records).find("its user records lie outside"),
            std::string::npos);
}

// ---- Retry-After and flapping -------------------------------------------------------------------

Recorded fail_with_retry_after(BreakerWorld& w, std::int64_t retry_after_ns) {
  const BreakerEntry call = w.enter();
  return shm::finish_breaker(w.view(), w.ref(), w.caller(), call.call,
                             {.kind = Ended::Failure, .retry_after_ns = retry_after_ns});
}

TEST(BreakerDamage, AStateThatDoesNotExistIsClosedWithAnEmptyWindow) {
  for (const auto window : {rule::WindowType::CountBased, rule::WindowType::TimeBased}) {
    BreakerSettings s = count_breaker({8, 8, 1});
    s.window_type = window;
    BreakerWorld w(s);
    w.run("FSF");
    w.view().breakers[w.ref().index].state.lo |= shm::kStateMask;

    EXPECT_TRUE(w.enter().granted);

    EXPECT_EQ(w.state(), BreakerState::Closed);
    EXPECT_EQ(w.info().word.epoch, 2U);
    EXPECT_EQ(w.info().window.calls, 0U);
    w.run("F");
    EXPECT_EQ(w.info().window.calls, 1U);
  }
}

TEST(BreakerRetryAfter, OpensForItWhereThatIsConfigured) {
  BreakerSettings s = count_breaker();
  BreakerWorld off(s);
  fail_with_retry_after(off, 7'000 * kMs);
  EXPECT_EQ(off.state(), BreakerState::Closed);

  s.open_on_retry_after = true;
  BreakerWorld on(s);
  fail_with_retry_after(on, -1);
  EXPECT_EQ(on.state(), BreakerState::Closed);
  EXPECT_EQ(fail_with_retry_after(on, 7'000 * kMs), Recorded::Counted);
  EXPECT_EQ(on.state(), BreakerState::Open);
  EXPECT_EQ(on.info().word.reason, BreakerReason::Hint);
  EXPECT_EQ(on.info().word.attempts, 0U);
  EXPECT_EQ(on.enter().retry_after_ns, 7'000 * kMs + 1);   // the edge is exclusive
}

TEST(BreakerRetryAfter, IsCutAtMaxOpenForAndHoldsForProbesToo) {
  BreakerSettings s = count_breaker({4, 4, 1});
  s.open_on_retry_after = true;
  s.max_open_for_ns = 2'000'000'000;
  BreakerWorld w(s);
  w.run("FFFF");
  w.pass(1'001 * kMs);

  fail_with_retry_after(w, 3'600'000 * kMs);

  EXPECT_EQ(w.state(), BreakerState::Open);
  EXPECT_EQ(w.enter().retry_after_ns, 2'000 * kMs + 1);
}

TEST(BreakerFlapping, TheFourthOpeningWithinTenMinutesIsToldOnce) {
  BreakerWorld w(count_breaker({4, 4, 1}));
  const auto open_and_close = [&] {
    trip(w, w.now() / kMs + 1);
    w.pass(1'001 * kMs);
    w.run("S");
    ASSERT_EQ(w.state(), BreakerState::Closed);
  };
  for (int i = 0; i < 3; ++i) open_and_close();
  EXPECT_EQ(w.events(EventKind::BreakerFlapping).size(), 0U);
  EXPECT_FALSE(w.info().flapping);

  for (int i = 0; i < 4; ++i) open_and_close();
  EXPECT_EQ(w.events(EventKind::BreakerFlapping).size(), 1U);
  EXPECT_TRUE(w.info().flapping);

  w.pass(601'000 * kMs);                             // calm: then it is told anew
  EXPECT_FALSE(w.info().flapping);
  for (int i = 0; i < 3; ++i) open_and_close();
  EXPECT_FALSE(w.info().flapping);
  open_and_close();
  EXPECT_EQ(w.events(EventKind::BreakerFlapping).size(), 2U);
}

TEST(BreakerFlapping, OpeningsFarApartOrByHandAreNone) {
  BreakerWorld w(count_breaker({4, 4, 1}));
  for (int i = 0; i < 8; ++i) {
    trip(w, w.now() / kMs + 1);
    w.pass(1'001 * kMs);
    w.run("S");
    w.pass(210'000 * kMs);
  }
  for (int i = 0; i < 8; ++i) {
    shm::steer_breaker(w.view(), w.ref(), Steer::ToOpen, 0, 1);
    shm::steer_breaker(w.view(), w.ref(), Steer::Reset, 0, 1);
  }
  EXPECT_EQ(w.events(EventKind::BreakerFlapping).size(), 0U);
}

}  // namespace
}  // namespace cutwater::test
