// SPDX-License-Identifier: Apache-2.0
// Places over the socket and restarts of the daemon: kept while the holder's process lives, passed
// on to its next session, given back when it does not present them; the grace is counted once.
#include "shm/process_table.hpp"
#include "unit/server/asked/places_world.hpp"

namespace cutwater::test {
namespace {

TEST_F(Places, ARestartKeepsThemAndTheirSessionsPresentThem) {
  const std::string held = one.enter(gate()).ticket;
  served.stop();
  served.start();
  served.tick();
  EXPECT_EQ(info().in_use, 1U);
  ServedPeer again(served), other(served);
  again.greet();
  other.greet();
  EXPECT_EQ(other.enter(gate()).reason, number(Reason::Full));

  const auto answer = again.ask<wire::PresentAnswer>(wire::Present{{held, held}});

  ASSERT_TRUE(answer);
  EXPECT_NE(answer->tickets[0], "");
  EXPECT_EQ(answer->tickets[1], "");
  served.tick(2 * kGraceNs);
  EXPECT_EQ(info().in_use, 1U);
  EXPECT_EQ(again.outcome(done(answer->tickets[0])), 0U);
  EXPECT_EQ(info().in_use, 0U);
}

TEST_F(Places, ASilentHolderKeepsItsOverRestartsWhileItsProcessLives) {
  const std::string held = one.enter(gate()).ticket;
  const std::uint32_t line = wait(two, gate(9'000 * kMsNs));
  EXPECT_GT(line, 0U);
  for (int restart = 0; restart < 3; ++restart) {
    served.stop();
    served.start();
    for (int i = 0; i < 4; ++i) served.tick(kGraceNs);
    EXPECT_EQ(info().in_use, 1U) << "it does not say a word";
    EXPECT_EQ(info().waiting, 0U) << "nobody answers who waited for it";
  }
  ServedPeer again(served);
  again.greet();

  const auto answer = again.ask<wire::PresentAnswer>(wire::Present{{held}});

  ASSERT_TRUE(answer);
  ASSERT_NE(answer->tickets[0], "");
  EXPECT_EQ(again.outcome(done(answer->tickets[0])), 0U);
  EXPECT_EQ(info().in_use, 0U);
}

TEST_F(Places, ASilentHolderKeepsItsInABulkheadThatIsTakenOutForAWhile) {
  const std::string held = one.enter(gate()).ticket;
  ASSERT_NE(held, "");
  const auto publish = [&](std::vector<rule::BulkheadSettings> bulkheads) {
    pass(1'000 * kMsNs);               // the image before is in force
    shm::Publisher& publisher = served.memory().publisher();
    publisher.set_bulkheads(std::move(bulkheads));
    const auto report = publisher.publish(publisher.limits(), 1);
    ASSERT_TRUE(report) << report.error().text();
  };
  served.stop();
  served.start();
  const auto as_it_was = served.memory().publisher().bulkheads();
  ASSERT_EQ(as_it_was.size(), 1U);

  publish({});
  for (int i = 0; i < 4; ++i) served.tick(kGraceNs);
  publish(as_it_was);

  EXPECT_EQ(info().in_use, 1U);
  ServedPeer other(served);
  other.greet();
  EXPECT_EQ(other.enter(gate()).reason, number(Reason::Full));
}

TEST_F(Places, WhatAClientThatIsBackDoesNotPresentIsGivenBackAfterTheGrace) {
  ServedPeer holder(served);
  const std::string session = holder.greet().session;
  ASSERT_TRUE(holder.enter(gate()).allowed());
  served.stop();
  served.start();

  ServedPeer again(served);
  EXPECT_FALSE(again.greet(session).resumed);

  served.tick(kGraceNs - 1'000'000'000);
  EXPECT_EQ(info().in_use, 1U);
  served.tick(2'000'000'000);
  EXPECT_EQ(info().in_use, 0U);
}

// A daemon that is killed every second and a half: the grace goes on, it does not begin anew.
TEST_F(Places, TheGraceOfOneThatIsNotPresentedSurvivesRestarts) {
  ServedPeer holder(served);
  const wire::Welcome held = holder.greet();
  ASSERT_TRUE(holder.enter(gate()).allowed());
  served.stop();
  served.start();
  ServedPeer again(served);
  again.greet(held.session);
  shm::RowInfo row;
  ASSERT_TRUE(shm::read_row(served.view(), held.row_index, row));
  ASSERT_GT(row.due_ns, 0);
  for (int restart = 0; restart < 3; ++restart) {
    served.stop();
    // As if it had stood still for 1.5 s meanwhile.
    served.start();
    shm::ProcessRow& in_memory = served.view().rows[held.row_index];
    __atomic_fetch_sub(&in_memory.due_ns, 1'500'000'000, __ATOMIC_RELAXED);
    served.stop();
    served.start();
    served.tick();
    EXPECT_EQ(info().in_use, 1U);
  }
  served.tick(600'000'000);
  EXPECT_EQ(info().in_use, 0U);
}

}  // namespace
}  // namespace cutwater::test
