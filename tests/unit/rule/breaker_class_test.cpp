// SPDX-License-Identifier: Apache-2.0
#include "rule/breaker_class.hpp"

#include <gtest/gtest.h>

#include <map>

namespace cutwater::rule {
namespace {

ClassVerdict judged(std::string_view name, const std::map<std::string_view, Listed>& lists = {},
                    bool record_given = false) {
  return judge_class(name, record_given, [&](std::uint64_t hash) {
    for (const auto& [listed, how] : lists) {
      if (class_hash(listed) == hash) return how;
    }
    return Listed::No;
  });
}

TEST(BreakerClass, Defaults) {
  for (const auto* name : {"timeout", "connect", "http-500", "http-429", "http-408", "http-425",
                           "grpc:UNAVAILABLE", "errno:ECONNRESET", "exception", "anything-else"}) {
    EXPECT_EQ(judged(name), ClassVerdict::Failure) << name;
  }
  for (const auto* name : {"http-404", "http-4xx", "local", "grpc:NOT_FOUND"}) {
    EXPECT_EQ(judged(name), ClassVerdict::Ignored) << name;
  }
  EXPECT_EQ(judged("own"), ClassVerdict::Cancelled);
  EXPECT_EQ(judged("grpc:CANCELLED"), ClassVerdict::Cancelled);
}

TEST(BreakerClass, TheMostSpecificNameDecides) {
  EXPECT_EQ(judged("http-404", {{"http-404", Listed::Record}}), ClassVerdict::Failure);
  EXPECT_EQ(judged("http-503", {{"http-5xx", Listed::Ignore}}), ClassVerdict::Ignored);
  EXPECT_EQ(judged("http-503", {{"http-5xx", Listed::Ignore}, {"http-503", Listed::Record}}),
            ClassVerdict::Failure);
  EXPECT_EQ(judged("http-503", {{"http-5xx", Listed::Record}, {"http-503", Listed::Ignore}}),
            ClassVerdict::Ignored);
}

TEST(BreakerClass, ARecordListMakesTheRestASuccess) {
  EXPECT_EQ(judged("timeout", {{"timeout", Listed::Record}}, true), ClassVerdict::Failure);
  EXPECT_EQ(judged("connect", {{"timeout", Listed::Record}}, true), ClassVerdict::Success);
  EXPECT_EQ(judged("own", {{"own", Listed::Record}}, true), ClassVerdict::Cancelled);
}

TEST(BreakerClass, GroupsAreThreeDigits) {
  EXPECT_EQ(group_of("http-503"), "http-5xx");
  EXPECT_EQ(group_of("http-499"), "http-4xx");
  EXPECT_EQ(group_of("http-302"), "");
  EXPECT_EQ(group_of("http-5xx"), "");
  EXPECT_EQ(group_of("http-5"), "");
}

TEST(BreakerClass, CountersHaveNames) {
  EXPECT_EQ(counter_name(class_counter("http-503")), "http-5xx");
  EXPECT_EQ(counter_name(class_counter("errno:EPIPE")), "errno");
  EXPECT_EQ(counter_name(class_counter("timeout")), "timeout");
  EXPECT_EQ(counter_name(class_counter("invalid-upi")), "program");
  EXPECT_EQ(counter_name(200), "");
}

}  // namespace
}  // namespace cutwater::rule
