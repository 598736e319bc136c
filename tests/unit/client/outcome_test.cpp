// SPDX-License-Identifier: Apache-2.0
// Classes of outcomes: names that the program adds, causes of exceptions, values, and what the
// breaker's lists make of them.
#include <cutwater/outcome.hpp>

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <stdexcept>

#include "rule/breaker_class.hpp"
#include "shm/breaker/breaker.hpp"
#include "unit/client/client_fixture.hpp"

namespace cutwater::test {
namespace {

const std::string kBreakers =
    "breakers:\n"
    "  plain: { sliding-window-size: 50, failure-rate-threshold: 100 }\n"
    "  tie: { sliding-window-size: 50, record: [first-tie], ignore: [second-tie] }\n"
    "  only: { sliding-window-size: 50, record: [listed-name] }\n"
    "  built: { sliding-window-size: 50, ignore: [timeout] }\n";

// Each test has types of its own: what is added stays.
template <int N>
struct Thrown : std::runtime_error {
  Thrown() : std::runtime_error("thrown " + std::to_string(N)) {}
};
template <int N>
bool is_thrown(const std::exception& e) {
  return dynamic_cast<const Thrown<N>*>(&e) != nullptr;
}

class OutcomeClasses : public InMemory {
 protected:
  void SetUp() override { start(kBreakers); }

