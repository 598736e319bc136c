// SPDX-License-Identifier: Apache-2.0
// The bounds of what is read at all.
#include "config/tree.hpp"

#include "loading.hpp"

namespace cutwater::config {
namespace {

std::string fault_of(std::string_view text) {
  const ParsedTree parsed = parse_tree(text);
  EXPECT_TRUE(parsed.fault.has_value());
  return parsed.fault ? where_text(parsed.fault->place, "f") + ": " + parsed.fault->text : "";
}

TEST(Tree, AnEmptyTextHasAnEmptyRoot) {
  for (const char* text :
       {"", "\n\n", "# only a remark\n", "---\n", "---\n...\n", "\xef\xbb\xbf"}) {
    const ParsedTree parsed = parse_tree(text);
    ASSERT_FALSE(parsed.fault) << text << parsed.fault->text;
    EXPECT_EQ(parsed.tree.at(parsed.tree.root).kind, Node::Kind::Null) << text;
    EXPECT_TRUE(load(text).ok()) << text;
  }
}

TEST(Tree, EveryNodeKnowsItsPlace) {
  const ParsedTree parsed = parse_tree("a:\n  b: [x, 'y']\n");
  ASSERT_FALSE(parsed.fault);
  const Node& a = parsed.tree.at(parsed.tree.at(parsed.tree.root).entries.at(0).value);
  const Node& key = parsed.tree.at(a.entries.at(0).key);
  const Node& list = parsed.tree.at(a.entries.at(0).value);
  EXPECT_EQ(where_text(key.place, "f"), "f:2:3");
  EXPECT_EQ(where_text(parsed.tree.at(list.items.at(1)).place, "f"), "f:2:10");
  EXPECT_EQ(parsed.tree.at(list.items.at(1)).text, "y");
}

TEST(Tree, DepthThirtyTwoIsReadAndThirtyThreeIsNot) {
  const auto nested = [](std::size_t depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_FALSE(parse_tree(nested(kMaxDepth)).fault);
  EXPECT_EQ(fault_of(nested(kMaxDepth + 1)), "f:1:33: nested deeper than 32");
}

TEST(Tree, NestingBombsEndEarly) {
  for (const char* part :
       {"[", "{", "{a: ", "- ", "? ", "[{", "a: [", "\"", "- - - - [", "&a [", "!x ["}) {
    std::string bomb;
    while (bomb.size() + 16 < 20'000) bomb += part;
    EXPECT_TRUE(parse_tree(bomb).fault || !load(bomb).ok()) << part;
  }
  EXPECT_EQ(fault_of(std::string(20'000, '[')), "f:1:33: nested deeper than 32");
}

TEST(Tree, AnAliasCountsItsDepth) {
  std::string text = "deep: &d " + std::string(20, '[') + std::string(20, ']') + "\n";
  text += "far: " + std::string(11, '[') + "*d" + std::string(11, ']') + "\n";
  EXPECT_FALSE(parse_tree(text).fault);                               // 1 + 11 + 20 = 32
  text += "further: " + std::string(12, '[') + "*d" + std::string(12, ']') + "\n";
  EXPECT_EQ(fault_of(text), "f:3:22: nested deeper than 32");
}

TEST(Tree, NodesAreCountedAsOftenAsTheyAreUsed) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int n = 0; n < 10; ++n) bomb += (n ? ", " : "") + before;
    bomb += "]\n";
  }
  EXPECT_EQ(fault_of(bomb).substr(fault_of(bomb).find(": ")),
            ": more than 100000 nodes, aliases counted each time; write less");
}

TEST(Tree, AHundredThousandNodesAndNoMore) {
  const auto list = [](std::size_t items) {
    std::string text = "[";
    for (std::size_t i = 0; i < items; ++i) text += "a,";
    return text + "]";
  };
  EXPECT_FALSE(parse_tree(list(kMaxNodes - 1)).fault);                // and the list itself
  EXPECT_NE(fault_of(list(kMaxNodes)).find("more than 100000 nodes"), std::string::npos);
  // Spread over lists that are still open.
  std::string spread;
  for (int i = 0; i < 5; ++i) spread += list(kMaxNodes / 4).substr(0, kMaxNodes / 2 + 1);
  EXPECT_NE(fault_of(spread).find("more than 100000 nodes"), std::string::npos);
}

TEST(Tree, AnAliasInsideItsOwnAnchorIsRefused) {
  EXPECT_EQ(fault_of("a: &x {b: *x}\n"),
            "f:1:11: an alias inside its own anchor; write the value out");
  EXPECT_NE(fault_of("a: *x\n").find("not YAML"), std::string::npos);
}

TEST(Tree, OneDocument) {
  EXPECT_EQ(fault_of("log: {}\n---\nlog: {}\n"),
            "f:2:1: a second document begins; one file holds one document");
  EXPECT_EQ(fault_of("log: {}\n...\nlog: {}\n"),
            "f:3:1: the text goes on behind its end; check brackets and quotes");
  EXPECT_EQ(fault_of("{ log: {} } }\n").substr(0, 7), "f:1:13:");
  EXPECT_FALSE(parse_tree("%YAML 1.2\n---\nlog: {}\n...\n").fault);
}

TEST(Tree, OnlyUtf8WithoutControlCharacters) {
  EXPECT_FALSE(parse_tree("# \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80\n").fault);
  EXPECT_EQ(fault_of("a: b\n\xff"), "f:2:1: not UTF-8; save the file as UTF-8");
  for (const std::string& text : {std::string("\xc3"), std::string("\xc0\x80"), std::string("\x80"),
                                  std::string("\xed\xa0\x80"), std::string("\xf4\x90\x80\x80"),
                                  std::string("\xe0\x80\x80"), std::string("\xff\xfe" "a\0", 4)}) {
    EXPECT_NE(fault_of(text).find("not UTF-8"), std::string::npos);
  }
  EXPECT_EQ(fault_of(std::string("a\0b", 3)), "f:1:2: a control character; remove it");
  EXPECT_EQ(fault_of("a: \x1b[0m"), "f:1:4: a control character; remove it");
}

TEST(Tree, AMebibyteAndNoMore) {
  std::string text = "#" + std::string(kMaxTextBytes - 1, 'x');
  EXPECT_FALSE(parse_tree(text).fault);
  text += 'x';
  EXPECT_EQ(fault_of(text), "f:1:1: the text has 1048577 bytes; the maximum is 1048576");
}

TEST(Tree, TagsAndMergeKeysAreRefusedWithTheRest) {
  const std::string text = R"(log: { level: !!str debug, queue: 1 }
capacity: &c { keys: 4096 }
instance: !mine { name: x, <<: *c }
)";
  EXPECT_EQ(errors_of(text), (Lines{
      "cutwater.yaml:1:15: the tag \"!!str\" is refused; write the value without it",
      "cutwater.yaml:1:35: log.queue: 1 is below the minimum of 256",
      "cutwater.yaml:3:11: the tag \"!mine\" is refused; write the value without it",
      "cutwater.yaml:3:28: merge keys are refused; write the keys out",
  }));
}

TEST(Tree, ATextThatIsNoYamlIsOneErrorAtItsPlace) {
  EXPECT_EQ(errors_of("limits:\n  a: [1, 2\n").size(), 1U);
  EXPECT_EQ(errors_of("a: 1\n b: 2\n"), Lines{"cutwater.yaml:2:3: not YAML: illegal map value"});
  EXPECT_EQ(errors_of("just words\n").size(), 1U);
  EXPECT_EQ(
      errors_of("- a\n- b\n"),
      Lines{"cutwater.yaml:1:1: a block is wanted here; write instance, listen, access, capacity, "
            "limits, breakers, bulkheads or log with values"});
  EXPECT_EQ(errors_of("? [a]\n: b\n"),
            Lines{"cutwater.yaml:1:3: a key must be one word; write NAME: VALUE"});
}

}  // namespace
}  // namespace cutwater::config
