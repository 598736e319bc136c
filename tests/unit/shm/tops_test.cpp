// SPDX-License-Identifier: Apache-2.0
#include "shm/limit/tops.hpp"

#include <map>
#include <random>
#include <thread>

#include "unit/shm/memory_support.hpp"

namespace cutwater::shm {
namespace {

constexpr std::uint32_t kRows = 8;

class TopsTest : public testing::Test {
 protected:
  TopsTest() {
    SegmentOptions options = test::small_options();
    options.capacity.tops = kRows;
    segment_.emplace(Segment::create_private(options).value());
  }
  const View& view() const { return segment_->view(); }
  void note(std::uint64_t key, bool refused = false, std::uint64_t weight = 1,
            std::string_view text = {}) const {
    note_top(view(), {.limit = 1, .key = {key, 0}, .text = text, .weight = weight,
                      .refused = refused});
  }
  std::optional<Segment> segment_;
};

TEST_F(TopsTest, CountsWhatIsAskedAndRefusedMostAskingFirst) {
  for (int i = 0; i < 5; ++i) note(7, i > 1);
  note(9, false, 16);

  const auto tops = read_tops(view(), 1);

  ASSERT_EQ(tops.size(), 2U);
  EXPECT_EQ(tops[0].key_hash, 9U);
  EXPECT_EQ(tops[0].asked, 16U);
  EXPECT_EQ(tops[1].asked, 5U);
  EXPECT_EQ(tops[1].refused, 3U);
  EXPECT_EQ(tops[1].over, 0U);
  EXPECT_TRUE(read_tops(view(), 0).empty());
  EXPECT_TRUE(read_tops(view(), 99).empty());
}

TEST_F(TopsTest, HeavyKeysStayInAFloodAndTheBoundsHold) {
  std::mt19937_64 random(20);
  std::map<std::uint64_t, std::uint64_t> truth;
  const auto ask = [&](std::uint64_t key) {
    ++truth[key];
    note(key);
  };
  for (int i = 0; i < 20'000; ++i) {
    if (i % 2 == 0) ask(1000 + random() % 100'000);        // invented keys
    if (i % 4 == 0) ask(1);
    if (i % 5 == 0) ask(2);
  }

  const auto tops = read_tops(view(), 1);

  ASSERT_EQ(tops.size(), kRows);
  EXPECT_EQ(tops[0].key_hash, 1U);
  EXPECT_EQ(tops[1].key_hash, 2U);
  std::uint64_t sum = 0;
  for (const Top& top : tops) {
    EXPECT_LE(truth[top.key_hash], top.asked);
    EXPECT_LE(top.asked - top.over, truth[top.key_hash]);
    sum += top.asked;
  }
  EXPECT_LE(sum, 10'000U + 5'000U + 4'000U) << "no row counts what was not asked";
}

TEST_F(TopsTest, ATextIsCutAndKeptWithItsKey) {
  note(7, false, 1, "a key that is longer than what a row holds");
  note(8, false, 1, "");

  const auto tops = read_tops(view(), 1);

  EXPECT_EQ(tops[0].text.size() + tops[1].text.size(), sizeof TopRecord{}.text);
}

TEST_F(TopsTest, ATornRowIsFreeAndAClearedListEmpty) {
  note(7);
  note(8);
  view().tops[kRows].asked ^= 0x40;   // row 0 of limit 1

  EXPECT_EQ(read_tops(view(), 1).size(), 1U);
  note(7);
  EXPECT_EQ(read_tops(view(), 1).size(), 2U);

  clear_tops(view(), 1);
  EXPECT_TRUE(read_tops(view(), 1).empty());
}

TEST_F(TopsTest, ATornRowThatSeemsToAskMuchIsTakenByANewKey) {
  for (std::uint64_t key = 1; key <= kRows; ++key) note(key, false, 1000);
  view().tops[kRows + 3].asked = ~std::uint64_t{0};      // row 3 of limit 1
  ASSERT_EQ(read_tops(view(), 1).size(), kRows - 1);

  for (std::uint64_t key = 100; key < 100 + kRows; ++key) note(key);

  EXPECT_EQ(read_tops(view(), 1).size(), kRows);
}

TEST_F(TopsTest, ManyWritersLoseCountsAndNothingElse) {
  constexpr int kThreads = 4, kNotes = 20'000;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t] {
      for (int i = 0; i < kNotes; ++i) note(static_cast<std::uint64_t>(t % 2 + 1), true);
    });
  }
  for (std::thread& thread : threads) thread.join();

  for (const Top& top : read_tops(view(), 1)) {
    EXPECT_TRUE(top.key_hash == 1 || top.key_hash == 2) << top.key_hash;
    EXPECT_LE(top.asked, std::uint64_t{kThreads} * kNotes);
    EXPECT_LE(top.refused, top.asked);
  }
}

}  // namespace
}  // namespace cutwater::shm
