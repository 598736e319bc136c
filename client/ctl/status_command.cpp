// SPDX-License-Identifier: Apache-2.0
#include "ctl/advice.hpp"
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

std::string daemon_text(const wire::Value& status, const Look& look) {
  std::string text = look.daemon();
  const std::uint64_t pid = number_at(status, "pid");
  if (pid != 0)
    text += (look.daemon() == "not running" ? ", was pid " : ", pid ") + std::to_string(pid);
  if (look.daemon() == "running" && status.find("uptime_ns") != nullptr) {
    text += ", up " + duration_text(number_at(status, "uptime_ns"));
  }
  return text;
}

std::string heading(const wire::Value& status, const Look& look, bool colour) {
  std::string out;
  const auto line = [&out](const char* word, const std::string& text) {
    out += word + std::string(12 - std::string_view(word).size(), ' ') + text + '\n';
  };
  const std::uint64_t slots = number_at(status, "slots");
  const std::uint64_t in_debt = number_at(status, "in_debt"), claims = number_at(status, "claims");
  line("instance", look.instance().empty() ? escape(look.place())
                                           : escape(look.instance()) + ", " + escape(look.place()));
  const std::string birth = text_at(status, "birth");
  if (!birth.empty()) {
    const std::string reason = text_at(status, "birth_reason");
    line("memory", size_text(number_at(status, "memory_bytes")) + ", " + escape(birth) +
                       (reason.empty() ? "" : ": " + escape_short(reason, 256)));
  }
  line("daemon", toned(daemon_text(status, look),
                       look.daemon() == "running" ? Tone::Good : Tone::Bad, colour));
  line("clock",
       escape(text_at(status, "clock")) + ", " + duration_text(number_at(status, "clock_ns")));
  line("rules", "generation " + count(status, "generation") + ", config " +
                    escape(text_at(status, "config_hash")));
  line("table", std::to_string(slots) + " slots, " + std::to_string(in_debt) + " in debt (" +
                    permille_text(share_permille(in_debt, slots)) + "), " + std::to_string(claims) +
                    " claims");
  line("clients", count(status, "clients") + " of " + count(status, "rows") + " rows");
  line("stripes", count(status, "stripes_used") + " of " + count(status, "stripes"));
  const std::string fault = text_at(status, "journal_fault");
  if (!fault.empty()) {
    line("journal", toned(count(status, "acts_unsaved") + " acts in force and NOT saved: " +
                              escape_short(fault, 256),
                          Tone::Bad, colour));
  }
  const wire::Value* open = status.find("not_protecting");
  if (open != nullptr && open->as_array() != nullptr) {
    std::string text;
    for (const wire::Value& one : *open->as_array()) {
      if (one.as_string() == nullptr) continue;
      text += (text.empty() ? "" : ", ") + escape_short(*one.as_string(), 128);
    }
    out += "not protecting: " + toned(text, Tone::Warn, colour) + '\n';
  }
  line("no place", count(status, "no_place"));
  line("damage", count(status, "damage"));
  return out;
}

Table counters_table(const Rows& counters) {
  using Align = Table::Align;
  Table table({{"LIMIT"},
               {"ALLOWED", Align::Right},
               {"REFUSED", Align::Right},
               {"TOKENS", Align::Right, 1},
               {"NO PLACE", Align::Right},
               {"DEGRADED", Align::Right},
               {"UNDONE", Align::Right, 3},
               {"WAITED", Align::Right, 2}});
  for (const wire::Value& row : counters) {
    const Tone tone = number_at(row, "no_place") > 0 ? Tone::Warn : Tone::Plain;
    table.add({escape(text_at(row, "limit")),
               count(row, "allowed"),
               count(row, "refused"),
               count(row, "tokens"),
               {count(row, "no_place"), tone},
               count(row, "degraded"),
               count(row, "undone"),
               count(row, "waited")});
  }
  return table;
}

