// SPDX-License-Identifier: Apache-2.0
#include "ctl/text.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include <cutwater/units.hpp>

namespace cutwater::ctl {
namespace {

TEST(Escape, LeavesPrintableTextAlone) {
  EXPECT_EQ(escape("198.51.100.7"), "198.51.100.7");
  EXPECT_EQ(escape("a b ~ %s"), "a b ~ %s");
}

TEST(Escape, ShowsTheEmptyKey) { EXPECT_EQ(escape(""), "\"\""); }

// covers: C037
// Nothing of a key reaches the terminal as it is, and keys that differ are printed so.
TEST(Escape, DisarmsHostileKeysAndKeepsThemApart) {
  using namespace std::string_literals;
  const std::vector<std::string> keys = {"",
                                         "\0"s,
                                         "\0b"s,
                                         "\0c"s,
                                         "\r\n",
                                         std::string(16, '\xff'),
                                         "%n%s%x",
                                         "\x1b[2J",
                                         "e\xcc\x81",
                                         "\xc3\xa9",
                                         "\\x00",
                                         "\\",
                                         "\xe2\x80\xae"
                                         "live",
                                         "\x7f",
                                         "\t"};
  std::set<std::string> printed;
  for (const std::string& key : keys) {
    const std::string text = escape(key);
    for (const char c : text) {
      EXPECT_GE(static_cast<unsigned char>(c), 0x20) << text;
      EXPECT_LT(static_cast<unsigned char>(c), 0x7f) << text;
    }
    EXPECT_TRUE(printed.insert(text).second) << text;
  }
}

TEST(Escape, KeepsTheLinesOfALongerText) {
  EXPECT_EQ(escape_lines("a.yaml:1:2: x\nb\x1b\n"), "a.yaml:1:2: x\nb\\x1b\n");
}

TEST(EscapeShort, CutsAndSaysHowLongItWas) {
  EXPECT_EQ(escape_short("abcd", 4), "abcd");
  EXPECT_EQ(escape_short("abcde", 4), "abcd... (5 bytes)");
  EXPECT_EQ(escape_short(std::string(4096, 'k'), 8), "kkkkkkkk... (4096 bytes)");
}

TEST(KeyArgument, TakesBytesAndHex) {
  using namespace std::string_literals;
  EXPECT_EQ(key_argument("alice").value(), "alice");
  EXPECT_EQ(key_argument("").value(), "");
  EXPECT_EQ(key_argument("hex:616c").value(), "al");
  EXPECT_EQ(key_argument("hex:00FF").value(), "\0\xff"s);
  EXPECT_EQ(key_argument("hex:").value(), "");
  EXPECT_EQ(key_argument("exact:hex:616c").value(), "hex:616c");
}

TEST(KeyArgument, TakesBackWhatIsShown) {
  using namespace std::string_literals;
  EXPECT_EQ(key_argument("[acme, alice]").value(), "\0\4acme\0\5alice"s);
  EXPECT_EQ(key_argument("[::1]").value(), "[::1]") << "an address is no list";
  EXPECT_EQ(key_argument("[a,b]").value(), "[a,b]");
  for (const std::string& key :
       {"alice"s, "a*b"s, "hex:61"s, "exact:a"s, "[::1]"s, "[a, b]"s, "back\\slash"s, "\0b"s,
        "gr\xc3\xbc"s, "\0\4acme"s, "\0\4acme\0\5alice"s, "\0\1a\0\3b,c"s, "\0\1a\0\0"s}) {
    EXPECT_EQ(key_argument(key_shown(key)).value(), key) << key_shown(key);
  }
}

TEST(Counted, OneIsNoPlural) {
  EXPECT_EQ(counted(1, "call"), "1 call");
  EXPECT_EQ(counted(0, "call"), "0 calls");
  EXPECT_EQ(counted(1, "row belongs", "rows belong"), "1 row belongs");
}

TEST(KeyArgument, RefusesWhatIsNoHexAndWhatIsTooLong) {
  EXPECT_EQ(key_argument("hex:6").error().code(), Errc::InvalidArgument);
  EXPECT_EQ(key_argument("hex:6g").error().code(), Errc::InvalidArgument);
  EXPECT_TRUE(key_argument(std::string(kMaxKeyBytes, 'k')).ok());
  EXPECT_EQ(key_argument(std::string(kMaxKeyBytes + 1, 'k')).error().code(), Errc::KeyTooLong);
}

// covers: C088
// A wait is never shown shorter than it is.
TEST(DurationText, RoundsUp) {
  EXPECT_EQ(duration_text(0), "0");
  EXPECT_EQ(duration_text(1), "1ns");
  EXPECT_EQ(duration_text(999), "999ns");
  EXPECT_EQ(duration_text(1'000), "1us");
  EXPECT_EQ(duration_text(1'001), "1.1us");
  EXPECT_EQ(duration_text(1'500'000), "1.5ms");
  EXPECT_EQ(duration_text(400'000'000), "400ms");
  EXPECT_EQ(duration_text(4'600'000'000), "4.6s");
  EXPECT_EQ(duration_text(4'600'000'001), "4.7s");
  EXPECT_EQ(duration_text(125'000'000'000), "2m5s");
  EXPECT_EQ(duration_text(120'000'000'000), "2m");
  EXPECT_EQ(duration_text(120'000'000'001), "2m1s");
  EXPECT_EQ(duration_text(11'400'000'000'000), "3h10m");
  EXPECT_EQ(duration_text(86'400'000'000'000ULL * 4), "4d");
  EXPECT_EQ(duration_text(~std::uint64_t{0}), "never");
  EXPECT_EQ(duration_text(~std::uint64_t{0} - 1), "213504d");
}

TEST(RateText, NamesTheUsualPeriods) {
  EXPECT_EQ(rate_text(10, 1'000'000'000), "10/s");
  EXPECT_EQ(rate_text(100, 60'000'000'000), "100/m");
  EXPECT_EQ(rate_text(1000, 900'000'000'000), "1000/15m");
  EXPECT_EQ(rate_text(1, 86'400'000'000'000), "1/d");
  EXPECT_EQ(rate_text(3, 1'500), "3/1500ns");
}

TEST(Texts, OfSharesSizesAndHashes) {
  EXPECT_EQ(permille_text(0), "0.0 %");
  EXPECT_EQ(permille_text(1000), "100.0 %");
  EXPECT_EQ(size_text(512), "512 B");
  EXPECT_EQ(size_text(8u << 20), "8.0 MiB");
  EXPECT_EQ(hash_text(0xabc), "0000000000000abc");
}

TEST(Text, LongLinesAreBrokenAtSpacesAndIndentedAsTheirText) {
  EXPECT_EQ(wrap_text("as it is, however long it may be", 0), "as it is, however long it may be");
  EXPECT_EQ(wrap_text("  a sentence that is too long\nshort\n", 16),
            "  a sentence\n    that is too\n    long\nshort\n");
  EXPECT_EQ(wrap_text("note   what it says of that", 16), "note   what it\n       says of\n"
                                                         "       that");
  EXPECT_EQ(wrap_text("a-key-of-some-length   its value", 24),
            "a-key-of-some-length\n  its value")
      << "a gap that far to the right is no column";
  EXPECT_EQ(wrap_text("oneverylongwordalone and more", 8), "oneverylongwordalone\n  and\n  more");
  EXPECT_EQ(wrap_text("\x1b[31mred words\x1b[0m here", 9), "\x1b[31mred words\x1b[0m\n  here");
  EXPECT_EQ(wrap_text("", 8), "");
}

TEST(Text, ADurationThatIsRoundedUpToTheNextUnitIsSaidInIt) {
  EXPECT_EQ(duration_text(3'599'999'999'999), "1h");
  EXPECT_EQ(duration_text(3'598'999'999'999), "59m59s");
  EXPECT_EQ(duration_text(86'399'000'000'000), "1d");
  EXPECT_EQ(duration_text(86'340'000'000'000), "23h59m");
}

}  // namespace
}  // namespace cutwater::ctl
