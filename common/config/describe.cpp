// SPDX-License-Identifier: Apache-2.0
#include "config/schema.hpp"

namespace cutwater::config {
namespace {

constexpr std::size_t kWidth = 96;
constexpr std::string_view kIndent = "      ";

std::string_view reload_text(Reload reload) {
  switch (reload) {
    case Reload::Live: return "reload";
    case Reload::Start: return "restart";
    case Reload::Capacity: return "reload up to what was reserved at start";
  }
  return {};
}

/// Breaks a sentence into lines of at most kWidth columns.
std::string wrapped(std::string_view text) {
  std::string out(kIndent);
  std::size_t column = kIndent.size();
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    if (column > kIndent.size()) {
      if (column + 1 + word.size() > kWidth) {
        out += '\n';
        out += kIndent;
        column = kIndent.size();
      } else {
        out += ' ';
        ++column;
      }
    }
    out += word;
    column += word.size();
    text.remove_prefix(std::min(word.size() + 1, text.size()));
  }
  return out + "\n";
}

/// " Default: 10s; under resilience4j 100." for a row whose default depends on the preset.
std::string preset_text(const Key& key) {
  if (key.load == nullptr && key.print == nullptr) return {};
  if (key.block == kBulkheadBlock) {
    rule::BulkheadSettings settings;
    Config unused;
    return " Default: " + text_of(key, key.load({.config = unused, .bulkhead = &settings})) + ".";
  }
  Config config;
  const auto under = [&](rule::BreakerPreset preset) {
    rule::BreakerSettings settings = rule::preset(preset);
    const Target target{.config = config, .breaker = &settings};
    return key.load != nullptr ? text_of(key, key.load(target)) : key.print(target);
  };
  const std::string ours = under(rule::BreakerPreset::Cutwater);
  const std::string peers = under(rule::BreakerPreset::Resilience4j);
  return " Default: " + ours + (ours == peers ? "." : "; under resilience4j " + peers + ".");
}

}  // namespace

std::string describe_keys() {
  std::string out =
      "Keys of the configuration file (YAML); camelCase and snake_case mean the same.\n"
      "Every single value can be set by CUTWATER_BLOCK__KEY=VALUE and --set block.key=VALUE.\n";
  std::string_view block;
  for (const Key& key : schema()) {
    if (key.block != block) {
      block = key.block;
      out += "\n";
      out += title_of(block);
      out += ":\n";
    }
    out += "  " + std::string(key.name) + ": " + range_text(key);
    if (!key.fallback.empty()) out += "; default " + std::string(key.fallback);
    out += "; changed by " + std::string(reload_text(key.reload)) + "\n";
    out += wrapped(std::string(key.help) + preset_text(key));
  }
  return out;
}

}  // namespace cutwater::config
