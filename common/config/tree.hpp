// SPDX-License-Identifier: Apache-2.0
// A YAML text as a tree of plain nodes, each with its place. This is the only door to yaml-cpp, and
// it is narrow: one document, UTF-8 without control characters, depth kMaxDepth, kMaxNodes nodes
// where an alias counts as often as it is used (so no small text stands for a huge one), no tags,
// no merge keys, no circles. Aliases share the node of their anchor; nothing is ever copied for
// them. Errors: a text that cannot be read is one Problem; tags and merge keys are collected, since
// everything behind them can still be read. Thread safety: values; parse_tree() keeps no state.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/problem.hpp"

namespace cutwater::config {

using NodeIndex = std::uint32_t;

struct Entry {
  NodeIndex key = 0;
  NodeIndex value = 0;
};

struct Node {
  enum class Kind : std::uint8_t { Null, Scalar, List, Map };

  Kind kind = Kind::Null;
  Place place;                   ///< for a Null: of whatever follows it; use its key's instead
  std::string text;              ///< Scalar only
  std::vector<NodeIndex> items;  ///< List only
  std::vector<Entry> entries;    ///< Map only, in the order of the text, duplicates included
};

struct Tree {
  std::vector<Node> nodes;
  NodeIndex root = 0;             ///< a Null for an empty text
  std::vector<Problem> refused;     ///< tags and merge keys

  const Node& at(NodeIndex index) const { return nodes[index]; }
  NodeIndex add(Node node);
};

struct ParsedTree {
  Tree tree;
  std::optional<Problem> fault;     ///< set: the tree is not to be used
};

ParsedTree parse_tree(std::string_view text);

}  // namespace cutwater::config
