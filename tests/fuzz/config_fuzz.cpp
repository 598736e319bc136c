// SPDX-License-Identifier: Apache-2.0
// Any bytes as a configuration text: the loader answers, and what it accepts keeps its promises.
// The first line, when it begins with "#set ", is an override on top: `#set PATH=VALUE`.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "config/config.hpp"

namespace {

using namespace cutwater;

void require(bool promise) {
  if (!promise) std::abort();
}

config::LoadOptions options_of(std::string_view text) {
  config::LoadOptions options;
  options.variable = [](const std::string& name) -> std::optional<std::string> {
    if (name.size() > 4) return std::nullopt;
    return name;
  };
  constexpr std::string_view kSet = "#set ";
  if (!text.starts_with(kSet)) return options;
  const std::string_view line = text.substr(kSet.size(), text.find('\n') - kSet.size());
  const std::size_t split = line.find('=');
  if (split == std::string_view::npos) return options;
  options.settings.emplace_back(line.substr(0, split), line.substr(split + 1));
  options.environment.emplace_back(line.substr(0, split), line.substr(split + 1));
  return options;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const config::LoadOutcome outcome = config::load_text(text, "fuzz.yaml", options_of(text));

  require(outcome.ok() == outcome.errors.empty());
  require(outcome.errors.size() <= config::kMaxFindings + 1);
  for (const config::Finding& finding : outcome.errors) {
    require(finding.line().find('\n') == std::string::npos);
  }
  if (!outcome.ok()) return 0;
  require(outcome.config->limits.size() <= outcome.config->capacity.limits);
  for (const rule::LimitSettings& limit : outcome.config->limits) {
    require(rule::check(limit).ok());
    require(outcome.config->find_limit(limit.name) == &limit);
  }
  require(config::hash_of(*outcome.config) == outcome.config->hash);
  require(config::reload_errors(*outcome.config, *outcome.config).empty());
  require(!config::show(*outcome.config).empty());
  return 0;
}
