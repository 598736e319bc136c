// SPDX-License-Identifier: Apache-2.0
// An admission that is refused on its way, with its memory superseded at every named stop of it:
// what it took and gave back is owed to the successor (EnterOwed), and in the end nothing is held
// there. The same for a place that was one too many.
#include <functional>
#include <memory>
#include <string>

#include "base/sync_point.hpp"
#include "shm/enter.hpp"
#include "shm/process_table.hpp"
#include "shm/publisher.hpp"
#include "shm/supersede.hpp"
#include "shm/verify.hpp"
#include "unit/shm/memory_support.hpp"

namespace cutwater::shm {
namespace {

using test::TmpfsDirectory;

std::function<void(const std::string&)> at_stop;
bool inside = false;                   // what a stop itself does has stops of its own

void hook(const char* stop) {
  if (inside || !at_stop) return;
  inside = true;
  at_stop(stop);
  inside = false;
}

/// One memory with a bulkhead, a breaker and a limit, all closed and free.
class Moving {
 public:
  Moving() {
    auto made = Segment::create_files(directory_.fd(), options(2));
    EXPECT_TRUE(made) << made.error().text();
    old_ = std::make_unique<Segment>(std::move(*made));
    publisher_ = std::make_unique<Publisher>(view());
    publish(2);
    RowTable rows(view(), true);
    row_ = rows.grant({.pid = 1000, .name = "test"}).value();
    other_ = rows.grant({.pid = 1001, .name = "other"}).value();
    ask_.breaker = find_breaker(view(), "dep");
    ask_.bulkhead = find_bulkhead(view(), "gate");
    sync_point_hook = hook;
  }
  ~Moving() { sync_point_hook = nullptr; }

  const View& view() const { return old_->view(); }
  bool moved() const { return next_ != nullptr; }
  void publish(std::uint32_t places) {
    rule::BulkheadSettings gate;
    gate.name = "gate";
    gate.max_concurrent = places;
    rule::BreakerSettings dep = rule::preset(rule::BreakerPreset::Resilience4j);
    dep.name = "dep";
    dep.window_calls = 1;
    dep.minimum_calls = 1;
    publisher_->set_bulkheads({gate});
    publisher_->set_breakers({dep});
    EXPECT_TRUE(publisher_->publish({}, 1));
  }
  void move() {
    auto done = supersede(directory_.fd(), *old_, options(4));
    ASSERT_TRUE(done) << done.error().text();
    next_ = std::make_unique<Segment>(std::move(done->segment));
  }
  /// Somebody else's call fails, and the breaker opens.
  void open_breaker() {
    const BreakerCaller caller = caller_of(view(), other_, other_local_).breaker;
    const BreakerEntry entry = enter_breaker(view(), ask_.breaker, caller, 0);
    finish_breaker(view(), ask_.breaker, caller, entry.call, {.kind = Ended::Failure});
  }
  void hold_a_place() {
    const EnterCaller caller = caller_of(view(), other_, other_local_);
    held_ = enter_bulkhead(view(), ask_.bulkhead, caller.bulkhead()).place;
    ASSERT_NE(held_.cell_value, 0U);
  }
  /// An admission, undone if it was granted after all. What it owes.
  EnterOwed enter(bool with_breaker) {
    Entering entering;
    entering.ask.bulkhead = ask_.bulkhead;
    if (with_breaker) entering.ask.breaker = ask_.breaker;
    EnterAnswer answer;
    const EnterCaller caller = caller_of(view(), row_, local_);
    EXPECT_EQ(begin_enter(view(), caller, entering, answer), EnterStep::Done);
    if (answer.granted()) undo_enter(view(), caller, entering.ask, answer);
    return answer.owed;
  }
  /// As a client does; then nothing of it is held there.
  void follow_and_expect_nothing_held(const EnterOwed& owed) {
    ASSERT_TRUE(moved());
    const View& in = next_->view();
    const BulkheadRef gate = find_bulkhead(in, "gate");
    const EnterCaller caller = caller_of(in, row_, local_);
    if (owed.place.cell_value != 0) leave_bulkhead(in, gate, caller.bulkhead(), owed.place);
    if (goes_on(owed.how)) {
      finish_in_successor(in, find_breaker(in, "dep"), caller.breaker, owed.call,
                          {.kind = Ended::Cancelled}, owed.how);
    }
    BulkheadInfo use;
    ASSERT_TRUE(read_bulkhead(in, gate.index, use));
    EXPECT_EQ(use.in_use, held_.cell_value != 0 ? 1U : 0U);
    EXPECT_TRUE(verify(in).findings.empty());
  }

 private:
  static SegmentOptions options(std::uint32_t bulkheads) {
    SegmentOptions out = test::stepped_options();
    out.capacity.bulkheads = bulkheads;
    return out;
  }
  static EnterCaller caller_of(const View& in, RowGrant row, BreakerLocal& local) {
    return {{row.index, row.generation, shared_stripe(in), &local, {}}};
  }

  TmpfsDirectory directory_;
  std::unique_ptr<Segment> old_, next_;
  std::unique_ptr<Publisher> publisher_;
  RowGrant row_, other_;
  BreakerLocal local_, other_local_;
  EnterAsk ask_;
  PlaceTicket held_;
};

/// `race` makes it lose on its way; it is called at each stop until the memory has moved. Returns
/// how many stops of the admission left something owed.
int move_at_every_stop(bool with_breaker, const std::function<void(Moving&)>& begin,
                       const std::function<void(Moving&, const std::string&)>& race) {
  int owed = 0;
  for (int wanted = 1;; ++wanted) {
    Moving m;
    begin(m);
    int stops = 0;
    at_stop = [&](const std::string& stop) {
      if (m.moved()) return;
      race(m, stop);
      if (++stops == wanted) m.move();
    };
    const EnterOwed left = m.enter(with_breaker);
    at_stop = nullptr;
    if (!m.moved()) return owed;       // it has no more stops
    SCOPED_TRACE("moved at stop " + std::to_string(wanted));
    owed += left.place.cell_value != 0;
    m.follow_and_expect_nothing_held(left);
  }
}

TEST(SupersedeEnter, WhatARefusalOnTheWayGaveBackIsOwedToTheSuccessor) {
  bool opened = false;
  const int owed = move_at_every_stop(
      true, [&](Moving&) { opened = false; },
      [&](Moving& m, const std::string& stop) {
        if (opened || stop != "enter.before_probe") return;
        opened = true;
        m.open_breaker();
      });
  EXPECT_GT(owed, 0);
}

TEST(SupersedeEnter, APlaceThatWasOneTooManyIsOwedToTheSuccessor) {
  bool shrunk = false;
  const int owed = move_at_every_stop(
      false,
      [&](Moving& m) {
        shrunk = false;
        m.hold_a_place();
      },
      [&](Moving& m, const std::string& stop) {
        if (shrunk || stop != "bulkhead.before_take") return;
        shrunk = true;
        m.publish(1);
      });
  EXPECT_GT(owed, 0);
}

TEST(SupersedeEnter, ACallThatIsNotMadeIsOwedWithItsPlace) {
  EXPECT_GT(move_at_every_stop(true, [](Moving&) {}, [](Moving&, const std::string&) {}), 0);
}

}  // namespace
}  // namespace cutwater::shm
