// SPDX-License-Identifier: Apache-2.0
// Breakers of a real daemon, in mapped memory: one opinion for all processes, probes that come back
// when their process is killed, and a restart that forgets nothing.
#include <gtest/gtest.h>

#include <sys/wait.h>

#include <chrono>

#include <cutwater/client.hpp>

#include "support/daemon_process.hpp"

namespace cutwater::test {
namespace {

using namespace std::chrono_literals;

constexpr char kConfig[] =
    "breakers:\n"
    "  fraud: {sliding-window-type: COUNT_BASED, sliding-window-size: 1,\n"
    "    minimum-number-of-calls: 1, wait-duration-in-open-state: 1ms,\n"
    "    permitted-number-of-calls-in-half-open-state: 1, probe-timeout: 10m}\n"
    "  patient: {sliding-window-type: COUNT_BASED, sliding-window-size: 1,\n"
    "    minimum-number-of-calls: 1, wait-duration-in-open-state: 1h}\n";

class DaemonBreaker : public testing::Test {
 protected:
  void SetUp() override { place.write_config(kConfig); }

  /// A process of its own that opens a client and does `work`; it then waits to be killed.
  template <class Work>
  pid_t process(Work work) {
    int ready[2];
    if (pipe(ready) != 0) return -1;
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      auto client = Client::open(place.address());
      const bool fine = client && work(*client);
      const char word = fine ? 'y' : 'n';
      if (write(ready[1], &word, 1) != 1) _exit(1);
      for (;;) pause();
    }
    char word = 'n';
    EXPECT_EQ(read(ready[0], &word, 1), 1);
    EXPECT_EQ(word, 'y');
    close(ready[0]);
    close(ready[1]);
    return child;
  }
  static void end(pid_t child) {
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
  }

  ScratchPlace place;
};

TEST_F(DaemonBreaker, S44_AProbeOfAKilledProcessComesBackMapped) {
  DaemonProcess daemon(place);
  ASSERT_TRUE(daemon.ready()) << daemon.log();
  auto client = Client::open(place.address()).value();
  Breaker fraud = client.breaker("fraud").value();
  const pid_t prober = process([](Client& other) {
    Breaker same = other.breaker("fraud").value();
    same.try_enter()->failed("timeout");             // opens it for everybody
    return eventually([&] {
      static Call held;
      auto entered = same.try_enter();
      if (!entered) return false;
      held = entered.take();                         // the only probe, and nothing is reported
      return held.is_probe();
    });
  });
  EXPECT_EQ(fraud.state(), BreakerStatus::HalfOpen);
  EXPECT_EQ(fraud.try_enter().refusal().reason(), Reason::Probing);

  end(prober);

  EXPECT_TRUE(eventually([&] {
    auto entered = fraud.try_enter();
    if (entered) entered->succeeded();
    return fraud.state() == BreakerStatus::Closed;
  }));
}

TEST_F(DaemonBreaker, C082_ARestartForgetsNothing) {
  auto daemon = std::make_unique<DaemonProcess>(place);
  ASSERT_TRUE(daemon->ready()) << daemon->log();
  auto client = Client::open(place.address()).value();
  Breaker patient = client.breaker("patient").value();
  patient.try_enter()->failed();
  ASSERT_EQ(patient.state(), BreakerStatus::Open);
  daemon->kill(SIGKILL);
  EXPECT_EQ(patient.try_enter().refusal().reason(), Reason::Open);   // no daemon is needed

  DaemonProcess again(place);
  ASSERT_TRUE(again.ready()) << again.log();

  EXPECT_EQ(patient.try_enter().refusal().reason(), Reason::Open);
  auto fresh = Client::open(place.address()).value();
  EXPECT_EQ(fresh.breaker("patient").value().state(), BreakerStatus::Open);
}

TEST_F(DaemonBreaker, OverTheSocketItIsUnsupportedAndMappedItWorks) {
  DaemonProcess daemon(place);
  ASSERT_TRUE(daemon.ready()) << daemon.log();
  auto asking = Client::open(place.address() + "?ask").value();

  const auto known = asking.breaker("fraud");
  const auto unknown = asking.breaker("no-such-breaker");

  EXPECT_EQ(known.error().code(), Errc::Unsupported);
  EXPECT_NE(known.error().text().find("access.map"), std::string::npos) << known.error().text();
  EXPECT_EQ(unknown.error().code(), Errc::Unsupported);
  EXPECT_TRUE(Client::open(place.address()).value().breaker("fraud"));
}

TEST_F(DaemonBreaker, WhoAnsweredByItselfSharesTheOpinionOfADaemonThatCame) {
  for (const IfAbsent choice : {IfAbsent::Allow, IfAbsent::Deny, IfAbsent::InProcess}) {
    const ScratchPlace fresh;
    fresh.write_config(kConfig);
    ClientOptions options;
    options.if_absent = choice;
    if (choice == IfAbsent::InProcess) options.in_process = kConfig;
    auto client = Client::open(fresh.address(), options);
    ASSERT_TRUE(client) << client.error().text();
    Breaker patient = client->breaker("patient").value();
    auto before = patient.try_enter();
    EXPECT_TRUE(before.degraded());
    EXPECT_EQ(before.granted(), choice != IfAbsent::Deny);

    DaemonProcess daemon(fresh);
    ASSERT_TRUE(daemon.ready()) << daemon.log();

    EXPECT_TRUE(eventually([&] { return !patient.try_enter().degraded(); }));
    if (before) before->failed();                    // ends where it began
    auto other = Client::open(fresh.address()).value();
    Breaker same = other.breaker("patient").value();
    EXPECT_EQ(same.state(), BreakerStatus::Closed) << "nothing came over";
    patient.try_enter()->failed();
    EXPECT_EQ(same.state(), BreakerStatus::Open);
    EXPECT_EQ(patient.try_enter().refusal().reason(), Reason::Open);
  }
}

}  // namespace
}  // namespace cutwater::test
