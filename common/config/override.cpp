// SPDX-License-Identifier: Apache-2.0
#include "config/override.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "config/reader.hpp"
#include "config/schema.hpp"
#include "config/words.hpp"

namespace cutwater::config {
namespace {

constexpr std::string_view kLevels = "__";
constexpr std::string_view kLimits = "limits";

std::string variable_of(std::string_view block, std::string_view name) {
  std::string out(kVariablePrefix);
  for (const std::string_view path : {block, name}) {
    if (out.size() > kVariablePrefix.size()) out += kLevels;
    for (const char c : path) out += c == '.' ? std::string(kLevels) : folded({&c, 1});
  }
  return out;
}

/// A key and the map levels that lead to it, outermost first.
struct Aim {
  const Key* key = nullptr;
  std::vector<std::string> levels;
};

class Overrider {
 public:
  Overrider(Tree& tree, std::vector<Problem>& errors) : tree_(tree), errors_(errors) {
    for (const Entry& entry : tree_.at(tree_.root).entries) {
      if (kebab(tree_.at(entry.key).text) != kLimits) continue;
      for (const Entry& limit : tree_.at(entry.value).entries) {
        const std::string& name = tree_.at(limit.key).text;
        limits_.emplace(name, name);
        folded_.emplace(folded(name), name);
      }
    }
  }

  void environment(const std::string& variable, const std::string& value) {
    const Place place{.source = Source::Environment, .line = 0, .column = 0, .name = variable};
    set(place, aim_of_variable(place, variable), value);
  }

  void setting(const std::string& path, const std::string& value) {
    const Place place{.source = Source::CommandLine, .line = 0, .column = 0, .name = path};
    set(place, aim_of_path(place, path), value);
  }

 private:
  void fail(const Place& place, std::string text) {
    errors_.push_back({place, {}, std::move(text)});
  }

  Aim static_aim(const Key& key) {
    Aim aim{.key = &key, .levels = {}};
    std::string_view block = key.block;
    while (!block.empty()) {
      const std::size_t end = std::min(block.find('.'), block.size());
      aim.levels.emplace_back(block.substr(0, end));
      block.remove_prefix(std::min(end + 1, block.size()));
    }
    return aim;
  }

  Aim aim_of_variable(const Place& place, std::string_view variable) {
    std::vector<std::string> names(kOtherVariables.begin(), kOtherVariables.end());
    for (const Key& key : schema()) {
      if (key.block == kLimitBlock) continue;
      names.push_back(variable_of(key.block, key.name));
      if (names.back() == variable) return static_aim(key);
    }
    constexpr std::string_view kLimitPrefix = "CUTWATER_LIMITS__";
    if (variable.starts_with(kLimitPrefix)) {
      const std::string_view rest = variable.substr(kLimitPrefix.size());
      std::string limit(rest.substr(0, rest.rfind(kLevels)));
      for (const Key& key : keys_of(kLimitBlock)) {
        const std::string tail = std::string(kLevels) + folded(key.name);
        names.push_back(std::string(kLimitPrefix) + limit + tail);
        if (rest.ends_with(tail) && rest.size() > tail.size()) {
          return limit_aim(place, key, rest.substr(0, rest.size() - tail.size()), folded_);
        }
      }
    }
    return unknown(place, variable, names, "; take it out of the environment");
  }

  Aim aim_of_path(const Place& place, std::string_view path) {
    std::vector<std::string> names;
    const std::size_t dot = path.rfind('.');
    const std::string name = kebab(path.substr(dot == std::string_view::npos ? 0 : dot + 1));
    const std::string_view block = dot == std::string_view::npos ? "" : path.substr(0, dot);
    const std::string limit_prefix = std::string(kLimits) + ".";
    for (const Key& key : schema()) {
      if (key.block != kLimitBlock) {
        names.push_back(std::string(key.block) + "." + std::string(key.name));
        if (key.name == name && key.block == block) return static_aim(key);
      } else if (block.starts_with(limit_prefix)) {
        names.push_back(std::string(block) + "." + std::string(key.name));
        if (key.name == name) {
          return limit_aim(place, key, block.substr(limit_prefix.size()), limits_);
        }
      }
    }
    return unknown(place, path, names, "; --help-config lists all keys");
  }

