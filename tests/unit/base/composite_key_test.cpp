// SPDX-License-Identifier: Apache-2.0
#include "base/composite_key.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace cutwater {
namespace {

using Parts = std::vector<std::string_view>;

TEST(CompositeKey, IsEachPartBehindItsLength) {
  EXPECT_EQ(composite_key(Parts{"acme", "alice"}), std::string("\0\4acme\0\5alice", 13));
  EXPECT_EQ(composite_key(Parts{""}), std::string("\0\0", 2));
  EXPECT_EQ(composite_key(Parts{std::string(300, 'x')})->substr(0, 3), "\1\x2cx");
}

TEST(CompositeKey, HasBounds) {
  EXPECT_FALSE(composite_key(Parts{}));
  EXPECT_TRUE(composite_key(Parts(kMaxKeyParts, "a")));
  EXPECT_FALSE(composite_key(Parts(kMaxKeyParts + 1, "a")));
  const std::string longest(kMaxKeyBytes - kPartHeadBytes, 'x');
  EXPECT_EQ(composite_key(Parts{longest})->size(), kMaxKeyBytes);
  EXPECT_FALSE(composite_key(Parts{longest + "x"}));
  EXPECT_FALSE(composite_key(Parts{longest, ""}));
}

TEST(CompositeKey, PartsComeBackAndOtherKeysHaveNone) {
  EXPECT_EQ(parts_of(*composite_key(Parts{"acme", "", "alice"})), (Parts{"acme", "", "alice"}));
  EXPECT_TRUE(parts_of("alice").empty());
  EXPECT_TRUE(parts_of("").empty());
  EXPECT_TRUE(parts_of(std::string("\0\5acme", 6)).empty());
  EXPECT_TRUE(parts_of(std::string("\0\4acmex", 7)).empty());
  EXPECT_TRUE(parts_of(std::string(2 * (kMaxKeyParts + 1), '\0')).empty());
}

TEST(CompositeKey, DifferentPartsNeverMeet) {
  std::mt19937_64 random(20260603);
  std::map<std::string, std::vector<std::string>> seen;
  for (int round = 0; round < 20'000; ++round) {
    std::vector<std::string> parts(1 + random() % 4);
    for (std::string& part : parts) {
      part.resize(random() % 4);
      for (char& c : part) c = static_cast<char>(random() % 3);
    }
    const auto key = composite_key(Parts(parts.begin(), parts.end()));
    ASSERT_TRUE(key);
    const auto [at, fresh] = seen.emplace(*key, parts);
    EXPECT_EQ(at->second, parts);
    const Parts back = parts_of(*key);
    EXPECT_TRUE(std::equal(back.begin(), back.end(), parts.begin(), parts.end()));
  }
}

}  // namespace
}  // namespace cutwater
