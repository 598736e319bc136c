// SPDX-License-Identifier: Apache-2.0
// Entries that are judged by another rule than they were put under: what is converted, and when.
#include "unit/shm/publish_fixture.hpp"

namespace cutwater::shm {
namespace {

using rule::OnChange;

class ConvertTest : public PublishTest {};

// Whenever it is asked: what came since the change is there.
TEST_F(ConvertTest, ADebtIsConvertedAtTheMomentOfTheChange) {
  open({limit("api", {per_second(1, 10)}, OnChange::Proportional)});
  EXPECT_TRUE(allowed(take("api", "k", 8)));
  publish({limit("api", {per_second(2, 20)}, OnChange::Proportional)});   // 16 of 20 used

  pass(3 * kSecond);

  EXPECT_EQ(left("api", "k"), 10U);
  EXPECT_TRUE(allowed(take("api", "k", 10)));
  EXPECT_EQ(left("api", "k"), 0U);
}

// An entry of a rule that was reset, asked for by a key that has an override since: reset first.
TEST_F(ConvertTest, AChangeCountsBeforeTheOverrideThatCameWithIt) {
  open({limit("api", {per_second(1, 10)}, OnChange::Reset)});
  EXPECT_TRUE(allowed(take("api", "k", 8)));
  auto changed = limit("api", {per_second(2, 20)}, OnChange::Reset);
  changed.overrides = {over("k", {per_second(5, 50)})};
  publish({changed});

  EXPECT_EQ(left("api", "k"), 50U);
}

}  // namespace
}  // namespace cutwater::shm
