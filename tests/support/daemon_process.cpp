// SPDX-License-Identifier: Apache-2.0
#include "support/daemon_process.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>

extern char** environ;

namespace cutwater::test {

namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void give_up(const char* what) {
  std::perror(what);
  std::abort();
}

/// Variables that would change what the program under test does.
bool is_ours(const std::string& variable) {
  constexpr const char* kOurs[] = {"CUTWATER_", "NOTIFY_SOCKET=", "RUNTIME_DIRECTORY=",
                                   "XDG_RUNTIME_DIR=", "JOURNAL_STREAM=", "WATCHDOG_"};
  for (const char* ours : kOurs) {
    if (variable.starts_with(ours)) return true;
  }
  return false;
}

std::vector<std::string> environment_with(const std::map<std::string, std::string>& extra) {
  std::vector<std::string> out;
  for (char** at = ::environ; *at != nullptr; ++at) {
    if (!is_ours(*at)) out.emplace_back(*at);
  }
  for (const auto& [name, value] : extra) out.push_back(name + "=" + value);
  return out;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

/// In the child: becomes the program. Only calls that are safe after fork.
void limit_and_become(const DaemonOptions& options, char* const* argv, char* const* envp) {
  if (options.open_files) {
    const rlimit limit{*options.open_files, *options.open_files};
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
  if (options.locked_memory) {
    const rlimit limit{*options.locked_memory, *options.locked_memory};
    ::setrlimit(RLIMIT_MEMLOCK, &limit);
  }
  if (options.umask) ::umask(*options.umask);
  if (options.uid) {
    const auto uid = *options.uid;
    if (::setgroups(0, nullptr) != 0 || ::setresgid(uid, uid, uid) != 0 ||
        ::setresuid(uid, uid, uid) != 0) {
      ::_exit(126);
    }
  }
  ::execve(argv[0], argv, envp);
  ::_exit(127);
}

std::string drain(int fd) {
  std::string out;
  char piece[4096];
  while (true) {
    const ssize_t n = ::read(fd, piece, sizeof piece);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return out;
    out.append(piece, static_cast<std::size_t>(n));
  }
}

}  // namespace

bool eventually(const std::function<bool()>& condition) {
  const auto end = Clock::now() + kWatchdog;
  while (!condition()) {
    if (Clock::now() > end) return false;
    ::poll(nullptr, 0, 5);
  }
  return true;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

void write_file(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
  ::chmod(path.c_str(), 0644);
}

ScratchPlace::ScratchPlace() {
  std::string name = "/dev/shm/cutwater-test-XXXXXX";
  if (::mkdtemp(name.data()) == nullptr) give_up("mkdtemp");
  ::chmod(name.c_str(), 0755);
  path_ = name;
}

ScratchPlace::~ScratchPlace() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string DaemonProcess::program() { return CUTWATERD_PROGRAM; }

DaemonProcess::DaemonProcess(const ScratchPlace& place, DaemonOptions options) {
  static int serial = 0;
  const std::string suffix = "." + std::to_string(++serial);
  log_path_ = place.path() + "/stderr" + suffix;
  notify_path_ = place.path() + "/notify" + suffix;
  notify_fd_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, notify_path_.c_str(), sizeof address.sun_path - 1);
  if (::bind(notify_fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    give_up("bind of the notification socket");
  }
  ::chmod(notify_path_.c_str(), 0777);

  std::vector<std::string> arguments = {program(), "--set",
                                        "instance.memory-directory=" + place.memory(), "--set",
                                        "instance.state-directory=" + place.state()};
  if (::access(place.config().c_str(), F_OK) == 0) {
    arguments.insert(arguments.end(), {"--config", place.config()});
  }
  arguments.insert(arguments.end(), options.arguments.begin(), options.arguments.end());
  options.environment["NOTIFY_SOCKET"] = notify_path_;
  std::vector<std::string> environment = environment_with(options.environment);
  const std::vector<char*> argv = pointers(arguments), envp = pointers(environment);

  constexpr int kAppend = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC;
  const int log_fd =
      options.stderr_fd ? *options.stderr_fd : ::open(log_path_.c_str(), kAppend, 0644);
  pid_ = ::fork();
  if (pid_ < 0) give_up("fork");
  if (pid_ == 0) {
    ::dup2(log_fd, STDERR_FILENO);
    const int null_fd = ::open("/dev/null", O_RDWR);
    ::dup2(null_fd, STDIN_FILENO);
    ::dup2(null_fd, STDOUT_FILENO);
    limit_and_become(options, argv.data(), envp.data());
  }
  if (!options.stderr_fd) ::close(log_fd);
  pidfd_ = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
  if (options.wait) wait_ready();
}

DaemonProcess::~DaemonProcess() {
  if (!ended_) kill(SIGKILL);
  ::close(pidfd_);
  ::close(notify_fd_);
  ::unlink(notify_path_.c_str());
}

void DaemonProcess::take_notifications(int timeout_ms) {
  pollfd entry{notify_fd_, POLLIN, 0};
  if (::poll(&entry, 1, timeout_ms) <= 0) return;
  char piece[4096];
  ssize_t n = 0;
  while ((n = ::recv(notify_fd_, piece, sizeof piece, 0)) > 0) {
    notified_.append(piece, static_cast<std::size_t>(n));
    notified_ += '\n';
  }
}

bool DaemonProcess::wait_ready() {
  const auto end = Clock::now() + kWatchdog;
  while (!ready_ && Clock::now() < end) {
    pollfd entries[] = {{notify_fd_, POLLIN, 0}, {pidfd_, POLLIN, 0}};
    ::poll(entries, 2, 1000);
    take_notifications(0);
    ready_ = notified_.find("READY=1") != std::string::npos;
    if (!ready_ && entries[1].revents != 0) {
      wait_end();
      return false;
    }
  }
  return ready_;
}

bool DaemonProcess::running() {
  if (ended_) return false;
  pollfd entry{pidfd_, POLLIN, 0};
  return ::poll(&entry, 1, 0) == 0;
}

void DaemonProcess::signal(int number) const { ::kill(pid_, number); }

int DaemonProcess::stop() {
  signal(SIGTERM);
  return wait_end();
}

void DaemonProcess::kill(int number) {
  if (ended_) return;
  ::kill(pid_, number);
  wait_end();
}

int DaemonProcess::wait_end() {
  if (!ended_) {
    pollfd entry{pidfd_, POLLIN, 0};
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(kWatchdog).count();
    if (::poll(&entry, 1, static_cast<int>(ms)) <= 0) {
      std::fprintf(stderr, "the daemon does not end; killed\n%s\n", log().c_str());
      ::kill(pid_, SIGKILL);
    }
    while (::waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {}
    ended_ = true;
  }
  return WIFEXITED(status_) ? WEXITSTATUS(status_) : -WTERMSIG(status_);
}

std::string DaemonProcess::log() const { return read_file(log_path_); }

bool DaemonProcess::wait_log(const std::string& text) const {
  return eventually([&] { return log().find(text) != std::string::npos; });
}

std::string DaemonProcess::notifications() {
  take_notifications(0);
  return notified_;
}

bool DaemonProcess::wait_notification(const std::string& text) {
  return eventually([&] { return notifications().find(text) != std::string::npos; });
}

ProgramRun run_program(const std::vector<std::string>& command,
                       const std::map<std::string, std::string>& environment) {
  std::vector<std::string> arguments = command;
  std::vector<std::string> variables = environment_with(environment);
  const std::vector<char*> argv = pointers(arguments), envp = pointers(variables);
  int out[2], err[2];
  if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0) give_up("pipe");
  const pid_t pid = ::fork();
  if (pid < 0) give_up("fork");
  if (pid == 0) {
    ::dup2(out[1], STDOUT_FILENO);
    ::dup2(err[1], STDERR_FILENO);
    ::alarm(static_cast<unsigned>(kWatchdog.count()));
    limit_and_become({}, argv.data(), envp.data());
  }
  ::close(out[1]);
  ::close(err[1]);
  ProgramRun run;
  run.out = drain(out[0]);   // both are small: neither fills its pipe
  run.err = drain(err[0]);
  ::close(out[0]);
  ::close(err[0]);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
  run.code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  return run;
}

namespace {

std::string in_forked(const std::function<bool()>& change,
                      const std::function<std::string()>& body) {
  int pipe_fds[2];
  if (::pipe2(pipe_fds, O_CLOEXEC) != 0) give_up("pipe");
  const pid_t pid = ::fork();
  if (pid < 0) give_up("fork");
  if (pid == 0) {
    ::alarm(static_cast<unsigned>(kWatchdog.count()));
    std::string answer = change() ? body() : "could not change the user";
    answer += '\n';
    const ssize_t written = ::write(pipe_fds[1], answer.data(), answer.size());
    ::_exit(written == static_cast<ssize_t>(answer.size()) ? 0 : 1);
  }
  ::close(pipe_fds[1]);
  std::string answer = drain(pipe_fds[0]);
  ::close(pipe_fds[0]);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || answer.empty()) return "died";
  answer.pop_back();
  return answer;
}

}  // namespace

bool others_may_run(const std::string& program) {
  struct stat found {};
  for (std::size_t at = program.find('/', 1); at != std::string::npos;
       at = program.find('/', at + 1)) {
    if (::stat(program.substr(0, at).c_str(), &found) != 0 || (found.st_mode & S_IXOTH) == 0) {
      return false;
    }
  }
  return ::stat(program.c_str(), &found) == 0 && (found.st_mode & S_IXOTH) != 0;
}

std::string as_user(uid_t uid, gid_t gid, const std::vector<gid_t>& groups,
                    const std::function<std::string()>& body) {
  return in_forked(
      [&] {
        return ::setgroups(groups.size(), groups.data()) == 0 && ::setresgid(gid, gid, gid) == 0 &&
               ::setresuid(uid, uid, uid) == 0;
      },
      body);
}

std::string in_child(const std::function<std::string()>& body) {
  return in_forked([] { return true; }, body);
}

}  // namespace cutwater::test
