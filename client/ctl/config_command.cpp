// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>

#include "config/config.hpp"
#include "config/diff.hpp"
#include "config/problem.hpp"
#include "ctl/commands.hpp"
#include "ctl/daemon_file.hpp"
#include "ctl/held_by_hand.hpp"
#include "ctl/look.hpp"
#include "ctl/print.hpp"
#include "ctl/table.hpp"
#include "ctl/text.hpp"
#include "rows/config_report.hpp"
#include "rows/segment_rows.hpp"

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
std::map<std::string, std::string> running_values(const Rows& rows) {
  std::map<std::string, std::string> values;
  for (const wire::Value& row : rows) values.emplace(text_at(row, "path"), text_at(row, "value"));
  return values;
}

std::vector<Change> changes_between(std::map<std::string, std::string> running,
                                    const config::Config& next) {
  std::vector<Change> changes;
  for (const config::Value& value : next.values) {
    const auto found = running.find(value.path);
    if (found == running.end()) {
      changes.push_back(
          {value.path, "", value.text, config::where_text(value.place, next.file_name)});
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
  return print(settings, document, table_text(settings, table));
}

namespace {

/// Counts keys in debt in the memory, where this user may read it; else nobody knows.
config::KeysInDebt keys_in_debt(const Settings& settings) {
  const auto memory = open_memory(located(settings));
  if (!memory) return {};
  return [debts = rows::debts_by_limit(memory->segment.view())](
             std::string_view limit) -> std::optional<std::uint64_t> {
    const auto found = debts.find(std::string(limit));
    return found == debts.end() ? std::nullopt : std::optional(found->second);
  };
}

/// Into the document, and as text.
std::string add_held(wire::Value& document, const std::vector<std::string>& held) {
  std::string text;
  wire::Value::Array out;
  for (const std::string& line : held) {
    out.emplace_back(line);
    text += line + '\n';
  }
  document.set("held_by_hand", std::move(out));
  return text;
}

/// With both configurations whole: what changes, and what becomes of keys in debt.
Exit print_diff(const Settings& settings, wire::Value document, const config::Diff& diff,
                const std::vector<std::string>& held) {
  wire::Value::Array changes, limits, refused;
  for (const config::Change& change : diff.changes) {
    changes.push_back(wire::Value::map({{"path", change.path},
                                        {"now", change.before},
                                        {"then", change.after},
                                        {"from", change.after_origin},
                                        {"reload", std::string(1, change.reload)}}));
  }
  for (const config::LimitChange& limit : diff.limits) {
    wire::Value::Array words;
    for (const std::string& sentence : limit.words) words.emplace_back(sentence);
    wire::Value row = wire::Value::map({{"limit", limit.name}});
    row.set("words", std::move(words));
    if (limit.touched) row.set("keys_in_debt", *limit.touched);
    limits.push_back(std::move(row));
  }
  for (const config::Finding& finding : diff.refused) refused.push_back(row_of(finding));
  document.set("changes", std::move(changes));
  document.set("limits", std::move(limits));
  document.set("refused", std::move(refused));
  const std::string text = diff.text() + add_held(document, held);
  const Exit printed = print(settings, document, text);
  return printed == Exit::Ok && !diff.refused.empty() ? Exit::Invalid : printed;
}

/// By the daemon's answers alone: values by their paths.
Exit print_changes(const Settings& settings, wire::Value document,
                   const std::vector<Change>& changes,
                   const std::vector<config::Finding>& refused,
                   const std::vector<std::string>& held) {
  wire::Value::Array rows, errors;
  Table table({{"SETTING"}, {"NOW"}, {"THEN"}, {"FROM"}});
  for (const Change& change : changes) {
    rows.push_back(wire::Value::map({{"path", change.path},
                                     {"now", change.before},
                                     {"then", change.after},
                                     {"from", change.where}}));
    const auto shown = [](const std::string& text) {
      return text.empty() ? std::string("-") : escape_short(text, 256);
    };
    table.add(
        {escape(change.path), shown(change.before), shown(change.after), shown(change.where)});
  }
  document.set("changes", std::move(rows));
  std::string text = changes.empty() ? "nothing changes\n" : table_text(settings, table);
  for (const config::Finding& finding : refused) {
    errors.push_back(row_of(finding));
    text += finding.line() + '\n';
  }
  if (!refused.empty()) text += "a reload is refused as a whole; restart to take this over\n";
  document.set("refused", std::move(errors));
  text += add_held(document, held);
  const Exit printed = print(settings, document, text);
  return printed == Exit::Ok && !refused.empty() ? Exit::Invalid : printed;
}

}  // namespace

Exit run_config_diff(const Settings& settings, const std::string& file) {
  auto look = Look::open(settings);
  if (!look) return complain(settings, look.error());
  const auto rows = look->read("config");
  if (!rows) return complain(settings, rows.error());
  const config::Pairs told = told_beside(*rows);
  const config::LoadOutcome outcome = load_beside(file, told);
  if (!outcome.ok()) {
    return complain(settings, Error{Errc::InvalidConfig, outcome.report("nothing was compared")});
  }
  wire::Value document = look->document();
  document.set("file", file);
  const std::vector<std::string> held = held_by_hand(*look, *outcome.config);
  if (const auto running = running_config(*look, told)) {
    config::Diff diff = config::diff(*running, *outcome.config, running->capacity,
                                     keys_in_debt(settings));
    diff.refused = refusals(*running, *outcome.config);
    return print_diff(settings, std::move(document), diff, held);
  }
  note("the daemon's own file is not what it runs by any more (or cannot be read), so values are "
       "compared one by one, without what becomes of keys in debt");
  return print_changes(settings, std::move(document),
                       changes_between(running_values(*rows), *outcome.config),
                       refusals(values_config(*rows), *outcome.config), held);
}

Exit run_config_check(const Settings& settings, const std::string& file) {
  const config::LoadOutcome outcome =
      rows::fitting(config::load_file(file, config::system_options(::environ)));
  wire::Value document;
  document.set("file", file);
  document.set("ok", outcome.ok());
  wire::Value::Array errors, notes;
  for (const config::Finding& finding : outcome.errors) errors.push_back(row_of(finding));
  for (const config::Finding& finding : outcome.notes) notes.push_back(row_of(finding));
  document.set("errors", std::move(errors));
  document.set("notes", std::move(notes));

  std::string text = outcome.report("a daemon refuses this file");
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
    for (const auto& [name, bytes] : rows::reservations(rows::capacity_of(config))) {
      table.add({name, std::to_string(bytes), size_text(bytes)});
      memory.set(name, bytes);
    }
    document.set("memory_bytes", std::move(memory));
    text += table_text(settings, table);
    wire::Value needed(wire::Value::Map{});
    for (const rows::Needed& one : rows::needed_of(config, config.capacity)) {
      text += "needed: " + std::to_string(one.needed) + " of " + std::to_string(one.reserved) +
              " of capacity." + one.what + '\n';
      needed.set(one.what, one.needed);
    }
    document.set("needed", std::move(needed));
  }
  const Exit printed = print(settings, document, text);
  return printed == Exit::Ok && !outcome.ok() ? Exit::Invalid : printed;
}

}  // namespace cutwater::ctl
