// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ctl/answer.hpp"
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

/// From so many users on each is counted by itself.
constexpr std::uint64_t kCountedUsers = 3;

/// ": pid 7, pid 9" of the few that are not counted by themselves.
std::string pids_text(const wire::Value& row) {
  const wire::Value* list = row.find("processes");
  if (list == nullptr || list->as_array() == nullptr) return {};
  if (number_at(row, "users") >= kCountedUsers) return {};
  std::string out;
  for (const wire::Value& one : *list->as_array()) {
    if (one.find("pid") == nullptr) continue;
    out += (out.empty() ? ": pid " : ", pid ") + std::to_string(number_at(one, "pid"));
  }
  return out;
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
      {"in it", counts_text(row)},
  };
  if (std::string span = span_text(row); !span.empty()) {
    lines.emplace_back("it spans", std::move(span));
  }
  if (std::string would = would_open_text(row); !would.empty()) {
    lines.emplace_back("would open", std::move(would));
  }
  lines.emplace_back("probes", std::to_string(number_at(row, "probes")) + " permitted, " +
                                   std::to_string(number_at(row, "probes_held")) + " out, " +
                                   std::to_string(number_at(row, "probes_spent")) + " back");
  std::string users = counted(number_at(row, "users"), "process", "processes") + pids_text(row);
  if (number_at(row, "users_open") > 0) {
    users += ", " + std::to_string(number_at(row, "users_open")) + " of them open for themselves";
  }
  lines.emplace_back("users", users);
  if (number_at(row, "hanging") > 0) {
    lines.emplace_back("hanging", counted(number_at(row, "hanging"), "call"));
  }
  lines.emplace_back("epoch", std::to_string(number_at(row, "epoch")) + ", " +
                                  counted(number_at(row, "attempts"), "opening") + " in a row");
  if (const wire::Value* act = row.find("act")) lines.emplace_back("by hand", act_words(*act));
  if (!text_at(row, "note").empty()) {
    lines.emplace_back("note", escape_short(text_at(row, "note"), 256));
  }
  return lines;
}

/// How often it moved where and why, and how long it was in which state.
void add_history(Lines& lines, const wire::Value& row) {
  const wire::Value* moves = row.find("transitions");
  if (moves != nullptr && moves->as_array() != nullptr) {
    for (const wire::Value& move : *moves->as_array()) {
      lines.emplace_back(
          escape(text_at(move, "from")) + " -> " + escape(text_at(move, "to")),
          std::to_string(number_at(move, "count")) + ", " + escape(text_at(move, "reason")));
    }
  }
  const wire::Value* times = row.find("time_in_state_ns");
  if (times == nullptr || times->as_map() == nullptr) return;
  for (const auto& entry : *times->as_map()) {
    lines.emplace_back("in " + escape_short(entry.key),
                       duration_text(entry.value.as_unsigned().value_or(0)));
  }
}

/// One line for each process, once three use it: before that nothing is counted for one alone.
std::string processes_text(const wire::Value& row, bool colour) {
  const wire::Value* list = row.find("processes");
  if (list == nullptr || list->as_array() == nullptr) return {};
  if (number_at(row, "users") < kCountedUsers) return {};
  using Align = Table::Align;
  Table table({{"PID", Align::Right},
               {"CALLS", Align::Right},
               {"FAILED", Align::Right},
               {"SLOW", Align::Right},
               {"IN A ROW", Align::Right},
               {"FOR ITSELF"}});
  for (const wire::Value& one : *list->as_array()) {
    const bool open = truth_at(one, "open");
    const std::string pid =
        one.find("pid") == nullptr ? "-" : std::to_string(number_at(one, "pid"));
    table.add({truth_at(one, "forked") ? pid + " (child)" : pid,
               std::to_string(number_at(one, "calls")),
               std::to_string(number_at(one, "failures")),
               std::to_string(number_at(one, "slow")),
               std::to_string(number_at(one, "run")),
               {open ? "open, " + duration_text(number_at(one, "retry_after_ns")) + " left" : "-",
                open ? Tone::Bad : Tone::Plain}});
  }
  return "\n" + table.text(colour);
}

}  // namespace

Exit run_breaker_list(const Settings& settings) {
  auto look = Look::open(settings);
  if (!look) return complain(settings, look.error());
  const auto rows = look->read("breakers");
  if (!rows) return complain(settings, rows.error());
  wire::Value document = look->document();
  document.set("breakers", wire::Value::Array(rows->begin(), rows->end()));
  return print(
      settings, document,
      rows->empty() ? "no breakers are configured\n" : table_text(settings, breaker_table(*rows)));
}

Exit run_breaker_get(const Settings& settings, const std::string& name) {
  auto look = Look::open(settings);
  if (!look) return complain(settings, look.error());
  const auto row = look->read_named("breaker", name);
  if (!row) return complain(settings, row.error());

  std::string text = text_of(figures(*row, settings.colour));
  Lines counts, set;
  if (row->find("measured") != nullptr && !truth_at(*row, "measured")) {
    counts.emplace_back("measured", "no: without slow-call-rate-threshold only the durations that "
                                    "callers give are known");
  }
  add_durations(counts, *row, "durations", "durations");
  add_durations(counts, *row, "last minute", "durations_minute");
  add_counts(counts, row->find("counters"));
  if (const wire::Value* classes = row->find("classes"); classes != nullptr && classes->as_map()) {
    for (const auto& entry : *classes->as_map()) {
      counts.emplace_back("failed: " + escape_short(entry.key), value_text(entry.value));
    }
  }
  add_history(counts, *row);
  if (!counts.empty()) text += "\nsince the memory was made\n" + text_of(counts);
  text += processes_text(*row, settings.colour);
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
  const auto words = explained_text(*row, name);
  if (!words) return complain(settings, words.error());
  std::string text = *words;
  if (const wire::Value* act = row->find("act");
      act != nullptr && text_at(*act, "state") == "stands") {
    text += "  by hand: " + act_words(*act) + '\n';
  }
  if (!truth_at(*row, "allowed")) text += "  a caller is refused now; " + retry_text(*row) + '\n';
  return print_row(settings, *look, *row, text);
}

Exit run_breaker_why(const Settings& settings, const std::string& name, std::uint64_t last) {
  auto look = Look::open(settings);
  if (!look) return complain(settings, look.error());
  const auto trips = look->read_trips(name, static_cast<std::uint32_t>(last));
  if (!trips) return complain(settings, trips.error());
  wire::Value document = look->document();
  if (!name.empty()) document.set("breaker", name);
  document.set("trips", wire::Value::Array(trips->begin(), trips->end()));
  std::string text;
  for (const wire::Value& trip : *trips) text += (text.empty() ? "" : "\n") + trip_text(trip);
  if (text.empty()) {
    text = (name.empty() ? "no breaker has opened" : escape(name) + " has not opened") +
           " by itself since the memory was made\n";
  }
  return print(settings, document, text);
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
