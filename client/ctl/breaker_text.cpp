// SPDX-License-Identifier: Apache-2.0
#include "ctl/breaker_text.hpp"

#include <algorithm>
#include <vector>

#include "ctl/print.hpp"
#include "ctl/text.hpp"

namespace cutwater::ctl {

Table breaker_table(const Rows& rows) {
  using Align = Table::Align;
  Table table({{"BREAKER"},
               {"STATE"},
               {"SINCE", Align::Right, 1},
               {"FAILURE", Align::Right},
               {"SLOW", Align::Right, 2},
               {"CALLS", Align::Right},
               {"PROBES", Align::Right, 3},
               {"USERS", Align::Right, 4},
               {"EPOCH", Align::Right, 5},
               {"RETRY", Align::Right}});
  for (const wire::Value& row : rows) {
    const bool half_open = text_at(row, "state") == "HALF_OPEN";
    std::string users = std::to_string(number_at(row, "users"));
    const std::uint64_t open = number_at(row, "users_open");
    if (open > 0) users += " (" + std::to_string(open) + " open)";
    const std::string probes = half_open ? std::to_string(number_at(row, "probes_spent")) + "+" +
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

std::string reason_text(const wire::Value& row) {
  std::string text = text_at(row, "reason");
  if (text == "consecutive") return "failures in a row";
  std::replace(text.begin(), text.end(), '_', ' ');
  return escape(text);
}

std::string counts_text(const wire::Value& row) {
  const auto rate = [&row](const char* key) {
    return row.find(key) == nullptr ? std::string() : " (" + rate_cell(row, key) + ")";
  };
  return counted(number_at(row, "calls"), "call") + ", " +
         std::to_string(number_at(row, "failures")) + " failed" + rate("failure_permille") + ", " +
         std::to_string(number_at(row, "slow")) + " slow" + rate("slow_permille") + run_text(row);
}

std::string since_text(const wire::Value& row) {
  std::string text = row.find("since_ns") == nullptr
                         ? std::string("-")
                         : duration_text(number_at(row, "since_ns")) + " ago";
  const std::string reason = text_at(row, "reason");
  if (!reason.empty() && reason != "none") text += ", " + reason_text(row);
  if (row.find("expires_ns") != nullptr) {
    const std::uint64_t left = number_at(row, "expires_ns");
    text += left == 0 ? ", its time is over: the next call moves it"
                      : ", for " + duration_text(left) + " more";
  }
  return text;
}

std::string retry_text(const wire::Value& row) {
  const std::uint64_t wait = number_at(row, "retry_after_ns");
  if (wait == ~std::uint64_t{0}) return "only a change by hand helps";
  return std::string("come back in ") + (truth_at(row, "hint") ? "about " : "") +
         duration_text(wait);
}

std::string run_text(const wire::Value& row) {
  if (row.find("run") == nullptr) return {};
  return ", " + counted(number_at(row, "run"), "failure") + " in a row";
}

std::string span_text(const wire::Value& row) {
  if (row.find("window_span_ns") == nullptr) return {};
  const std::uint64_t span = number_at(row, "window_span_ns");
  const wire::Value* set = row.find("settings");
  if (set == nullptr) return duration_text(span);
  if (text_at(*set, "sliding-window-type") == "COUNT_BASED") {
    return "about " + duration_text(span) + " (by the outcomes of the last minute)";
  }
  // A call leaves with its slot.
  const std::uint64_t slots = number_at(*set, "sliding-window-slots", 1);
  if (slots <= 1) return "up to " + duration_text(span);
  return duration_text(span - span / slots) + " to " + duration_text(span);
}

std::string would_open_text(const wire::Value& row) {
  const wire::Value* would = row.find("would_open");
  if (would == nullptr) return {};
  const std::string now = text_at(*would, "now"), first = text_at(*would, "first");
  std::string text = now.empty() ? "not now" : "now: " + escape(now);
  if (!first.empty()) {
    text += "; first " + duration_text(number_at(*would, "first_ns")) + " ago: " + escape(first);
  }
  return text;
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
  lines.emplace_back(word,
                     counted(number_at(*found, "calls"), "call") + ", p50 <= " +
                         duration_text(number_at(*found, "p50_ns")) + ", p99 <= " +
                         duration_text(number_at(*found, "p99_ns")) + ", max <= " +
                         duration_text(number_at(*found, "max_ns")) +
                         (number_at(*found, "mean_ns") == 0
                              ? std::string()
                              : ", mean " + duration_text(number_at(*found, "mean_ns"))) +
                         (found->find("span_ns") == nullptr
                              ? std::string()
                              : ", of the last " + duration_text(number_at(*found, "span_ns"))));
}

namespace {

/// `timeout 5, http-5xx 1`.
std::string listed(const wire::Value* map) {
  std::string out;
  if (map == nullptr || map->as_map() == nullptr) return out;
  for (const auto& entry : *map->as_map()) {
    out += (out.empty() ? "" : ", ") + escape_short(entry.key) + " " + value_text(entry.value);
  }
  return out;
}

/// Each process once, in the order given: one that opened several clients has a row for each.
std::string contributors(const wire::Value* list) {
  struct Share {
    std::string who;
    std::uint64_t failures = 0, slow = 0;
  };
  std::vector<Share> shares;
  if (list == nullptr || list->as_array() == nullptr) return {};
  for (const wire::Value& one : *list->as_array()) {
    const std::uint64_t pid = number_at(one, "pid"), row = number_at(one, "row");
    const std::string who = pid != 0   ? "pid " + std::to_string(pid)
                            : row != 0 ? "row " + std::to_string(row)
                                       : "callers without a row";
    auto at = std::find_if(shares.begin(), shares.end(),
                           [&who](const Share& share) { return share.who == who; });
    if (at == shares.end()) at = shares.insert(at, {who});
    at->failures += number_at(one, "failures");
    at->slow += number_at(one, "slow");
  }
  std::string out;
  for (const Share& share : shares) {
    out += (out.empty() ? "" : "; ") + share.who + ": " + std::to_string(share.failures) +
           " failed";
    if (share.slow > 0) out += ", " + std::to_string(share.slow) + " slow";
  }
  return out;
}

/// What could open it, as it was set then.
std::string thresholds(const wire::Value* settings) {
  constexpr const char* kShown[] = {
      "sliding-window-type",     "sliding-window-size",      "minimum-number-of-calls",
      "failure-rate-threshold",  "slow-call-rate-threshold", "slow-call-duration-threshold",
      "failure-count-threshold", "consecutive-failures",     "wait-duration-in-open-state"};
  std::string out;
  for (const char* key : kShown) {
    const wire::Value* value = settings == nullptr ? nullptr : settings->find(key);
    if (value == nullptr || (value->as_string() != nullptr && *value->as_string() == "off"))
      continue;
    out += (out.empty() ? "" : ", ") + std::string(key) + ": " + value_text(*value);
  }
  return out;
}

}  // namespace

std::string trip_text(const wire::Value& trip) {
  const auto count = [&](const char* key) { return std::to_string(number_at(trip, key)); };
  std::string head =
      escape(text_at(trip, "breaker")) + " opened " + moment_ms_text(number_at(trip, "unix_ms")) +
      ", " + duration_text(number_at(trip, "ago_ns")) + " ago: " + reason_text(trip) +
      ", for " + duration_text(number_at(trip, "wait_ns"));
  if (number_at(trip, "attempts") > 1) head += ", opening " + count("attempts") + " in a row";
  Lines lines = {{"  window", counts_text(trip)}};
  if (number_at(trip, "hanging") > 0) {
    lines.back().second += ", " + count("hanging") + " of them still out";
  }
  const auto add = [&](const char* word, const std::string& text) {
    if (!text.empty()) lines.emplace_back(word, text);
  };
  add("  classes", listed(trip.find("classes")));
  add("  processes", contributors(trip.find("processes")));
  add_durations(lines, trip, "  durations", "durations");
  add("  settings", thresholds(trip.find("settings")));
  return head + '\n' + text_of(lines);
}

}  // namespace cutwater::ctl
