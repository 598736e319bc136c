// SPDX-License-Identifier: Apache-2.0
#include "config/words.hpp"

#include <gtest/gtest.h>

#include <array>

namespace cutwater::config {
namespace {

TEST(Words, OneSpellingForTheThreeStyles) {
  EXPECT_EQ(kebab("max-wait"), "max-wait");
  EXPECT_EQ(kebab("max_wait"), "max-wait");
  EXPECT_EQ(kebab("maxWait"), "max-wait");
  EXPECT_EQ(kebab("initialAfterDamage"), "initial-after-damage");
}

TEST(Words, MixedAndForeignStylesStayUnknown) {
  for (const char* word :
       {"MaxWait", "MAX_WAIT", "max_wait-ing", "maxWait_ing", "maxWAit", "", "Rate"}) {
    EXPECT_EQ(kebab(word), word);
  }
}

TEST(Words, EditDistanceCountsUpToThree) {
  EXPECT_EQ(edit_distance("burst", "burst"), 0U);
  EXPECT_EQ(edit_distance("brust", "burst"), 2U);
  EXPECT_EQ(edit_distance("BURST", "burst"), 0U);
  EXPECT_EQ(edit_distance("bur", "burst"), 2U);
  EXPECT_EQ(edit_distance("burst", "bu"), 3U);
  EXPECT_EQ(edit_distance("burst", "b"), 4U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
  EXPECT_EQ(edit_distance("abcdefgh", "zyxwvuts"), 4U);
}

TEST(Words, NearestTakesTheSmallestDistanceWithinThree) {
  constexpr std::array<std::string_view, 3> kNames = {"rate", "max-wait", "max-waiting"};

  EXPECT_EQ(nearest("max-wiat", kNames), "max-wait");
  EXPECT_EQ(nearest("max-waitin", kNames), "max-waiting");
  EXPECT_EQ(nearest("rat", kNames), "rate");
  EXPECT_EQ(nearest("windows", kNames), "");
  EXPECT_EQ(nearest("xy", kNames), "");
}

TEST(Words, QuotedCutsLongTextAndHidesControlCharacters) {
  EXPECT_EQ(in_quotes("a\nb"), "\"a?b\"");
  EXPECT_EQ(in_quotes(std::string(61, 'x')), "\"" + std::string(60, 'x') + "...\"");
  // The 60th byte falls into a sequence of two: it is left out whole.
  EXPECT_EQ(in_quotes(std::string(59, 'x') + "\xc3\xa4" + "y"),
            "\"" + std::string(59, 'x') + "...\"");
}

TEST(Words, NamesOfLettersDigitsAndFourMarks) {
  for (const char* name : {"a", "api-per-user", "A.b_c:d-1", "9"}) {
    EXPECT_TRUE(parse_name(name).ok()) << name;
  }
  EXPECT_TRUE(parse_name(std::string(63, 'n')).ok());
  for (const char* name : {"", "-a", ".a", "a b", "a/b", "a*", "\xc3\xa4"}) {
    EXPECT_FALSE(parse_name(name).ok()) << name;
  }
  EXPECT_FALSE(parse_name(std::string(64, 'n')).ok());
  EXPECT_EQ(parse_name("a b").error().text(),
            "\"a b\" is not a name; begin with a letter or digit, go on with letters, "
            "digits and . _ : -, 63 characters at most");
}

TEST(Words, BooleansAreTrueAndFalseOnly) {
  EXPECT_TRUE(*parse_bool("true"));
  EXPECT_FALSE(*parse_bool("false"));
  for (const char* word : {"yes", "no", "on", "off", "1", "0", "True", "TRUE", ""}) {
    EXPECT_FALSE(parse_bool(word).ok()) << word;
  }
  EXPECT_EQ(parse_bool("yes").error().text(),
            "\"yes\" is neither true nor false; write true or false");
}

TEST(Words, WhatIfHasThreeWordsAndWarnsOfThoseOfBreakers) {
  EXPECT_EQ(*parse_what_if("share"), WhatIf::Share);
  EXPECT_EQ(*parse_what_if("deny"), WhatIf::Deny);
  EXPECT_EQ(*parse_what_if("allow"), WhatIf::Allow);
  for (const char* word : {"open", "closed", "fail"}) {
    EXPECT_EQ(parse_what_if(word).error().text(),
              "\"" + std::string(word) +
                  "\": for a breaker 'open' means refuse; write allow or deny");
  }
  EXPECT_EQ(parse_what_if("dney").error().text(),
            "\"dney\" is not known here; did you mean 'deny'?");
  EXPECT_EQ(parse_what_if("x").error().text(),
            "\"x\" is not known here; write share, deny or allow");
  EXPECT_EQ(parse_what_if("everything").error().text(),
            "\"everything\" is not known here; write share, deny or allow");
}

}  // namespace
}  // namespace cutwater::config
