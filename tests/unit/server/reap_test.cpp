// SPDX-License-Identifier: Apache-2.0
#include "reap.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "reaper.hpp"
#include "shm/counters.hpp"
#include "shm/segment.hpp"

namespace cutwater::server {
namespace {

constexpr std::uint64_t owner_of(shm::RowGrant row) {
  return std::uint64_t{row.index} << 32 | row.generation;
}

class Reap : public testing::Test {
 protected:
  Reap()
      : segment_(shm::Segment::create_private({.capacity = {.keys = 1024, .limits = 4,
                                                            .processes = 16, .stripes = 4,
                                                            .events = 1024}})
                     .value()),
        rows_(segment_.view(), true) {}

  shm::RowGrant dead_owner_with_stripes() {
    const shm::RowGrant row = rows_.grant({.pid = 42, .name = "worker"}).value();
    for (std::uint64_t thread = 1; thread <= 2; ++thread) {
      EXPECT_FALSE(shm::claim_stripe(segment_.view(), {owner_of(row), thread}).shared);
    }
    return row;
  }

  shm::RowState state_of(shm::RowGrant row) {
    shm::RowInfo info;
    EXPECT_TRUE(shm::read_row(segment_.view(), row.index, info));
    return info.word.state;
  }

  shm::Segment segment_;
  shm::RowTable rows_;
};

TEST_F(Reap, GivesEverythingBackAndCounts) {
  const shm::RowGrant row = dead_owner_with_stripes();

  reap(segment_.view(), rows_, row);

  EXPECT_EQ(state_of(row), shm::RowState::Free);
  EXPECT_EQ(shm::stripes_in_use(segment_.view()), 0U);
  EXPECT_EQ(segment_.view().stats_control->reclaimed_rows, 1U);
}

// A kill of the daemon between any two steps: a free row owns nothing, so its successor inherits
// nothing, and the next daemon finds what is left to do.
TEST_F(Reap, AFreeRowOwnsNothingAfterAnyStep) {
  const shm::RowGrant row = dead_owner_with_stripes();

  for (const ReapStep step : reap_order()) {
    carry_out(step, segment_.view(), rows_, row);
    if (state_of(row) == shm::RowState::Free) {
      EXPECT_EQ(shm::stripes_in_use(segment_.view()), 0U);
    }
  }
}

TEST_F(Reap, ANextDaemonFinishesWhatAKilledOneBegan) {
  for (std::size_t done = 0; done < reap_order().size(); ++done) {
    const shm::RowGrant row = dead_owner_with_stripes();
    for (std::size_t i = 0; i < done; ++i) {
      carry_out(reap_order()[i], segment_.view(), rows_, row);
    }

    shm::RowTable next(segment_.view(), false);   // what the next daemon finds
    reap(segment_.view(), next, row);

    EXPECT_EQ(state_of(row), shm::RowState::Free) << done;
    EXPECT_EQ(shm::stripes_in_use(segment_.view()), 0U) << done;
    rows_ = shm::RowTable(segment_.view(), false);
  }
}

TEST_F(Reap, ARowGrantedAnewIsNotTouched) {
  const shm::RowGrant old = dead_owner_with_stripes();
  reap(segment_.view(), rows_, old);
  shm::RowGrant successor = rows_.grant({.pid = 43, .name = "next"}).value();
  while (successor.index != old.index) successor = rows_.grant({.pid = 43, .name = "next"}).value();

  reap(segment_.view(), rows_, old);

  EXPECT_TRUE(shm::row_alive(segment_.view(), successor.index, successor.generation));
}

TEST_F(Reap, AFewBreakersAndBulkheadsAreLookedAtInOneStep) {
  Reaper reaper;
  const shm::RowGrant row = dead_owner_with_stripes();
  reaper.add(segment_.view(), rows_, row);
  EXPECT_EQ(state_of(row), shm::RowState::Dead);

  const auto freed = reaper.step(segment_.view(), rows_);

  ASSERT_EQ(freed.size(), 1U);
  EXPECT_EQ(freed[0].index, row.index);
  EXPECT_TRUE(reaper.idle());
  EXPECT_EQ(state_of(row), shm::RowState::Free);
  EXPECT_EQ(shm::stripes_in_use(segment_.view()), 0U);
}

/// Room for 2500 breakers and 2500 bulkheads.
class ReapOfMany : public testing::Test {
 protected:
  static constexpr std::uint32_t kEach = 2500;
  ReapOfMany()
      : segment_(shm::Segment::create_private(
                     {.capacity = {.keys = 1024, .limits = 4, .processes = 128, .stripes = 2,
                                   .events = 1024, .breakers = kEach, .bulkheads = kEach}})
                     .value()),
        rows_(segment_.view(), true) {}

  shm::RowGrant grant() { return rows_.grant({.pid = 42, .name = "worker"}).value(); }

  shm::Segment segment_;
  shm::RowTable rows_;
  Reaper reaper_;
};

TEST_F(ReapOfMany, SixtyFourRowsTakeOneRoundInBoundedSteps) {
  for (int i = 0; i < 64; ++i) reaper_.add(segment_.view(), rows_, grant());

  std::size_t freed = 0, steps = 0;
  for (std::uint64_t before = 0; !reaper_.idle(); before = reaper_.looks(), ++steps) {
    freed += reaper_.step(segment_.view(), rows_).size();
    EXPECT_LE(reaper_.looks() - before, Reaper::kAtOnce);
  }

  EXPECT_EQ(freed, 64U);
  EXPECT_EQ(steps, (2 * kEach + Reaper::kAtOnce - 1) / Reaper::kAtOnce);
  EXPECT_EQ(segment_.view().stats_control->reclaimed_rows, 64U);
}

TEST_F(ReapOfMany, ARowAddedInTheMiddleWaitsForItsOwnWholeRound) {
  const shm::RowGrant first = grant(), second = grant();
  reaper_.add(segment_.view(), rows_, first);
  EXPECT_TRUE(reaper_.step(segment_.view(), rows_).empty());
  reaper_.add(segment_.view(), rows_, second);

  std::vector<shm::RowGrant> freed;
  std::uint64_t looks = 0;
  while (!reaper_.idle()) {
    for (const shm::RowGrant& row : reaper_.step(segment_.view(), rows_)) {
      freed.push_back(row);
      looks = reaper_.looks();
    }
  }

  ASSERT_EQ(freed.size(), 2U);
  EXPECT_EQ(freed[0].index, first.index);
  EXPECT_EQ(freed[1].index, second.index);
  EXPECT_GE(looks, 2 * kEach + Reaper::kAtOnce);
}

}  // namespace
}  // namespace cutwater::server
