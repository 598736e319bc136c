// SPDX-License-Identifier: Apache-2.0
#include "quickstart/made_log.hpp"

#include <gtest/gtest.h>

#include <string>

#include "quickstart/shared_log.hpp"

namespace cutwater::quickstart {
namespace {

Result<SharedLog> read_text(std::string text) {
  ctl::AccessLog log(
      [text = std::move(text), at = std::size_t{0}](char* place, std::size_t size) mutable {
        const std::size_t count = text.copy(place, size, at);
        at += count;
        return count;
      });
  return SharedLog::read(log);
}

TEST(MadeLog, IsTheSameForTheSameSeed) {
  EXPECT_EQ(make_log({.seed = 7, .requests = 500}), make_log({.seed = 7, .requests = 500}));
  EXPECT_NE(make_log({.seed = 7, .requests = 500}), make_log({.seed = 8, .requests = 500}));
}

TEST(MadeLog, LooksLikeARealOne) {
  const auto log = read_text(make_log({.seed = 7}));

  ASSERT_TRUE(log.ok()) << log.error().text();
  EXPECT_EQ(log->size(), 10'000U);
  EXPECT_EQ(log->skipped(), 0U);
  EXPECT_GT(log->out_of_order(), 100U);
  EXPECT_GT(log->clients(), 500U);
  std::uint64_t most = 0, sum = 0;
  std::vector<std::uint64_t> of(log->clients());
  for (std::uint32_t i = 0; i < log->size(); ++i) ++of[log->request(i).client];
  for (const std::uint64_t count : of) most = std::max(most, count), sum += count;
  EXPECT_GT(most * 20, sum) << "no heavy client";
}

TEST(SharedLog, GroupsRequestsOfOneStamp) {
  const std::string line = " - - [17/May/2015:10:05:0";
  const std::string rest = " +0000] \"GET / HTTP/1.1\" 200 1\n";
  const auto log = read_text("a" + line + "3" + rest + "b" + line + "3" + rest + "a" + line + "5" +
                             rest + "c" + line + "4" + rest);

  ASSERT_TRUE(log.ok());
  EXPECT_EQ(log->size(), 4U);
  EXPECT_EQ(log->clients(), 3U);
  EXPECT_EQ(log->client(log->request(1).client), "b");
  EXPECT_EQ(log->client(log->request(2).client), "a");
  EXPECT_EQ(log->end_of_group(0), 2U);
  EXPECT_EQ(log->end_of_group(2), 4U) << "an earlier stamp joins the latest";
  EXPECT_EQ(log->request(3).at_ns, 2'000'000'000);
}

TEST(SharedLog, RefusesALogWithNothingInIt) {
  EXPECT_EQ(read_text("nonsense\n").error().code(), Errc::InvalidArgument);
}

}  // namespace
}  // namespace cutwater::quickstart
