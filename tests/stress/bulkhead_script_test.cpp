// SPDX-License-Identifier: Apache-2.0
// Random scripts of entering, leaving, waiting, time, deaths and reloads: after each step the
// bulkhead in shared memory is what a plain list says it is.
#include <algorithm>
#include <sstream>

#include "shm/bulkhead/detail.hpp"
#include "stress/bulkhead_world.hpp"

namespace cutwater::test {
namespace {

using shm::BulkheadEntry;
using State = shm::LineLook::State;

constexpr std::uint32_t kProcesses = 6;
constexpr std::uint32_t kMost = 6;                   // places
constexpr std::uint32_t kLine = 5;
constexpr std::int64_t kUnit = shm::kDeadlineNs;     // times are whole units of a record's deadline

class Script {
 public:
  explicit Script(std::uint64_t seed)
      : chance_(seed), w_(settings(3), kProcesses,
                          {.bulkheads = 2, .bulkhead_cells = 16, .waiters = 16}) {
    w_.pass(kUnit - w_.now() % kUnit);
  }

  void run(int steps) {
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      said_.str("");
      said_ << "step " << i << ": ";
      step();
      SCOPED_TRACE(said_.str());
      agree();
    }
  }
  std::uint64_t granted = 0, waited = 0, reloads = 0, deaths = 0;

 private:
  struct Holder { std::uint32_t process; BulkheadEntry entry; };
  struct Waiting {
    std::uint32_t process;
    shm::JoinedLine line;
    bool handed;                                     // a place is kept for it
  };

  static rule::BulkheadSettings settings(std::uint32_t limit) {
    return bulkhead_of({limit, rule::kWaitForever, kLine, 0});
  }
  std::uint32_t process() { return static_cast<std::uint32_t>(chance_.below(kProcesses)); }
  bool in_time(const Waiting& one) const { return w_.now() < one.line.wait.until_ns; }
  std::uint32_t taken() const {
    std::uint32_t all = static_cast<std::uint32_t>(held_.size());
    for (const Waiting& one : line_) all += one.handed && in_time(one) ? 1u : 0u;
    return all;
  }
  /// Free places go to those in line, in their order.
  void serve() {
    for (Waiting& one : line_) {
      if (!in_time(one)) one.handed = false;
      if (!one.handed && in_time(one) && taken() < limit_) one.handed = true;
    }
  }

