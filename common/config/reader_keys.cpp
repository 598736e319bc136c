// SPDX-License-Identifier: Apache-2.0
// The part of Reader that reads `keys` of a limit: what single keys and patterns get instead.
#include <map>

#include "config/reader.hpp"
#include "config/value.hpp"
#include "config/words.hpp"

namespace cutwater::config {

void Reader::read_keys(const std::string& path, const Leaf& leaf, rule::LimitSettings& limit,
                       Values& values) {
  const Node& node = tree_.at(leaf.value);
  if (node.kind != Node::Kind::Map) {
    fail(node.place, path, "a map of keys is wanted; write KEY: { rate: 100/s }");
    return;
  }
  std::map<KeyText, Place> first;
  std::size_t patterns = 0;
  for (const Entry& entry : node.entries) {
    Place place = tree_.at(entry.key).place;
    if (tree_.at(entry.key).kind == Node::Kind::Null) place = node.place;
    const auto key = read_key(path, entry.key);
    const std::string at = path + "." + (key ? shown(format_key(*key)) : std::string("?"));
    rule::OverrideSettings over;
    Values kept;
    if (key) {
      over.key = key->bytes;
      over.pattern = key->pattern;
      const auto [known, fresh] = first.emplace(*key, place);
      if (!fresh) fail(place, at, "defined twice, first at " + position(known->second));
      patterns += key->pattern ? 1 : 0;
      if (key->pattern && patterns == rule::kMaxPatterns + 1) {
        fail(place, path, "more than " + std::to_string(rule::kMaxPatterns) +
                              " patterns; write some as keys, or make a limit of their own");
      }
    }
    read_override(at, {place, entry.value}, over, kept);
    if (!key) continue;
    // Paths of errors are cut, paths of values are not: no two keys may share one.
    const std::string whole = path + "." + format_key(*key);
    for (Value& value : kept) value.path = whole + value.path.substr(at.size());
    values.insert(values.end(), kept.begin(), kept.end());
    limit.overrides.push_back(std::move(over));
  }
}

std::optional<KeyText> Reader::read_key(const std::string& path, NodeIndex index) {
  const Node& node = tree_.at(index);
  Result<KeyText> key = refusal("a key is wanted here; write one word, or a list of parts");
  if (node.kind == Node::Kind::Scalar) {
    key = parse_key(node.text);
  } else if (node.kind == Node::Kind::List) {
    std::vector<std::string> parts;
    for (const NodeIndex item : node.items) {
      if (tree_.at(item).kind == Node::Kind::Scalar) parts.push_back(tree_.at(item).text);
    }
    if (parts.size() == node.items.size()) key = parse_key(parts);
  }
  if (key) return std::move(*key);
  fail(node.place, path, key.error().text());
  return std::nullopt;
}

void Reader::read_override(const std::string& path, const Leaf& leaf,
                           rule::OverrideSettings& over, Values& values) {
  const Node& node = tree_.at(leaf.value);
  constexpr std::string_view kRemedy = "write unlimited, banned or { rate: 10/s }";
  if (node.kind == Node::Kind::Null || node.kind == Node::Kind::List) {
    const bool null = node.kind == Node::Kind::Null;
    fail(null ? leaf.key : node.place, path,
         (null ? "has no value; " : "a list is not accepted here; ") + std::string(kRemedy));
    return;
  }
  if (node.kind == Node::Kind::Scalar) {
    const auto word = read_text(path, leaf.value);
    if (!word) return;
    const Key* row = find_key(kKeyBlock, *word);
    if (row == nullptr || row->kind != Kind::True) {
      fail(node.place, path, in_quotes(*word) + " is not known here; " + std::string(kRemedy));
      return;
    }
    over.kind = row->says;
    Parsed value;
    value.text = "true";
    keep(*row, path + "." + *word, value, &leaf, values);
    return;
  }
  const Record record = read_record(kKeyBlock, path, leaf);
  if (auto shape = read_shape(record, values)) {
    over.kind = shape->kind;
    over.windows = std::move(shape->windows);
  }
  store_rows(record, {.config = config_, .over = &over}, values);
  const auto until = record.leaves.find(find_key(kKeyBlock, "until"));
  if (until == record.leaves.end()) return;
  if (!record.leaves.contains(find_key(kKeyBlock, "banned"))) {
    fail(until->second.key, path + ".until",
         "is the end of a ban; take it out, or write banned: true");
  } else if (over.pattern) {
    fail(until->second.key, path + ".until",
         "a pattern is banned for ever or not at all; take it out, or ban single keys");
  }
}

}  // namespace cutwater::config
