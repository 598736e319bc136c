// SPDX-License-Identifier: Apache-2.0
// The command line of cutwaterctl; the only file that knows CLI11. Commands: ctl/commands.hpp.
#include <CLI/CLI.hpp>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <unistd.h>

#include <cutwater/version.hpp>

#include "base/standard_descriptors.hpp"
#include "config/duration.hpp"
#include "ctl/commands.hpp"
#include "ctl/completion.hpp"
#include "ctl/print.hpp"

namespace {

using namespace cutwater;
using ctl::Exit;

constexpr const char* kAbout =
    "Looks at and steers a cutwater instance.\n"
    "Asks the daemon with a deadline; when it does not answer, root and the daemon's user read the "
    "memory itself.\n";
constexpr const char* kFooter =
    "Exit codes: 0 ok or allowed, 1 refused, 2 usage, 3 cannot connect, 4 invalid config or damage "
    "found,\n"
    "            5 not permitted, 6 no such name.\n"
    "Keys: their bytes, or hex:616c for bytes that cannot be typed (exact: in front of a key that "
    "begins so).";

/// What --for is when it is left out.
constexpr const char* kUntilUndone = "0";

struct Line {
  ctl::Settings settings;
  std::string output = "table", timeout = "1s", hold = kUntilUndone;
  std::string name, key, file, shell, word;
  std::uint64_t cost = 1, number = 0;
  bool dry = false;
  ctl::KeyAct act;
  ctl::OverrideAct override_act;
  ctl::EventsAsk events;
  ctl::ReplayCommand replay;
  std::function<Exit()> chosen;
};

void add_globals(CLI::App& app, Line& line) {
  app.add_option(
         "--address", line.settings.address,
         "unix:PATH of the daemon's socket; default $CUTWATER_ADDRESS, else the usual places")
      ->type_name("ADDRESS");
  app.add_option("--memory", line.settings.memory,
                 "memory directory to read when no daemon answers, or without asking")
      ->type_name("DIR");
  app.add_option("-o,--output", line.output, "table or json")
      ->check(CLI::IsMember({"table", "json"}))
      ->type_name("table|json");
  app.add_option("--timeout", line.timeout,
                 "how long the daemon may take for an answer, such as 500ms; default 1s")
      ->type_name("DURATION");
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

/// An act that lasts: --for and --note.
void lasting(CLI::App& added, Line& line) {
  added.add_option("--for", line.hold, "how long, such as 10m; without it until undone")
      ->type_name("DURATION");
  added.add_option("--note", line.act.note, "why; shown to whoever looks, at most 256 bytes")
      ->type_name("TEXT");
}

void add_limit_acts(CLI::App& limit, Line& line) {
  on_key(command(limit, line, "reset", "Fill the bucket of a key",
                 [&] { return ctl::run_limit_reset(line.settings, line.act); }),
         line);
  on_key(command(limit, line, "drain", "Spend the tokens a key has now",
                 [&] { return ctl::run_limit_drain(line.settings, line.act); }),
         line);
  on_key(command(limit, line, "credit", "Give a key tokens back, up to its burst",
                 [&] { return ctl::run_limit_credit(line.settings, line.act, line.number); }),
         line)
      .add_option("TOKENS", line.number, "1 .. 1000000000")
      ->required()
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{kMaxCost}));
  lasting(on_key(command(limit, line, "ban", "Refuse a key",
                         [&] { return ctl::run_limit_ban(line.settings, line.act); }),
                 line),
          line);
  on_key(command(limit, line, "unban", "End the ban of a key",
                 [&] { return ctl::run_limit_unban(line.settings, line.act); }),
         line);
  auto& own = on_key(command(limit, line, "override", "Give a key a rate of its own",
                             [&] {
                               return ctl::run_limit_override(line.settings, line.act,
                                                              line.override_act);
                             }),
                     line);
  own.add_option("--rate", line.override_act.rate, "such as 100/s")->type_name("RATE");
  own.add_option("--burst", line.override_act.burst, "default: the rate's count")
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{kMaxCost}))
      ->type_name("TOKENS");
  own.add_flag("--unlimited", line.override_act.unlimited, "never refuse this key");
  own.add_flag("--end", line.override_act.end, "back to what the configuration says");
  lasting(own, line);
  auto& shadow = command(limit, line, "shadow", "Let a limit only count, or enforce it again", [&] {
    return ctl::run_limit_shadow(line.settings, line.act, line.word == "on");
  });
  shadow.add_option("NAME", line.act.limit, "of the limit")->required();
  shadow.add_option("STATE", line.word, "on or off")
      ->required()
      ->check(CLI::IsMember({"on", "off"}));
  lasting(shadow, line);
}

