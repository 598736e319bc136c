// SPDX-License-Identifier: Apache-2.0
#include "config/reader.hpp"

#include <algorithm>
#include <span>

#include "base/nearest.hpp"
#include "config/value.hpp"
#include "config/words.hpp"

namespace cutwater::config {
namespace {

/// A block with more keys is not told whole where one is not known, but so many of them.
constexpr std::size_t kMostNamed = 16;
constexpr std::size_t kMostNear = 3;

}  // namespace
std::string position(const Place& place) {
  if (place.source != Source::File) return place.name;
  return std::to_string(place.line) + ":" + std::to_string(place.column);
}

std::string joined(std::string_view block, std::string_view name) {
  return block.empty() ? std::string(name) : std::string(block) + "." + std::string(name);
}

std::string folded(std::string_view name) {
  std::string out(name);
  for (char& c : out) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    if (c == '-' || c == '.' || c == ':') c = '_';
  }
  return out;
}

void Reader::read() {
  for (const Problem& problem : tree_.refused) errors_.push_back(problem);
  Leaves leaves;
  for (const Child& section : children(tree_.root, "", "")) {
    if (section.name == "limits") {
      read_limits(section);
    } else if (section.name == "breakers") {
      read_breakers(section);
    } else if (section.name == "bulkheads") {
      read_bulkheads(section);
    } else {
      read_block(section, leaves);
    }
  }
  // Named blocks come last among the values, so they wait here while the sections are stored.
  std::vector<Value> named = std::move(config_.values);
  config_.values.clear();
  read_static(leaves);
  config_.values.insert(config_.values.end(), named.begin(), named.end());
  check_whole();
}

void Reader::fail(const Place& place, std::string path, std::string text) {
  errors_.push_back({place, std::move(path), std::move(text)});
}

std::vector<Reader::Child> Reader::children(NodeIndex index, std::string_view block,
                                            const std::string& path) {
  std::vector<Child> found;
  const Node& node = tree_.at(index);
  if (node.kind == Node::Kind::Null) return found;
  const auto named = named_sections();
  const bool names = std::find(named.begin(), named.end(), block) != named.end();
  if (node.kind != Node::Kind::Map) {
    std::string wanted = listing(children_of(block)) + " with values";
    if (block == "limits") wanted = "a map of limits, NAME: { rate: 10/s }";
    if (block == "breakers") wanted = "a map of breakers, NAME: { failure-rate-threshold: 50 }";
    if (block == "bulkheads") wanted = "a map of bulkheads, NAME: { max-concurrent-calls: 25 }";
    if (block == kBulkheadBlock) wanted = "{ max-concurrent-calls: 25 }, or {} for all defaults";
    if (block == kBreakerBlock) wanted = "{ failure-rate-threshold: 50 }, or {} for all defaults";
    fail(node.place, path, "a block is wanted here; write " + wanted);
    return found;
  }
  const auto known = children_of(block);
  std::map<std::string, std::size_t> first;
  for (const Entry& entry : node.entries) {
    const Node& key = tree_.at(entry.key);
    if (key.kind != Node::Kind::Scalar) {
      fail(key.kind == Node::Kind::Null ? node.place : key.place, path,
           "a key must be one word; write NAME: VALUE");
      continue;
    }
    if (key.text == "<<") continue;   // the tree refused it
    Child child{.name = names ? key.text : kebab(key.text),
                .path = joined(path, shown(key.text)),
                .key = key.place,
                .value = entry.value};
    if (!names && std::find(known.begin(), known.end(), child.name) == known.end()) {
      check_unknown(key.text, block, child.path, child.key);
      continue;
    }
    const auto [at, fresh] = first.emplace(child.name, found.size());
    if (!fresh) {
      const Child& before = found[at->second];
      std::string text = "defined twice, first at " + position(before.key);
      if (before.path != child.path)
        text += " as '" + before.path.substr(before.path.rfind('.') + 1) + "'";
      fail(child.key, child.path, std::move(text));
      child.again = true;
    }
    found.push_back(std::move(child));
  }
  return found;
}

namespace {

/// The only key that goes on where this word ends: `max-wait` for max-wait-duration. Empty: none,
/// or several.
std::string_view longer_key(const std::string& word, std::span<const std::string_view> known) {
  std::string_view found;
  for (const std::string_view key : known) {
    if (word.empty() || !key.starts_with(word + "-")) continue;
    if (!found.empty()) return {};
    found = key;
  }
  return found;
}

}  // namespace

void Reader::check_unknown(std::string_view written, std::string_view block,
                           const std::string& path, const Place& place) {
  const auto known = children_of(block);
  constexpr std::size_t kSlip = 2;   // edits of a typing mistake; a word left out are more
  const std::string word = kebab(written);
  std::string_view near = nearest(word, known);
  const bool slip = !near.empty() && edit_distance(word, near) <= kSlip;
  if (const std::string_view longer = longer_key(word, known); !slip && !longer.empty()) {
    near = longer;
  }
  std::string text = "unknown key; ";
  if (!near.empty()) {
    fail(place, path, text + "did you mean '" + std::string(near) + "'?");
    return;
  }
  for (const std::string_view other : blocks()) {
    if (find_key(other, kebab(written)) != nullptr) {
      text += "'" + kebab(written) + "' is a key of " + title_of(other) + "; ";
      break;
    }
  }
  if (known.size() <= kMostNamed) return fail(place, path, text + "known here: " + listing(known));
  std::vector<std::string_view> near_by(known.begin(), known.end());
  std::stable_sort(near_by.begin(), near_by.end(), [&](std::string_view a, std::string_view b) {
    return edit_distance(kebab(written), a) < edit_distance(kebab(written), b);
  });
  near_by.resize(kMostNear);
  fail(place, path, text + "the nearest here are " + listing(near_by) + "; all " +
                        std::to_string(known.size()) +
                        " of them with their meaning: cutwaterd --help-config, under " +
                        title_of(block));
}

