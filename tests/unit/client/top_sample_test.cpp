// SPDX-License-Identifier: Apache-2.0
// What mapped clients decide, in the list of top keys. Each test decides in a thread of its own:
// a thread's pace is its own.
#include "src/top_sample.hpp"

#include <map>
#include <thread>

#include "shm/limit/tops.hpp"
#include "unit/client/client_fixture.hpp"

namespace cutwater::test {
namespace {

class TopSample : public InMemory {
 protected:
  static constexpr Nanos kSlow = 5ms;

  template <class Work>
  void in_thread(Work work) { std::thread(work).join(); }

  std::vector<shm::Top> tops(const std::string& name = "api") {
    return shm::read_tops(view(), shm::find_limit(view(), name).index);
  }
  shm::Top top(const std::string& key, const std::string& name = "api") {
    for (const shm::Top& each : tops(name)) {
      if (each.text == key) return each;
    }
    return {};
  }
};

TEST_F(TopSample, EveryDecisionIsNotedWhileTheyAreFew) {
  start("limits: { api: { rate: 1/h, burst: 4, show-keys: shown }, "
        "two: { windows: [ 1/h, 1/d ], show-keys: shown } }");
  in_thread([&] {
    Limit api = limit(), two = limit("two");
    Key alice = api.key("alice");
    for (int i = 0; i < 5; ++i) {
      alice.try_acquire();
      clock.advance(kSlow);
    }
    api.try_acquire("bob");
    clock.advance(kSlow);
    const std::string_view batch[] = {"bob"};
    Decision answers[1];
    api.acquire_batch(batch, answers);
    clock.advance(kSlow);
    (void)api.acquire("bob", {.max_wait = 1s});
    clock.advance(kSlow);
    (void)two.try_acquire("carol");
    clock.advance(kSlow);
    (void)client->acquire_all({{api, "bob"}, {two, "carol"}});
    (void)api.peek("dave");
  });

  EXPECT_EQ(top("alice").asked, 5U);
  EXPECT_EQ(top("alice").refused, 1U);
  EXPECT_EQ(top("bob").asked, 3U);               // the set was refused by `two` alone
  EXPECT_EQ(top("bob").refused, 0U);
  EXPECT_EQ(top("carol", "two").asked, 2U);
  EXPECT_EQ(top("carol", "two").refused, 1U);
  EXPECT_EQ(tops().size(), 2U);
}

TEST_F(TopSample, TextsLieThereOnlyWhereKeysAreShown) {
  start("limits: { hashed: { rate: 1/s, show-keys: hashed }, "
        "hidden: { rate: 1/s, show-keys: hidden } }");
  in_thread([&] {
    limit("hashed").try_acquire("alice");
    clock.advance(kSlow);
    limit("hidden").try_acquire("alice");
  });

  for (const char* name : {"hashed", "hidden"}) {
    ASSERT_EQ(tops(name).size(), 1U);
    EXPECT_EQ(tops(name)[0].text, "");
  }
}

/// `by_turns` keys in turn between asks of one key, an ask every microsecond.
void ask_fast(Limit api, SteppedClock time, int by_turns, int asks) {
  for (int i = 0; i < asks; ++i) {
    if (i % 2 == 0) (void)api.try_acquire("heavy");
    else (void)api.try_acquire("k" + std::to_string(i / 2 % by_turns));
    time.advance(1us);
  }
}

TEST_F(TopSample, AFastThreadNotesASampleThatIsRightInTheMean) {
  constexpr int kAsks = 400'000, kByTurns = 12;
  start("limits: { api: { rate: 1000/s, burst: 1000, show-keys: shown } }");

  in_thread([&] { ask_fast(limit(), clock, kByTurns, kAsks); });

  std::map<std::string, std::uint64_t> asked;
  std::uint64_t sum = 0, refused = 0;
  for (const shm::Top& each : tops()) {
    asked[each.text] = each.asked;
    sum += each.asked;
    refused += each.refused;
  }
  ASSERT_EQ(asked.size(), 1U + kByTurns) << "keys that are asked in turn are all met";
  EXPECT_NEAR(static_cast<double>(asked["heavy"]), kAsks / 2, kAsks * 0.1);
  EXPECT_NEAR(static_cast<double>(sum), kAsks, kAsks * 0.15);
  const auto truly = static_cast<double>(counted(shm::LimitCounter::Refused));
  EXPECT_NEAR(static_cast<double>(refused), truly, truly * 0.15);
}

TEST_F(TopSample, ALeaseIsNotedWithWhatItCanPay) {
  constexpr int kAsks = 100'000;
  start("limits: { api: { rate: 1000000/s, burst: 1000000, thread-lease: 100, "
        "show-keys: shown } }");

  in_thread([&] {
    Key key = limit().key("k");
    for (int i = 0; i < kAsks; ++i) {
      ASSERT_TRUE(key.try_acquire().allowed());
      clock.advance(1us);
    }
  });

  EXPECT_NEAR(static_cast<double>(top("k").asked), kAsks, kAsks * 0.15);
}

TEST_F(TopSample, TheWeightOfASampleIsWhatItStandsFor) {
  for (std::uint32_t weight = 1; weight <= detail::kMostWeight; weight *= 2) {
    const detail::SampleBelow below = detail::kSampleAll / weight;
    EXPECT_EQ(detail::kSampleAll / below, weight);
    constexpr std::uint64_t kCounts = 1 << 20;
    std::uint64_t met = 0;
    for (std::uint64_t n = 1; n <= kCounts; ++n) met += detail::is_sampled(n, below);
    EXPECT_NEAR(static_cast<double>(met * weight), kCounts, 4.0 * weight);
  }
}

}  // namespace
}  // namespace cutwater::test
