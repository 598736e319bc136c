// SPDX-License-Identifier: Apache-2.0
#include "source_book.hpp"

#include <gtest/gtest.h>

namespace cutwater::server {
namespace {

using Verdict = SourceBook::Verdict;
constexpr std::uint64_t kSecond = 1'000'000'000;

TEST(SourceBook, TakesSoManyConnectionsOfOneUidAndNoMore) {
  SourceBook book;
  for (std::uint32_t i = 0; i < SourceBook::Bounds{}.connections_per_source; ++i) {
    ASSERT_EQ(book.opened(7, kSecond), Verdict::Welcome);
  }

  EXPECT_EQ(book.opened(7, kSecond), Verdict::TooManyOfSource);
  EXPECT_EQ(book.opened(8, kSecond), Verdict::Welcome);
  book.closed(7);
  EXPECT_EQ(book.opened(7, kSecond), Verdict::Welcome);
}

TEST(SourceBook, TakesSoManyConnectionsInAllAndNoMore) {
  SourceBook book;
  for (std::uint32_t i = 0; i < SourceBook::Bounds{}.connections; ++i) {
    ASSERT_EQ(book.opened(i / 200, kSecond), Verdict::Welcome);
  }

  EXPECT_EQ(book.opened(999, kSecond), Verdict::TooManyInAll);
  EXPECT_EQ(book.connections(), SourceBook::Bounds{}.connections);
}

TEST(SourceBook, StaysSilentForAMinuteAfterThirtyFailedHellos) {
  SourceBook book;
  for (std::uint32_t i = 1; i <= SourceBook::kMaxFailedHellos; ++i) {
    ASSERT_EQ(book.opened(7, kSecond), Verdict::Welcome);
    EXPECT_EQ(book.hello_failed(7, kSecond), i == SourceBook::kMaxFailedHellos) << "said once";
    book.closed(7);
  }
  EXPECT_FALSE(book.hello_failed(7, kSecond));

  EXPECT_EQ(book.opened(7, 2 * kSecond), Verdict::Silent);
  EXPECT_EQ(book.opened(8, 2 * kSecond), Verdict::Welcome);
  EXPECT_EQ(book.opened(7, kSecond + SourceBook::kMinuteNs), Verdict::Welcome);
}

TEST(SourceBook, NeverSilencesRootOrItsOwnUid) {
  SourceBook book(55);
  for (const std::uint32_t uid : {0U, 55U}) {
    for (std::uint32_t i = 0; i <= SourceBook::kMaxFailedHellos; ++i) {
      EXPECT_FALSE(book.hello_failed(uid, kSecond));
    }
    EXPECT_EQ(book.opened(uid, 2 * kSecond), Verdict::Welcome);
  }
}

TEST(SourceBook, LogsASourceOnceAMinuteAndCountsTheRest) {
  SourceBook book;

  EXPECT_TRUE(book.may_log(7, kSecond).now);
  EXPECT_FALSE(book.may_log(7, 2 * kSecond).now);
  EXPECT_FALSE(book.may_log(7, 3 * kSecond).now);
  EXPECT_TRUE(book.may_log(8, 3 * kSecond).now);
  const SourceBook::Say later = book.may_log(7, kSecond + SourceBook::kMinuteNs);
  EXPECT_TRUE(later.now);
  EXPECT_EQ(later.unsaid, 2U);
}

TEST(SourceBook, KeepsABoundedNumberOfSources) {
  SourceBook book;
  ASSERT_EQ(book.opened(1, kSecond), Verdict::Welcome);
  for (std::uint32_t uid = 2; uid < 2 * SourceBook::kMaxSources; ++uid) {
    book.may_log(uid, kSecond + uid);
  }

  EXPECT_LE(book.sources(), SourceBook::kMaxSources);
  EXPECT_EQ(book.connections(), 1U);   // whoever is connected is never forgotten
  book.forget_quiet(kSecond + 10 * SourceBook::kMinuteNs);
  EXPECT_EQ(book.sources(), 1U);
}

TEST(SourceBook, ClosingWhatWasNeverOpenedChangesNothing) {
  SourceBook book;

  book.closed(7);

  EXPECT_EQ(book.connections(), 0U);
}

}  // namespace
}  // namespace cutwater::server
