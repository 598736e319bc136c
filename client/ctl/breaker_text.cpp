// SPDX-License-Identifier: Apache-2.0
#include "ctl/breaker_text.hpp"

#include "ctl/print.hpp"
#include "ctl/text.hpp"

namespace cutwater::ctl {

Table breaker_table(const Rows& rows) {
  using Align = Table::Align;
  Table table({{"BREAKER"},
               {"STATE"},
               {"SINCE", Align::Right},
               {"FAILURE", Align::Right},
               {"SLOW", Align::Right},
               {"CALLS", Align::Right},
               {"PROBES", Align::Right},
               {"USERS", Align::Right},
               {"EPOCH", Align::Right},
               {"RETRY", Align::Right}});
  for (const wire::Value& row : rows) {
    const bool half_open = text_at(row, "state") == "HALF_OPEN";
    std::string users = std::to_string(number_at(row, "users"));
    const std::uint64_t open = number_at(row, "users_open");
    if (open > 0) users += " (" + std::to_string(open) + " open)";
    const std::string probes =
        half_open ? std::to_string(number_at(row, "probes_spent")) + "+" +
                        std::to_string(number_at(row, "probes_held")) + "/" +
                        std::to_string(number_at(row, "probes"))
                  : "-";
    const bool known = row.find("since_ns") != nullptr;
    table.add({escape(text_at(row, "breaker")),
               {breaker_state(row), breaker_tone(row)},
               known ? duration_text(number_at(row, "since_ns")) : "-",
               rate_cell(row, "failure_permille"),
               rate_cell(row, "slow_permille"),
               std::to_string(number_at(row, "calls")),
               probes,
               users,
               std::to_string(number_at(row, "epoch")),
               truth_at(row, "allowed") ? "-" : duration_text(number_at(row, "retry_after_ns"))});
  }
  return table;
}

std::string breaker_state(const wire::Value& row) {
  std::string text = escape(text_at(row, "state"));
  if (row.find("enabled") != nullptr && !truth_at(row, "enabled")) return text + " (switched off)";
  if (truth_at(row, "ready")) return text + ", " + escape(text_at(row, "next")) + " ready";
  return truth_at(row, "ramping") ? text + ", ramping" : text;
}

Tone breaker_tone(const wire::Value& row) {
  if (!truth_at(row, "allowed")) return Tone::Bad;
  const bool plain = text_at(row, "state") == "CLOSED" && !truth_at(row, "ramping") &&
                     (row.find("enabled") == nullptr || truth_at(row, "enabled"));
  return plain ? Tone::Good : Tone::Warn;
}

std::string since_text(const wire::Value& row) {
  std::string text = row.find("since_ns") == nullptr
                         ? std::string("-")
                         : duration_text(number_at(row, "since_ns")) + " ago";
  const std::string reason = text_at(row, "reason");
  if (!reason.empty() && reason != "none") text += ", " + escape(reason);
  if (row.find("expires_ns") != nullptr) {
    text += ", for " + duration_text(number_at(row, "expires_ns")) + " more";
  }
  return text;
}

std::string retry_text(const wire::Value& row) {
  const std::uint64_t wait = number_at(row, "retry_after_ns");
  if (wait == ~std::uint64_t{0}) return "only a change by hand helps";
  return std::string("come back in ") + (truth_at(row, "hint") ? "about " : "") +
         duration_text(wait);
}

std::string rate_cell(const wire::Value& row, const char* key) {
  return row.find(key) == nullptr ? "-" : permille_text(number_at(row, key));
}

std::string act_words(const wire::Value& act) {
  std::string text = escape(text_at(act, "to"));
  if (text_at(act, "to").empty()) text = escape(text_at(act, "do"));
  const std::uint64_t until = number_at(act, "until_s");
  const std::string state = text_at(act, "state");
  if (state == "stands" || state == "configuration") {
    text += until == 0 ? " until undone" : " until " + moment_text(until);
  } else {
    text += ", " + escape(state) + " " + moment_text(number_at(act, "ended_s"));
  }
  const std::string note = text_at(act, "note");
  if (act.find("id") != nullptr) {
    text += " (act " + std::to_string(number_at(act, "id")) + " of " +
            escape_short(text_at(act, "who"));
  } else {
    text += " (by the configuration";
  }
  return text + (note.empty() ? "" : ": " + escape_short(note, 256)) + ")";
}

}  // namespace cutwater::ctl
