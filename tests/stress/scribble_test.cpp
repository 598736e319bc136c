// SPDX-License-Identifier: Apache-2.0
// T20, C143: a process scribbles over `state` and `stats` while others decide, count, log and look.
// Nobody crashes, nobody hangs, every loop ends by its own bound; afterwards the table serves.
#include <gtest/gtest.h>

#include "shm/counters.hpp"
#include "shm/event_log.hpp"
#include "shm/limit/tops.hpp"
#include "shm/process_table.hpp"
#include "shm/verify.hpp"
#include "stress/crew.hpp"
#include "stress/world.hpp"

namespace cutwater::test {
namespace {

constexpr int kDeciders = 4;
constexpr std::uint64_t kOperations = 40'000;    // of each, at least
constexpr std::uint64_t kScribbles = 200'000;    // under them, at least
constexpr std::uint64_t kKeys = 60;

struct Board {
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> scribbles{0}, answers{0};
};

struct Target {
  void* start;
  std::size_t length;
};

std::vector<Target> targets(const shm::View& view) {
  return {{view.slots, view.slot_count * sizeof(Word16)},
          {view.limits, view.limit_count * sizeof(shm::LimitState)},
          {view.rows, view.row_count * sizeof(shm::ProcessRow)},
          {view.state_control, sizeof(shm::StateControl)},
          {view.stats_control, sizeof(shm::StatsControl)},
          {view.stripes, std::size_t{view.stripe_count} * view.stripe_stride},
          {view.events, view.event_count * sizeof(shm::EventRecord)},
          {view.tops, std::size_t{view.limit_count} * view.tops_per_limit *
                          sizeof(shm::TopRecord)}};
}

// Words that hurt: all ones, ends of ranges, and what looks like a right one.
std::uint64_t nasty(const shm::View& view, Chance& chance) {
  switch (chance.below(8)) {
    case 0: return 0;
    case 1: return ~std::uint64_t{0};
    case 2: return std::uint64_t{1} << 63;
    case 3: return std::uint64_t{1} << chance.below(64);
    case 4: return (std::uint64_t{1} << 62) - 1 + chance.below(3);
    case 5: {                                              // the tag of a key somebody asks for
      const std::uint64_t fp = shm::fingerprint(key(chance.below(kKeys)), 0);
      return fp << shm::kFingerprintShift | (chance() & (shm::kTagAlt | shm::kTagTentative)) |
             (chance.one_in(3) ? chance() & shm::kTagRuleMask : shm::kFirstRuleId);
    }
    case 6: return load16(view.slots + chance.below(view.slot_count)).lo;
    default: return chance();
  }
}

void scribble(const shm::View& view, Board& board, std::uint64_t seed) {
  Chance chance(seed);
  const std::vector<Target> all = targets(view);
  while (!board.over.load(std::memory_order_relaxed)) {
    const Target& target = chance.one_in(2) ? all[0] : all[chance.below(all.size())];
    auto* words = static_cast<std::uint64_t*>(target.start);
    const std::uint64_t word = nasty(view, chance);
    __atomic_store_n(words + chance.below(target.length / 8), word, __ATOMIC_RELAXED);
    if (board.scribbles.fetch_add(1, std::memory_order_relaxed) % 256 == 0) sched_yield();
  }
}

void decide(World& world, Board& board, std::uint64_t seed) {
  Chance chance(seed);
  const shm::View& view = world.view();
  const char* const names[] = {"api", "fast", "deny"};
  DecisionData receipt;
  for (std::uint64_t n = 0; n < kOperations || board.scribbles < kScribbles; ++n) {
    if (n % 64 == 0) sched_yield();
    const shm::LimitRef limit = world.ref(names[chance.below(3)]);
    const shm::KeyHash hash = key(chance.below(kKeys));
    std::uint64_t hint = chance.one_in(4) ? chance() : shm::kNoSlot;
    DecisionData d;
    switch (chance.below(10)) {
      case 0: look(view, {limit, hash, chance.below(5), 0}, hint, d); break;
      case 1: undo(view, receipt); break;
      case 2: reset(view, limit, hash); break;
      case 3: {
        const auto own = shm::claim_stripe(view, {std::uint64_t{2} << 32 | 1, 1 + seed});
        own.add(0, shm::LimitCounter::Allowed, 1);
        shm::release_stripe(view, {std::uint64_t{2} << 32 | 1, 1 + seed});
        shm::sum_counters(view, 0);
        break;
      }
      case 4: {
        shm::Event event;
        event.kind = shm::EventKind::LimitReset;
        shm::append_event(view, event);
        if (chance.one_in(16)) shm::read_events(view, chance.one_in(2) ? 0 : chance(), 1'000);
        break;
      }
      case 5: {
        shm::RowInfo row;
        shm::read_row(view, static_cast<std::uint32_t>(chance.below(view.row_count + 2)), row);
        break;
      }
      case 6: {
        const auto number = static_cast<std::uint32_t>(chance.below(view.limit_count + 1));
        shm::note_top(view, {.limit = number, .key = hash, .text = "scribbled", .weight = 7});
        if (chance.one_in(16)) shm::read_tops(view, number);
        break;
      }
      default:
        charge(view, {limit, hash, chance.below(5), chance.one_in(4) ? kSecond : 0}, hint, d);
        if (d.receipt != Receipt::None) receipt = d;
        // Whatever was read, what is reported can be computed.
        Decision{d}.remaining();
        Decision{d}.retry_after();
        Decision{d}.reset_after();
        board.answers.fetch_add(1, std::memory_order_relaxed);
    }
  }
}

// covers: C143 (random words under 4 deciding processes)
TEST(Scribble, C143NobodyCrashesOrHangs) {
  auto deny = limit("deny", {10, kSecond}, 2);
  deny.on_full = rule::OnFull::Deny;
  World world({limit("api", {100, kSecond}, 5, kSecond), limit("fast", {1'000'000, kSecond}, 3),
               deny},
              {.keys = 32, .clock = shm::ClockKind::Boottime});
  Shared<Board> board;
  const pid_t scribbler = start_process([&] { scribble(world.view(), *board, 1); });
  const pid_t watcher = start_process([&] {
    while (!board->over) {
      shm::verify(world.view());
      shm::RowTable rows(world.view(), false);
      if (auto row = rows.grant({.kind = shm::RowKind::Process, .name = "x"})) rows.mark_dead(*row);
    }
  });

  EXPECT_TRUE(run_crew(kDeciders, [&](int me) {
    decide(world, *board, 10 + static_cast<std::uint64_t>(me));
  }));
  board->over = true;
  EXPECT_EQ(wait_for(scribbler), 0);
  EXPECT_EQ(wait_for(watcher), 0);

  // What is damaged heals by the entry: nobody is beyond the burst, nobody is locked out for ever.
  for (std::uint64_t n = 0; n < kKeys; ++n) {
    EXPECT_LE(world.drain("deny", key(n), 1'000), 1'000U - 1) << "no bound for key " << n;
    EXPECT_LE(Decision{world.peek("api", key(n))}.retry_after().count(), 2 * kSecond);
  }
  std::printf("%lu words scribbled under %lu answers\n",
              static_cast<unsigned long>(board->scribbles.load()),
              static_cast<unsigned long>(board->answers.load()));
}

}  // namespace
}  // namespace cutwater::test
