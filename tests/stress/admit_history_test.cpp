// SPDX-License-Identifier: Apache-2.0
// Limits of several windows and several limits at once, against an exact naive model: 10^5 random
// histories on the stepped clock. Each window of the model is a bucket in rational arithmetic
// (tests/support/exact_limiter.hpp) or a count per calendar period; all or none is "ask them all,
// then take from them all". Every answer, every field, and after every refusal every byte.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "rule/decision_report.hpp"
#include "shm/limit/admit.hpp"
#include "stress/world.hpp"
#include "support/exact_limiter.hpp"
#include "support/image_edit.hpp"

namespace cutwater::test {
namespace {

constexpr std::uint64_t kHistories = 100'000;
constexpr std::uint64_t kKeys = 3;
using Window = ImageEdit::Window;

/// One window of one key.
class NaiveWindow {
 public:
  explicit NaiveWindow(const Window& window)
      : window_(window),
        bucket_(std::max<std::uint64_t>(window.count, 1),
                static_cast<std::uint64_t>(std::max<std::int64_t>(window.period_ns, 1)),
                window.burst) {}

  struct Receipt {
    ExactReceipt bucket;
    std::size_t period = 0;
    std::uint64_t used = 0, cost = 0;
  };

  ExactAnswer look(std::int64_t t, std::uint64_t cost) const {
    if (window_.edges.empty()) {
      ExactBucket copy = bucket_;
      return copy.take(static_cast<std::uint64_t>(t), cost);
    }
    const std::size_t period = period_at(t);
    const std::uint64_t used = period == period_ ? used_ : 0;
    const auto to_edge = static_cast<std::uint64_t>(window_.edges[period] - t);
    ExactAnswer answer;
    answer.allowed = used + cost <= window_.burst;
    answer.remaining = window_.burst - used - (answer.allowed ? cost : 0);
    answer.reset_after_ns = used + (answer.allowed ? cost : 0) == 0 ? 0 : to_edge;
    if (!answer.allowed) answer.retry_after_ns = to_edge;
    if (cost > window_.burst) answer.retry_after_ns = std::nullopt;
    return answer;
  }
  Receipt take(std::int64_t t, std::uint64_t cost) {
    if (window_.edges.empty())
      return {bucket_.take(static_cast<std::uint64_t>(t), cost).receipt, 0, 0, cost};
    const std::size_t period = period_at(t);
    used_ = (period == period_ ? used_ : 0) + cost;
    period_ = period;
    return {{}, period_, used_, cost};
  }
  void undo(const Receipt& receipt) {
    if (window_.edges.empty()) {
      bucket_.undo(receipt.bucket);
    } else if (receipt.period == period_ && receipt.used == used_) {
      used_ -= receipt.cost;
    }
  }

 private:
  std::size_t period_at(std::int64_t t) const {
    return static_cast<std::size_t>(
        std::upper_bound(window_.edges.begin(), window_.edges.end(), t) - window_.edges.begin());
  }

  Window window_;
  ExactBucket bucket_;
  std::size_t period_ = 0;
  std::uint64_t used_ = 0;
};

using NaiveKey = std::vector<NaiveWindow>;
struct NaiveAnswer {
  bool allowed = true;
  std::uint64_t remaining = ~std::uint64_t{0};
  std::int64_t retry = 0, reset = 0;
};

void join(const ExactAnswer& one, NaiveAnswer& all) {
  all.allowed = all.allowed && one.allowed;
  all.remaining = std::min(all.remaining, one.remaining);
  all.reset = std::max(all.reset, static_cast<std::int64_t>(one.reset_after_ns));
  const auto retry = one.retry_after_ns ? static_cast<std::int64_t>(*one.retry_after_ns)
                                        : rule::kNeverNs;
  if (!one.allowed) all.retry = std::max(all.retry, retry);
}

/// A refusal takes nothing: windows that would grant say what is there.
NaiveAnswer refused_answer(std::int64_t now, const std::vector<shm::AdmitAsk>& asks,
                           const std::vector<NaiveKey*>& keys) {
  NaiveAnswer all;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    for (const NaiveWindow& window : *keys[i]) {
      const ExactAnswer with_cost = window.look(now, asks[i].cost);
      join(with_cost.allowed ? window.look(now, 0) : with_cost, all);
    }
  }
  return all;
}

struct Charge {
  std::vector<NaiveKey*> keys;
  std::vector<std::vector<NaiveWindow::Receipt>> naive;
  std::vector<DecisionData> product;
};

class AdmitHistory : public testing::Test {
 protected:
  AdmitHistory() {
    std::vector<std::int64_t> edges;
    for (std::int64_t i = 1; i <= 24; ++i) edges.push_back((6 * i + i % 3) * kSecond);
    windows_ = {{{.count = 10, .period_ns = kSecond, .burst = 10},
                 {.count = 20, .period_ns = 60 * kSecond, .burst = 20},
                 {.burst = 25, .edges = edges}},
                {{.count = 7, .period_ns = 10 * kSecond, .burst = 5}}};
    for (std::size_t i = 0; i < windows_.size(); ++i) {
      auto placed = windows_[i];
      for (Window& window : placed) {
        for (std::int64_t& edge : window.edges) edge += start_;
      }
      limits_.push_back(edit_.add_limit("limit-" + std::to_string(i), placed));
    }
  }

