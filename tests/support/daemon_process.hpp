// SPDX-License-Identifier: Apache-2.0
// A real cutwaterd for tests: a private place under /dev/shm, a process that is started, killed,
// restarted and always cleaned up. Readiness is the daemon's own READY message, never a sleep; each
// wait ends after kWatchdog, which is a failure, not an expectation.
//
//   ScratchPlace place;                                // removed with everything in it
//   place.write_config("limits: { api: { rate: 10/s } }");
//   DaemonProcess daemon(place);
//   ASSERT_TRUE(daemon.ready()) << daemon.log();
//   daemon.kill(SIGKILL);                              // waits for the end
//   DaemonProcess again(place);                        // the next one on the same memory
//
// Thread safety: one thread. Uses nothing of the product but the program's path.
#pragma once
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <sys/resource.h>
#include <sys/types.h>
#include <unistd.h>

namespace cutwater::test {

inline constexpr std::chrono::seconds kWatchdog{60};

/// True as soon as `condition` is; false when the watchdog barks.
bool eventually(const std::function<bool()>& condition);

std::string read_file(const std::string& path);
void write_file(const std::string& path, const std::string& text);

/// A directory of its own on tmpfs, mode 0755, gone at the end with everything in it.
class ScratchPlace {
 public:
  ScratchPlace();
  ~ScratchPlace();
  ScratchPlace(const ScratchPlace&) = delete;
  ScratchPlace& operator=(const ScratchPlace&) = delete;

  const std::string& path() const { return path_; }
  std::string memory() const { return path_ + "/main"; }
  std::string state() const { return path_ + "/state"; }
  std::string config() const { return path_ + "/cutwater.yaml"; }
  std::string socket() const { return memory() + "/cutwater.sock"; }
  /// `unix:` + socket(), for clients.
  std::string address() const { return "unix:" + socket(); }
  void write_config(const std::string& yaml) const { write_file(config(), yaml); }

 private:
  std::string path_;
};

struct DaemonOptions {
  std::vector<std::string> arguments = {};     ///< behind the usual ones; a later --set wins
  std::map<std::string, std::string> environment = {};
  std::optional<int> stderr_fd = {};           ///< instead of a file; stays the caller's
  std::optional<mode_t> umask = {};
  std::optional<uid_t> uid = {};               ///< root only: started as this user
  std::optional<rlim_t> open_files = {};       ///< soft and hard limit of descriptors
  std::optional<rlim_t> locked_memory = {};    ///< soft and hard limit of mlock, bytes
  bool wait = true;                            ///< wait for READY or the end
};

class DaemonProcess {
 public:
  /// `--config place.config()` when that file is there, memory in place.memory(),
  /// journal in place.state().
  explicit DaemonProcess(const ScratchPlace& place, DaemonOptions options = {});
  ~DaemonProcess();
  DaemonProcess(const DaemonProcess&) = delete;
  DaemonProcess& operator=(const DaemonProcess&) = delete;

  /// Waits for READY or the end of the process.
  bool wait_ready();
  bool ready() const { return ready_; }
  pid_t pid() const { return pid_; }
  bool running();

  /// Sends a signal; with SIGKILL and SIGTERM use stop() or kill().
  void signal(int number) const;
  /// SIGTERM and the exit code; -1 when it did not end by itself.
  int stop();
  /// A signal that ends it, and its end.
  void kill(int number = 9);
  /// Waits for the end: the exit code, or minus the signal.
  int wait_end();

  /// Everything on stderr so far.
  std::string log() const;
  bool wait_log(const std::string& text) const;
  /// Messages to the service manager so far, joined by newlines.
  std::string notifications();
  /// Waits until one holds `text`.
  bool wait_notification(const std::string& text);

  /// Path of the program under test.
  static std::string program();

 private:
  void take_notifications(int timeout_ms);

  pid_t pid_ = -1;
  int pidfd_ = -1, notify_fd_ = -1;
  std::string log_path_, notify_path_, notified_;
  bool ready_ = false, ended_ = false;
  int status_ = 0;
};

/// Runs the program to its end and gives back what it printed and its exit code.
struct ProgramRun { int code = -1; std::string out, err; };
ProgramRun run_program(const std::vector<std::string>& command,
                       const std::map<std::string, std::string>& environment = {});

/// Runs `body` in a forked child under another uid, gid and supplementary groups; what it returns.
/// Root only. An abort or a signal gives "died".
std::string as_user(uid_t uid, gid_t gid, const std::vector<gid_t>& groups,
                    const std::function<std::string()>& body);
/// The same in a child of our own user.
std::string in_child(const std::function<std::string()>& body);

inline bool is_root() { return ::geteuid() == 0; }
/// Whether another user may start this program of the build: a build in root's own home may not be
/// entered by others, and a test that becomes one then cannot run.
bool others_may_run(const std::string& program);
inline constexpr const char* kBuildIsClosed = "the build lies where other users may not go";

}  // namespace cutwater::test
