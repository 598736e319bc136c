// SPDX-License-Identifier: Apache-2.0
// Places, probes and cells of calls that hang, given back while their memory is superseded: at
// every named stop of the move, and with the move between the look and the swap of the return. What
// the return says (Left::Moved, goes_on()) is followed in the successor, as a client does; in the
// end nothing is held there.
#include <cstring>
#include <functional>
#include <memory>
#include <string>

#include "base/sync_point.hpp"
#include "shm/breaker/breaker.hpp"
#include "shm/bulkhead/bulkhead.hpp"
#include "shm/process_table.hpp"
#include "shm/publisher.hpp"
#include "shm/supersede.hpp"
#include "shm/verify.hpp"
#include "unit/shm/memory_support.hpp"

namespace cutwater::shm {
namespace {

using test::TmpfsDirectory;

std::function<void(const std::string&)> at_stop;

rule::BreakerSettings breaker_named(const char* name) {
  rule::BreakerSettings out = rule::preset(rule::BreakerPreset::Resilience4j);
  out.name = name;
  out.window_calls = 4;
  out.minimum_calls = 1;
  out.probes = 1;
  out.open_wait_ns = 1'000'000;
  out.probe_timeout_ns = rule::kMaxProbeTimeoutNs;
  return out;
}

class SupersedeLeave : public testing::Test {
 protected:
  SupersedeLeave() {
    auto made = Segment::create_files(directory_.fd(), options(2));
    EXPECT_TRUE(made) << made.error().text();
    old_ = std::make_unique<Segment>(std::move(*made));
    Publisher publisher(view());
    rule::BulkheadSettings gate;
    gate.name = "gate";
    gate.max_concurrent = 1;
    rule::BreakerSettings slow = breaker_named("slow");
    slow.slow_rate_ppm = 500'000;
    slow.slow_duration_ns = 1'000'000;
    slow.count_hanging = true;
    publisher.set_bulkheads({gate});
    publisher.set_breakers({breaker_named("dep"), slow});
    EXPECT_TRUE(publisher.publish({}, 1));
    rows_ = std::make_unique<RowTable>(view(), true);
    row_ = rows_->grant({.pid = 1000, .name = "test"}).value();
    take();
  }
  ~SupersedeLeave() override { sync_point_hook = nullptr; }

  static SegmentOptions options(std::uint32_t bulkheads) {
    SegmentOptions out = test::stepped_options();
    out.capacity.bulkheads = bulkheads;
    return out;
  }
  const View& view() const { return old_->view(); }
  BulkheadCaller holder(const View& in) const {
    return {row_.index, row_.generation, shared_stripe(in)};
  }
  BreakerCaller caller(const View& in) {
    return {row_.index, row_.generation, shared_stripe(in), &local_, {}};
  }
  void take() {
    const BreakerRef dep = find_breaker(view(), "dep"), slow = find_breaker(view(), "slow");
    const BreakerEntry first = enter_breaker(view(), dep, caller(view()), 0);
    finish_breaker(view(), dep, caller(view()), first.call, {.kind = Ended::Failure});
    step_clock(view(), view().clock.now() + 2'000'000);
    probe_ = enter_breaker(view(), dep, caller(view()), 0).call;
    ASSERT_EQ(probe_.kind, CallKind::Probe);
    tracked_ = enter_breaker(view(), slow, caller(view()), 0).call;
    ASSERT_FALSE(tracked_.ticket == Word16{});
    place_ = enter_bulkhead(view(), find_bulkhead(view(), "gate"), holder(view())).place;
    ASSERT_NE(place_.cell_value, 0U);
    step_clock(view(), view().clock.now() + 2'000'000);
  }
  /// All three; what each says is kept for the successor.
  void give_back() {
    left_ = leave_bulkhead(view(), find_bulkhead(view(), "gate"), holder(view()), place_);
    probed_ = finish_breaker(view(), find_breaker(view(), "dep"), caller(view()), probe_, kGood);
    ended_ = finish_breaker(view(), find_breaker(view(), "slow"), caller(view()), tracked_, kGood);
  }
  void move() {
    auto done = supersede(directory_.fd(), *old_, options(4));
    ASSERT_TRUE(done) << done.error().text();
    next_ = std::make_unique<Segment>(std::move(done->segment));
  }
  void follow_and_expect_nothing_held() {
    ASSERT_TRUE(next_);
    const View& in = next_->view();
    const BulkheadRef gate = find_bulkhead(in, "gate");
    const BreakerRef dep = find_breaker(in, "dep"), slow = find_breaker(in, "slow");
    if (left_ == Left::Moved) leave_bulkhead(in, gate, holder(in), place_);
    if (goes_on(probed_)) finish_in_successor(in, dep, caller(in), probe_, kGood, probed_);
    if (goes_on(ended_)) finish_in_successor(in, slow, caller(in), tracked_, kGood, ended_);

    BulkheadInfo use;
    ASSERT_TRUE(read_bulkhead(in, gate.index, use));
    EXPECT_EQ(use.in_use, 0U);
    BreakerInfo state;
    ASSERT_TRUE(read_breaker(in, dep.index, state));
    EXPECT_EQ(state.word.state, rule::BreakerState::Closed);
    ASSERT_TRUE(read_breaker(in, slow.index, state));
    EXPECT_EQ(state.hanging, 0U);
    EXPECT_TRUE(enter_bulkhead(in, gate, holder(in)).granted);
    EXPECT_TRUE(verify(in).findings.empty());
  }

