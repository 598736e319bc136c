// SPDX-License-Identifier: Apache-2.0
// Many processes over one bulkhead: never more inside than it has places, exact sums, and
// whoever is killed or stopped, the others finish and no place is lost.
#include <thread>

#include "stress/bulkhead_world.hpp"
#include "stress/crew.hpp"

namespace cutwater::test {
namespace {

using shm::BulkheadCounter;
using shm::BulkheadEntry;
using State = shm::LineLook::State;

constexpr std::uint32_t kProcesses = 8;
constexpr std::uint32_t kThreads = 4;

struct Told {
  /// Eight bits for each process: how many of it are inside. One word, so that one look at it is
  /// one moment.
  std::atomic<std::uint64_t> inside{0};
  std::atomic<std::uint64_t> granted{0}, refused{0}, over{0}, stale{0}, rounds{0};

  void entered(std::uint32_t p, std::uint32_t limit) {
    std::uint64_t now = inside.fetch_add(one_of(p)) + one_of(p), all = 0;
    for (; now != 0; now >>= 8) all += now & 0xff;
    if (all > limit) ++over;
    ++granted;
  }
  void left(std::uint32_t p) { inside -= one_of(p); }
  void died(std::uint32_t p) { inside &= ~(one_of(p) * 0xff); }
  static std::uint64_t one_of(std::uint32_t p) { return std::uint64_t{1} << (8 * p); }
};

/// One visit: a place at once, or in line, or refused.
void visit(const BulkheadWorld& w, Told& told, std::uint32_t p, std::uint32_t limit,
           Chance& chance) {
  BulkheadEntry entry = w.enter(p);
  if (!entry.granted && chance.one_in(2)) {
    const shm::JoinedLine line = w.join(p);
    if (line.joined) {
      shm::LineLook look = w.poll(line, p);
      while (look.state == State::Waiting) {
        shm::sleep_in_line(w.view(), w.ref(), w.caller(p), line.wait, look);
        look = w.poll(line, p);
      }
      entry = look.entry;
    }
  }
  ++told.rounds;
  if (!entry.granted) {
    ++told.refused;
    return;
  }
  told.entered(p, limit);
  if (chance.one_in(4)) sched_yield();
  told.left(p);
  if (w.leave(entry, p) != shm::Left::Returned) ++told.stale;
}

TEST(BulkheadProcesses, SumsAreExactAndNeverOneTooManyIsInside) {
  constexpr std::uint32_t kLimit = 3;
  constexpr int kVisits = 500;
  BulkheadWorld w(bulkhead_of({kLimit, rule::kWaitForever, 20, 0}), kProcesses);
  Shared<Told> told;
  EXPECT_TRUE(run_crowd(kProcesses, kThreads, [&](std::uint32_t p, std::uint32_t t) {
    Chance chance(1 + p * kThreads + t);
    for (int i = 0; i < kVisits; ++i) visit(w, *told, p, kLimit, chance);
  }));
  EXPECT_EQ(told->over, 0U);
  EXPECT_EQ(told->stale, 0U);
  EXPECT_EQ(told->granted + told->refused, kProcesses * kThreads * std::uint64_t{kVisits});
  EXPECT_EQ(w.in_use(), 0U);
  EXPECT_EQ(w.info().waiting, 0U);
  EXPECT_EQ(w.count(BulkheadCounter::Granted), told->granted);
  EXPECT_EQ(w.count(BulkheadCounter::Returned), told->granted);
  EXPECT_EQ(w.count(BulkheadCounter::Stale), 0U);
  std::printf("granted %lu (after a wait %lu, handed over %lu), refused %lu\n",
              static_cast<unsigned long>(told->granted),
              static_cast<unsigned long>(w.count(BulkheadCounter::Waited)),
              static_cast<unsigned long>(w.count(BulkheadCounter::HandedOver)),
              static_cast<unsigned long>(told->refused));
}

/// Children that visit until they are told to stop; the parent is their daemon.
class Storm {
 public:
  static constexpr std::uint32_t kLimit = 3;

