// SPDX-License-Identifier: Apache-2.0
// What is refused before it can go wrong: zeros and values out of range, at start and at a reload.
#include <string>

#include "vectors/every_way.hpp"

namespace cutwater::test {
namespace {

class LoadCases : public EveryWay {
 protected:
  /// What the product says of `api: {SETTINGS}` at start, and at a reload over a good one.
  void expect_refused(const std::string& settings, const std::string& words) {
    SCOPED_TRACE(settings);
    const std::string yaml = "limits: {api: {" + settings + "}}\n";
    const auto at_start = GetParam().make()->open(yaml);
    EXPECT_EQ(at_start.error().code(), Errc::InvalidConfig);
    EXPECT_NE(at_start.error().text().find(words), std::string::npos) << at_start.error().text();

    const auto at_reload = way->reload(yaml);
    EXPECT_EQ(at_reload.error().code(), Errc::InvalidConfig);
    EXPECT_NE(at_reload.error().text().find(words), std::string::npos) << at_reload.error().text();
  }
};

INSTANTIATE_TEST_SUITE_P(Ways, LoadCases, ::testing::ValuesIn(every_way()), way_name);

TEST_P(LoadCases, C008ZeroIsRefusedNamingWhatToWrite) {
  ASSERT_NO_FATAL_FAILURE(start("api: {rate: 5/s, burst: 3}"));
  ASSERT_TRUE(limit().try_acquire("k", 2).allowed());

  expect_refused("rate: 0/s, burst: 1", "0");
  expect_refused("rate: 0/s, burst: 0", "0");
  expect_refused("rate: 5/s, burst: 0", "1");
  expect_refused("rate: 0 per 60 s", "0");
  expect_refused("rate: 5 per 0 s", "0");

  EXPECT_EQ(limit().peek("k", 0).remaining(), 1U) << "the old one stays";
  EXPECT_EQ(limit().try_acquire("k", 2).retry_after(), 200ms);
}

TEST_P(LoadCases, C005BeyondTheRangesIsRefusedNamingTheMaximum) {
  ASSERT_NO_FATAL_FAILURE(start("api: {rate: 10M/s, burst: 1000000000}, slow: {rate: 1/3660d}"));

  expect_refused("rate: 10000001/s", "10000000");
  expect_refused("rate: 1 per 3661 d", "3660");
  expect_refused("rate: 1/s, burst: 1000000001", "1000000000");
  expect_refused("rate: 1 per 999ns", "1us");

  EXPECT_TRUE(limit().try_acquire("k", 1'000'000'000).allowed());
  EXPECT_EQ(limit().try_acquire("k").retry_after(), 100ns);
}

}  // namespace
}  // namespace cutwater::test
