// SPDX-License-Identifier: Apache-2.0
#include "shm/breaker/ring.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <vector>

#include "stress/world.hpp"

namespace cutwater::shm {
namespace {

using cutwater::test::Chance;
using rule::BreakerOutcome;
using rule::BreakerWindow;

struct Ring {
  explicit Ring(std::uint64_t cells)
      : words((ring_bytes(cells) + 15) / 16),
        view{reinterpret_cast<BreakerRing*>(words.data()),
             reinterpret_cast<Word16*>(reinterpret_cast<std::uint8_t*>(words.data()) +
                                       sizeof(BreakerRing)),
             cells - 1} {}
  std::vector<Word16> words;
  RingView view;
};

BreakerWindow naive(const std::deque<BreakerOutcome>& window) {
  BreakerWindow out;
  for (const BreakerOutcome& o : window) {
    ++out.calls;
    out.failures += o.failed;
    out.slow += o.slow;
  }
  return out;
}

TEST(BreakerCells, EveryFieldComesBackAsItWasPacked) {
  const CountCell count{kSeqMask - 5, 0xdead'beef, 0xf'fffe, 0xa'bcde, 0x1'2345};
  const CountCell c = unpack_count(pack_count(count));
  EXPECT_EQ(c.seq, count.seq);
  EXPECT_EQ(c.epoch, count.epoch);
  EXPECT_EQ(c.n, count.n);
  EXPECT_EQ(c.failures, count.failures);
  EXPECT_EQ(c.slow, count.slow);
  const TimeCell t = unpack_time(pack_time({kSlotMask, true, 127, kTimeFailMask, ~0u, ~0u - 1}));
  EXPECT_EQ(t.slot, kSlotMask);
  EXPECT_TRUE(t.sealed);
  EXPECT_EQ(t.run, 127u);
  EXPECT_EQ(t.failures, kTimeFailMask);
  EXPECT_EQ(t.total, ~0u);
  EXPECT_EQ(t.slow, ~0u - 1);
  const TimeBase b = unpack_base(pack_base({7, 8, kTimeFailMask, 0xffff'fff0}));
  EXPECT_EQ(b.epoch, 7u);
  EXPECT_EQ(b.total, 8u);
  EXPECT_EQ(b.failures, kTimeFailMask);
  EXPECT_EQ(b.slow, 0xffff'fff0u);
  const ProbeCell p = unpack_probe(pack_probe(
      {0xfffe, 0xabc, 0x8000'0001, ProbeState::Spent, true, true, (1ULL << 50) - 1, 0x3fff}));
  EXPECT_EQ(p.row, 0xfffeu);
  EXPECT_EQ(p.generation, 0xabcu);
  EXPECT_EQ(p.epoch, 0x8000'0001u);
  EXPECT_EQ(p.state, ProbeState::Spent);
  EXPECT_TRUE(p.failed && p.slow);
  EXPECT_EQ(p.deadline_us, (1ULL << 50) - 1);
  EXPECT_EQ(p.take, 0x3fffu);
  BreakerWord w;
  w.state = rule::BreakerState::MetricsOnly;
  w.previous = rule::BreakerState::Disabled;
  w.reason = rule::BreakerReason::LocalFault;
  w.ramping = w.announced = true;
  w.attempts = 300;                                  // saturates
  w.epoch = ~0u;
  w.deadline_ns = 1'234'567'890'123;
  const BreakerWord u = unpack_breaker(pack_breaker(w));
  EXPECT_EQ(u.state, w.state);
  EXPECT_EQ(u.previous, w.previous);
  EXPECT_EQ(u.reason, w.reason);
  EXPECT_TRUE(u.ramping && u.announced);
  EXPECT_EQ(u.attempts, 255u);
  EXPECT_EQ(u.epoch, ~0u);
  EXPECT_EQ(u.deadline_ns, w.deadline_ns);
}

TEST(CountRing, WindowsAreThoseOfTheLastN) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Chance chance(seed);
    const auto n = static_cast<std::uint32_t>(1 + chance.below(40));
    Ring ring(ring_cells(n));
    init_count_ring(ring.view, 1);
    std::deque<BreakerOutcome> window;
    std::uint32_t epoch = 1, run = 0;
    for (int i = 0; i < 20'000; ++i) {
      if (chance.one_in(500)) {
        ++epoch;
        window.clear();
        run = 0;
      }
      const BreakerOutcome outcome{chance.one_in(2), chance.one_in(3)};
      CountTail at;
      ASSERT_EQ(append_count(ring.view, epoch, outcome, at), Appended::Yes);
      window.push_back(outcome);
      if (window.size() > n) window.pop_front();
      run = outcome.failed ? run + 1 : 0;
      BreakerWindow got;
      ASSERT_TRUE(count_window(ring.view, at.at, at.cell, n, std::min(n, 5u), got));
      const BreakerWindow want = naive(window);
      ASSERT_EQ(got.calls, want.calls);
      ASSERT_EQ(got.failures, want.failures);
      ASSERT_EQ(got.slow, want.slow);
      ASSERT_EQ(got.run, std::min({run, 5u, n}));
    }
  }
}

TEST(CountRing, AnOutcomeOfAnOlderEpochIsStale) {
  Ring ring(ring_cells(4));
  init_count_ring(ring.view, 1);
  CountTail at;
  EXPECT_EQ(append_count(ring.view, 3, {true, false}, at), Appended::Yes);
  EXPECT_EQ(append_count(ring.view, 2, {true, false}, at), Appended::Stale);
}

TEST(CountRing, AScribbledHintOrCellEndsInTheTailAndNoLoop) {
  Chance chance(7);
  for (int round = 0; round < 2'000; ++round) {
    Ring ring(ring_cells(8));
    init_count_ring(ring.view, 1);
    CountTail at;
    for (int i = 0; i < 30; ++i) append_count(ring.view, 1, {chance.one_in(2), false}, at);
    ring.view.head->hint = chance();
    if (chance.one_in(2)) ring.view.cells[chance.below(16)] = {chance(), chance()};

    const CountTail found = find_count_tail(ring.view);

    if (found.found) {
      EXPECT_EQ(unpack_count(ring.view.cells[found.at & ring.view.mask]).seq, found.at);
    }
    append_count(ring.view, 1, {true, false}, at);
  }
  Ring nothing(ring_cells(8));                       // all zero: no cell lies where it says but one
  nothing.view.cells[0] = {~0ULL, 0};
  for (std::uint64_t i = 0; i <= nothing.view.mask; ++i) nothing.view.cells[i] = {~0ULL, ~0ULL};
  nothing.view.cells[nothing.view.mask] = {0, 0};
  CountTail at;
  EXPECT_EQ(append_count(nothing.view, 1, {}, at), Appended::Damaged);
}

TEST(TimeRing, WindowsAreThoseOfTheLastSlots) {
  for (const std::uint64_t seed : {4, 5, 6}) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Chance chance(seed);
    std::int64_t word = 1'000;
    const SegmentClock clock = SegmentClock::stepped(&word);
    const TimeShape shape{static_cast<std::uint32_t>(1 + chance.below(12)), 100};
    Ring ring(ring_cells(shape.slots));
    init_time_ring(ring.view, slot_of(word, shape.slot_ns), 1);
    struct Old { std::uint32_t slot; BreakerOutcome outcome; };
    std::deque<Old> all;
    std::uint32_t epoch = 1, run = 0;
    for (int i = 0; i < 20'000; ++i) {
      word += static_cast<std::int64_t>(chance.one_in(50) ? chance.below(3'000)
                                                          : chance.below(40));
      if (chance.one_in(700)) {
        ++epoch;
        TimeBase base = time_total(ring.view);
        base.epoch = epoch;
        ring.view.head->base[epoch & 3] = pack_base(base);
        all.clear();
        run = 0;
      }
      const BreakerOutcome outcome{chance.one_in(2), chance.one_in(3)};
      BreakerWindow got;
      ASSERT_EQ(append_time(ring.view, shape, clock, word, epoch, outcome, got), Appended::Yes);
      const std::uint32_t slot = slot_of(word, shape.slot_ns);
      all.push_back({slot, outcome});
      run = outcome.failed ? run + 1 : 0;
      while (!all.empty() && all.front().slot + shape.slots <= slot) all.pop_front();
      std::deque<BreakerOutcome> window;
      for (const Old& old : all) window.push_back(old.outcome);
      const BreakerWindow want = naive(window);
      ASSERT_EQ(got.calls, want.calls) << "step " << i;
      ASSERT_EQ(got.failures, want.failures);
      ASSERT_EQ(got.slow, want.slow);
      ASSERT_EQ(got.run, std::min(run, kRunMax));
      const BreakerWindow looked = time_window(ring.view, shape, word, epoch);
      ASSERT_EQ(looked.calls, want.calls);
      const std::int64_t later = word + static_cast<std::int64_t>(chance.below(2'000));
      std::uint64_t left = 0;
      for (const Old& old : all) left += old.slot + shape.slots > slot_of(later, shape.slot_ns);
      ASSERT_EQ(time_window(ring.view, shape, later, epoch).calls, left);
    }
  }
}

TEST(TimeRing, AnOldReadingCountsInTheOpenSlot) {
  std::int64_t word = 10'000;
  const SegmentClock clock = SegmentClock::stepped(&word);
  const TimeShape shape{4, 100};
  Ring ring(ring_cells(shape.slots));
  init_time_ring(ring.view, slot_of(word, shape.slot_ns), 1);
  BreakerWindow window;
  append_time(ring.view, shape, clock, word, 1, {true, false}, window);
  word += 350;
  append_time(ring.view, shape, clock, word, 1, {true, false}, window);

  EXPECT_EQ(append_time(ring.view, shape, clock, 10'050, 1, {true, false}, window), Appended::Yes);

  EXPECT_EQ(window.calls, 3u);
  word += 390;                                       // the first has left, the late one has not
  EXPECT_EQ(time_window(ring.view, shape, word - 90, 1).calls, 2u);
}

TEST(TimeRing, ASlotFromTheFutureIsDamageAndTheRingStartsAgain) {
  std::int64_t word = 10'000;
  const SegmentClock clock = SegmentClock::stepped(&word);
  const TimeShape shape{4, 100};
  Chance chance(9);
  for (int round = 0; round < 2'000; ++round) {
    Ring ring(ring_cells(shape.slots));
    init_time_ring(ring.view, slot_of(word, shape.slot_ns), 1);
    BreakerWindow window;
    for (int i = 0; i < 5; ++i) append_time(ring.view, shape, clock, word, 1, {}, window);
    ring.view.cells[chance.below(16)] = {chance(), chance()};
    if (chance.one_in(2)) ring.view.head->hint = chance();

    EXPECT_EQ(append_time(ring.view, shape, clock, word, 1, {true, false}, window), Appended::Yes)
        << "round " << round;
    word += 100;
  }
}

}  // namespace
}  // namespace cutwater::shm
