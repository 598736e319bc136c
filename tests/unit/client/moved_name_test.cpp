// SPDX-License-Identifier: Apache-2.0
// Names of patterns that get a place of their own while a program is busy with the shared one: the
// next entering asks for the name again, and what is out goes back to where it was taken.
#include <optional>

#include <cutwater/breaker.hpp>
#include <cutwater/bulkhead.hpp>
#include <cutwater/enter.hpp>

#include "shm/breaker/breaker.hpp"
#include "shm/bulkhead/bulkhead.hpp"
#include "shm/publisher.hpp"
#include "unit/client/client_fixture.hpp"

namespace cutwater::test {
namespace {

constexpr char kPatterns[] =
    "breakers:\n"
    "  \"two-*\": {sliding-window-type: COUNT_BASED, sliding-window-size: 2, max-instances: 2,\n"
    "    minimum-number-of-calls: 2, wait-duration-in-open-state: 1s,\n"
    "    permitted-number-of-calls-in-half-open-state: 1, idle: 3s}\n"
    "bulkheads:\n"
    "  \"two-*\": {max-concurrent-calls: 1, max-instances: 2, idle: 3s}\n";

class MovedName : public InMemory {
 protected:
  void SetUp() override {
    start(kPatterns);
    for (const char* name : {"two-1", "two-2"}) {
      ASSERT_TRUE(client->bulkhead(name));
      ASSERT_TRUE(client->breaker(name));
    }
    gate.emplace(client->bulkhead("two-3").value());
    call.emplace(client->breaker("two-3").value());
  }
  /// Whoever owns the memory gives the places of two-1 to others.
  void make_room() {
    clock.advance(10s);
    const shm::BulkheadRef place = shm::find_bulkhead(view(), "two-1");
    const shm::BreakerRef breaker = shm::find_breaker(view(), "two-1");
    const auto made = client->core().renewal()->with_publisher([&](shm::Publisher& publisher) {
      return publisher.make_room({.breakers = {{breaker.index, breaker.incarnation}},
                                  .bulkheads = {{place.index, place.incarnation}}});
    });
    ASSERT_TRUE(made) << made.error().text();
    clock.advance(1s);
    ASSERT_EQ(shm::find_bulkhead(view(), "two-1").index, shm::kNoLine);
  }
  std::uint32_t in(const char* name) {
    shm::BulkheadInfo info;
    const bool there =
        shm::read_bulkhead(view(), shm::find_bulkhead(view(), name).index, info);
    return there ? info.in_use : 0;
  }
  std::uint64_t stale() {
    std::uint64_t sum = 0;
    for (std::uint32_t i = 0; i < view().bulkhead_count; ++i) {
      sum += shm::sum_bulkhead_counters(view(), i).of(shm::BulkheadCounter::Stale);
    }
    return sum;
  }

  std::optional<Bulkhead> gate;
  std::optional<Breaker> call;
};

TEST_F(MovedName, WhoIsBusyWithTheSharedPlaceLeavesItAtItsNextEntering) {
  Placed held = gate->try_enter();
  ASSERT_TRUE(held);
  ASSERT_EQ(in("two-*"), 1U) << "nothing was left for two-3";
  make_room();
  // Back to back: nothing lies between the two but the change.
  held->leave();
  held = gate->try_enter();
  ASSERT_TRUE(held);
  EXPECT_EQ(in("two-*"), 0U);
  EXPECT_EQ(in("two-3"), 1U);
  // So do those who were never there: one call of the name at a time.
  EXPECT_FALSE(gate->try_enter());
  EXPECT_FALSE(client->bulkhead("two-3").value().try_enter());
  EXPECT_FALSE(client->enter({.bulkhead = &*gate}));
  EXPECT_EQ(stale(), 0U);
}

TEST_F(MovedName, APlaceGoesBackWhereItWasTaken) {
  Placed shared = gate->try_enter();
  ASSERT_TRUE(shared);
  make_room();
  Placed own = gate->try_enter();
  ASSERT_TRUE(own);
  EXPECT_EQ(in("two-*"), 1U);
  EXPECT_EQ(in("two-3"), 1U);
  shared->leave();
  EXPECT_EQ(in("two-*"), 0U);
  EXPECT_EQ(in("two-3"), 1U);
  own->leave();
  EXPECT_EQ(in("two-3"), 0U);

  for (int i = 0; i < 3; ++i) {                      // and stays right, whichever way it goes
    EXPECT_TRUE(client->enter({.bulkhead = &*gate}));
    EXPECT_TRUE(gate->try_enter());
    EXPECT_TRUE(gate->enter());
  }
  EXPECT_EQ(in("two-3"), 0U);
  EXPECT_EQ(stale(), 0U);
}

TEST_F(MovedName, AnEntryGoesBackWhereItWasTaken) {
  {
    Entry shared = client->enter({.breaker = &*call, .bulkhead = &*gate});
    ASSERT_TRUE(shared) << shared.text();
    make_room();
    Entry own = client->enter({.breaker = &*call, .bulkhead = &*gate});
    ASSERT_TRUE(own) << own.text();
    EXPECT_EQ(in("two-*"), 1U);
    shared = Entry();
    EXPECT_EQ(in("two-*"), 0U);
    EXPECT_EQ(in("two-3"), 1U);
  }
  EXPECT_EQ(in("two-3"), 0U);
  EXPECT_EQ(stale(), 0U);
}

TEST_F(MovedName, AProbeReportsToTheBreakerThatLetItOut) {
  for (int i = 0; i < 2; ++i) call->try_enter()->failed("timeout");
  ASSERT_EQ(call->state(), BreakerStatus::Open);
  clock.advance(2s);
  Entered probe = call->try_enter();
  ASSERT_TRUE(probe);
  ASSERT_TRUE(probe->is_probe());
  make_room();

  ASSERT_TRUE(call->try_enter()) << "one of its own, which is closed";
  EXPECT_EQ(call->state(), BreakerStatus::Closed);
  probe->failed("timeout");

  EXPECT_EQ(call->state(), BreakerStatus::Closed);
  shm::BreakerInfo info;
  ASSERT_TRUE(shm::read_breaker(view(), shm::find_breaker(view(), "two-*").index, info));
  EXPECT_EQ(info.word.state, rule::BreakerState::Open);
}

TEST_F(MovedName, ACallThatEndsAfterTheChangeKeepsNobodyAtTheSharedBreaker) {
  Entered out = call->try_enter();
  ASSERT_TRUE(out);
  make_room();
  out->succeeded();
  const std::uint32_t shared = shm::find_breaker(view(), "two-*").index;
  const auto before = shm::sum_breaker_counters(view(), shared).of(shm::BreakerCounter::Success);
  call->try_enter()->succeeded();
  EXPECT_EQ(shm::sum_breaker_counters(view(), shared).of(shm::BreakerCounter::Success), before);
  const std::uint32_t own = shm::find_breaker(view(), "two-3").index;
  ASSERT_NE(own, shm::kNoLine);
  EXPECT_EQ(shm::sum_breaker_counters(view(), own).of(shm::BreakerCounter::Success), 1U);
}

}  // namespace
}  // namespace cutwater::test
