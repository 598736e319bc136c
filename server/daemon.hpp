// SPDX-License-Identifier: Apache-2.0
// The daemon: owns all parts and their order of birth and death, and runs the one loop they share.
//
//   birth  config -> log -> journal -> directory -> lock -> memory -> rules -> rows -> bans ->
//          socket -> READY=1 -> watch of the file
//   death  (SIGTERM, SIGINT) STOPPING=1 -> no new connections, the socket's name removed if ours ->
//          GOAWAY to all, open requests answered (at most `drain`) -> row 1 given back -> end. The
//          memory files stay: clients go on deciding.
//   SIGHUP reload; SIGUSR1 open the log file anew; a second SIGTERM ends without waiting.
// One thread runs the loop; nothing on it waits: the log has a writer of its own, files and user
// names are read by the reloader's thread.
// Thread safety: construct and run from one thread.
#pragma once
#include <memory>
#include <string>

#include <cutwater/result.hpp>

#include "exit_code.hpp"
#include "log.hpp"
#include "memory.hpp"
#include "running.hpp"

namespace cutwater::server {

/// The environment's part; every pointer may be null.
struct Surroundings {
  const char* notify_socket = nullptr;
  const char* watchdog_usec = nullptr;
  const char* watchdog_pid = nullptr;
  std::string runtime_directory;
  std::string xdg_runtime_dir;
  std::string state_directory;         ///< $STATE_DIRECTORY
  std::string xdg_state_home;          ///< $XDG_STATE_HOME, else $HOME/.local/state
};

class Daemon {
 public:
  /// Everything up to the listening socket. The error's code says which exit code it is.
  static Result<std::unique_ptr<Daemon>> start(config::Config config, ConfigSource source,
                                               const Surroundings& around, bool stepped, Log& log);
  ~Daemon();

  /// Tells READY and serves until asked to end.
  ExitCode run();

  const std::string& socket_path() const noexcept;

 private:
  struct Parts;
  explicit Daemon(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

/// True when somebody besides root and the daemon's user may connect.
bool others_must_reach(const config::Access& access) noexcept;

}  // namespace cutwater::server
