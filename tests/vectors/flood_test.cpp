// SPDX-License-Identifier: Apache-2.0
// Floods of invented keys: places in no debt are reused, nothing grows, and a steady key is decided
// all the while.
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>

#include "shm/counters.hpp"
#include "shm/limit/bucket.hpp"
#include "src/core.hpp"
#include "vectors/every_way.hpp"

namespace cutwater::test {
namespace {

class Flood : public EveryWay {
 protected:
  bool in_memory() const { return GetParam().name == std::string_view("InMemory"); }
  const shm::View& view() { return way->view(); }
};

INSTANTIATE_TEST_SUITE_P(Ways, Flood, ::testing::ValuesIn(every_way()), way_name);

std::uint64_t without_place(const shm::View& view, const char* name) {
  const auto counters = shm::sum_counters(view, shm::find_limit(view, name).index);
  return counters[static_cast<std::size_t>(shm::LimitCounter::NoPlace)];
}

/// Pages of address space of this process.
std::uint64_t mapped_pages() {
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages;
}

/// A table for 65 536 keys in debt, invented keys that are in debt for 10 s each, one steady key.
TEST_P(Flood, C040AFloodOfKeysReusesPlaces) {
  ASSERT_NO_FATAL_FAILURE(start_whole(
      "capacity: {keys: 65536, limits: 16}\n"
      "limits: {flood: {rate: 1 per 10 s, burst: 1}, steady: {rate: 1/s, burst: 1}}\n"));
  const int seconds = in_memory() ? 3600 : 60;         // 3.6 million keys
  constexpr int kPerSecond = 1000;
  Limit flood = limit("flood"), steady = limit("steady");
  const std::uint64_t slots = view().slot_count, pages = mapped_pages();
  std::uint64_t admitted = 0;
  std::uint64_t number = 0;
  for (int second = 0; second < seconds; ++second) {
    at(1s * second);
    ASSERT_TRUE(steady.try_acquire("me").allowed()) << second;
    ASSERT_FALSE(steady.try_acquire("me").allowed()) << second;
    for (int i = 0; i < kPerSecond; ++i) {
      admitted += flood.try_acquire(std::to_string(number++)).allowed() ? 1 : 0;
    }
  }
  EXPECT_EQ(admitted, number);
  EXPECT_EQ(without_place(view(), "flood"), 0U);
  EXPECT_EQ(without_place(view(), "steady"), 0U);
  EXPECT_EQ(view().slot_count, slots);
  EXPECT_EQ(mapped_pages(), pages);
}

/// Ten million keys at 50 000 a second into a table for a million, each in debt for 10 s.
// covers: C040 (in memory)
TEST(LargeFlood, C040TenMillionKeys) {
  SteppedClock clock;
  Client client = Client::in_memory("capacity: {keys: 1000000, limits: 16}\nlimits: {flood: {rate: "
                                    "1 per 10 s, burst: 1}, steady: {rate: 1/s, burst: 1}}\n",
                                    clock).value();
  Limit flood = client.limit("flood").value();
  Key steady = client.limit("steady").value().key("me");
  constexpr std::uint64_t kKeys = 10'000'000, kPerSecond = 50'000;
  std::uint64_t admitted = 0;
  for (std::uint64_t number = 0; number < kKeys; ++number) {
    if (number % kPerSecond == 0) {
      clock.set(1s * (number / kPerSecond));
      ASSERT_TRUE(steady.try_acquire().allowed()) << number;
      ASSERT_FALSE(steady.try_acquire().allowed()) << number;
    }
    char key[sizeof number];
    std::memcpy(key, &number, sizeof number);
    admitted += flood.try_acquire(std::string_view(key, sizeof key)).allowed() ? 1 : 0;
  }
  EXPECT_EQ(admitted, kKeys);
  EXPECT_EQ(without_place(client.core().view(), "flood"), 0U);
}

}  // namespace
}  // namespace cutwater::test
