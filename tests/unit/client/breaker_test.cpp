// SPDX-License-Identifier: Apache-2.0
#include <cutwater/breaker.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <optional>
#include <stdexcept>

#include "shm/breaker/breaker.hpp"
#include "unit/client/client_fixture.hpp"

namespace cutwater::test {
namespace {

constexpr char kBreakers[] =
    "breakers:\n"
    "  fraudCheck: {sliding-window-type: COUNT_BASED, sliding-window-size: 10,\n"
    "    minimum-number-of-calls: 4, failure-rate-threshold: 50,\n"
    "    slow-call-rate-threshold: 50, slow-call-duration-threshold: 1s,\n"
    "    wait-duration-in-open-state: 15s, permitted-number-of-calls-in-half-open-state: 2,\n"
    "    ignore: [http-404, invalid-upi]}\n"
    "  plain: {}\n";

class ClientBreaker : public InMemory {
 protected:
  void SetUp() override { start(kBreakers); }
  Breaker breaker(const std::string& name = "fraudCheck") { return client->breaker(name).value(); }
  shm::BreakerInfo info(const std::string& name = "fraudCheck") {
    shm::BreakerInfo out;
    shm::read_breaker(view(), shm::find_breaker(view(), name).index, out);
    return out;
  }
  std::uint64_t counted(shm::BreakerCounter which) {
    return shm::sum_breaker_counters(view(), shm::find_breaker(view(), "fraudCheck").index)
        .of(which);
  }
};

TEST_F(ClientBreaker, OpensRefusesExactlyAndComesBack) {
  Breaker fraud = breaker();
  for (int i = 0; i < 4; ++i) {
    auto call = fraud.try_enter();
    ASSERT_TRUE(call);
    call->failed("timeout");
  }
  EXPECT_EQ(fraud.state(), BreakerStatus::Open);
  clock.advance(3200ms);
  auto refused = fraud.try_enter();
  ASSERT_FALSE(refused);
  const BreakerRefusal& why = refused.refusal();
  EXPECT_EQ(why.reason(), Reason::Open);
  EXPECT_EQ(why.state(), BreakerStatus::Open);
  EXPECT_FALSE(why.is_hint());
  EXPECT_EQ(why.retry_after(), 11800ms + 1ns);
  EXPECT_EQ(why.breaker_name(), "fraudCheck");
  EXPECT_EQ(why.text(),
            "breaker 'fraudCheck' is OPEN since 3.2 s (failure rate 100 % of 4 calls), does not "
            "permit calls, retry after 11.8 s");

  clock.advance(why.retry_after());
  EXPECT_EQ(fraud.state(), BreakerStatus::HalfOpen);
  EXPECT_TRUE(fraud.would_enter());
  for (int i = 0; i < 2; ++i) {
    auto probe = fraud.try_enter();
    ASSERT_TRUE(probe);
    EXPECT_TRUE(probe->is_probe());
    probe->succeeded();
  }
  EXPECT_EQ(fraud.state(), BreakerStatus::Closed);
}

TEST_F(ClientBreaker, AnUnknownNameListsTheNearest) {
  auto unknown = client->breaker("fraudChek");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code(), Errc::UnknownName);
  EXPECT_NE(unknown.error().text().find("the nearest are fraudCheck"), std::string::npos)
      << unknown.error().text();
}

TEST_F(ClientBreaker, TheFirstWordCountsAndFurtherOnesAreCounted) {
  Breaker fraud = breaker();
  auto call = fraud.try_enter();
  call->succeeded();
  call->failed();
  call->ignored();
  EXPECT_TRUE(call->used());
  EXPECT_EQ(info().window.calls, 1U);
  EXPECT_EQ(info().window.failures, 0U);
  EXPECT_EQ(counted(shm::BreakerCounter::UsedTwice), 2U);
}

TEST_F(ClientBreaker, WithoutAWordItWasCancelledAndDuringAnExceptionItFailed) {
  Breaker fraud = breaker();
  { auto call = fraud.try_enter(); }
  EXPECT_EQ(counted(shm::BreakerCounter::Cancelled), 1U);
  EXPECT_EQ(info().window.calls, 0U);
  try {
    auto call = fraud.try_enter();
    throw std::runtime_error("broken");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(info().window.failures, 1U);
}

TEST_F(ClientBreaker, ACallMovesAndIsNotReportedTwice) {
  Breaker fraud = breaker();
  auto entered = fraud.try_enter();
  Call moved = entered.take();
  EXPECT_TRUE(entered->used());
  entered->failed();                                 // an empty one says nothing
  { const Call last = std::move(moved); }
  EXPECT_EQ(info().window.calls, 0U);
  EXPECT_EQ(counted(shm::BreakerCounter::Cancelled), 1U);
}

TEST_F(ClientBreaker, DurationsAreMeasuredOrGiven) {
  Breaker fraud = breaker();
  auto measured = fraud.try_enter();
  clock.advance(1s + 1ns);
  measured->succeeded();
  EXPECT_EQ(info().window.slow, 1U);
  auto given = fraud.try_enter();
  clock.advance(5s);
  given->succeeded(10ms);
  EXPECT_EQ(info().window.slow, 1U);
  auto told = fraud.try_enter();
  told->failed("timeout", 2s);
  EXPECT_EQ(info().window.slow, 2U);
}

TEST_F(ClientBreaker, ClassesDecideWhatCounts) {
  Breaker fraud = breaker();
  const auto fail = [&](const char* name) { fraud.try_enter()->failed(name); };
  fail("http-404");
  fail("invalid-upi");
  fail("local");
  fail("own");
  EXPECT_EQ(info().window.calls, 0U);
  EXPECT_EQ(counted(shm::BreakerCounter::Ignored), 3U);
  EXPECT_EQ(counted(shm::BreakerCounter::Cancelled), 1U);
  fail("http-503");
  EXPECT_EQ(info().window.failures, 1U);
}

TEST_F(ClientBreaker, AHintOpensForAsLongAsTheDependencySaid) {
  Breaker fraud = breaker();
  fraud.try_enter()->open_for(7s);
  EXPECT_EQ(fraud.try_enter().refusal().retry_after(), 7s + 1ns);
}

TEST_F(ClientBreaker, ARetryAfterOpensWhereThatIsConfiguredAndItsClassMayCarryOne) {
  start("breakers:\n  fraudCheck: { open-on-retry-after: true }\n  plain: {}\n");
  Breaker plain = breaker("plain"), fraud = breaker();
  plain.try_enter()->failed("http-503", {}, 7s);
  EXPECT_EQ(plain.state(), BreakerStatus::Closed);
  fraud.try_enter()->failed("timeout", {}, 7s);
  fraud.try_enter()->failed("http-503");
  EXPECT_EQ(fraud.state(), BreakerStatus::Closed);
  fraud.try_enter()->failed("http-503", {}, 7s);
  EXPECT_EQ(fraud.try_enter().refusal().retry_after(), 7s);
}

TEST_F(ClientBreaker, APatternMakesABreakerForEachNameItIsAskedFor) {
  start("capacity: { breakers: 16 }\nbreakers:\n  \"bank-*\": { max-instances: 2, "
        "consecutive-failures: 2 }\n");
  Breaker a = breaker("bank-a"), b = breaker("bank-b");
  for (int i = 0; i < 2; ++i) a.try_enter()->failed("timeout");
  EXPECT_FALSE(a.try_enter());
  EXPECT_TRUE(b.try_enter());
  EXPECT_EQ(breaker("bank-a").state(), BreakerStatus::Open);
  EXPECT_EQ(info("bank-a").word.state, rule::BreakerState::Open);
  Breaker c = breaker("bank-c"), d = breaker("bank-d");   // no place left: they share one
  for (int i = 0; i < 2; ++i) c.try_enter()->failed("timeout");
  EXPECT_FALSE(d.try_enter());
  auto unknown = client->breaker("shop");
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().text().find("bank-"), std::string::npos) << unknown.error().text();
}

TEST_F(ClientBreaker, RunReportsValuesAndExceptions) {
  Breaker fraud = breaker();
  auto value = fraud.run([] { return 7; });
  ASSERT_TRUE(value);
  EXPECT_EQ(*value, 7);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(fraud.run([] {}).ok());
  EXPECT_EQ(info().window.calls, 5U);
  EXPECT_EQ(info().window.failures, 0U);
  EXPECT_THROW((void)fraud.run([]() -> int { throw std::out_of_range("far"); }),
               std::out_of_range);
  EXPECT_EQ(info().window.failures, 1U);
  auto code = fraud.run([] { return std::make_error_code(std::errc::timed_out); });
  EXPECT_TRUE(code.ok());                            // the value is handed out all the same
  EXPECT_EQ(info().window.failures, 2U);
  auto tested = fraud.run([] { return false; }, [](bool good) { return good; });
  EXPECT_FALSE(*tested);
  EXPECT_EQ(info().window.failures, 3U);
  fraud.try_enter()->open_for();
  EXPECT_EQ(fraud.run([] { return 1; }).or_else([] { return -1; }), -1);
}

struct Reply {
  int status;
};
Outcome outcome_of(const Reply& reply) {
  return reply.status < 500 ? Outcome::success() : Outcome::failure("http-503");
}

TEST_F(ClientBreaker, AProgramTeachesItsOwnTypes) {
  Breaker fraud = breaker();
  (void)fraud.run([] { return Reply{200}; });
  (void)fraud.run([] { return Reply{503}; });
  EXPECT_EQ(info().window.calls, 2U);
  EXPECT_EQ(info().window.failures, 1U);
}

TEST_F(ClientBreaker, ExceptionsAreClassifiedByTheirCauses) {
  Breaker fraud = breaker();
  const auto throws = [&](auto&& thrower) {
    try {
      (void)fraud.run([&]() -> int { thrower(); return 0; });
    } catch (...) {
    }
  };
  throws([] { throw std::system_error(ECONNREFUSED, std::system_category()); });
  EXPECT_EQ(info().window.failures, 1U);
  throws([] { throw std::system_error(EMFILE, std::system_category()); });   // local: ignored
  EXPECT_EQ(info().window.failures, 1U);
  throws([] {
    try {
      throw std::system_error(EMFILE, std::system_category());
    } catch (...) {
      std::throw_with_nested(std::runtime_error("cannot ask"));
    }
  });
  EXPECT_EQ(info().window.failures, 1U);
  throws([] { throw 42; });
  EXPECT_EQ(info().window.failures, 2U);
  EXPECT_EQ(cutwater::outcome_of(std::make_error_code(std::errc::connection_reset)).failure_class(),
            "reset");
  EXPECT_EQ(cutwater::outcome_of(std::error_code(EINVAL, std::system_category())).failure_class(),
            "errno:EINVAL");
}

TEST_F(ClientBreaker, AReloadIsSeenByTheNextCall) {
  Breaker fraud = breaker();
  ASSERT_TRUE(client->reload("breakers:\n  plain: {}\n"));
  auto refused = fraud.try_enter();
  EXPECT_FALSE(refused);
  EXPECT_EQ(refused.refusal().reason(), Reason::Degraded);
  ASSERT_TRUE(client->reload(kBreakers));
  EXPECT_TRUE(fraud.try_enter());
}

TEST_F(ClientBreaker, CallsInFlightForTooLongOpenBeforeTheyReturn) {
  ASSERT_TRUE(client->reload(
      "breakers:\n  fraudCheck: {sliding-window-size: 10, minimum-number-of-calls: 3,\n"
      "    slow-call-rate-threshold: 50, slow-call-duration-threshold: 1s,\n"
      "    count-hanging-calls: true}\n"));
  Breaker fraud = breaker();
  std::vector<Entered> out;
  for (int i = 0; i < 3; ++i) out.push_back(fraud.try_enter());
  clock.advance(1s + 1ms);
  EXPECT_EQ(info().hanging, 3U);
  const Entered refused = fraud.try_enter();
  EXPECT_FALSE(refused);
  EXPECT_EQ(refused.refusal().state(), BreakerStatus::Open);
  EXPECT_EQ(counted(shm::BreakerCounter::Untracked), 0U);
  for (Entered& call : out) call->succeeded();       // of an epoch that is over
  EXPECT_EQ(counted(shm::BreakerCounter::Stale), 3U);
  EXPECT_EQ(info().hanging, 0U);
}

TEST_F(ClientBreaker, SwitchedOffItGrantsAndRecordsNothing) {
  ASSERT_TRUE(client->reload("breakers:\n  fraudCheck: {enabled: false}\n"));
  Breaker fraud = breaker();
  for (int i = 0; i < 50; ++i) fraud.try_enter()->failed();
  shm::steer_breaker(view(), shm::find_breaker(view(), "fraudCheck"), shm::Steer::ForceOpen, 0, 0);
  EXPECT_TRUE(fraud.try_enter() && fraud.would_enter());
  EXPECT_EQ(fraud.state(), BreakerStatus::Disabled);
  EXPECT_EQ(fraud.explain(),
            "switched off (enabled: false): grants every call and records nothing");
  EXPECT_EQ(info().window.calls, 0U);
}

TEST_F(ClientBreaker, ForkedChildrenGoOnAndInheritedCallsAreTheParents) {
  Breaker fraud = breaker();
  auto inherited = fraud.try_enter();
  const pid_t child = fork();
  if (child == 0) {
    inherited->failed();
    auto own = fraud.try_enter();
    const bool granted = static_cast<bool>(own);
    own->failed();
    _exit(granted ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(info().window.failures, 1U);
  inherited->succeeded();
  EXPECT_EQ(info().window.calls, 2U);
}

/// Runs `work` in a forked child; true: it returned true.
template <class Work>
bool in_child(Work work) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(work() ? 0 : 1);
  }
  int status = 1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST_F(ClientBreaker, TheFirstReportsOfAForkedChildCount) {
  Breaker fraud = breaker();
  fraud.try_enter()->ignored();
  const auto fails = [&] {
    for (int i = 0; i < 3; ++i) {
      auto call = fraud.try_enter();
      if (!call) return false;
      call->failed("connect");
    }
    return true;
  };
  EXPECT_TRUE(in_child(fails));
  EXPECT_EQ(info().window.failures, 3U);
}

TEST_F(ClientBreaker, TheFirstReportOfAGrandchildCounts) {
  Breaker fraud = breaker();
  EXPECT_TRUE(in_child([&] {
    auto inherited = fraud.try_enter();
    const bool fine = in_child([&] {
      fraud.try_enter()->failed("connect");
      inherited->failed("connect");              // its parent's: says nothing
      return true;
    });
    inherited->failed("connect");
    return fine;
  }));
  EXPECT_EQ(info().window.failures, 2U);
  EXPECT_EQ(info().window.calls, 2U);
}

TEST_F(ClientBreaker, ProbesOfAForkedChildComeBackByResult) {
  Breaker fraud = breaker();
  fraud.try_enter()->open_for(1s);
  clock.advance(1s + 1ns);
  EXPECT_TRUE(in_child([&] {
    for (int i = 0; i < 2; ++i) {
      auto probe = fraud.try_enter();
      if (!probe || !probe->is_probe()) return false;
      probe->succeeded();
    }
    return true;
  }));
  EXPECT_EQ(fraud.state(), BreakerStatus::Closed);
}

TEST_F(ClientBreaker, ProbesOfADeadForkedChildComeBackByDeadline) {
  Breaker fraud = breaker();
  fraud.try_enter()->open_for(1s);
  clock.advance(1s + 1ns);
  EXPECT_TRUE(in_child([&] {
    Call held[2];
    for (Call& call : held) {
      auto probe = fraud.try_enter(5s);
      if (!probe || !probe->is_probe()) return false;
      call = probe.take();
    }
    _exit(0);                                    // both held, nothing said
  }));
  EXPECT_EQ(fraud.try_enter().refusal().reason(), Reason::Probing);
  clock.advance(5s + 1us);                       // a deadline is kept in microseconds
  EXPECT_NE(fraud.try_enter().refusal().reason(), Reason::Probing);
  clock.advance(15s + 1ns);                      // they count as failures: it was open again
  EXPECT_TRUE(fraud.try_enter());
}

TEST_F(ClientBreaker, ExplainSaysTheNextDecision) {
  EXPECT_EQ(breaker("plain").explain(),
            "CLOSED: 0 of 0 calls failed; rate counts from 10 calls; opens at 5 failures in a row, "
            "5 to go");
}

struct Later {
  bool await_ready() const;
};
static_assert(detail::kIsLater<std::future<int>> && detail::kIsLater<Later>);
static_assert(!detail::kIsLater<int> && !detail::kIsLater<std::optional<int>>);

}  // namespace
}  // namespace cutwater::test
