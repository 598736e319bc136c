// SPDX-License-Identifier: Apache-2.0
#include "ctl/answer.hpp"
#include "ctl/breaker_text.hpp"
#include "ctl/commands.hpp"
#include "ctl/look.hpp"
#include "ctl/print.hpp"
#include "ctl/table.hpp"
#include "ctl/text.hpp"

namespace cutwater::ctl {
namespace {

std::string count(const wire::Value& row, const char* key) {
  return std::to_string(number_at(row, key));
}

/// p50 or p99 of `held` or `waited`; `-`: nobody has yet.
std::string time_cell(const wire::Value& row, const char* map, const char* key) {
  const wire::Value* times = row.find(map);
  return times == nullptr ? "-" : duration_text(number_at(*times, key));
}

std::string oldest_cell(const wire::Value& row) {
  return row.find("oldest_ns") == nullptr ? "-" : duration_text(number_at(row, "oldest_ns"));
}

Tone tone_of(const wire::Value& row) {
  if (!truth_at(row, "enabled")) return Tone::Warn;
  return truth_at(row, "allowed") ? Tone::Plain : Tone::Bad;
}

Lines figures(const wire::Value& row, bool colour) {
  std::string use = count(row, "in_use") + " of " + counted(number_at(row, "limit"), "place");
  if (number_at(row, "over") > 0) use += ", " + count(row, "over") + " over the limit";
  Lines lines = {{"bulkhead", escape(text_at(row, "bulkhead"))},
                 {"in use", toned(use, tone_of(row), colour)},
                 {"waiting", count(row, "waiting") + ", at most " + count(row, "max_waiting")}};
  std::string oldest = oldest_cell(row);
  if (row.find("oldest_pid") != nullptr) oldest += ", by pid " + count(row, "oldest_pid");
  lines.emplace_back("oldest", oldest);
  lines.emplace_back("answer",
                     truth_at(row, "allowed")
                         ? "allowed"
                         : "refused: " + escape(text_at(row, "answer")) + ", " + retry_text(row));
  const std::uint64_t wait = number_at(row, "max_wait_ns"), hold = number_at(row, "max_hold_ns");
  lines.emplace_back("max-wait", wait == ~std::uint64_t{0} ? "forever" : duration_text(wait));
  lines.emplace_back("max-hold", hold == 0 ? "off" : duration_text(hold));
  if (!truth_at(row, "enabled")) lines.emplace_back("enabled", "no: everybody passes");
  if (!text_at(row, "note").empty()) {
    lines.emplace_back("note", escape_short(text_at(row, "note"), 256));
  }
  return lines;
}

}  // namespace

Exit run_bulkhead_list(const Settings& settings) {
  auto look = Look::open(settings);
  if (!look) return complain(settings, look.error());
  const auto rows = look->read("bulkheads");
  if (!rows) return complain(settings, rows.error());

  wire::Value document = look->document();
  document.set("bulkheads", wire::Value::Array(rows->begin(), rows->end()));
  using Align = Table::Align;
  Table table({{"BULKHEAD"},
               {"IN USE", Align::Right},
               {"LIMIT", Align::Right},
               {"WAITING", Align::Right},
               {"OVER", Align::Right, 5},
               {"OLDEST", Align::Right, 1},
               {"HELD P50<=", Align::Right, 3},
               {"HELD P99<=", Align::Right, 2},
               {"WAITED P50<=", Align::Right, 6},
               {"WAITED P99<=", Align::Right, 4}});
  for (const wire::Value& row : *rows) {
    table.add({escape(text_at(row, "bulkhead")),
               {count(row, "in_use"), tone_of(row)},
               truth_at(row, "enabled") ? count(row, "limit") : "off",
               count(row, "waiting"),
               count(row, "over"),
               oldest_cell(row),
               time_cell(row, "held", "p50_ns"),
               time_cell(row, "held", "p99_ns"),
               time_cell(row, "waited", "p50_ns"),
               time_cell(row, "waited", "p99_ns")});
  }
  return print(settings, document,
               rows->empty() ? "no bulkheads are configured\n" : table_text(settings, table));
}

Exit run_bulkhead_get(const Settings& settings, const std::string& name) {
  auto look = Look::open(settings);
  if (!look) return complain(settings, look.error());
  const auto row = look->read_named("bulkhead", name);
  if (!row) return complain(settings, row.error());

  Lines counts;
  add_durations(counts, *row, "held", "held");
  add_durations(counts, *row, "waited for", "waited");
  add_counts(counts, row->find("counters"));
  std::string text = text_of(figures(*row, settings.colour));
  if (!counts.empty()) text += "\nsince the memory was made\n" + text_of(counts);
  return print_row(settings, *look, *row, text);
}

Exit run_bulkhead_explain(const Settings& settings, const std::string& name) {
  auto look = Look::open(settings);
  if (!look) return complain(settings, look.error());
  const auto row = look->read_named("bulkhead", name);
  if (!row) return complain(settings, row.error());
  const auto text = explained_text(*row, name);
  if (!text) return complain(settings, text.error());
  return print_row(settings, *look, *row, *text);
}

}  // namespace cutwater::ctl
