// SPDX-License-Identifier: Apache-2.0
#include "vectors/workers.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace cutwater::test {
namespace {

[[noreturn]] void give_up(const char* what) {
  std::perror(what);
  std::abort();
}

bool receive(int socket, std::uint64_t& number) {
  ssize_t n = 0;
  while ((n = ::recv(socket, &number, sizeof number, MSG_WAITALL)) < 0 && errno == EINTR) {}
  return n == static_cast<ssize_t>(sizeof number);
}

bool send(int socket, std::uint64_t number) {
  ssize_t n = 0;
  while ((n = ::send(socket, &number, sizeof number, MSG_NOSIGNAL)) < 0 && errno == EINTR) {}
  return n == static_cast<ssize_t>(sizeof number);
}

}  // namespace

Workers::Workers(int processes, const std::function<Work()>& start) {
  for (int i = 0; i < processes; ++i) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) give_up("socketpair");
    const pid_t pid = ::fork();
    if (pid < 0) give_up("fork");
    if (pid == 0) {
      ::close(ends[0]);
      for (const End& other : ends_) ::close(other.socket);
      const Work work = start();
      std::uint64_t task = 0;
      while (receive(ends[1], task) && send(ends[1], work(task))) {}
      ::_exit(0);
    }
    ::close(ends[1]);
    ends_.push_back({pid, ends[0]});
  }
}

Workers::~Workers() {
  for (const End& end : ends_) ::close(end.socket);
  for (const End& end : ends_) {
    while (::waitpid(end.pid, nullptr, 0) < 0 && errno == EINTR) {}
  }
}

void Workers::tell(int worker, std::uint64_t task) {
  if (!send(ends_[static_cast<std::size_t>(worker)].socket, task)) give_up("a worker is gone");
}

std::uint64_t Workers::answer(int worker) {
  std::uint64_t number = 0;
  if (!receive(ends_[static_cast<std::size_t>(worker)].socket, number)) give_up("a worker is gone");
  return number;
}

std::uint64_t Workers::all(std::uint64_t task) {
  for (int i = 0; i < size(); ++i) tell(i, task);
  std::uint64_t sum = 0;
  for (int i = 0; i < size(); ++i) sum += answer(i);
  return sum;
}

}  // namespace cutwater::test