  bool same_slots(const std::vector<Word16>& before) const {
    return std::memcmp(before.data(), world_.view().slots, before.size() * sizeof(Word16)) == 0;
  }
  std::vector<Word16> slots() const {
    return {world_.view().slots, world_.view().slots + world_.view().slot_count};
  }
  static void expect_near(std::int64_t seen, std::int64_t exact, const char* what) {
    if (exact == rule::kNeverNs || seen == rule::kNeverNs) {
      EXPECT_EQ(seen, exact) << what;
    } else {
      EXPECT_LE(std::abs(seen - exact), 1) << what << " " << seen << ", exactly " << exact;
    }
  }
  void expect_same(const DecisionData& seen, const NaiveAnswer& exact) {
    const rule::Report report = rule::report_of(seen);
    EXPECT_EQ(seen.reason == Reason::Allowed, exact.allowed);
    EXPECT_EQ(report.remaining, exact.remaining);
    expect_near(report.retry_after_ns, exact.retry, "retry_after");
    expect_near(report.reset_after_ns, exact.reset, "reset_after");
    EXPECT_EQ(report.starts_in_ns, 0);
    ++decisions_;
    granted_ += exact.allowed;
  }

  /// Undoes the last charge, or any, in the model and in the product.
  void undo_one(Chance& chance, std::vector<Charge>& charges) {
    const std::size_t at = chance.one_in(2) ? charges.size() - 1 : chance.below(charges.size());
    Charge& charge = charges[at];
    for (std::size_t i = charge.keys.size(); i-- > 0;) {
      for (std::size_t w = charge.keys[i]->size(); w-- > 0;)
        (*charge.keys[i])[w].undo(charge.naive[i][w]);
    }
    for (std::size_t i = charge.product.size(); i-- > 0;)
      undone_ += shm::give_back(world_.view(), charge.product[i]) != 0;
    charges.erase(charges.begin() + static_cast<std::ptrdiff_t>(at));
  }

