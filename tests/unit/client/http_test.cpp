// SPDX-License-Identifier: Apache-2.0
// The texts as they go over the wire, byte for byte.
#include <cutwater/http.hpp>

#include "unit/client/client_fixture.hpp"

namespace cutwater::test {
namespace {

class Http : public InMemory {
 protected:
  static std::string text_of(const HttpAnswer& answer) {
    std::string out = std::to_string(answer.status) + "\n";
    for (const HttpField& field : answer.fields) out += field.name + ": " + field.value + "\n";
    return out + "\n" + answer.body;
  }
};

TEST_F(Http, ARefusalSaysWhenAndByWhichLimit) {
  start("limits:\n  api: {rate: 1 per 5s, burst: 2}\n");
  Limit api = limit();
  ASSERT_TRUE(api.try_acquire("alice", 2).allowed());
  clock.advance(400ms);

  EXPECT_EQ(text_of(http_answer(api.try_acquire("alice"))),
            R"(429
Retry-After: 5
RateLimit-Policy: "api";q=2;w=10
RateLimit: "api";r=0;t=5
Content-Type: application/problem+json
Cache-Control: no-store

{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",)"
            R"("title":"Request cannot be satisfied as assigned quota has been exceeded",)"
            R"("status":429,"detail":"The quota is used up. Come back in 5 seconds.",)"
            R"("violated-policies":["api"]})");
}

TEST_F(Http, AnAllowedAnswerHasFieldsAndNoBody) {
  start("limits:\n  api: {rate: 100/m, burst: 50}\n");
  Limit api = limit();

  EXPECT_EQ(text_of(http_answer(api.peek("alice", 0))),
            "200\nRateLimit-Policy: \"api\";q=50;w=30\nRateLimit: \"api\";r=50\n\n");
  EXPECT_EQ(text_of(http_answer(api.try_acquire("alice", 20))),
            "200\nRateLimit-Policy: \"api\";q=50;w=30\nRateLimit: \"api\";r=30;t=1\n\n");
}

TEST_F(Http, TIsUntilOneMoreTokenNotUntilAllAreBack) {
  start("limits:\n  api: {rate: 1 per 10s, burst: 5}\n");
  Limit api = limit();
  ASSERT_TRUE(api.try_acquire("k", 3).allowed());
  clock.advance(4s);

  EXPECT_EQ(rate_limit_field(api.peek("k", 0)), "\"api\";r=2;t=6");
  EXPECT_EQ(rate_limit_field(api.peek("k", 3)), "\"api\";r=2;t=6");
  EXPECT_EQ(rate_limit_field(api.peek("k", 4)), "\"api\";r=2;t=16") << "until the asked cost";
}

TEST_F(Http, C088RetryAfterIsRoundedUpAndAtLeastOne) {
  start("limits:\n  api: {rate: 1 per 5s, burst: 1}\n");
  Limit api = limit();
  ASSERT_TRUE(api.try_acquire("k").allowed());
  const auto retry_after = [&] { return http_answer(api.try_acquire("k")).fields.at(0).value; };

  clock.advance(400ms);
  EXPECT_EQ(retry_after(), "5") << "4.6 s";
  clock.advance(3600ms);
  EXPECT_EQ(api.try_acquire("k").retry_after(), 1'000'000'000ns);
  EXPECT_EQ(retry_after(), "1") << "exactly 1 s";
  clock.advance(600ms);
  EXPECT_EQ(retry_after(), "1") << "0.4 s";
  clock.advance(400ms - 1ns);
  EXPECT_EQ(api.try_acquire("k").retry_after(), 1ns);
  EXPECT_EQ(retry_after(), "1") << "1 ns";

  EXPECT_EQ(retry_after_seconds(1s + 1ns), 2U);
  EXPECT_EQ(retry_after_seconds(Nanos{0}), 1U);
  EXPECT_EQ(retry_after_seconds(Nanos{-5}), 1U);
  EXPECT_EQ(retry_after_seconds(kNever - 1ns), 9'223'372'037U);
  EXPECT_FALSE(retry_after_seconds(kNever));
}

TEST_F(Http, MoreThanTheQuotaEverHoldsHasNoRetryAfter) {
  start("limits:\n  api: {rate: 1/s, burst: 5}\n");

  EXPECT_EQ(text_of(http_answer(limit().try_acquire("k", 6))),
            R"(429
RateLimit-Policy: "api";q=5;w=5
RateLimit: "api";r=5
Content-Type: application/problem+json
Cache-Control: no-store

{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",)"
            R"("title":"Request cannot be satisfied as assigned quota has been exceeded",)"
            R"("status":429,"detail":"The request asks for more than the quota ever holds.",)"
            R"("violated-policies":["api"]})");
}

TEST_F(Http, StatusSaysWhoseTroubleItIs) {
  for (const Reason reason : {Reason::Limit, Reason::Never, Reason::Banned}) {
    EXPECT_EQ(http_status(reason), 429) << name_of(reason);
  }
  for (const Reason reason : {Reason::Open, Reason::Probing, Reason::Full, Reason::Expired,
                              Reason::Degraded}) {
    EXPECT_EQ(http_status(reason), 503) << name_of(reason);
  }
  EXPECT_EQ(http_status(Reason::Allowed), 200);
  EXPECT_EQ(http_status(Reason::KeyTooLong), 400);
  EXPECT_EQ(http_status(Reason::InvalidArgument), 500);
  EXPECT_EQ(http_status(static_cast<Reason>(200)), 503);
}

TEST_F(Http, ALimiterThatCannotDecideIsNoQuota) {
  start("limits:\n  api: {rate: 1/s, burst: 5}\n");
  Limit api = limit();
  ASSERT_TRUE(client->reload("limits:\n  other: {rate: 1/s, burst: 5}\n"));

  const HttpAnswer answer = http_answer(api.try_acquire("k"), {.older_fields = true});

  EXPECT_EQ(text_of(answer),
            R"(503
Retry-After: 1
Content-Type: application/problem+json
Cache-Control: no-store

{"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",)"
            R"("title":"Request cannot be satisfied due to temporary server capacity constraints",)"
            R"("status":503,)"
            R"("detail":"The request cannot be taken now. Come back in about 1 second."})");
}

// Several at once, a charge after the fact, a shadow's: they come as finished numbers.
TEST_F(Http, EveryDecisionOfAPlainLimitShowsItsPolicy) {
  start("limits:\n  api: {rate: 1 per 5s, burst: 10}\n"
        "  dark: {rate: 1/s, burst: 1, mode: shadow}\n"
        "  two: {windows: [{rate: 1/s, burst: 5}, {rate: 9/h, burst: 9}]}\n");
  Limit api = limit(), dark = limit("dark"), two = limit("two");
  const auto policy = [](const HttpAnswer& answer) {
    for (const HttpField& field : answer.fields) {
      if (field.name == "RateLimit-Policy") return field.value;
    }
    return std::string();
  };
  const std::string told = "\"api\";q=10;w=50", darks = "\"dark\";q=1;w=1";

  const Admission granted = client->acquire_all({{api, "k", 3}});
  EXPECT_EQ(policy(http_answer(granted)), told);
  EXPECT_EQ(policy(http_answer(granted.each()[0])), told);
  EXPECT_EQ(policy(http_answer(client->acquire_all({{api, "k", 8}}))), told);
  EXPECT_EQ(policy(http_answer(client->enter({.limits = {{api, "k", 3}}}))), told);
  EXPECT_EQ(policy(http_answer(client->enter({.limits = {{api, "k", 9}}}))), told);
  EXPECT_EQ(policy(http_answer(api.charge("k", 2))), told);
  EXPECT_EQ(policy(http_answer(dark.try_acquire("k"))), darks);
  EXPECT_EQ(policy(http_answer(dark.try_acquire("k"))), darks) << "it would have been refused";
  EXPECT_EQ(policy(http_answer(two.try_acquire("k"))), "") << "no one rate";
}

TEST_F(Http, AnEmptyListIsSaidToBeOne) {
  start("limits:\n  api: {rate: 1/s, burst: 5}\n");

  const HttpAnswer answer = http_answer(client->acquire_all({}));

  EXPECT_EQ(answer.status, 500);
  EXPECT_NE(answer.body.find("The list of quotas to ask is empty"), std::string::npos)
      << answer.body;
}

TEST_F(Http, SeveralLimitsNameTheOneThatRefuses) {
  start("limits:\n  user: {rate: 1/s, burst: 5}\n  tenant: {rate: 1/h, burst: 2}\n");
  Limit user = limit("user"), tenant = limit("tenant");
  ASSERT_TRUE(client->acquire_all({{user, "alice", 2}, {tenant, "acme", 2}}).allowed());

  const Admission refused = client->acquire_all({{user, "alice"}, {tenant, "acme"}});
  const HttpAnswer answer = http_answer(refused, {.policies = {{"user", 5, 5s}, {"tenant", 2, 2h}},
                                                  .detail = false});

  EXPECT_EQ(text_of(answer),
            R"(429
Retry-After: 3600
RateLimit-Policy: "user";q=5;w=5, "tenant";q=2;w=7200
RateLimit: "tenant";r=0;t=3600
Content-Type: application/problem+json
Cache-Control: no-store

{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded",)"
            R"("title":"Request cannot be satisfied as assigned quota has been exceeded",)"
            R"("status":429,"violated-policies":["tenant"]})");
}

TEST_F(Http, TheOlderFieldsOnRequest) {
  start("limits:\n  api: {rate: 1 per 5s, burst: 2}\n");
  Limit api = limit();
  ASSERT_TRUE(api.try_acquire("k").allowed());

  const HttpAnswer answer = http_answer(api.peek("k"), {.rate_limit = false, .older_fields = true});

  EXPECT_EQ(text_of(answer),
            "200\nRateLimit-Limit: 2\nRateLimit-Remaining: 0\nRateLimit-Reset: 5\n\n");
}

TEST_F(Http, ADecisionOfNoLimitHasNoFields) {
  const Decision none;

  EXPECT_EQ(rate_limit_field(none), "");
  EXPECT_FALSE(policy_of(none));
  EXPECT_EQ(http_answer(none).status, 503);
}

TEST_F(Http, NumbersAndNamesFitAStructuredField) {
  const HttpPolicy odd{"a\"b\\c\n", ~std::uint64_t{0}, kNever};

  EXPECT_EQ(rate_limit_policy_field(std::span{&odd, 1}),
            "\"a\\\"b\\\\c?\";q=999999999999999;w=9223372037");
  EXPECT_EQ(rate_limit_policy_field({}), "");
}

// The wait that is told is enough and, to the second, necessary; and t is never after Retry-After.
TEST_F(Http, TheToldWaitIsEnough) {
  start("limits:\n  api: {rate: 7 per 3s, burst: 9}\n");
  Limit api = limit();
  for (int i = 0; i < 500; ++i) {
    const std::uint64_t cost = 1 + static_cast<std::uint64_t>(i * 7) % 9;
    const Decision d = api.try_acquire("k", cost);
    clock.advance(Nanos{(i * 37'000'001LL) % 900'000'000});
    if (d.allowed()) continue;
    const std::uint64_t wait = retry_after_seconds(d.retry_after()).value();
    ASSERT_GE(Nanos{std::chrono::seconds{wait}}, d.retry_after());
    ASSERT_LT(Nanos{std::chrono::seconds{wait - 1}}, d.retry_after());
    EXPECT_NE(rate_limit_field(d).find(";t=" + std::to_string(wait)), std::string::npos);
  }
}

}  // namespace
}  // namespace cutwater::test
