// SPDX-License-Identifier: Apache-2.0
#include "processes.hpp"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace cutwater::quickstart {

Processes::~Processes() {
  for (const Child& child : children_) {
    if (!child.reaped) ::kill(child.pid, SIGKILL);
  }
  for (Child& child : children_) {
    while (!child.reaped && ::waitpid(child.pid, &child.status, 0) < 0 && errno == EINTR) {
    }
  }
}

Result<void> Processes::start(std::uint32_t count, const std::function<int(std::uint32_t)>& work) {
  const pid_t parent = ::getpid();
  for (std::uint32_t i = 0; i < count; ++i) {
    const pid_t pid = ::fork();
    if (pid < 0) return Error{Errc::System, std::string("fork: ") + std::strerror(errno)};
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(1);  // it ended before the line above
      ::_exit(work(i));
    }
    children_.push_back({pid, false, 0});
  }
  return {};
}

std::string Processes::ended(bool any) const {
  for (Child& child : children_) {
    if (!child.reaped) child.reaped = ::waitpid(child.pid, &child.status, WNOHANG) == child.pid;
    if (!child.reaped || (!any && child.status == 0)) continue;
    const std::string who = "process " + std::to_string(child.pid);
    if (WIFSIGNALED(child.status)) {
      return who + " was killed by signal " + std::to_string(WTERMSIG(child.status));
    }
    return who + " ended with code " + std::to_string(WEXITSTATUS(child.status));
  }
  return {};
}

bool Processes::wait() {
  bool good = true;
  for (Child& child : children_) {
    while (!child.reaped) {
      child.reaped = ::waitpid(child.pid, &child.status, 0) == child.pid || errno != EINTR;
    }
    good = good && child.status == 0;
  }
  return good;
}

}  // namespace cutwater::quickstart
