// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ctl/commands.hpp"
#include "ctl/look.hpp"
#include "ctl/print.hpp"
#include "ctl/table.hpp"
#include "ctl/text.hpp"

namespace cutwater::ctl {
namespace {

/// Above this share of slots in debt new keys begin to find no place (0.6: 0 ppm, 0.8: 376 ppm
/// measured).
constexpr std::uint64_t kFullPermille = 700;

std::string count(const wire::Value& row, const char* key) {
  return std::to_string(number_at(row, key));
}

std::uint64_t share_permille(std::uint64_t part, std::uint64_t whole) {
  return whole == 0
             ? 0
             : static_cast<std::uint64_t>(static_cast<unsigned __int128>(part) * 1000 / whole);
}

/// Sentences for the operator at night; empty when all is well.
std::vector<std::string> advice_for(const wire::Value& status, const Look& look) {
  std::vector<std::string> advice;
  const std::uint64_t no_place = number_at(status, "no_place");
  const std::uint64_t slots = number_at(status, "slots");
  const std::uint64_t fill =
      share_permille(number_at(status, "in_debt") + number_at(status, "claims"), slots);
  const std::string raise =
      "raise capacity.keys (now " + std::to_string(slots / 2) + ") and restart the daemon";
  if (look.daemon() == "not running") {
    advice.push_back(
        "the daemon is not running: attached processes go on deciding, new ones cannot attach; "
        "start cutwaterd");
  } else if (look.daemon() == "does not answer") {
    advice.push_back(
        "the daemon does not answer: attached processes go on deciding; look at its log and "
        "process " +
        count(status, "pid"));
  }
  if (truth_at(status, "superseded")) advice.push_back("this memory was replaced by a newer one");
  if (no_place > 0) {
    advice.push_back(std::to_string(no_place) +
                     " decisions found no place for their key, and on-full decided; " + raise);
  } else if (fill >= kFullPermille) {
    advice.push_back("the table is nearly full; " + raise);
  }
  if (number_at(status, "damage") > 0) {
    advice.push_back(count(status, "damage") +
                     " damaged entries were found and repaired; run `cutwaterctl verify` and look "
                     "who may write the memory");
  }
  if (number_at(status, "rules_repaired") > 0) {
    advice.push_back(
        "the rules in the memory were overwritten and published again; look who may "
        "write to the daemon's memory directory");
  }
  const std::uint64_t used = number_at(status, "stripes_used"),
                      stripes = number_at(status, "stripes");
  if (stripes > 0 && used + 1 >= stripes) {
    advice.push_back(
        "all stripes of counters are taken and further threads share one; raise capacity.stripes "
        "(now " +
        std::to_string(stripes - 1) + ")");
  }
  return advice;
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
  line("no place", count(status, "no_place"));
  line("damage", count(status, "damage"));
  return out;
}

Table counters_table(const Rows& counters) {
  using Align = Table::Align;
  Table table({{"LIMIT"},
               {"ALLOWED", Align::Right},
               {"REFUSED", Align::Right},
               {"TOKENS", Align::Right},
               {"NO PLACE", Align::Right},
               {"DEGRADED", Align::Right},
               {"UNDONE", Align::Right},
               {"WAITED", Align::Right}});
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

}  // namespace

Exit run_status(const Settings& settings) {
  auto look = Look::open(settings);
  if (!look) return complain(look.error());
  const auto status = look->read("status");
  if (!status) return complain(status.error());
  const auto counters = look->read("counters");
  if (!counters) return complain(counters.error());
  if (status->empty())
    return complain(Error{Errc::Protocol, "the daemon gave no row for 'status'"});

  const wire::Value& row = status->front();
  wire::Value document = look->document();
  for (const auto& entry : *row.as_map()) document.set(entry.key, entry.value);
  document.set("fill_permille", share_permille(number_at(row, "in_debt"), number_at(row, "slots")));
  document.set("counters", wire::Value::Array(counters->begin(), counters->end()));
  std::string text = heading(row, *look, settings.colour);
  wire::Value::Array advice;
  for (const std::string& sentence : advice_for(row, *look)) {
    text += toned("advice      " + sentence, Tone::Warn, settings.colour) + '\n';
    advice.emplace_back(sentence);
  }
  document.set("advice", std::move(advice));
  text +=
      counters->empty() ? "\nno limits\n" : '\n' + counters_table(*counters).text(settings.colour);
  return print(settings, document, text);
}

Exit run_clients(const Settings& settings) {
  auto look = Look::open(settings);
  if (!look) return complain(look.error());
  const auto rows = look->read("clients");
  if (!rows) return complain(rows.error());

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
               rows->empty() ? "no process is attached\n" : table.text(settings.colour));
}

}  // namespace cutwater::ctl
