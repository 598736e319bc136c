// SPDX-License-Identifier: Apache-2.0
#include "config/tree.hpp"

#include <algorithm>
#include <exception>
#include <istream>
#include <streambuf>
#include <utility>

#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include "config/words.hpp"

namespace cutwater::config {
namespace {

Place place_of(const YAML::Mark& mark) {
  Place place{.source = Source::File, .line = 1, .column = 1, .name = {}};
  if (mark.line >= 0) place.line = static_cast<std::uint32_t>(mark.line) + 1;
  if (mark.column >= 0) place.column = static_cast<std::uint32_t>(mark.column) + 1;
  return place;
}

/// "!!str" for tag:yaml.org,2002:str.
std::string tag_name(const std::string& tag) {
  constexpr std::string_view kCore = "tag:yaml.org,2002:";
  return tag.starts_with(kCore) ? "!!" + tag.substr(kCore.size()) : tag;
}

/// Turns yaml-cpp's events into nodes. It never throws: after the first fault it lets the remaining
/// events pass, and yaml-cpp's own bound of its recursion (500) ends a text that only nests.
class Builder final : public YAML::EventHandler {
 public:
  Builder(Tree& tree, std::string_view text)
      : tree_(tree), text_(text), sizes_(tree.nodes.size()) {}

  const std::optional<Problem>& fault() const { return fault_; }
  void set_fault(Place place, std::string text) {
    if (!fault_) fault_ = Problem{std::move(place), {}, std::move(text)};
  }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ == 1) return;
    const auto at = std::min(text_.size(), static_cast<std::size_t>(std::max(mark.pos, 0)));
    set_fault(place_of(mark), text_.substr(at).starts_with("---")
                                  ? "a second document begins; one file holds one document"
                                  : "the text goes on behind its end; check brackets and quotes");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    add_leaf(Node::Kind::Null, mark, "", anchor);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_tag(mark, tag);
    add_leaf(Node::Kind::Scalar, mark, value, anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (fault_) return;
    if (anchor >= anchors_.size() || sizes_[anchors_[anchor]].nodes == 0) {
      set_fault(place_of(mark), "an alias inside its own anchor; write the value out");
      return;
    }
    attach(anchors_[anchor], place_of(mark));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(Node::Kind::List, mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(Node::Kind::Map, mark, tag, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Size {
    std::size_t nodes = 0;   ///< of the whole subtree; 0 while it is still open
    std::size_t depth = 0;
  };
  struct Open {
    NodeIndex node;
    std::optional<NodeIndex> key;   ///< of a map: the key that waits for its value
    Size size;
    bool compact = false;           ///< a map that is no level of its own
  };

  void refuse_tag(const YAML::Mark& mark, const std::string& tag) {
    if (fault_ || tag.empty() || tag == "?" || tag == "!") return;
    if (tree_.refused.size() > kMaxFindings) return;
    tree_.refused.push_back({place_of(mark), {}, "the tag " + in_quotes(tag_name(tag)) +
                                                 " is refused; write the value without it"});
  }

  NodeIndex add_node(Node::Kind kind, const YAML::Mark& mark, std::string text,
                     YAML::anchor_t anchor) {
    const NodeIndex index = tree_.add({.kind = kind, .place = place_of(mark),
                                       .text = std::move(text), .items = {}, .entries = {}});
    sizes_.push_back({});
    if (anchor != 0) {
      if (anchor >= anchors_.size()) anchors_.resize(anchor + 1);   // yaml-cpp counts them from 1
      anchors_[anchor] = index;
    }
    return index;
  }

  void add_leaf(Node::Kind kind, const YAML::Mark& mark, std::string text, YAML::anchor_t anchor) {
    if (fault_) return;
    const NodeIndex index = add_node(kind, mark, std::move(text), anchor);
    sizes_[index] = {.nodes = 1, .depth = 0};
    attach(index, place_of(mark));
  }

  void open(Node::Kind kind, const YAML::Mark& mark, const std::string& tag,
            YAML::anchor_t anchor) {
    if (fault_) return;
    refuse_tag(mark, tag);
    note_compact_map(place_of(mark));
    if (levels() >= kMaxDepth) return too_deep(place_of(mark));
    if (tree_.nodes.size() >= kMaxNodes) return too_many(place_of(mark));
    const NodeIndex index = add_node(kind, mark, "", anchor);
    open_.push_back({.node = index, .key = {}, .size = {1, 1}});
  }

  /// `[[a]: b]` has a map around its pair, and yaml-cpp opens one too where it only might follow
  /// (an unclosed bracket). Such a map begins where its first key begins, and is no level of its
  /// own.
  void note_compact_map(const Place& place) {
    if (open_.empty()) return;
    Open& parent = open_.back();
    const Node& node = tree_.at(parent.node);
    if (node.kind != Node::Kind::Map || parent.key || !node.entries.empty()) return;
    if (node.place != place || parent.compact) return;
    parent.compact = true;
    parent.size.depth = 0;
    ++compact_maps_;
  }

  std::size_t levels() const { return open_.size() - compact_maps_; }

  void close() {
    if (fault_ || open_.empty()) return;
    const Open done = open_.back();
    open_.pop_back();
    compact_maps_ -= done.compact ? 1 : 0;
    sizes_[done.node] = done.size;
    attach(done.node, tree_.at(done.node).place);
  }

  /// Hangs a finished node under the innermost open one and counts it there.
  void attach(NodeIndex index, const Place& place) {
    if (open_.empty()) {
      tree_.root = index;
      return;
    }
    const Size size = sizes_[index];
    if (levels() + size.depth > kMaxDepth) return too_deep(place);
    Open& parent = open_.back();
    parent.size.nodes += size.nodes;
    parent.size.depth = std::max(parent.size.depth, size.depth + (parent.compact ? 0 : 1));
    if (parent.size.nodes > kMaxNodes || ++attached_ > kMaxNodes) return too_many(place);
    Node& node = tree_.nodes[parent.node];
    if (node.kind == Node::Kind::List) {
      node.items.push_back(index);
    } else if (!parent.key) {
      parent.key = index;
      const Node& key = tree_.at(index);
      if (key.kind == Node::Kind::Scalar && key.text == "<<") {
        tree_.refused.push_back({place, {}, "merge keys are refused; write the keys out"});
      }
    } else {
      node.entries.push_back({.key = *parent.key, .value = index});
      parent.key.reset();
    }
  }

  void too_deep(const Place& place) {
    set_fault(place, "nested deeper than " + std::to_string(kMaxDepth));
  }
  void too_many(const Place& place) {
    set_fault(place, "more than " + std::to_string(kMaxNodes) +
                         " nodes, aliases counted each time; write less");
  }

  Tree& tree_;
  std::string_view text_;
  std::optional<Problem> fault_;
  std::vector<Open> open_;
  std::size_t compact_maps_ = 0;     // among open_
  std::vector<Size> sizes_;       // beside tree_.nodes
  std::vector<NodeIndex> anchors_;   // by yaml-cpp's number; 0, the node of an empty text, for none
  std::size_t attached_ = 0;         // bounds what open nodes, not yet summed up, can hold
  int documents_ = 0;
};

/// What yaml-cpp would guess about (UTF-16, NUL, broken UTF-8) is refused before it sees the text.
std::optional<Problem> encoding_fault(std::string_view text) {
  Place place{.source = Source::File, .line = 1, .column = 1, .name = {}};
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = utf8_length(text, i);
    if (length == 0) return Problem{place, {}, "not UTF-8; save the file as UTF-8"};
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte < 0x20 && byte != '\n' && byte != '\r' && byte != '\t') || byte == 0x7f) {
      return Problem{place, {}, "a control character; remove it"};
    }
    place.column += static_cast<std::uint32_t>(length);
    if (byte == '\n') {
      ++place.line;
      place.column = 1;
    }
    i += length;
  }
  return std::nullopt;
}

/// A stream over bytes somebody else owns.
class ViewBuffer final : public std::streambuf {
 public:
  explicit ViewBuffer(std::string_view text) {
    char* begin = const_cast<char*>(text.data());   // a get area is never written through
    setg(begin, begin, begin + text.size());
  }
};

}  // namespace

