// SPDX-License-Identifier: Apache-2.0
// What a process keeps of the settings (shm/kept.hpp), while the rules change all the time: nobody
// reads words of two keepings, nothing is recorded by rules that are over, and no outcome is lost
// or counted twice.
#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "shm/kept.hpp"
#include "stress/breaker_world.hpp"
#include "stress/bulkhead_world.hpp"

namespace cutwater::test {
namespace {

using shm::BreakerEntry;
using shm::CallKind;
using shm::Ended;
using shm::Recorded;

constexpr int kThreads = 4;

TEST(Kept, NobodyReadsWordsOfTwoKeepings) {
  constexpr std::uint64_t kReloads = 20'000;
  enum class Word : std::uint8_t { First, Second, Third, Fourth };
  shm::RulesControl control{};
  shm::View view;
  view.rules_control = &control;
  shm::Kept<4> kept;
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> good{0}, mixed{0};
  const auto read = [&] {
    const std::uint64_t begun = kept.begin();
    const std::uint64_t word[] = {kept.word<Word::First>(), kept.word<Word::Second>(),
                                  kept.word<Word::Third>(), kept.word<Word::Fourth>()};
    if (!kept.holds(view, begun)) return false;
    const bool whole = std::all_of(word, word + 4, [&](std::uint64_t w) { return w == begun; });
    (whole ? good : mixed).fetch_add(1, std::memory_order_relaxed);
    return true;
  };
  std::vector<std::thread> readers;
  for (int i = 0; i < kThreads; ++i) {
    readers.emplace_back([&] {
      while (!over.load(std::memory_order_relaxed)) {
        static_cast<void>(read());
        const std::uint64_t now = view.current();
        kept.keep(view, now, {now, now, now, now});
      }
    });
  }
  for (std::uint64_t i = 1; i <= kReloads; ++i) {
    __atomic_store_n(&control.current, i << 8, __ATOMIC_RELEASE);
    if (i % 64 == 0) std::this_thread::yield();
  }
  over.store(true);
  for (std::thread& reader : readers) reader.join();

  EXPECT_EQ(mixed.load(), 0U);
  const std::uint64_t last = view.current();
  kept.keep(view, last, {last, last, last, last});
  EXPECT_TRUE(read());
  kept.keep(view, last, {0, 0, 0, 0});               // under one `current` words are written once
  EXPECT_TRUE(read());
  EXPECT_EQ(mixed.load(), 0U);
}

TEST(Kept, NothingIsKeptOfAMemoryThatWasSuperseded) {
  shm::RulesControl control{};
  control.current = 8 | shm::kCurrentSupersededBit;
  shm::View view;
  view.rules_control = &control;
  shm::Kept<1> kept;
  kept.keep(view, control.current, {1});
  EXPECT_FALSE(kept.holds(view, kept.begin()));
}

rule::BreakerSettings window_of(std::uint32_t calls) { return count_breaker({calls, 2, 1}); }

TEST(Kept, OutcomesDuringAReloadStormAreCountedOnceEach) {
  constexpr int kReloads = 200, kMostCalls = 20'000;
  WorldOptions options;
  options.breaker_memory = 1 << 20;                  // rings that were left rest for an hour
  BreakerWorld w(window_of(16), 4, options);
  std::atomic<int> refused{0}, odd{0};
  std::atomic<std::uint64_t> calls{0};
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      int made = 0;
      for (; made < kMostCalls && (made == 0 || !over.load()); ++made) {
        const BreakerEntry entry = w.enter();
        if (!entry.granted) refused.fetch_add(1);
        if (entry.granted && w.finish(entry, Ended::Success) != Recorded::Counted) odd.fetch_add(1);
      }
      calls.fetch_add(static_cast<std::uint64_t>(made));
    });
  }
  for (int i = 0; i < kReloads; ++i) {
    w.publish(window_of(i % 2 == 0 ? 4 : 32));       // the ring moves each time
    std::this_thread::yield();
  }
  over.store(true);
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(refused.load(), 0);
  EXPECT_EQ(odd.load(), 0);
  EXPECT_EQ(w.count(shm::BreakerCounter::Success), calls.load());
  EXPECT_EQ(w.state(), rule::BreakerState::Closed);

  // And from now on by the rules of now: no outcome goes where the window was before.
  w.publish(window_of(64));
  const std::uint64_t before = w.info().window.calls;
  ASSERT_LE(before, 48U);
  EXPECT_EQ(w.run("SSSSSSSS"), "SSSSSSSS");
  EXPECT_EQ(w.info().window.calls, before + 8);
}

