// SPDX-License-Identifier: Apache-2.0
// T23, T20: bulkheads in a memory that takes another's place, and what verify finds in them.
#include "shm/bulkhead/layout.hpp"
#include "shm/memory_copy.hpp"
#include "shm/verify.hpp"
#include "stress/bulkhead_world.hpp"

namespace cutwater::test {
namespace {

using shm::BulkheadEntry;
using State = shm::LineLook::State;

/// A fresh memory of this capacity, as a daemon would supersede the world's by.
class Successor {
 public:
  Successor(BulkheadWorld& w, std::uint32_t cells) {
    shm::SegmentOptions options;
    options.capacity = {.keys = 16, .limits = 1, .processes = 6, .stripes = 3, .events = 64,
                        .overrides = 4, .tops = 1, .calendars = 2, .breakers = 0,
                        .breaker_memory = 0, .trips = 2, .bulkheads = 3,
                        .bulkhead_cells = cells, .waiters = 40};
    options.clock = shm::ClockKind::Stepped;
    segment_ = std::make_unique<shm::Segment>(
        shm::Segment::create_private(options).value());
    fits = shm::check_fits(w.view(), view());
    EXPECT_TRUE(!fits.ok() || shm::copy_memory(w.view(), view()).ok());
  }
  const shm::View& view() const { return segment_->view(); }
  Result<void> fits;

