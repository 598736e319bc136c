// SPDX-License-Identifier: Apache-2.0
// Another capacity: the next daemon moves what is owed into a memory of that size, processes that
// map the old one attach to the new one by themselves, also when daemons are killed while moving.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cutwater/client.hpp>

#include "shm/directory.hpp"
#include "shm/process_table.hpp"
#include "shm/segment.hpp"
#include "shm/supersede.hpp"
#include "support/daemon_process.hpp"
#include "support/workers.hpp"

namespace cutwater::test {
namespace {

constexpr std::uint64_t kBurst = 200'000;

/// When a daemon that starts is killed.
enum class Moment { Random, NextIsThere, OldIsMarked, FirstIsRenamed };

class DaemonSupersede : public testing::Test {
 protected:
  /// Two limits, of which nothing comes back while a test runs.
  void configure(std::uint64_t keys, std::uint32_t limits = 16) {
    place.write_config("capacity: { keys: " + std::to_string(keys) +
                       ", limits: " + std::to_string(limits) +
                       " }\n"
                       "limits:\n  shared: { rate: 1/d, burst: " +
                       std::to_string(kBurst) + " }\n  mine: { rate: 1/d, burst: 100 }\n");
  }
  /// The memory named now; nothing while it is being renamed.
  std::unique_ptr<shm::Segment> named() const {
    const shm::UniqueFd folder(
        ::open(place.memory().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    auto found = shm::Segment::open_files(folder.get(), shm::Access::ReadOnly);
    if (!found) return nullptr;
    return std::make_unique<shm::Segment>(std::move(*found));
  }
  /// Looks without a pause, so that a kill comes within the step. Also true when it is too late,
  /// because the memory has been moved; false when the watchdog barks.
  bool wait_for(Moment moment, std::chrono::microseconds patience, const shm::View& old) const {
    const auto begun = std::chrono::steady_clock::now();
    while (true) {
      const auto passed = std::chrono::steady_clock::now() - begun;
      const bool marked = shm::is_superseded(old);
      bool now = marked && !there("rules.next");
      switch (moment) {
        case Moment::Random: now |= passed >= patience; break;
        case Moment::NextIsThere: now |= there("rules.next"); break;
        case Moment::OldIsMarked: now |= marked; break;
        case Moment::FirstIsRenamed: now |= marked && !there("state.next"); break;
      }
      if (now) return true;
      if (passed >= kWatchdog) return false;
    }
  }
  bool there(const char* name) const {
    return ::access((place.memory() + "/" + name).c_str(), F_OK) == 0;
  }

  ScratchPlace place;
};

using Memories = std::vector<std::unique_ptr<shm::Segment>>;

std::size_t deciding(const Memories& memories) {
  std::size_t count = 0;
  for (const auto& memory : memories) count += shm::is_superseded(memory->view()) ? 0U : 1U;
  return count;
}

int attached_to(const shm::Segment& segment) {
  int count = 0;
  for (std::uint32_t row = shm::kFirstClientRow; row < segment.view().row_count; ++row) {
    shm::RowInfo info;
    if (!shm::read_row(segment.view(), row, info)) continue;
    count += info.word.state == shm::RowState::Live ? 1 : 0;
  }
  return count;
}

std::string uuid_of(const shm::Segment& segment) {
  return {reinterpret_cast<const char*>(segment.view().uuid), 16};
}

TEST_F(DaemonSupersede, C129ARestartWithAnotherCapacityKeepsWhatIsOwed) {
  configure(1024);
  auto daemon = std::make_unique<DaemonProcess>(place);
  ASSERT_TRUE(daemon->ready()) << daemon->log();
  auto early = Client::open(place.address()).value();
  Limit mine = early.limit("mine").value();
  for (int key = 0; key < 20; ++key) {
    const std::string name = "k" + std::to_string(key);
    for (int n = 0; n <= key; ++n) ASSERT_TRUE(mine.try_acquire(name).allowed());
  }
  int round = 0;
  struct Size { std::uint64_t keys; std::uint32_t limits; };
  for (const Size size : {Size{4096, 16}, Size{4096, 64}, Size{1024, 8}}) {
    ++round;
    ASSERT_EQ(daemon->stop(), 0);
    configure(size.keys, size.limits);
    daemon = std::make_unique<DaemonProcess>(place);
    ASSERT_TRUE(daemon->ready()) << daemon->log();

    EXPECT_TRUE(daemon->wait_log("moved into one of another size")) << daemon->log();
    auto late = Client::open(place.address()).value();
    Limit same = late.limit("mine").value();
    for (int key = 0; key < 20; ++key) {
      const std::string name = "k" + std::to_string(key);
      const auto left = static_cast<std::uint64_t>(100 - (key + 1) - 2 * (round - 1));
      EXPECT_EQ(same.try_acquire(name).remaining(), left - 1) << name;
      // The process of before, without being told anything.
      EXPECT_TRUE(eventually([&] { return !mine.peek(name).degraded(); }));
      const Decision decision = mine.try_acquire(name);
      EXPECT_EQ(decision.remaining(), left - 2) << name;
      EXPECT_EQ(decision.decided_by(), DecidedBy::Memory);
    }
    EXPECT_EQ(early.status().attached, 1U + static_cast<unsigned>(round));
    EXPECT_EQ(early.status().way, ClientWay::Memory);
  }
}

TEST_F(DaemonSupersede, C048OverTheSwitchTheBoundHolds) {
  configure(1024);
  auto daemon = std::make_unique<DaemonProcess>(place);
  ASSERT_TRUE(daemon->ready()) << daemon->log();
  const Workers workers(place);
  ASSERT_TRUE(workers.all_go_on());
  constexpr std::uint64_t kMoves = 6;
  for (std::uint64_t move = 0; move < kMoves; ++move) {
    const auto before = named();
    ASSERT_TRUE(before);
    daemon->kill(move % 2 == 0 ? SIGKILL : SIGTERM);
    configure(move % 2 == 0 ? 8192 : 1024);
    daemon = std::make_unique<DaemonProcess>(place);
    ASSERT_TRUE(daemon->ready()) << daemon->log();
    ASSERT_TRUE(daemon->wait_log("moved into one of another size")) << daemon->log();
    EXPECT_TRUE(shm::is_superseded(before->view()));
    const auto after = named();
    ASSERT_TRUE(after);
    ASSERT_TRUE(eventually([&] { return attached_to(*after) == Workers::kCount; }));
    ASSERT_TRUE(workers.all_go_on());
  }

  ASSERT_TRUE(eventually([&] {
    auto fresh = Client::open(place.address());
    return fresh && !fresh->limit("shared")->peek("everybody").allowed();
  }));
  ASSERT_TRUE(workers.all_go_on());
  EXPECT_GE(workers.admitted() + kMoves * Workers::kCount, kBurst);
  EXPECT_LE(workers.admitted(), kBurst + 1 + kMoves * Workers::kCount)
      << "one for each process that stood between its look and its swap";
}

TEST_F(DaemonSupersede, BreakersGoOverAndWork) {
  const auto configure_breaker = [&](int keys) {
    place.write_config("capacity: { keys: " + std::to_string(keys) +
                       " }\nbreakers: { b: {sliding-window-type: COUNT_BASED,"
                       " sliding-window-size: 1, minimum-number-of-calls: 1,"
                       " wait-duration-in-open-state: 1h} }\n");
  };
  configure_breaker(1024);
  auto daemon = std::make_unique<DaemonProcess>(place);
  ASSERT_TRUE(daemon->ready()) << daemon->log();
  auto client = Client::open(place.address()).value();
  Breaker breaker = client.breaker("b").value();
  breaker.try_enter()->failed();
  ASSERT_EQ(breaker.state(), BreakerStatus::Open);
  ASSERT_EQ(daemon->stop(), 0);
  configure_breaker(4096);

  daemon = std::make_unique<DaemonProcess>(place);

  ASSERT_TRUE(daemon->ready()) << daemon->log();
  auto fresh = Client::open(place.address()).value();
  Breaker same = fresh.breaker("b").value();
  EXPECT_EQ(same.state(), BreakerStatus::Open);
  EXPECT_FALSE(same.try_enter());
  EXPECT_TRUE(eventually([&] { return breaker.state() == BreakerStatus::Open; }));
}

// A name that gets a place of its own by the same start that moves the memory: what it held in the
// pattern's shared one goes back there.
TEST_F(DaemonSupersede, WhatWasHeldInASharedPlaceGoesBackThereInTheNextMemory) {
  const auto configure_pattern = [&](int keys, int instances) {
    const std::string most = "max-instances: " + std::to_string(instances);
    place.write_config("capacity: { keys: " + std::to_string(keys) +
                       " }\nbulkheads: { \"b-*\": { " + most +
                       ", max-concurrent-calls: 1 } }\nbreakers: { \"b-*\": { " + most +
                       ", wait-duration-in-open-state: 1ms, probe-timeout: 10m,"
                       " permitted-number-of-calls-in-half-open-state: 1 } }\n");
  };
  configure_pattern(1024, 1);
  auto daemon = std::make_unique<DaemonProcess>(place);
  ASSERT_TRUE(daemon->ready()) << daemon->log();
  auto client = Client::open(place.address()).value();
  ASSERT_TRUE(client.bulkhead("b-1") && client.breaker("b-1"));
  Bulkhead gate = client.bulkhead("b-2").value();
  Breaker breaker = client.breaker("b-2").value();
  Placed held = gate.try_enter();
  Entered probe;
  breaker.try_enter()->open_for(Nanos{1'000'000});
  ASSERT_TRUE(eventually([&] { return bool(probe = breaker.try_enter()); }));
  ASSERT_TRUE(held && probe->is_probe());
  ASSERT_EQ(daemon->stop(), 0);
  configure_pattern(4096, 2);
  daemon = std::make_unique<DaemonProcess>(place);
  ASSERT_TRUE(daemon->ready()) << daemon->log();

  ASSERT_TRUE(eventually([&] { return bool(gate.try_enter()) && bool(breaker.try_enter()); }));
  held->leave();
  probe->succeeded();

  Bulkhead shared = client.bulkhead("b-3").value();
  EXPECT_TRUE(shared.try_enter()) << shared.try_enter().refusal().text();
  EXPECT_EQ(client.breaker("b-3").value().state(), BreakerStatus::Closed);
}

// Somebody tidies up /dev/shm, six times, while all run.
TEST_F(DaemonSupersede, C050LostNamesMoveTheMemoryAndTheBoundHolds) {
  configure(1024);
  auto daemon = std::make_unique<DaemonProcess>(place);
  ASSERT_TRUE(daemon->ready()) << daemon->log();
  auto client = Client::open(place.address()).value();
  Limit mine = client.limit("mine").value();
  const Workers workers(place);
  ASSERT_TRUE(workers.all_go_on());
  constexpr std::uint64_t kMoves = 6;
  for (std::uint64_t move = 0; move < kMoves; ++move) {
    const auto before = named();
    ASSERT_TRUE(before);
    ASSERT_EQ(mine.try_acquire("k").remaining(), 99 - move);
    for (const char* name : {"rules", "state", "stats"}) {
      if (move % 3 != 0 && name == std::string("stats")) continue;   // not always all
      ASSERT_EQ(::unlink((place.memory() + "/" + name).c_str()), 0);
    }

    ASSERT_TRUE(eventually([&] { return shm::is_superseded(before->view()) && named(); }));
    EXPECT_TRUE(eventually([&] { return !mine.peek("k").degraded(); }));
    const auto after = named();
    ASSERT_TRUE(eventually([&] { return attached_to(*after) == Workers::kCount + 1; }));
    ASSERT_TRUE(workers.all_go_on());
  }
  EXPECT_EQ(client.status().attached, 1 + kMoves);
  daemon->kill(SIGKILL);
  DaemonProcess next(place);
  ASSERT_TRUE(next.ready()) << next.log();
  EXPECT_TRUE(next.wait_log("adopted, nothing is forgotten")) << next.log();
  EXPECT_EQ(mine.try_acquire("k").remaining(), 99 - kMoves);

  ASSERT_TRUE(eventually([&] {
    auto fresh = Client::open(place.address());
    return fresh && !fresh->limit("shared")->peek("everybody").allowed();
  }));
  ASSERT_TRUE(workers.all_go_on());
  EXPECT_LE(workers.admitted(), kBurst + 1 + kMoves * Workers::kCount);
}

/// Index and generation of every row that has an owner.
std::set<std::pair<std::uint32_t, std::uint32_t>> rows_in(const shm::Segment& segment) {
  std::set<std::pair<std::uint32_t, std::uint32_t>> out;
  for (std::uint32_t row = shm::kFirstClientRow; row < segment.view().row_count; ++row) {
    shm::RowInfo info;
    if (!shm::read_row(segment.view(), row, info)) continue;
    const bool owned = info.word.state == shm::RowState::Live ||
                       info.word.state == shm::RowState::Orphan;   // its old connection ended
    if (owned) out.emplace(info.index, info.word.generation);
  }
  return out;
}

// Two Clients of one process have a row each, and keep it over a move of either kind; what one of
// them held is not given back when the other is closed.
TEST_F(DaemonSupersede, C050RowsStayTheirOwnersOverAMove) {
  configure(1024);
  auto daemon = std::make_unique<DaemonProcess>(place);
  ASSERT_TRUE(daemon->ready()) << daemon->log();
  auto first = std::make_unique<Client>(Client::open(place.address()).value());
  Client second = Client::open(place.address()).value();
  Limit one = first->limit("mine").value(), two = second.limit("mine").value();
  auto memory = named();
  ASSERT_TRUE(memory);
  const auto rows = rows_in(*memory);
  ASSERT_EQ(rows.size(), 2U);

  for (const char* const move : {"names", "capacity"}) {
    SCOPED_TRACE(move);
    if (move == std::string("names")) {
      for (const char* name : {"rules", "state", "stats"}) {
        ASSERT_EQ(::unlink((place.memory() + "/" + name).c_str()), 0);
      }
    } else {
      configure(4096);
      ASSERT_EQ(daemon->stop(), 0);
      daemon = std::make_unique<DaemonProcess>(place);
      ASSERT_TRUE(daemon->ready()) << daemon->log();
    }
    ASSERT_TRUE(eventually([&] { return shm::is_superseded(memory->view()) && named(); }));
    memory = named();
    EXPECT_EQ(rows_in(*memory), rows) << "nobody has come over yet" << daemon->log();

    ASSERT_TRUE(eventually([&] { return !two.peek("k").degraded() && !one.peek("k").degraded(); }));
    EXPECT_EQ(second.status().way, ClientWay::Memory);
    EXPECT_EQ(rows_in(*memory), rows);
  }
  first.reset();
  EXPECT_TRUE(eventually([&] { return rows_in(*memory).size() == 1; }));
  EXPECT_TRUE(two.try_acquire("k").allowed());
}

// Nothing can be put in place: all go on where they are.
TEST_F(DaemonSupersede, C050NamesThatCannotBeGivenBackChangeNothing) {
  configure(1024);
  DaemonProcess daemon(place);
  ASSERT_TRUE(daemon.ready()) << daemon.log();
  auto client = Client::open(place.address()).value();
  Limit mine = client.limit("mine").value();
  ASSERT_EQ(mine.try_acquire("k").remaining(), 99U);
  ASSERT_EQ(::unlink((place.memory() + "/state").c_str()), 0);
  ASSERT_EQ(::mkdir((place.memory() + "/state").c_str(), 0700), 0);

  EXPECT_TRUE(daemon.wait_log("a directory is in the way: state")) << daemon.log();

  EXPECT_EQ(mine.try_acquire("k").remaining(), 98U);
  EXPECT_EQ(Client::open(place.address())->limit("mine")->try_acquire("k").remaining(), 97U);
}

TEST_F(DaemonSupersede, C048KilledWhileItMovesForgetsNothing) {
  constexpr int kRounds = 32;
  const unsigned seed = std::random_device{}();
  std::mt19937 random(seed);
  SCOPED_TRACE("seed " + std::to_string(seed));
  configure(1024);
  auto daemon = std::make_unique<DaemonProcess>(place);
  ASSERT_TRUE(daemon->ready()) << daemon->log();
  auto client = Client::open(place.address()).value();
  Limit mine = client.limit("mine").value();
  std::uint64_t spent = 10;
  for (std::uint64_t n = 0; n < spent; ++n) ASSERT_TRUE(mine.try_acquire("k").allowed());
  Memories seen;                       // what somebody may have mapped
  seen.push_back(named());
  int marked = 0, renamed_in_part = 0, moved = 0;
  for (int round = 0; round < kRounds; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    daemon->kill(SIGKILL);
    configure(round % 2 == 0 ? 524'288 : 1024, 16 + static_cast<std::uint32_t>(round) % 3);
    const shm::View& old = seen.back()->view();
    DaemonProcess doomed(place, {.wait = false});
    const auto patience = std::chrono::microseconds(random() % 200'000);
    EXPECT_TRUE(wait_for(static_cast<Moment>(round % 4), patience, old));
    doomed.kill(SIGKILL);
    if (shm::is_superseded(old) && there("rules.next")) ++marked;
    if (shm::is_superseded(old) && there("rules.next") && !there("state.next")) ++renamed_in_part;

    if (auto now = named(); now && uuid_of(*now) != uuid_of(*seen.back())) {
      seen.push_back(std::move(now));
    }
    EXPECT_LE(deciding(seen), 1U);

    daemon = std::make_unique<DaemonProcess>(place);
    ASSERT_TRUE(daemon->ready()) << daemon->log();
    EXPECT_FALSE(there("rules.bad")) << daemon->log();
    if (auto now = named(); now && uuid_of(*now) != uuid_of(*seen.back())) {
      seen.push_back(std::move(now));
      ++moved;
    }
    EXPECT_EQ(deciding(seen), 1U);
    auto fresh = Client::open(place.address());
    ASSERT_TRUE(fresh) << fresh.error().text();
    EXPECT_EQ(fresh->limit("mine")->try_acquire("k").remaining(), 100 - spent - 1);
    ++spent;
    ASSERT_TRUE(eventually([&] { return !mine.peek("k").degraded(); }));
    EXPECT_EQ(mine.try_acquire("k").remaining(), 100 - spent - 1);
    ++spent;
  }
  RecordProperty("killed_when_marked", marked);
  RecordProperty("killed_between_renames", renamed_in_part);
  std::printf("seed %u: killed %d times between the mark and the last rename, %d of them between "
              "two renames; %d moves done by the next daemon\n",
              seed, marked, renamed_in_part, moved);
  EXPECT_GT(moved, 0) << "no kill came before the end of a move";
}

}  // namespace
}  // namespace cutwater::test
