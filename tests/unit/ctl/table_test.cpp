// SPDX-License-Identifier: Apache-2.0
#include "ctl/table.hpp"

#include <gtest/gtest.h>

namespace cutwater::ctl {
namespace {

TEST(Table, AlignsColumnsWithoutBlanksAtTheEnd) {
  Table table({{"NAME"}, {"COUNT", Table::Align::Right}, {"WHY"}});

  table.add({"a", "10", ""});
  table.add({"longer", "2", "x"});
  table.add({"few"});

  EXPECT_EQ(table.text(false),
            "NAME    COUNT  WHY\n"
            "a          10\n"
            "longer      2  x\n"
            "few\n");
}

TEST(Table, HasAHeadingWithoutRows) {
  EXPECT_EQ(Table({{"NAME"}, {"X", Table::Align::Right}}).text(false), "NAME  X\n");
}

TEST(Table, ColoursOnlyWhenAsked) {
  Table table({{"N"}});
  table.add({{"bad", Tone::Bad}});

  EXPECT_EQ(table.text(false), "N\nbad\n");
  EXPECT_EQ(table.text(true), "\x1b[1mN\x1b[0m\n\x1b[31mbad\x1b[0m\n");
}

TEST(Table, OnANarrowTerminalLeavesOutWhatMattersLeast) {
  Table table({{"NAME"},
               {"STATE"},
               {"SINCE", Table::Align::Right, 1},
               {"EPOCH", Table::Align::Right, 2}});
  table.add({"fraud", "CLOSED", "12s", "7"});
  const std::string all =
      "NAME   STATE   SINCE  EPOCH\n"
      "fraud  CLOSED    12s      7\n";

  EXPECT_EQ(table.text(false, 27), all);
  EXPECT_EQ(table.text(false, 26),
            "NAME   STATE   SINCE\n"
            "fraud  CLOSED    12s\n"
            "(too narrow for EPOCH; -o json has all)\n");
  EXPECT_EQ(table.text(false, 1),
            "NAME   STATE\n"
            "fraud  CLOSED\n"
            "(too narrow for EPOCH, SINCE; -o json has all)\n")
      << "what matters is always there";
  EXPECT_EQ(table.text(false, 0), all) << "no terminal";
}

TEST(Table, DropsCellsBeyondItsColumns) {
  Table table({{"N"}});
  table.add({"1", "2"});

  EXPECT_EQ(table.text(false), "N\n1\n");
}

}  // namespace
}  // namespace cutwater::ctl
