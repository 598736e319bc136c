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
  pid_t process(Work work, const std::string& how = "") {
    int ready[2];
    if (pipe(ready) != 0) return -1;
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      auto client = Client::open(place.address() + how);
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

TEST_F(DaemonBreaker, OverTheSocketEverythingReadsAsMapped) {
  DaemonProcess daemon(place, {.arguments = {"--clock=stepped"}});
  ASSERT_TRUE(daemon.ready()) << daemon.log();
  auto mapping = Client::open(place.address()).value();
  auto asking = Client::open(place.address() + "?ask").value();
  ASSERT_EQ(asking.status().way, ClientWay::Socket);
  Breaker mapped = mapping.breaker("patient").value();
  Breaker asked = asking.breaker("patient").value();
  const auto unknown = asking.breaker("patent");
  EXPECT_EQ(unknown.error().code(), Errc::UnknownName);
  EXPECT_NE(unknown.error().text().find("patient"), std::string::npos) << unknown.error().text();
  const auto expect_same = [&] {
    const auto one = mapped.try_enter(), other = asked.try_enter();
    ASSERT_EQ(one.granted(), other.granted());
    EXPECT_EQ(mapped.explain(), asked.explain());
    EXPECT_EQ(mapped.state(), asked.state());
    EXPECT_EQ(mapped.would_enter(), asked.would_enter());
    if (one) return;
    EXPECT_EQ(one.refusal().text(), other.refusal().text());
    EXPECT_EQ(one.refusal().reason(), other.refusal().reason());
    EXPECT_EQ(one.refusal().retry_after(), other.refusal().retry_after());
    EXPECT_EQ(one.refusal().is_hint(), other.refusal().is_hint());
  };
  expect_same();

  asked.try_enter()->failed("timeout");              // one opinion for all
  EXPECT_TRUE(eventually([&] { return mapped.state() == BreakerStatus::Open; }));

  expect_same();
  // The first moment behind the hour; 1 ns is not worth a digit.
  EXPECT_EQ(mapped.try_enter().refusal().retry_after(), std::chrono::hours(1) + Nanos{1});
  EXPECT_EQ(mapped.try_enter().refusal().text(),
            "breaker 'patient' is OPEN since 0 ns (failure rate 100 % of 1 call), does not permit "
            "calls, retry after 3600 s");
  EXPECT_EQ(asking.status().unreported, 0U);
}

/// The only probe of the breaker, held by `breaker`'s client.
Call take_probe(Breaker& breaker) {
  Call held;
  EXPECT_TRUE(eventually([&] {
    auto entered = breaker.try_enter();
    if (!entered) return false;
    if (!entered->is_probe()) {
      entered->failed("timeout");
      return false;
    }
    held = entered.take();
    return true;
  }));
  return held;
}

TEST_F(DaemonBreaker, MemoryThatIsNotWrittenIsWhatAPatternNeeds) {
  place.write_config("breakers: {bank-*: {max-instances: 200}}\n");
  {
    DaemonProcess daemon(place);
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    auto client = Client::open(place.address()).value();
    for (int i = 0; i < 200; ++i) {
      ASSERT_TRUE(client.breaker("bank-" + std::to_string(i)).value().try_enter());
    }
  }
  place.write_config("capacity: {breaker-memory: 512KiB}\n"
                     "breakers: {bank-*: {max-instances: 200}}\n");
  DaemonProcess daemon(place);
  EXPECT_FALSE(daemon.ready()) << "what is written is what is taken";
  EXPECT_NE(daemon.log().find("set capacity.breaker-memory to at least "), std::string::npos)
      << daemon.log();
}

TEST_F(DaemonBreaker, ANameNearAPatternIsToldThePattern) {
  place.write_config("breakers: {bank-*: {max-instances: 2}}\n"
                     "bulkheads: {bank-*: {max-concurrent-calls: 1, max-instances: 2}}\n");
  DaemonProcess daemon(place);
  ASSERT_TRUE(daemon.ready()) << daemon.log();
  auto client = Client::open(place.address() + "?ask").value();

  const Error breaker = client.breaker("bank_a").error();
  const Error bulkhead = client.bulkhead("bank_a").error();

  EXPECT_EQ(breaker.code(), Errc::UnknownName) << breaker.text();
  EXPECT_EQ(bulkhead.code(), Errc::UnknownName) << bulkhead.text();
  EXPECT_NE(breaker.text().find("nearest are bank-*"), std::string::npos) << breaker.text();
  EXPECT_NE(bulkhead.text().find("nearest are bank-*"), std::string::npos) << bulkhead.text();
}

TEST_F(DaemonBreaker, SwitchedOffItSaysSoEitherWay) {
  for (const char* config : {"breakers: {fraud: {enabled: false}}\n",
                             "instance: {enabled: false}\nbreakers: {fraud: {}}\n"}) {
    ScratchPlace off;
    off.write_config(config);
    DaemonProcess daemon(off);
    ASSERT_TRUE(daemon.ready()) << daemon.log();
    auto memory = Client::open(off.address()).value();
    auto socket = Client::open(off.address() + "?ask").value();
    for (Client* client : {&memory, &socket}) {
      Breaker fraud = client->breaker("fraud").value();
      EXPECT_TRUE(fraud.try_enter());
      EXPECT_TRUE(fraud.would_enter());
      EXPECT_EQ(fraud.state(), BreakerStatus::Disabled);
      EXPECT_EQ(fraud.explain(),
                "switched off (enabled: false): grants every call and records nothing");
    }
  }
}

TEST_F(DaemonBreaker, S44_AProbeOfAKilledProcessComesBackAsked) {
  DaemonProcess daemon(place);
  ASSERT_TRUE(daemon.ready()) << daemon.log();
  auto client = Client::open(place.address()).value();
  Breaker fraud = client.breaker("fraud").value();
  const pid_t prober = process(
      [](Client& other) {
        static Call held;
        Breaker same = other.breaker("fraud").value();
        held = take_probe(same);
        return held.is_probe();
      },
      "?ask");
  EXPECT_EQ(fraud.try_enter().refusal().reason(), Reason::Probing);

  end(prober);

  EXPECT_TRUE(eventually([&] {
    auto entered = fraud.try_enter();
    if (entered) entered->succeeded();
    return fraud.state() == BreakerStatus::Closed;
  }));
}

TEST_F(DaemonBreaker, AProbeOverTheSocketIsPresentedToTheNextDaemon) {
  auto daemon = std::make_unique<DaemonProcess>(place);
  ASSERT_TRUE(daemon->ready()) << daemon->log();
  auto asking = Client::open(place.address() + "?ask").value();
  Breaker asked = asking.breaker("fraud").value();
  Call probe = take_probe(asked);
  ASSERT_TRUE(probe.is_probe());
  daemon->kill(SIGKILL);
  daemon = std::make_unique<DaemonProcess>(place);
  ASSERT_TRUE(daemon->ready()) << daemon->log();
  auto mapping = Client::open(place.address()).value();
  Breaker mapped = mapping.breaker("fraud").value();
  EXPECT_EQ(mapped.try_enter().refusal().reason(), Reason::Probing) << "kept for the grace";

  EXPECT_TRUE(eventually([&] { return asked.would_enter() == false && asked.state() ==
                                      BreakerStatus::HalfOpen; }));
  probe.succeeded();

  EXPECT_TRUE(eventually([&] { return mapped.state() == BreakerStatus::Closed; }));
  EXPECT_EQ(asking.status().unreported, 0U);
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