TEST(Kept, ABreakerThatIsSwitchedOffGrantsByItsRulesOfNow) {
  BreakerWorld w(window_of(16));
  EXPECT_EQ(w.run("SS"), "SS");
  rule::BreakerSettings off = window_of(16);
  off.enabled = false;
  w.publish(off);
  EXPECT_EQ(w.enter().call.kind, CallKind::Off);
  w.publish(window_of(16));
  EXPECT_EQ(w.enter().call.kind, CallKind::Window);
}

TEST(Kept, AGoodOutcomeOpensWhereTheRuleSaysSo) {
  // The first four calls are too few to be judged; the fourth, a good one, makes them enough.
  rule::BreakerSettings settings = count_breaker({8, 4, 1});
  settings.evaluate_on = rule::EvaluateOn::AnyResult;
  BreakerWorld w(settings);
  EXPECT_EQ(w.run("FFS"), "FFS");
  EXPECT_EQ(w.state(), rule::BreakerState::Closed);
  EXPECT_EQ(w.run("S"), "S");
  EXPECT_EQ(w.state(), rule::BreakerState::Open);
}

rule::BulkheadSettings places_of(std::uint32_t limit) {
  BulkheadShape shape;
  shape.limit = limit;
  return bulkhead_of(shape);
}

TEST(Kept, PlacesDuringAReloadStormAreGivenBackOnceEach) {
  constexpr int kReloads = 400, kMostCalls = 20'000;
  constexpr std::uint32_t kLimits[] = {1, 6, 2, 4};
  WorldOptions options;
  options.bulkhead_cells = 64;
  BulkheadWorld w(places_of(6), 4, options);
  std::atomic<int> inside{0}, most{0};
  std::atomic<std::uint64_t> granted{0}, stale{0};
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kMostCalls && (i == 0 || !over.load()); ++i) {
        const shm::BulkheadEntry entry = w.enter();
        if (!entry.granted) continue;
        const int now = inside.fetch_add(1) + 1;
        if (now > most.load()) most.store(now);
        granted.fetch_add(1);
        inside.fetch_sub(1);
        if (w.leave(entry) != shm::Left::Returned) stale.fetch_add(1);
      }
    });
  }
  for (int i = 0; i < kReloads; ++i) {
    w.publish(places_of(kLimits[i % 4]));
    std::this_thread::yield();
  }
  over.store(true);
  for (std::thread& thread : threads) thread.join();

  EXPECT_LE(most.load(), 6);
  EXPECT_EQ(stale.load(), 0U);
  EXPECT_EQ(w.count(shm::BulkheadCounter::Granted), granted.load());
  EXPECT_EQ(w.count(shm::BulkheadCounter::Returned), granted.load());
  EXPECT_EQ(w.in_use(), 0U);

  // From the publication on nobody takes a place by the limit of before.
  w.publish(places_of(6));
  w.leave(w.enter());
  w.publish(places_of(1));
  const shm::BulkheadEntry first = w.enter(), second = w.enter();
  EXPECT_TRUE(first.granted);
  EXPECT_FALSE(second.granted);
  EXPECT_EQ(w.leave(first), shm::Left::Returned);
}

TEST(Kept, APlaceOnASteppedClockIsMeasuredExactly) {
  BulkheadWorld w(places_of(2));
  for (int i = 0; i < 2; ++i) {                      // the second by what was kept
    const shm::BulkheadEntry entry = w.enter();
    EXPECT_EQ(entry.now_ns, w.now());
    EXPECT_EQ(entry.limit, 2U);
    w.pass(3 * kMillisecond);
    EXPECT_EQ(w.info().oldest_ns, 3 * kMillisecond);
    w.leave(entry);
  }
  EXPECT_EQ(w.count(shm::BulkheadCounter::HeldUs), 6'000U);
}

}  // namespace
}  // namespace cutwater::test
