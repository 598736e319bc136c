// SPDX-License-Identifier: Apache-2.0
#include "notify.hpp"

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace cutwater::server {

Notifier::Notifier(const char* socket, const char* watchdog_usec, const char* watchdog_pid) {
  if (socket != nullptr && (socket[0] == '/' || socket[0] == '@')) {
    address_ = socket;
    if (address_.size() >= sizeof(sockaddr_un::sun_path)) address_.clear();
    if (!address_.empty()) fd_.reset(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  }
  if (watchdog_usec == nullptr || !fd_) return;
  if (watchdog_pid != nullptr && std::atoll(watchdog_pid) != ::getpid()) return;
  const long long usec = std::atoll(watchdog_usec);
  if (usec > 1) period_ = std::chrono::microseconds{usec / 2};
}

void Notifier::send(const std::string& message) const {
  if (!fd_) return;
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path, address_.data(), address_.size());
  if (to.sun_path[0] == '@') to.sun_path[0] = '\0';
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + address_.size());
  // Lost when nobody listens: a manager that does not care is no reason to fail.
  static_cast<void>(::sendto(fd_.get(), message.data(), message.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                             reinterpret_cast<sockaddr*>(&to), length));
}

void Notifier::ready(std::string_view status) const {
  send("READY=1\nSTATUS=" + std::string(status));
}

void Notifier::reloading() const {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  send("RELOADING=1\nMONOTONIC_USEC=" +
       std::to_string(static_cast<long long>(now.tv_sec) * 1'000'000 + now.tv_nsec / 1000));
}

void Notifier::status(std::string_view text) const { send("STATUS=" + std::string(text)); }
void Notifier::stopping() const { send("STOPPING=1"); }
void Notifier::watchdog() const { send("WATCHDOG=1"); }

}  // namespace cutwater::server
