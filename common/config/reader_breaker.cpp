// SPDX-License-Identifier: Apache-2.0
// The part of Reader that reads breakers: blocks put over their bases and presets.
#include <algorithm>

#include "config/duration.hpp"
#include "config/reader.hpp"
#include "config/value.hpp"
#include "config/words.hpp"

namespace cutwater::config {
namespace {

using rule::BreakerPreset;
using rule::BreakerSettings;

constexpr std::string_view kWindowRows[] = {"sliding-window-type", "sliding-window-size",
                                            "minimum-number-of-calls"};

const Key* row(std::string_view name) { return find_key(kBreakerBlock, name); }

bool among(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

void Reader::read_breakers(const Child& section) {
  if (!section.again) breakers_place_ = section.key;
  const std::vector<Block> blocks = read_blocks(section, kBreakerBlock);
  for (const Block& block : blocks) read_breaker(block, blocks);
}

void Reader::read_breaker(const Block& block, const std::vector<Block>& blocks) {
  const std::size_t errors = errors_.size();
  const auto merged = merge(block, blocks);
  check_classes(block);
  if (!merged) return;
  if (is_abstract(block)) return;
  check_instances(block, *merged);
  const BreakerPreset preset = preset_of(*merged);
  BreakerSettings settings = rule::preset(preset);
  settings.name = block.name;
  check_preset(block, *merged, preset);
  Config scratch;   // stores of this section reach the breaker only
  const Target target{.config = scratch, .breaker = &settings};
  for (const Key& key : keys_of(kBreakerBlock)) {
    const auto found = merged->find(&key);
    if (found != merged->end()) key.store(target, *found->second.value);
  }
  finish_window(block, *merged, preset, settings);
  if (errors_.size() == errors) check_breaker(block, *merged, settings);
  if (block.again) return;
  keep_named(block, *merged, rule::name_of(preset), target);
  config_.breakers.push_back(std::move(settings));
}

BreakerPreset Reader::preset_of(const MergedRows& merged) {
  if (const auto written = merged.find(row("preset")); written != merged.end()) {
    return static_cast<BreakerPreset>(written->second.value->number);
  }
  const bool window = std::any_of(merged.begin(), merged.end(), [](const auto& one) {
    return among(kWindowRows, one.first->name);
  });
  return window ? BreakerPreset::Resilience4j : BreakerPreset::Cutwater;
}

void Reader::check_preset(const Block& block, const MergedRows& merged, BreakerPreset preset) {
  const std::string word(rule::name_of(preset));
  for (const auto& [key, from] : merged) {
    const std::string path = block.record.path + "." + std::string(key->name);
    const auto presets = split_words(key->presets);
    if (!presets.empty() && !among(presets, word)) {
      fail(from.leaf->key, path, "is a word of preset " + listing(presets) + "; write preset: " +
                                     std::string(presets.front()) + ", or " +
                                     std::string(key->same_as));
      continue;
    }
    const auto same = merged.find(row(key->same_as));
    if (key->same_as.empty() || same == merged.end()) continue;
    fail(from.leaf->key, path, "'" + std::string(key->same_as) + "' (" +
                                   position(same->second.leaf->key) + ") says the same; keep one");
  }
  for (const std::string_view name : rule::required_keys(preset)) {
    const bool there = std::any_of(merged.begin(), merged.end(), [&](const auto& one) {
      return one.first->name == name || row(name)->same_as == one.first->name;
    });
    if (!there) {
      fail(block.record.key, block.record.path,
           "preset " + word + " needs " + std::string(name) + "; write it");
    }
  }
}

void Reader::finish_window(const Block& block, const MergedRows& merged, BreakerPreset preset,
                           BreakerSettings& settings) {
  const bool count = settings.window_type == rule::WindowType::CountBased;
  const auto size = merged.find(row("sliding-window-size"));
  if (size != merged.end()) {
    const Parsed& value = *size->second.value;
    const auto refuse = [&](const std::string& text) {
      fail(tree_.at(size->second.leaf->value).place,
           block.record.path + ".sliding-window-size", text);
    };
    if (count && value.period_ns != 0) {
      refuse(value.text + " is a time, and a COUNT_BASED window has calls; write 100, or "
                          "sliding-window-type: TIME_BASED");
    } else if (count && value.number > rule::kMaxCountWindow) {
      refuse(value.text + " is above the maximum of " + std::to_string(rule::kMaxCountWindow));
    } else if (!count) {
      std::uint64_t span = value.period_ns;
      if (span == 0) {
        span = std::min(value.number, rule::kMaxTimeWindowNs) * rule::kNanosPerSecond;
      }
      if (value.period_ns == 0 && value.number > rule::kMaxTimeWindowNs / rule::kNanosPerSecond) {
        refuse(value.text + " s are above the maximum of " +
               format_duration(rule::kMaxTimeWindowNs));
      }
      settings.window_span_ns = span;
    }
  }
  const bool sentinel = preset == BreakerPreset::Sentinel;
  if (sentinel && merged.contains(row("failure-rate-threshold"))) {
    settings.failure_rate_ppm = rule::sentinel_rate_ppm(settings.failure_rate_ppm);
  }
  if (!count && !merged.contains(row("sliding-window-slots"))) {
    settings.window_slots = rule::default_slots(preset, settings.window_span_ns);
  }
}

void Reader::check_breaker(const Block& block, const MergedRows& merged,
                           const BreakerSettings& settings) {
  const std::string& path = block.record.path;
  const auto decision = merged.find(row("half-open-decision"));
  const bool rate = settings.half_open_rule == rule::HalfOpenRule::Rate ||
                    settings.half_open_rule == rule::HalfOpenRule::RateOver;
  if (rate && settings.failure_rate_ppm == rule::kOffPpm &&
      settings.slow_rate_ppm == rule::kOffPpm) {
    const Place& place = decision != merged.end() ? decision->second.leaf->key : block.record.key;
    fail(place, path + ".half-open-decision",
         "'rate' needs a rate threshold, and both are off; set failure-rate-threshold or write "
         "all-succeed");
    return;
  }
  if (auto fine = rule::check(settings); !fine) {
    // "breaker 'x': what is wrong": the path says the first part already.
    const std::string& text = fine.error().text();
    const std::size_t split = text.find("': ");
    fail(block.record.key, path, split == std::string::npos ? text : text.substr(split + 3));
    return;
  }
  const auto note = [&](std::string_view name, std::string text) {
    const auto at = merged.find(row(name));
    notes_.push_back({at != merged.end() ? tree_.at(at->second.leaf->value).place
                                         : block.record.key,
                      path + "." + std::string(name), std::move(text)});
  };
  const std::uint32_t minimum = rule::effective_minimum(settings);
  if (minimum < settings.minimum_calls && merged.contains(row("minimum-number-of-calls"))) {
    note("minimum-number-of-calls", std::to_string(settings.minimum_calls) +
                                        " is above the window of " + std::to_string(minimum) +
                                        " calls; cut to it");
  }
  if (const std::string remark = rule::remark(settings); !remark.empty()) {
    notes_.push_back({block.record.key, path, remark});
  }
}

}  // namespace cutwater::config