void add_limit(CLI::App& app, Line& line) {
  CLI::App& limit =
      *app.add_subcommand("limit", "The limits and their keys")->require_subcommand(1);
  command(limit, line, "list", "All limits", [&] { return ctl::run_limit_list(line.settings); });
  auto& get = command(limit, line, "get", "One limit: its settings and counters",
                      [&] { return ctl::run_limit_get(line.settings, line.act.limit); });
  auto& top = command(limit, line, "top", "The keys a limit refuses most, and those that ask most",
                      [&] { return ctl::run_limit_top(line.settings, line.act.limit); });
  for (CLI::App* each : {&get, &top}) {
    each->add_option("NAME", line.act.limit, "of the limit")->required();
  }
  auto& peek = on_key(
      command(limit, line, "peek",
              "What a key would be answered now; changes nothing; exit 1: refused",
              [&] {
                return ctl::run_limit_peek(line.settings, line.act.limit, line.act.key, line.cost);
              }),
      line);
  auto& explain = on_key(
      command(limit, line, "explain",
              "The next decision about a key in words; changes nothing; exit 1: refused",
              [&] {
                return ctl::run_limit_explain(line.settings, line.act.limit, line.act.key,
                                              line.cost);
              }),
      line);
  for (CLI::App* each : {&peek, &explain}) {
    each->add_option("--cost", line.cost, "tokens asked for, default 1")
        ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{kMaxCost}))
        ->type_name("TOKENS");
  }
  add_limit_acts(limit, line);
}

void add_config(CLI::App& app, Line& line) {
  CLI::App& config = *app.add_subcommand("config", "The configuration")->require_subcommand(1);
  command(config, line, "check",
          "Every error and note of a file, and the memory it takes; exit 4: refused",
          [&] { return ctl::run_config_check(line.settings, line.file); })
      .add_option("FILE", line.file, "YAML")
      ->required();
  command(config, line, "show", "The settings in force and where each came from",
          [&] { return ctl::run_config_show(line.settings); });
  command(config, line, "diff",
          "What a file would change in the running configuration; exit 4: it would be refused",
          [&] { return ctl::run_config_diff(line.settings, line.file); })
      .add_option("FILE", line.file, "YAML")
      ->required();
  command(config, line, "reload", "Let the daemon read its file again: all of it or nothing",
          [&] { return ctl::run_config_reload(line.settings, line.dry); })
      .add_flag("--dry", line.dry, "only say what would happen");
}

void add_journal(CLI::App& app, Line& line) {
  CLI::App& journal =
      *app.add_subcommand("journal", "What was done by hand")->require_subcommand(1);
  command(journal, line, "list", "Acts that stand, and those that ended lately",
          [&] { return ctl::run_journal_list(line.settings); });
  command(journal, line, "undo", "End one of them",
          [&] { return ctl::run_journal_undo(line.settings, line.number); })
      .add_option("ID", line.number, "as `journal list` shows it")
      ->required();
}

void add_replay(CLI::App& app, Line& line) {
  auto& replay =
      command(app, line, "replay", "What a limit would have done to an access log; needs no daemon",
              [&] { return ctl::run_replay(line.settings, line.replay); });
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

/// What the commands are, for completion.
ctl::CommandTree tree_of(const CLI::App& app) {
  ctl::CommandTree tree{app.get_name(), app.get_description(), {}, ctl::Wanted::Nothing, {}};
  for (const CLI::Option* option : app.get_options()) {
    const std::string type = option->get_type_name();
    if (!option->nonpositional()) {
      if (tree.first == ctl::Wanted::Nothing) {
        tree.first = ctl::wanted_by(option->get_single_name());
      }
      continue;
    }
    ctl::CommandOption added;
    for (const std::string& name : option->get_snames()) added.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) added.names.push_back("--" + name);
    added.help = option->get_description();
    if (option->get_items_expected_max() > 0) {
      added.value = ctl::wanted_by(type);
      added.words = ctl::words_of(type);
      if (!added.words.empty()) added.value = ctl::Wanted::Words;
    }
    tree.options.push_back(std::move(added));
  }
  for (const CLI::App* child : app.get_subcommands([](const CLI::App*) { return true; })) {
    tree.children.push_back(tree_of(*child));
  }
  return tree;
}

