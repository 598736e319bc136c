// SPDX-License-Identifier: Apache-2.0
#include "config/key_text.hpp"

#include <gtest/gtest.h>

#include <random>

#include "base/composite_key.hpp"
#include "rule/limit_settings.hpp"

namespace cutwater::config {
namespace {

KeyText key(std::string_view text) {
  const auto parsed = parse_key(text);
  EXPECT_TRUE(parsed) << text;
  return parsed ? *parsed : KeyText{};
}

std::string wrong(std::string_view text) {
  const auto parsed = parse_key(text);
  return parsed ? "accepted" : parsed.error().text();
}

TEST(KeyText, IsTheBytesOfTheText) {
  EXPECT_EQ(key("alice"), (KeyText{"alice", false}));
  EXPECT_EQ(key("10.0.0.1 /x"), (KeyText{"10.0.0.1 /x", false}));
  EXPECT_EQ(key("a\nb"), (KeyText{"a\nb", false}));
}

TEST(KeyText, HexAndExactAndPatterns) {
  EXPECT_EQ(key("hex:616C00ff"), (KeyText{std::string("al\0\xff", 4), false}));
  EXPECT_EQ(key("exact:partner:*"), (KeyText{"partner:*", false}));
  EXPECT_EQ(key("exact:hex:61"), (KeyText{"hex:61", false}));
  EXPECT_EQ(key("exact:exact:"), (KeyText{"exact:", false}));
  EXPECT_EQ(key("partner:*"), (KeyText{"partner:*", true}));
  EXPECT_EQ(key("*.example.org"), (KeyText{"*.example.org", true}));
}

TEST(KeyText, RefusalsSayWhatToWrite) {
  EXPECT_EQ(wrong("hex:6"),
            "\"hex:6\" is no key in hex; write two digits for each byte, or exact: in front of a "
            "key that begins with hex:");
  EXPECT_NE(wrong("hex:"), "accepted");
  EXPECT_NE(wrong("hex:zz"), "accepted");
  EXPECT_EQ(wrong("a*b*"), "\"a*b*\" has 2 stars; write one, or exact: in front of a key that "
                           "contains them");
  EXPECT_EQ(wrong("*"), "\"*\" is every key; write its rate at the limit itself, or \"exact:*\" "
                        "for the key *");
  EXPECT_EQ(wrong(""), "an empty key; write at least one byte");
  EXPECT_EQ(wrong("exact:"), "an empty key; write at least one byte");
}

TEST(KeyText, HasBounds) {
  EXPECT_EQ(key(std::string(kMaxKeyBytes, 'k')).bytes.size(), kMaxKeyBytes);
  EXPECT_EQ(wrong(std::string(kMaxKeyBytes + 1, 'k')),
            "a key of 4097 bytes is above the maximum of 4096");
  const std::string longest = std::string(rule::kMaxPatternLength - 1, 'p') + "*";
  EXPECT_TRUE(key(longest).pattern);
  EXPECT_EQ(wrong("p" + longest), "a pattern of " + std::to_string(longest.size() + 1) +
                                      " bytes is above the maximum of " +
                                      std::to_string(rule::kMaxPatternLength));
}

TEST(KeyText, AListIsTheKeyOfItsParts) {
  const auto list = parse_key(std::vector<std::string>{"acme", "alice"});
  ASSERT_TRUE(list);
  EXPECT_EQ(list->bytes, std::string("\0\4acme\0\5alice", 13));
  EXPECT_EQ(parse_key(std::vector<std::string>{"hex:00", "exact:*", ""})->bytes,
            std::string("\0\1\0\0\1*\0\0", 8));
  EXPECT_EQ(parse_key(std::vector<std::string>{"a", "b*"}).error().text(),
            "\"b*\" is a pattern, which cannot be a part of a key; write exact: in front of a part "
            "that contains *");
  EXPECT_EQ(parse_key(std::vector<std::string>{}).error().text(),
            "a key has 1..16 parts and at most 4096 bytes; write fewer or shorter ones");
  EXPECT_FALSE(parse_key(std::vector<std::string>(kMaxKeyParts + 1, "a")));
}

TEST(KeyText, HasOneCanonicalSpelling) {
  EXPECT_EQ(format_key(key("alice")), "alice");
  EXPECT_EQ(format_key(key("hex:616c")), "al");
  EXPECT_EQ(format_key(key("exact:al")), "al");
  EXPECT_EQ(format_key(key("exact:a*")), "exact:a*");
  EXPECT_EQ(format_key(key("a*")), "a*");
  EXPECT_EQ(format_key(key("hex:00FF")), "hex:00ff");
  EXPECT_EQ(format_key(key("hex:c3")), "hex:c3");
  EXPECT_EQ(format_key(key("gr\xc3\xbc\xc3\x9f")), "gr\xc3\xbc\xc3\x9f");
  EXPECT_EQ(format_key(*parse_key(std::vector<std::string>{"acme", "alice"})), "[acme, alice]");
  EXPECT_EQ(format_key(*parse_key(std::vector<std::string>{"a,b"})), "hex:0003612c62");
}

TEST(KeyText, TheCanonicalSpellingIsReadBack) {
  std::mt19937_64 random(20260604);
  for (int round = 0; round < 20'000; ++round) {
    KeyText one;
    const std::string alphabet("ab*:hexct[],\0\x7f\xc3\xa4 ", 18);
    one.bytes.resize(1 + random() % 9);
    for (char& c : one.bytes) c = alphabet[random() % alphabet.size()];
    const std::string text = format_key(one);
    if (text.starts_with('[')) {
      EXPECT_FALSE(parts_of(one.bytes).empty());
    } else {
      EXPECT_EQ(key(text), one) << text;
    }
  }
}

}  // namespace
}  // namespace cutwater::config
