// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <map>

#include "config/config.hpp"
#include "config/problem.hpp"
#include "ctl/commands.hpp"
#include "ctl/look.hpp"
#include "ctl/print.hpp"
#include "ctl/table.hpp"
#include "ctl/text.hpp"
#include "rows/config_report.hpp"

namespace cutwater::ctl {
namespace {

wire::Value row_of(const config::Finding& finding) {
  return wire::Value::map(
      {{"where", finding.where}, {"path", finding.path}, {"text", finding.text}});
}

/// One setting that a file would change.
struct Change {
  std::string path, before, after;  ///< empty: not there
  std::string where;                ///< of the new value
};

/// The running settings by path.
Result<std::map<std::string, std::string>> running_values(Look& look) {
  const auto rows = look.read("config");
  if (!rows) return rows.error();
  std::map<std::string, std::string> values;
  for (const wire::Value& row : *rows) values.emplace(text_at(row, "path"), text_at(row, "value"));
  return values;
}

std::vector<Change> changes_between(std::map<std::string, std::string> running,
                                    const config::Config& next) {
  std::vector<Change> changes;
  for (const config::Value& value : next.values) {
    const auto found = running.find(value.path);
    if (found == running.end()) {
      changes.push_back({value.path, "", value.text, config::where_text(value.place, next.file_name)});
      continue;
    }
    if (found->second != value.text) {
      changes.push_back({value.path, found->second, value.text,
                         config::where_text(value.place, next.file_name)});
    }
    running.erase(found);
  }
  for (const auto& [path, text] : running) changes.push_back({path, text, "", ""});
  std::stable_sort(changes.begin(), changes.end(),
                   [](const Change& a, const Change& b) { return a.path < b.path; });
  return changes;
}

}  // namespace

Exit run_config_show(const Settings& settings) {
  auto look = Look::open(settings);
  if (!look) return complain(settings, look.error());
  const auto rows = look->read("config");
  if (!rows) return complain(settings, rows.error());

  wire::Value document = look->document();
  document.set("config", wire::Value::Array(rows->begin(), rows->end()));
  Table table({{"SETTING"}, {"VALUE"}, {"FROM"}});
  for (const wire::Value& row : *rows) {
    table.add({escape(text_at(row, "path")), escape_short(text_at(row, "value"), 256),
               escape_short(text_at(row, "origin"), 256)});
  }
  return print(settings, document, table.text(settings.colour));
}

Exit run_config_diff(const Settings& settings, const std::string& file) {
  const config::LoadOutcome outcome = config::load_file(file, config::system_options(::environ));
  if (!outcome.ok()) {
    return complain(settings, Error{Errc::InvalidConfig, outcome.report("nothing was compared")});
  }
  auto look = Look::open(settings);
  if (!look) return complain(settings, look.error());
  auto running = running_values(*look);
  if (!running) return complain(settings, running.error());
  const std::vector<Change> changes = changes_between(std::move(*running), *outcome.config);

  wire::Value document = look->document();
  document.set("file", file);
  wire::Value::Array rows;
  Table table({{"SETTING"}, {"NOW"}, {"THEN"}, {"FROM"}});
  for (const Change& change : changes) {
    rows.push_back(wire::Value::map({{"path", change.path},
                                     {"now", change.before},
                                     {"then", change.after},
                                     {"from", change.where}}));
    const auto shown = [](const std::string& text) {
      return text.empty() ? std::string("-") : escape_short(text, 256);
    };
    table.add({escape(change.path), shown(change.before), shown(change.after), shown(change.where)});
  }
  document.set("changes", std::move(rows));
  return print(settings, document,
               changes.empty() ? escape(file) + " changes nothing\n" : table.text(settings.colour));
}

Exit run_config_check(const Settings& settings, const std::string& file) {
  const config::LoadOutcome outcome = config::load_file(file, config::system_options(::environ));
  wire::Value document;
  document.set("file", file);
  document.set("ok", outcome.ok());
  wire::Value::Array errors, notes;
  for (const config::Finding& finding : outcome.errors) errors.push_back(row_of(finding));
  for (const config::Finding& finding : outcome.notes) notes.push_back(row_of(finding));
  document.set("errors", std::move(errors));
  document.set("notes", std::move(notes));

  std::string text = outcome.report("nothing was changed");
  if (!text.empty() && text.back() != '\n') text += '\n';
  for (const config::Finding& finding : outcome.notes) text += "note: " + finding.line() + '\n';
  if (outcome.ok()) {
    const config::Config& config = *outcome.config;
    document.set("limits", config.limits.size());
    document.set("config_hash", hash_text(config.hash));
    text += escape(file) + ": good, " + std::to_string(config.limits.size()) + " limits, config " +
            hash_text(config.hash) + "\n\n";
    Table table({{"MEMORY"}, {"BYTES", Table::Align::Right}, {"", Table::Align::Right}});
    wire::Value memory;
    for (const auto& [name, bytes] : rows::reservations(rows::capacity_of(config.capacity))) {
      table.add({name, std::to_string(bytes), size_text(bytes)});
      memory.set(name, bytes);
    }
    document.set("memory_bytes", std::move(memory));
    text += table.text(settings.colour);
  }
  const Exit printed = print(settings, document, text);
  return printed == Exit::Ok && !outcome.ok() ? Exit::Invalid : printed;
}

}  // namespace cutwater::ctl
