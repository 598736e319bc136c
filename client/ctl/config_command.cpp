// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include "config/config.hpp"
#include "ctl/commands.hpp"
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

}  // namespace

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