/// Breakers that are not simply closed, and bulkheads that are full or over their limit.
Rows not_well(Look& look, const char* what) {
  Rows out;
  const auto rows = look.read_not_well(what);
  if (!rows) return out;  // a daemon that does not know them yet
  for (const wire::Value& row : *rows) {
    const bool breaker = row.find("breaker") != nullptr;
    const bool well = breaker ? breaker_tone(row) == Tone::Good && number_at(row, "users_open") == 0
                              : truth_at(row, "allowed") && number_at(row, "over") == 0;
    if (!well) out.push_back(row);
  }
  return out;
}

/// `fraud OPEN since 3.2s`, ...: a line each.
std::string trouble_text(const Rows& breakers, const Rows& bulkheads, bool colour) {
  std::string out;
  for (const wire::Value& row : breakers) {
    std::string text =
        escape(text_at(row, "breaker")) + " " + breaker_state(row) + ", " + since_text(row);
    if (!truth_at(row, "allowed")) text += ", " + retry_text(row);
    if (number_at(row, "users_open") > 0) {
      text += ", " + count(row, "users_open") + " of " + count(row, "users") +
              " processes open for themselves";
    }
    out += "breaker     " + toned(text, breaker_tone(row), colour) + '\n';
  }
  for (const wire::Value& row : bulkheads) {
    std::string text = escape(text_at(row, "bulkhead")) + " " + count(row, "in_use") + " of " +
                       counted(number_at(row, "limit"), "place") + " in use, " +
                       count(row, "waiting") +
                       " waiting";
    if (row.find("oldest_ns") != nullptr) {
      text += ", the oldest for " + duration_text(number_at(row, "oldest_ns"));
    }
    out += "bulkhead    " + toned(text, Tone::Bad, colour) + '\n';
  }
  return out;
}

}  // namespace

Exit run_status(const Settings& settings) {
  auto look = Look::open(settings);
  if (!look) return complain(settings, look.error());
  const auto status = look->read("status");
  if (!status) return complain(settings, status.error());
  const auto counters = look->read("counters");
  if (!counters) return complain(settings, counters.error());
  if (status->empty())
    return complain(settings, Error{Errc::Protocol, "the daemon gave no row for 'status'"});

  const wire::Value& row = status->front();
  wire::Value document = look->document();
  for (const auto& entry : *row.as_map()) document.set(entry.key, entry.value);
  document.set("fill_permille", share_permille(number_at(row, "in_debt"), number_at(row, "slots")));
  document.set("counters", wire::Value::Array(counters->begin(), counters->end()));
  std::string text = heading(row, *look, settings.colour);
  wire::Value::Array advice;
  for (const std::string& sentence : advice_for(row, look->daemon())) {
    text += toned("advice      " + sentence, Tone::Warn, settings.colour) + '\n';
    advice.emplace_back(sentence);
  }
  document.set("advice", std::move(advice));
  const Rows breakers = not_well(*look, "breakers"), bulkheads = not_well(*look, "bulkheads");
  document.set("breakers_not_closed", wire::Value::Array(breakers.begin(), breakers.end()));
  document.set("bulkheads_full", wire::Value::Array(bulkheads.begin(), bulkheads.end()));
  text += trouble_text(breakers, bulkheads, settings.colour);
  text +=
      counters->empty() ? "\nno limits\n" : '\n' + table_text(settings, counters_table(*counters));
  return print(settings, document, text);
}

Exit run_clients(const Settings& settings) {
  auto look = Look::open(settings);
  if (!look) return complain(settings, look.error());
  const auto rows = look->read("clients");
  if (!rows) return complain(settings, rows.error());

  wire::Value document = look->document();
  document.set("clients", wire::Value::Array(rows->begin(), rows->end()));
  using Align = Table::Align;
  Table table({{"ROW", Align::Right},
               {"PID", Align::Right},
               {"UID", Align::Right},
               {"KIND"},
               {"STATE"},
               {"MODE"},
               {"NAME"}});
  for (const wire::Value& row : *rows) {
    table.add({count(row, "row"), count(row, "pid"), count(row, "uid"),
               escape(text_at(row, "kind")), escape(text_at(row, "state")),
               row.find("mode") == nullptr ? "-" : escape(text_at(row, "mode")),
               escape_short(text_at(row, "name"))});
  }
  return print(settings, document,
               rows->empty() ? "no process is attached\n" : table_text(settings, table));
}

}  // namespace cutwater::ctl
