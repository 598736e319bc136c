// SPDX-License-Identifier: Apache-2.0
#include "ctl/command_line.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "ctl/print.hpp"
#include "rows/trip_rows.hpp"
#include "wire/breaker_verbs.hpp"

namespace cutwater::ctl {
namespace {

/// Digits alone, a sign, a fraction or a unit is no count; and within these bounds.
CLI::Validator whole_number(std::uint64_t least, std::uint64_t most) {
  return CLI::Validator(
      [least, most](std::string& text) {
        const char* const end = text.data() + text.size();
        std::uint64_t number = 0;
        const auto read = std::from_chars(text.data(), end, number);
        if (read.ec == std::errc() && read.ptr == end && number >= least && number <= most) {
          return std::string();
        }
        const std::string bounds = most == ~std::uint64_t{0}
                                       ? ""
                                       : " of " + std::to_string(least) + " .. " +
                                             std::to_string(most);
        return "'" + text + "' is no whole number" + bounds;
      },
      "");
}

/// One of these words; the option's placeholder says them.
CLI::Validator one_of(std::vector<std::string> words) {
  std::string listed;
  for (const std::string& word : words) listed += (listed.empty() ? "" : ", ") + word;
  return CLI::Validator(
      [words = std::move(words), listed](std::string& text) {
        const bool known = std::find(words.begin(), words.end(), text) != words.end();
        return known ? std::string() : "'" + text + "' is none of " + listed;
      },
      "");
}

CLI::App& command(CLI::App& parent, Line& line, const char* name, const char* help,
                  std::function<Exit()> run) {
  CLI::App& added = *parent.add_subcommand(name, help);
  added.callback([&line, run = std::move(run)] { line.chosen = run; });
  return added;
}

/// A command about one key: NAME and KEY.
CLI::App& on_key(CLI::App& added, Line& line) {
  added.add_option("NAME", line.act.limit, "of the limit")->required();
  added.add_option("KEY", line.act.key, "bytes, or hex:616c")->required();
  return added;
}

void noted(CLI::App& added, Line& line) {
  added.add_option("--note", line.act.note, "why; shown to whoever looks, at most 256 bytes")
      ->type_name("TEXT");
}

/// An act that lasts: --for and --note.
void lasting(CLI::App& added, Line& line) {
  added.add_option("--for", line.hold, "how long, such as 10m; without it until undone")
      ->type_name("DURATION");
  noted(added, line);
}

void add_limit_acts(CLI::App& limit, Line& line) {
  on_key(command(limit, line, "reset", "Fill the bucket of a key",
                 [&] { return run_limit_reset(line.settings, line.act); }),
         line);
  on_key(command(limit, line, "drain", "Spend the tokens a key has now",
                 [&] { return run_limit_drain(line.settings, line.act); }),
         line);
  on_key(command(limit, line, "credit", "Give a key tokens back, up to its burst",
                 [&] { return run_limit_credit(line.settings, line.act, line.number); }),
         line)
      .add_option("TOKENS", line.number, "1 .. 1000000000")
      ->required()
      ->check(whole_number(1, kMaxCost));
  lasting(on_key(command(limit, line, "ban", "Refuse a key",
                         [&] { return run_limit_ban(line.settings, line.act); }),
                 line),
          line);
  on_key(command(limit, line, "unban", "End the ban of a key",
                 [&] { return run_limit_unban(line.settings, line.act); }),
         line);
  auto& own = on_key(
      command(limit, line, "override", "Give a key a rate of its own",
              [&] { return run_limit_override(line.settings, line.act, line.override_act); }),
      line);
  own.add_option("--rate", line.override_act.rate, "such as 100/s; replaces all windows")
      ->type_name("RATE");
  own.add_option("--burst", line.override_act.burst, "default: the rate's count")
      ->check(whole_number(1, kMaxCost))
      ->type_name("TOKENS");
  own.add_flag("--unlimited", line.override_act.unlimited, "never refuse this key");
  own.add_flag("--end", line.override_act.end, "back to what the configuration says");
  lasting(own, line);
  auto& shadow = command(limit, line, "shadow", "Let a limit only count, or enforce it again", [&] {
    return run_limit_shadow(line.settings, line.act, line.word == "on");
  });
  shadow.add_option("NAME", line.act.limit, "of the limit")->required();
  shadow.add_option("STATE", line.word, "on or off")
      ->required()
      ->type_name("on|off")
      ->check(one_of({"on", "off"}));
  lasting(shadow, line);
}

void add_limit(CLI::App& app, Line& line) {
  CLI::App& limit =
      *app.add_subcommand("limit", "The limits and their keys")->require_subcommand(1);
  command(limit, line, "list", "All limits", [&] { return run_limit_list(line.settings); });
  auto& get = command(limit, line, "get", "One limit: its settings and counters",
                      [&] { return run_limit_get(line.settings, line.act.limit); });
  auto& top = command(limit, line, "top", "The keys a limit refuses most, and those that ask most",
                      [&] { return run_limit_top(line.settings, line.act.limit); });
  for (CLI::App* each : {&get, &top}) {
    each->add_option("NAME", line.act.limit, "of the limit")->required();
  }
  auto& keys = command(limit, line, "keys", "The keys of a limit that are in debt, by their names",
                       [&] { return run_limit_keys(line.settings, line.keys); });
  keys.add_option("NAME", line.keys.limit, "of the limit")->required();
  keys.add_flag("--refused-first", line.keys.refused_first, "those that wait longest for a token");
  keys.add_option("--most", line.keys.most, "so many, default 100, at most 10000")
      ->check(whole_number(1, kMostKeys))
      ->type_name("COUNT");
  auto& peek = on_key(
      command(
          limit, line, "peek", "What a key would be answered now; changes nothing; exit 1: refused",
          [&] { return run_limit_peek(line.settings, line.act.limit, line.act.key, line.cost); }),
      line);
  auto& explain = on_key(
      command(limit, line, "explain",
              "The next decision about a key in words; changes nothing; exit 1: refused",
              [&] {
                return run_limit_explain(line.settings, line.act.limit, line.act.key, line.cost);
              }),
      line);
  for (CLI::App* each : {&peek, &explain}) {
    each->add_option("--cost", line.cost, "tokens asked for, default 1")
        ->check(whole_number(0, kMaxCost))
        ->type_name("TOKENS");
  }
  add_limit_acts(limit, line);
}

/// An act by hand on a breaker: NAME, --note, and --for where it lasts.
void add_breaker_act(CLI::App& breaker, Line& line, const char* name, std::string_view verb,
                     const char* help) {
  const bool lasts = verb != wire::kVerbBreakerAuto && verb != wire::kVerbBreakerReset;
  auto& act = command(breaker, line, name, help, [&line, verb] {
    line.hand.verb = verb;
    line.hand.for_ns = line.act.for_ns;
    line.hand.note = line.act.note;
    return run_breaker_steer(line.settings, line.hand);
  });
  act.add_option("NAME", line.hand.breaker, "of the breaker")->required();
  if (lasts) {
    lasting(act, line);
  } else {
    noted(act, line);
  }
}

void add_breaker(CLI::App& app, Line& line) {
  CLI::App& breaker = *app.add_subcommand("breaker", "The circuit breakers")->require_subcommand(1);
  command(breaker, line, "list", "All breakers: state, rates, probes, when to come back",
          [&] { return run_breaker_list(line.settings); });
  auto& get = command(breaker, line, "get",
                      "One breaker: state, window, counters, durations, settings; exit 1: refuses",
                      [&] { return run_breaker_get(line.settings, line.hand.breaker); });
  auto& explain =
      command(breaker, line, "explain", "What decides next, in words; exit 1: it refuses now",
              [&] { return run_breaker_explain(line.settings, line.hand.breaker); });
  for (CLI::App* each : {&get, &explain}) {
    each->add_option("NAME", line.hand.breaker, "of the breaker")->required();
  }
  auto& why = command(
      breaker, line, "why", "Why it opened: the last times, with classes, processes and durations",
      [&] { return run_breaker_why(line.settings, line.hand.breaker, line.trips); });
  why.add_option("NAME", line.hand.breaker, "of the breaker; without it of all");
  why.add_option("-n,--last", line.trips, "so many, default 5, at most 100")
      ->check(whole_number(1, rows::kMaxTrips))
      ->type_name("COUNT");
  add_breaker_act(breaker, line, "force-open", wire::kVerbBreakerForceOpen,
                  "Refuse every call, whatever the outcomes say");
  add_breaker_act(breaker, line, "disable", wire::kVerbBreakerDisable,
                  "Grant every call and record nothing");
  add_breaker_act(breaker, line, "metrics-only", wire::kVerbBreakerMetricsOnly,
                  "Grant every call; record, and only say what would open it");
  add_breaker_act(breaker, line, "auto", wire::kVerbBreakerAuto,
                  "Let it decide by itself again after one of these");
  add_breaker_act(breaker, line, "reset", wire::kVerbBreakerReset,
                  "CLOSED with an empty window, from every state");
}

void add_bulkhead(CLI::App& app, Line& line) {
  CLI::App& bulkhead = *app.add_subcommand("bulkhead", "The bulkheads")->require_subcommand(1);
  command(bulkhead, line, "list", "All bulkheads: places in use, calls in line, times",
          [&] { return run_bulkhead_list(line.settings); });
  auto& get = command(bulkhead, line, "get", "One bulkhead with its counters; exit 1: it is full",
                      [&] { return run_bulkhead_get(line.settings, line.hand.breaker); });
  auto& explain = command(
      bulkhead, line, "explain",
      "What the next caller gets, who holds the places and who is next, in words; exit 1: refused",
      [&] { return run_bulkhead_explain(line.settings, line.hand.breaker); });
  for (CLI::App* each : {&get, &explain}) {
    each->add_option("NAME", line.hand.breaker, "of the bulkhead")->required();
  }
}

void add_config(CLI::App& app, Line& line) {
  CLI::App& config = *app.add_subcommand("config", "The configuration")->require_subcommand(1);
  command(config, line, "check",
          "Every error and note of a file, and the memory it takes; exit 4: refused",
          [&] { return run_config_check(line.settings, line.file); })
      .add_option("FILE", line.file, "YAML")
      ->required();
  command(config, line, "show", "The settings in force and where each came from",
          [&] { return run_config_show(line.settings); });
  command(config, line, "diff",
          "What a file would change in the running configuration; exit 4: it would be refused",
          [&] { return run_config_diff(line.settings, line.file); })
      .add_option("FILE", line.file, "YAML")
      ->required();
  command(config, line, "reload", "Let the daemon read its file again: all of it or nothing", [&] {
    return run_config_reload(line.settings, line.dry);
  }).add_flag("--dry", line.dry, "only say what would happen");
}

void add_journal(CLI::App& app, Line& line) {
  CLI::App& journal =
      *app.add_subcommand("journal", "What was done by hand")->require_subcommand(1);
  command(journal, line, "list", "Acts that stand, and those that ended lately",
          [&] { return run_journal_list(line.settings); });
  command(journal, line, "undo", "End one of them",
          [&] { return run_journal_undo(line.settings, line.number); })
      .add_option("ID", line.number, "as `journal list` shows it")
      ->check(whole_number(0, ~std::uint64_t{0}))
      ->required();
}

void add_replay(CLI::App& app, Line& line) {
  auto& replay =
      command(app, line, "replay", "What a limit would have done to an access log; needs no daemon",
              [&] { return run_replay(line.settings, line.replay); });
  replay.add_option("LOG", line.replay.log, "in Common or Combined format; - reads standard input")
      ->required();
  replay.add_option("--limit", line.replay.limit, "name of the limit each client is asked for")
      ->required()
      ->type_name("NAME");
  replay
      .add_option("--config", line.replay.config,
                  "YAML with the limit; default $CUTWATER_CONFIG, else /etc/cutwater/cutwater.yaml")
      ->type_name("FILE");
  replay
      .add_option("--against", line.replay.against,
                  "another YAML: both are replayed, and what changes for whom is shown")
      ->type_name("FILE");
}

/// What the words of a command are: of its values, and of its positional arguments in order.
CommandTree tree_below(const CLI::App& app, Wanted names) {
  CommandTree tree{app.get_name(), app.get_description(), {}, {}, {}};
  for (const CLI::Option* option : app.get_options()) {
    const std::string type = option->get_type_name();
    std::vector<std::string> words = words_of(type);
    if (!option->nonpositional()) {
      const Wanted wanted =
          words.empty() ? wanted_by(option->get_single_name(), names) : Wanted::Words;
      tree.positionals.push_back({wanted, std::move(words)});
      continue;
    }
    CommandOption added;
    for (const std::string& name : option->get_snames()) added.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) added.names.push_back("--" + name);
    added.help = option->get_description();
    if (option->get_items_expected_max() > 0) {
      added.value = words.empty() ? wanted_by(type, Wanted::LimitName) : Wanted::Words;
      added.words = std::move(words);
    }
    tree.options.push_back(std::move(added));
  }
  for (const CLI::App* child : app.get_subcommands([](const CLI::App*) { return true; })) {
    const bool group = app.get_parent() == nullptr;  // the words of a group share their NAME
    tree.children.push_back(tree_below(*child, group ? names_of_group(child->get_name()) : names));
  }
  return tree;
}

}  // namespace