  World world_{{limit("unused", {1, kSecond}, 1)}, {.limits = 8, .calendars = 4}};
  const std::int64_t start_ = world_.now();
  ImageEdit edit_{world_.view()};
  std::vector<std::vector<Window>> windows_;
  std::vector<shm::LimitRef> limits_;
  std::uint64_t decisions_ = 0, granted_ = 0, undone_ = 0;
};

// covers: P1 of windows, calendars, all or none and undo; T2, T10, T11 (random histories)
TEST_F(AdmitHistory, EveryAnswerIsTheNaiveModels) {
  constexpr std::uint64_t kSeed = 11;
  const Snapshot fresh = world_.save();
  for (std::uint64_t n = 0; n < kHistories && !HasFailure(); ++n) {
    SCOPED_TRACE("seed " + std::to_string(kSeed) + ", history " + std::to_string(n));
    Chance chance(spread(kSeed) + n);
    world_.restore(fresh);
    std::vector<std::vector<NaiveKey>> naive(limits_.size());
    for (std::size_t i = 0; i < limits_.size(); ++i) {
      naive[i].assign(kKeys, NaiveKey(windows_[i].begin(), windows_[i].end()));
    }
    std::vector<Charge> charges;
    std::int64_t now = 0;
    for (std::uint64_t step = 0, steps = 5 + chance.below(25); step < steps; ++step) {
      if (now < 100 * kSecond && chance.one_in(2)) {
        const auto by = static_cast<std::int64_t>(chance.below(4 * kSecond));
        world_.pass(by);
        now += by;
      }
      if (!charges.empty() && chance.one_in(4)) {
        undo_one(chance, charges);
        continue;
      }
      // One limit, or both in either order.
      std::vector<shm::AdmitAsk> asks;
      std::vector<NaiveKey*> keys;
      const std::size_t first = chance.below(2);
      const std::size_t count = 1 + chance.below(2);
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t which = (first + i) % 2;
        const std::uint64_t number = chance.below(kKeys);
        asks.push_back({limits_[which], {key(number), {}}, chance.below(7), 0});
        keys.push_back(&naive[which][number]);
      }
      NaiveAnswer exact;
      for (std::size_t i = 0; i < count; ++i) {
        for (const NaiveWindow& window : *keys[i]) join(window.look(now, asks[i].cost), exact);
      }
      if (!exact.allowed) exact = refused_answer(now, asks, keys);
      const std::vector<Word16> before = slots();
      shm::AdmitAnswer looked, answer;
      ASSERT_EQ(shm::look_all(world_.view(), asks, looked), shm::Outcome::Answered);
      EXPECT_TRUE(same_slots(before));
      if (count == 1 && chance.one_in(2)) {
        ASSERT_EQ(shm::admit(world_.view(), asks[0], answer.verdict), shm::Outcome::Answered);
        answer.item[0] = answer.verdict;
      } else {
        ASSERT_EQ(shm::admit_all(world_.view(), asks, answer), shm::Outcome::Answered);
      }
      expect_same(looked.verdict, exact);
      expect_same(answer.verdict, exact);
      if (!exact.allowed) {
        EXPECT_TRUE(same_slots(before));
        continue;
      }
      Charge charge;
      for (std::size_t i = 0; i < count; ++i) {
        if (asks[i].cost == 0) continue;
        charge.keys.push_back(keys[i]);
        charge.naive.emplace_back();
        for (NaiveWindow& window : *keys[i])
          charge.naive.back().push_back(window.take(now, asks[i].cost));
        charge.product.push_back(answer.item[i]);
      }
      if (!charge.keys.empty()) charges.push_back(std::move(charge));
    }
  }
  std::printf("%lu histories, seed %lu, %lu decisions, %lu granted, %lu undone\n",
              static_cast<unsigned long>(kHistories), static_cast<unsigned long>(kSeed),
              static_cast<unsigned long>(decisions_), static_cast<unsigned long>(granted_),
              static_cast<unsigned long>(undone_));
  EXPECT_GT(undone_, kHistories / 10);
}

// charge(n) is n charges of 1 at one stamp, now and after the fact.
TEST_F(AdmitHistory, ChargeOfManyIsManyCharges) {
  constexpr std::uint64_t kSeed = 12;
  constexpr std::uint64_t kCases = 100'000;
  const Snapshot fresh = world_.save();
  for (std::uint64_t n = 0; n < kCases && !HasFailure(); ++n) {
    SCOPED_TRACE("seed " + std::to_string(kSeed) + ", case " + std::to_string(n));
    Chance chance(spread(kSeed) + n);
    world_.restore(fresh);
    const shm::LimitRef limit = limits_[chance.below(2)];
    const std::uint64_t cost = 1 + chance.below(10);
    const bool late = chance.one_in(2);
    const auto ask = [&](std::uint64_t number, std::uint64_t tokens) {
      const shm::AdmitAsk one{limit, {key(number), {}}, tokens, 0};
      DecisionData out;
      std::uint64_t charged = 0;
      if (late) {
        (void)shm::charge_after(world_.view(), one, charged, out);
        return charged;
      }
      (void)shm::admit(world_.view(), one, out);
      return out.reason == Reason::Allowed ? tokens : std::uint64_t{0};
    };
    const std::uint64_t earlier = chance.below(4);
    for (std::uint64_t number : {1, 2}) ask(number, earlier);
    world_.pass(static_cast<std::int64_t>(chance.below(kSecond)));

    const std::uint64_t at_once = ask(1, cost);
    std::uint64_t one_by_one = 0;
    for (std::uint64_t i = 0; i < cost; ++i) one_by_one += ask(2, 1);

    if (!late && at_once == 0) continue;               // one of many may be there when all are not
    EXPECT_EQ(at_once, one_by_one);
    DecisionData a, b;
    (void)shm::look(world_.view(), {limit, {key(1), {}}, 0, 0}, a);
    (void)shm::look(world_.view(), {limit, {key(2), {}}, 0, 0}, b);
    EXPECT_EQ(rule::report_of(a).remaining, rule::report_of(b).remaining);
    EXPECT_EQ(rule::report_of(a).reset_after_ns, rule::report_of(b).reset_after_ns);
  }
}

}  // namespace
}  // namespace cutwater::test
