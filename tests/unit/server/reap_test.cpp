// SPDX-License-Identifier: Apache-2.0
#include "reap.hpp"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace cutwater::server
