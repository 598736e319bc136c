// SPDX-License-Identifier: Apache-2.0
// Random worlds of admissions in one step against a model of a few lines that counts instead of
// swapping: who is admitted, who refuses and for how long, who stands in line and in which order;
// and every refusal leaves every byte as it was.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <list>

#include "stress/enter_world.hpp"

namespace cutwater::test {
namespace {

using rule::BreakerState;
using shm::Ended;
using shm::EnterPart;
using shm::EnterStep;
using shm::Steer;

constexpr std::int64_t kOpenWait = 50 * kMillisecond;

/// What is asked, as the model sees it.
struct Wish {
  EnterWish real;
  std::int64_t at = 0;                 // when it joined
};

struct Verdict {
  Reason reason = Reason::Allowed;
  EnterPart part = EnterPart::None;
  std::int64_t wait = 0;               // 0: a hint, not compared
};

/// The world, counted. Time, tokens and places are plain numbers.
struct Model {
  EnterSetup setup;
  BreakerState state = BreakerState::Closed;
  std::int64_t open_until = 0;
  std::uint32_t probes = 1, held = 0, spent = 0;
  std::uint32_t epoch = 0;
  std::uint32_t in_use = 0;
  std::array<std::int64_t, 2> tat{0, 0};

  void settle(std::int64_t now) {
    if (state == BreakerState::Open && now > open_until) {
      state = BreakerState::HalfOpen;
      held = spent = 0;
      ++epoch;
    }
  }
  void open(std::int64_t until) {
    state = BreakerState::Open;
    open_until = until;
    ++epoch;
  }

  Verdict breaker(const Wish& wish, std::int64_t now) const {
    if (!wish.real.breaker) return {};
    if (state == BreakerState::ForcedOpen) return {Reason::Open, EnterPart::Breaker, -1};
    if (state == BreakerState::Open && now <= open_until) {
      return {Reason::Open, EnterPart::Breaker, open_until - now + 1};
    }
    if (state == BreakerState::HalfOpen && held + spent >= probes) {
      return {Reason::Probing, EnterPart::Breaker, 0};
    }
    return {};
  }
  Verdict deadline(const Wish& wish, std::int64_t now) const {
    if (wish.real.deadline_ns == 0 || now < wish.real.deadline_ns) return {};
    return {Reason::Expired, EnterPart::None, 0};
  }
  bool is_free(std::size_t in_line) const { return in_line == 0 && in_use < setup.places; }
  Verdict limits(const Wish& wish, std::int64_t now) const {
    Verdict worst;
    for (std::size_t i = 0; i < 2; ++i) {
      const auto cost = static_cast<std::int64_t>(wish.real.cost[i]);
      const auto burst = static_cast<std::int64_t>(setup.burst[i]);
      if (cost == 0) continue;
      if (cost > burst) return {Reason::Never, EnterPart::Limit, -1};
      const std::int64_t due = std::max(tat[i], now) + (cost - burst) * setup.token_ns;
      if (due > now && due - now > worst.wait) {
        worst = {Reason::Limit, EnterPart::Limit, due - now};
      }
    }
    return worst;
  }
  void charge(const Wish& wish, std::int64_t now) {
    for (std::size_t i = 0; i < 2; ++i) {
      const auto cost = static_cast<std::int64_t>(wish.real.cost[i]);
      if (cost != 0) tat[i] = std::max(tat[i], now) + cost * setup.token_ns;
    }
  }
  /// Takes the probe that was seen to be free.
  bool take_probe(const Wish& wish, std::int64_t now) {
    if (!wish.real.breaker) return false;
    settle(now);
    if (state != BreakerState::HalfOpen) return false;
    ++held;
    return true;
  }
  void end_probe(Ended how, std::uint32_t of, std::int64_t now) {
    if (of != epoch || state != BreakerState::HalfOpen) return;
    --held;
    if (how == Ended::Cancelled) return;
    ++spent;
    if (how == Ended::Failure) return open(now + kOpenWait);
    if (spent == probes) {
      state = BreakerState::Closed;
      ++epoch;
    }
  }
};

struct Running {
  std::unique_ptr<EnterCase> real;
  bool has_place = false, has_probe = false;
  std::uint32_t epoch = 0;
};
struct Waiting {
  std::unique_ptr<EnterCase> real;
  Wish wish;
  std::int64_t until = 0;
  bool by_deadline = false;
  bool handed = false;
};

class Script {
 public:
  Script(std::uint64_t seed, int steps) : chance_(seed), steps_(steps) {
    setup_.places = 1 + static_cast<std::uint32_t>(chance_.below(3));
    setup_.max_waiting = 1 + static_cast<std::uint32_t>(chance_.below(3));
    setup_.max_wait_ns = chance_.one_in(3) ? 0 : 300'000'000;
    setup_.burst = {1 + chance_.below(4), 1 + chance_.below(6)};
    const auto probes = static_cast<std::uint32_t>(1 + chance_.below(3));
    setup_.breaker = count_breaker({100, 100, probes});
    setup_.breaker.half_open_rule = rule::HalfOpenRule::AllSucceed;
    setup_.breaker.open_wait_ns = static_cast<std::uint64_t>(kOpenWait);
    setup_.breaker.probe_timeout_ns = 600'000'000'000;
    model_.setup = setup_;
    model_.probes = probes;
    w_ = std::make_unique<EnterWorld>(setup_);
    w_->quiet(true);
  }

