// SPDX-License-Identifier: Apache-2.0
// What an operator does by hand: acts on one key or one limit, the journal of them, reload.
#include <algorithm>

#include "config/rate.hpp"
#include "ctl/commands.hpp"
#include "ctl/look.hpp"
#include "ctl/print.hpp"
#include "ctl/steer.hpp"
#include "ctl/table.hpp"
#include "ctl/text.hpp"

namespace cutwater::ctl {
namespace {

/// A reload may take longer than a question.
constexpr Nanos kReloadPatience = std::chrono::seconds{10};

/// The message of an act on a key; the key's text is read as `hex:` and `exact:` say.
Result<wire::Steer> message_of(std::string_view verb, const KeyAct& act) {
  auto key = key_argument(act.key);
  if (!key) return key.error();
  const bool singles_out = verb == wire::kVerbLimitBan || verb == wire::kVerbLimitUnban ||
                           verb == wire::kVerbLimitOverride;
  if (singles_out && key->empty()) {
    return Error{Errc::InvalidArgument, "an empty key cannot be singled out"};
  }
  wire::Steer message;
  message.verb = verb;
  message.name = act.limit;
  message.key = std::move(*key);
  message.for_ns = act.for_ns;
  message.note = act.note;
  return message;
}

Exit act_on_key(const Settings& settings, std::string_view verb, const KeyAct& act,
                const std::string& done, wire::Value arguments = {}) {
  auto message = message_of(verb, act);
  if (!message) return complain(settings, message.error());
  if (arguments.as_map() != nullptr) message->arguments = std::move(arguments);
  // In the file the same spelling is a pattern; here exact: says that one key is meant.
  const bool singled = verb == wire::kVerbLimitBan || verb == wire::kVerbLimitOverride;
  const std::string remark =
      singled && !act.key.starts_with("exact:") && act.key.find('*') != std::string::npos
          ? "this is the one key with a * in it, not a pattern: patterns stand in the file "
            "(limits." + escape_short(act.limit) + ".keys)"
          : "";
  return steer(settings, *message, done, settings.timeout, remark);
}

}  // namespace

Exit run_limit_reset(const Settings& settings, const KeyAct& act) {
  return act_on_key(settings, wire::kVerbLimitReset, act, "reset");
}

Exit run_limit_drain(const Settings& settings, const KeyAct& act) {
  return act_on_key(settings, wire::kVerbLimitDrain, act, "drained");
}

Exit run_limit_credit(const Settings& settings, const KeyAct& act, std::uint64_t tokens) {
  wire::Value arguments;
  arguments.set("n", tokens);
  return act_on_key(settings, wire::kVerbLimitCredit, act, "credited", std::move(arguments));
}

Exit run_limit_ban(const Settings& settings, const KeyAct& act) {
  return act_on_key(settings, wire::kVerbLimitBan, act, "banned");
}

Exit run_limit_unban(const Settings& settings, const KeyAct& act) {
  return act_on_key(settings, wire::kVerbLimitUnban, act, "no longer banned");
}

Exit run_limit_override(const Settings& settings, const KeyAct& act, const OverrideAct& numbers) {
  const int said = !numbers.rate.empty() + (numbers.unlimited ? 1 : 0) + (numbers.end ? 1 : 0);
  if (said != 1) {
    return complain(settings, Error{Errc::InvalidArgument,
                                    "say one of --rate RATE, --unlimited and --end: what this key "
                                    "gets instead, or that it ends"});
  }
  wire::Value arguments(wire::Value::Map{});
  if (!numbers.rate.empty()) {
    const auto rate = config::parse_rate(numbers.rate);
    if (!rate) {
      return complain(settings, Error{Errc::InvalidArgument, "--rate: " + rate.error().text()});
    }
    arguments.set("rate_count", rate->count);
    arguments.set("rate_period_ns", rate->period_ns);
    arguments.set("burst", numbers.burst == 0 ? rate->count : numbers.burst);
  } else if (numbers.unlimited) {
    arguments.set("unlimited", true);
  }
  return act_on_key(settings, wire::kVerbLimitOverride, act,
                    numbers.end ? "the override ended" : "overridden", std::move(arguments));
}

Exit run_limit_shadow(const Settings& settings, const KeyAct& act, bool on) {
  wire::Steer message;
  message.verb = wire::kVerbLimitShadow;
  message.name = act.limit;
  message.arguments.set("on", on);
  message.for_ns = act.for_ns;
  message.note = act.note;
  return steer(settings, message, on ? "shadow: counts and refuses nobody" : "enforced again");
}

Exit run_config_reload(const Settings& settings, bool dry) {
  wire::Steer message;
  message.verb = wire::kVerbConfigReload;
  message.arguments.set("dry", dry);
  // A reload waits until the change before it has taken effect.
  const Nanos patience = std::max(settings.timeout, kReloadPatience);
  return steer(settings, message, dry ? "would be taken over" : "reloaded", patience);
}

namespace {

/// `shadow off`, `override 9/s burst 9`, `ban`, `FORCED_OPEN`, `reset`.
std::string act_text(const wire::Value& row) {
  if (row.find("to") != nullptr) return escape_short(text_at(row, "to"));
  std::string text = escape_short(text_at(row, "do"));
  if (row.find("on") != nullptr) text += truth_at(row, "on") ? " on" : " off";
  if (truth_at(row, "unlimited")) text += " unlimited";
  if (row.find("count") != nullptr) {
    text += " " + rate_text(number_at(row, "count"), number_at(row, "period_ns")) + " burst " +
            std::to_string(number_at(row, "burst"));
  }
  return text;
}

}  // namespace

namespace {

/// `stands`, `undone`, `replaced by 8`; and what a reboot would not know of. What replaced an act
/// has a row of its own, which says whether the disk knows it.
Table::Cell state_cell(const wire::Value& row) {
  const std::string state = escape_short(text_at(row, "state"));
  if (row.find("replaced_by") != nullptr) {
    return {state + " by " + std::to_string(number_at(row, "replaced_by")), Tone::Plain};
  }
  const std::string saved = text_at(row, "saved");
  if (saved == "pending") return {state + ", being saved", Tone::Warn};
  if (saved == "failed") return {state + ", NOT saved", Tone::Bad};
  return {state.empty() ? "-" : state, Tone::Plain};
}

}  // namespace

Exit run_journal_list(const Settings& settings) {
  auto look = Look::open(settings);
  if (!look) return complain(settings, look.error());
  const auto rows = look->read("journal");
  if (!rows) return complain(settings, rows.error());

  wire::Value document = look->document();
  document.set("journal", wire::Value::Array(rows->begin(), rows->end()));
  Table table({{"ID", Table::Align::Right},
               {"STATE"},
               {"ACT"},
               {"ON"},
               {"KEY", Table::Align::Left, 1},
               {"UNTIL"},
               {"BY", Table::Align::Left, 2},
               {"NOTE"}});
  for (const wire::Value& row : *rows) {
    const auto shown = [&row](const char* field) {
      const std::string text = text_at(row, field);
      return text.empty() ? std::string("-") : escape_short(text);
    };
    const std::uint64_t until = number_at(row, "until_s");
    const bool breaker = row.find("breaker") != nullptr;
    table.add({std::to_string(number_at(row, "id")), state_cell(row), act_text(row),
               breaker ? "breaker " + shown("breaker") : "limit " + shown("limit"), key_cell(row),
               until == 0 ? "-" : moment_text(until), shown("who"), shown("note")});
  }
  return print(settings, document,
               rows->empty() ? "nothing was done by hand\n" : table_text(settings, table));
}

Exit run_journal_undo(const Settings& settings, std::uint64_t id) {
  wire::Steer message;
  message.verb = wire::kVerbJournalUndo;
  message.arguments.set("id", id);
  return steer(settings, message, "undone");
}

}  // namespace cutwater::ctl
