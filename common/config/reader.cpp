// SPDX-License-Identifier: Apache-2.0
#include "config/reader.hpp"

#include <algorithm>

#include "config/value.hpp"
#include "config/words.hpp"

namespace cutwater::config {
namespace {

std::string position(const Place& place) {
  if (place.source != Source::File) return place.name;
  return std::to_string(place.line) + ":" + std::to_string(place.column);
}

std::string last_level(const std::string& path) { return path.substr(path.rfind('.') + 1); }

std::string joined(std::string_view block, std::string_view name) {
  return block.empty() ? std::string(name) : std::string(block) + "." + std::string(name);
}

}  // namespace

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
    } else {
      read_block(section, leaves);
    }
  }
  // Limits come last among the values, so they wait here while the sections are stored.
  std::vector<Value> limits = std::move(config_.values);
  config_.values.clear();
  read_static(leaves);
  config_.values.insert(config_.values.end(), limits.begin(), limits.end());
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
  if (node.kind != Node::Kind::Map) {
    const std::string wanted = block == "limits" ? "a map of limits, NAME: { rate: 10/s }"
                                                 : listing(children_of(block)) + " with values";
    fail(node.place, path, "a block is wanted here; write " + wanted);
    return found;
  }
  const bool names = block == "limits";
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
      if (before.path != child.path) text += " as '" + last_level(before.path) + "'";
      fail(child.key, child.path, std::move(text));
      child.again = true;
    }
    found.push_back(std::move(child));
  }
  return found;
}

void Reader::check_unknown(std::string_view written, std::string_view block,
                           const std::string& path, const Place& place) {
  const auto known = children_of(block);
  const std::string_view near = nearest(kebab(written), known);
  std::string text = "unknown key; ";
  if (!near.empty()) {
    fail(place, path, text + "did you mean '" + std::string(near) + "'?");
    return;
  }
  for (const std::string_view other : blocks()) {
    if (find_key(other, kebab(written)) != nullptr) {
      text += "'" + kebab(written) + "' is a key of " + std::string(other) + "; ";
      break;
    }
  }
  fail(place, path, text + "known here: " + listing(known));
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
    if (key.block == kLimitBlock) continue;
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
    if (key.kind == Kind::Groups && written_blocks_.contains(std::string(key.block))) {
      value = join_members({});
    }
    key.store(target, value);
    keep(key, path, value, nullptr, config_.values);
  }
}

void Reader::read_limits(const Child& section) {
  if (!section.again) limits_place_ = section.key;
  for (Child& limit : children(section.value, "limits", section.path)) {
    limit.again |= section.again;
    read_limit(limit);
  }
}

bool Reader::claim_limit_name(const Child& limit) {
  if (auto name = parse_name(limit.name); !name) {
    fail(limit.key, limit.path, name.error().text());
    return false;
  }
  const auto [at, fresh] = folded_limits_.emplace(folded(limit.name), limit);
  if (!fresh && at->second.name != limit.name) {
    fail(limit.key, limit.path,
         "too like '" + at->second.name + "' (" + position(at->second.key) +
             "): from outside both are CUTWATER_LIMITS__" + at->first + "; rename one");
  }
  return true;
}

void Reader::read_limit(const Child& limit) {
  claim_limit_name(limit);
  rule::LimitSettings settings;
  settings.windows.resize(1);
  settings.name = limit.name;
  Leaves leaves;
  for (const Child& child : children(limit.value, kLimitBlock, limit.path)) {
    const Key* key = find_key(kLimitBlock, child.name);
    const Leaf leaf{child.key, child.value};
    if (child.again) {
      read_value(*key, child.path, leaf);
    } else {
      leaves.emplace(key, leaf);
    }
  }
  std::vector<Value> values;
  const Target target{config_, &settings};
  for (const Key& key : keys_of(kLimitBlock)) {
    const std::string path = limit.path + "." + std::string(key.name);
    const auto leaf = leaves.find(&key);
    if (leaf != leaves.end()) {
      const auto value = read_value(key, path, leaf->second);
      if (!value) continue;
      key.store(target, *value);
      keep(key, path, *value, &leaf->second, values);
    } else if (!key.fallback.empty()) {
      const Parsed value = default_value(key, options_);
      key.store(target, value);
      keep(key, path, value, nullptr, values);
    } else if (key.name == "burst" && settings.windows[0].rate_count != 0) {
      settings.windows[0].burst = settings.windows[0].rate_count;
      Parsed value;
      value.text = std::to_string(settings.windows[0].burst);
      keep(key, path, value, nullptr, values);
    } else if (key.kind == Kind::Rate) {
      fail(limit.key, limit.path, "has no rate; write rate: 10/s");
    }
  }
  check_limit(settings, limit.path, values);
  if (limit.again) return;
  config_.limits.push_back(std::move(settings));
  config_.values.insert(config_.values.end(), values.begin(), values.end());
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

void Reader::check_limit(const rule::LimitSettings& limit, const std::string& path,
                         const std::vector<Value>& values) {
  const auto place_of = [&](std::string_view name) {
    const auto found = std::find_if(values.begin(), values.end(), [&](const Value& value) {
      return value.path == joined(path, name);
    });
    return found == values.end() ? Place{} : found->place;
  };
  const std::uint64_t slice = limit.windows[0].burst / 16;
  if (limit.windows[0].burst != 0 && limit.thread_lease > slice) {
    std::string remedy = "write off";
    if (slice > 0) remedy = "write at most " + std::to_string(slice);
    fail(place_of("thread-lease"), path + ".thread-lease",
         std::to_string(limit.thread_lease) + " is more than a sixteenth of the burst of " +
             std::to_string(limit.windows[0].burst) + "; " + remedy +
             ", or set burst to at least " + std::to_string(std::uint64_t{16} * limit.thread_lease));
  }
  if (limit.on_full == rule::OnFull::Allow) {
    notes_.push_back({place_of("on-full"), path + ".on-full",
                      "while all places are taken, new keys are not limited at all"});
  }
}

void Reader::check_whole() {
  const Value* capacity = config_.find_value("capacity.limits");
  if (capacity != nullptr && config_.limits.size() > config_.capacity.limits) {
    const std::string count = std::to_string(config_.limits.size());
    const std::string room = std::to_string(config_.capacity.limits);
    if (config_.limits.size() > kMaxLimits) {
      fail(limits_place_, "limits", count + " limits are above the maximum of " +
                                        std::to_string(kMaxLimits));
    } else {
      fail(limits_place_, "limits", count + " limits do not fit capacity.limits, which is " + room +
                                        "; set capacity.limits to at least " + count);
    }
  }
  if (config_.listen.unix_path == "off") {
    const Value* path = config_.find_value("listen.unix.path");
    notes_.push_back({path != nullptr ? path->place : Place{}, "listen.unix.path",
                      "off: there is no socket, so no process can attach"});
  }
}

}  // namespace cutwater::config