 private:
  std::unique_ptr<shm::Segment> segment_;
};

TEST(BulkheadCopy, OneThatWasTakenOutComesAlongWithItsHolders) {
  BulkheadWorld w(waiting_bulkhead(3), 4, {.bulkhead_cells = 32, .waiters = 32});
  const shm::BulkheadRef before = w.ref();
  const BulkheadEntry held = w.enter(0);
  w.world().publisher().set_bulkheads({});
  ASSERT_TRUE(w.world().publisher().publish({}, 0).ok());
  Successor next(w, 8);
  ASSERT_TRUE(next.fits.ok()) << next.fits.error().text();
  shm::Publisher publisher(next.view());
  publisher.set_bulkheads({waiting_bulkhead(3)});
  ASSERT_TRUE(publisher.publish({}, 0).ok());

  const shm::BulkheadRef ref = shm::find_bulkhead(next.view(), "b");
  shm::BulkheadInfo info;
  ASSERT_TRUE(shm::read_bulkhead(next.view(), ref.index, info));
  EXPECT_EQ(info.in_use, 1U);
  EXPECT_EQ(shm::leave_bulkhead(next.view(), before, w.caller(0), held.place),
            shm::Left::Returned);
  ASSERT_TRUE(shm::read_bulkhead(next.view(), ref.index, info));
  EXPECT_EQ(info.in_use, 0U);
}

TEST(BulkheadCopy, InstancesOfAPatternGoOverWithTheirNames) {
  rule::BulkheadSettings pattern = waiting_bulkhead(2);
  pattern.name = "b*";
  pattern.max_instances = 2;
  BulkheadWorld w(pattern, 4, {.bulkheads = 3, .bulkhead_cells = 32, .waiters = 40});
  const shm::BulkheadRef made = shm::resolve_bulkhead(w.view(), "bank", {}).ref;
  const BulkheadEntry held = shm::enter_bulkhead(w.view(), made, w.caller(0));
  ASSERT_TRUE(held.granted);
  Successor next(w, 8);
  ASSERT_TRUE(next.fits.ok()) << next.fits.error().text();

  const shm::BulkheadRef there = shm::find_bulkhead(next.view(), "bank");
  EXPECT_EQ(there.index, made.index);
  EXPECT_EQ(there.incarnation, made.incarnation);
  shm::BulkheadInfo info;
  ASSERT_TRUE(shm::read_bulkhead(next.view(), there.index, info));
  EXPECT_STREQ(info.name, "bank");
  EXPECT_EQ(info.in_use, 1U);
  EXPECT_FALSE(shm::resolve_bulkhead(next.view(), "back", {}).shared);
  EXPECT_TRUE(shm::resolve_bulkhead(next.view(), "bass", {}).shared);
}

TEST(BulkheadCopy, HeldPlacesGoOverUnderTheirNumbers) {
  BulkheadWorld w(waiting_bulkhead(3), 4, {.bulkhead_cells = 32, .waiters = 32});
  const BulkheadEntry first = w.enter(0), second = w.enter(1), third = w.enter(2);
  w.pass(200 * kMillisecond);
  const auto line = w.join(3);
  w.leave(third, 2);                                 // handed to 3, which has not taken it
  Successor next(w, 8);
  ASSERT_TRUE(next.fits.ok()) << next.fits.error().text();

  const shm::BulkheadRef ref = shm::find_bulkhead(next.view(), "b");
  shm::BulkheadInfo info;
  ASSERT_TRUE(shm::read_bulkhead(next.view(), ref.index, info));
  EXPECT_EQ(info.in_use, 2U);
  EXPECT_EQ(info.waiting, 0U);
  EXPECT_EQ(info.oldest_ns / kMillisecond, 200);
  EXPECT_EQ(ref.incarnation, w.ref().incarnation);
  const shm::BulkheadCaller caller{w.row(3).index, w.row(3).generation, {}};
  EXPECT_TRUE(shm::enter_bulkhead(next.view(), ref, caller).granted);
  EXPECT_FALSE(shm::enter_bulkhead(next.view(), ref, caller).granted);
  EXPECT_EQ(shm::leave_bulkhead(next.view(), ref, w.caller(0), first.place), shm::Left::Returned);
  EXPECT_EQ(shm::leave_bulkhead(next.view(), ref, w.caller(1), second.place),
            shm::Left::Returned);
  EXPECT_EQ(shm::sum_bulkhead_counters(next.view(), ref.index).of(
                shm::BulkheadCounter::HandedOver), 1U);
  EXPECT_TRUE(shm::verify(next.view()).findings.empty());
  EXPECT_TRUE(line.joined);
}

TEST(BulkheadCopy, WhatDoesNotFitIsNamedWithTheSetting) {
  BulkheadWorld w(waiting_bulkhead(9));
  Successor next(w, 8);
  ASSERT_FALSE(next.fits.ok());
  EXPECT_NE(next.fits.error().text().find("set capacity.bulkhead-cells to at least 9"),
            std::string::npos);
}

TEST(BulkheadCopy, ASupersededMemoryDecidesNothing) {
  BulkheadWorld w(waiting_bulkhead(1));
  const BulkheadEntry held = w.enter(0);
  const auto line = w.join(1);
  w.view().rules_control->current |= shm::kCurrentSupersededBit;
  EXPECT_EQ(shm::enter_bulkhead(w.view(), {0, 1}, w.caller(2)).reason, Reason::Degraded);
  EXPECT_EQ(shm::poll_line(w.view(), {0, 1}, w.caller(1), line.wait).state, State::Gone);
  EXPECT_EQ(shm::leave_bulkhead(w.view(), {0, 1}, w.caller(0), held.place), shm::Left::Moved);
}

TEST(BulkheadVerify, FindsWhatWasPlanted) {
  BulkheadWorld w(waiting_bulkhead(3));
  static_cast<void>(w.enter(0));
  EXPECT_EQ(w.world().verify(), "");
  const Snapshot good = w.world().save();
  const auto config = [&]() -> shm::BulkheadConfig& {
    return reinterpret_cast<shm::BulkheadConfig*>(
        const_cast<std::uint8_t*>(w.view().image[w.view().current() & 1]) +
        w.view().image_bulkheads_offset)[0];
  };
  struct Planted { const char* text; std::function<void()> plant; };
  const Planted all[] = {
      {"in a state that does not exist", [&] { w.view().bulkhead_cells[1] = 3; }},
      {"held by row 60", [&] { w.view().bulkhead_cells[1] = shm::pack_held({60, 1}, 1); }},
      {"that is over", [&] { w.view().bulkhead_cells[1] = shm::pack_held({2, 99}, 1); }},
      {"handed to a place in line", [&] { w.view().bulkhead_cells[1] = shm::pack_handed(1, 99); }},
      {"place in line 0 belongs to row 77",
       [&] {
         w.view().waiters[0].word =
             shm::pack_waiter({shm::WaiterState::Waiting, 77, 1, 1, 1});
       }},
      {"places lie outside", [&] { config().cells[0].first = 4'000'000'000u; }},
      {"fewer places than its limit", [&] { config().limit = 4'000; }},
  };
  for (const Planted& one : all) {
    one.plant();
    EXPECT_NE(w.world().verify().find(one.text), std::string::npos)
        << one.text << "\n" << w.world().verify();
    w.tick();                                        // steps within bounds, whatever is there
    static_cast<void>(w.enter(1));
    w.world().restore(good);
  }
}

}  // namespace
}  // namespace cutwater::test
