// SPDX-License-Identifier: Apache-2.0
// What is free of a region, and which entry a name gets (shm/gaps.hpp, shm/entry_names.hpp).
#include <gtest/gtest.h>

#include <random>

#include "shm/entry_names.hpp"
#include "shm/gaps.hpp"

namespace cutwater {
namespace {

using shm::EntryNames;
using shm::Gap;
using shm::Gaps;

std::vector<Gap> left(const Gaps& gaps) {
  std::vector<Gap> out;
  for (const Gap& gap : gaps.all()) {
    if (gap.count != 0) out.push_back(gap);
  }
  return out;
}

TEST(Gaps, AreWhatNoRunCoversAlsoOfRunsThatOverlapOrLieOutside) {
  const Gaps gaps({{8, 4}, {2, 3}, {3, 3}, {10, 1}, {20, 5}, {18, 9}}, 16);

  EXPECT_EQ(left(gaps), (std::vector<Gap>{{0, 2}, {6, 2}, {12, 4}}));
  EXPECT_TRUE(left(Gaps({{0, 16}}, 16)).empty());
  EXPECT_EQ(left(Gaps({}, 16)), (std::vector<Gap>{{0, 16}}));
  EXPECT_TRUE(left(Gaps({{0xffff'fff0, 0x20}}, 0)).empty());
}

TEST(Gaps, GiveTheFirstThatHasRoom) {
  Gaps gaps({{2, 4}, {9, 1}}, 16);

  ASSERT_NE(gaps.first_fit(3), nullptr);
  EXPECT_EQ(gaps.first_fit(3)->first, 6U);
  gaps.take({6, 3});
  EXPECT_EQ(gaps.first_fit(3)->first, 10U);
  EXPECT_EQ(gaps.first_fit(2)->first, 0U);
  EXPECT_EQ(gaps.first_fit(7), nullptr);
  EXPECT_EQ(gaps.at(6), nullptr);
  ASSERT_NE(gaps.at(10), nullptr);
  EXPECT_EQ(gaps.at(10)->count, 6U);
}

TEST(Gaps, TenThousandRunsCostOneLookEach) {
  constexpr std::uint32_t kRuns = 10'000;
  std::vector<Gap> used;
  for (std::uint32_t i = 0; i < kRuns; ++i) used.push_back({i * 8, 6});   // too small for 3
  Gaps gaps(used, kRuns * 8 + kRuns * 3);

  for (std::uint32_t i = 0; i < kRuns; ++i) {
    const Gap* const gap = gaps.first_fit(3);
    ASSERT_NE(gap, nullptr) << i;
    gaps.take({gap->first, 3});
  }
  EXPECT_EQ(gaps.first_fit(4), nullptr);
  // All that are too small once for each size, and each run once: never all of them for each.
  EXPECT_LE(gaps.looks(), 4 * std::uint64_t{kRuns});
}

/// A byte for each place, looked through from the beginning.
TEST(Gaps, AreWhatANaiveMapOfTheRegionSays) {
  constexpr std::uint32_t kRoom = 300;
  std::random_device entropy;
  const std::uint64_t seed = entropy();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 chance(seed);
  for (int round = 0; round < 200; ++round) {
    std::vector<bool> taken(kRoom);
    std::vector<Gap> used;
    const auto mark = [&](Gap run) {
      for (std::uint32_t i = run.first; i < std::min(run.first + run.count, kRoom); ++i) {
        taken[i] = true;
      }
    };
    for (std::uint64_t i = chance() % 20; i > 0; --i) {
      used.push_back({static_cast<std::uint32_t>(chance() % kRoom),
                      static_cast<std::uint32_t>(chance() % 30)});
      mark(used.back());
    }
    Gaps gaps(used, kRoom);
    for (int step = 0; step < 60; ++step) {
      const auto wanted = static_cast<std::uint32_t>(1 + chance() % 12);
      std::uint32_t first = 0, length = 0;
      for (std::uint32_t i = 0; i < kRoom && length < wanted; ++i) {
        length = taken[i] ? 0 : length + 1;
        first = i + 1 - length;
      }
      const Gap* const gap = gaps.first_fit(wanted);
      ASSERT_EQ(gap != nullptr, length >= wanted) << "round " << round << " step " << step;
      if (gap == nullptr) continue;
      ASSERT_EQ(gap->first, first) << "round " << round << " step " << step;
      mark({first, wanted});
      gaps.take({first, wanted});
    }
  }
}

TEST(EntryNames, ANameGetsItsOwnEntryThenAFreshOneThenOneOfOthers) {
  using Free = EntryNames::Free;
  EntryNames names;
  names.begin(6);
  names.add_used(0, "a");
  names.add_free(1, "was", Free::Reusable);
  names.add_free(2, "rests", Free::OwnerOnly);
  names.add_free(3, "", Free::Fresh);
  names.add_free(4, "", Free::Fresh);
  names.add_free(5, "was", Free::Reusable);

  EXPECT_EQ(names.index_of("a"), 0U);
  EXPECT_EQ(names.index_of("was"), EntryNames::kNone);
  EXPECT_EQ(names.free_for("rests"), 2U);
  EXPECT_EQ(names.free_for("was"), 1U);
  EXPECT_EQ(names.free_for("new"), 3U);
  for (const std::uint32_t index : {3U, 4U, 1U, 5U}) {
    EXPECT_EQ(names.free_for("new" + std::to_string(index)), index);
    names.take(index, "new" + std::to_string(index));
  }
  EXPECT_EQ(names.index_of("new4"), 4U);
  EXPECT_EQ(names.free_for("was"), EntryNames::kNone);
  EXPECT_EQ(names.free_for("other"), EntryNames::kNone);
  EXPECT_EQ(names.free_for("rests"), 2U);
}

}  // namespace
}  // namespace cutwater
