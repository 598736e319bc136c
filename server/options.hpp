// SPDX-License-Identifier: Apache-2.0
// The command line of cutwaterd. CLI11 is seen by options.cpp alone.
#pragma once
#include <optional>
#include <string>

#include "config/config.hpp"
#include "exit_code.hpp"

namespace cutwater::server {

struct Options {
  std::string config_file;             ///< --config, else $CUTWATER_CONFIG, else empty
  config::Pairs settings;              ///< --set PATH=VALUE, in their order
  bool check_config = false;
  bool help_config = false;
  bool stepped = false;                ///< --clock=stepped
};

/// The options, or the exit code when the program ends here (--help, --version: 0; a mistake: 2);
/// what there is to say was printed. `config_variable`: $CUTWATER_CONFIG or null.
struct Parsed {
  Options options;
  std::optional<ExitCode> end;
};
Parsed parse_options(int argc, const char* const* argv, const char* config_variable);

}  // namespace cutwater::server
