// SPDX-License-Identifier: Apache-2.0
// The part of Reader that breakers and bulkheads share: blocks put over their bases, patterns, and
// what is shown of each.
#include <algorithm>

#include "config/reader.hpp"
#include "config/value.hpp"
#include "config/words.hpp"

namespace cutwater::config {
namespace {

constexpr std::size_t kMaxChain = 8;   // blocks behind each other by base-config
constexpr std::string_view kOwnRows[] = {"preset", "base-config", "abstract", "note"};

bool among(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

std::vector<Reader::Block> Reader::read_blocks(const Child& section, std::string_view of) {
  std::vector<Block> blocks;
  for (Child& child : children(section.value, section.name, section.path)) {
    child.again |= section.again;
    const bool named = claim_name(section.name, child);
    Block block{.name = child.name, .again = child.again,
                .record = read_record(of, child.path, {child.key, child.value}), .rows = {}};
    for (const auto& [key, leaf] : block.record.leaves) {
      const std::string path = child.path + "." + std::string(key->name);
      if (auto value = read_value(*key, path, leaf)) block.rows.emplace(key, std::move(*value));
    }
    if (named) blocks.push_back(std::move(block));
  }
  check_patterns(blocks);
  return blocks;
}

bool Reader::is_abstract(const Block& block) {
  const auto found = block.rows.find(find_key(block.record.block, "abstract"));
  return found != block.rows.end() && found->second.number != 0;
}

std::optional<Reader::MergedRows> Reader::merge(const Block& block,
                                                const std::vector<Block>& blocks) {
  const Key* const base_row = find_key(block.record.block, "base-config");
  std::vector<const Block*> chain = {&block};
  for (;;) {
    const auto base = chain.back()->rows.find(base_row);
    if (base == chain.back()->rows.end()) break;
    const std::string& name = base->second.text;
    const Place& place = tree_.at(chain.back()->record.leaves.at(base_row).value).place;
    const std::string path = chain.back()->record.path + ".base-config";
    const auto next = std::find_if(blocks.begin(), blocks.end(),
                                   [&](const Block& other) { return other.name == name; });
    std::string fault;
    if (next == blocks.end()) {
      std::vector<std::string_view> names;
      for (const Block& other : blocks) names.push_back(other.name);
      const std::string_view near = nearest(name, names);
      fault =
          "there is no block " + in_quotes(name) + " in this section; " +
          (near.empty() ? "write the name of one" : "did you mean '" + std::string(near) + "'?");
    } else if (std::find(chain.begin(), chain.end(), &*next) != chain.end()) {
      fault = "leads back to itself by way of " + in_quotes(name) + "; take one of them out";
    } else if (chain.size() > kMaxChain) {
      fault =
          "more than " + std::to_string(kMaxChain) + " blocks behind each other; write some out";
    }
    if (!fault.empty()) {
      // What is wrong farther down is said by the block it stands in, and a circle by its members.
      const bool circle = next != blocks.end() && chain.size() <= kMaxChain;
      if (circle ? &*next == &block : next != blocks.end() || chain.size() == 1) {
        fail(place, path, fault);
      }
      return std::nullopt;
    }
    chain.push_back(&*next);
  }
  MergedRows merged;
  for (auto at = chain.rbegin(); at != chain.rend(); ++at) {
    const bool own = *at == &block;
    for (const auto& [key, value] : (*at)->rows) {
      if (!own && key->name != "preset" && among(kOwnRows, key->name)) continue;
      // What a block nearer says in other words replaces what its base said.
      for (auto other = merged.begin(); other != merged.end();) {
        const bool same = !other->second.base.empty() && (other->first->same_as == key->name ||
                                                          key->same_as == other->first->name);
        other = same ? merged.erase(other) : std::next(other);
      }
      merged[key] = {&value, &(*at)->record.leaves.at(key), own ? "" : (*at)->name};
    }
  }
  return merged;
}

void Reader::keep_named(const Block& block, const MergedRows& merged, std::string_view preset,
                        const Target& target) {
  const bool pattern = rule::is_pattern_name(block.name);
  const std::string& note = target.breaker != nullptr ? target.breaker->note
                                                      : target.bulkhead->note;
  for (const Key& key : keys_of(block.record.block)) {
    if (!pattern && (key.name == "max-instances" || key.name == "idle")) continue;
    Value value{.path = block.record.path + "." + std::string(key.name), .text = {}, .place = {},
                .key = {}};
    auto from = merged.find(&key);
    if (key.load != nullptr) {
      value.text = text_of(key, key.load(target));
    } else if (key.print != nullptr) {
      value.text = key.print(target);
    } else if (key.name == "note" && !note.empty()) {
      value.text = note;
    } else {
      continue;   // a peer's word: shown as ours, with its place
    }
    if (from == merged.end()) {
      from = std::find_if(merged.begin(), merged.end(),
                          [&](const auto& one) { return one.first->same_as == key.name; });
    }
    if (from != merged.end()) {
      value.place = tree_.at(from->second.leaf->value).place;
      value.key = from->second.leaf->key;
      if (value.place.source == Source::File) value.place.name = from->second.base;
      if (value.place.source != Source::File) value.key = value.place;
    } else {
      value.place.source = Source::Preset;
      value.place.name = std::string(preset);
      value.key = value.place;
    }
    config_.values.push_back(std::move(value));
  }
}

void Reader::check_patterns(const std::vector<Block>& blocks) {
  const auto parts = [](std::string_view name) {
    const std::size_t star = name.find('*');
    return std::pair(name.substr(0, star), name.substr(star + 1));
  };
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    if (!rule::is_pattern_name(blocks[i].name)) continue;
    for (std::size_t j = 0; j < i; ++j) {
      if (!rule::is_pattern_name(blocks[j].name) || blocks[j].name == blocks[i].name ||
          blocks[j].name.size() != blocks[i].name.size()) {
        continue;
      }
      const auto [head, tail] = parts(blocks[i].name);
      const auto [other_head, other_tail] = parts(blocks[j].name);
      const bool meet = (head.starts_with(other_head) || other_head.starts_with(head)) &&
                        (tail.ends_with(other_tail) || other_tail.ends_with(tail));
      if (!meet) continue;
      fail(blocks[i].record.key, blocks[i].record.path,
           "matches the same names as '" + blocks[j].name + "' (" +
               position(blocks[j].record.key) + "), and neither is longer; make one longer");
    }
  }
}

}  // namespace cutwater::config