  Aim unknown(const Place& place, std::string_view written, const std::vector<std::string>& names,
              std::string_view remedy) {
    const std::vector<std::string_view> views(names.begin(), names.end());
    const std::string_view near = nearest(written, views);
    fail(place, "no such setting" + (near.empty() ? std::string(remedy)
                                                  : "; did you mean " + std::string(near) + "?"));
    return {};
  }

  Aim limit_aim(const Place& place, const Key& key, std::string_view name,
                const std::multimap<std::string, std::string>& names) {
    const auto [first, last] = names.equal_range(std::string(name));
    if (first != last) {
      // Two limits that fall together here are an error of their own; the reader names both.
      return {.key = &key, .levels = {std::string(kLimits), first->second}};
    }
    std::vector<std::string_view> known;
    for (const auto& [spelling, limit] : names) known.push_back(spelling);
    const std::string_view near = nearest(name, known);
    fail(place, "there is no limit " + in_quotes(name) + " in the file to change; " +
                    (near.empty() ? "add it there" : "did you mean '" + std::string(near) + "'?"));
    return {};
  }

  void set(const Place& place, const Aim& aim, const std::string& value) {
    if (aim.key == nullptr) return;
    if (aim.key->kind == Kind::Users || aim.key->kind == Kind::Groups) {
      return fail(place, "a list cannot be set from outside; write it in the file");
    }
    std::optional<NodeIndex> map = own_map(tree_.root, place);
    if (!map) return;   // the text is no map: an error the reader reports
    tree_.root = *map;
    for (std::size_t depth = 0; depth < aim.levels.size(); ++depth) {
      const bool is_limit_name = depth == 1 && aim.levels.front() == kLimits;
      const std::size_t at = entry_of(*map, aim.levels[depth], is_limit_name, place);
      const auto inner = own_map(tree_.nodes[*map].entries[at].value, place);
      if (!inner) return;
      tree_.nodes[*map].entries[at].value = *inner;
      map = inner;
    }
    const std::size_t at = entry_of(*map, aim.key->name, false, place);
    const NodeIndex scalar = add(Node::Kind::Scalar, place, value);
    tree_.nodes[*map].entries[at].value = scalar;
  }

  NodeIndex add(Node::Kind kind, const Place& place, std::string text) {
    return tree_.add({.kind = kind, .place = place, .text = std::move(text), .items = {},
                      .entries = {}});
  }

  /// A map to write into: a copy, since other places of the text may share the node by an alias.
  std::optional<NodeIndex> own_map(NodeIndex index, const Place& place) {
    if (owned_.contains(index)) return index;
    const Node node = tree_.at(index);
    if (node.kind != Node::Kind::Map && node.kind != Node::Kind::Null) return std::nullopt;
    const NodeIndex copy = node.kind == Node::Kind::Map ? tree_.add(node)
                                                        : add(Node::Kind::Map, place, "");
    owned_.insert(copy);
    return copy;
  }

  /// Which entry of a map has that key; made without a value when there is none.
  std::size_t entry_of(NodeIndex map, std::string_view name, bool exact, const Place& place) {
    const auto& entries = tree_.at(map).entries;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const std::string& key = tree_.at(entries[i].key).text;
      if (exact ? key == name : kebab(key) == name) return i;
    }
    const NodeIndex key = add(Node::Kind::Scalar, place, std::string(name));
    const NodeIndex value = add(Node::Kind::Null, place, "");
    tree_.nodes[map].entries.push_back({.key = key, .value = value});
    return tree_.at(map).entries.size() - 1;
  }

  Tree& tree_;
  std::vector<Problem>& errors_;
  std::multimap<std::string, std::string> limits_;   // name -> name
  std::multimap<std::string, std::string> folded_;   // CUTWATER_ form -> name
  std::set<NodeIndex> owned_;                        // maps that belong to this class alone
};

}  // namespace

void apply_overrides(Tree& tree, const LoadOptions& options, std::vector<Problem>& errors) {
  if (options.environment.empty() && options.settings.empty()) return;
  Overrider overrider(tree, errors);
  for (const auto& [variable, value] : options.environment) overrider.environment(variable, value);
  for (const auto& [path, value] : options.settings) overrider.setting(path, value);
}

}  // namespace cutwater::config
