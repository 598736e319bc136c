// SPDX-License-Identifier: Apache-2.0
// Keys, over every way: long ones, hostile ones, and more than there are places.
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "shm/counters.hpp"
#include "src/core.hpp"
#include "vectors/every_way.hpp"

namespace cutwater::test {
namespace {

using namespace std::string_literals;

class KeyCases : public EveryWay {
 protected:
  const shm::View& view() { return way->view(); }

  /// Every byte of buckets and overflow words.
  std::string bucket_bytes() {
    const shm::View& v = view();
    std::string bytes(reinterpret_cast<const char*>(v.slots), v.slot_count * sizeof(Word16));
    bytes.append(reinterpret_cast<const char*>(v.limits), v.limit_count * sizeof(shm::LimitState));
    return bytes;
  }

  std::uint64_t empty_slots() {
    std::uint64_t empty = 0;
    for (std::uint64_t i = 0; i < view().slot_count; ++i) {
      empty += load16(const_cast<Word16*>(view().slots) + i) == Word16{} ? 1 : 0;
    }
    return empty;
  }

  std::uint64_t counted(shm::LimitCounter which, const std::string& name) {
    const shm::LimitRef ref = shm::find_limit(view(), name);
    return shm::sum_counters(view(), ref.index)[static_cast<std::size_t>(which)];
  }
};

INSTANTIATE_TEST_SUITE_P(Ways, KeyCases, ::testing::ValuesIn(every_way()), way_name);

TEST_P(KeyCases, C035KeysThatDifferInTheLastByteAreDifferent) {
  ASSERT_NO_FATAL_FAILURE(start("api: {rate: 1/h, burst: 1}"));
  for (const std::size_t equal : {0, 1, 10, 15, 16, 32, 63, 64, 127, 128, 240, 255, 1023, 4095}) {
    const std::string a = std::string(equal, 'k') + 'a', b = std::string(equal, 'k') + 'b';
    EXPECT_TRUE(limit().try_acquire(a).allowed()) << equal;
    EXPECT_TRUE(limit().try_acquire(b).allowed()) << equal;
    EXPECT_FALSE(limit().try_acquire(a).allowed()) << equal;
    EXPECT_FALSE(limit().key(b).try_acquire().allowed()) << equal;
  }
}

TEST_P(KeyCases, C037EveryByteStringIsItsOwnBucket) {
  ASSERT_NO_FATAL_FAILURE(start("api: {rate: 1/h, burst: 1}"));
  const std::vector<std::string> keys = {
      ""s, "\0"s, "\0\0"s, "a\0b"s, "a\0c"s, "a"s, "\r\n"s, "\n"s, "\r\nSET x 1\r\n"s,
      std::string(16, '\xff'), "%s%n%x"s, "%d"s, "{}"s, std::string(255, 'x'),
      std::string(256, 'x'), std::string(4095, 'x'), std::string(kMaxKeyBytes, 'x'),
      "caf\xc3\xa9"s, "cafe\xcc\x81"s, "CAFE"s, "cafe"s, " cafe"s, "cafe "s, "../../etc/passwd"s};
  for (const std::string& key : keys) {
    EXPECT_TRUE(limit().try_acquire(key).allowed()) << ::testing::PrintToString(key);
  }
  for (const std::string& key : keys) {
    EXPECT_FALSE(limit().try_acquire(key).allowed()) << ::testing::PrintToString(key);
  }
}

TEST_P(KeyCases, C037ATooLongKeyIsSaidAndNothingCharged) {
  ASSERT_NO_FATAL_FAILURE(start("api: {rate: 1/h, burst: 1}"));
  const std::string longest(kMaxKeyBytes, 'x');
  ASSERT_TRUE(limit().try_acquire(longest).allowed());
  const std::string before = bucket_bytes();
  for (const std::size_t length : {kMaxKeyBytes + 1, std::size_t{65'536}, std::size_t{1'000'000}}) {
    const std::string key(length, 'x');
    Decision taken = limit().try_acquire(key);
    EXPECT_EQ(taken.reason(), Reason::KeyTooLong) << length;
    EXPECT_FALSE(taken.allowed());
    EXPECT_EQ(limit().refund(taken).error().code(), Errc::InvalidArgument);
    EXPECT_EQ(limit().peek(key).reason(), Reason::KeyTooLong);
    EXPECT_EQ(limit().key(key).try_acquire().reason(), Reason::KeyTooLong);
    EXPECT_EQ(limit().acquire(key, {.max_wait = 1s}).reason(), Reason::KeyTooLong);
    EXPECT_EQ(limit().reserve(key, {.max_wait = 1s}).reason(), Reason::KeyTooLong);
    const std::array<std::string_view, 2> batch = {key, "short"};
    std::array<Decision, 2> answers;
    limit().acquire_batch(std::span(batch).first(1), answers);
    EXPECT_EQ(answers[0].reason(), Reason::KeyTooLong);
  }
  EXPECT_EQ(bucket_bytes(), before);
}

class FullTable : public KeyCases {
 protected:
  static constexpr int kUnknown = 1000;

  /// Fills every slot with a debt that lasts an hour; `known` are keys that have one.
  void fill() {
    ASSERT_NO_FATAL_FAILURE(start_whole(
        "capacity: {keys: 1024, limits: 16}\n"
        "limits:\n"
        "  known: {rate: 2/h, burst: 2, on-full: deny}\n"
        "  share: {rate: 1/h, burst: 5}\n"
        "  deny: {rate: 1/h, burst: 5, on-full: deny}\n"
        "  allow: {rate: 1/h, burst: 5, on-full: allow}\n"));
    Limit filling = limit("known");
    for (int i = 0; empty_slots() > 0; ++i) {
      ASSERT_LT(i, 1'000'000) << "the table does not fill";
      for (int k = 0; k < 100; ++k) {
        const std::string key = "known" + std::to_string(i) + "." + std::to_string(k);
        if (filling.try_acquire(key).allowed()) known.push_back(key);
      }
    }
    ASSERT_EQ(known.size(), view().slot_count) << "a slot is a key";
  }

  std::vector<std::string> known;
};

INSTANTIATE_TEST_SUITE_P(Ways, FullTable, ::testing::ValuesIn(every_way()), way_name);

TEST_P(FullTable, C042KnownKeysAreDecidedAsEver) {
  ASSERT_NO_FATAL_FAILURE(fill());
  for (const std::string& key : known) {
    const Decision second = limit("known").try_acquire(key);
    ASSERT_TRUE(second.allowed()) << key;
    ASSERT_FALSE(second.overflow() || second.degraded()) << key;
    ASSERT_EQ(second.remaining(), 0U) << key;
    const Decision third = limit("known").try_acquire(key);
    ASSERT_EQ(third.reason(), Reason::Limit) << key;
    ASSERT_EQ(third.retry_after(), 30min) << key;
  }
}

TEST_P(FullTable, C042UnknownKeysShareOneBucket) {
  ASSERT_NO_FATAL_FAILURE(fill());
  int admitted = 0;
  for (int i = 0; i < kUnknown; ++i) {
    const Decision d = limit("share").try_acquire("new" + std::to_string(i));
    admitted += d.allowed() ? 1 : 0;
    ASSERT_TRUE(d.overflow()) << i;
    if (!d.allowed()) { ASSERT_EQ(d.reason(), Reason::Limit) << i; }
  }
  EXPECT_EQ(admitted, 5) << "one burst for all of them";
  EXPECT_EQ(counted(shm::LimitCounter::NoPlace, "share"), std::uint64_t{kUnknown});
}

TEST_P(FullTable, C042UnknownKeysAreDeniedOrAllowedAsConfigured) {
  ASSERT_NO_FATAL_FAILURE(fill());
  const std::string before = bucket_bytes();
  for (int i = 0; i < kUnknown; ++i) {
    const std::string key = "new" + std::to_string(i);
    const Decision denied = limit("deny").try_acquire(key);
    ASSERT_EQ(denied.reason(), Reason::Degraded) << i;
    ASSERT_TRUE(denied.overflow() && denied.degraded() && denied.is_hint()) << i;
    ASSERT_GT(denied.retry_after(), 0ns) << i;
    const Decision allowed = limit("allow").try_acquire(key);
    ASSERT_TRUE(allowed.allowed()) << i;
    ASSERT_TRUE(allowed.overflow() && allowed.degraded()) << i;
  }
  EXPECT_EQ(counted(shm::LimitCounter::NoPlace, "deny"), std::uint64_t{kUnknown});
  EXPECT_EQ(counted(shm::LimitCounter::NoPlace, "allow"), std::uint64_t{kUnknown});
  EXPECT_EQ(bucket_bytes(), before) << "neither writes a bucket";
}

TEST_P(FullTable, C042PlacesComeBackWithTime) {
  ASSERT_NO_FATAL_FAILURE(fill());
  ASSERT_TRUE(limit("share").try_acquire("new").overflow());
  at(30min - 1ns);
  EXPECT_TRUE(limit("share").try_acquire("new").overflow());
  at(30min);
  EXPECT_FALSE(limit("share").try_acquire("other").overflow()) << "the debts are paid";
}

}  // namespace
}  // namespace cutwater::test