void add_globals(CLI::App& app, Line& line) {
  app.add_option(
         "--address", line.settings.address,
         "unix:PATH of the daemon's socket; default $CUTWATER_ADDRESS, else the usual places")
      ->type_name("ADDRESS");
  app.add_option("--memory", line.settings.memory,
                 "memory directory to read when no daemon answers, or without asking")
      ->type_name("DIR");
  app.add_option("-o,--output", line.output, "table or json")
      ->check(one_of({"table", "json"}))
      ->type_name("table|json");
  app.add_option("--timeout", line.timeout,
                 "how long the daemon may take for an answer, such as 500ms; default 1s")
      ->type_name("DURATION");
}

void add_commands(CLI::App& app, Line& line) {
  command(app, line, "status", "Instance, daemon, fill of the table, counters, advice",
          [&] { return run_status(line.settings); });
  command(app, line, "clients", "Attached processes", [&] { return run_clients(line.settings); });
  add_limit(app, line);
  add_breaker(app, line);
  add_bulkhead(app, line);
  add_config(app, line);
  add_journal(app, line);
  auto& events = command(app, line, "events", "What happened",
                         [&] { return run_events(line.settings, line.events); });
  events.add_flag("-f,--follow", line.events.follow, "go on until interrupted");
  events.add_option("-n,--last", line.events.last, "so many, default 100; 0 = all that are kept")
      ->check(whole_number(0, ~std::uint64_t{0}))
      ->type_name("COUNT");
  command(app, line, "doctor", "What is not as it should be, and the remedy; exit 4: something is",
          [&] { return run_doctor(line.settings); });
  command(app, line, "verify", "Read the whole memory and say what cannot be; exit 4: findings",
          [&] { return run_verify(line.settings); });
  add_replay(app, line);
  command(app, line, "completion", "The script that completes command lines of this tool",
          [&] {
            const auto shell = shell_of(line.shell);
            return print_text(completion_script(tree_of(app), *shell));
          })
      .add_option("SHELL", line.shell, "bash, zsh or fish")
      ->required()
      ->type_name("bash|zsh|fish")
      ->check(one_of({"bash", "zsh", "fish"}));
}

CommandTree tree_of(const CLI::App& app) { return tree_below(app, Wanted::Anything); }

CommandTree command_tree() {
  Line line;
  CLI::App app{"", "cutwaterctl"};
  add_globals(app, line);
  add_commands(app, line);
  return tree_of(app);
}

}  // namespace cutwater::ctl
