// SPDX-License-Identifier: Apache-2.0
// Events: in order, each once, none that is half written (T21). Writers are held or killed at named
// stops inside append_event.
#include "shm/event_log.hpp"

#include <sys/wait.h>

#include <condition_variable>
#include <csignal>
#include <mutex>
#include <thread>

#include "base/sync_point.hpp"
#include "unit/shm/memory_support.hpp"

namespace cutwater::shm {
namespace {

constexpr std::uint32_t kRing = 16;
constexpr std::uint32_t kAll = 1000;

/// Holds the first thread that comes to a named stop until it is let go.
class Hold {
 public:
  explicit Hold(const char* stop) {
    name_ = stop;
    held_ = false;
    open_ = false;
    sync_point_hook = &Hold::at_stop;
  }
  ~Hold() { sync_point_hook = nullptr; }

  void wait_until_held() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [] { return held_; });
  }
  void let_go() {
    { const std::lock_guard lock(mutex_); open_ = true; }
    changed_.notify_all();
  }

 private:
  static void at_stop(const char* name) {
    std::unique_lock lock(mutex_);
    if (held_ || std::strcmp(name, name_) != 0) return;
    held_ = true;
    changed_.notify_all();
    changed_.wait(lock, [] { return open_; });
  }
  static inline std::mutex mutex_;
  static inline std::condition_variable changed_;
  static inline const char* name_ = nullptr;
  static inline bool held_ = false, open_ = false;
};

class EventLogTest : public testing::Test {
 protected:
  EventLogTest() : segment_(Segment::create_private(test::stepped_options())) {}
  const View& view() const { return segment_->view(); }
  std::uint64_t append(std::uint32_t object, std::uint32_t epoch = 0) {
    Event event;
    event.kind = EventKind::ClientAttached;
    event.object = object;
    event.epoch = epoch;
    return append_event(view(), event);
  }
  std::vector<std::uint32_t> objects(const EventPage& page) const {
    std::vector<std::uint32_t> out;
    for (const Event& event : page.events) out.push_back(event.object);
    return out;
  }

  Result<Segment> segment_;
};

using Objects = std::vector<std::uint32_t>;

