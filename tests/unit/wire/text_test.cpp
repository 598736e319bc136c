// SPDX-License-Identifier: Apache-2.0
#include "wire/text.hpp"

#include <gtest/gtest.h>

namespace cutwater::wire {
namespace {

TEST(Text, KnowsWellFormedUtf8) {
  EXPECT_TRUE(is_utf8(""));
  EXPECT_TRUE(is_utf8("größe € 𝄞"));
  EXPECT_TRUE(is_utf8(std::string("a\0b", 3)));
  EXPECT_TRUE(is_utf8("\xf4\x8f\xbf\xbf"));
}

TEST(Text, RefusesWhatUtf8Forbids) {
  EXPECT_FALSE(is_utf8("\x80"));              // continuation first
  EXPECT_FALSE(is_utf8("\xc0\xaf"));          // overlong
  EXPECT_FALSE(is_utf8("\xe0\x80\xaf"));      // overlong
  EXPECT_FALSE(is_utf8("\xf0\x8f\xbf\xbf"));  // overlong
  EXPECT_FALSE(is_utf8("\xed\xa0\x80"));      // surrogate
  EXPECT_FALSE(is_utf8("\xf4\x90\x80\x80"));  // above U+10FFFF
  EXPECT_FALSE(is_utf8("\xe2\x82"));          // cut
  EXPECT_FALSE(is_utf8("\xff"));
}

TEST(Text, FitsByReplacingAndByCuttingAtACharacter) {
  EXPECT_EQ(fit_text("a\xff b\xe2\x82", 10), "a? b??");
  EXPECT_EQ(fit_text("ab€", 5), "ab€");
  EXPECT_EQ(fit_text("ab€", 4), "ab");
  EXPECT_EQ(fit_text("abc", 0), "");
}

}  // namespace
}  // namespace cutwater::wire
