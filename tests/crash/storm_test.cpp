// SPDX-License-Identifier: Apache-2.0
// T18, C054: kill -9 and SIGSTOP storms. Workers charge, insert, undo and wait in a table with less
// room than keys, while reloads come; thousands die or stand still anywhere. What the living and
// the dead were given is in logs that outlive them: no token of a key was given twice, no slice
// lies outside the burst at its stamp, no entry is double, nobody waits for the dead.
#include <gtest/gtest.h>

#include <time.h>

#include <algorithm>

#include "stress/crew.hpp"
#include "stress/ledger.hpp"
#include "stress/world.hpp"

namespace cutwater::test {
namespace {

constexpr int kWorkers = 4;
constexpr std::size_t kLogged = 1 << 17;
constexpr std::uint64_t kKeys = 50;              // of each limit; the table has 64 slots
constexpr std::uint64_t kUndone = ~std::uint64_t{0};

struct Storm {
  GrantLog<kLogged> log[kWorkers];
  std::atomic<std::uint64_t> operations{0}, undone{0};
};

struct Names {
  shm::LimitRef slow, middle, fast;
};

std::vector<rule::LimitSettings> settings(std::uint64_t burst) {
  return {limit("slow", {1, kHour}, burst), limit("middle", {100, kSecond}, 3, 50 * kMillisecond),
          limit("fast", {1'000'000, kSecond}, 5)};
}

// Nothing below `count` may be lost or counted wrongly, wherever the worker is killed: an entry is
// taken back before its undo and put back when that came too late.
void undo_last(World& world, GrantLog<kLogged>& log, Storm& storm, const DecisionData& receipt) {
  auto& entry = log.entry[log.count.load() - 1];
  const std::uint64_t owner = entry.key;
  std::atomic_ref(entry.key).store(kUndone);
  if (undo(world.view(), receipt)) {
    ++storm.undone;
  } else {
    std::atomic_ref(entry.key).store(owner);
  }
}

void work(World& world, Storm& storm, int me, const Names& names, std::uint64_t seed,
          std::uint64_t operations) {
  Chance chance(seed);
  auto& log = storm.log[me];
  for (std::uint64_t n = 0; n < operations; ++n) {
    storm.operations.fetch_add(1, std::memory_order_relaxed);
    if (n % 32 == 0) sched_yield();                        // else who strikes waits for its turn
    const std::uint64_t number = chance.below(kKeys);
    switch (chance.below(6)) {
      case 0: case 1: world.take(names.fast, key(chance())); break;
      case 2: {                                            // a place in line: no log, no bound here
        world.take(names.middle, key(2 * kKeys + number), 1, 20 * kMillisecond);
        break;
      }
      case 3: {
        const std::uint64_t before = log.count;
        const DecisionData d = world.take(names.slow, key(number), 1 + chance.below(3));
        log.add(number, d);
        if (log.count > before && chance.one_in(3)) undo_last(world, log, storm, d);
        break;
      }
      default: {
        const std::uint64_t before = log.count;
        const DecisionData d = world.take(names.middle, key(kKeys + number));
        log.add(kKeys + number, d);
        if (log.count > before && chance.one_in(4)) undo_last(world, log, storm, d);
      }
    }
  }
}

void check(World& world, Storm& storm) {
  std::vector<Slice> slices;
  for (const auto& log : storm.log) {
    EXPECT_EQ(log.outside, 0U);
    EXPECT_LT(log.count, kLogged);
    for (std::uint64_t i = 0; i < log.count; ++i) {
      const auto& entry = log.entry[i];
      if (entry.key != kUndone) slices.push_back({entry.key, entry.from, entry.to});
    }
  }
  std::sort(slices.begin(), slices.end());
  std::uint64_t twice = 0;
  for (std::size_t i = 1; i < slices.size(); ++i) {
    twice += slices[i - 1].key == slices[i].key && slices[i - 1].to > slices[i].from;
  }
  EXPECT_EQ(twice, 0U) << "tokens given twice";
  EXPECT_EQ(world.view().stats_control->contention, 0U);
  EXPECT_EQ(world.view().stats_control->damage, 0U);
  for (std::uint64_t n = 0; n < 3 * kKeys; ++n) EXPECT_LE(world.members_of(key(n)), 1U);
  EXPECT_EQ(world.verify(), "");
  std::printf("%lu operations, %lu logged grants, %lu undone, %lu tokens given twice\n",
              static_cast<unsigned long>(storm.operations.load()),
              static_cast<unsigned long>(slices.size()),
              static_cast<unsigned long>(storm.undone.load()), static_cast<unsigned long>(twice));
}

void rest(std::uint64_t microseconds) {
  const timespec time{0, static_cast<long>(microseconds) * 1'000};
  nanosleep(&time, nullptr);
}

class StormTest : public testing::Test {
 protected:
  // `strike` does something to a worker; a worker that is gone is started anew.
  template <class Strike>
  void storm(std::uint64_t strikes, std::uint64_t seed, Strike strike) {
    const Names names{world_.ref("slow"), world_.ref("middle"), world_.ref("fast")};
    std::uint64_t born = 0;
    std::vector<pid_t> workers(kWorkers);
    const auto start = [&](int me) {
      const std::uint64_t life = spread(seed + ++born);
      workers[me] = start_process([&, me, life] {
        work(world_, *shared_, me, names, life, ~std::uint64_t{0});
      });
    };
    for (int me = 0; me < kWorkers; ++me) start(me);
    Chance chance(seed);
    std::uint64_t reloads = 0;
    for (std::uint64_t n = 0; n < strikes; ++n) {
      rest(chance.below(600));
      const int me = static_cast<int>(chance.below(kWorkers));
      if (strike(workers[me], chance)) start(me);
      if (n % 64 == 0) {
        const std::uint64_t burst = 30 + reloads % 2 * 10;
        reloads += static_cast<bool>(world_.publisher().publish(settings(burst), 0));
      }
    }
    for (const pid_t worker : workers) {
      kill(worker, SIGKILL);
      wait_for(worker);
    }
    // The living finish, whatever the dead left: nobody waits for them.
    EXPECT_TRUE(run_crew(kWorkers, [&](int me) {
      work(world_, *shared_, me, names, seed * 7 + static_cast<std::uint64_t>(me), 20'000);
    }));
    std::printf("seed %lu: %lu strikes, %lu reloads, %lu processes\n",
                static_cast<unsigned long>(seed), static_cast<unsigned long>(strikes),
                static_cast<unsigned long>(reloads), static_cast<unsigned long>(born));
    check(world_, *shared_);
  }

  World world_{settings(40), {.keys = 32, .clock = shm::ClockKind::Boottime}};
  Shared<Storm> shared_;
};

// covers: C054
TEST_F(StormTest, C054KilledAnywhereTheOthersGoOn) {
  storm(6'000, 1, [](pid_t worker, Chance&) {
    kill(worker, SIGKILL);
    wait_for(worker);
    return true;
  });
}

// covers: C026 (stopped anywhere)
TEST_F(StormTest, C026StoppedAnywhereWithOldReadings) {
  storm(4'000, 2, [stopped = std::vector<pid_t>{}](pid_t worker, Chance& chance) mutable {
    kill(worker, SIGSTOP);
    stopped.push_back(worker);
    if (stopped.size() > 2 || chance.one_in(2)) {
      kill(stopped.front(), SIGCONT);
      stopped.erase(stopped.begin());
    }
    return false;
  });
}

}  // namespace
}  // namespace cutwater::test
