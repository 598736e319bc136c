// SPDX-License-Identifier: Apache-2.0
#include "config/key_text.hpp"
#include "ctl/breaker_text.hpp"
#include "ctl/commands.hpp"
#include "ctl/explain.hpp"
#include "ctl/look.hpp"
#include "ctl/print.hpp"
#include "ctl/table.hpp"
#include "ctl/text.hpp"

namespace cutwater::ctl {
namespace {

/// What a limit is, in one cell: its windows, or that it has none.
std::string rate_of(const wire::Value& row) {
  const wire::Value* windows = row.find("windows");
  if (windows == nullptr || windows->as_array() == nullptr) return text_at(row, "kind");
  const wire::Value::Array& list = *windows->as_array();
  if (list.size() == 1 && list.front().find("calendar") == nullptr) {
    return rate_text(number_at(row, "rate_count"), number_at(row, "rate_period_ns"));
  }
  std::string out;
  for (const wire::Value& window : list) out += (out.empty() ? "" : " + ") + window_text(window);
  return out;
}

/// The value of a row for a table: text as it is, numbers, `-` when it is not there.
std::string cell(const wire::Value& row, std::string_view key) {
  const wire::Value* found = row.find(key);
  if (found == nullptr) return "-";
  if (const auto number = found->as_unsigned()) return std::to_string(*number);
  if (const auto flag = found->as_bool()) return *flag ? "yes" : "no";
  const std::string text = text_at(row, key);
  return text.empty() ? "-" : escape_short(text, 256);
}

/// Where a key's answer lies in a row of `limit`.
const wire::Value& answer_in(const wire::Value& row) {
  const wire::Value* answer = row.find("answer");
  return answer != nullptr && answer->as_map() != nullptr ? *answer : row;
}

}  // namespace

Exit run_limit_list(const Settings& settings) {
  auto look = Look::open(settings);
  if (!look) return complain(settings, look.error());
  const auto rows = look->read("limits");
  if (!rows) return complain(settings, rows.error());

  wire::Value document = look->document();
  document.set("limits", wire::Value::Array(rows->begin(), rows->end()));
  using Align = Table::Align;
  Table table({{"LIMIT"},
               {"RATE", Align::Right},
               {"BURST", Align::Right},
               {"ON-FULL"},
               {"MAX-WAIT", Align::Right},
               {"MODE"}});
  for (const wire::Value& row : *rows) {
    table.add({escape(text_at(row, "limit")), rate_of(row), cell(row, "burst"),
               cell(row, "on_full"), duration_text(number_at(row, "max_wait_ns")),
               {cell(row, "mode"), text_at(row, "mode") == "shadow" ? Tone::Warn : Tone::Plain}});
  }
  return print(settings, document,
               rows->empty() ? "no limits are configured\n" : table_text(settings, table));
}

Exit run_limit_get(const Settings& settings, const std::string& name) {
  auto look = Look::open(settings);
  if (!look) return complain(settings, look.error());
  const auto row = look->read_limit(name);
  if (!row) return complain(settings, row.error());

  wire::Value document = look->document();
  for (const auto& entry : *row->as_map()) document.set(entry.key, entry.value);
  Lines lines = {
      {"limit", escape(text_at(*row, "limit"))},
      {"rate", rate_of(*row)},
      {"burst", cell(*row, "burst")},
      {"on-full", cell(*row, "on_full")},
      {"mode", cell(*row, "mode")},
      {"overrides", cell(*row, "overrides")},
      {"patterns", cell(*row, "patterns")},
      {"show-keys", cell(*row, "show_keys")},
      {"max-wait", duration_text(number_at(*row, "max_wait_ns"))},
      {"max-waiting", cell(*row, "max_waiting")},
      {"thread-lease", number_at(*row, "thread_lease") == 0 ? "off" : cell(*row, "thread_lease")},
  };
  constexpr std::pair<const char*, const char*> kOptional[] = {
      {"initial", "initial"},   {"note", "note"},     {"allowed", "allowed"},
      {"refused", "refused"},   {"tokens", "tokens"}, {"no place", "no_place"},
      {"degraded", "degraded"}, {"undone", "undone"}, {"waited", "waited"}};
  constexpr std::pair<const char*, const char*> kRare[] = {
      {"shadow", "shadow_refused"}, {"banned", "banned"},   {"charged", "charged"},
      {"credited", "credited"},     {"drained", "drained"}, {"overridden", "overridden"}};
  for (const auto& [word, key] : kOptional) {
    if (row->find(key) != nullptr) lines.emplace_back(word, cell(*row, key));
  }
  for (const auto& [word, key] : kRare) {
    if (number_at(*row, key) > 0) lines.emplace_back(word, cell(*row, key));
  }
  return print(settings, document, text_of(lines));
}

Exit run_limit_peek(const Settings& settings, const std::string& name, const std::string& key,
                    std::uint64_t cost) {
  const auto bytes = key_argument(key);
  if (!bytes) return complain(settings, bytes.error());
  auto look = Look::open(settings);
  if (!look) return complain(settings, look.error());
  const auto row = look->read_limit(name, *bytes, cost);
  if (!row) return complain(settings, row.error());

  const wire::Value& answer = answer_in(*row);
  if (answer.find("reason") == nullptr)
    return complain(settings, Error{Errc::Protocol, "the daemon gave no answer for the key"});
  const bool allowed = truth_at(answer, "allowed");
  wire::Value document = look->document();
  document.set("limit", name);
  document.set("key", config::spell_key(*bytes));
  document.set("cost", cost);
  if (answer.as_map() != nullptr) {
    for (const auto& entry : *answer.as_map()) document.set(entry.key, entry.value);
  }
  Lines lines = {
      {"limit", escape(name)},
      {"key", bytes->empty() ? escape("") : key_shown(*bytes)},
      {"answer", toned(allowed ? "allowed" : "refused: " + cell(answer, "reason"),
                       allowed ? Tone::Good : Tone::Bad, settings.colour)},
      {"remaining", cell(answer, "remaining")},
      {"retry-after", duration_text(number_at(answer, "retry_after_ns"))},
      {"full again", duration_text(number_at(answer, "reset_after_ns"))},
  };
  if (truth_at(answer, "overflow"))
    lines.emplace_back("overflow", "shares the overflow bucket: no place in the table");
  if (truth_at(answer, "degraded")) lines.emplace_back("degraded", "not decided by the rule");
  const Exit printed = print(settings, document, text_of(lines));
  return printed == Exit::Ok && !allowed ? Exit::Refused : printed;
}

Exit run_limit_explain(const Settings& settings, const std::string& name, const std::string& key,
                       std::uint64_t cost) {
  const auto bytes = key_argument(key);
  if (!bytes) return complain(settings, bytes.error());
  auto look = Look::open(settings);
  if (!look) return complain(settings, look.error());
  const auto row = look->read_limit(name, *bytes, cost);
  if (!row) return complain(settings, row.error());
  const std::vector<std::string> sentences = explain(*row, cost);
  if (sentences.empty()) {
    return complain(settings, Error{Errc::Protocol, "the daemon gave no answer for the key"});
  }
  wire::Value document = look->document();
  for (const auto& entry : *row->as_map()) document.set(entry.key, entry.value);
  wire::Value::Array words;
  std::string text =
      escape(name) + ", key " + (bytes->empty() ? escape("") : key_shown(*bytes)) + '\n';
  for (const std::string& sentence : sentences) {
    words.emplace_back(sentence);
    text += "  " + sentence + '\n';
  }
  if (const wire::Value* act = row->find("act")) text += "  " + act_words(*act) + '\n';
  document.set("explain", std::move(words));
  const Exit printed = print(settings, document, text);
  const bool allowed = truth_at(answer_in(*row), "allowed");
  return printed == Exit::Ok && !allowed ? Exit::Refused : printed;
}

Exit run_limit_top(const Settings& settings, const std::string& name) {
  auto look = Look::open(settings);
  if (!look) return complain(settings, look.error());
  const auto rows = look->read("top", name);
  if (!rows) return complain(settings, rows.error());

  wire::Value document = look->document();
  document.set("limit", name);
  constexpr const char* kSketch =
      "a sketch: processes that decide in memory note a sample; counts may be high by `over` (-o "
      "json)";
  Rows spelled = *rows;
  spell_keys(spelled);
  document.set("top", wire::Value::Array(spelled.begin(), spelled.end()));
  document.set("estimate", true);
  document.set("note", kSketch);
  Table table({{"KEY"}, {"REFUSED ~", Table::Align::Right}, {"ASKED ~", Table::Align::Right}});
  for (const wire::Value& row : *rows) {
    table.add({key_cell(row), cell(row, "refused"), cell(row, "asked")});
  }
  const std::string text = table_text(settings, table) + kSketch + '\n';
  return print(settings, document, rows->empty() ? "no key stands out\n" : text);
}

}  // namespace cutwater::ctl
