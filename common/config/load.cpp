// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <tuple>
#include <utility>

#include "config/config.hpp"
#include "config/override.hpp"
#include "config/problem.hpp"
#include "config/reader.hpp"
#include "config/tree.hpp"

namespace cutwater::config {

LoadOutcome load_text(std::string_view text, std::string file_name, const LoadOptions& options) {
  LoadOutcome outcome;
  ParsedTree parsed = parse_tree(text);
  if (parsed.fault) {
    outcome.errors = to_findings({*parsed.fault}, file_name);
    return outcome;
  }
  std::vector<Problem> errors;
  apply_overrides(parsed.tree, options, errors);
  Reader reader(parsed.tree, options);
  reader.read();
  errors.insert(errors.end(), reader.errors().begin(), reader.errors().end());
  outcome.errors = to_findings(std::move(errors), file_name);
  outcome.notes = to_findings(std::move(reader.notes()), file_name);
  if (!outcome.errors.empty()) return outcome;
  Config config = std::move(reader.config());
  if (!config.instance.enabled) {
    for (rule::BreakerSettings& breaker : config.breakers) breaker.enabled = false;
    for (rule::BulkheadSettings& bulkhead : config.bulkheads) bulkhead.enabled = false;
  }
  config.access.daemon_uid = options.daemon_uid;
  config.file_name = std::move(file_name);
  config.hash = hash_of(config);
  outcome.config = std::move(config);
  return outcome;
}

std::string LoadOutcome::report(std::string_view ending) const {
  std::string out;
  for (const Finding& finding : errors) {
    out += finding.line();
    out += '\n';
  }
  if (errors.empty()) return out;
  out += std::to_string(errors.size()) + (errors.size() == 1 ? " error; " : " errors; ");
  out += ending;
  return out;
}

Result<Config> to_result(LoadOutcome outcome) {
  if (outcome.config) return std::move(*outcome.config);
  return Error(Errc::InvalidConfig, outcome.report());
}

std::string Finding::line() const {
  std::string out = where;
  for (const std::string* part : {&path, &text}) {
    if (part->empty()) continue;
    if (!out.empty()) out += ": ";
    out += *part;
  }
  return out;
}

std::string where_text(const Place& place, std::string_view file_name) {
  switch (place.source) {
    case Source::Default: return std::string(file_name);
    case Source::File:
      return std::string(file_name) + ":" + std::to_string(place.line) + ":" +
             std::to_string(place.column);
    case Source::Environment: return "environment " + place.name;
    case Source::CommandLine: return "command line --set " + place.name;
    case Source::Preset: return "preset " + place.name;
  }
  return {};
}

std::vector<Finding> to_findings(std::vector<Problem> problems, std::string_view file_name) {
  std::stable_sort(problems.begin(), problems.end(), [](const Problem& a, const Problem& b) {
    return std::tie(a.place.source, a.place.line, a.place.column) <
           std::tie(b.place.source, b.place.line, b.place.column);
  });
  std::vector<Finding> findings;
  for (Problem& problem : problems) {
    if (findings.size() == kMaxFindings) {
      findings.push_back({std::string(file_name), {},
                          "and " + std::to_string(problems.size() - kMaxFindings) + " more"});
      break;
    }
    findings.push_back({where_text(problem.place, file_name), std::move(problem.path),
                        std::move(problem.text)});
  }
  return findings;
}

}  // namespace cutwater::config