  void run() {
    for (int i = 0; i < steps_ && !testing::Test::HasFailure(); ++i) step();
  }

  std::uint64_t asked = 0, granted = 0, refused = 0, waited = 0;

 private:
  void step() {
    switch (chance_.below(8)) {
      case 0:
      case 1: pass(); break;
      case 2:
      case 3: end_one(); break;
      default: ask();
    }
    if (chance_.one_in(200)) steer();
    look_in_line();
    compare();
  }

  std::int64_t now() const { return w_->now(); }

  void pass() {
    same_ = false;
    w_->pass(static_cast<std::int64_t>(chance_.below(24'000'000)));
  }

  void steer() {
    same_ = false;
    switch (model_.state == BreakerState::ForcedOpen ? 0 : chance_.below(4)) {
      case 0:
        if (w_->steer(Steer::Reset) != shm::Steered::Done) return;
        model_.state = BreakerState::Closed;
        ++model_.epoch;
        break;
      case 1:
        if (w_->steer(Steer::ForceOpen) != shm::Steered::Done) return;
        model_.state = BreakerState::ForcedOpen;
        ++model_.epoch;
        break;
      default:
        const auto length = static_cast<std::int64_t>(1 + chance_.below(20'000'000));
        if (w_->steer(Steer::ToOpen, length) != shm::Steered::Done) return;
        model_.open(now() + length);
    }
  }

  Wish wish() {
    Wish out;
    out.real.breaker = !chance_.one_in(5);
    out.real.bulkhead = !chance_.one_in(6);
    for (std::size_t i = 0; i < 2; ++i) {
      out.real.cost[i] = chance_.one_in(20) ? 9 : chance_.below(3);
    }
    if (chance_.one_in(3)) {
      out.real.max_wait_ns = chance_.one_in(4)
                                 ? shm::kWaitAsConfigured
                                 : static_cast<std::int64_t>(1 + chance_.below(40'000'000));
    }
    if (chance_.one_in(8)) {
      out.real.deadline_ns = now() + static_cast<std::int64_t>(chance_.below(30'000'000));
    }
    return out;
  }

  /// True: `verdict` refuses.
  static bool refuses(const Verdict& verdict) { return verdict.reason != Reason::Allowed; }

  bool may_wait(const Wish& wish) const {
    return wish.real.max_wait_ns != 0 && setup_.max_wait_ns != 0;
  }

  void ask() {
    ++asked;
    const Wish wanted = wish();
    auto real = w_->ask(static_cast<std::uint32_t>(chance_.below(4)), wanted.real);
    if (!same_) before_ = w_->world().save();
    w_->begin(*real);

    Verdict verdict = model_.breaker(wanted, now());
    if (!refuses(verdict)) verdict = model_.deadline(wanted, now());
    bool joins = false;
    if (!refuses(verdict) && wanted.real.bulkhead && !model_.is_free(line_.size())) {
      joins = may_wait(wanted);
      if (!joins) verdict = {Reason::Full, EnterPart::Bulkhead, 0};
    }
    if (!refuses(verdict)) verdict = model_.limits(wanted, now());
    if (!refuses(verdict) && joins && line_.size() >= setup_.max_waiting) {
      verdict = {Reason::Full, EnterPart::Bulkhead, 0};
    }
    if (refuses(verdict)) {
      ++refused;
      expect(*real, verdict);
      same_ = w_->world().same(before_);
      EXPECT_TRUE(same_) << "a refusal wrote something";
      return;
    }
    same_ = false;
    if (joins) {
      ++waited;
      EXPECT_TRUE(real->waits());
      Waiting one;
      one.wish = wanted;
      const std::int64_t most = static_cast<std::int64_t>(setup_.max_wait_ns);
      const std::int64_t mine =
          wanted.real.max_wait_ns < 0 ? most : std::min(most, wanted.real.max_wait_ns);
      one.until = now() + mine;
      one.by_deadline = wanted.real.deadline_ns != 0 && wanted.real.deadline_ns < one.until;
      if (one.by_deadline) one.until = wanted.real.deadline_ns;
      one.real = std::move(real);
      line_.push_back(std::move(one));
      return;
    }
    if (wanted.real.bulkhead) ++model_.in_use;
    grant(std::move(real), wanted);
  }

