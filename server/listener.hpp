// SPDX-License-Identifier: Apache-2.0
// Accepts connections on the Unix socket and hands each to the loop's owner with what the kernel
// says about its peer.
//
// Out of descriptors (or of kernel memory): accepting pauses, 100 ms at first, doubling to 2 s, and
// goes on by itself when there are some again; one log line a minute, not one per try (C123).
// Thread safety: the loop's thread.
#pragma once
#include <cstdint>
#include <functional>

#include <asio.hpp>

#include "log.hpp"
#include "socket_file.hpp"

namespace cutwater::server {

class Listener {
 public:
  using Socket = asio::local::stream_protocol::socket;
  using Accepted = std::function<void(Socket)>;

  Listener(asio::io_context& loop, SocketFile file, Log& log, Accepted accepted);

  void start();
  /// No more connections; the name is removed if it is still ours.
  void stop();
  /// Called each second. When somebody removed the name (a tidy-up of /dev/shm at log-out), the
  /// socket is made anew in its place; connections go on. What lies there now is never touched.
  void keep_in_place(const SocketSettings& settings);

  std::uint64_t accepted() const noexcept { return accepted_count_; }
  std::uint64_t pauses() const noexcept { return pauses_; }

 private:
  asio::awaitable<void> run();
  asio::awaitable<void> pause(std::error_code why);

  asio::io_context& loop_;
  SocketFile file_;
  Log& log_;
  Accepted accepted_;
  asio::local::stream_protocol::acceptor acceptor_;
  asio::steady_timer timer_;
  std::chrono::milliseconds back_off_;
  std::chrono::steady_clock::time_point said_{};
  std::uint64_t accepted_count_ = 0, pauses_ = 0;
  bool stopped_ = false;
  bool lost_ = false;
};

}  // namespace cutwater::server
