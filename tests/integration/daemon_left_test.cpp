// SPDX-License-Identifier: Apache-2.0
// Clients that only ask and end while no daemon runs, in a process that lives on: what they held
// comes back as soon as their process talks to the next daemon; what its others hold stays theirs.
#include "integration/place_fixture.hpp"

namespace cutwater::test {
namespace {

class DaemonLeft : public DaemonPlace {
 protected:
  /// A place of `pair` and a probe of `fraud` end, and their Client with them, while no daemon is
  /// there.
  void leave_while_it_is_away() {
    {
      auto gone = asking();
      Breaker fraud = gone.breaker("fraud").value();
      fraud.try_enter()->failed();
      Call probe;
      EXPECT_TRUE(eventually([&] {
        auto entered = fraud.try_enter();
        if (!entered || !entered->is_probe()) return false;
        probe = entered.take();
        return true;
      }));
      auto held = gone.bulkhead("pair").value().try_enter();
      ASSERT_TRUE(held) << held.refusal().text();
      daemon->kill(SIGKILL);
      held->leave();
      probe.succeeded();
    }
    start();
  }
};

TEST_F(DaemonLeft, TheNextClientOfTheProcessGivesBackWhatAnEndedOneCouldNot) {
  start();
  auto near = mapping();
  Bulkhead pair = near.bulkhead("pair").value();
  Breaker fraud = near.breaker("fraud").value();
  leave_while_it_is_away();
  EXPECT_EQ(pair.use().in_use, 1U);
  EXPECT_FALSE(fraud.would_enter());

  { auto next = asking(); }

  EXPECT_TRUE(eventually([&] { return pair.use().in_use == 0; }));
  EXPECT_TRUE(eventually([&] { return fraud.would_enter(); }));
}

TEST_F(DaemonLeft, SoDoesAnotherThatLivesOnAndItsOwnPlaceStays) {
  start();
  auto near = mapping(), far = asking();
  Bulkhead pair = near.bulkhead("pair").value(), asked = far.bulkhead("pair").value();
  auto own = asked.try_enter();
  ASSERT_TRUE(own);
  leave_while_it_is_away();
  EXPECT_EQ(pair.use().in_use, 2U);

  // By the first answer: it presents its own, and ends the other's session.
  EXPECT_TRUE(eventually([&] { return asked.use().in_use == 1; }));

  EXPECT_EQ(pair.use().in_use, 1U);
  EXPECT_TRUE(own->holds());
  own->leave();
  EXPECT_TRUE(eventually([&] { return pair.use().in_use == 0; }));
}

}  // namespace
}  // namespace cutwater::test
