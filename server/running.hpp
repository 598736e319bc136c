// SPDX-License-Identifier: Apache-2.0
// The configuration in force and where it came from. A value; replaced as a whole by a reload.
#pragma once
#include <cstdint>
#include <string>

#include "config/config.hpp"
#include "rows/config_report.hpp"

namespace cutwater::server {

/// How the daemon was told to load its configuration; a reload does the same again.
struct ConfigSource {
  std::string file;                    ///< empty: the built-in defaults alone
  config::Pairs settings;              ///< --set
  const char* const* environment = nullptr;
  std::string fingerprint = {};        ///< of the file, before the first load; file_watch.hpp

  config::LoadOutcome load() const {
    config::LoadOptions options = config::system_options(environment);
    options.settings = settings;
    config::LoadOutcome outcome = file.empty()
                                      ? config::load_text("", "built-in defaults", options)
                                      : config::load_file(file, options);
    if (outcome.config) rows::grow_breaker_memory(*outcome.config);
    return outcome;
  }
};

struct Running {
  config::Config config;
  config::Capacity reserved;           ///< what the daemon started with
  ConfigSource source;
  std::uint64_t reloads = 0, reloads_refused = 0;
  std::string refusal = {};            ///< first error of the last reload; empty: it was taken over
};

}  // namespace cutwater::server
