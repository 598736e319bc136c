// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "ctl/explain.hpp"

namespace cutwater::ctl {
namespace {

using wire::Value;

constexpr std::uint64_t kSecond = 1'000'000'000;

Value bucket(Value answer) {
  Value::Array windows;
  windows.push_back(Value::map({{"count", 10U}, {"period_ns", kSecond}, {"burst", 10U}}));
  windows.push_back(Value::map({{"count", 500U}, {"calendar", "month"}, {"zone", "UTC"},
                                {"burst", 500U}}));
  Value row = Value::map({{"limit", "api"}, {"kind", "bucket"}, {"mode", "enforce"}});
  row.set("windows", std::move(windows));
  row.set("answer", std::move(answer));
  return row;
}

bool says(const std::vector<std::string>& sentences, const std::string& part) {
  for (const std::string& sentence : sentences) {
    if (sentence.find(part) != std::string::npos) return true;
  }
  return false;
}

TEST(Explain, SaysWhichWindowRefusesAndWhenToComeBack) {
  const auto words = explain(bucket(Value::map({{"allowed", false},
                                                {"reason", "limit"},
                                                {"remaining", 2U},
                                                {"retry_after_ns", 300'000'000U},
                                                {"reset_after_ns", 800'000'000U},
                                                {"window", 0U}})),
                             5);

  EXPECT_TRUE(says(words, "refused by window 1 of 2 (10/s burst 10): 2 tokens left, 5 asked for; "
                          "come back in 300ms"));
  EXPECT_TRUE(says(words, "full again in 800ms"));
}

TEST(Explain, SaysWhatIsLeftAndWhichIsTightest) {
  const auto words = explain(bucket(Value::map({{"allowed", true},
                                                {"reason", "allowed"},
                                                {"remaining", 1U},
                                                {"window", 1U}})),
                             1);

  EXPECT_TRUE(says(words, "allowed: 1 token left after this ask of 1"));
  EXPECT_TRUE(says(words, "window 2 of 2 (500 per month (UTC))"));
  EXPECT_TRUE(says(words, "the bucket is full"));
}

TEST(Explain, NamesTheWindowsOfTheOverrideAndNotTheLimits) {
  Value answer = Value::map({{"allowed", true},
                             {"reason", "allowed"},
                             {"remaining", 4U},
                             {"window", 0U},
                             {"by", "override"}});
  Value::Array own;
  own.push_back(Value::map({{"count", 5U}, {"period_ns", kSecond}, {"burst", 5U}}));
  answer.set("windows", std::move(own));

  const auto words = explain(bucket(answer), 1);

  EXPECT_TRUE(says(words, "judged by an override (its own or a pattern's), not by the limit's own "
                          "numbers: 5/s burst 5"));
  EXPECT_FALSE(says(words, "window 1 of 2")) << "the limit's own windows judge nothing here";
  EXPECT_FALSE(says(words, "10/s"));
}

TEST(Explain, SaysWhatNoWaitHelps) {
  const std::uint64_t never = ~std::uint64_t{0};
  EXPECT_TRUE(says(explain(bucket(Value::map({{"allowed", false}, {"reason", "never"},
                                              {"retry_after_ns", never}})),
                           11),
                   "a cost of 11 is over the burst; no wait helps"));
  EXPECT_TRUE(says(explain(bucket(Value::map({{"allowed", false}, {"reason", "banned"},
                                              {"retry_after_ns", never}})),
                           1),
                   "banned until somebody ends it"));
  EXPECT_TRUE(says(explain(bucket(Value::map({{"allowed", false}, {"reason", "banned"},
                                              {"retry_after_ns", 60 * kSecond}})),
                           1),
                   "banned for 1m"));
}

TEST(Explain, SaysWhatAShadowWouldDo) {
  const auto words = explain(bucket(Value::map({{"allowed", true}, {"reason", "allowed"},
                                                {"shadow", true}, {"would", "limit"}})),
                             1);

  EXPECT_TRUE(says(words, "shadow mode: enforced, it would refuse (limit)"));
}

TEST(Explain, HasNothingToSayWithoutAnAnswer) {
  EXPECT_TRUE(explain(Value::map({{"limit", "api"}}), 1).empty());
}

}  // namespace
}  // namespace cutwater::ctl
