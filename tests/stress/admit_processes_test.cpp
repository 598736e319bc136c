// SPDX-License-Identifier: Apache-2.0
// All or none by several processes on one memory, some of them killed. What each was given is
// merged afterwards: no token of any window twice (P1), no more than there was, and tokens lost
// only to kills and overtaken roll-backs.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "rule/decision_report.hpp"
#include "shm/limit/admit.hpp"
#include "stress/crew.hpp"
#include "stress/world.hpp"
#include "support/image_edit.hpp"

namespace cutwater::test {
namespace {

constexpr int kCrew = 4;
constexpr std::size_t kLogged = 60'000;
constexpr std::size_t kWords = 4;            // windows of both limits
constexpr std::uint64_t kBurst[kWords] = {30'000, 40'000, 50'000, 45'000};

/// One charge of one window.
struct Charged {
  std::uint64_t word;
  std::int64_t from, to;
};
struct Log {
  std::atomic<std::uint64_t> count{0};       // entries below it are whole, also when it is killed
  std::atomic<std::uint64_t> refused{0}, rounds{0};
  Charged entry[kLogged];
};
struct Board {
  Meeting meeting;
  Log log[kCrew];
};

/// Notes every window of an answer: "three" are words 0..2, "one" is word 3.
void note(Log& log, bool three, const DecisionData& d) {
  std::uint64_t n = log.count.load(std::memory_order_relaxed);
  const auto add = [&](std::uint64_t word, std::int64_t level, std::int64_t cost) {
    if (n < kLogged) log.entry[n++] = {word, level - cost, level};
  };
  add(three ? 0 : 3, d.level, d.cost);
  for (std::size_t w = 1; three && w < d.charges; ++w)
    add(w, d.more[w - 1].level, d.more[w - 1].cost);
  log.count.store(n, std::memory_order_release);
}

class AdmitProcesses : public testing::Test {
 protected:
  static ImageEdit::Window never(std::uint64_t burst) {      // nothing comes back meanwhile
    return {.count = 1, .period_ns = 1000 * kHour, .burst = burst};
  }

  /// Asks until both are refused everything, in lists of either order.
  void work(int me, Board& board, std::uint64_t rounds) {
    Chance chance(spread(static_cast<std::uint64_t>(me)));
    Log& log = board.log[me];
    board.meeting.wait(kCrew);
    for (std::uint64_t i = 0; i < rounds; ++i) {
      const std::uint64_t cost = 1 + chance.below(3);
      const shm::AdmitAsk three{three_, {key(7), {}}, cost, 0}, one{one_, {key(7), {}}, cost, 0};
      const bool turned = chance.one_in(2);
      const shm::AdmitAsk asks[] = {turned ? one : three, turned ? three : one};
      shm::AdmitAnswer answer;
      if (shm::admit_all(world_.view(), asks, answer) != shm::Outcome::Answered) std::abort();
      log.rounds.fetch_add(1, std::memory_order_relaxed);
      if (answer.verdict.reason != Reason::Allowed) {
        log.refused.fetch_add(1, std::memory_order_relaxed);
        continue;
      }
      DecisionData& of_three = answer.item[turned ? 1 : 0];
      DecisionData& of_one = answer.item[turned ? 0 : 1];
      // Some change their mind: what is given back whole may be given again.
      if (chance.one_in(8)) {
        DecisionData three_was = of_three, one_was = of_one;
        if (shm::give_back(world_.view(), of_one) == 0) note(log, false, one_was);
        if (shm::give_back(world_.view(), of_three) == 0) note_rest(log, three_was, of_three);
        continue;
      }
      note(log, true, of_three);
      note(log, false, of_one);
    }
  }
  /// Of an undo that came too late in some windows: those stay spent.
  static void note_rest(Log& log, const DecisionData& was, const DecisionData& now) {
    std::uint64_t n = log.count.load(std::memory_order_relaxed);
    if (now.slot != nullptr && n < kLogged) log.entry[n++] = {0, was.level - was.cost, was.level};
    for (std::size_t w = 1; w < now.charges; ++w) {
      const ChargeReceipt& rest = now.more[w - 1];
      if (rest.slot == nullptr || n == kLogged) continue;
      log.entry[n++] = {w, rest.level - rest.cost, rest.level};
    }
    log.count.store(n, std::memory_order_release);
  }

