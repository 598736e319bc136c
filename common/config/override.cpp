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
  bool named = false;   ///< the second level is a name of the operator's choice
};

/// A row below a name and the level between: {"", rate}, {"calendar", zone}.
struct NamedRow {
  const Key* key;
  std::string_view inner;
};

/// Rows that a limit has once: not those of a list's items or of single keys.
std::vector<NamedRow> named_rows(std::string_view section) {
  std::vector<NamedRow> rows;
  const std::string block = std::string(section) + ".*";
  for (const Key& key : schema()) {
    if (section_of(key.block) != section) continue;
    std::string_view inner = key.block.substr(block.size());
    if (!inner.empty() && !inner.starts_with('.')) continue;
    inner.remove_prefix(inner.empty() ? 0 : 1);
    if (inner.find_first_of(".[") == std::string_view::npos) rows.push_back({&key, inner});
  }
  return rows;
}

class Overrider {
 public:
  Overrider(Tree& tree, std::vector<Problem>& errors) : tree_(tree), errors_(errors) {
    for (const Entry& entry : tree_.at(tree_.root).entries) {
      const std::string section = kebab(tree_.at(entry.key).text);
      const auto named = named_sections();
      if (std::find(named.begin(), named.end(), section) == named.end()) continue;
      for (const Entry& block : tree_.at(entry.value).entries) {
        const std::string& name = tree_.at(block.key).text;
        names_[section].emplace(name, name);
        folded_[section].emplace(folded(name), name);
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
    Aim aim{.key = &key, .levels = {}, .named = false};
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
      if (!section_of(key.block).empty()) continue;
      names.push_back(variable_of(key.block, key.name));
      if (names.back() == variable) return static_aim(key);
    }
    for (const std::string_view section : named_sections()) {
      const std::string prefix = std::string(kVariablePrefix) + folded(section) +
                                 std::string(kLevels);
      if (!variable.starts_with(prefix)) continue;
      const std::string_view rest = variable.substr(prefix.size());
      const std::string written(rest.substr(0, rest.rfind(kLevels)));
      for (const NamedRow& row : named_rows(section)) {
        std::string tail(kLevels);
        if (!row.inner.empty()) tail += folded(row.inner) + std::string(kLevels);
        tail += folded(row.key->name);
        names.push_back(prefix + written + tail);
        if (rest.ends_with(tail) && rest.size() > tail.size()) {
          return named_aim(place, section, row, rest.substr(0, rest.size() - tail.size()),
                           folded_[std::string(section)]);
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
    for (const Key& key : schema()) {
      if (!section_of(key.block).empty()) continue;
      names.push_back(joined(key.block, key.name));
      if (key.name == name && key.block == block) return static_aim(key);
    }
    for (const std::string_view section : named_sections()) {
      const std::string prefix = std::string(section) + ".";
      if (!block.starts_with(prefix)) continue;
      for (const NamedRow& row : named_rows(section)) {
        const std::string tail = row.inner.empty() ? "" : "." + std::string(row.inner);
        names.push_back(joined(block, row.key->name));
        if (row.key->name != name || !block.ends_with(tail)) continue;
        const std::string_view written = block.substr(prefix.size());
        if (written.size() <= tail.size()) continue;
        return named_aim(place, section, row, written.substr(0, written.size() - tail.size()),
                         names_[std::string(section)]);
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

  Aim named_aim(const Place& place, std::string_view section, const NamedRow& row,
                std::string_view name, const std::multimap<std::string, std::string>& names) {
    const auto [first, last] = names.equal_range(std::string(name));
    if (first != last) {
      // Two names that fall together here are an error of their own; the reader names both.
      Aim aim{.key = row.key, .levels = {std::string(section), first->second}, .named = true};
      if (!row.inner.empty()) aim.levels.emplace_back(row.inner);
      return aim;
    }
    std::vector<std::string_view> known;
    for (const auto& [spelling, written] : names) known.push_back(spelling);
    const std::string_view near = nearest(name, known);
    const std::string_view one = section.substr(0, section.size() - 1);   // limits -> limit
    fail(place, "there is no " + std::string(one) + " " + in_quotes(name) +
                    " in the file to change; " +
                    (near.empty() ? "add it there" : "did you mean '" + std::string(near) + "'?"));
    return {};
  }

  void set(const Place& place, const Aim& aim, const std::string& value) {
    if (aim.key == nullptr) return;
    if (!is_scalar(aim.key->kind)) {
      return fail(place, "a list cannot be set from outside; write it in the file");
    }
    std::optional<NodeIndex> map = own_map(tree_.root, place);
    if (!map) return;   // the text is no map: an error the reader reports
    tree_.root = *map;
    for (std::size_t depth = 0; depth < aim.levels.size(); ++depth) {
      const bool exact = aim.named && depth == 1;
      const std::size_t at = entry_of(*map, aim.levels[depth], exact, place);
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
  using Names = std::multimap<std::string, std::string>;
  std::map<std::string, Names> names_;    // by section: name -> name
  std::map<std::string, Names> folded_;   // by section: CUTWATER_ form -> name
  std::set<NodeIndex> owned_;             // maps that belong to this class alone
};

}  // namespace

void apply_overrides(Tree& tree, const LoadOptions& options, std::vector<Problem>& errors) {
  if (options.environment.empty() && options.settings.empty()) return;
  Overrider overrider(tree, errors);
  for (const auto& [variable, value] : options.environment) overrider.environment(variable, value);
  for (const auto& [path, value] : options.settings) overrider.setting(path, value);
}

}  // namespace cutwater::config
