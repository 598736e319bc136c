// SPDX-License-Identifier: Apache-2.0
// T23: a memory moves into one of another size and back; every key has what it had.
#include "shm/memory_copy.hpp"

#include <cstring>

#include "shm/counters.hpp"
#include "shm/event_log.hpp"
#include "unit/shm/publish_fixture.hpp"

namespace cutwater::shm {
namespace {

class MemoryCopy : public PublishTest {
 protected:
  static constexpr int kKeys = 24;

  /// A memory of the same secret and first groups, k times as large.
  struct Other {
    std::unique_ptr<Segment> segment;
    std::unique_ptr<std::byte[]> table;
    View view;
  };
  Other make(std::uint64_t k, const Capacity& capacity) {
    Other other;
    SegmentOptions options;
    options.capacity = capacity;
    options.clock = ClockKind::Stepped;
    other.segment = std::make_unique<Segment>(Segment::create_private(options).value());
    other.view = other.segment->view();
    other.view.g0 = view().g0;
    other.view.k = k;
    other.view.groups = view().g0 * k;
    other.view.slot_count = other.view.groups * kGroupSlots;
    other.view.secret = view().secret;
    const std::size_t bytes = other.view.slot_count * sizeof(Word16);
    other.table = std::make_unique<std::byte[]>(bytes + 64);
    std::memset(other.table.get(), 0, bytes + 64);
    void* place = other.table.get();
    std::size_t room = bytes + 64;
    other.view.slots = static_cast<Word16*>(std::align(64, bytes, place, room));
    return other;
  }
  static std::vector<std::uint64_t> values(const View& of) {
    std::vector<std::uint64_t> all;
    const LimitHandle handle = resolve(of, "api");
    for (int i = 0; i < kKeys; ++i) {
      DecisionData out;
      const std::string key = "k" + std::to_string(i);
      EXPECT_EQ(look(of, {handle.ref, key_of(handle, key), 1, 0}, out), Outcome::Answered);
      all.push_back(out.reason == Reason::Banned ? 9999 : rule::report_of(out).remaining);
      all.push_back(static_cast<std::uint64_t>(rule::report_of(out).reset_after_ns));
    }
    return all;
  }
  static std::string verified(const View& of) {
    std::string all;
    for (const Finding& found : verify(of).findings) {
      all += found.place + ": " + found.text + "\n";
    }
    return all;
  }
  void fill() {
    auto api = limit("api", {per_minute(10, 10), rule::rate_window(20, 3600'000'000'000, 20)});
    api.overrides = {over("k3", {per_minute(50, 50)}), over("k4", {per_minute(50, 50)}),
                     {.key = "k1*", .pattern = true, .windows = {per_minute(30, 30)}}};
    open({limit("other", {per_minute(1, 1)}), api});
    for (int i = 0; i < kKeys; ++i) {
      take("api", "k" + std::to_string(i), 1 + static_cast<std::uint64_t>(i) % 9);
    }
    const LimitHandle handle = resolve(view(), "api");
    ban(view(), handle.ref, key_of(handle, "k7").hash, view().clock.now() + 60 * kSecond);
    shared_stripe(view()).add(handle.ref.index, LimitCounter::Allowed, 7);
    pass(kSecond);
  }
};

TEST_F(MemoryCopy, OneToThreeGroupsAndBackKeepsEveryKey) {
  fill();
  const auto before = values(view());
  Capacity larger = small();
  larger.limits = 40;
  larger.overrides = 100;
  Other three = make(3, larger);
  ASSERT_TRUE(check_fits(view(), three.view));
  const auto up = copy_memory(view(), three.view);
  ASSERT_TRUE(up) << up.error().text();
  EXPECT_EQ(up->shared, 0U);
  EXPECT_EQ(up->bans, 1U);
  EXPECT_EQ(values(three.view), before);
  EXPECT_EQ(verified(three.view), "");
  const LimitHandle handle = resolve(three.view, "api");
  EXPECT_EQ(sum_counters(three.view, handle.ref.index)[0], 7U);

  Other one = make(1, small());
  const auto down = copy_memory(three.view, one.view);
  ASSERT_TRUE(down) << down.error().text();
  EXPECT_EQ(down->entries, up->entries);
  EXPECT_EQ(values(one.view), before);
  EXPECT_EQ(verified(one.view), "");
}

TEST_F(MemoryCopy, WhatFindsNoPlaceIsOwedByAll) {
  fill();
  Other three = make(3, small());
  ASSERT_TRUE(copy_memory(view(), three.view));
  Other one = make(1, small());
  // Every place but one is taken by debts that nobody gives up.
  const LimitHandle handle = resolve(view(), "api");
  const std::uint16_t id = view().limit_config(view().current(), handle.ref.index).rule[1];
  for (std::uint64_t i = 1; i < one.view.slot_count; ++i) {
    one.view.slots[i] = {std::uint64_t{i + 1} << kFingerprintShift | id,
                         std::uint64_t{1} << 61};
  }
  const auto copied = copy_memory(three.view, one.view);
  ASSERT_TRUE(copied);
  EXPECT_GT(copied->shared, 0U);
  EXPECT_NE(one.view.limits[handle.ref.index].overflow[0].lo, 0U);
  EXPECT_NE(one.view.limits[handle.ref.index].overflow[1].lo, 0U);
}

// The newest go over under their numbers, whole, as many as both rings hold; then it goes on.
TEST_F(MemoryCopy, EventsGoOverUnderTheirNumbers) {
  fill();
  Capacity larger = small();
  larger.events = 4 * view().event_count;
  for (const std::uint32_t appended : {5U, 2 * view().event_count + 3}) {
    for (std::uint32_t i = 0; i < appended; ++i) {
      Event event;
      event.kind = EventKind::LimitReset;
      event.object = i;
      append_event(view(), event);
    }
    const EventPage before = read_events(view(), 0, ~0U);
    for (const Capacity& capacity : {larger, small()}) {
      Other next = make(1, capacity);
      ASSERT_TRUE(copy_memory(view(), next.view));
      const std::uint64_t number = append_event(next.view, Event{});
      step_clock(next.view, next.view.clock.now() + kSecond);
      const EventPage after = read_events(next.view, 0, ~0U);

      EXPECT_EQ(number, before.next);
      ASSERT_GE(after.events.size(), before.events.size());
      EXPECT_EQ(after.events.back().number, number);
      EXPECT_EQ(after.lost + after.events.size(), number + 1);
      for (std::size_t back = 1; back < before.events.size(); ++back) {
        const Event& had = before.events[before.events.size() - back];
        const Event& has = after.events[after.events.size() - 1 - back];
        EXPECT_EQ(has.number, had.number);
        EXPECT_EQ(has.object, had.object);
        EXPECT_EQ(has.t_ns, had.t_ns);
        EXPECT_EQ(has.kind, had.kind);
      }
      EXPECT_EQ(verified(next.view), "");
    }
  }
}

TEST_F(MemoryCopy, WhatDoesNotFitIsNamed) {
  fill();
  Capacity less = small();
  less.limits = 1;
  Other other = make(1, less);
  EXPECT_NE(check_fits(view(), other.view).error().text().find("capacity.limits to at least 2"),
            std::string::npos);
  less = small();
  less.overrides = 1;
  Other fewer = make(1, less);
  EXPECT_NE(check_fits(view(), fewer.view).error().text().find("capacity.overrides"),
            std::string::npos);
}

}  // namespace
}  // namespace cutwater::shm
