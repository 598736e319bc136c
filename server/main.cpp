// SPDX-License-Identifier: Apache-2.0
// cutwaterd: reads the command line and the configuration, starts the daemon, turns errors into
// exit codes (exit_code.hpp). Errors of the start go to stderr as plain sentences; from then on
// the log.
#include <csignal>
#include <cstdlib>
#include <exception>
#include <iostream>

#include <unistd.h>

#include "daemon.hpp"
#include "file_watch.hpp"
#include "options.hpp"
#include "base/standard_descriptors.hpp"
#include "rows/config_report.hpp"

namespace {

using namespace cutwater;
using server::ExitCode;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

/// Where a user's own daemon keeps its state.
std::string state_home() {
  const std::string given = variable("XDG_STATE_HOME"), home = variable("HOME");
  if (!given.empty() || home.empty()) return given;
  return home + "/.local/state";
}

/// What leaves the loop (no memory, say) ends this process only: the next one adopts the memory.
ExitCode run(server::Daemon& daemon, server::Log& log) {
  try {
    return daemon.run();
  } catch (const std::exception& thrown) {
    log.error("ended by {}: start cutwaterd again, the memory stays as it is", thrown.what());
    return ExitCode::NotPossible;
  }
}

ExitCode run(const server::Options& options) {
  const server::ConfigSource source{options.config_file, options.settings, ::environ,
                                    server::fingerprint_of(options.config_file)};
  config::LoadOutcome outcome = source.load();
  if (options.check_config) {
    outcome = rows::fitting(std::move(outcome));
    std::cout << rows::config_report(outcome,
                                     source.file.empty() ? "built-in defaults" : source.file);
    return outcome.ok() ? ExitCode::Ok : ExitCode::Invalid;
  }
  if (!outcome.config) {
    std::cerr << outcome.report("nothing was started") << "\n";
    return ExitCode::Invalid;
  }
  config::Config& config = *outcome.config;
  const bool journal = server::stderr_is_journal(std::getenv("JOURNAL_STREAM"));
  auto log = server::Log::open(config.log, journal);
  if (!log) {
    std::cerr << "cutwaterd: " << log.error().text() << "\n";
    return ExitCode::Invalid;
  }
  for (const config::Finding& note : outcome.notes) (*log)->info("note: {}", note.line());

  const server::Surroundings around{.notify_socket = std::getenv("NOTIFY_SOCKET"),
                                    .watchdog_usec = std::getenv("WATCHDOG_USEC"),
                                    .watchdog_pid = std::getenv("WATCHDOG_PID"),
                                    .runtime_directory = variable("RUNTIME_DIRECTORY"),
                                    .xdg_runtime_dir = variable("XDG_RUNTIME_DIR"),
                                    .state_directory = variable("STATE_DIRECTORY"),
                                    .xdg_state_home = state_home()};
  auto daemon = server::Daemon::start(std::move(config), source, around, options.stepped, **log);
  ExitCode code = ExitCode::Ok;
  if (daemon) {
    code = run(**daemon, **log);
  } else {
    (*log)->error("not started: {}", daemon.error().text());
    code = server::exit_code_for(daemon.error().code());
  }
  (*log)->close(std::chrono::milliseconds{1000});
  // No destructors from here: a log writer or a reload that is stuck in the kernel must not keep
  // the process; the kernel closes everything, and the memory files stay as they are.
  std::cout.flush();
  std::_Exit(static_cast<int>(code));
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  open_standard_descriptors(ClosedOutput::Discarded);
  const server::Parsed parsed = server::parse_options(argc, argv, std::getenv("CUTWATER_CONFIG"));
  if (parsed.end) return static_cast<int>(*parsed.end);
  if (parsed.options.help_config) {
    std::cout << config::describe_keys();
    return 0;
  }
  return static_cast<int>(run(parsed.options));
}
