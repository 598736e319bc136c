// SPDX-License-Identifier: Apache-2.0
// What the tests of the configuration share: loading a text under the name cutwater.yaml.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "config/config.hpp"

namespace cutwater::config {

inline LoadOutcome load(std::string_view text, const LoadOptions& options = {}) {
  return load_text(text, "cutwater.yaml", options);
}

/// The lines of the errors of a text that must be refused.
inline std::vector<std::string> errors_of(std::string_view text, const LoadOptions& options = {}) {
  const LoadOutcome outcome = load(text, options);
  EXPECT_FALSE(outcome.ok()) << text;
  std::vector<std::string> lines;
  for (const Finding& finding : outcome.errors) lines.push_back(finding.line());
  return lines;
}

/// The settings of a text that must be accepted.
inline Config config_of(std::string_view text, const LoadOptions& options = {}) {
  LoadOutcome outcome = load(text, options);
  EXPECT_TRUE(outcome.ok()) << outcome.report();
  return outcome.ok() ? std::move(*outcome.config) : Config{};
}

using Lines = std::vector<std::string>;

}  // namespace cutwater::config
