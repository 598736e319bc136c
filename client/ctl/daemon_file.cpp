// SPDX-License-Identifier: Apache-2.0
#include "ctl/daemon_file.hpp"

#include <unistd.h>

#include <cerrno>
#include <utility>

#include "ctl/print.hpp"
#include "ctl/text.hpp"
#include "rows/config_report.hpp"

namespace cutwater::ctl {

config::Pairs told_beside(const Rows& rows) {
  config::Pairs pairs;
  for (const wire::Value& row : rows) {
    const std::string origin = text_at(row, "origin");
    if (origin.starts_with("command line") || origin.starts_with("environment")) {
      pairs.emplace_back(text_at(row, "path"), text_at(row, "value"));
    }
  }
  return pairs;
}

config::LoadOutcome load_beside(const std::string& file, const config::Pairs& told) {
  config::LoadOptions options = config::system_options(::environ);
  options.environment.clear();
  options.settings = told;
  return config::load_file(file, options);
}

std::optional<config::Config> running_config(Look& look, const config::Pairs& told) {
  const auto status = look.read("status");
  if (!status || status->empty()) return std::nullopt;
  const std::string file = text_at(status->front(), "config_file");
  if (file.empty()) return std::nullopt;
  config::LoadOutcome outcome = load_beside(file, told);
  if (!outcome.ok() || hash_text(outcome.config->hash) != text_at(status->front(), "config_hash")) {
    return std::nullopt;
  }
  return std::move(outcome.config);
}

config::Config values_config(const Rows& rows) {
  config::LoadOptions options;
  for (const wire::Value& row : rows) {
    const std::string path = text_at(row, "path");
    if (path.starts_with("capacity.")) options.settings.emplace_back(path, text_at(row, "value"));
  }
  config::LoadOutcome reserved = config::load_text("", "running", options);
  config::Config out = reserved.ok() ? std::move(*reserved.config) : config::Config{};
  out.values.clear();
  for (const wire::Value& row : rows) {
    config::Value value;
    value.path = text_at(row, "path");
    value.text = text_at(row, "value");
    out.values.push_back(std::move(value));
  }
  return out;
}

std::vector<config::Finding> refusals(const config::Config& running, const config::Config& next) {
  std::vector<config::Finding> out = config::reload_errors(running, next);
  for (config::Finding& one : rows::fit_errors(next, running.capacity)) {
    if (out.empty() || out.back().path != one.path) out.push_back(std::move(one));
  }
  return out;
}

FileState look_at_file(Look& look, const wire::Value& status) {
  FileState state;
  const std::string file = text_at(status, "config_file");
  if (file.empty()) return state;
  if (::access(file.c_str(), R_OK) != 0 && errno == EACCES) return state;
  const auto rows = look.read("config");
  if (!rows) return state;
  state.file = file;
  const config::LoadOutcome outcome = rows::fitting(load_beside(file, told_beside(*rows)));
  for (const config::Finding& one : outcome.errors) state.errors.push_back(one.line());
  if (!outcome.ok()) return state;
  state.changed = hash_text(outcome.config->hash) != text_at(status, "config_hash");
  if (!state.changed) return state;
  for (const config::Finding& one : refusals(values_config(*rows), *outcome.config)) {
    state.refused.push_back(one.line());
  }
  return state;
}

}  // namespace cutwater::ctl
