// SPDX-License-Identifier: Apache-2.0
// The part of Reader that turns one node into one value.
#include <algorithm>

#include "config/reader.hpp"
#include "config/value.hpp"
#include "config/words.hpp"

namespace cutwater::config {
namespace {

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7f;
  });
}

}  // namespace

std::optional<Parsed> Reader::read_value(const Key& key, const std::string& path,
                                         const Leaf& leaf) {
  const Node& node = tree_.at(leaf.value);
  if (node.kind == Node::Kind::Null) {
    fail(leaf.key, path, "has no value; write " + range_text(key) + ", or leave the key out");
    return std::nullopt;
  }
  if (key.kind == Kind::Users || key.kind == Kind::Groups) return read_list(key, path, leaf);
  const bool list = node.kind == Node::Kind::List;
  if (key.kind == Kind::Enabled && list) return read_left_on(key, path, leaf);
  if (key.kind == Kind::Rate && node.kind == Node::Kind::Map) return read_rate_map(path, leaf);
  if (key.kind == Kind::Classes) return read_classes(key, path, leaf);
  if (key.kind == Kind::Decision && node.kind == Node::Kind::Map) return read_decision(path, leaf);
  if (key.kind == Kind::Ramp && node.kind == Node::Kind::Map) return read_ramp(path, leaf);
  if (node.kind != Node::Kind::Scalar) {
    const std::string what = node.kind == Node::Kind::List ? "a list" : "a block";
    fail(node.place, path, what + " is not accepted here; write " + range_text(key));
    return std::nullopt;
  }
  const auto text = read_text(path, leaf.value);
  if (!text) return std::nullopt;
  auto value = parse_value(key, *text, options_);
  if (value) return std::move(*value);
  fail(node.place, path, value.error().text());
  return std::nullopt;
}

std::optional<Parsed> Reader::read_list(const Key& key, const std::string& path,
                                        const Leaf& leaf) {
  const Node& node = tree_.at(leaf.value);
  if (node.kind != Node::Kind::List) {
    fail(node.place, path, node.kind == Node::Kind::Scalar
                               ? "a list is wanted; write [" + in_quotes(node.text) + "]"
                               : "a list is wanted; write [NAME, NUMBER]");
    return std::nullopt;
  }
  std::vector<Parsed> members;
  bool good = true;
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    const Node& item = tree_.at(node.items[i]);
    const std::string item_path = path + "[" + std::to_string(i) + "]";
    std::optional<std::string> text;
    if (item.kind == Node::Kind::Scalar) {
      text = read_text(item_path, node.items[i]);
    } else {
      fail(item.kind == Node::Kind::Null ? node.place : item.place, item_path,
           "a name, a number or \"*\" is wanted here");
    }
    if (text) {
      auto member = parse_member(key, *text, options_);
      if (member) {
        members.push_back(std::move(*member));
        continue;
      }
      fail(item.place, item_path, member.error().text());
    }
    good = false;
  }
  if (!good) return std::nullopt;
  return join_members(members);
}

/// What stays on while all else is off: the words of the key, each once.
std::optional<Parsed> Reader::read_left_on(const Key& key, const std::string& path,
                                           const Leaf& leaf) {
  const Node& node = tree_.at(leaf.value);
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    const Node& item = tree_.at(node.items[i]);
    if (item.kind == Node::Kind::Scalar && item.text == key.words && i == 0) continue;
    const bool again = item.kind == Node::Kind::Scalar && item.text == key.words;
    fail(item.kind == Node::Kind::Null ? node.place : item.place,
         path + "[" + std::to_string(i) + "]",
         again ? "stands here twice; take one out"
               : "only " + std::string(key.words) + " can stay on by itself; write " +
                     range_text(key));
    return std::nullopt;
  }
  Parsed value;
  value.text = node.items.empty() ? "false" : "[" + std::string(key.words) + "]";
  return value;
}

/// { count, per }, { requests, per } or { unit, requests_per_unit }.
std::optional<Parsed> Reader::read_rate_map(const std::string& path, const Leaf& leaf) {
  static constexpr std::string_view kParts[] = {"count", "requests", "requests-per-unit", "per",
                                                "unit"};
  constexpr std::size_t kCounts = 3;   // the first of kParts say how many, the others per what
  const Node& node = tree_.at(leaf.value);
  std::optional<std::string> count;
  std::optional<std::string> period;
  std::optional<std::size_t> seen[2];
  bool good = true;
  const auto fail_part = [&](const Place& place, std::string part, std::string text) {
    fail(place, std::move(part), std::move(text));
    good = false;
  };
  for (const Entry& entry : node.entries) {
    const Node& key = tree_.at(entry.key);
    const std::string part = path + "." + shown(key.text);
    const std::string name = kebab(key.text);
    const auto* known = std::find(std::begin(kParts), std::end(kParts), name);
    if (key.kind != Node::Kind::Scalar || known == std::end(kParts)) {
      const std::string_view near = nearest(name, kParts);
      fail_part(key.place, part,
                near.empty() ? "unknown key; write { count: 100, per: 1m }"
                             : "unknown key; did you mean '" + std::string(near) + "'?");
      continue;
    }
    const auto index = static_cast<std::size_t>(known - std::begin(kParts));
    const bool is_period = index >= kCounts;
    if (auto& before = seen[is_period ? 1 : 0]; before) {
      fail_part(key.place, part,
                "'" + std::string(kParts[*before]) + "' already says this; keep one");
      continue;
    } else {
      before = index;
    }
    const Node& value = tree_.at(entry.value);
    if (value.kind != Node::Kind::Scalar) {
      fail_part(value.kind == Node::Kind::Null ? key.place : value.place, part,
                is_period ? "a period is wanted; write 1m" : "a count is wanted; write 100");
      continue;
    }
    const auto text = read_text(part, entry.value);
    if (!text) good = false;
    (is_period ? period : count) = text;
  }
  if (!good) return std::nullopt;
  if (!count || !period) {
    fail(node.place, path, std::string(count ? "has no period" : "has no count") +
                               "; write { count: 100, per: 1m }");
    return std::nullopt;
  }
  auto rate = parse_rate(*count, *period);
  if (rate) return rate_value(*rate);
  fail(node.place, path, rate.error().text());
  return std::nullopt;
}

std::optional<std::string> Reader::read_text(const std::string& path, NodeIndex scalar) {
  const Node& node = tree_.at(scalar);
  Result<std::string> text = node.text;
  // What comes from outside is taken as it is: only the file's own text names variables.
  if (node.place.source == Source::File) text = substitute(node.text, options_);
  if (!text) {
    fail(node.place, path, text.error().text());
    return std::nullopt;
  }
  if (has_control(*text)) {
    fail(node.place, path, "holds a control character or a second line; write one line of text");
    return std::nullopt;
  }
  return std::move(*text);
}

}  // namespace cutwater::config
