// SPDX-License-Identifier: Apache-2.0
// The part of Reader that reads bulkheads.
#include "config/reader.hpp"
#include "config/words.hpp"

namespace cutwater::config {

void Reader::read_bulkheads(const Child& section) {
  if (!section.again) bulkheads_place_ = section.key;
  const std::vector<Block> blocks = read_blocks(section, kBulkheadBlock);
  for (const Block& block : blocks) {
    const auto merged = merge(block, blocks);
    if (merged && !is_abstract(block)) read_bulkhead(block, *merged);
  }
}

void Reader::read_bulkhead(const Block& block, const MergedRows& merged) {
  check_instances(block, merged);
  auto preset = rule::BulkheadPreset::Resilience4j;
  if (const auto written = merged.find(find_key(kBulkheadBlock, "preset"));
      written != merged.end()) {
    preset = static_cast<rule::BulkheadPreset>(written->second.value->number);
  }
  rule::BulkheadSettings settings = rule::preset(preset);
  settings.name = block.name;
  Config scratch;   // stores of this section reach the bulkhead only
  const Target target{.config = scratch, .bulkhead = &settings};
  for (const Key& key : keys_of(kBulkheadBlock)) {
    const auto found = merged.find(&key);
    if (found != merged.end()) key.store(target, *found->second.value);
  }
  const Key* number = find_key(kBulkheadBlock, "max-concurrent-calls");
  if (preset == rule::BulkheadPreset::Spring && !merged.contains(number)) {
    fail(block.record.key, block.record.path,
         "preset spring needs max-concurrent-calls; write it");
  }
  if (settings.max_wait_ns == rule::kWaitForever) {
    const auto wait = merged.find(find_key(kBulkheadBlock, "max-wait-duration"));
    notes_.push_back({wait != merged.end() ? tree_.at(wait->second.leaf->value).place
                                           : block.record.key,
                      block.record.path + ".max-wait-duration",
                      "forever: a call without a deadline waits as long as no place is free"});
  }
  if (block.again) return;
  keep_named(block, merged, rule::name_of(preset), target);
  config_.bulkheads.push_back(std::move(settings));
}

}  // namespace cutwater::config
