// SPDX-License-Identifier: Apache-2.0
// What the tests of cutwaterctl share: a daemon with a stepped clock, the tool beside it, and the
// bytes of the memory for comparing.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <cutwater/client.hpp>

#include "support/daemon_process.hpp"

namespace cutwater::ctl {

using test::DaemonOptions;
using test::DaemonProcess;
using test::ProgramRun;
using test::ScratchPlace;

/// Runs cutwaterctl with `arguments` and nothing else.
ProgramRun run_tool(const std::vector<std::string>& arguments);
/// The same on a terminal, both outputs together; `no_color` sets NO_COLOR. `columns`: its width;
/// 0: it does not say.
ProgramRun run_tool_on_terminal(const std::vector<std::string>& arguments, bool no_color = false,
                                unsigned short columns = 0);
/// Runs cutwater-quickstart.
ProgramRun run_quickstart(const std::vector<std::string>& arguments);
/// Paths of the two programs.
std::string tool_program();
std::string quickstart_program();

bool has(const std::string& text, const std::string& part);

/// The one JSON document in a text; a failure of the test when it is none.
nlohmann::json parse(const std::string& text);

/// rules + state + stats, as they lie in the memory directory.
std::string memory_bytes(const ScratchPlace& place);

/// A place with a configuration and a daemon on a stepped clock in it.
class Instance {
 public:
  explicit Instance(const std::string& yaml,
                    DaemonOptions options = {.arguments = {"--clock=stepped"}});

  const ScratchPlace& place() const { return place_; }
  DaemonProcess& daemon() { return *daemon_; }
  /// The next daemon on the same place, with the same options.
  void start_again();
  bool ready() const { return daemon_->ready(); }

  /// cutwaterctl --address of this instance + arguments.
  ProgramRun tool(std::vector<std::string> arguments) const;
  /// The same with -o json, parsed; the exit code must be 0.
  nlohmann::json json(std::vector<std::string> arguments) const;

  Client client() const;
  /// Moves the daemon's clock forward.
  void step_by(std::int64_t ns) const;

 private:
  ScratchPlace place_;
  DaemonOptions options_;
  std::unique_ptr<DaemonProcess> daemon_;
};

}  // namespace cutwater::ctl