TEST_F(EventLogTest, ComeBackAsTheyWereAppended) {
  Event event;
  event.kind = EventKind::ConfigReloaded;
  event.object = 3;
  event.epoch = 9;
  event.from = 1;
  event.to = 2;
  event.reason = 4;
  event.row = 65'535;
  std::strcpy(event.text, "twenty-eight bytes at most..");
  step_clock(view(), 5'000'000'000);

  EXPECT_EQ(append_event(view(), event), 0U);
  const EventPage page = read_events(view(), 0, kAll);

  ASSERT_EQ(page.events.size(), 1U);
  const Event& read = page.events[0];
  EXPECT_EQ(read.number, 0U);
  EXPECT_EQ(read.t_ns, 5'000'000'000);
  EXPECT_EQ(read.kind, EventKind::ConfigReloaded);
  EXPECT_EQ(read.object, 3U);
  EXPECT_EQ(read.epoch, 9U);
  EXPECT_EQ(read.from, 1);
  EXPECT_EQ(read.to, 2);
  EXPECT_EQ(read.reason, 4);
  EXPECT_EQ(read.row, 65'535);
  EXPECT_STREQ(read.text, "twenty-eight bytes at most..");
  EXPECT_EQ(page.next, 1U);
  EXPECT_EQ(page.lost, 0U);
}

TEST_F(EventLogTest, AnEmptyLogHasNothing) {
  const EventPage page = read_events(view(), 0, kAll);

  EXPECT_TRUE(page.events.empty());
  EXPECT_EQ(page.next, 0U);
  EXPECT_EQ(page.lost, 0U);
}

TEST_F(EventLogTest, PagesFollowEachOther) {
  for (std::uint32_t i = 0; i < 10; ++i) append(i);

  const EventPage first = read_events(view(), 0, 4);
  const EventPage second = read_events(view(), first.next, 4);
  const EventPage third = read_events(view(), second.next, 4);

  EXPECT_EQ(objects(first), (Objects{0, 1, 2, 3}));
  EXPECT_EQ(objects(second), (Objects{4, 5, 6, 7}));
  EXPECT_EQ(objects(third), (Objects{8, 9}));
  EXPECT_EQ(third.next, 10U);
}

TEST_F(EventLogTest, ASlowReaderSeesHowMuchItMissed) {
  for (std::uint32_t i = 0; i < kRing + 5; ++i) append(i);

  const EventPage page = read_events(view(), 0, kAll);

  EXPECT_EQ(page.lost, 5U);
  ASSERT_EQ(page.events.size(), kRing);
  EXPECT_EQ(page.events.front().object, 5U);
  EXPECT_EQ(page.events.back().object, kRing + 4);
}

TEST_F(EventLogTest, RepeatsAreDroppedAndUnnamedOnesKept) {
  append(1, 7);
  append(1, 7);
  append(2, 7);
  append(1, 8);
  append(5);
  append(5);

  EXPECT_EQ(objects(read_events(view(), 0, kAll)), (Objects{1, 2, 1, 5, 5}));
}

TEST_F(EventLogTest, AReaderAheadOfTheLogStartsAtItsEnd) {
  append(1);

  const EventPage page = read_events(view(), 1000, kAll);

  EXPECT_TRUE(page.events.empty());
  EXPECT_EQ(page.next, 1U);
}

TEST_F(EventLogTest, AScribbledNextNumberEndsTheReadingAtOnce) {
  append(1);
  view().stats_control->next_event = ~std::uint64_t{0};

  const EventPage page = read_events(view(), 0, kAll);

  EXPECT_LE(page.events.size(), kRing);
}

// EventNumberLast: while the newest record is being written it is not there, and not lost either.
TEST_F(EventLogTest, AHalfWrittenRecordIsWaitedForNotLost) {
  append(1);
  Hold hold("event_log.half_written");
  std::thread writer([&] { append(2); });
  hold.wait_until_held();

  const EventPage during = read_events(view(), 0, kAll);
  hold.let_go();
  writer.join();
  const EventPage after = read_events(view(), during.next, kAll);

  EXPECT_EQ(objects(during), Objects{1});
  EXPECT_EQ(during.next, 1U);
  EXPECT_EQ(during.lost, 0U);
  EXPECT_EQ(objects(after), Objects{2});
}

TEST_F(EventLogTest, ARecordBeforeLaterOnesIsWaitedForWhileItsWriterMayLive) {
  Hold hold("event_log.number_cleared");
  std::thread writer([&] { append(1); });
  hold.wait_until_held();
  append(2);

  EXPECT_EQ(read_events(view(), 0, kAll).next, 0U);
  hold.let_go();
  writer.join();

  EXPECT_EQ(objects(read_events(view(), 0, kAll)), (Objects{1, 2}));
}

/// Appends in a child that is killed in the middle.
void append_and_die(const View& view) {
  const pid_t child = fork();
  if (child == 0) {
    sync_point_hook = [](const char* name) {
      if (std::strcmp(name, "event_log.half_written") == 0) raise(SIGKILL);
    };
    append_event(view, Event{});
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
}

TEST_F(EventLogTest, AKilledWritersRecordIsGivenUpAfterTenMilliseconds) {
  append(1);
  append_and_die(view());
  append(3);
  EXPECT_EQ(objects(read_events(view(), 0, kAll)), Objects{1});

  step_clock(view(), view().clock.now() + kUnstampedPatienceNs);
  const EventPage page = read_events(view(), 0, kAll);

  EXPECT_EQ(objects(page), (Objects{1, 3}));
  EXPECT_EQ(page.lost, 1U);
  EXPECT_EQ(page.next, 3U);
}

TEST(EventLog, AKilledWritersRecordIsGivenUpWhenManyCameAfterIt) {
  SegmentOptions options = test::stepped_options();
  options.capacity.events = 4 * kUnstampedAhead;
  const auto segment = Segment::create_private(options);
  ASSERT_TRUE(segment);
  append_and_die(segment->view());

  for (std::uint32_t i = 1; i < kUnstampedAhead; ++i) append_event(segment->view(), Event{});
  EXPECT_EQ(read_events(segment->view(), 0, kAll).next, 0U);
  append_event(segment->view(), Event{});
  const EventPage page = read_events(segment->view(), 0, kAll);

  EXPECT_EQ(page.events.size(), kUnstampedAhead);
  EXPECT_EQ(page.lost, 1U);
}

/// A memory of `events` records that has only the numbers from `first` on, `count` of them.
Result<Segment> begun_at(std::uint32_t events, std::uint64_t first, std::uint32_t count) {
  SegmentOptions options = test::stepped_options();
  options.capacity.events = events;
  auto segment = Segment::create_private(options);
  if (!segment) return segment;
  segment->view().stats_control->next_event = first;
  for (std::uint32_t i = 0; i < count; ++i) append_event(segment->view(), Event{});
  return segment;
}

TEST(EventLog, AGapOfAnyLengthIsLostAndWhatCameAfterItIsRead) {
  for (const std::uint64_t first : {145, 208, 1000}) {
    const auto segment = begun_at(1024, first, 3);
    ASSERT_TRUE(segment);

    step_clock(segment->view(), segment->view().clock.now() + kUnstampedPatienceNs);
    const EventPage page = read_events(segment->view(), 0, kAll);

    ASSERT_EQ(page.events.size(), 3U) << first;
    EXPECT_EQ(page.events.front().number, first);
    EXPECT_EQ(page.lost, first);
    EXPECT_EQ(page.next, first + 3);
  }
}

// Young ones tell as much, but for the last numbers before them: these may be being written.
TEST(EventLog, AGapBeforeYoungEventsIsGivenUpToTheLastSixtyFour) {
  const auto segment = begun_at(1024, 500, 1);
  ASSERT_TRUE(segment);

  const EventPage page = read_events(segment->view(), 0, kAll);

  EXPECT_TRUE(page.events.empty());
  EXPECT_EQ(page.next, 500U - kUnstampedAhead + 1);
  EXPECT_EQ(page.lost, page.next);
}

// EventChecksum: a writer that was stopped for a whole turn of the ring tears the record of
// another.
TEST_F(EventLogTest, ARecordTornByALateWriterIsSkipped) {
  Hold hold("event_log.half_written");
  std::thread late([&] {
    Event event;
    event.object = 999;
    std::memset(event.text, 'L', 28);
    append_event(view(), event);   // number 0
  });
  hold.wait_until_held();
  for (std::uint32_t i = 1; i <= kRing; ++i) append(i);   // the last one takes its place
  {
    // From here to its number the late writer changes the fields of event 16.
    const std::uint64_t number = view().events[0].number;
    ASSERT_EQ(number, kRing + 1);
    hold.let_go();
    late.join();
    view().events[0].number = number;   // as read between its last field and its number
  }

  const EventPage page = read_events(view(), 1, kAll);

  EXPECT_EQ(page.events.size(), kRing - 1);
  EXPECT_EQ(page.lost, 1U);
  for (const Event& event : page.events) EXPECT_STREQ(event.text, "");
}

TEST_F(EventLogTest, AFlippedBitIsNeverShown) {
  append(1);
  append(2);
  view().events[0].payload[13] ^= 0x10;

  const EventPage page = read_events(view(), 0, kAll);

  EXPECT_EQ(objects(page), Objects{2});
  EXPECT_EQ(page.lost, 1U);
  EXPECT_NE(check_event(view(), 0), "");
  EXPECT_EQ(check_event(view(), 1), "");
}

TEST_F(EventLogTest, ManyWritersLoseNothing) {
  SegmentOptions options = test::small_options();
  options.capacity.events = 4096;
  const auto segment = Segment::create_private(options);
  ASSERT_TRUE(segment);
  std::vector<std::thread> writers;
  for (std::uint32_t id = 0; id < 4; ++id) {
    writers.emplace_back([&, id] {
      for (std::uint32_t i = 1; i <= 1000; ++i) {
        Event event;
        event.object = id;
        event.epoch = i;
        append_event(segment->view(), event);
      }
    });
  }
  for (std::thread& writer : writers) writer.join();

  const EventPage page = read_events(segment->view(), 0, 4096);

  EXPECT_EQ(page.events.size(), 4000U);
  std::uint32_t last[4] = {};
  for (const Event& event : page.events) {
    EXPECT_EQ(event.epoch, last[event.object] + 1);
    last[event.object] = event.epoch;
  }
}

TEST(EventKindName, EachKindHasAWord) {
  EXPECT_EQ(name_of(EventKind::ConfigReloaded), "config_reloaded");
  EXPECT_EQ(name_of(EventKind::Damage), "damage");
  EXPECT_EQ(name_of(static_cast<EventKind>(250)), "unknown");
}

}  // namespace
}  // namespace cutwater::shm