  struct Seen {
    std::uint64_t failures = 0, ignored = 0, successes = 0, cancelled = 0;
    friend bool operator==(const Seen&, const Seen&) = default;
  };
  shm::BreakerSums sums(const std::string& name) {
    return shm::sum_breaker_counters(view(), shm::find_breaker(view(), name).index);
  }
  Seen seen(const std::string& name) {
    const shm::BreakerSums s = sums(name);
    return {s.of(shm::BreakerCounter::Failure), s.of(shm::BreakerCounter::Ignored),
            s.of(shm::BreakerCounter::Success), s.of(shm::BreakerCounter::Cancelled)};
  }
  std::uint64_t class_count(const std::string& name, std::string_view of) {
    return sums(name).value[static_cast<std::size_t>(shm::BreakerCounter::FirstClass) +
                            rule::class_counter(of)];
  }
  template <class Throw>
  void fail(const std::string& name, Throw thrower) {
    Breaker breaker = client->breaker(name).value();
    try {
      (void)breaker.run([&] { thrower(); });
      ADD_FAILURE() << "nothing was thrown";
    } catch (...) {
    }
  }
};

TEST_F(OutcomeClasses, AnAddedNameIsTheClassOfWhatItsTestSaysYesTo) {
  ASSERT_TRUE(outcomes().add("listed-name", is_thrown<1>));
  fail("only", [] { throw Thrown<1>(); });
  EXPECT_EQ(seen("only"), (Seen{1, 0, 0, 0}));
  EXPECT_EQ(class_count("only", "listed-name"), 1U);
  fail("only", [] { throw Thrown<2>(); });           // a record list that names it not
  EXPECT_EQ(seen("only"), (Seen{1, 0, 1, 0}));
  fail("plain", [] { throw Thrown<1>(); });          // no list: a failure
  EXPECT_EQ(seen("plain"), (Seen{1, 0, 0, 0}));
}

TEST_F(OutcomeClasses, OfTwoNamesTheIgnoredOneWins) {
  ASSERT_TRUE(outcomes().add("first-tie", is_thrown<3>));
  ASSERT_TRUE(outcomes().add("second-tie", is_thrown<3>));
  fail("tie", [] { throw Thrown<3>(); });
  EXPECT_EQ(seen("tie"), (Seen{0, 1, 0, 0}));
}

TEST_F(OutcomeClasses, ARecordedOneBeatsOneThatNoListNames) {
  ASSERT_TRUE(outcomes().add("no-list-names-it", is_thrown<4>));
  ASSERT_TRUE(outcomes().add("listed-name", is_thrown<4>));
  fail("only", [] { throw Thrown<4>(); });
  EXPECT_EQ(seen("only"), (Seen{1, 0, 0, 0}));
}

TEST_F(OutcomeClasses, AnyCauseMayMatchToDepthSixteen) {
  ASSERT_TRUE(outcomes().add("deep-cause", is_thrown<5>));
  // An exception with so many wrapped around it.
  struct Nest {
    static void at(int depth) {
      try {
        if (depth == 0) throw Thrown<5>();
        at(depth - 1);
      } catch (...) {
        if (depth == 0) throw;
        std::throw_with_nested(std::runtime_error("around"));
      }
    }
  };
  fail("plain", [] { Nest::at(16); });
  EXPECT_EQ(class_count("plain", "deep-cause"), 1U);
  EXPECT_EQ(class_count("plain", "exception"), 0U);
  fail("plain", [] { Nest::at(17); });
  EXPECT_EQ(class_count("plain", "deep-cause"), 1U);
  EXPECT_EQ(class_count("plain", "exception"), 1U);
}

TEST_F(OutcomeClasses, NestedWithoutACauseAndThrownThingsThatAreNoExceptions) {
  fail("plain", [] {                                 // nothing was being handled: no cause in it
    std::throw_with_nested(std::runtime_error("alone"));
  });
  fail("plain", [] { throw 42; });
  fail("plain", [] {
    try {
      throw 42;
    } catch (...) {
      std::throw_with_nested(std::runtime_error("of a number"));
    }
  });
  EXPECT_EQ(class_count("plain", "exception"), 3U);
}

TEST_F(OutcomeClasses, SystemErrorsByCodeConditionAndCategory) {
  struct Category : std::error_category {
    const char* name() const noexcept override { return "upi"; }
    std::string message(int) const override { return "upi"; }
  };
  static const Category category;
  ASSERT_TRUE(outcomes().add("by-code", std::error_code(ENOTTY, std::system_category())));
  ASSERT_TRUE(outcomes().add("by-condition", std::errc::no_space_on_device));
  ASSERT_TRUE(outcomes().add("by-category", category));
  const auto counts = [&](int code, const std::error_category& of) {
    const std::uint64_t before = class_count("plain", "by-code");   // all share one counter
    fail("plain", [&] { throw std::system_error(code, of); });
    return class_count("plain", "by-code") - before;
  };
  EXPECT_EQ(counts(ENOTTY, std::system_category()), 1U);
  EXPECT_EQ(counts(ENOTTY, std::generic_category()), 0U);
  EXPECT_EQ(counts(ENOSPC, std::system_category()), 1U);
  EXPECT_EQ(counts(ENOSPC, std::generic_category()), 1U);
  EXPECT_EQ(counts(7, category), 1U);
  EXPECT_EQ(counts(EPIPE, std::system_category()), 0U);
  // The same for values.
  EXPECT_EQ(outcome_of(std::error_code(7, category)).failure_class(), "by-category");
  EXPECT_TRUE(outcome_of(std::error_code(0, category)).is_success());
}

TEST_F(OutcomeClasses, ABuiltInClassThatAListNamesBeatsAnAddedOneThatNoListNames) {
  ASSERT_TRUE(outcomes().add("slow-bank", is_thrown<6>));
  fail("built", [] {
    try {
      throw std::system_error(ETIMEDOUT, std::system_category());
    } catch (...) {
      std::throw_with_nested(Thrown<6>());
    }
  });
  EXPECT_EQ(seen("built"), (Seen{0, 1, 0, 0}));
  fail("built", [] { throw Thrown<6>(); });
  EXPECT_EQ(seen("built"), (Seen{1, 1, 0, 0}));
}

TEST_F(OutcomeClasses, ATestThatThrowsSaysNo) {
  ASSERT_TRUE(outcomes().add("throws", [](const std::exception& e) -> bool {
    if (is_thrown<7>(e)) throw std::logic_error("in the test");
    return false;
  }));
  fail("plain", [] { throw Thrown<7>(); });
  EXPECT_EQ(class_count("plain", "exception"), 1U);
}

TEST_F(OutcomeClasses, WhatCannotBeAddedIsToldWithTheRemedy) {
  EXPECT_EQ(outcomes().add("", is_thrown<8>).error().code(), Errc::InvalidArgument);
  EXPECT_EQ(outcomes().add(std::string(64, 'n'), is_thrown<8>).error().code(),
            Errc::InvalidArgument);
  EXPECT_EQ(outcomes().add("no-test", Outcomes::Test{}).error().code(), Errc::InvalidArgument);
}

TEST_F(OutcomeClasses, AForkedChildHasThoseOfItsParentAndAddsItsOwn) {
  ASSERT_TRUE(outcomes().add("listed-name", is_thrown<9>));
  const std::size_t before = outcomes().size();
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    fail("only", [] { throw Thrown<9>(); });
    const bool good = seen("only").failures == 1 && outcomes().add("child", is_thrown<10>) &&
                      outcomes().size() == before + 1;
    _exit(good ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_EQ(outcomes().size(), before);
}

// ---- values -------------------------------------------------------------------------------------

template <class T, class E>
struct Expected {
  std::optional<T> value_;
  E error_{};
  bool has_value() const { return value_.has_value(); }
  E error() const { return error_; }
};
enum class GrpcCode { Ok = 0, Unavailable = 14 };
template <class Code>
struct Status {
  Code code_{};
  bool ok() const { return code_ == Code{}; }
  Code code() const { return code_; }
};

std::string class_of(const auto& value) {
  const Outcome outcome = outcome_of(value);
  return outcome.is_success() ? "success" : std::string(outcome.failure_class());
}

TEST(OutcomeValues, ErrorCodesResultsExpectedAndStatus) {
  EXPECT_EQ(class_of(std::error_code()), "success");
  EXPECT_EQ(class_of(std::make_error_code(std::errc::connection_refused)), "connect");
  EXPECT_EQ(class_of(Result<int>(7)), "success");
  EXPECT_EQ(class_of(Result<int>(Error{Errc::Unsupported, "no"})), "result");
  EXPECT_EQ(class_of(Result<void>()), "success");
  EXPECT_EQ(class_of(Expected<int, std::string>{7}), "success");
  EXPECT_EQ(class_of(Expected<int, std::string>{{}, "no"}), "result");
  EXPECT_EQ(class_of(Expected<int, std::error_code>{{}, std::make_error_code(
                                                           std::errc::timed_out)}),
            "timeout");
  EXPECT_EQ(class_of(Expected<int, std::error_code>{}), "result");   // failed, and no code in it
  EXPECT_EQ(class_of(Status<GrpcCode>{}), "success");
  EXPECT_EQ(class_of(Status<GrpcCode>{GrpcCode::Unavailable}), "grpc:UNAVAILABLE");
  EXPECT_EQ(class_of(Status<int>{503}), "http-503");
  EXPECT_EQ(class_of(Status<int>{17}), "result");
  EXPECT_EQ(class_of(Status<int>{600}), "result");
  EXPECT_EQ(class_of(Status<std::error_code>{std::make_error_code(
                std::errc::connection_reset)}),
            "reset");
}

TEST(OutcomeValues, APlainValueAndAnEmptyOptionalAreSuccesses) {
  EXPECT_EQ(class_of(7), "success");
  EXPECT_EQ(class_of(std::string("error")), "success");
  EXPECT_EQ(class_of(std::optional<int>()), "success");
}

/// The defaults, whole: what is recorded and what is not where no list says anything.
TEST(OutcomeDefaults, AreTheWholeList) {
  using enum rule::ClassVerdict;
  const std::pair<const char*, rule::ClassVerdict> kDefaults[] = {
      {"timeout", Failure}, {"connect", Failure}, {"reset", Failure}, {"dns", Failure},
      {"tls", Failure}, {"http-500", Failure}, {"http-503", Failure}, {"http-5xx", Failure},
      {"http-408", Failure}, {"http-425", Failure}, {"http-429", Failure}, {"http-400", Ignored},
      {"http-404", Ignored}, {"http-499", Ignored}, {"http-4xx", Ignored}, {"local", Ignored},
      {"grpc:INVALID_ARGUMENT", Ignored}, {"grpc:NOT_FOUND", Ignored},
      {"grpc:ALREADY_EXISTS", Ignored}, {"grpc:PERMISSION_DENIED", Ignored},
      {"grpc:UNAUTHENTICATED", Ignored}, {"grpc:FAILED_PRECONDITION", Ignored},
      {"grpc:OUT_OF_RANGE", Ignored}, {"grpc:UNIMPLEMENTED", Ignored}, {"grpc:ABORTED", Ignored},
      {"grpc:CANCELLED", Cancelled}, {"grpc:UNKNOWN", Failure},
      {"grpc:DEADLINE_EXCEEDED", Failure}, {"grpc:RESOURCE_EXHAUSTED", Failure},
      {"grpc:INTERNAL", Failure}, {"grpc:UNAVAILABLE", Failure}, {"grpc:DATA_LOSS", Failure},
      {"errno:EINVAL", Failure}, {"exception", Failure}, {"result", Failure}, {"own", Cancelled},
      {"cancelled", Cancelled}, {"a-programs-own", Failure}};
  for (const auto& [name, verdict] : kDefaults) {
    const auto nothing = [](std::uint64_t) { return rule::Listed::No; };
    EXPECT_EQ(rule::judge_class(name, false, nothing), verdict) << name;
  }
  for (const int code : {EMFILE, ENFILE, ENOMEM, ENOBUFS, EADDRNOTAVAIL}) {
    EXPECT_EQ(class_of(std::error_code(code, std::system_category())), "local") << code;
  }
}

}  // namespace
}  // namespace cutwater::test