  Storm() : w_(bulkhead_of({kLimit, rule::kWaitForever, 12, 0}), kProcesses) {
    for (std::uint32_t p = 0; p < kProcesses; ++p) begin(p);
  }
  ~Storm() {
    for (const pid_t child : children_) {
      ::kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
  }

  /// So many visits more, by whom ever; false: nobody came on within the watchdog's time.
  bool wait_for_visits(std::uint64_t more) {
    const std::uint64_t wanted = told_->rounds + more;
    const auto begun = std::chrono::steady_clock::now();
    while (told_->rounds < wanted) {
      w_.tick();
      std::this_thread::yield();
      if (std::chrono::steady_clock::now() - begun > std::chrono::seconds(kWatchdogSeconds)) {
        return false;
      }
    }
    return true;
  }
  void kill(std::uint32_t p) {
    ::kill(children_[p], SIGKILL);
    waitpid(children_[p], nullptr, 0);
    told_->died(p);
    w_.revive(p);
    begin(p);
  }
  void stop(std::uint32_t p) { ::kill(children_[p], SIGSTOP); }
  void go_on(std::uint32_t p) { ::kill(children_[p], SIGCONT); }
  void end_all() {
    for (std::uint32_t p = 0; p < kProcesses; ++p) {
      ::kill(children_[p], SIGKILL);
      waitpid(children_[p], nullptr, 0);
      told_->died(p);
      w_.revive(p);
    }
    children_.clear();
  }
  BulkheadWorld& world() { return w_; }
  Told& told() { return *told_; }

 private:
  void begin(std::uint32_t p) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(2 * kWatchdogSeconds);
      for (Chance chance(spread(++life_) + p);;) visit(w_, *told_, p, kLimit, chance);
    }
    if (children_.size() <= p) children_.resize(p + 1);
    children_[p] = child;
  }

  BulkheadWorld w_;
  Shared<Told> told_;
  std::vector<pid_t> children_;
  std::uint64_t life_ = 0;
};

// covers: C054
TEST(BulkheadProcesses, WhoeverIsKilledOrStoppedTheOthersGoOnAndNoPlaceIsLost) {
  Storm storm;
  Chance chance(54);
  int killed = 0, stopped = 0;
  for (int i = 0; i < 600 && !testing::Test::HasFailure(); ++i) {
    ASSERT_TRUE(storm.wait_for_visits(1 + chance.below(40))) << "event " << i;
    const auto p = static_cast<std::uint32_t>(chance.below(kProcesses));
    if (chance.one_in(3)) {
      storm.stop(p);                                 // as holder, releaser, waiter, newcomer
      ++stopped;
      ASSERT_TRUE(storm.wait_for_visits(20)) << "event " << i;
      storm.go_on(p);
    } else {
      storm.kill(p);
      ++killed;
    }
    EXPECT_LE(storm.world().in_use(), Storm::kLimit);
  }
  storm.end_all();
  BulkheadWorld& w = storm.world();
  EXPECT_EQ(storm.told().over, 0U);
  EXPECT_EQ(storm.told().stale, 0U);
  EXPECT_EQ(w.in_use(), 0U);
  EXPECT_EQ(w.info().waiting, 0U);
  for (std::uint32_t i = 0; i < Storm::kLimit; ++i) EXPECT_TRUE(w.enter(i).granted);
  EXPECT_FALSE(w.enter(0).granted);
  std::printf("killed %d, stopped %d, visits %lu, reclaimed %lu, handed over %lu\n", killed,
              stopped, static_cast<unsigned long>(storm.told().rounds),
              static_cast<unsigned long>(w.count(BulkheadCounter::Reclaimed)),
              static_cast<unsigned long>(w.count(BulkheadCounter::HandedOver)));
}

}  // namespace
}  // namespace cutwater::test