  void grant(std::unique_ptr<EnterCase> real, const Wish& wanted) {
    ++granted;
    ASSERT_EQ(real->step, EnterStep::Done);
    ASSERT_TRUE(real->granted()) << "refused by " << static_cast<int>(real->answer.part) << ", "
                                 << static_cast<int>(real->answer.reason);
    model_.charge(wanted, now());
    Running one;
    one.has_place = wanted.real.bulkhead;
    one.has_probe = model_.take_probe(wanted, now());
    one.epoch = model_.epoch;
    EXPECT_EQ(real->answer.call.kind == shm::CallKind::Probe, one.has_probe);
    EXPECT_EQ(real->answer.place.cell_value != 0, one.has_place);
    const bool at_once = one.has_probe && wanted.real.deadline_ns != 0;
    one.real = std::move(real);
    running_.push_back(std::move(one));
    // No probe is left until its deadline: what becomes of late ones is told elsewhere.
    if (at_once) end(std::prev(running_.end()), Ended::Cancelled);
  }

  void expect(const EnterCase& real, const Verdict& verdict) {
    EXPECT_EQ(real.step, EnterStep::Done);
    EXPECT_EQ(static_cast<int>(real.answer.reason), static_cast<int>(verdict.reason));
    EXPECT_EQ(static_cast<int>(real.answer.part), static_cast<int>(verdict.part));
    EXPECT_NE(real.answer.retry_after_ns, 0);
    if (verdict.wait == 0) return;
    EXPECT_FALSE(real.answer.hint);
    EXPECT_EQ(real.answer.retry_after_ns, verdict.wait);
  }

  void end_one() {
    if (running_.empty()) return;
    auto at = running_.begin();
    std::advance(at, static_cast<long>(chance_.below(running_.size())));
    const Ended how[] = {Ended::Success, Ended::Success, Ended::Failure, Ended::Cancelled};
    end(at, how[chance_.below(at->has_probe ? 4 : 2)]);
  }

  void end(std::list<Running>::iterator at, Ended how) {
    same_ = false;
    if (at->has_probe) model_.end_probe(how, at->epoch, now());
    w_->finish(*at->real, how);
    if (at->has_place) pass_on();
    running_.erase(at);
  }

  /// A place is free: to the first in line that is in time, else to nobody.
  void pass_on() {
    for (Waiting& one : line_) {
      if (one.handed || one.until <= now()) continue;
      one.handed = true;
      return;
    }
    --model_.in_use;
  }

  void look_in_line() {
    same_ = same_ && line_.empty();
    for (auto at = line_.begin(); at != line_.end() && !testing::Test::HasFailure();) {
      w_->resume(*at->real);
      const Verdict seen = model_.breaker(at->wish, now());
      if (at->handed) {
        arrive(*at);
      } else if (at->until <= now()) {
        const Reason over = at->by_deadline ? Reason::Expired : Reason::Full;
        expect(*at->real, {over, EnterPart::Bulkhead, 0});
      } else if (seen.reason == Reason::Open) {
        expect(*at->real, seen);
      } else {
        EXPECT_TRUE(at->real->waits());
        ++at;
        continue;
      }
      at = line_.erase(at);
    }
  }

  void pass_on_without(Waiting& gone) {
    gone.until = 0;                                  // not again to the one that leaves
    pass_on();
  }

  /// It got its place: the rest is as for anybody else.
  void arrive(Waiting& one) {
    Verdict verdict = model_.breaker(one.wish, now());
    if (!refuses(verdict) && refuses(model_.deadline(one.wish, now()))) {
      verdict = {Reason::Expired, EnterPart::Bulkhead, 0};
    }
    if (!refuses(verdict)) verdict = model_.limits(one.wish, now());
    if (!refuses(verdict)) return grant(std::move(one.real), one.wish);
    expect(*one.real, verdict);
    pass_on_without(one);
  }

  void compare() {
    const shm::BulkheadInfo gate = w_->bulkhead_info();
    EXPECT_EQ(gate.in_use, model_.in_use);
    EXPECT_EQ(gate.waiting, line_.size());
    if (model_.state == BreakerState::HalfOpen) {
      EXPECT_EQ(w_->breaker_info().probes_held, model_.held);
    }
  }

  Chance chance_;
  int steps_;
  EnterSetup setup_;
  Model model_;
  std::unique_ptr<EnterWorld> w_;
  std::list<Running> running_;
  std::list<Waiting> line_;
  Snapshot before_;
  bool same_ = false;                  // nothing was written since `before_`
};

TEST(EnterScript, ManyRandomWorldsAgreeWithTheModel) {
  const char* const given = std::getenv("ENTER_SCRIPT_SEED");
  const std::uint64_t first = given != nullptr ? std::strtoull(given, nullptr, 10) : 1;
  std::uint64_t asked = 0, granted = 0, refused = 0, waited = 0;
  for (std::uint64_t seed = first; asked < 100'000; ++seed) {
    SCOPED_TRACE("ENTER_SCRIPT_SEED=" + std::to_string(seed));
    Script script(seed, 4'000);
    script.run();
    asked += script.asked;
    granted += script.granted;
    refused += script.refused;
    waited += script.waited;
    if (HasFailure()) break;
  }
  std::cout << asked << " asks: " << granted << " granted, " << refused << " refused at once, "
            << waited << " in line\n";
  EXPECT_GT(granted, asked / 20);
  EXPECT_GT(refused, asked / 20);
  EXPECT_GT(waited, asked / 100);
}

}  // namespace
}  // namespace cutwater::test
