// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ctl/breaker_text.hpp"
#include "ctl/commands.hpp"
#include "ctl/look.hpp"
#include "ctl/print.hpp"
#include "ctl/steer.hpp"
#include "ctl/table.hpp"
#include "ctl/text.hpp"
#include "wire/breaker_verbs.hpp"

namespace cutwater::ctl {
namespace {

/// The entries of a map, one after the other; those that are 0 are left out.
void add_counts(Lines& lines, const wire::Value* map) {
  if (map == nullptr || map->as_map() == nullptr) return;
  for (const auto& entry : *map->as_map()) {
    const auto count = entry.value.as_unsigned();
    if (!count || *count == 0) continue;
    std::string word = escape_short(entry.key);
    std::replace(word.begin(), word.end(), '_', ' ');
    lines.emplace_back(word, std::to_string(*count));
  }
}

std::string value_text(const wire::Value& value) {
  if (const std::string* text = value.as_string()) return escape_short(*text, 256);
  if (const auto truth = value.as_bool()) return *truth ? "true" : "false";
  if (const auto number = value.as_unsigned()) return std::to_string(*number);
  std::string out;
  if (const wire::Value::Array* list = value.as_array()) {
    for (const wire::Value& one : *list) out += (out.empty() ? "" : ", ") + value_text(one);
  }
  return "[" + out + "]";
}

void add_durations(Lines& lines, const wire::Value& row, const char* word, const char* key) {
  const wire::Value* found = row.find(key);
  if (found == nullptr) return;
  lines.emplace_back(word, std::to_string(number_at(*found, "calls")) + " calls, p50 " +
                               duration_text(number_at(*found, "p50_ns")) + ", p99 " +
                               duration_text(number_at(*found, "p99_ns")) + ", max " +
                               duration_text(number_at(*found, "max_ns")) +
                               (found->find("mean_ns") == nullptr
                                    ? std::string()
                                    : ", mean " + duration_text(number_at(*found, "mean_ns"))));
}

Lines figures(const wire::Value& row, bool colour) {
  Lines lines = {
      {"breaker", escape(text_at(row, "breaker"))},
      {"state", toned(breaker_state(row), breaker_tone(row), colour)},
      {"since", since_text(row)},
      {"answer", truth_at(row, "allowed")
                     ? "allowed"
                     : "refused: " + escape(text_at(row, "answer")) + ", " + retry_text(row)},
      {"window", escape(text_at(row, "window"))},
      {"in it", std::to_string(number_at(row, "calls")) + " calls, " +
                    std::to_string(number_at(row, "failures")) + " failed (" +
                    rate_cell(row, "failure_permille") + "), " +
                    std::to_string(number_at(row, "slow")) + " slow (" +
                    rate_cell(row, "slow_permille") + "), " +
                    std::to_string(number_at(row, "run")) + " failures in a row"},
  };
  if (row.find("window_span_ns") != nullptr) {
    lines.emplace_back("it spans", duration_text(number_at(row, "window_span_ns")));
  }
  lines.emplace_back("probes", std::to_string(number_at(row, "probes")) + " permitted, " +
                                   std::to_string(number_at(row, "probes_held")) + " out, " +
                                   std::to_string(number_at(row, "probes_spent")) + " back");
  std::string users = std::to_string(number_at(row, "users")) + " processes";
  if (number_at(row, "users_open") > 0) {
    users += ", " + std::to_string(number_at(row, "users_open")) + " of them open for themselves";
  }
  lines.emplace_back("users", users);
  if (number_at(row, "hanging") > 0) {
    lines.emplace_back("hanging", std::to_string(number_at(row, "hanging")) + " calls");
  }
  lines.emplace_back("epoch", std::to_string(number_at(row, "epoch")) + ", " +
                                  std::to_string(number_at(row, "attempts")) +
                                  " openings in a row");
  if (const wire::Value* act = row.find("act")) lines.emplace_back("by hand", act_words(*act));
  if (!text_at(row, "note").empty()) {
    lines.emplace_back("note", escape_short(text_at(row, "note"), 256));
  }
  return lines;
}

/// The document of one row, and Exit::Refused when a caller would be refused.
Exit print_row(const Settings& settings, const Look& look, const wire::Value& row,
               const std::string& text) {
  wire::Value document = look.document();
  for (const auto& entry : *row.as_map()) document.set(entry.key, entry.value);
  const Exit printed = print(settings, document, text);
  return printed == Exit::Ok && !truth_at(row, "allowed") ? Exit::Refused : printed;
}

}  // namespace

Exit run_breaker_list(const Settings& settings) {
  auto look = Look::open(settings);
  if (!look) return complain(settings, look.error());
  const auto rows = look->read("breakers");
  if (!rows) return complain(settings, rows.error());
  wire::Value document = look->document();
  document.set("breakers", wire::Value::Array(rows->begin(), rows->end()));
  return print(settings, document,
               rows->empty() ? "no breakers are configured\n"
                             : breaker_table(*rows).text(settings.colour));
}

Exit run_breaker_get(const Settings& settings, const std::string& name) {
  auto look = Look::open(settings);
  if (!look) return complain(settings, look.error());
  const auto row = look->read_named("breaker", name);
  if (!row) return complain(settings, row.error());

  std::string text = text_of(figures(*row, settings.colour));
  Lines counts, set;
  add_durations(counts, *row, "durations", "durations");
  add_durations(counts, *row, "last minute", "durations_minute");
  add_counts(counts, row->find("counters"));
  if (const wire::Value* classes = row->find("classes"); classes != nullptr && classes->as_map()) {
    for (const auto& entry : *classes->as_map()) {
      counts.emplace_back("failed: " + escape_short(entry.key), value_text(entry.value));
    }
  }
  if (!counts.empty()) text += "\nsince the memory was made\n" + text_of(counts);
  if (const wire::Value* map = row->find("settings"); map != nullptr && map->as_map() != nullptr) {
    for (const auto& entry : *map->as_map()) set.emplace_back(entry.key, value_text(entry.value));
  }
  for (const char* list : {"record", "ignore"}) {
    if (row->find(list) != nullptr) set.emplace_back(list, value_text(*row->find(list)));
  }
  text += "\nsettings\n" + text_of(set);
  return print_row(settings, *look, *row, text);
}

Exit run_breaker_explain(const Settings& settings, const std::string& name) {
  auto look = Look::open(settings);
  if (!look) return complain(settings, look.error());
  const auto row = look->read_named("breaker", name);
  if (!row) return complain(settings, row.error());
  const wire::Value* words = row->find("explain");
  if (words == nullptr || words->as_array() == nullptr || words->as_array()->empty()) {
    return complain(settings, Error{Errc::Protocol, "the daemon gave no words for it"});
  }
  std::string text = escape(name) + '\n';
  for (const wire::Value& line : *words->as_array()) {
    if (line.as_string() != nullptr) text += "  " + escape_short(*line.as_string(), 512) + '\n';
  }
  if (const wire::Value* act = row->find("act"); act != nullptr &&
                                                 text_at(*act, "state") == "stands") {
    text += "  by hand: " + act_words(*act) + '\n';
  }
  if (!truth_at(*row, "allowed")) text += "  a caller is refused now; " + retry_text(*row) + '\n';
  return print_row(settings, *look, *row, text);
}

Exit run_breaker_steer(const Settings& settings, const BreakerHand& act) {
  wire::Steer message;
  message.verb = act.verb;
  message.name = act.breaker;
  message.for_ns = act.for_ns;
  message.note = act.note;
  return steer(settings, message, "done");
}

}  // namespace cutwater::ctl