  static constexpr BreakerReport kGood{.kind = Ended::Success, .duration_ns = 1};
  TmpfsDirectory directory_;
  std::unique_ptr<Segment> old_, next_;
  std::unique_ptr<RowTable> rows_;
  RowGrant row_;
  BreakerLocal local_;
  BreakerCall probe_, tracked_;
  PlaceTicket place_;
  Left left_ = Left::Nothing;
  Recorded probed_ = Recorded::Nothing, ended_ = Recorded::Nothing;
};

void hook(const char* stop) {
  if (at_stop) at_stop(stop);
}

constexpr const char* kStops[] = {"supersede.built",       "supersede.named", "supersede.marked",
                                  "supersede.before_copy", "supersede.copied",
                                  "supersede.before_rename", "supersede.renamed"};

class SupersedeLeaveAt : public SupersedeLeave, public testing::WithParamInterface<const char*> {};

TEST_P(SupersedeLeaveAt, GivenBackAtThisStopOfTheMove) {
  bool stopped = false;
  at_stop = [&](const std::string& stop) {
    if (stopped || stop != GetParam()) return;
    stopped = true;
    give_back();
  };
  sync_point_hook = hook;

  move();

  sync_point_hook = nullptr;
  EXPECT_TRUE(stopped);
  const std::string at = GetParam();
  const bool before = at == "supersede.built" || at == "supersede.named";
  EXPECT_EQ(left_, before ? Left::Returned : Left::Moved);
  EXPECT_EQ(goes_on(probed_), !before);
  follow_and_expect_nothing_held();
}

INSTANTIATE_TEST_SUITE_P(EveryStop, SupersedeLeaveAt, testing::ValuesIn(kStops));

/// The return began before the mark, its swap comes after the copy.
class SupersedeBetween : public SupersedeLeave, public testing::WithParamInterface<const char*> {};

TEST_P(SupersedeBetween, TheLookAndTheSwapOfTheReturn) {
  bool moved = false;
  at_stop = [&](const std::string& at) {
    if (moved || at != GetParam()) return;
    moved = true;
    move();
  };
  sync_point_hook = hook;

  give_back();

  sync_point_hook = nullptr;
  ASSERT_TRUE(moved);
  const bool place = std::string(GetParam()) == "bulkhead.before_free";
  EXPECT_EQ(left_, place ? Left::Moved : Left::Returned);
  EXPECT_EQ(probed_, place ? Recorded::Moved : Recorded::Overtaken);
  EXPECT_EQ(ended_, Recorded::Moved);
  follow_and_expect_nothing_held();
}

INSTANTIATE_TEST_SUITE_P(OfPlaceAndProbe, SupersedeBetween,
                         testing::Values("bulkhead.before_free", "breaker.before_result"));

}  // namespace
}  // namespace cutwater::shm