void Reader::read_block(const Child& block, Leaves& leaves) {
  if (tree_.at(block.value).kind == Node::Kind::Map) written_blocks_.insert(block.name);
  for (Child& child : children(block.value, block.name, block.path)) {
    const Key* key = find_key(block.name, child.name);
    child.again |= block.again;
    child.name = joined(block.name, child.name);
    if (key == nullptr) {
      read_block(child, leaves);
    } else if (const Leaf leaf{child.key, child.value}; child.again) {
      read_value(*key, child.path, leaf);
    } else {
      leaves.emplace(key, leaf);
    }
  }
}

void Reader::read_static(const Leaves& leaves) {
  const Target target{config_};
  for (const Key& key : schema()) {
    if (!section_of(key.block).empty()) continue;
    const std::string path = joined(key.block, key.name);
    const auto leaf = leaves.find(&key);
    if (leaf != leaves.end()) {
      const auto value = read_value(key, path, leaf->second);
      if (!value) continue;
      key.store(target, *value);
      keep(key, path, *value, &leaf->second, config_.values);
      continue;
    }
    Parsed value = default_value(key, options_);
    // A list that is written says all there is: the other half of the block is then empty.
    const bool list = key.kind == Kind::Users || key.kind == Kind::Groups;
    if (list && written_blocks_.contains(std::string(key.block))) {
      value = join_members({});
    }
    key.store(target, value);
    keep(key, path, value, nullptr, config_.values);
  }
}

Reader::Record Reader::read_record(std::string_view block, const std::string& path,
                                   const Leaf& at) {
  Record record{.block = block, .path = path, .key = at.key, .leaves = {}};
  for (const Child& child : children(at.value, block, path)) {
    const Key* key = find_key(block, child.name);
    const Leaf leaf{child.key, child.value};
    if (!child.again) {
      record.leaves.emplace(key, leaf);
    } else if (is_scalar(key->kind)) {
      read_value(*key, child.path, leaf);   // for its errors only
    }
  }
  return record;
}

void Reader::store_rows(const Record& record, const Target& target, Values& values) {
  for (const Key& key : keys_of(record.block)) {
    if (key.shape) continue;
    const std::string path = record.path + "." + std::string(key.name);
    const auto found = record.leaves.find(&key);
    const Leaf* leaf = found == record.leaves.end() ? nullptr : &found->second;
    if (leaf != nullptr && tree_.at(leaf->value).kind == Node::Kind::Null) {
      fail(leaf->key, path, "has no value; write " + range_text(key) + ", or leave the key out");
    } else if (key.kind == Kind::Block) {
      const Record inner = leaf != nullptr ? read_record(key.words, path, *leaf)
                                           : Record{.block = key.words, .path = path, .key = {},
                                                    .leaves = {}};
      store_rows(inner, target, values);
    } else if (key.kind == Kind::Keys) {
      if (leaf != nullptr) read_keys(path, *leaf, *target.limit, values);
    } else if (leaf != nullptr) {
      const auto value = read_value(key, path, *leaf);
      if (!value) continue;
      key.store(target, *value);
      keep(key, path, *value, leaf, values);
    } else if (!key.fallback.empty()) {
      const Parsed value = default_value(key, options_);
      key.store(target, value);
      keep(key, path, value, nullptr, values);
    }
  }
}

bool Reader::claim_name(std::string_view section, const Child& named) {
  if (section != "limits" && rule::is_pattern_name(named.name)) return true;
  if (section != "limits" && named.name.find('*') != std::string::npos) {
    fail(named.key, named.path,
         "a pattern is a name with one * in it, such as \"bank-*\": beside the * a letter, digit "
         "or one of . _ : -, 63 characters at most, the first a letter, a digit or the *");
    return false;
  }
  if (auto name = parse_name(named.name); !name) {
    fail(named.key, named.path, name.error().text());
    return false;
  }
  const std::string variable = folded(section) + "__" + folded(named.name);
  const auto [at, fresh] = folded_names_.emplace(variable, named);
  if (fresh || at->second.name == named.name) return true;
  fail(named.key, named.path,
       "too like '" + at->second.name + "' (" + position(at->second.key) +
           "): from outside both are CUTWATER_" + variable + "; rename one");
  return true;
}

void Reader::keep(const Key& key, const std::string& path, const Parsed& value, const Leaf* leaf,
                  std::vector<Value>& values) {
  if (value.text.empty() && key.kind == Kind::Text) return;
  Value kept{.path = path, .text = value.text, .place = {}, .key = {}};
  if (leaf != nullptr) {
    kept.place = tree_.at(leaf->value).place;
    kept.key = leaf->key;
    if (kept.place.source != Source::File) kept.key = kept.place;
  }
  values.push_back(std::move(kept));
}

}  // namespace cutwater::config
