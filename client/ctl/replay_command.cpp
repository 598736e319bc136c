// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <unistd.h>

#include "config/config.hpp"
#include "ctl/commands.hpp"
#include "ctl/print.hpp"
#include "ctl/replay.hpp"
#include "ctl/text.hpp"

namespace cutwater::ctl {
namespace {

/// A bar on a terminal, a line each tenth elsewhere; on standard error.
class Bar {
 public:
  explicit Bar(bool terminal) : terminal_(terminal) {}
  ~Bar() {
    if (terminal_ && shown_) std::fputs("\r\x1b[K", stderr);
  }
  Bar(const Bar&) = delete;
  Bar& operator=(const Bar&) = delete;

  void show(unsigned permille) {
    if (!terminal_) {
      if (permille / 100 == tenth_) return;
      tenth_ = permille / 100;
      std::fprintf(stderr, "replay: %u %%\n", tenth_ * 10);
      return;
    }
    shown_ = true;
    const std::string done(permille / 25, '#');
    std::fprintf(stderr, "\r[%-40s] %3u %%", done.c_str(), permille / 10);
  }

 private:
  bool terminal_;
  bool shown_ = false;
  unsigned tenth_ = 0;
};

std::string config_path(const ReplayCommand& command) {
  if (!command.config.empty()) return command.config;
  const char* set = std::getenv("CUTWATER_CONFIG");
  return set != nullptr && *set != '\0' ? set : kDefaultConfig;
}

/// A configuration file, checked; the error has every finding.
Result<config::Config> checked(const std::string& path) {
  config::LoadOutcome outcome = config::load_file(path, config::system_options(::environ));
  if (!outcome.ok()) return Error{Errc::InvalidConfig, outcome.report("nothing was replayed")};
  return std::move(*outcome.config);
}

}  // namespace

Exit run_replay(const Settings& settings, const ReplayCommand& command) {
  const auto config = checked(config_path(command));
  if (!config) return complain(settings, config.error());
  std::optional<config::Config> against;
  if (!command.against.empty()) {
    auto other = checked(command.against);
    if (!other) return complain(settings, other.error());
    against.emplace(std::move(*other));
  }
  auto log = AccessLog::open(command.log);
  if (!log) return complain(settings, log.error());

  Result<ReplayResult> result = Error{};
  {
    Bar bar(::isatty(STDERR_FILENO) == 1);
    result = replay(*log,
                    {.config = &*config,
                     .against = against ? &*against : nullptr,
                     .limit = command.limit},
                    [&bar](unsigned permille) { bar.show(permille); });
  }
  if (!result) return complain(settings, result.error());
  for (const LogFault& fault : result->faults) {
    note(command.log + ":" + std::to_string(fault.line) + ": skipped: " + fault.reason);
  }
  if (result->out_of_order * 10 > result->requests) {
    note(std::to_string(result->out_of_order) + " of " + std::to_string(result->requests) +
         " lines are earlier than one before them and were taken for its time; sort the log by "
         "time for a true answer");
  }
  if (result->skipped > result->faults.size()) {
    note(std::to_string(result->skipped) + " lines could not be read; the first " +
         std::to_string(result->faults.size()) + " are shown");
  }
  const Exit printed = print(settings, document_of(*result), table_of(*result, settings.colour));
  if (result->requests == 0 && result->skipped > 0) {
    note("no line of " + command.log + " could be read as Common or Combined log format");
    return Exit::Invalid;
  }
  return printed;
}

}  // namespace cutwater::ctl
