// SPDX-License-Identifier: Apache-2.0
// Tells the service manager how we are: the sd_notify datagram protocol, without libsystemd.
//
// $NOTIFY_SOCKET names a Unix datagram socket, `@` in front = abstract. Unset: every call does
// nothing. A manager that does not read loses the message; nothing here waits or fails.
// Thread safety: one thread.
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "shm/directory.hpp"

namespace cutwater::server {

class Notifier {
 public:
  /// `socket`, `watchdog_usec`, `watchdog_pid`: the environment variables, null when unset.
  Notifier(const char* socket, const char* watchdog_usec, const char* watchdog_pid);

  void ready(std::string_view status) const;
  void reloading() const;
  void status(std::string_view text) const;
  void stopping() const;
  void watchdog() const;

  /// How often watchdog() is due: half of what the manager allows; nullopt: it wants none of us.
  std::optional<std::chrono::microseconds> watchdog_period() const noexcept { return period_; }

 private:
  void send(const std::string& message) const;

  std::string address_;
  shm::UniqueFd fd_;
  std::optional<std::chrono::microseconds> period_;
};

}  // namespace cutwater::server