NodeIndex Tree::add(Node node) {
  nodes.push_back(std::move(node));
  return static_cast<NodeIndex>(nodes.size() - 1);
}

ParsedTree parse_tree(std::string_view text) {
  ParsedTree parsed;
  if (text.size() > kMaxTextBytes) {
    parsed.fault = Problem{{.source = Source::File, .line = 1, .column = 1, .name = {}}, {},
                           "the text has " + std::to_string(text.size()) +
                               " bytes; the maximum is " + std::to_string(kMaxTextBytes)};
    return parsed;
  }
  parsed.fault = encoding_fault(text);
  if (parsed.fault) return parsed;
  parsed.tree.root = parsed.tree.add({});
  Builder builder(parsed.tree, text);
  ViewBuffer buffer(text);
  std::istream stream(&buffer);
  try {
    YAML::Parser parser(stream);
    while (!builder.fault() && parser.HandleNextDocument(builder)) {
    }
  } catch (const YAML::DeepRecursion& error) {
    builder.set_fault(place_of(error.mark), "nested deeper than " + std::to_string(kMaxDepth));
  } catch (const YAML::Exception& error) {
    builder.set_fault(place_of(error.mark), "not YAML: " + error.msg);
  } catch (const std::exception& error) {
    builder.set_fault(place_of(YAML::Mark()), std::string("not YAML: ") + error.what());
  }
  parsed.fault = builder.fault();
  return parsed;
}

}  // namespace cutwater::config
