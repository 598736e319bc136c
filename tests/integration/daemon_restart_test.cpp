// SPDX-License-Identifier: Apache-2.0
// The daemon is killed and started again while all go on: nothing is forgotten, nobody waits.
#include <gtest/gtest.h>

#include <csignal>
#include <functional>

#include <sys/wait.h>
#include <unistd.h>

#include <cutwater/client.hpp>

#include "shm/process_table.hpp"
#include "shm/segment.hpp"
#include "support/daemon_process.hpp"
#include "support/raw_peer.hpp"
#include "support/workers.hpp"

namespace cutwater::test {
namespace {

TEST(Restart, C044AHundredKillsUnderLoadForgetNothing) {
  // One a day: what was admitted over the whole run is the burst, whatever is killed in between.
  constexpr std::uint64_t kBurst = 200'000;
  ScratchPlace place;
  place.write_config("limits: { shared: { rate: 1/d, burst: " + std::to_string(kBurst) + " } }\n");
  auto daemon = std::make_unique<DaemonProcess>(place);
  ASSERT_TRUE(daemon->ready()) << daemon->log();
  const Workers workers(place);
  ASSERT_TRUE(workers.all_go_on());

  for (int round = 0; round < 100; ++round) {
    daemon->kill(SIGKILL);
    if (round % 10 == 0) {
      ASSERT_TRUE(workers.all_go_on()) << "nobody waits for the daemon";
    }
    daemon = std::make_unique<DaemonProcess>(place);
    ASSERT_TRUE(daemon->ready()) << round << daemon->log();
    ASSERT_TRUE(daemon->wait_log("adopted, nothing is forgotten")) << daemon->log();
    if (round % 10 == 0) {
      auto fresh = Client::open(place.address());
      ASSERT_TRUE(fresh) << fresh.error().text();
    }
  }

  ASSERT_TRUE(eventually([&] {
    auto fresh = Client::open(place.address());
    return fresh && !fresh->limit("shared")->peek("everybody").allowed();
  }));
  ASSERT_TRUE(workers.all_go_on());
  EXPECT_GE(workers.admitted(), kBurst);
  EXPECT_LE(workers.admitted(), kBurst + 1);
  EXPECT_EQ(workers.failed(), 0U);
}

TEST(Restart, C113SpentTokensStaySpentInBothWaysOfEnding) {
  ScratchPlace place;
  place.write_config("limits: { hourly: { rate: 10/h, burst: 10 } }\n");
  for (const bool killed : {false, true}) {
    const std::string key = killed ? "killed" : "ended";
    {
      DaemonProcess daemon(place);
      ASSERT_TRUE(daemon.ready());
      auto client = Client::open(place.address()).value();
      auto limit = client.limit("hourly").value();
      for (int i = 0; i < 4; ++i) ASSERT_TRUE(limit.try_acquire(key).allowed());
      if (killed) daemon.kill(SIGKILL);
      else ASSERT_EQ(daemon.stop(), 0);
    }
    DaemonProcess next(place);
    ASSERT_TRUE(next.ready()) << next.log();
    auto client = Client::open(place.address()).value();
    auto limit = client.limit("hourly").value();

    for (int i = 0; i < 6; ++i) EXPECT_TRUE(limit.try_acquire(key).allowed()) << i;
    EXPECT_FALSE(limit.try_acquire(key).allowed());
  }
}

TEST(Restart, RowsOfTheLivingStayAndRowsOfTheDeadAreGivenBack) {
  ScratchPlace place;
  place.write_config("limits: { shared: { rate: 1/s } }\n");
  auto daemon = std::make_unique<DaemonProcess>(place);
  ASSERT_TRUE(daemon->ready());
  RawPeer quiet(place.socket());
  const auto welcome = quiet.greet(wire::Want::Map);
  ASSERT_TRUE(welcome);
  auto mapped = shm::Segment::map(
      {quiet.files()[0].get(), quiet.files()[1].get(), quiet.files()[2].get()},
      shm::Access::Client);
  ASSERT_TRUE(mapped);
  const pid_t doomed = ::fork();
  if (doomed == 0) {
    RawPeer peer(place.socket());
    peer.greet(wire::Want::Map);
    while (true) ::pause();
  }
  const auto rows = [&](shm::RowState state) {
    int count = 0;
    for (std::uint32_t row = shm::kFirstClientRow; row < mapped->view().row_count; ++row) {
      shm::RowInfo info;
      if (shm::read_row(mapped->view(), row, info) && info.word.state == state) ++count;
    }
    return count;
  };
  ASSERT_TRUE(eventually([&] { return rows(shm::RowState::Live) == 2; }));

  daemon->kill(SIGKILL);
  ::kill(doomed, SIGKILL);
  ::waitpid(doomed, nullptr, 0);
  daemon = std::make_unique<DaemonProcess>(place);
  ASSERT_TRUE(daemon->ready());

  EXPECT_TRUE(daemon->wait_log("1 processes are attached still, 1 rows of ended ones"));
  EXPECT_EQ(rows(shm::RowState::Live), 1);
  EXPECT_TRUE(shm::row_alive(mapped->view(), welcome->row_index, welcome->row_generation));
}

TEST(Restart, AttachedProcessesDecideWhileTheDaemonIsStoppedOrGone) {
  ScratchPlace place;
  place.write_config("limits: { shared: { rate: 1/h, burst: 100 } }\n");
  DaemonProcess daemon(place);
  ASSERT_TRUE(daemon.ready());
  auto client = Client::open(place.address()).value();
  auto limit = client.limit("shared").value();

  daemon.signal(SIGSTOP);
  EXPECT_TRUE(limit.try_acquire("k").allowed());
  ClientOptions hurried;
  hurried.timeout = std::chrono::milliseconds{200};
  auto late = Client::open(place.address(), hurried);
  EXPECT_FALSE(late);
  EXPECT_EQ(late.error().code(), Errc::Timeout);

  daemon.kill(SIGKILL);
  EXPECT_TRUE(limit.try_acquire("k").allowed());
  EXPECT_EQ(limit.peek("k").remaining(), 97U);   // what a third one would leave
}

/// `use` makes what asks in the memory, once for each Client; that asks again after each restart.
using Asks = std::function<bool()>;
using Use = std::function<Asks(Client&)>;

void expect_offers_its_row(const Use& use) {
  ScratchPlace place;
  place.write_config("limits: { shared: { rate: 1/h, burst: 100 } }\n"
                     "breakers: { fragile: {} }\n"
                     "bulkheads: { narrow: { max-concurrent-calls: 3 } }\n");
  auto daemon = std::make_unique<DaemonProcess>(place);
  ASSERT_TRUE(daemon->ready());
  auto leaving = std::make_unique<Client>(Client::open(place.address()).value());
  const auto staying = Client::open(place.address()).value();   // maps the memory all the time
  const Asks asks = use(*leaving);
  ASSERT_TRUE(asks());
  RawPeer looking(place.socket());
  const auto welcome = looking.greet(wire::Want::Map);
  ASSERT_TRUE(welcome);
  auto mapped = shm::Segment::map(
      {looking.files()[0].get(), looking.files()[1].get(), looking.files()[2].get()},
      shm::Access::Client);
  ASSERT_TRUE(mapped);
  const auto rows = [&] {
    int count = 0;
    for (std::uint32_t row = shm::kFirstClientRow; row < mapped->view().row_count; ++row) {
      shm::RowInfo info;
      if (!shm::read_row(mapped->view(), row, info)) continue;
      count += info.word.state == shm::RowState::Free ? 0 : 1;
    }
    return count;
  };
  ASSERT_EQ(rows(), 3);
  for (int round = 0; round < 2; ++round) {
    daemon->kill(SIGKILL);
    daemon = std::make_unique<DaemonProcess>(place);
    ASSERT_TRUE(daemon->ready()) << daemon->log();
    ASSERT_TRUE(asks());
    EXPECT_EQ(rows(), 3) << "no row besides its own";
  }

  // Its goodbye reaches a daemon that it never attached to.
  leaving.reset();
  EXPECT_TRUE(eventually([&] { return rows() == 2; }));
}

TEST(Restart, AMappedClientOffersItsRowToTheNextDaemon) {
  expect_offers_its_row([](Client& client) -> Asks {
    return [limit = client.limit("shared").value()]() mutable {
      return limit.try_acquire("k").allowed();
    };
  });
}

TEST(Restart, AMappedClientOfBreakersAloneOffersItsRowToo) {
  expect_offers_its_row([](Client& client) -> Asks {
    return [breaker = client.breaker("fragile").value()]() mutable {
      auto call = breaker.try_enter();
      if (call) call->succeeded();
      return static_cast<bool>(call);
    };
  });
}

TEST(Restart, AMappedClientOfBulkheadsAloneOffersItsRowToo) {
  expect_offers_its_row([](Client& client) -> Asks {
    return [bulkhead = client.bulkhead("narrow").value()]() mutable {
      return static_cast<bool>(bulkhead.try_enter());
    };
  });
}

}  // namespace
}  // namespace cutwater::test
