// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <iostream>
#include <sstream>
#include <vector>

#include <CLI/CLI.hpp>

#include <cutwater/version.hpp>

namespace cutwater::server {

Parsed parse_options(int argc, const char* const* argv, const char* config_variable) try {
  Parsed out;
  std::vector<std::string> settings;
  std::string clock = "config";
  CLI::App app("cutwaterd keeps the rate limits, circuit breakers and bulkheads that every process "
               "on this host shares.\n"
               "It stays in the foreground; SIGHUP reloads, SIGTERM ends, SIGUSR1 reopens the log.",
               "cutwaterd");
  app.add_option("--config", out.options.config_file,
                 "Configuration (YAML); default: $CUTWATER_CONFIG, else the built-in defaults");
  app.add_option("--set", settings, "Set one key, such as log.level=debug; wins over the file")
      ->type_name("PATH=VALUE")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_flag("--check-config", out.options.check_config,
               "Say every error, note and the memory needed, and end (4 when there are errors)");
  app.add_flag("--help-config", out.options.help_config, "Describe every key of the configuration");
  app.add_option("--clock", clock,
                 "`stepped`: time moves only when told (STEER clock.step), for tests and replay")
      ->check(CLI::IsMember({"config", "stepped"}));
  app.set_version_flag("--version", std::string("cutwaterd ") + kVersion);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::ostringstream words, wrong;
    const int code = app.exit(error, words, wrong);
    std::cout << words.str();
    if (!wrong.str().empty()) std::cerr << "cutwaterd: " << wrong.str();
    out.end = code == 0 ? ExitCode::Ok : ExitCode::Usage;
    return out;
  }
  out.options.stepped = clock == "stepped";
  if (out.options.config_file.empty() && config_variable != nullptr) {
    out.options.config_file = config_variable;
  }
  for (const std::string& setting : settings) {
    const auto equals = setting.find('=');
    if (equals == std::string::npos || equals == 0) {
      std::cerr << "cutwaterd: --set " << setting
                << ": write PATH=VALUE, such as log.level=debug\n";
      out.end = ExitCode::Usage;
      return out;
    }
    out.options.settings.emplace_back(setting.substr(0, equals), setting.substr(equals + 1));
  }
  return out;
} catch (const std::exception& error) {
  std::cerr << "cutwaterd: " << error.what() << "\n";
  return {.options = {}, .end = ExitCode::Usage};
}

}  // namespace cutwater::server