  struct Sum {
    std::array<std::uint64_t, kWords> given{}, left{};
  };
  /// Merges the logs: slices disjoint, nobody over the burst.
  Sum merge(Board& board) {
    std::vector<Charged> all;
    for (Log& log : board.log) all.insert(all.end(), log.entry, log.entry + log.count);
    std::sort(all.begin(), all.end(), [](const Charged& a, const Charged& b) {
      return std::pair(a.word, a.from) < std::pair(b.word, b.from);
    });
    Sum sum;
    const std::uint8_t f[kWords] = {f_of(three_, 0), f_of(three_, 1), f_of(three_, 2),
                                    f_of(one_, 0)};
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool follows = i > 0 && all[i - 1].word == all[i].word;
      EXPECT_TRUE(!follows || all[i - 1].to <= all[i].from) << "a token was given twice";
      const auto units = static_cast<std::uint64_t>(all[i].to - all[i].from);
      sum.given[all[i].word] += units >> f[all[i].word];
    }
    for (std::size_t w = 0; w < kWords; ++w) {
      shm::BucketAsk look{.limit = w < 3 ? three_ : one_, .key = key(7)};
      look.cost = 0;
      look.window = static_cast<std::uint8_t>(w < 3 ? w : 0);
      std::uint64_t hint = shm::kNoSlot;
      DecisionData out;
      (void)shm::look(world_.view(), look, hint, out);
      sum.left[w] = rule::report_of(out).remaining;
    }
    return sum;
  }
  std::uint8_t f_of(shm::LimitRef limit, std::size_t window) {
    const std::uint64_t c = world_.view().current();
    return world_.view().rule(c, world_.view().limit_config(c, limit.index).rule[window]).f;
  }

  World world_{{limit("unused", {1, kHour}, 1)}, {.limits = 6, .clock = shm::ClockKind::Boottime}};
  ImageEdit edit_{world_.view()};
  shm::LimitRef three_ = edit_.add_limit("three", {never(kBurst[0]), never(kBurst[1]),
                                                   never(kBurst[2])});
  shm::LimitRef one_ = edit_.add_limit("one", {never(kBurst[3])});
};

// covers: C011 (many processes)
TEST_F(AdmitProcesses, AllOrNoneInListsOfBothOrders) {
  Shared<Board> board;

  ASSERT_TRUE(run_crew(kCrew, [&](int me) { work(me, *board, 12'000); }));

  const Sum sum = merge(*board);
  std::uint64_t most_lost = 0;
  for (std::size_t w = 0; w < kWords; ++w) {
    ASSERT_LE(sum.given[w] + sum.left[w], kBurst[w]) << "more than there was, window " << w;
    most_lost = std::max(most_lost, kBurst[w] - sum.given[w] - sum.left[w]);
  }
  std::printf("given %lu, left in the tightest %lu, lost to overtaken roll-backs at most %lu\n",
              static_cast<unsigned long>(sum.given[0]), static_cast<unsigned long>(sum.left[0]),
              static_cast<unsigned long>(most_lost));
  EXPECT_EQ(sum.left[0], 0U);                       // the tightest window is asked empty
}

TEST_F(AdmitProcesses, AKillCostsItsCostInEachWindowAndNoMore) {
  Shared<Board> board;
  std::vector<pid_t> children;
  for (int me = 0; me < kCrew; ++me) {
    const std::uint64_t rounds = me < 2 ? 1'000'000'000 : 3'000;
    children.push_back(start_process([&, me, rounds] { work(me, *board, rounds); }));
  }
  // The two that would never end are killed once they are in the middle of it.
  for (int me = 0; me < 2; ++me) {
    while (board->log[me].rounds.load() < 2'000) sched_yield();
    kill(children[me], SIGKILL);
  }
  for (int me = 0; me < kCrew; ++me) {
    const int status = wait_for(children[me]);
    EXPECT_EQ(me < 2 ? WTERMSIG(status) == SIGKILL : status == 0, true);
  }

  const Sum sum = merge(*board);
  for (std::size_t w = 0; w < kWords; ++w) {
    ASSERT_LE(sum.given[w] + sum.left[w], kBurst[w]) << "more than there was, window " << w;
  }
  // Somebody else goes on and gets all that is left.
  std::uint64_t more = 0;
  for (;; ++more) {
    const shm::AdmitAsk asks[] = {{one_, {key(7), {}}, 1, 0}, {three_, {key(7), {}}, 1, 0}};
    shm::AdmitAnswer answer;
    ASSERT_EQ(shm::admit_all(world_.view(), asks, answer), shm::Outcome::Answered);
    if (answer.verdict.reason != Reason::Allowed) break;
  }
  EXPECT_EQ(more, *std::min_element(sum.left.begin(), sum.left.end()));
  EXPECT_EQ(world_.claims_of(key(7)), 0U);
}

}  // namespace
}  // namespace cutwater::test
