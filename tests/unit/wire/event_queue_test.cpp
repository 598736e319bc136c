// SPDX-License-Identifier: Apache-2.0
#include "wire/event_queue.hpp"

#include <gtest/gtest.h>

#include <set>

namespace cutwater::wire {
namespace {

constexpr std::size_t kFrame = 64U << 10;

SharedEvent event(std::uint64_t seq, std::string name, std::uint32_t kind = kEventTrip,
                  std::uint64_t epoch = 0) {
  EventRow row;
  row.seq = seq;
  row.kind = kind;
  row.name = std::move(name);
  row.epoch = epoch;
  return std::make_shared<const EventRow>(std::move(row));
}

std::vector<std::uint64_t> seqs(const Event& event) {
  std::vector<std::uint64_t> out;
  for (const auto& row : event.events) out.push_back(row.seq);
  return out;
}
using Seqs = std::vector<std::uint64_t>;

TEST(EventQueue, KeepsWhatTheWatchIsForInItsOrder) {
  EventQueue queue(1, {kEventTrip | kEventConfig, "bank-*", 3, 10});
  queue.add(event(2, "bank-1"));                    // before from_seq
  queue.add(event(3, "bank-1"));
  queue.add(event(4, "bank-2", kEventOverflow));    // another kind
  queue.add(event(5, "fraud"));                     // another name
  queue.add(event(6, "bank-2", kEventConfig));

  const Event out = queue.take(kFrame);

  EXPECT_EQ(out.watch, 1u);
  EXPECT_EQ(seqs(out), (Seqs{3, 6}));
  EXPECT_EQ(out.missed, 0u);
  EXPECT_TRUE(queue.empty());
}

TEST(EventQueue, BeyondMaxPendingEventsOfOneNameGoFirst) {
  EventQueue queue(1, {kKnownEventKinds, "", 0, 3});
  queue.add(event(1, "lone"));
  queue.add(event(2, "flapping"));
  queue.add(event(3, "flapping"));
  queue.add(event(4, "flapping"));
  queue.add(event(5, "other"));

  EXPECT_EQ(queue.pending(), 3u);
  const Event out = queue.take(kFrame);
  EXPECT_EQ(seqs(out), (Seqs{1, 4, 5}));  // the newest of each name
  EXPECT_EQ(out.missed, 2u);
  EXPECT_EQ(queue.take(kFrame).missed, 0u);  // told once
}

TEST(EventQueue, WithOneEventPerNameTheOldestGoes) {
  EventQueue queue(1, {kKnownEventKinds, "", 0, 2});
  for (std::uint64_t seq = 1; seq <= 4; ++seq) queue.add(event(seq, "n" + std::to_string(seq)));

  const Event out = queue.take(kFrame);

  EXPECT_EQ(seqs(out), (Seqs{3, 4}));
  EXPECT_EQ(out.missed, 2u);
}

TEST(EventQueue, HoldsAtMostMaxPending) {
  EventQueue queue(1, {kKnownEventKinds, "", 0, kMaxPending});
  for (std::uint64_t seq = 1; seq <= 3 * kMaxPending; ++seq) {
    queue.add(event(seq, "n" + std::to_string(seq % 5000)));
    ASSERT_LE(queue.pending(), kMaxPending);
  }

  EXPECT_EQ(queue.pending(), kMaxPending);
}

TEST(EventQueue, ATransitionIsShownOnce) {
  EventQueue queue(1, {kEventTransition, "", 0, 100});
  queue.add(event(1, "a", kEventTransition, 5));
  queue.add(event(2, "a", kEventTransition, 5));
  queue.add(event(3, "b", kEventTransition, 5));
  EXPECT_EQ(seqs(queue.take(kFrame)), (Seqs{1, 3}));
  queue.add(event(4, "a", kEventTransition, 6));
  queue.add(event(5, "a", kEventTransition, 5));  // late, by another process

  EXPECT_EQ(seqs(queue.take(kFrame)), (Seqs{4}));
}

TEST(EventQueue, RemembersTheLast16EpochsOf4096Names) {
  EventQueue queue(1, {kEventTransition, "", 0, kMaxPending});
  for (std::uint64_t epoch = 0; epoch <= kRememberedEpochs; ++epoch) {
    queue.add(event(epoch, "a", kEventTransition, epoch));
  }
  (void)queue.take(kFrame);
  queue.add(event(90, "a", kEventTransition, kRememberedEpochs));
  queue.add(event(91, "a", kEventTransition, 1));
  EXPECT_TRUE(queue.take(kFrame).events.empty());
  queue.add(event(92, "a", kEventTransition, 0));  // 16 epochs ago
  EXPECT_EQ(seqs(queue.take(kFrame)), (Seqs{92}));

  for (std::size_t i = 0; i < kRememberedNames; ++i) {
    queue.add(event(100 + i, "n" + std::to_string(i), kEventTransition, 1));
  }
  while (!queue.empty()) (void)queue.take(kFrame);
  queue.add(event(9000, "a", kEventTransition, 0));  // its name was the oldest
  queue.add(event(9001, "n4095", kEventTransition, 1));

  EXPECT_EQ(seqs(queue.take(kFrame)), (Seqs{9000}));
}

TEST(EventQueue, FillsOneFrameAtATime) {
  EventQueue queue(1, {kKnownEventKinds, "", 0, kMaxPending});
  for (std::uint64_t seq = 1; seq <= 300; ++seq) queue.add(event(seq, "a"));
  EXPECT_EQ(queue.take(kFrame).events.size(), kMaxEvents);
  EXPECT_EQ(queue.take(kFrame).events.size(), 300 - kMaxEvents);

  for (std::uint64_t seq = 1; seq <= 300; ++seq) queue.add(event(seq, "a"));
  while (!queue.empty()) {
    const Event out = queue.take(4096);
    EXPECT_FALSE(out.events.empty());
    EXPECT_LE(encode(out)->size(), 4096u);
  }
}

TEST(EventQueue, AnEventThatFitsNoFrameCountsAsMissed) {
  EventQueue queue(1, {kKnownEventKinds, "", 0, 10});
  EventRow large;
  large.kind = kEventTrip;
  large.name = "a";
  large.data = Value::map({{"why", std::string(5000, 'x')}});
  queue.add(event(1, "a"));
  queue.add(std::make_shared<const EventRow>(large));
  queue.add(event(3, "a"));

  Event out = queue.take(4096);
  EXPECT_EQ(seqs(out), (Seqs{1}));
  out = queue.take(4096);
  EXPECT_EQ(seqs(out), (Seqs{3}));
  EXPECT_EQ(out.missed, 1u);
}

}  // namespace
}  // namespace cutwater::wire
