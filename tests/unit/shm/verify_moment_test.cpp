// SPDX-License-Identifier: Apache-2.0
// verify() beside a daemon at work: what it finds must be there, not a moment between two looks.
#include <cstring>

#include "base/sync_point.hpp"
#include "shm/process_table.hpp"
#include "shm/stripe_life.hpp"
#include "shm/verify.hpp"
#include "unit/shm/memory_support.hpp"

namespace cutwater::shm {
namespace {

/// Each time verify() has read a stripe's owner, that owner's life ends and another one begins.
class Turnover {
 public:
  Turnover(const View& view, RowTable& rows) {
    view_ = &view;
    rows_ = &rows;
    turns_ = 0;
    begin();
    sync_point_hook = &Turnover::at_stop;
  }
  ~Turnover() { sync_point_hook = nullptr; }
  int turns() const { return turns_; }

 private:
  static void begin() {
    row_ = *rows_->grant({.pid = 4711, .name = "test"});
    const StripeOwnerWord owner{std::uint64_t{row_.index} << 32 | row_.generation, 1};
    ASSERT_FALSE(claim_stripe(*view_, owner).shared);
  }
  static void at_stop(const char* name) {
    if (std::strcmp(name, "verify.stripe_read") != 0) return;
    ++turns_;
    rows_->mark_dead(row_);
    release_stripes_of(*view_, row_.index, row_.generation);
    rows_->free(row_);
    begin();
  }
  static inline const View* view_ = nullptr;
  static inline RowTable* rows_ = nullptr;
  static inline RowGrant row_;
  static inline int turns_ = 0;
};

TEST(VerifyMoment, ALifeThatEndsBetweenTwoLooksIsNoDamage) {
  auto segment = Segment::create_private(test::stepped_options());
  RowTable rows(segment->view(), true);
  const Turnover turnover(segment->view(), rows);

  const VerifyReport report = verify(segment->view());

  EXPECT_GE(turnover.turns(), 1);
  EXPECT_TRUE(report.findings.empty()) << report.findings.front().text;
}

}  // namespace
}  // namespace cutwater::shm