  void step() {
    const std::uint64_t dice = chance_.below(1'000);
    if (dice < 300) enter();
    else if (dice < 600) leave();
    else if (dice < 720) join();
    else if (dice < 880) poll();
    else if (dice < 920) give_up();
    else if (dice < 960) pass();
    else if (dice < 980) die();
    else reload();
    serve();
  }
  void enter() {
    const std::uint32_t p = process();
    const BulkheadEntry entry = w_.enter(p);
    const bool owed = std::any_of(line_.begin(), line_.end(), [&](const Waiting& one) {
      return !one.handed && in_time(one);
    });
    const bool expected = !owed && taken() < limit_;
    said_ << "enter " << p << (entry.granted ? " granted" : " refused");
    EXPECT_EQ(entry.granted, expected) << said_.str();
    if (!entry.granted) return;
    ++granted;
    held_.push_back({p, entry});
  }
  void leave() {
    if (held_.empty()) return;
    const std::size_t i = chance_.below(held_.size());
    said_ << "leave " << held_[i].process;
    EXPECT_EQ(w_.leave(held_[i].entry, held_[i].process), shm::Left::Returned);
    gone_.push_back(held_[i]);
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(i));
    const Holder& late = gone_[chance_.below(gone_.size())];
    EXPECT_EQ(w_.leave(late.entry, late.process), shm::Left::Stale);   // once more
    if (gone_.size() > 16) gone_.erase(gone_.begin());
  }
  void join() {
    const std::uint32_t p = process();
    const auto wait = static_cast<std::uint64_t>(kUnit) * (1 + chance_.below(300));
    const shm::JoinedLine line = w_.join(p, {wait, 0});
    said_ << "join " << p << (line.joined ? "" : " refused");
    EXPECT_EQ(line.joined, line_.size() < kLine) << said_.str();
    if (line.joined) line_.push_back({p, line, false});
  }
  void poll() {
    if (line_.empty()) return;
    const std::size_t i = chance_.below(line_.size());
    const Waiting one = line_[i];
    // After a shrink a place that was handed over may be given no more: then it waits on.
    bool kept = one.handed && taken() <= limit_;
    const std::uint64_t mine = shm::pack_handed(one.line.wait.ticket, one.line.wait.record);
    for (std::uint32_t cell = limit_; cell < w_.view().bulkhead_cell_count; ++cell) {
      kept = kept && w_.view().bulkhead_cells[cell] != mine;
    }
    const shm::LineLook look = w_.poll(one.line, one.process);
    said_ << "poll " << one.process << " state " << static_cast<int>(look.state);
    if (look.state == State::Granted) {
      EXPECT_TRUE(one.handed) << said_.str();
      ++waited;
      held_.push_back({one.process, look.entry});
    } else if (look.state == State::Waiting) {
      EXPECT_TRUE(in_time(one) && !kept) << said_.str();
      line_[i].handed = false;
      return;
    } else {
      EXPECT_EQ(look.state, State::Over);
      EXPECT_FALSE(in_time(one)) << said_.str();
    }
    line_.erase(line_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  void give_up() {
    if (line_.empty()) return;
    const std::size_t i = chance_.below(line_.size());
    said_ << "give up " << line_[i].process;
    shm::leave_line(w_.view(), w_.ref(), w_.caller(line_[i].process), line_[i].line.wait);
    line_.erase(line_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  void pass() {
    said_ << "time";
    w_.pass(kUnit * static_cast<std::int64_t>(1 + chance_.below(60)));
    serve();
    w_.tick();
  }
  void die() {
    const std::uint32_t p = process();
    said_ << "death of " << p;
    ++deaths;
    w_.revive(p);
    std::erase_if(held_, [&](const Holder& one) { return one.process == p; });
    std::erase_if(line_, [&](const Waiting& one) { return one.process == p; });
    std::erase_if(gone_, [&](const Holder& one) { return one.process == p; });
  }
  void reload() {
    limit_ = static_cast<std::uint32_t>(chance_.below(kMost + 1));
    said_ << "limit " << limit_;
    ++reloads;
    w_.publish(settings(limit_));
  }
  void agree() {
    const shm::BulkheadInfo info = w_.info();
    std::uint32_t waiting = 0;
    for (const Waiting& one : line_) waiting += in_time(one) ? 1u : 0u;
    EXPECT_EQ(info.in_use, taken());
    EXPECT_EQ(info.waiting, waiting);
    EXPECT_EQ(info.over, taken() > limit_ ? taken() - limit_ : 0);
  }

  Chance chance_;
  BulkheadWorld w_;
  std::uint32_t limit_ = 3;
  std::vector<Holder> held_, gone_;
  std::vector<Waiting> line_;
  std::ostringstream said_;
};

TEST(BulkheadScript, IsWhatAPlainListSays) {
  std::uint64_t granted = 0, waited = 0, reloads = 0, deaths = 0;
  for (std::uint64_t seed = 1; seed <= 20 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Script script(seed);
    script.run(5'000);
    granted += script.granted;
    waited += script.waited;
    reloads += script.reloads;
    deaths += script.deaths;
  }
  std::printf("100000 steps: granted at once %lu, after a wait %lu, reloads %lu, deaths %lu\n",
              static_cast<unsigned long>(granted), static_cast<unsigned long>(waited),
              static_cast<unsigned long>(reloads), static_cast<unsigned long>(deaths));
  EXPECT_GT(waited, 1'000U);
}

}  // namespace
}  // namespace cutwater::test
