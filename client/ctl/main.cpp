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

struct Line {
  ctl::Settings settings;
  std::string output = "table", timeout = "1s";
  std::string name, key, file;
  std::uint64_t cost = 1;
  ctl::EventsAsk events;
  ctl::ReplayCommand replay;
  std::function<Exit()> chosen;
};

void add_globals(CLI::App& app, Line& line) {
  app.add_option(
      "--address", line.settings.address,
      "unix:PATH of the daemon's socket; default $CUTWATER_ADDRESS, else the usual places");
  app.add_option("--memory", line.settings.memory,
                 "memory directory to read when no daemon answers, or without asking");
  app.add_option("-o,--output", line.output, "table or json")
      ->check(CLI::IsMember({"table", "json"}));
  app.add_option("--timeout", line.timeout,
                 "how long the daemon may take for an answer, such as 500ms; default 1s");
}

CLI::App& command(CLI::App& parent, Line& line, const char* name, const char* help,
                  std::function<Exit()> run) {
  CLI::App& added = *parent.add_subcommand(name, help);
  added.callback([&line, run = std::move(run)] { line.chosen = run; });
  return added;
}

void add_limit(CLI::App& app, Line& line) {
  CLI::App& limit =
      *app.add_subcommand("limit", "The limits and their keys")->require_subcommand(1);
  command(limit, line, "list", "All limits", [&] { return ctl::run_limit_list(line.settings); });
  auto& get = command(limit, line, "get", "One limit: its settings and counters",
                      [&] { return ctl::run_limit_get(line.settings, line.name); });
  auto& peek = command(
      limit, line, "peek", "What a key would be answered now; changes nothing; exit 1: refused",
      [&] { return ctl::run_limit_peek(line.settings, line.name, line.key, line.cost); });
  auto& reset = command(limit, line, "reset", "Fill the bucket of a key",
                        [&] { return ctl::run_limit_reset(line.settings, line.name, line.key); });
  for (CLI::App* each : {&get, &peek, &reset})
    each->add_option("NAME", line.name, "of the limit")->required();
  for (CLI::App* each : {&peek, &reset})
    each->add_option("KEY", line.key, "bytes, or hex:616c")->required();
  peek.add_option("--cost", line.cost, "tokens asked for, default 1")
      ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{kMaxCost}));
}

void add_config(CLI::App& app, Line& line) {
  CLI::App& config = *app.add_subcommand("config", "The configuration")->require_subcommand(1);
  command(config, line, "check",
          "Every error and note of a file, and the memory it takes; exit 4: refused",
          [&] { return ctl::run_config_check(line.settings, line.file); })
      .add_option("FILE", line.file, "YAML")
      ->required();
  command(config, line, "reload", "Let the daemon read its file again: all of it or nothing",
          [&] { return ctl::run_config_reload(line.settings); });
}

void add_commands(CLI::App& app, Line& line) {
  command(app, line, "status", "Instance, daemon, fill of the table, counters, advice",
          [&] { return ctl::run_status(line.settings); });
  command(app, line, "clients", "Attached processes",
          [&] { return ctl::run_clients(line.settings); });
  add_limit(app, line);
  add_config(app, line);
  auto& events = command(app, line, "events", "What happened",
                         [&] { return ctl::run_events(line.settings, line.events); });
  events.add_flag("-f,--follow", line.events.follow, "go on until interrupted");
  events.add_option("-n,--last", line.events.last, "so many, default 100; 0 = all that are kept");
  command(app, line, "verify", "Read the whole memory and say what cannot be; exit 4: findings",
          [&] { return ctl::run_verify(line.settings); });
  auto& replay =
      command(app, line, "replay", "What a limit would have done to an access log; needs no daemon",
              [&] { return ctl::run_replay(line.settings, line.replay); });
  replay.add_option("LOG", line.replay.log, "in Common or Combined format; - reads standard input")
      ->required();
  replay.add_option("--limit", line.replay.limit, "name of the limit each client is asked for")
      ->required();
  replay.add_option(
      "--config", line.replay.config,
      "YAML with the limit; default $CUTWATER_CONFIG, else /etc/cutwater/cutwater.yaml");
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
