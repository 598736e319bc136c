// SPDX-License-Identifier: Apache-2.0
// HTTP answers of what refuses a call besides limits, byte for byte.
#include <cutwater/http.hpp>

#include "shm/breaker/breaker.hpp"
#include "unit/client/client_fixture.hpp"

namespace cutwater::test {
namespace {

constexpr char kParts[] =
    "breakers:\n"
    "  fraud: {wait-duration-in-open-state: 12s, enable-randomized-wait: false,\n"
    "    permitted-number-of-calls-in-half-open-state: 1, probe-timeout: 30s}\n"
    "bulkheads:\n"
    "  gate: {max-concurrent-calls: 2}\n"
    "limits:\n"
    "  api: {rate: 1 per 5s, burst: 1}\n";

const std::string kProblem =
    "Content-Type: application/problem+json\n"
    "Cache-Control: no-store\n"
    "\n"
    R"({"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",)"
    R"("title":"Request cannot be satisfied due to temporary server capacity constraints",)"
    R"("status":503,)";

class HttpParts : public InMemory {
 protected:
  void SetUp() override { start(kParts); }
  static std::string text_of(const HttpAnswer& answer) {
    std::string out = std::to_string(answer.status) + "\n";
    for (const HttpField& field : answer.fields) out += field.name + ": " + field.value + "\n";
    return out + "\n" + answer.body;
  }
  std::string refused() { return text_of(http_answer(fraud().try_enter().refusal())); }
  Breaker fraud() { return client->breaker("fraud").value(); }
  Bulkhead gate() { return client->bulkhead("gate").value(); }
  void steer(shm::Steer what, std::int64_t for_ns = 0) {
    shm::steer_breaker(view(), shm::find_breaker(view(), "fraud"), what, for_ns, 0);
  }
};

TEST_F(HttpParts, C088AnOpenBreakerSaysWhenRoundedUpAndAtLeastOneSecond) {
  ASSERT_TRUE(fraud().transition_to(BreakerStatus::Open));
  clock.advance(200ms);

  EXPECT_EQ(refused(), "503\nRetry-After: 12\n" + kProblem +
                           R"("detail":"A service that this request needs is not available. )"
                           R"(Come back in 12 seconds.","part":"breaker","name":"fraud",)"
                           R"("reason":"open","state":"OPEN","retry_after":12})");
  clock.advance(11'800ms - 1ns);
  EXPECT_EQ(refused(), "503\nRetry-After: 1\n" + kProblem +
                           R"("detail":"A service that this request needs is not available. )"
                           R"(Come back in 1 second.","part":"breaker","name":"fraud",)"
                           R"("reason":"open","state":"OPEN","retry_after":1})");
}

TEST_F(HttpParts, AProbingBreakerGivesAHint) {
  ASSERT_TRUE(fraud().transition_to(BreakerStatus::Open, 1ns));
  clock.advance(1s);
  auto probe = fraud().try_enter();
  ASSERT_TRUE(probe);

  EXPECT_EQ(refused(),
            "503\nRetry-After: 30\n" + kProblem +
                R"("detail":"A service that this request needs is being tried again, with few )"
                R"(requests. Come back in about 30 seconds.","part":"breaker","name":"fraud",)"
                R"("reason":"probing","state":"HALF_OPEN","retry_after":30})");
}

TEST_F(HttpParts, ForcedOpenHasARetryAfterOnlyWhereItHasAnEnd) {
  steer(shm::Steer::ForceOpen, 90'000'000'000);
  EXPECT_EQ(refused(), "503\nRetry-After: 90\n" + kProblem +
                           R"("detail":"A service that this request needs was taken out of use )"
                           R"(by its operator. Come back in 90 seconds.","part":"breaker",)"
                           R"("name":"fraud","reason":"open","state":"FORCED_OPEN",)"
                           R"("retry_after":90})");
  steer(shm::Steer::ForceOpen);
  EXPECT_EQ(refused(), "503\n" + kProblem +
                           R"("detail":"A service that this request needs was taken out of use )"
                           R"(by its operator.","part":"breaker","name":"fraud",)"
                           R"("reason":"open","state":"FORCED_OPEN"})");
}

TEST_F(HttpParts, AFullBulkheadIs503AndSaysHowFull) {
  const auto one = gate().try_enter(), other = gate().try_enter();

  EXPECT_EQ(text_of(http_answer(gate().try_enter().refusal())),
            "503\nRetry-After: 1\n" + kProblem +
                R"("detail":"A service that this request needs is busy: all its places are )"
                R"(taken. Come back in about 1 second.","part":"bulkhead","name":"gate",)"
                R"("reason":"full","in_use":2,"limit":2,"waiting":0,"retry_after":1})");
}

TEST_F(HttpParts, AnEntryAnswersByThePartThatRefused) {
  Breaker breaker = fraud();
  Bulkhead bulkhead = gate();
  Limit api = limit();
  const EnterAsk ask{.breaker = &breaker, .bulkhead = &bulkhead, .limits = {{api, "alice"}}};
  {
    const Entry granted = client->enter(ask);
    EXPECT_EQ(text_of(http_answer(granted)),
              "200\nRateLimit-Policy: \"api\";q=1;w=5\nRateLimit: \"api\";r=0;t=5\n\n");
  }
  EXPECT_EQ(text_of(http_answer(client->enter({.bulkhead = &bulkhead}))), "200\n\n");
  const Entry by_limit = client->enter(ask);
  EXPECT_EQ(by_limit.refused_by(), EnterPart::Limit);
  EXPECT_EQ(text_of(http_answer(by_limit)), text_of(http_answer(by_limit.limits())));
  EXPECT_EQ(http_answer(by_limit).status, 429);

  const auto one = bulkhead.try_enter(), other = bulkhead.try_enter();
  const Entry by_bulkhead = client->enter(ask);
  EXPECT_EQ(by_bulkhead.refused_by(), EnterPart::Bulkhead);
  EXPECT_EQ(text_of(http_answer(by_bulkhead)),
            text_of(http_answer(bulkhead.try_enter().refusal())));

  ASSERT_TRUE(breaker.transition_to(BreakerStatus::Open));
  const Entry by_breaker = client->enter(ask);
  EXPECT_EQ(text_of(http_answer(by_breaker)), refused());
}

TEST_F(HttpParts, WhereNoBreakerWasLookedAtThereIsNoState) {
  Breaker gone = fraud();
  ASSERT_TRUE(client->reload("breakers: {other: {}}\n"));

  const HttpAnswer answer = http_answer(gone.try_enter().refusal());

  EXPECT_EQ(answer.status, 503);
  EXPECT_NE(answer.body.find(R"("name":"fraud","reason":"degraded","retry_after":)"),
            std::string::npos)
      << answer.body;
}

TEST_F(HttpParts, AnEntryThatNoPartRefusedAnswersByItsReason) {
  Limit api = limit();
  const std::vector<LimitAsk> nine(9, LimitAsk{api, "alice"});
  const Entry many = client->enter({.limits = nine});

  EXPECT_EQ(text_of(http_answer(many, {.detail = false})),
            "500\nContent-Type: application/problem+json\nCache-Control: no-store\n\n"
            R"({"type":"about:blank","title":"Internal Server Error","status":500,)"
            R"("reason":"invalid_argument"})");
}

}  // namespace
}  // namespace cutwater::test