void add_commands(CLI::App& app, Line& line) {
  command(app, line, "status", "Instance, daemon, fill of the table, counters, advice",
          [&] { return ctl::run_status(line.settings); });
  command(app, line, "clients", "Attached processes",
          [&] { return ctl::run_clients(line.settings); });
  add_limit(app, line);
  add_config(app, line);
  add_journal(app, line);
  auto& events = command(app, line, "events", "What happened",
                         [&] { return ctl::run_events(line.settings, line.events); });
  events.add_flag("-f,--follow", line.events.follow, "go on until interrupted");
  events.add_option("-n,--last", line.events.last, "so many, default 100; 0 = all that are kept")
      ->type_name("COUNT");
  command(app, line, "doctor", "What is not as it should be, and the remedy; exit 4: something is",
          [&] { return ctl::run_doctor(line.settings); });
  command(app, line, "verify", "Read the whole memory and say what cannot be; exit 4: findings",
          [&] { return ctl::run_verify(line.settings); });
  add_replay(app, line);
  command(app, line, "completion", "The script that completes command lines of this tool",
          [&] {
            const auto shell = ctl::shell_of(line.shell);
            return ctl::print_text(ctl::completion_script(tree_of(app), *shell));
          })
      .add_option("SHELL", line.shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
}

/// The first word that is no command where one is wanted, and what there is; empty: none is wrong.
std::string unknown_command(const CLI::App& app, int argc, char** argv) {
  const CLI::App* at = &app;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i], before = argv[i - 1];
    const bool value = i > 1 && before.rfind("-", 0) == 0 && before.find('=') == std::string::npos;
    if (word.rfind("-", 0) == 0 || value) continue;
    const auto known = at->get_subcommands([](const CLI::App*) { return true; });
    const auto next = std::find_if(known.begin(), known.end(), [&](const CLI::App* command) {
      return command->get_name() == word;
    });
    if (next != known.end()) {
      at = *next;
      continue;
    }
    if (known.empty()) return {};  // a command that takes words: what is missing says CLI11
    std::string text = "unknown command '" + word + "'; one of:";
    for (const CLI::App* command : known) text += " " + command->get_name();
    return text;
  }
  return {};
}

int run(int argc, char** argv) {
  Line line;
  CLI::App app{kAbout, "cutwaterctl"};
  app.footer(kFooter);
  app.set_version_flag("--version", std::string("cutwaterctl ") + std::string(kVersion));
  app.require_subcommand(1);
  app.fallthrough();
  add_globals(app, line);
  add_commands(app, line);
  try {
    app.parse(argc, argv);
  } catch (const CLI::RequiredError& error) {
    if (const std::string wrong = unknown_command(app, argc, argv); !wrong.empty()) {
      ctl::note(wrong);
      return static_cast<int>(Exit::Usage);
    }
    return app.exit(error) == 0 ? static_cast<int>(Exit::Ok) : static_cast<int>(Exit::Usage);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? static_cast<int>(Exit::Ok) : static_cast<int>(Exit::Usage);
  }
  const auto timeout = config::parse_duration(line.timeout);
  if (!timeout || *timeout <= 0) {
    ctl::note("--timeout: " + (timeout ? std::string("must be above 0") : timeout.error().text()));
    return static_cast<int>(Exit::Usage);
  }
  const auto hold = config::parse_duration(line.hold);
  if (!hold || (*hold == 0 && line.hold != kUntilUndone)) {
    ctl::note("--for: " + (hold ? std::string("0 is no time; leave it out for 'until undone'")
                                : hold.error().text()));
    return static_cast<int>(Exit::Usage);
  }
  line.act.for_ns = *hold;
  line.settings.timeout = Nanos{static_cast<std::int64_t>(*timeout)};
  line.settings.json = line.output == "json";
  line.settings.colour =
      !line.settings.json && ::isatty(STDOUT_FILENO) == 1 && std::getenv("NO_COLOR") == nullptr;
  return static_cast<int>(line.chosen());
}

}  // namespace

int main(int argc, char** argv) {
  cutwater::open_standard_descriptors(cutwater::ClosedOutput::Refused);
  std::signal(SIGPIPE, SIG_IGN);  // a reader that goes away is an error of writing, not a death
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {  // of libraries: out of memory
    cutwater::ctl::note(std::string("gave up: ") + error.what());
    return static_cast<int>(Exit::NoConnection);
  }
}
